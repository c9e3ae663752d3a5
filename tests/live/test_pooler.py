"""Runs through PgBouncer: it is seen, and said; what does not work through it is refused before anything is done."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pgdyno.cluster import administration, pooler
from pgdyno.cluster import target as targets
from pgdyno.replication import build
from pgdyno.replication.cluster import ReplicatedCluster

from tests.support.cli import SHORT, pgdyno
from tests.support.folders import reachable
from tests.support.pgbouncer import PGBOUNCER, pgbouncer
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="needs pgbouncer")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that PgBouncer's account can reach."""
    with reachable() as path:
        yield path


@pytest.fixture(scope="module")
def trusting() -> Iterator[Server]:
    made = Server(hba="host all all 127.0.0.1/32 trust")
    made.start()
    yield made
    made.stop()
    made.remove()


def server_words(server: Server) -> str:
    return f"host=127.0.0.1 port={server.port}"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [pytest.param("session", pooler.Pooler(by_transaction=False, prepares=True), marks=pytest.mark.slow),
     ("transaction", pooler.Pooler(by_transaction=True, prepares=False))],
)  # fmt: skip
def test_a_pooler_is_seen(trusting: Server, folder: Path, mode: str, expected: pooler.Pooler) -> None:
    with pgbouncer(folder, server_words(trusting), mode) as port:
        info = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        assert pooler.find(targets.resolve(info)) == expected
        # With a single session there is nobody to take it from, or nobody gets one.
    with pgbouncer(folder, server_words(trusting), mode, pool=1) as port:
        found = pooler.find(targets.resolve(f"host=127.0.0.1 port={port} user=postgres dbname=postgres"))
        assert found is not None and found.by_transaction is (mode == "transaction")
    assert pooler.find(targets.resolve(f"{server_words(trusting)} user=postgres dbname=postgres")) is None


def test_settings_of_ours_stay_with_nobody(trusting: Server, folder: Path) -> None:
    with pgbouncer(folder, server_words(trusting), "transaction", pool=1) as port:
        target = targets.resolve(f"host=127.0.0.1 port={port} user=postgres dbname=postgres")
        with administration.connect(target, patience_s=7) as conn:
            assert conn.execute("select 1").fetchone() == (1,)
        with administration.connect(target) as conn:
            shown = conn.execute("select current_setting('statement_timeout'), current_setting('lock_timeout')")
            assert shown.fetchone() == ("0", "0")


@pytest.fixture(scope="module")
def pooled() -> Iterator[Path]:
    """A primary, a standby, and PgBouncer before them."""
    with reachable() as base:
        folder = base / "c"
        small = ("--set", "shared_buffers=32MB", "--set", "min_wal_size=80MB")
        done = pgdyno("cluster", "create", folder, "--standbys", 2, "--sync", "ANY 1 (*)", "--pooler", *small)
        assert done.code == 0, done.err
        assert "pooler: PgBouncer 1." in done.out
        yield folder
        build.destroy(ReplicatedCluster(folder))
        assert not folder.exists()


@pytest.mark.slow
def test_clients_of_the_pooler_see_a_pause_and_no_error_in_a_switchover(pooled: Path) -> None:
    cluster = ReplicatedCluster(pooled)
    target = cluster.pooled_target
    assert target is not None and cluster.pooler is not None
    with psycopg.connect(target.conninfo, autocommit=True) as conn:
        conn.execute("create table if not exists t (a int)")
    over, done, errors = threading.Event(), [0], []

    def write() -> None:
        with psycopg.connect(target.conninfo, autocommit=True, prepare_threshold=None) as conn:
            while not over.is_set():
                try:
                    conn.execute("insert into t values (1)")
                    done[0] += 1
                except psycopg.Error as e:
                    errors.append(str(e))
                    return

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: done[0] > 0)
    before = done[0]
    switched = pgdyno("cluster", "switchover", pooled, "--to", "node2")
    after = done[0]
    wait_until(lambda: done[0] > after or errors)
    over.set()
    writer.join()
    assert switched.code == 0 and not errors and done[0] > before > 0
    cluster = ReplicatedCluster(pooled)
    assert cluster.record.primary == "node2"
    with administration.connect(cluster.primary.local) as conn:
        assert conn.execute("select count(*) from public.t").fetchone() == (done[0],)
    # Nobody else knows the password, and the configuration is its account's alone.
    with pytest.raises(psycopg.Error, match=r"password|auth"):
        psycopg.connect(target.conninfo.replace(str(target.password), "wrong"))
    assert (pooled / "pooler" / "users.txt").stat().st_mode & 0o077 == 0
    assert pgdyno("cluster", "stop", pooled).code == 0 and cluster.pooler is not None
    assert cluster.pooler.process_id is None
    assert pgdyno("cluster", "start", pooled).code == 0
    assert "pooler: PgBouncer" in pgdyno("cluster", "status", pooled).out


@pytest.mark.slow
def test_a_failover_behind_the_pooler_loses_nothing(pooled: Path, tmp_path: Path) -> None:
    done = pgdyno(
        "drill",
        pooled,
        "--fault",
        "kill-primary",
        "--rounds",
        2,
        "--through-pooler",
        "--json",
        "-q",
        "--runs",
        tmp_path,
    )
    assert done.code == 0, done.out + done.err
    (v,) = done.json["verdicts"]
    assert v["acknowledged"] > 100 and v["lost"] == 0 and v["not_back"] == 0 and v["errors"] == []


@pytest.mark.slow
def test_a_run_through_a_pooler(trusting: Server, folder: Path, tmp_path: Path) -> None:
    direct = f"{server_words(trusting)} user=postgres dbname=postgres"
    with pgbouncer(folder, server_words(trusting), "transaction") as port:
        info = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        run = ("run", "quick", *SHORT, "--runs", tmp_path)
        refused = pgdyno(*run, "--target", info)
        assert refused.code == 3 and tells(refused.err, "error-protocol-prepared-does-not-work")
        assert "max_prepared_statements" in refused.err
        refused = pgdyno(*run, "--target", info, "--protocol", "extended")
        assert refused.code == 3 and tells(refused.err, "error-loading-needs-sessions-own")
        loaded = pgdyno("load", "tpcb", "--scale", 1, "--target", direct, "--force")
        assert loaded.code == 0, loaded.err
        done = pgdyno(*run, "--target", info, "--protocol", "extended", "--json", "--force")
        assert done.code == 0, done.err
        assert "a pooler, by transaction, without prepared statements" in done.err
        (path,) = tmp_path.iterdir()
        manifest = json.loads((path / "manifest.json").read_text())
        assert "by transaction" in manifest["server"]["pooler"]
        assert tells((path / "report.md").read_text(), "caveat-pooled")
        trials = [json.loads(p.read_text()) for p in path.glob("trials/*/trial.json")]
        assert all(t["state"] == "finished" and "POOLED" in t["caveats"] and not t["summary"]["failed"] for t in trials)
    # By session everything works, loading too.
    with pgbouncer(folder, server_words(trusting), "session", pool=30) as port:
        info = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        done = pgdyno(
            "run", "quick", *SHORT, "--scale", 2, "--replace", "--target", info, "--force", "--runs", tmp_path
        )
        assert done.code == 0 and "a pooler, by session" in done.err, done.err
