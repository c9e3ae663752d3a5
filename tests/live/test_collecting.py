"""What is collected of a real server beside a trial: statements, buffers, long commands, slots, pg_wait_sampling."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest
from pgdyno.collect import buffers, extensions, totals
from pgdyno.collect.sources.locks import Locks
from pgdyno.collect.sources.machine import SoftInterrupts
from pgdyno.collect.sources.progress import Progress
from pgdyno.collect.sources.sessions import CommandIo, Slots
from pgdyno.collect.sources.sizes import Sizes
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import nested as nested_of
from pgdyno.message import Message, Name, message
from pgdyno.store import reading, samples

from tests.support.cli import SHORT, pgdyno
from tests.support.columns import undeclared
from tests.support.server import DEBIAN_15, Server
from tests.support.tells import tells
from tests.support.waiting import wait_until

pytestmark = pytest.mark.alone

_EXPERIMENT = """
name = "named"
title = "Named"
[dataset]
kind = "tpcb"
scale = 1
[workloads.w]
[[workloads.w.scripts]]
text = '''
\\set aid random(1, 100000)
-- name: read a balance
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + 5 WHERE tid = 3;
'''
[axes]
clients = [2]
[run]
collect = ["server", "plans", "statements", "buffers"]
duration_s = 2
warmup_s = 1
repetitions = 1
"""


@pytest.mark.parametrize("protocol", [pytest.param("simple", marks=pytest.mark.slow), "prepared"])
def test_statements_are_counted_by_the_names_of_the_script(tmp_path: Path, protocol: str) -> None:
    file = tmp_path / "named.toml"
    file.write_text(_EXPERIMENT)
    done = pgdyno("run", file, "--embedded", "--protocol", protocol, "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    trial = next(Path(done.json["path"]).glob("trials/*"))
    assert undeclared(trial) == []
    rows = pq.read_table(trial / "samples" / "statements.parquet").to_pylist()
    by_line = {r["line"]: r for r in rows if r["script"]}
    assert len(by_line) == 2, rows
    # Counted is in the warm-up alone; a transaction of each client may be under way at its end.
    series = reading.read(Path(done.json["path"])).series[1]
    warm = sum(r.committed for r in series if r.phase == "warmup")
    assert all(0 < r["calls"] <= warm + 2 for r in by_line.values())
    assert not any(text in r["statement"] for r in rows for text in ("create extension", "pgdyno_plan"))
    update = max(by_line.values(), key=lambda r: r["wal_bytes"])
    assert update["statement"].startswith("UPDATE pgbench_tellers") and update["wal_bytes"] > 0
    report = (Path(done.json["path"]) / "report.md").read_text()
    assert tells(report, "table-server-statements") and "read a balance" in report
    # What shared buffers hold: nothing of it stays in the database.
    held = pq.read_table(trial / "samples" / "buffers.parquet").to_pylist()
    assert any(r["relation"] == "pgbench_accounts" and r["buffers"] > 0 for r in held)
    events = [json.loads(line) for line in (trial / "events.jsonl").read_text().splitlines()]
    assert not {"configuration reloaded", "temporary file"} & {e["kind"] for e in events}
    # A busy machine may be late with a sample, and then it says so.
    missing = [e for e in events if e["kind"] == "not_recorded" and "late" not in e["text"]]
    assert not missing, missing


def test_extensions_are_made_for_the_moment_of_asking(server: Server, database: str) -> None:
    with psycopg.connect(server.conninfo(dbname=database), autocommit=True) as conn:
        before = conn.execute("select count(*) from pg_class").fetchone()
        with extensions.at_hand(conn, "pg_buffercache", make=True) as schema:
            assert schema and conn.execute(f"select count(*) > 0 from {schema}.pg_buffercache".encode()).fetchone()
        assert conn.execute("select count(*) from pg_class").fetchone() == before
        assert not conn.execute("select from pg_extension where extname = 'pg_buffercache'").fetchall()
        # Of somebody else's server nothing is made, and what must be loaded and is not cannot be asked.
        assert buffers.read(conn, is_ours=False) == []
        with extensions.at_hand(conn, "pg_stat_statements", make=True) as schema:
            assert schema == ""
        conn.execute('create schema "Odd one"; create extension pg_buffercache schema "Odd one"')
        assert buffers.read(conn, is_ours=False)


def test_long_commands_and_slots_are_seen(server: Server, database: str) -> None:
    here = server.conninfo(dbname=database)
    server.sql("create table long (a int) with (autovacuum_enabled = off)", dbname=database)
    server.sql("insert into long select generate_series(1, 100000)", dbname=database)
    server.sql("delete from long", dbname=database)
    ended = threading.Event()

    def vacuum() -> None:
        with psycopg.connect(here, autocommit=True) as conn:
            conn.execute("set vacuum_cost_delay = 5; set vacuum_cost_limit = 50")
            conn.execute("vacuum long")
        ended.set()

    slot = f"{database}_slot"
    with closing(psycopg.connect(here, autocommit=True)) as conn:
        conn.execute("select pg_create_physical_replication_slot(%s, true)", [slot])
        try:
            (row,) = [r for r in Slots(conn).rows(1.0) if r["slot"] == slot]
            assert row["kind"] == "physical" and row["active"] == 0 and float(row["kept_bytes"]) >= 0
            progress = Progress(conn)
            assert not [r for r in progress.rows(1.0) if r["relation"] == "long"]
            threading.Thread(target=vacuum, daemon=True).start()
            seen: list[samples.Row] = []

            def is_seen() -> bool:
                seen.extend(r for r in progress.rows(0.05) if r["relation"] == "long")
                return bool(seen) or ended.is_set()

            wait_until(is_seen, every_s=0.01)
            assert seen and seen[0]["command"] == "vacuum" and seen[0]["unit"] == "blocks" and not seen[0]["auto"]
            assert ended.wait(30)
        finally:
            conn.execute("select pg_drop_replication_slot(%s)", [slot])


#: A backend tells its statistics about once a second otherwise.
_TOLD = "select pg_stat_force_next_flush()"


def test_the_bytes_of_a_session_belong_to_the_command_that_ended(server: Server, database: str) -> None:
    here = server.conninfo(dbname=database)
    with (
        closing(psycopg.connect(here, autocommit=True, application_name="pgdyno admin")) as own,
        closing(psycopg.connect(here, autocommit=True, application_name="batch")) as batch,
    ):
        source = CommandIo(own, "pgdyno", lambda: True)
        batch.execute("create table filled (a int)")
        assert source.rows(1.0) == []
        batch.execute(f"insert into filled select generate_series(1, 200000); {_TOLD}")
        (row,) = source.rows(60.0)
        assert row["application"] == "batch" and str(row["command"]).startswith(
            "insert into filled select generate_series(…, …)"
        )
        assert 11e6 < float(row["wal_bytes"]) < 30e6 and float(row["write_bytes"]) > 6e6
        # One that has connected since the last look is counted from its begin; nothing is counted twice.
        with closing(psycopg.connect(here, autocommit=True, application_name="other")) as other:
            other.execute(f"insert into filled select generate_series(1, 100000); {_TOLD}")
            (row,) = source.rows(60.0)
            assert row["application"] == "other" and 5.5e6 < float(row["wal_bytes"]) < 15e6
        assert source.rows(60.0) == []


def test_locks_are_counted_by_kind_and_mode(server: Server, database: str) -> None:
    here = server.conninfo(dbname=database)
    server.sql("create table held (a int primary key)", dbname=database)
    with (
        closing(psycopg.connect(here, autocommit=True)) as conn,
        closing(psycopg.connect(here)) as holder,
        closing(psycopg.connect(here)) as waiter,
    ):
        holder.execute("lock table held in share mode")
        waiting = threading.Thread(target=lambda: waiter.execute("insert into held values (1)"), daemon=True)
        waiting.start()
        locks = Locks(conn)
        wait_until(lambda: any(r["waiting"] for r in locks.rows(1.0)))
        (row,) = (r for r in locks.rows(1.0) if r["waiting"])
        assert (row["kind"], row["mode"], row["relation"]) == ("relation", "RowExclusiveLock", "held")
        by_mode = {r["mode"]: r for r in locks.rows(1.0) if r["relation"] == "held"}
        assert by_mode["ShareLock"]["granted"] == 1 and row["granted"] == 0
        holder.rollback()
        waiting.join(20)
        assert not [r for r in locks.rows(1.0) if r["waiting"]]


def test_sizes_of_the_database_and_of_its_wal(server: Server, database: str) -> None:
    with closing(psycopg.connect(server.conninfo(dbname=database), autocommit=True)) as conn:
        sizes = Sizes(conn)
        (before,) = sizes.rows(1.0)
        conn.execute("create table large as select repeat('x', 2000) from generate_series(1, 5000)")
        (after,) = sizes.rows(1.0)
        assert float(after["database_bytes"]) - float(before["database_bytes"]) > 10e6
        assert float(after["wal_bytes"]) >= float(after["wal_files"]) * 1e6 > 0
        # Whoever may not know of the WAL learns of the database.
        conn.execute("create role nobody_in_particular")
        try:
            conn.execute("set role nobody_in_particular")
            (seen,) = Sizes(conn).rows(1.0)
            assert set(seen) == {"database_bytes"}
            conn.execute("reset role")
        finally:
            conn.execute("reset role")
            conn.execute("drop role nobody_in_particular")


def test_soft_interrupts_are_counted_by_kind() -> None:
    if not SoftInterrupts.is_there():
        pytest.skip("this machine does not count them")
    source = SoftInterrupts()
    assert source.rows(1.0) == [], "the first look only begins"
    rows: list[samples.Row] = []
    wait_until(lambda: rows or rows.extend(source.rows(0.1)), every_s=0.1)
    assert all(0 < float(r["busiest_core_per_s"]) <= float(r["per_s"]) and r["kind"] for r in rows) and rows


def test_what_pg_wait_sampling_counts_is_read() -> None:
    if not (DEBIAN_15.parent / "lib" / "pg_wait_sampling.so").exists():
        pytest.skip("needs Debian's postgresql-15-pg-wait-sampling")
    conf = "shared_preload_libraries = 'pg_wait_sampling, pg_stat_statements'\npg_wait_sampling.profile_period = 10\n"
    with (
        Server(bin_folder=DEBIAN_15, conf=conf) as server,
        psycopg.connect(server.conninfo(), autocommit=True) as conn,
    ):
        conn.execute("create extension pg_wait_sampling; create extension pg_stat_statements")
        before = totals.read(conn)
        conn.execute("select pg_sleep(0.5)")
        profile = "select coalesce(sum(count), 0) >= 20 from pg_wait_sampling_profile where event = 'PgSleep'"
        wait_until(lambda: conn.execute(profile).fetchone() == (True,))
        after = totals.read(conn)
        assert before.missing == [] and after.missing == []
        rows = totals.between(before, after, conn.info.server_version)
        slept = [r for r in rows["wait_profile"] if r["wait"] == "PgSleep"]
        assert slept and 200 <= float(slept[0]["ms"]) <= 1500, json.dumps(rows["wait_profile"])
        # PostgreSQL 15 counts what JIT takes; this took none.
        (statement,) = [r for r in rows["statements"] if "pg_sleep" in str(r["statement"])]
        assert statement["calls"] == 1 and statement["jit_ms"] == 0


@pytest.mark.slow
def test_devices_are_read_while_a_private_server_is_loaded(tmp_path: Path) -> None:
    done = pgdyno("run", "quick", "--embedded", *SHORT, "--scale", "20", "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    (place,) = done.json["manifest"]["places"].values()
    phases = [row["phase"] for row in place["dataset"]["devices"]]
    if not phases:
        pytest.skip("no block device is seen under the temporary folder")
    # Others are over before anybody has looked twice.
    assert "generate" in phases and all(row["seconds"] > 0 for row in place["dataset"]["devices"])


@pytest.mark.slow
def test_a_crash_and_a_reload_are_told_with_their_times(tmp_path: Path) -> None:
    """Collecting goes on when the server is back; the log is read whatever its form, and where it goes on."""
    conf = (
        "logging_collector=on\nlog_filename='server-%s.log'\nlog_timezone='Asia/Shanghai'\n"
        "log_line_prefix='%t [%p] %q%u@%d/%a '\nrestart_after_crash=on\n"
    )
    with Server(conf=conf) as server:
        server.sql("create database loaded")
        happened: dict[str, float] = {}
        clients = "select pid from pg_stat_activity where application_name = 'pgdyno' and query like 'SELECT abalance%'"

        def disturb() -> None:
            wait_until(lambda: len(server.sql(clients)) == 2)
            time.sleep(1.5)
            server.sql("alter system set work_mem = '8MB'")
            happened["reload"] = time.time()
            server.sql("select pg_reload_conf(), pg_rotate_logfile()")
            time.sleep(1.5)
            happened["crash"] = time.time()
            os.kill(server.sql(clients)[0][0], signal.SIGKILL)

        thread = threading.Thread(target=disturb, daemon=True)
        thread.start()
        file = tmp_path / "named.toml"
        text = _EXPERIMENT.replace("duration_s = 2", "duration_s = 7").replace("\ncollect", "\n# collect")
        file.write_text("\n".join(line for line in text.splitlines() if not line.startswith("UPDATE")))
        done = pgdyno("run", file, "--target", server.conninfo(dbname="loaded"), "--runs", tmp_path, "--json")
        thread.join(20)
        assert done.out, done.err
    data = reading.read(Path(done.json["path"]))
    number = data.trials[0].plan.number
    start = data.trials[0].start_ns / 1e9
    at = {e.kind: start + e.at_ns / 1e9 for e in data.events[number] if e.at_ns}
    assert abs(at["setting changed"] - happened["reload"]) < 1.5, (at, happened)
    assert abs(at["server process died"] - happened["crash"]) < 2
    assert happened["crash"] - 0.5 < at["connection lost"] < at["connection made again"] < happened["crash"] + 5
    missing = [e.text for e in data.events[number] if e.kind == "not_recorded"]
    assert message("gap-reset") in missing and not [m for m in missing if isinstance(m, Message) and "log" in m.id]
    for source in ("waits", "counters", "processes"):
        again = [r for r in data.samples[number, source] if start + r["start_ns"] / 1e9 > at["connection made again"]]
        assert len(again) >= 3, source


_TRIGGER = r"""
name = "trigger"
title = "A trigger that takes its time"
[dataset]
kind = "sql"
setup = ["create table t (id int primary key, v int)", "insert into t select i, 0 from generate_series(1, 100) i",
  "create function nap() returns trigger language plpgsql as 'begin perform pg_sleep(0.005); return new; end'",
  "create trigger nap before update on t for each row execute function nap()"]
[workloads.w]
[[workloads.w.scripts]]
text = '''
\set id random(1, 20) + 20 * :client_id
UPDATE t SET v = v + 1 WHERE id = :id;
'''
[axes]
clients = [2]
[run]
duration_s = 2
warmup_s = 1.5
repetitions = 1
"""


def _run(folder: Path, experiment: str) -> Path:
    file = folder / "experiment.toml"
    file.write_text(experiment)
    done = pgdyno("run", file, "--runs", folder / "runs", "--quiet")
    assert done.code in (0, 1), done.err
    (run,) = (folder / "runs").iterdir()
    return run


_REFERENCES = r"""
name = "references"
title = "Rows that refer to others"
[dataset]
kind = "sql"
setup = ["create table parent (id int primary key)", "insert into parent select generate_series(1, 1000)",
  "create table child (a int references parent, b int references parent, c int references parent)"]
[workloads.w]
[[workloads.w.scripts]]
text = '''
INSERT INTO child SELECT i, i, i FROM generate_series(1, 50) i;
'''
[axes]
clients = [1]
[run]
duration_s = 2
warmup_s = 1.5
repetitions = 1
"""


@pytest.mark.slow
def test_time_of_foreign_key_checks_is_counted_and_named(tmp_path: Path) -> None:
    run = _run(tmp_path, _REFERENCES)
    data = reading.read(run)
    nested = data.samples[1, "nested_statements"]
    statements = [r for r in data.samples[1, "statements"] if r["line"]]
    checks = [r for r in nested if "FOR KEY SHARE" in r["statement"]]
    # Three for each row; and they are no statements of their own.
    assert sum(r["calls"] for r in checks) == 150 * statements[0]["calls"]
    assert not [r for r in data.samples[1, "statements"] if "FOR KEY SHARE" in r["statement"]]
    said = nested_of(Observed(data, data.trials))
    assert said is not None and said.id == "nested-foreign-key" and said.args["name"] == Name("public.parent")


@pytest.mark.slow
def test_time_within_a_trigger_is_counted_and_named(tmp_path: Path) -> None:
    run = _run(tmp_path, _TRIGGER)
    data = reading.read(run)
    (row,) = data.samples[1, "functions"]
    assert row["function"] == "public.nap()" and row["calls"] > 20 and row["ms"] / row["calls"] > 5
    found = json.loads((run / "findings.json").read_text())
    assert "function public.nap() takes" in next(f["sentence"] for f in found if f["cause"] == "other-waits")
    # What is counted in the warm-up is not counted any more while it is measured.
    with (run / "server.log").open() as log:
        assert 'parameter "track_functions" removed' in log.read()
