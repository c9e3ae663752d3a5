"""Scripts that others have published behave as with pgbench: what is said, the exit code, and the rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pgdyno.cluster.binaries import wheel_folder

from tests.conformance.test_seeds import OURS
from tests.support.server import Server
from tests.support.twins import Answer, Case, answer, normal

CASES = Path(__file__).parents[1] / "cases"
PUBLISHED = sorted(p for p in CASES.glob("5*") if p.is_dir())
COUNTED = ("ord", "item", "pay", "vote", "inv", "kv", "seck", "stats", "base")


@pytest.fixture(scope="module")
def pgbench() -> Path:
    folder = wheel_folder()
    assert folder is not None
    return folder / "pgbench"


def answered(program: Path, case: Path, server: Server, dbname: str) -> tuple[Answer, list[tuple[object, ...]]]:
    """What a program says of a case, and the rows that it leaves."""
    options = re.search(r"pgdyno pgbench ([^;#]*?) -f (\S+)", (case / "cmd").read_text())
    assert options is not None
    setup = (case / "setup.sql").read_text()
    server.sql("drop schema public cascade; create schema public", dbname=dbname)
    server.sql(setup, dbname=dbname)
    said = answer(program, Case(case.name, f"{options[1]} -f {case / options[2]}"), case, server, dbname)
    rows = []
    for table in COUNTED:
        if f"create table {table}" in setup:
            rows += server.sql(f"select '{table}', count(*) from {table}", dbname=dbname)
    return said, rows


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda p: p.name)
def test_published_scripts_run_as_with_pgbench(server: Server, database: str, pgbench: Path, case: Path) -> None:
    theirs, their_rows = answered(pgbench, case, server, database)
    ours, our_rows = answered(OURS, case, server, database)
    assert ours.code == theirs.code, ours.err
    assert normal(ours.out, True) == normal(theirs.out, False)
    assert sorted(normal(ours.err, True).split("\n")) == sorted(normal(theirs.err, False).split("\n"))
    assert our_rows == their_rows and our_rows


@pytest.mark.parametrize(("script", "options"), [
    ("ser.sql", "--max-tries=1"), ("ser.sql", "--max-tries=50"), ("dup.sql", "--continue-on-error"),
])  # fmt: skip
def test_what_was_processed_is_what_is_there(server: Server, database: str, script: str, options: str) -> None:
    """Case 44: failed and retried transactions leave nothing, and are counted apart."""
    case = CASES / "44-failed-and-retried"
    server.sql("create table inv(v int primary key, n int); insert into inv select g, 0 from generate_series(1, 3) g; "
               "create table vote(p int, u int, primary key(p, u))", dbname=database)  # fmt: skip
    words = f"-n -c 6 -t 100 -f {case / script} --failures-detailed {options}"
    done = answer(OURS, Case(case.name, words), case, server, database)
    found = re.search(r"actually processed: (\d+)", done.out)
    assert found is not None, done
    there = server.sql("select (select sum(n) from inv) + (select count(*) from vote)", dbname=database)[0][0]
    assert int(found[1]) == there > 0, done.out


@pytest.mark.parametrize("limit", [pytest.param(None, marks=pytest.mark.slow), 60])
def test_latency_counts_from_the_schedule(server: Server, database: str, limit: int | None) -> None:
    """Case 43: twice as many transactions are scheduled as one client can do."""
    case = CASES / "43-rate-beyond-capacity"
    words = f"-n -c 1 -T 4 -R 100 -f {case / 'slow.sql'}" + (f" -L {limit}" if limit else "")
    said = answer(OURS, Case("beyond", words), case, server, database)
    assert said.code == 0, said.err
    (latency,) = map(float, re.findall(r"latency average = ([\d.]+) ms", said.out))
    if limit is None:
        # The schedule runs away by half of the time.
        assert 600 < latency < 3000, said.out
    else:
        (skipped,) = map(float, re.findall(r"number of transactions skipped: \d+ \(([\d.]+)%\)", said.out))
        assert 30 < skipped < 80 and latency < 2 * limit, said.out
