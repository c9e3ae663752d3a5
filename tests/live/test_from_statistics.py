"""A schema from a live database is filled as its statistics are, and no value of it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import pgdyno
from tests.support.server import Server

#: Known: 80, 15 and 5% of three states; 30% NULL; customers by Zipf's law; times that follow the key; 40 regions.
SCHEMA = """
create table customers (id int generated always as identity primary key, email text unique not null,
  region text not null, active boolean not null default true, score int);
create table orders (id bigint generated always as identity primary key, customer_id int not null references customers,
  state varchar(12) not null default 'new', note text, placed timestamptz not null, weight numeric(8, 2),
  kind text check (kind in ('MARKa', 'MARKb')));
insert into customers (email, region, active, score) select 'MARK' || i || '@x', 'MARK region ' || i % 40,
  i % 20 > 0, case when i % 2 = 0 then i % 7 end from generate_series(1, 2000) i;
insert into orders (customer_id, state, note, placed, weight, kind) select
  1 + least(1999, floor(exp(random() * ln(2000)))),
  case when i % 100 < 80 then 'MARKpaid' when i % 100 < 95 then 'MARKsent' else 'MARKlost' end,
  case when i % 10 < 7 then repeat('MARK', 10) || i end, timestamptz '2025-01-01' + i * interval '1 minute', i % 100,
  'MARKa' from generate_series(1, 20000) i;
"""
FIGURES = """
select attname, null_frac, case when n_distinct < 0 then -n_distinct * {rows} else n_distinct end,
  most_common_freqs[1], avg_width, correlation
from pg_catalog.pg_stats where tablename = '{table}'"""


def figures(server: Server, dbname: str, table: str, rows: int) -> dict[str, tuple[float, ...]]:
    found = server.sql(FIGURES.format(table=table, rows=rows), dbname=dbname)
    return {name: tuple(float(x or 0) for x in numbers) for name, *numbers in found}


@pytest.fixture
def live(server: Server) -> str:
    server.sql("drop database if exists statistics with (force)")
    server.sql("create database statistics")
    server.sql(SCHEMA, dbname="statistics")
    server.sql("vacuum analyze", dbname="statistics")
    return "statistics"


@pytest.mark.slow
def test_columns_are_filled_as_they_are_there(server: Server, live: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    done = pgdyno("new", file, "--from", server.conninfo(dbname=live))
    assert done.code == 0, done.err
    text = file.read_text()
    assert "MARK" not in text.replace("(MARKa, MARKb)", ""), text
    server.sql("drop database if exists statistics_filled with (force)")
    server.sql("create database statistics_filled")
    target = server.conninfo(dbname="statistics_filled")
    more = [
        "--clients",
        1,
        "--duration",
        0.5,
        "--warmup",
        0,
        "--repetitions",
        1,
        "--force",
        "--runs",
        tmp_path / "runs",
    ]
    done = pgdyno("run", file, "--target", target, *more)
    assert done.code == 0, (done.err, text)
    server.sql("analyze", dbname="statistics_filled")
    for table, rows, columns in (
        ("orders", 20_000, ("customer_id", "state", "note", "placed", "weight")),
        ("customers", 2_000, ("region", "active", "score")),
    ):
        there, here = (figures(server, name, table, rows) for name in (live, "statistics_filled"))
        for column in columns:
            nulls, distinct, most, width, correlation = zip(there[column], here[column], strict=True)
            assert here[column][0] == pytest.approx(there[column][0], abs=0.03), (column, nulls)
            if column in ("state", "region", "active", "score", "weight"):
                assert distinct[0] == distinct[1], (column, distinct)
            if column not in ("note", "placed"):
                assert most[1] == pytest.approx(most[0], rel=0.35, abs=0.02), (column, most)
            if column != "weight":
                assert width[1] == pytest.approx(width[0], rel=0.2, abs=1), (column, width)
            if column == "placed":
                assert correlation[1] > 0.9, correlation
