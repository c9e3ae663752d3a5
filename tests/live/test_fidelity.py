# ruff: noqa: E501 - statements are as long as their programs write them
"""Captured workloads are the same work: programs with known statements are captured, and their captures run."""

from __future__ import annotations

import csv
import random
import re
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.cli import pgdyno
from tests.support.production import PROGRAMS
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.waiting import wait_until

pytestmark = pytest.mark.alone

CONF = """
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track = top
log_destination = 'csvlog'
logging_collector = on
log_directory = 'log'
log_filename = 'pg.log'
log_min_duration_statement = 0
"""
CALLS = 2_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(conf=CONF) as s:
        yield s


def produced(server: Server, name: str) -> None:
    """A database as the program left it, with what the server has counted and logged of it."""
    program = PROGRAMS[name]
    server.sql(f"create database {name}")
    server.sql("create extension pg_stat_statements", dbname=name)
    server.sql(program.schema, dbname=name)
    server.sql("vacuum analyze", dbname=name)
    with psycopg.connect(server.conninfo(dbname=name), autocommit=True, application_name=name) as conn:
        # The extended protocol, as drivers of other languages have it.
        conn.prepare_threshold = 0
        program.drive(conn, random.Random(1), 40)
        conn.execute("select pg_stat_statements_reset()")
        program.drive(conn, random.Random(2), CALLS)


def within(lines: list[dict[str, str]], figure: str, part: float = 0.2) -> float:
    """The share of the calls whose figure agrees."""
    agree = 0.0
    for line in lines:
        a, b = (line[name].replace(",", "") for name in (figure, f"{figure} here"))
        if a and b and abs(float(a) - float(b)) <= part * max(abs(float(a)), abs(float(b)), 0.01):
            agree += float(line["calls"].rstrip("%"))
    return agree


def compared(run: Path) -> list[dict[str, str]]:
    """The table of a run's report."""
    with (run / "report-fidelity.csv").open(encoding="utf-8") as f:
        return list(csv.DictReader(f))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_capture_does_the_same_work(server: Server, tmp_path: Path, name: str) -> None:
    """Of 90% of the calls rows and blocks are within 20%; a transaction's keys belong together, so that none fails."""
    produced(server, name)
    target = server.conninfo(dbname=f"{name}_copy")
    more = ["--clients", 2, "--duration", 5, "--warmup", 1, "--repetitions", 1, "--force", "--rate", 0, "--json"]
    for source, options in {"statistics": [], "log": ["--log", server.data / "log" / "pg.csv"]}.items():
        out = tmp_path / source
        done = pgdyno("capture", "--target", server.conninfo(dbname=name), "--output", out, "--top", 40, *options)
        assert done.code == 0, done.err
        server.sql(f"drop database if exists {name}_copy with (force)")
        server.sql(f"create database {name}_copy template {name}")
        (file,) = out.glob("*.toml")
        done = pgdyno("run", file, "--target", target, "--runs", out / "runs", *more)
        (trial,) = done.json["trials"]
        # Only a key of random parts may be there already.
        assert trial["summary"]["failed"].keys() <= {"23505"}, trial["summary"]["failed"]
        assert sum(trial["summary"]["failed"].values()) <= trial["summary"]["committed"] / 1000
        (run,) = (out / "runs").iterdir()
        lines = compared(run)
        if source == "statistics":
            assert within(lines, "rows") >= 0.9, lines
            # The copy is as production left it: what was written to was found in another state.
            assert within(lines, "blocks") >= 0.8, lines
        assert sum(float(x["calls"]) for x in lines) > 0.95, lines
        for line in (x for x in lines if float(x["calls"]) > 0.1):
            assert abs(float(line["calls"]) - float(line["calls here"])) < 0.2 * float(line["calls"]), line


KEYS = 500


def paced(server: Server, name: str, each: int, period_s: float, think_s: float = 0.0) -> Path:
    """A database whose three sessions had a transaction of two statements in each period, and thought between them; the
    log.
    """
    server.sql(f"drop database if exists {name} with (force)")
    server.sql(f"create database {name}")
    server.sql("create table t (id int primary key, n int)", dbname=name)
    server.sql(f"insert into t select i, 0 from generate_series(1, {KEYS}) i", dbname=name)

    def session(number: int, first: float) -> None:
        with psycopg.connect(server.conninfo(dbname=name), autocommit=True) as conn:
            for i in range(each):
                # The program's own pace, which is what is measured; nothing is waited for.
                time.sleep(max(0.0, first + i * period_s - time.monotonic()))
                with conn.transaction():
                    key = 1 + (number * each + i) % KEYS
                    conn.execute("select n from t where id = %s", [key])
                    # The program's think time, which the capture is to find; nothing is waited for.
                    time.sleep(think_s)
                    conn.execute(f"update t set n = n + %s /* {name} */ where id = %s", [number + 1, key])

    begin = time.monotonic()
    threads = [threading.Thread(target=session, args=(i, begin + 0.01 * i)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    log = server.data / "log" / "pg.csv"
    wait_until(lambda: log.read_text().count(f"/* {name} */") >= 3 * each)
    return log


@pytest.mark.slow
def test_a_capture_keeps_productions_pace(server: Server, tmp_path: Path) -> None:
    period_s, think_s = 0.05, 0.02
    log = paced(server, "paced", 60, period_s, think_s)
    out = tmp_path / "out"
    done = pgdyno("capture", "--target", server.conninfo(dbname="paced"), "--log", log, "--output", out, "--times", 2,
                  "--top", 1)  # fmt: skip
    assert done.code == 0, done.err
    (file,) = out.glob("*.toml")
    experiment = tomllib.loads(file.read_text())
    tps = experiment["workloads"]["captured"]["production"]["tps"]
    # Of 59 periods 60 transactions; a machine that stands still makes it less.
    assert 0.7 * 3 / period_s < tps < 1.1 * 3 / period_s, tps
    assert experiment["run"]["rate"] == pytest.approx(2 * tps, rel=1e-3) and 4 <= experiment["axes"]["clients"][0] <= 20
    more = ["--duration", 4, "--warmup", 0.5, "--repetitions", 1, "--force", "--json"]
    done = pgdyno("run", file, "--target", server.conninfo(dbname="paced"), "--runs", tmp_path / "runs", *more)
    assert re.search(rf"Production did {tps:,.4g} per second, this run [\d.]+\.", done.json["answer"][-1]), done.json
    summary = done.json["trials"][0]["summary"]
    assert summary["tps"] == pytest.approx(2 * tps, rel=0.25)
    # A row stays locked as long as in production. Its sessions think before one statement.
    (script,) = out.glob("*.sql")
    assert script.read_text().count("\\sleep") == 1
    assert summary["latency"]["mean_ns"] >= think_s * 1e9, summary


@pytest.mark.slow
def test_a_replay_does_what_was_done_when_it_was_done(server: Server, tmp_path: Path) -> None:
    """With its values: the rows are then as production left them, and each session's order is its own."""
    each = 60
    log = paced(server, "replayed", each, 0.05)
    wanted = server.sql("select id, n from t order by id", dbname="replayed")
    # As before production.
    server.sql("update t set n = 0", dbname="replayed")
    target = server.conninfo(dbname="replayed")
    out = tmp_path / "out"
    done = pgdyno("capture", "--target", target, "--log", log, "--output", out, "--replay", "--with-values", "all")
    assert done.code == 0, done.err
    (file,) = out.glob("*.toml")
    # What made the table is in the log as well.
    kept = [line for line in (out / "replay.tsv").read_text().splitlines() if line.startswith("#") or "\t01-" in line]
    (out / "replay.tsv").write_text("\n".join(kept) + "\n")
    experiment = tomllib.loads(file.read_text())
    sessions = {line.split("\t")[0] for line in kept[1:]}
    assert len(sessions) == 3 and len(kept) == 1 + 3 * each, kept[:5]
    assert 2_500 < float(kept[-1].split("\t")[1]) < 6_000, kept[-1]
    done = pgdyno("run", file, "--target", target, "--runs", tmp_path / "runs", "--force", "--json")
    assert done.code == 0, (done.err, experiment["axes"])
    assert done.json["trials"][0]["summary"]["committed"] == 3 * each
    assert server.sql("select id, n from t order by id", dbname="replayed") == wanted
    fewer = pgdyno("run", file, "--target", target, "--runs", tmp_path / "runs", "--force", "--clients", 1)
    assert fewer.code == 2 and tells(fewer.err, "error-workloads-replay-sessions", n_schedule="3"), fewer.err
    (out / "replay.tsv").write_text("0\tx\t01-select-t\t-\t-\n")
    wrong = pgdyno("run", file, "--target", target, "--runs", tmp_path / "runs", "--force")
    assert wrong.code == 2 and "replay.tsv:1: could not convert" in wrong.err, wrong.err


KINDS = """
create type mood as enum ('calm', 'angry', 'busy');
create domain code as text;
create table person (id bigint primary key, email text unique not null, nick text unique, mood mood not null, phone bigint,
  outside text, ref code, zone text, meta jsonb, seen timestamptz);
create table post (id bigint primary key, author bigint not null references person, at timestamptz not null, body text);
create table booking (room int, starts timestamptz, unique (room, starts));
create table counter (name text primary key, n int not null);
create index on post (author); create index on post (at, id); create index on person (lower(email));
insert into person select 1700000000000000000 + i * 7919, 'P' || i || '@x', 'nick' || i,
  (array['calm', 'angry', 'busy'])[1 + i % 3]::mood, 4900000000 + i * 1009, case when i % 10 = 0 then 'out' || i end,
  'C' || i % 50, 'UTC', jsonb_build_object('k', i), now() from generate_series(1, 3000) i;
insert into post select 1800000000000000000 + i * 104729, 1700000000000000000 + (1 + i % 3000) * 7919,
  timestamptz '2025-01-01' + i * interval '1 minute', md5(i::text) || ' word ' || i from generate_series(1, 12000) i;
insert into counter select 'c' || i, 0 from generate_series(1, 5) i;
create index on person (outside); create index on person (ref); create index on person (phone);
"""
#: A statement with its parameters, by a number that is drawn; rows a call where one is meant to be found.
STATEMENTS = (
    ("select * from post where author = %s", lambda n: [1700000000000000000 + n * 7919]),
    ("select id from person where phone = %s", lambda n: [4900000000 + n * 1009]),
    ("select id from person where outside = %s", lambda n: [f"out{n // 10 * 10 or 10}"]),
    ("select id from person where lower(email) = lower(%s)", lambda n: [f"P{n}@X"]),
    ("select id from person where mood = %s::mood and id = %s", lambda n: [("calm", "angry", "busy")[n % 3], 1700000000000000000 + n * 7919]),
    ("select id from person where ref = %s", lambda n: [f"C{n % 50}"]),
    ("select date_trunc('day', at), count(*) from post where author = %s group by 1, extract(hour from at)", lambda n: [1700000000000000000 + n * 7919]),
    ("select at at time zone 'Europe/Berlin', encode(body::bytea, 'hex') from post where id = %s", lambda n: [1800000000000000000 + n * 104729]),
    ("select id from post where (at, id) < (%s, %s) order by at desc, id desc limit 20", lambda n: [f"2025-01-0{2 + n % 7}", 1800000000000000000 + n * 104729]),
    ("insert into counter values (%s, 1) on conflict (name) do update set n = counter.n + 1", lambda n: [f"c{1 + n % 5}"]),
    ("insert into booking (room, starts) values (%s, %s)", lambda n: [n, f"2025-03-01 {n % 24:02}:{n // 24 % 60:02}:{n // 1440:02}"]),
    ("update person set nick = %s where id = %s", lambda n: [f"new{n}", 1700000000000000000 + n * 7919]),
    ("insert into person (id, email, mood) values (%s, %s, %s::mood)", lambda n: [1900000000000000000 + n, f"N{n}@x", "calm"]),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("source", ["statistics", "log"])
def test_statements_of_all_kinds_find_what_they_found(server: Server, tmp_path: Path, source: str) -> None:
    """Keys with gaps, NULL, enums, domains, upserts, unique columns that change, words that are no values."""
    name = f"kinds_{source}"
    server.sql(f"create database {name}")
    server.sql("create extension pg_stat_statements", dbname=name)
    server.sql(KINDS, dbname=name)
    server.sql("vacuum analyze", dbname=name)
    server.sql("select pg_stat_statements_reset()", dbname=name)
    rng = random.Random(5)
    with psycopg.connect(server.conninfo(dbname=name), autocommit=True) as conn:
        for n in rng.sample(range(1, 2999), 120):
            for text, values in STATEMENTS:
                conn.execute(text.encode(), values(n), prepare=True)
        conn.execute(f"select 'the last of {name}'".encode())
    log = server.data / "log" / "pg.csv"
    wait_until(lambda: f"the last of {name}" in log.read_text())
    out = tmp_path / "out"
    options = ["--log", log] if source == "log" else []
    done = pgdyno("capture", "--target", server.conninfo(dbname=name), "--output", out, "--top", 13, *options)
    assert done.code == 0, done.err
    texts = {p.stem: p.read_text() for p in out.glob("*.sql")}
    assert len(texts) == 13, (out / "README.md").read_text()
    server.sql(f"create database {name}_copy template {name}")
    (file,) = out.glob("*.toml")
    more = ["--clients", 2, "--duration", 3, "--warmup", 0.5, "--repetitions", 1, "--force", "--rate", 0, "--json"]
    target = server.conninfo(dbname=f"{name}_copy")
    done = pgdyno("run", file, "--target", target, "--runs", tmp_path / "runs", *more)
    (trial,) = done.json["trials"]
    assert trial["summary"]["failed"] == {}, (trial["summary"]["failed"], texts)
    assert server.sql("select count(*) from counter", dbname=f"{name}_copy") == [(5,)]
    (run,) = (tmp_path / "runs").iterdir()
    for line in compared(run):
        wanted = float(line["rows"]) if line["rows"] else None
        here = float(line["rows here"].replace(",", ""))
        if wanted is None:
            # A log has no rows: of the program's statements each finds some.
            assert here > 0.5, (line, texts[line["script"]])
        else:
            assert 0.8 * wanted <= here <= 1.25 * wanted, (line, texts[line["script"]])
    if source == "log":
        # Numbers that tell a person are picked from the table, and not written.
        assert not any(re.search(r"49000\d{5}", t) for t in texts.values())
