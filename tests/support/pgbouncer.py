"""PgBouncer for real, as Debian packages it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgdyno.cluster.account import server_account

from tests.support.server import answers, free_port
from tests.support.waiting import wait_until

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def pgbouncer(folder: Path, server: str, mode: str, pool: int = 8) -> Iterator[int]:
    """In front of a server (host=... port=...) that trusts; yields its port. `folder` is one that all can reach."""
    assert PGBOUNCER is not None
    account, port = server_account(), free_port()
    (folder / "users.txt").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = {server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"auth_type = trust\nauth_file = {folder}/users.txt\npool_mode = {mode}\ndefault_pool_size = {pool}\n"
        f"max_client_conn = 500\nlogfile =\npidfile =\nunix_socket_dir =\nadmin_users = postgres\n"
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    with (folder / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen(
            [PGBOUNCER, folder / "pgbouncer.ini"], stdout=log, stderr=log, cwd="/", env=env, **account.popen()
        )
    try:
        where = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        wait_until(lambda: answers(where), 20, why=(folder / "pgbouncer.log").read_text)
        yield port
    finally:
        process.kill()
        process.wait()
