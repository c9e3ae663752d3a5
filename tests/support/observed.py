"""Servers at somebody else's work: causes that are made, under the load of PostgreSQL's own pgbench, and observed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support import causes
from tests.support.causes import Injected
from tests.support.cli import PGDYNO, environment
from tests.support.server import Server
from tests.support.waiting import wait_until

#: Debian's: another version than the server's, and no pgdyno.
PGBENCH = Path("/usr/lib/postgresql/15/bin/pgbench")
#: Seconds of load before the observation, and behind it.
_BEFORE_S, _AFTER_S = 2.0, 8.0


def why_not() -> str:
    """Return why there is no foreign load here; empty: there is."""
    return "" if PGBENCH.exists() else "needs Debian's pgbench (postgresql-15)"


def is_loaded(server: Server) -> bool:
    """Return True if pgbench has connected."""
    return bool(server.sql("select 1 from pg_stat_activity where application_name = 'pgbench'"))


def load(server: Server, script: Path, clients: int, seconds: float, *options: str) -> subprocess.Popen[str]:
    """Start pgbench, which ends by itself after the seconds."""
    argv = [str(PGBENCH), "-n", "-h", str(server.socket), "-p", str(server.port), "-U", "postgres", "-M", "prepared",
            "-c", str(clients), "-j", str(min(clients, 2)), "-T", str(round(seconds)), "-f", str(script), *options,
            "postgres"]  # fmt: skip
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def observed(i: Injected, folder: Path, seconds: float, options: Sequence[str] = ()) -> dict[str, Any]:
    """Make the cause, start the load, observe, and return what pgdyno observe --json says."""
    with ExitStack() as stack:
        place = stack.enter_context(i.place())
        server = stack.enter_context(Server(hba="host all all 127.0.0.1/32 trust\n", conf=i.conf, folder=place))
        for statement in filter(None, map(str.strip, i.setup.split(";"))):
            server.sql(statement)
        if i.server_cpus is not None:
            stack.callback(causes.leave, causes.limit_cpus(server, i.server_cpus))
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / "script.sql"
        script.write_text(i.script)
        process = load(server, script, i.clients, _BEFORE_S + seconds + _AFTER_S, *options)
        stack.callback(process.kill)
        wait_until(lambda: is_loaded(server), process=process)
        stack.enter_context(i.disturb(server))
        argv = [str(PGDYNO), "observe", "--target", server.conninfo(), "--for", str(seconds), "--runs", str(folder),
                "--json"]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment())
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found
