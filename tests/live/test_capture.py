"""Workloads from production: from pg_stat_statements and from logs of a real server, and run again."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support import messages
from tests.support.cli import Result, pgdyno
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.waiting import wait_until

CONF = """
shared_preload_libraries = 'pg_stat_statements'
log_destination = 'csvlog,jsonlog'
logging_collector = on
log_directory = 'log'
log_filename = 'pg.log'
log_min_duration_statement = 0
"""

END = "the end of production"


@pytest.fixture(scope="module")
def busy() -> Iterator[Server]:
    """A server that has carried out a shop's statements."""
    s = Server(conf=CONF)
    with s:
        s.sql("create extension pg_stat_statements")
        s.sql("""create table customers (id int primary key, email text unique, region text);
                 create table orders (id bigserial primary key, customer_id int references customers,
                   at timestamptz)""")
        s.sql("""insert into customers select i, 'c' || i || '@x', case when i % 10 = 0 then 'us' else 'eu' end
                 from generate_series(1, 5000) i""")
        s.sql("insert into orders (customer_id, at) select i, now() from generate_series(1, 5000) i")
        s.sql("vacuum analyze")
        s.sql("select pg_stat_statements_reset()")
        with psycopg.connect(s.conninfo(), autocommit=True) as conn:
            for i in range(1, 61):
                conn.execute("select * from customers where id = %s", [i], prepare=True)
                conn.execute("select id from customers where region = %s order by id desc limit 10", ["eu"])
                conn.execute("select email from customers where email = %s", [f"c{i}@x"])
                with conn.transaction():
                    conn.execute("insert into orders (customer_id, at) values (%s, now())", [i])
                    conn.execute(f"update customers set region = 'eu' where id = {i}")
            conn.execute("set work_mem = '8MB'")
            conn.execute("select count(*) from pg_catalog.pg_class")
            conn.execute(f"select relname from pg_catalog.pg_class where relname = '{END}'".encode())
        yield s


@pytest.fixture(scope="module")
def production(busy: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of the shop's statements, and of nothing that came later."""
    folder = tmp_path_factory.mktemp("logs")
    for name in ("pg.csv", "pg.json"):
        # The collector writes what it is sent a little later.
        written = busy.data / "log" / name
        wait_until(lambda written=written: END.encode() in written.read_bytes())
        log = written.read_bytes()
        entries = log[: log.index(END.encode())]
        (folder / name).write_bytes(entries[: entries.rindex(b"\n") + 1])
    return folder


def run(file: Path, server: Server, folder: Path, dbname: str = "postgres") -> dict[str, object]:
    more = ["--clients", "2", "--duration", "0.5", "--warmup", "0.1", "--repetitions", "1", "--force", "--rate", "0"]
    done = pgdyno("run", file, "--target", server.conninfo(dbname=dbname), "--runs", folder / "runs", "--json", *more)
    assert done.code == 0, [done.json["answer"], [t["summary"]["failed"] for t in done.json["trials"]], done.err]
    assert not tells(done.json["answer"][0], "answer-no-work")
    (trial,) = done.json["trials"]
    assert trial["summary"]["committed"] > 20 and not trial["summary"]["failed"], trial["summary"]["failed"]
    found: dict[str, object] = trial["summary"]
    return found


@pytest.mark.slow
def test_a_workload_is_made_of_pg_stat_statements(busy: Server, tmp_path: Path) -> None:
    out = tmp_path / "shop"
    done = pgdyno("capture", "--target", busy.conninfo(), "--output", out)
    assert done.code == 0, done.err
    texts = {p.stem: p.read_text() for p in out.glob("*.sql")}
    assert len(texts) == 5, sorted(texts)
    key = next(t for t in texts.values() if t.startswith("\\set p1 random(:customers_first, :customers_last)"))
    assert "customers where id = :p1;" in key
    # No text of the tables stands in a script: a row that is there has it.
    region = next(t for t in texts.values() if "where region = " in t)
    assert "\\pick customers p1_" in region and "region = :p1_region order" in region and "\\set p2 10" in region
    assert not re.search("'(eu|us)'", "".join(texts.values()))
    assert 'samples.customers = { table = "\\"public\\".\\"customers\\""' in next(out.glob("*.toml")).read_text()
    typo = pgdyno("capture", "--target", busy.conninfo(), "--output", tmp_path / "typo", "--with-values", "regoin")
    assert (
        typo.code == 2
        and tells(typo.err, "error-values-no-table-column", unknown="regoin")
        and not (tmp_path / "typo").exists()
    )
    asked = tmp_path / "asked"
    done = pgdyno("capture", "--target", busy.conninfo(), "--output", asked, "--with-values", "customers.region")
    assert done.code == 0, done.err
    # As ANALYZE has it: nine of ten are eu.
    listed = tomllib.loads(next(asked.glob("*.toml")).read_text())["workloads"]["captured"]["samples"].values()
    values = [row[0] for row in next(s["values"] for s in listed if "values" in s)]
    assert 88 <= values.count("eu") <= 92 and 8 <= values.count("us") <= 12, values
    readme = (out / "README.md").read_text()
    assert messages.text("capture-asks-catalog") in readme and messages.text("captured-lost-transactions") in readme
    (file,) = out.glob("*.toml")
    assert len(run(file, busy, tmp_path)["scripts"]) == 5  # type: ignore[arg-type]
    # Rows, blocks, WAL and time of a call are compared with production's.
    (ran,) = (tmp_path / "runs").iterdir()
    answer = " ".join(pgdyno("report", ran, "--json").json["answer"])
    assert re.search(r"Rows that tables gained or lost: orders \+[\d,]+ \(\+[\d.]+%\)\.", answer), answer
    assert re.search(r"\d+% of the time that the server spent in statements is in the workload", answer), answer
    assert any(tells(answer, "answer-rows-agree", n=n, of=5) for n in (4, 5)), answer
    lines = (ran / "report-fidelity.csv").read_text().splitlines()
    assert lines[0].startswith("script,calls,calls here,plan,rows,rows here,blocks") and len(lines) == 6, lines
    assert not any("–" in line for line in lines[1:]), lines
    again = pgdyno("capture", "--target", busy.conninfo(), "--output", out)
    assert again.code == 2 and tells(again.err, "error-there-already-nothing-was-written-2")
    reads = tmp_path / "reads"
    assert pgdyno("capture", "--target", busy.conninfo(), "--output", reads, "--read-only").code == 0
    assert not any("insert into" in p.read_text().lower() for p in reads.glob("*.sql"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pg.csv", "pg.json"])
def test_a_workload_is_made_of_a_log(busy: Server, production: Path, tmp_path: Path, name: str) -> None:
    log = production / name
    out = tmp_path / "from-log"
    # The most frequent: the log has the making of the tables as well, which cannot be done twice.
    done = pgdyno("capture", "--target", busy.conninfo(), "--log", log, "--output", out, "--top", 4)
    assert done.code == 0, done.err
    texts = [p.read_text() for p in out.glob("*.sql")]
    # The transaction is one script, its two statements together.
    whole = next(t for t in texts if "BEGIN" in t and "COMMIT" in t)
    assert whole.lower().count("insert into orders") == 1 and "update customers" in whole.lower()
    # Values are those that were seen.
    assert any("random(1, " in t or "random(2, " in t for t in texts)
    (file,) = out.glob("*.toml")
    run(file, busy, tmp_path)


def traps_sprung(server: Server, folder: Path) -> list[str]:
    """Messages of traps that went off for somebody else than who had laid them."""
    with (server.data / "log" / "pg.csv").open(encoding="utf-8", newline="") as f:
        return [row[13] for row in csv.reader(f) if "SPRUNG" in row[13] and row[1] != "evil"]


@pytest.mark.slow
def test_a_capture_carries_out_nobodys_code(busy: Server, tmp_path: Path) -> None:
    """A plain role owns the database, its search path, views, policies, operators and indexes; a superuser captures."""
    busy.sql("drop database if exists trap with (force)")
    busy.sql("drop role if exists evil")
    busy.sql("create role evil login")
    busy.sql("create database trap owner evil")
    busy.sql("create extension pg_stat_statements", dbname="trap")
    busy.sql("alter database trap set search_path = evil, public, pg_catalog")
    with psycopg.connect(busy.conninfo(dbname="trap", user="evil"), autocommit=True) as conn:
        for text in (
            "create schema evil",
            "create table evil.log(n int)",
            *(f"create function evil.{name}({arguments}) returns {result} language plpgsql {volatility} as $$ begin "
              f"raise log 'SPRUNG {name}'; return {returned}; end $$"
              for name, arguments, result, volatility, returned in (
                  ("seen", "int", "int", "volatile", "1"), ("may", "", "boolean", "volatile", "true"),
                  ("shape", "int", "int", "immutable", "$1"), ("lower", "text", "text", "immutable", "$1"),
                  ("same", "int, bigint", "boolean", "immutable", "true"),
                  ("alike", "text, text", "boolean", "immutable", "true"),
                  ("format_type", "oid, integer", "text", "immutable", "''"), ("hidden", "", "int", "immutable", "1"),
              )),
            "create operator evil.= (leftarg = int, rightarg = bigint, function = evil.same)",
            "create operator evil.= (leftarg = text, rightarg = text, function = evil.alike)",
            "create table evil.plain(id int primary key, v text, w int)",
            "insert into evil.plain select i, 'v' || i, i from generate_series(1, 500) i",
            "create index on evil.plain (evil.shape(w))",
            "create view evil.looks as select id, v, evil.seen(id) as w from evil.plain",
            "create view evil.deep as select * from evil.looks",
            "create table evil.kept(id int, v text)", "insert into evil.kept values (1, 'x')",
            "alter table evil.kept enable row level security", "create policy p on evil.kept using (evil.may())",
            "create view evil.pg_stat_statements as select evil.seen(1)",
        ):  # fmt: skip
            conn.execute(text.encode())
        # Names that a scanner of the text does not see.
        for text in (
            "select 1 as a$$, hidden() as b$$", "select /* /* */ ' */ hidden() /* ' */", 'select U&"\\0068idden"()',
            "/* delete Plain */ delete from plain where id = hidden() - 2",
        ):  # fmt: skip
            conn.execute(text.encode())
        for n in range(1, 12):
            for text in (
                "select * from looks where v = %s", "select * from deep where w = %s",
                "select * from kept where v = %s", "select * from plain where lower(v) = %s",
                "select v from plain where evil.shape(w) = %s", "select * from plain where id = %s",
                "delete from plain where id = -%s", "select x.v from deep x limit %s",
            ):  # fmt: skip
                value = n if text.endswith(("id = %s", "-%s", "w = %s", "(w) = %s", "limit %s")) else f"v{n}"
                conn.execute(text.encode(), [value])
    done = pgdyno("capture", "--target", busy.conninfo(dbname="trap"), "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert len(list((tmp_path / "out").glob("*.sql"))) >= 6
    assert traps_sprung(busy, tmp_path) == []
    busy.sql("drop database trap with (force)")
    busy.sql("drop role evil")


@pytest.fixture
def sessions(busy: Server) -> Iterator[str]:
    """A database whose statements delete nothing, in one way or another; its name."""
    busy.sql("drop database if exists quiet with (force)")
    busy.sql("create database quiet")
    busy.sql("create extension pg_stat_statements", dbname="quiet")
    busy.sql(
        """create table sessions (id int primary key, user_id int, seen timestamptz default now());
        insert into sessions select i, i % 500 from generate_series(1, 20000) i; create index on sessions (user_id);
        create table jobs (id int primary key, done boolean);
        insert into jobs select i, false from generate_series(1, 500) i;
        create function purge_old() returns int language sql as $$ delete from sessions where id > 0 returning 1 $$;
        create function harmless(n int) returns int language sql stable as $$ select n $$;
        create view purging as select purge_old() as n;
        create procedure nightly() language sql as $$ delete from sessions $$;""",
        dbname="quiet",
    )
    busy.sql("vacuum analyze", dbname="quiet")
    busy.sql("select pg_stat_statements_reset()", dbname="quiet")
    with psycopg.connect(busy.conninfo(dbname="quiet"), autocommit=True) as conn:
        for n in range(1, 31):
            conn.execute("delete from sessions where id = %s", [n + 1_000_000], prepare=True)
            conn.execute("delete from sessions where user_id = %s", [n + 1_000_000], prepare=True)
            conn.execute("delete from sessions where id > %s", [n + 1_000_000], prepare=True)
            conn.execute("update jobs set done = true where id = %s", [n if n % 3 else -n], prepare=True)
            conn.execute("select harmless(%s)", [n], prepare=True)
            conn.execute("select count(*) from sessions where user_id = %s", [n], prepare=True)
            with conn.transaction(force_rollback=True):
                conn.execute("select purge_old(), %s::int", [n], prepare=True)
                conn.execute("select * from purging limit %s", [n], prepare=True)
                conn.execute("call nightly()")
    yield "quiet"
    busy.sql("drop database quiet with (force)")


def counted(server: Server, dbname: str) -> list[tuple[Any, ...]]:
    return server.sql("select (select count(*) from sessions), (select count(*) from jobs)", dbname=dbname)


def captured_run(server: Server, dbname: str, out: Path, *words: str) -> Result:
    target = server.conninfo(dbname=dbname)
    assert (done := pgdyno("capture", "--target", target, "--output", out, *words)).code == 0, done.err
    (file,) = out.glob("*.toml")
    more = ["--clients", 2, "--duration", 1.5, "--warmup", 0.1, "--repetitions", 1, "--force", "--json", "--rate", "0"]
    return pgdyno("run", file, "--target", target, "--runs", out / "runs", *more)


@pytest.mark.slow
def test_what_deleted_nothing_deletes_nothing(busy: Server, sessions: str, tmp_path: Path) -> None:
    target = busy.conninfo(dbname=sessions)
    assert pgdyno("capture", "--target", target, "--output", tmp_path / "all").code == 0
    readme = (tmp_path / "all" / "README.md").read_text()
    # A key finds as often as in production; of the others the planner knows better.
    deletes = [p.read_text() for p in (tmp_path / "all").glob("*delete*.sql")]
    assert len(deletes) == 2 and all("-- may find nothing" in d for d in deletes), deletes
    assert readme.count(messages.text("capture-changed-nearly-none")) == 1, readme
    (update,) = (p.read_text() for p in (tmp_path / "all").glob("*update*.sql"))
    assert f"<= {round(1_000_000 * 20 / 30)} then" in update
    # Without what is meant to purge.
    for path in (tmp_path / "all").glob("*.sql"):
        if re.search("purg|nightly", path.read_text()):
            path.write_text("select 1;\n")
    before = counted(busy, sessions)
    (file,) = (tmp_path / "all").glob("*.toml")
    more = ["--clients", 2, "--duration", 1.5, "--warmup", 0.1, "--repetitions", 1, "--force", "--json", "--rate", "0"]
    done = pgdyno("run", file, "--target", target, "--runs", tmp_path / "runs", *more)
    assert done.code in (0, 1) and done.json["trials"][0]["summary"]["committed"] > 20, done.err
    assert counted(busy, sessions) == before
    # What does delete says so first.
    for path in (tmp_path / "all").glob("*.sql"):
        path.write_text("\\set k random(0, 199)\n-- may find nothing\ndelete from sessions where id % 200 = :k;\n")
    done = pgdyno("run", file, "--target", target, "--runs", tmp_path / "emptied", *more)
    left = counted(busy, sessions)[0][0]
    assert left < 20_000 and tells(done.json["answer"][0], "answer-rows-lost")
    assert re.search(r"sessions [\d,]+ -> [\d,]+\.", done.json["answer"][0])
    assert re.search(r"Rows that tables gained or lost: sessions -[\d,]+ \(-[\d.e+]+%\)", done.json["answer"][-1])


@pytest.mark.slow
def test_a_capture_that_only_reads_writes_nothing(busy: Server, sessions: str, tmp_path: Path) -> None:
    before = counted(busy, sessions)
    done = captured_run(busy, sessions, tmp_path / "reads", "--read-only")
    assert done.code in (0, 1), done.err
    texts = {p.stem: p.read_text() for p in (tmp_path / "reads").glob("*.sql")}
    assert any("harmless(" in t for t in texts.values()), texts
    assert not any(word in t for word in ("purg", "nightly", "delete") for t in texts.values()), texts
    readme = (tmp_path / "reads" / "README.md").read_text()
    assert readme.count(messages.text("capture-calls-volatile", function="public.purge_old()")) == 2, readme
    assert counted(busy, sessions) == before
    # Whatever stands in its scripts.
    first = next((tmp_path / "reads").glob("*.sql"))
    first.write_text("select purge_old();\n")
    (file,) = (tmp_path / "reads").glob("*.toml")
    assert "read_only = true" in file.read_text()
    more = ["--clients", 2, "--duration", 0.5, "--warmup", 0, "--repetitions", 1, "--force", "--json", "--rate", "0"]
    done = pgdyno("run", file, "--target", busy.conninfo(dbname=sessions), "--runs", tmp_path / "again", *more)
    assert done.json["trials"][0]["summary"]["failed"].keys() == {"25006"}, done.json
    assert counted(busy, sessions) == before


@pytest.mark.slow
def test_what_is_no_log_is_said(busy: Server, tmp_path: Path) -> None:
    for name, text, words in (("x.csv", "a,b\n", "not a csvlog"), ("x.json", "{\n", "x.json:1")):
        (tmp_path / name).write_text(text)
        more = ["--log", tmp_path / name, "--output", tmp_path / "out"]
        done = pgdyno("capture", "--target", busy.conninfo(), *more)
        assert done.code == 2 and words in done.err, done.err
    missing = pgdyno("capture", "--target", busy.conninfo(dbname="template1"), "--output", tmp_path / "out")
    assert missing.code == 3 and tells(missing.err, "remedy-create-extension-pg-stat-statements")
    assert not (tmp_path / "out").exists() and json.dumps(busy.sql("select 1")) == "[[1]]"


@pytest.mark.slow
def test_what_may_be_secret_is_written_nowhere(busy: Server, tmp_path: Path) -> None:
    """Rows that are there have it; and numbers, dates and references are no secrets."""
    busy.sql("drop database if exists private with (force)")
    busy.sql("create database private")
    busy.sql("create extension pg_stat_statements", dbname="private")
    busy.sql(
        """create table cards (card_id int primary key, card text unique, session uuid, auth jsonb, key_at date);
           create table uses (use_id int primary key, card_id int references cards, api_key varchar(80), pin bytea);
           create index on uses (api_key); create index on uses (card_id);
           insert into cards select i, 'S3CRET' || i, gen_random_uuid(), '{}', now() from generate_series(1, 3000) i;
           insert into uses select i, i, 'S3CRET' || i, 'S3CRET' from generate_series(1, 3000) i""",
        dbname="private",
    )
    busy.sql("vacuum analyze", dbname="private")
    with psycopg.connect(busy.conninfo(dbname="private"), autocommit=True) as conn:
        for n in range(1, 31):
            for text in (
                "select * from cards where card = %s", "select * from uses where api_key = %s",
                "select * from uses where pin = %s::bytea", "select * from cards where auth = %s::jsonb",
                "select * from cards where session = %s::uuid",
            ):  # fmt: skip
                value = {"auth": '"S3CRET"', "session": f"00000000-0000-0000-0000-{n:012}"}.get(
                    text.split()[-3], f"S3CRET{n}"
                )
                conn.execute(text.encode(), [value])
            conn.execute("select * from uses where card_id = %s", [n])
            conn.execute("select * from cards where key_at > %s::date", ["2020-01-01"])
    out = tmp_path / "out"
    done = pgdyno("capture", "--target", busy.conninfo(dbname="private"), "--output", out)
    assert done.code == 0, done.err
    texts = {p.stem: p.read_text() for p in out.glob("*.sql")}
    written = "".join([*texts.values(), done.out, done.err, (out / "README.md").read_text()])
    assert "S3CRET" not in written
    of = {column: t for t in texts.values() for column in re.findall(r"where (\w+) [=>]", t)}
    assert "\\pick uses p1_" in of["api_key"] and "\\set" in of["card_id"] and "::date" in of["key_at"]
    (file,) = out.glob("*.toml")
    summary = run(file, busy, tmp_path, "private")
    assert len(summary["scripts"]) == len(texts)  # type: ignore[arg-type]
    # What a run has read stands nowhere in what it writes.
    for path in (p for p in (tmp_path / "runs").rglob("*") if p.is_file()):
        assert b"S3CRET" not in path.read_bytes(), path
    busy.sql("drop database private with (force)")


def test_why_nothing_was_captured_is_said(busy: Server, tmp_path: Path) -> None:
    busy.sql("drop database if exists silent with (force)")
    busy.sql("create database silent")
    busy.sql("create extension pg_stat_statements", dbname="silent")
    target = busy.conninfo(dbname="silent")
    busy.sql("alter database silent set pg_stat_statements.track = none")
    busy.sql("select pg_stat_statements_reset()", dbname="silent")
    done = pgdyno("capture", "--target", target, "--output", tmp_path / "none")
    assert done.code == 2 and messages.text("capture-track-none") in done.err, done.err
    assert not (tmp_path / "none").exists()
    busy.sql("drop database silent with (force)")


def test_constants_of_what_was_prepared_before_a_reset(busy: Server, tmp_path: Path) -> None:
    """They are counted with their texts: what tells a row is drawn, what tells the work stays."""
    busy.sql("drop database if exists prepared with (force)")
    busy.sql("create database prepared")
    busy.sql("create extension pg_stat_statements", dbname="prepared")
    busy.sql(
        "create table person (id int primary key, name text, kind int); "
        "insert into person select i * 7, 'MaRk' || i, i % 3 from generate_series(1, 4000) i",
        dbname="prepared",
    )
    busy.sql("vacuum analyze", dbname="prepared")
    texts = (
        "select name from person where id = 24682", "select id from person where name = 'MaRk77' and kind = 2 limit 5",
        "select pg_notify('MaRkchan', 'x')", "select count(*) from person where kind = 1",
    )  # fmt: skip
    with psycopg.connect(busy.conninfo(dbname="prepared"), autocommit=True) as conn:
        conn.prepare_threshold = 0
        for text in texts:
            conn.execute(text.encode())
        conn.execute(b"select pg_stat_statements_reset()")
        for _ in range(20):
            for text in texts:
                conn.execute(text.encode())
    out = tmp_path / "out"
    done = pgdyno("capture", "--target", busy.conninfo(dbname="prepared"), "--output", out)
    assert done.code == 0, done.err
    scripts = "".join(p.read_text() for p in out.glob("*.sql"))
    written = "".join([*(p.read_text() for p in out.iterdir()), done.out, done.err])
    assert "24682" not in written and "mark" not in written.lower(), written
    assert "limit 5" in scripts and "kind = 1" in scripts and "kind = 2" in scripts, scripts
    busy.sql("drop database prepared with (force)")
