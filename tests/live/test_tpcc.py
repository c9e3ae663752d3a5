"""TPC-C on real servers: what is loaded, what transactions do, and that broken tables are found."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgdyno import _core, engine
from pgdyno.cluster import target as targets
from pgdyno.tpcc.conditions import CONSISTENCY, POPULATION, checked

from tests.live.test_load import check, direct, stopped
from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.versions import folder_of

TABLES = ("item", "warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "stock")
CONTENT = "select count(*), sum(hashtextextended(t::text, 0)) from tpcc_{} t"


def content(conninfo: str) -> dict[str, Any]:
    with psycopg.connect(conninfo) as conn:
        return {t: conn.execute(CONTENT.format(t).encode()).fetchone() for t in TABLES}


def by_index(conninfo: str) -> list[Any]:
    """Customers by name and orders by customer, as the secondary indexes give them."""
    with psycopg.connect(conninfo) as conn:
        conn.execute("set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off")
        found = []
        for sql, index in (
            ("select c_id from tpcc_customer where (c_w_id, c_d_id) = (2, 3) and c_last >= 'B' "
             "order by c_last collate \"default\", c_first limit 500", "tpcc_customer_by_name"),
            ("select o_id from tpcc_orders where (o_w_id, o_d_id, o_c_id) = (2, 3, 7)", "tpcc_orders_by_customer"),
        ):  # fmt: skip
            plan = conn.execute(f"explain {sql}".encode()).fetchall()
            assert any(index in line for (line,) in plan), plan
            found.append(conn.execute(sql.encode()).fetchall())
        return found


@pytest.fixture(scope="module")
def loaded(server: Server) -> Iterator[str]:
    """Two warehouses, by COPY."""
    server.sql("create database tpcc_module")
    conninfo = server.conninfo(dbname="tpcc_module")
    done = pgdyno("load", "tpcc", "--warehouses", 2, "--target", conninfo)
    assert done.code == 0, done.err
    yield conninfo
    server.sql("drop database tpcc_module with (force)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "locale"),
    # Where texts are not compared as bytes, the index on names is the server's.
    [(18, "C"), pytest.param(15, "C", marks=pytest.mark.slow), pytest.param(18, "C.UTF-8", marks=pytest.mark.slow)],
)
def test_files_written_directly_hold_what_copy_loads(loaded: str, version: int, locale: str) -> None:
    s = stopped(bin_folder=folder_of(version), initdb=(f"--locale={locale}",))
    try:
        done = direct(s, "tpcc", "--warehouses", 2)
        assert done.code == 0 and re.search(r"^checked in [\d.]+ s", done.out, re.MULTILINE), done.err
        with s:
            assert content(s.conninfo()) == content(loaded)
            check(s)
            assert by_index(s.conninfo()) == by_index(loaded)
    finally:
        s.remove()


@pytest.mark.slow
def test_seeds_sets_and_foreign_keys(server: Server, database: str, loaded: str) -> None:
    target = server.conninfo(dbname=database)
    one = pgdyno("load", "tpcc", "--warehouses", 1, "--seed", 2, "--target", target)
    assert one.code == 0, one.err
    first = content(target)
    assert first["item"] != content(loaded)["item"] and first["item"][0] == 100_000
    refused = pgdyno("load", "tpcc", "--warehouses", 1, "--sets", 2, "--foreign-keys", "--target", target)
    assert refused.code == 3 and "--replace" in refused.err
    more = pgdyno("load", "tpcc", "--warehouses", 1, "--sets", 2, "--foreign-keys", "--replace", "--target", target)
    assert more.code == 0, more.err
    with psycopg.connect(target) as conn:
        names = {
            r[0] for r in conn.execute("select relname from pg_class where relname like 'tpcc%' and relkind = 'r'")
        }
        assert names == {f"tpcc_{t}{n}" for t in TABLES for n in (1, 2)}
        row = conn.execute("select count(*) from pg_constraint where contype = 'f'").fetchone()
        assert row == (20,)
        # Those that keep deletes and checks of parents from reading whole tables, as sysbench-tpcc has them.
        indexes = {r[0] for r in conn.execute("select indexname from pg_indexes where indexname like '%by_parent%'")}
        assert len(indexes) == 8, indexes
        # The functions of the dataset that was replaced are gone with it.
        functions = [r[0] for r in conn.execute("select proname from pg_proc where proname like 'tpcc%'")]
        assert len(functions) == 10 and all("1_" in f or "2_" in f for f in functions)


@pytest.mark.slow
def test_partitions_hold_the_same(server: Server, database: str, loaded: str) -> None:
    target = server.conninfo(dbname=database)
    words = ("--warehouses", 2, "--partitions", 2, "--foreign-keys")
    done = pgdyno("load", "tpcc", *words, "--target", target)
    assert done.code == 0, done.err
    assert content(target) == content(loaded)
    row = server.sql(
        "select count(*) from pg_inherits i join pg_class c on c.oid = inhrelid and relkind = 'r'", dbname=database
    )
    assert row == [(12,)]
    assert drive(target, "functions", transactions=200) == 200
    assert pgdyno("tpcc", "check", "--target", target).code == 0
    s = stopped()
    try:
        done = direct(s, "tpcc", *words)
        assert done.code == 0, done.err
        with s:
            assert content(s.conninfo()) == content(loaded)
            check(s)
    finally:
        s.remove()


#: What breaks each condition, and nothing that hides it.
BREAK = {
    "3.3.2.1": "update tpcc_warehouse set w_ytd = w_ytd + 1 where w_id = 2",
    "3.3.2.2": "update tpcc_district set d_next_o_id = d_next_o_id + 1 where (d_w_id, d_id) = (2, 3)",
    "3.3.2.3": "delete from tpcc_new_order where (no_w_id, no_d_id, no_o_id) = (2, 3, 2500)",
    "3.3.2.4": "delete from tpcc_order_line where (ol_w_id, ol_d_id, ol_o_id, ol_number) = (2, 3, 2500, 1)",
    "3.3.2.5": "update tpcc_orders set o_carrier_id = 1 where (o_w_id, o_d_id, o_id) = (2, 3, 2500)",
    "3.3.2.6": "update tpcc_orders set o_ol_cnt = o_ol_cnt + 1 where (o_w_id, o_d_id, o_id) = (2, 3, 2500)",
    "3.3.2.7": "update tpcc_order_line set ol_delivery_d = now() where (ol_w_id, ol_d_id, ol_o_id) = (2, 3, 2500)",
    "3.3.2.8": "update tpcc_history set h_amount = 11 where (h_w_id, h_d_id, h_c_id) = (2, 3, 7)",
    "3.3.2.9": "update tpcc_history set h_d_id = 4 where (h_w_id, h_d_id, h_c_id) = (2, 3, 7)",
    "3.3.2.10": "update tpcc_customer set c_balance = 0, c_ytd_payment = 0 where (c_w_id, c_d_id, c_id) = (2, 3, 7)",
    "3.3.2.11": "update tpcc_customer set c_delivery_cnt = 1 where (c_w_id, c_d_id, c_id) = (2, 3, 7)",
    "3.3.2.12": "update tpcc_customer set c_ytd_payment = 11 where (c_w_id, c_d_id, c_id) = (2, 3, 7)",
}


@pytest.mark.slow
@pytest.mark.parametrize("clause", BREAK)
def test_a_broken_condition_is_found_by_its_clause(loaded: str, clause: str) -> None:
    (condition,) = [c for c in CONSISTENCY if c.clause == clause]
    with psycopg.connect(loaded) as conn:
        assert all(c.holds for c in checked(conn, 1, [condition]))
        conn.execute(BREAK[clause].encode())
        (found,) = checked(conn, 1, [condition])
        conn.rollback()
    assert found.broken >= 1 and "warehouse 2" in found.example, found


def test_every_condition_of_the_standard_is_there() -> None:
    assert [c.clause for c in CONSISTENCY] == [f"3.3.2.{n}" for n in range(1, 13)] == list(BREAK)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("rows-items", "delete from tpcc_item where i_id = 7"),
        ("rows-warehouse", "delete from tpcc_stock where (s_w_id, s_i_id) = (2, 7)"),
        ("rows-district", "delete from tpcc_history where (h_w_id, h_d_id, h_c_id) = (2, 3, 7)"),
        ("orders", "update tpcc_orders set o_c_id = 1 where (o_w_id, o_d_id) = (2, 3) and o_id < 9"),
        ("new-orders", "update tpcc_orders set o_carrier_id = null where (o_w_id, o_d_id, o_id) = (2, 3, 7)"),
        ("order-lines", "update tpcc_order_line set ol_quantity = 6 where (ol_w_id, ol_d_id, ol_o_id) = (2, 3, 7)"),
        ("original", "update tpcc_item set i_data = 'plain' where i_id % 5 = 0"),
        ("credit", "update tpcc_customer set c_balance = 0 where (c_w_id, c_d_id, c_id) = (2, 3, 7)"),
        ("last-names", "update tpcc_customer set c_last = 'SMITH' where (c_w_id, c_d_id, c_id) = (2, 3, 7)"),
        ("beginnings", "update tpcc_district set d_zip = '123' where (d_w_id, d_id) = (2, 3)"),
        ("texts", "update tpcc_stock set s_dist_07 = 'short' where (s_w_id, s_i_id) = (2, 7)"),
        ("texts", "update tpcc_customer set c_phone = '123' where (c_w_id, c_d_id, c_id) = (2, 3, 7)"),
        ("texts", "update tpcc_order_line set ol_dist_info = '' where (ol_w_id, ol_d_id, ol_o_id) = (2, 3, 7)"),
        ("stock", "update tpcc_stock set s_ytd = 1 where (s_w_id, s_i_id) = (2, 7)"),
        # What is not there is not right either.
        ("texts", "update tpcc_customer set c_first = null where (c_w_id, c_d_id, c_id) = (2, 3, 7)"),
        ("texts", "update tpcc_history set h_date = null where (h_w_id, h_d_id, h_c_id) = (2, 3, 7)"),
        ("beginnings", "update tpcc_district set d_zip = null where (d_w_id, d_id) = (2, 3)"),
        ("credit", "update tpcc_customer set c_since = null where (c_w_id, c_d_id, c_id) = (2, 3, 7)"),
        ("new-orders", "update tpcc_orders set o_all_local = 0 where (o_w_id, o_d_id, o_id) = (2, 3, 7)"),
        (
            "order-lines",
            "update tpcc_order_line set ol_delivery_d = now() where (ol_w_id, ol_d_id, ol_o_id) = (2, 3, 7)",
        ),
    ],
)
def test_what_is_wrong_from_the_beginning_is_found(loaded: str, name: str, sql: str) -> None:
    (condition,) = [c for c in POPULATION if c.id == f"condition-initial-{name}"]
    with psycopg.connect(loaded) as conn:
        assert all(c.holds for c in checked(conn, 1, [condition]))
        conn.execute(sql.encode())
        (found,) = checked(conn, 1, [condition])
        conn.rollback()
    assert found.broken >= 1


@pytest.mark.slow
def test_check_tells_whether_tables_are_consistent(server: Server, database: str) -> None:
    target = server.conninfo(dbname=database)
    nothing = pgdyno("tpcc", "check", "--target", target)
    assert nothing.code == 2 and tells(nothing.err, "remedy-load-them-pgdyno-load-tpcc")
    assert pgdyno("load", "tpcc", "--warehouses", 1, "--target", target).code == 0
    good = pgdyno("tpcc", "check", "--population", "--json", "--target", target)
    assert good.code == 0 and good.json["holds"] and len(good.json["checks"]) == 12 + len(POPULATION)
    server.sql("update tpcc_warehouse set w_ytd = 1", dbname=database)
    bad = pgdyno("tpcc", "check", "--target", target)
    assert bad.code == 1 and "3.3.2.1" in bad.out and "warehouse 1" in bad.out


#: As sysbench 1.0.20 prints an interval.
SYSBENCH_LINE = re.compile(
    r"\[ \d+s \] thds: \d+ tps: [\d.]+ qps: [\d.]+ \(r/w/o: [\d.]+/[\d.]+/[\d.]+\) lat \(ms,95%\): [\d.]+ "
    r"err/s: [\d.]+ reconn/s: [\d.]+"
)
EXPERIMENT = """
name = "t"
title = "t"
[dataset]
kind = "tpcc"
warehouses = 2
{dataset}
[workloads.tpcc]
tpcc = {{ {tpcc} }}
[axes]
clients = [4]
{axes}
[run]
duration_s = 2
warmup_s = 0.2
repetitions = 1
max_tries = {tries}
collect = []
{more}
"""


def run(
    folder: Path, *args: Any, dataset: str = "", tpcc: str = "", axes: str = "", more: str = "", tries: int = 100
) -> Any:
    (folder / "t.toml").write_text(EXPERIMENT.format(dataset=dataset, tpcc=tpcc, axes=axes, more=more, tries=tries))
    done = pgdyno("run", folder / "t.toml", "--json", *args, cwd=folder)
    # 1: transactions failed; which, is for the test to look at.
    assert done.code in (0, 1), done.err
    return done.json


def trials(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(p.read_text()) for p in sorted(folder.glob("runs/*/trials/*/trial.json"))]


@pytest.mark.slow
def test_sysbenchs_lines_come_while_it_runs(loaded: str, tmp_path: Path) -> None:
    """And are those that the record gives afterwards."""
    axes = 'variables = { round_trips = ["statements", "functions"] }'
    (tmp_path / "t.toml").write_text(EXPERIMENT.format(dataset="", tpcc="", axes=axes, more="", tries=100))
    words = ["run", tmp_path / "t.toml", "--target", loaded, "--report-format", "sysbench", "--quiet"]
    process = subprocess.Popen(
        [PGDYNO, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        cwd=tmp_path,
    )  # fmt: skip
    assert process.stdout is not None
    came = [(time.monotonic(), line) for line in process.stdout]
    lines = [line for _, line in came]
    _, err = process.communicate(timeout=60)
    assert process.returncode in (0, 1), err
    first, last = (next(at for at, x in came if x.startswith(start)) for start in ("[ 1s ]", "SQL statistics"))
    assert last - first > 0.5 and sum(bool(SYSBENCH_LINE.fullmatch(x.rstrip())) for x in lines) == 4, came
    (path,) = tmp_path.glob("runs/*")
    assert "".join(lines) == pgdyno("report", path, "--report-format", "sysbench").out


@pytest.mark.slow
@pytest.mark.parametrize(("round_trips", "seconds"), [("statements", 2), ("functions", 0.5)])
def test_deliveries_beside_each_other_pass_no_district_over(
    server: Server, database: str, tmp_path: Path, round_trips: str, seconds: float
) -> None:
    """Who waited for an order that another delivery took goes on to the next."""
    target = server.conninfo(dbname=database)
    tpcc = f'round_trips = "{round_trips}", mix = [0, 0, 0, 1, 0]'
    run(tmp_path, "--target", target, "--duration", seconds, tpcc=tpcc)
    (trial,) = trials(tmp_path)
    with psycopg.connect(target) as conn:
        row = conn.execute("select 18000 - count(*), count(*) from tpcc_new_order").fetchone()
    assert row is not None
    delivered, left = row
    # The warm-up's are among them.
    drawn = trial["activity"]
    assert drawn["tpcc_skipped_deliveries"] == 0 and drawn["tpcc_deliveries"] >= trial["summary"]["committed"]
    assert left and delivered % 10 == 0 and delivered >= 10 * trial["summary"]["committed"] > 100, row


@pytest.mark.slow
def test_transactions_keep_the_tables_consistent_however_they_travel(tmp_path: Path) -> None:
    found = run(tmp_path, axes='variables = { round_trips = ["statements", "pipelined", "functions"] }')
    assert tells(found["answer"][0], "answer-new-orders") and len(found["tpcc"]) == 3
    # Those that are rolled back count, as the standard has it.
    assert all(r["new_orders_per_min"] >= r["committed_per_min"] > 0 for r in found["tpcc"])
    assert len(found["checks"]) == 3 * 12 and all(c["holds"] for c in found["checks"])
    for trial in trials(tmp_path):
        summary = trial["summary"]
        assert trial["caveats"].count("INCONSISTENT") == trial["caveats"].count("UNCHECKED") == 0
        counts = {s["name"]: s["latency"]["count"] for s in summary["scripts"]}
        assert list(counts) == ["new-order", "payment", "order-status", "delivery", "stock-level"]
        assert all(counts.values()) and not summary["failed"], (counts, summary["failed"])
        nurand = trial["parameters"]["nurand"]
        assert 65 <= abs(nurand["last_name_load"] - nurand["last_name_run"]) <= 119
        assert 0.35 < counts["new-order"] / sum(counts.values()) < 0.52
    (path,) = tmp_path.glob("runs/*")
    # In sysbench's form, and in Chinese.
    lines = pgdyno("report", path, "--report-format", "sysbench").out.splitlines()
    assert sum(bool(SYSBENCH_LINE.fullmatch(line)) for line in lines) == 3 * 2, lines[:6]
    total = [int(line.split()[-1]) for line in lines if line.startswith("        total:")]
    assert len(total) == 3 and all(total)
    parts = [int(line.split()[-1]) for line in lines if re.match(r"        (read|write|other):", line)]
    assert sum(parts) == sum(total)
    # Columns of the summary as sysbench's own.
    assert {len(line) for line in lines if re.match(r" {9}(min|avg|max|95th percentile|sum): ", line)} == {53}
    assert all(line.index(line.split()[-1]) == 41 for line in lines if line.startswith("    total time:"))
    assert lines.count("Number of threads: 4") == lines.count("Threads started!") == 3
    page = (path / "report.html").read_text()
    assert tells(page, "table-tpcc") and "TPC-C: consistency" in page
    shown = pgdyno("report", path, "--lang", "zh", "--details")
    assert "每分钟" in shown.out and "new orders per minute" not in shown.out and "一致性" in shown.out, shown.out
    for path in tmp_path.glob("runs/*/trials/*/checks.json"):
        assert all(c["holds"] for c in json.loads(path.read_text()))
    assert len(list(tmp_path.glob("runs/*/trials/*/checks.json"))) == 3


@pytest.mark.slow
def test_a_duet_on_one_server_is_checked(tmp_path: Path) -> None:
    """Two sides that share a server: the tables are checked once, for both, and what cannot be told apart is a gap."""
    axes = 'variables = { isolation = ["read committed", "serializable"] }'
    found = run(tmp_path, "--order", "duet", "--duration", 2, axes=axes)
    assert found["manifest"]["run"]["order"] == "duet" and len(found["trials"]) == 2
    assert {c["trial"] for c in found["checks"]} == {1, 2} and len(found["checks"]) == 2 * 12
    assert all(c["holds"] for c in found["checks"])
    for events in tmp_path.glob("runs/*/trials/*/events.jsonl"):
        assert tells(events.read_text(), "gap-shared-server")


@pytest.mark.slow
def test_sets_partners_and_isolation(tmp_path: Path) -> None:
    levels = '["read committed", "repeatable read", "serializable"]'
    run(
        tmp_path,
        dataset="sets = 2\nforeign_keys = true\nfillfactor = 90",
        tpcc='home = "bound"',
        axes=f'variables = {{ isolation = {levels}, round_trips = ["pipelined", "functions"] }}',
        tries=1_000_000,
    )
    found = trials(tmp_path)
    assert len(found) == 6
    for trial in found:
        assert "INCONSISTENT" not in trial["caveats"], trial["parameters"]
        # Only the end of the run ends trying: once for a client. A bound of tries would be one of time: a
        # transaction is tried again at once, hundreds of times while the one that it meets waits for a processor.
        failed = trial["summary"]["failed"]
        assert set(failed) <= {"40001"} and sum(failed.values()) <= 4, failed
        assert trial["summary"]["committed"] > 100


@pytest.mark.slow
def test_what_was_counted_is_in_the_tables(server: Server, database: str, tmp_path: Path) -> None:
    """Every new order and every payment that was acknowledged, and no more than what was begun."""
    target = server.conninfo(dbname=database)
    assert pgdyno("load", "tpcc", "--warehouses", 2, "--target", target).code == 0
    done = pgdyno("run", "tpcc", "--target", target, "--duration", 2, "--warmup", 0, "--clients", 3, "--repetitions", 1,
                  "--scale", 2, "--json", cwd=tmp_path)  # fmt: skip
    assert done.code == 0, done.err
    (trial,) = trials(tmp_path)
    counts = {s["name"]: s["latency"]["count"] for s in trial["summary"]["scripts"]}
    named = {s["name"]: s["latency"]["count"] for s in trial["summary"]["statements"]}
    rows = server.sql(
        "select (select sum(d_next_o_id - 3001) from tpcc_district), (select count(*) - 60000 from tpcc_history), "
        "(select sum(c_delivery_cnt) from tpcc_customer)",
        dbname=database,
    )
    orders, payments, delivered = (int(x) for x in rows[0])
    assert orders == counts["new-order"] - named["new-order: roll back"]
    assert payments == counts["payment"]
    assert delivered == named["delivery: update balance"]


@pytest.mark.slow
def test_what_was_acknowledged_survives_lost_connections(server: Server, database: str, tmp_path: Path) -> None:
    """Also of orders that are rolled back: none of them is in the tables, whenever its session ended."""
    target = server.conninfo(dbname=database)
    assert pgdyno("load", "tpcc", "--warehouses", 2, "--target", target).code == 0
    ended, shot = threading.Event(), 0

    def shoot() -> None:
        nonlocal shot
        while not ended.wait(0.25):
            (row,) = server.sql(
                "select count(*) filter (where pg_terminate_backend(pid)) from (select pid from pg_stat_activity where "
                f"application_name = 'pgdyno' and datname = '{database}' order by random() limit 2) victims"
            )
            shot += row[0]

    shooter = threading.Thread(target=shoot)
    shooter.start()
    try:
        done = pgdyno("run", "tpcc", "--target", target, "--duration", 5, "--warmup", 0, "--clients", 4, "--scale", 2,
                      "--repetitions", 1, "--json", cwd=tmp_path)  # fmt: skip
    finally:
        ended.set()
        shooter.join()
    assert done.code in (0, 1), done.err
    (trial,) = trials(tmp_path)
    summary = trial["summary"]
    assert shot > 4 and summary["lost"] > 4 and summary["reconnects"] > 4 and "INCONSISTENT" not in trial["caveats"]
    counts = {s["name"]: s["latency"]["count"] for s in summary["scripts"]}
    named = {s["name"]: s["latency"]["count"] for s in summary["statements"]}
    (row,) = server.sql("select sum(d_next_o_id - 3001) from tpcc_district", dbname=database)
    acknowledged = counts["new-order"] - named["new-order: roll back"]
    assert acknowledged <= int(row[0]) <= acknowledged + summary["unknown"], (row, counts, named, summary)


@pytest.mark.slow
def test_versions_beside_each_other(tmp_path: Path) -> None:
    folder_of(15)
    found = run(tmp_path, axes='version = ["15", "18"]', more='order = "written"')
    assert [t["plan"]["varied"]["version"] for t in trials(tmp_path)] == ["15", "18"]
    assert len(found["checks"]) == 2 * 12 and all(c["holds"] for c in found["checks"])


@pytest.mark.slow
def test_a_trial_whose_tables_are_broken_says_so(server: Server, database: str, tmp_path: Path) -> None:
    target = server.conninfo(dbname=database)
    assert pgdyno("load", "tpcc", "--warehouses", 1, "--target", target).code == 0
    server.sql("update tpcc_district set d_ytd = 0 where d_id = 3", dbname=database)
    done = pgdyno("run", "tpcc", "--target", target, "--duration", 0.5, "--warmup", 0, "--clients", 2,
                  "--repetitions", 1, "--scale", 1, cwd=tmp_path)  # fmt: skip
    assert done.code == 1, done.err
    assert tells(" ".join(done.out.split()), "answer-broken", clauses="3.3.2.1, 3.3.2.9"), done.out
    (trial,) = trials(tmp_path)
    assert "INCONSISTENT" in trial["caveats"]


@pytest.mark.slow
def test_terminals_wait_and_deal_the_standards_mix(tmp_path: Path) -> None:
    # A hundredth of the standard's waits: a cycle of a terminal takes 0.2 s.
    run(tmp_path, "--clients", 20, "--duration", 6, tpcc="waits = 0.01")
    (trial,) = trials(tmp_path)
    summary = trial["summary"]
    assert 60 < summary["tps"] < 130, summary["tps"]
    counts = {s["name"]: s["latency"]["count"] for s in summary["scripts"]}
    assert abs(counts["payment"] / sum(counts.values()) - 10 / 23) < 0.05
    report = (next(tmp_path.glob("runs/*/report.md"))).read_text()
    # Its limits are for its own pace.
    assert not tells(report, "table-tpcc-limits") and tells(report, "pace-scaled")


@pytest.mark.slow
def test_a_terminal_that_rests_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """With whole waits the mean cycle is more than 20 s; the run is over when its time is."""
    start = time.monotonic()
    run(tmp_path, "--clients", 20, "--duration", 4, tpcc="waits = 1")
    assert time.monotonic() - start < 60
    report = (next(tmp_path.glob("runs/*/report.md"))).read_text()
    assert tells(report, "table-tpcc-limits") and tells(report, "answer-of-the-most")
    assert tells(report, "table-tpcc-ranges") and "| payments by last name |" in report


@pytest.mark.slow
@pytest.mark.parametrize("round_trips", ["statements", "functions"])
def test_deliveries_that_find_nothing_are_counted(
    server: Server, database: str, tmp_path: Path, round_trips: str
) -> None:
    target = server.conninfo(dbname=database)
    assert pgdyno("load", "tpcc", "--warehouses", 2, "--target", target).code == 0
    server.sql("delete from tpcc_new_order where no_d_id = 7", dbname=database)
    # What another pgdyno has made is replaced; what somebody else has is not touched.
    server.sql(
        "create or replace function tpcc_order_line_delivery(w int, carrier int) returns int language plpgsql "
        "as 'begin raise ''old''; end'",
        dbname=database,
    )
    server.sql("create function tpcc_new_order() returns int language sql as 'select 1'", dbname=database)
    run(tmp_path, "--target", target, "--duration", 0.3, tpcc=f'round_trips = "{round_trips}", mix = [0, 0, 0, 1, 0]')
    (trial,) = trials(tmp_path)
    drawn = trial["activity"]
    assert not trial["summary"]["failed"]
    # What was under way at the end is not.
    assert drawn["tpcc_deliveries"] - 4 <= drawn["tpcc_skipped_deliveries"] <= drawn["tpcc_deliveries"], drawn
    assert drawn["tpcc_skipped_deliveries"] > 10


#: What transactions leave behind, less what the clock says.
LEFT = """
select (select sum(hashtextextended((s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt)::text, 0))
          from tpcc_stock),
       (select sum(hashtextextended((c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt,
          c_data)::text, 0)) from tpcc_customer),
       (select sum(hashtextextended((ol_o_id, ol_number, ol_i_id, ol_quantity, ol_amount, ol_dist_info,
          ol_delivery_d is null)::text, 0)) from tpcc_order_line),
       (select sum(hashtextextended((o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local)::text, 0)) from tpcc_orders),
       (select sum(hashtextextended((h_c_id, h_w_id, h_amount, h_data)::text, 0)) from tpcc_history),
       (select sum(w_ytd) from tpcc_warehouse), (select sum(d_ytd + d_next_o_id) from tpcc_district)"""


@pytest.mark.slow
def test_however_they_travel_transactions_do_the_same(server: Server, loaded: str) -> None:
    """One client, one seed: the same transactions, so the same tables."""
    found = []
    for how in ("statements", "pipelined", "functions"):
        name = f"tpcc_{how}"
        server.sql(f"create database {name} template tpcc_module")
        assert drive(server.conninfo(dbname=name), how, transactions=500) == 500
        found.append(server.sql(LEFT, dbname=name))
        server.sql(f"drop database {name} with (force)")
    assert found[0] == found[1] == found[2]
    assert found[0] != server.sql(LEFT, dbname="tpcc_module")


class Nobody:
    def started(self, start_ns: int, connect_ns: int) -> None: ...
    def interval(self, i: Any) -> None: ...
    def event(self, e: Any) -> None: ...


def drive(conninfo: str, how: str, *, transactions: int) -> int:
    config = _core.ConnConfig(**targets.resolve(conninfo, 10.0).core_arguments())
    workload = _core.Workload.tpcc([engine.Tpcc(warehouses=2, round_trips=how)])
    result = _core.run([config], workload, Nobody(), engine.Plan(clients=1, transactions=transactions, seed=5))
    measured = result.phase("measure")
    assert measured is not None and result.error is None, result.error
    return measured.committed


@pytest.mark.slow
def test_how_much_of_it_holds_an_objective(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(
        'name = "t"\ntitle = "T"\n[dataset]\nkind = "tpcc"\nwarehouses = 1\n[workloads.t]\ntpcc = {}\n'
        "[run]\ncheck = false\ncollect = []\n"
    )
    words = ["--slo", "p50<20ms", "--clients", 4, "--duration", 1, "--warmup", 0.2, "--interval", 0.1]
    done = pgdyno("capacity", "t.toml", *words, "--embedded", "-q", "--json", cwd=tmp_path, timeout=170)
    assert done.code in (0, 1), done.err
    found = done.json["manifest"]["capacity"]
    assert found["rate"] > 50 and found["closed_tps"] > 100, found
