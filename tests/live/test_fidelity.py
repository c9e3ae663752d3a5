"""Captured workloads are the same work: programs with known statements are captured, and their captures run."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.cli import pgdyno
from tests.support.production import PROGRAMS
from tests.support.server import Server

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


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_a_call_are_those_of_production(server: Server, tmp_path: Path, name: str) -> None:
    produced(server, name)
    out = tmp_path / name
    done = pgdyno("capture", "--target", server.conninfo(dbname=name), "--output", out, "--top", "40")
    assert done.code == 0, done.err
    print((out / "README.md").read_text())
    server.sql(f"create database {name}_copy template {name}")
    (file,) = out.glob("*.toml")
    more = ["--clients", "2", "--duration", "6", "--warmup", "1", "--repetitions", "1", "--force"]
    target = server.conninfo(dbname=f"{name}_copy")
    done = pgdyno("run", file, "--target", target, "--runs", tmp_path / "runs", "--json", *more)
    (trial,) = done.json["trials"]
    print(done.json["answer"], trial["summary"]["failed"])
    (run,) = (tmp_path / "runs").iterdir()
    pgdyno("report", run)
    with (run / "report-fidelity.csv").open(encoding="utf-8") as f:
        lines = list(csv.DictReader(f))
    for line in lines:
        print(*line.values(), sep="\t")
    print({figure: within(lines, figure) for figure in ("rows", "blocks", "WAL B")})
    assert within(lines, "rows") >= 90
