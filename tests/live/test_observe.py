"""A running server is observed at its own work: one session that only reads, and figures that are the load's."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from pgdyno.cluster import administration
from pgdyno.collect import catalog
from pgdyno.replication import build
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.store import reading

from tests.support import observed
from tests.support.causes import EVERY, OBSERVED, Others
from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.folders import reachable
from tests.support.pgbouncer import PGBOUNCER, pgbouncer
from tests.support.schemas import target_of
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.versions import folder_of
from tests.support.waiting import wait_until

#: About a millisecond, so that it is seen at work.
_UPDATE = (
    "\\set id random(1, 1000)\n"
    "UPDATE t SET v = v + (SELECT count(*) FROM generate_series(1, 8000)) % 2 WHERE id = :id;\n"
)


@contextmanager
def _working(server: Server, folder: Path, seconds: float, *options: str) -> Iterator[None]:
    """Run pgbench on a table of the server meanwhile."""
    if why := observed.why_not():
        pytest.skip(why)
    server.sql("drop table if exists t")
    server.sql("create table t (id int primary key, v int)")
    server.sql("insert into t select i, 0 from generate_series(1, 1000) i")
    script = folder / "script.sql"
    script.write_text(_UPDATE)
    process = observed.load(server, script, 2, seconds, *options)
    try:
        wait_until(lambda: observed.is_loaded(server), process=process)
        yield
    finally:
        process.kill()
        process.communicate()
        server.sql("drop table t")


@pytest.fixture
def trusting() -> Iterator[Server]:
    with Server(hba="host all all 127.0.0.1/32 trust\n") as s:
        yield s


def test_commits_are_those_of_the_load_and_nothing_is_changed(trusting: Server, tmp_path: Path) -> None:
    sessions: list[int] = []
    stop = threading.Event()

    def watch() -> None:
        with psycopg.connect(trusting.conninfo(), autocommit=True) as conn:
            while not stop.wait(0.1):
                row = conn.execute(
                    "select count(*) from pg_stat_activity where application_name like 'pgdyno%'"
                ).fetchone()
                assert row is not None
                sessions.append(row[0])

    # Longer than the observation, however long that takes to begin.
    with _working(trusting, tmp_path, 60, "-R", "150"):
        watcher = threading.Thread(target=watch)
        watcher.start()
        with administration.connect(target_of(trusting, "postgres")) as conn:
            before = catalog.read(conn)
        done = pgdyno("observe", "--target", trusting.conninfo(), "--for", "12", "--runs", tmp_path / "runs", "--json")
        stop.set()
        watcher.join()
        with administration.connect(target_of(trusting, "postgres")) as conn:
            assert catalog.changes(before, catalog.read(conn)) == []
    assert done.code == 0, done.err
    # The watcher commits ten times a second, too. Sessions add their commits to the server's counters once a second,
    # and all of these at the same moment: the first and the last look may miss a second of commits, or none. That is 8%
    # of twelve seconds.
    assert done.json["tps"] == pytest.approx(160, rel=0.15)
    assert done.json["sessions"] >= 2 and 0 < done.json["busy_sessions"] < 2
    assert max(sessions) == 1
    assert any(s["statement"].startswith("UPDATE t SET") for s in done.json["statements"])
    data = reading.read(Path(done.json["path"]))
    assert data.manifest.observed and data.trials[0].state == "finished"
    # The page of a record can be written again, and explain reads it as any run.
    shown = pgdyno("report", done.json["path"])
    assert shown.code == 0 and tells(" ".join(shown.out.split()), "observed-busy")
    assert pgdyno("explain", done.json["path"]).code == 0


def test_the_session_cannot_write(trusting: Server) -> None:
    with administration.connect(target_of(trusting, "postgres"), read_only=True) as conn:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            conn.execute("create table forbidden ()")
        row = conn.execute("select current_setting('search_path'), current_setting('statement_timeout')").fetchone()
        assert row is not None and row[0] == "pg_catalog" and row[1] != "0"


@pytest.mark.slow
def test_a_lesser_role_gets_named_gaps(trusting: Server, tmp_path: Path) -> None:
    trusting.sql("create role watcher login")
    with _working(trusting, tmp_path, 15):
        conninfo = trusting.conninfo(host="127.0.0.1", user="watcher")
        done = pgdyno("observe", "--target", conninfo, "--for", "5", "--runs", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    assert any("pg_monitor" in gap for gap in done.json["gaps"])
    # What is not seen is not idle.
    assert done.json["tps"] > 10 and tells(done.json["answer"][0], "observed-unseen")


@pytest.mark.slow
def test_an_idle_database_is_said_to_be_idle(trusting: Server, tmp_path: Path) -> None:
    done = pgdyno("observe", "--target", trusting.conninfo(), "--for", "5", "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    assert "idle" in done.json["answer"][0] and done.json["findings"] == []
    assert done.json["seconds"] > 2


@pytest.mark.slow
@pytest.mark.skipif(PGBOUNCER is None, reason="needs pgbouncer")
def test_it_goes_through_a_pooler(trusting: Server, tmp_path: Path) -> None:
    with (
        reachable() as folder,
        pgbouncer(folder, f"host=127.0.0.1 port={trusting.port}", "transaction") as port,
        _working(trusting, tmp_path, 15),
    ):
        conninfo = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        done = pgdyno("observe", "--target", conninfo, "--for", "5", "--runs", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    assert done.json["busy_sessions"] > 0 and done.json["statements"]


@pytest.mark.slow
@pytest.mark.skipif(PGBOUNCER is None, reason="needs pgbouncer")
def test_functions_of_the_database_owner_are_not_called_through_a_pooler(trusting: Server, tmp_path: Path) -> None:
    """A search path that puts the owner's schema first would run the owner's functions with the observer's rights."""
    trusting.sql("create schema evil; create table evil.called (by text)")
    trusting.sql(
        "create function evil.pg_stat_get_activity(int) returns setof record language plpgsql as $$ begin "
        "insert into evil.called values ('observer'); return; end $$"
    )
    trusting.sql("alter database postgres set search_path = evil, pg_catalog")
    with reachable() as folder, pgbouncer(folder, f"host=127.0.0.1 port={trusting.port}", "transaction") as port:
        conninfo = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        done = pgdyno("observe", "--target", conninfo, "--for", "5", "--runs", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    assert trusting.sql("select * from evil.called") == []


@pytest.mark.slow
@pytest.mark.parametrize("major", [14, 15, 16, 17])
def test_it_observes_older_versions(major: int, tmp_path: Path) -> None:
    folder = folder_of(major)
    with Server(bin_folder=folder, hba="host all all 127.0.0.1/32 trust\n") as s, _working(s, tmp_path, 15):
        done = pgdyno("observe", "--target", s.conninfo(), "--for", "5", "--runs", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    assert done.json["busy_sessions"] > 0 and done.json["statements"] and done.json["tps"] > 10


@pytest.mark.slow
def test_it_observes_a_standby() -> None:
    with reachable() as base:
        small = ("--set", "shared_buffers=32MB", "--set", "min_wal_size=80MB")
        done = pgdyno("cluster", "create", base / "c", "--standbys", 1, *small)
        assert done.code == 0, done.err
        try:
            cluster = ReplicatedCluster(base / "c")
            (standby,) = cluster.others(cluster.primary)
            conninfo = cluster.target_of(standby).conninfo
            stop, counted = threading.Event(), [0]

            def read() -> None:
                with psycopg.connect(conninfo, autocommit=True, application_name="reader") as conn:
                    while not stop.is_set():
                        # Of a table: PostgreSQL hears of commits that touch none when the session ends.
                        conn.execute("select count(*) from pg_class, generate_series(1, 50)")
                        counted[0] += 1

            reader = threading.Thread(target=read)
            reader.start()
            began = time.monotonic()
            env = environment(PGPASSWORD=str(cluster.target_of(standby).password))
            user = cluster.target_of(standby).user
            target = f"host={standby.address} port={standby.port} user={user} dbname=postgres"
            argv = ("observe", "--target", target, "--for", "6", "--runs", base / "runs", "--json")
            done = pgdyno(*argv, env=env)
            rate = counted[0] / (time.monotonic() - began)
            stop.set()
            reader.join()
        finally:
            build.destroy(ReplicatedCluster(base / "c"))
    assert done.code == 0, done.err
    # The reader was alone before and after the observation, and faster.
    assert 0.5 * rate < done.json["tps"] < 1.5 * rate and done.json["busy_sessions"] > 0.2
    assert "generate_series" in done.json["statements"][0]["statement"]


def _intervals(runs: Path) -> int:
    """Return how many intervals the observation under way has recorded."""
    return sum(len(p.read_text().splitlines()) for p in runs.glob("*/trials/*/intervals.jsonl"))


@pytest.mark.slow
def test_an_observation_that_is_stopped_is_kept(trusting: Server, tmp_path: Path) -> None:
    with _working(trusting, tmp_path, 25):
        runs = str(tmp_path / "runs")
        argv = [str(PGDYNO), "observe", "--target", trusting.conninfo(), "--for", "60", "--runs", runs]
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )  # fmt: skip
        wait_until(lambda: _intervals(tmp_path / "runs") >= 3, process=process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert tells(" ".join(out.split()), "observed-busy") and "Traceback" not in err
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "report.html").exists()


@pytest.mark.slow
def test_it_observes_again_and_again(trusting: Server, tmp_path: Path) -> None:
    with _working(trusting, tmp_path, 30):
        argv = ("observe", "--target", trusting.conninfo(), "--for", "5", "--every", "6", "--times", "2")
        done = pgdyno(*argv, "--runs", tmp_path / "runs")
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == 2
    assert len(list((tmp_path / "runs").iterdir())) == 2
    followed = pgdyno("history", tmp_path / "runs")
    assert followed.code == 0, followed.err


@pytest.mark.slow
def test_nothing_is_observed_for_nobody(trusting: Server, tmp_path: Path) -> None:
    """`pgdyno observe --every ... | head` ends when the output is closed, with its first record whole."""
    reader, writer = os.pipe()
    os.close(reader)
    with _working(trusting, tmp_path, 60):
        argv = ["observe", "--target", trusting.conninfo(), "--for", "5", "--every", "6"]
        done = subprocess.run(
            [str(PGDYNO), *argv, "--runs", str(tmp_path / "runs")], stdout=writer, stderr=subprocess.PIPE, text=True,
            env=environment(), timeout=60, check=False,
        )  # fmt: skip
    os.close(writer)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "report.html").exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("options", "words"),
    [(("--for", "1"), "5 s or more"), (("--for", "60", "--every", "10"), "--every is shorter"),
     (("--for", "soon"), "soon")],
)  # fmt: skip
def test_mistakes_are_said(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    done = pgdyno("observe", "--target", "host=/nowhere", "--runs", tmp_path / "runs", *options)
    assert done.code == 2 and words in " ".join(done.err.split())
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(
    "name", ["slow commits", "hot row", "locked table", "small work_mem", "heavy queries", "slow application"]
)
def test_the_cause_comes_first_under_a_foreign_load(name: str, tmp_path: Path) -> None:
    (made,) = [i for i in (*EVERY, *OBSERVED) if i.name == name]
    if why := made.why_not() or observed.why_not():
        pytest.skip(why)
    machine = Others()
    found = observed.observed(made, tmp_path, 10.0)
    causes = [f["cause"] for f in found["findings"]]
    if causes[:1] == ["noisy-neighbour"] and machine.is_stolen:
        pytest.skip("the hypervisor gave the CPUs to others: the right answer is another one")
    assert causes[:1] == [made.cause], found
    assert made.says in found["findings"][0]["sentence"]
