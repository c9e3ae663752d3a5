"""Workloads from production: from pg_stat_statements and from logs of a real server, and run again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.cli import pgdyno
from tests.support.server import Server

CONF = """
shared_preload_libraries = 'pg_stat_statements'
log_destination = 'csvlog,jsonlog'
logging_collector = on
log_directory = 'log'
log_filename = 'pg.log'
log_min_duration_statement = 0
"""


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
        yield s


def run(file: Path, server: Server, folder: Path) -> dict[str, object]:
    more = ["--clients", "2", "--duration", "0.5", "--warmup", "0.1", "--repetitions", "1", "--force"]
    done = pgdyno("run", file, "--target", server.conninfo(), "--runs", folder / "runs", "--json", *more)
    assert done.code == 0, done.err
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
    region = next(t for t in texts.values() if "where region = (" in t)
    # As ANALYZE has it: nine of ten are eu.
    assert "array['eu', 'us']" in region and "\\set p2 10" in region and re.search("<= (9|89)", region)
    readme = (out / "README.md").read_text()
    assert "It asks the catalog" not in readme and "it asks the catalog" in readme and "Each statement is one" in readme
    (file,) = out.glob("*.toml")
    assert len(run(file, busy, tmp_path)["scripts"]) == 5  # type: ignore[arg-type]
    again = pgdyno("capture", "--target", busy.conninfo(), "--output", out)
    assert again.code == 2 and "is there already" in again.err
    reads = tmp_path / "reads"
    assert pgdyno("capture", "--target", busy.conninfo(), "--output", reads, "--read-only").code == 0
    assert not any("insert into" in p.read_text().lower() for p in reads.glob("*.sql"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pg.csv", "pg.json"])
def test_a_workload_is_made_of_a_log(busy: Server, tmp_path: Path, name: str) -> None:
    log = tmp_path / name
    log.write_bytes((busy.data / "log" / name).read_bytes())
    out = tmp_path / "from-log"
    done = pgdyno("capture", "--target", busy.conninfo(), "--log", log, "--output", out)
    assert done.code == 0, done.err
    texts = [p.read_text() for p in out.glob("*.sql")]
    # The transaction is one script, its two statements together.
    whole = next(t for t in texts if "BEGIN" in t and "COMMIT" in t)
    assert whole.lower().count("insert into orders") == 1 and "UPDATE customers" in whole
    # Values are those that were seen.
    assert any("random(1, " in t or "random(2, " in t for t in texts)
    (file,) = out.glob("*.toml")
    run(file, busy, tmp_path)


def test_what_is_no_log_is_said(busy: Server, tmp_path: Path) -> None:
    for name, text, words in (("x.csv", "a,b\n", "no csvlog"), ("x.json", "{\n", "x.json:1")):
        (tmp_path / name).write_text(text)
        more = ["--log", tmp_path / name, "--output", tmp_path / "out"]
        done = pgdyno("capture", "--target", busy.conninfo(), *more)
        assert done.code == 2 and words in done.err, done.err
    missing = pgdyno("capture", "--target", busy.conninfo(dbname="template1"), "--output", tmp_path / "out")
    assert missing.code == 3 and "CREATE EXTENSION pg_stat_statements" in missing.err
    assert not (tmp_path / "out").exists() and json.dumps(busy.sql("select 1")) == "[[1]]"
