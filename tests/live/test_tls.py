"""TLS and passwords, by the native client itself: libpq only finds the parameters."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pgdyno import _core
from pgdyno.engine import Plan

from tests.support.cli import SHORT, environment, pgdyno
from tests.support.server import Server, make_certificate
from tests.support.waiting import wait_until


class Quiet:
    def started(self, *_: Any) -> None: ...
    def interval(self, _: Any) -> None: ...
    def event(self, _: Any) -> None: ...


def select(**config: Any) -> _core.RunResult:
    workload = _core.Workload()
    workload.add("one.sql", "SELECT 1;")
    arguments = {"dbname": "postgres", "password": "geheim", **config}
    return _core.run([_core.ConnConfig(**arguments)], workload, Quiet(), Plan(clients=3, transactions=20))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("user", ["scram", "plain", "md5user"])
@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_every_method_over_tls(tls_server: tuple[Server, Path], user: str, mode: str) -> None:
    s, ca = tls_server
    result = select(host="localhost", hostaddr="127.0.0.1", port=s.port, user=user, sslmode=mode, sslrootcert=str(ca))
    assert result.error is None and result.phase("measure").committed == 60  # type: ignore[union-attr]


@pytest.mark.parametrize("user", ["plain", "md5user"])
def test_passwords_in_the_clear(tls_server: tuple[Server, Path], user: str) -> None:
    s, _ = tls_server
    assert select(host="127.0.0.1", port=s.port, user=user, sslmode="disable").error is None


def test_channel_binding_can_be_demanded(tls_server: tuple[Server, Path]) -> None:
    s, _ = tls_server
    ok = select(host="127.0.0.1", port=s.port, user="scram", sslmode="require", channel_binding="require")
    assert ok.error is None
    with pytest.raises(_core.ConnectError, match="channel_binding=require"):
        select(host="127.0.0.1", port=s.port, user="md5user", sslmode="require", channel_binding="require")


def test_prefer_takes_tls_where_only_tls_is_let_in(tls_server: tuple[Server, Path]) -> None:
    s, _ = tls_server
    assert select(host="127.0.0.1", port=s.port, user="scram", sslmode="prefer").error is None
    assert select(host="127.0.0.1", port=s.port, user="scram", sslmode="allow").error is None
    with pytest.raises(_core.ConnectError, match="pg_hba"):
        select(host="127.0.0.1", port=s.port, user="scram", sslmode="disable")


def test_certificates_that_do_not_verify(tls_server: tuple[Server, Path], tmp_path: Path) -> None:
    s, ca = tls_server
    where = {"port": s.port, "user": "plain"}
    with pytest.raises(_core.ConnectError, match="certificate"):
        select(host="127.0.0.1", sslmode="verify-full", sslrootcert=str(ca), **where)
    assert select(host="127.0.0.1", sslmode="verify-ca", sslrootcert=str(ca), **where).error is None
    strange, _, _ = make_certificate(tmp_path, "localhost")
    with pytest.raises(_core.ConnectError, match="sslrootcert"):
        select(host="localhost", hostaddr="127.0.0.1", sslmode="verify-full", sslrootcert=str(strange), **where)
    with pytest.raises(_core.ConnectError, match="cannot read the certificate"):
        select(host="localhost", sslmode="verify-full", sslrootcert="/nonexistent", **where)


@pytest.mark.slow
def test_a_whole_run_over_tls(tls_server: tuple[Server, Path], tmp_path: Path) -> None:
    s, ca = tls_server
    s.sql("grant create on schema public to scram")
    info = f"host=localhost hostaddr=127.0.0.1 port={s.port} user=scram dbname=postgres sslmode=verify-full"
    info += f" sslrootcert={ca}"
    done = pgdyno("run", "quick", *SHORT, "--target", info, "--runs", tmp_path, env=environment(PGPASSWORD="geheim"))
    assert done.code == 0, done.err
    bad = info.replace("host=localhost", "host=elsewhere")
    done = pgdyno("run", "quick", *SHORT, "--target", bad, "--runs", tmp_path, env=environment(PGPASSWORD="geheim"))
    assert done.code == 3 and "verify-ca" in done.err, done.err


def test_verify_full_against_a_server_without_tls(server: Server, tmp_path: Path) -> None:
    env = environment(PGSSLMODE="verify-full", PGSSLROOTCERT="system")
    info = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    done = pgdyno("run", "quick", *SHORT, "--target", info, "--runs", tmp_path, env=env)
    assert done.code == 3 and "does not support SSL" in done.err and "ssl=on" in done.err, done.err


def test_a_cancel_request_takes_tls(tls_server: tuple[Server, Path]) -> None:
    """What is still under way at the end is cancelled, and the secret that it takes does not travel in the clear."""
    s, ca = tls_server
    # Between: whoever listens on the way to the server.
    with socket.create_server(("127.0.0.1", 0)) as between:
        heard: list[bytes] = []
        done = threading.Event()

        def relay() -> None:
            between.settimeout(0.1)
            while not done.is_set():
                try:
                    client, _ = between.accept()
                except TimeoutError:
                    continue
                server = socket.create_connection(("127.0.0.1", s.port))
                for a, b, keep in ((client, server, True), (server, client, False)):
                    threading.Thread(target=pump, args=(a, b, keep), daemon=True).start()

        def pump(a: socket.socket, b: socket.socket, keep: bool) -> None:
            first = True
            with suppress(OSError):
                while data := a.recv(65536):
                    if keep and first:
                        heard.append(data)
                        first = False
                    b.sendall(data)
            b.close()

        thread = threading.Thread(target=relay)
        thread.start()
        try:
            workload = _core.Workload()
            workload.add("sleep.sql", "SELECT pg_sleep(60) /* over tls */;")
            config = _core.ConnConfig(
                host="localhost", hostaddr="127.0.0.1", port=between.getsockname()[1], user="scram", dbname="postgres",
                password="geheim", sslmode="verify-full", sslrootcert=str(ca),
            )  # fmt: skip
            plan = Plan(clients=2, duration_s=0.5, drain_timeout_s=0.2)
            result = _core.run([config], workload, Quiet(), plan)
            asleep = "select count(*) from pg_stat_activity where query like '%over tls%' and pid <> pg_backend_pid()"
            wait_until(lambda: s.sql(asleep) == [(0,)], 10)
        finally:
            done.set()
            thread.join()
    assert result.phase("measure").committed == 0  # type: ignore[union-attr]
    assert s.sql(asleep) == [(0,)], "nothing goes on in the server"
    assert "canceling statement due to user request" in s.log()
    # Two sessions and two cancel requests, and each begins with SSLRequest.
    assert len(heard) == 4 and all(first.startswith(b"\0\0\0\x08\x04\xd2\x16\x2f") for first in heard)
