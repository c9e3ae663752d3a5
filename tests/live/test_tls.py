"""TLS and passwords, by the native client itself: libpq only finds the parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pgdyno import _core
from pgdyno.engine import Plan

from tests.support.cli import SHORT, environment, pgdyno
from tests.support.server import Server, make_certificate


class Quiet:
    def started(self, *_: Any) -> None: ...
    def interval(self, _: Any) -> None: ...
    def event(self, _: Any) -> None: ...


def select(**config: Any) -> _core.RunResult:
    workload = _core.Workload()
    workload.add("one.sql", "SELECT 1;")
    arguments = {"dbname": "postgres", "password": "geheim", **config}
    return _core.run([_core.ConnConfig(**arguments)], workload, Quiet(), Plan(clients=3, transactions=20))


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
