"""Random changes of definitions, with known truth, are read from the catalogs of a database."""

from __future__ import annotations

import random

import psycopg
import pytest
from pgdyno import i18n
from pgdyno.cluster import administration
from pgdyno.collect import catalog

from tests.support.schemas import target_of
from tests.support.server import Server

_BEGINNING = """
create table t (id int primary key, v int, w text); create index t_v on t (v); create table child (id int, t int);
create function f() returns trigger language plpgsql as $$ begin return new; end $$;
create table "Odd name" (a int); create schema other; create table other.t (a int)
"""
#: Statements, and what is told of each: id, kind of object, name.
_Change = tuple[str, str, str, str]
_CHANGES: tuple[_Change, ...] = (
    ("alter table t drop constraint t_pkey", "schema-dropped", "index", "t_pkey"),
    ("drop index t_v", "schema-dropped", "index", "t_v"),
    ("create index t_w on t (w)", "schema-created", "index", "t_w"),
    ("create index other_a on other.t (a)", "schema-created", "index", "other.other_a"),
    ("alter table child add column z int", "schema-created", "column", "child.z"),
    ("alter table child drop column t", "schema-dropped", "column", "child.t"),
    ("alter table child alter id type bigint", "schema-changed-values", "column", "child.id"),
    ("alter table t set (fillfactor = 50)", "schema-changed-values", "options", "t"),
    ('alter table "Odd name" set unlogged', "schema-changed-values", "persistence", '"Odd name"'),
    (
        "create trigger nap before update on t for each row execute function f()",
        "schema-created", "trigger", "t.nap",
    ),
    (
        "create or replace function f() returns trigger language plpgsql as $$ begin return old; end $$",
        "schema-changed", "function", "f()",
    ),
    ("create statistics s on v, w from t", "schema-created", "statistics", "t.s"),
    ("create table made (id int primary key, v int)", "schema-created", "table", "made"),
    ("drop table other.t", "schema-dropped", "table", "other.t"),
    ("alter database {database} set work_mem = '8MB'", "schema-created", "default", "work_mem (database)"),
    (
        "alter role current_user in database {database} set work_mem = '9MB'",
        "schema-created", "default", "work_mem (postgres in database)",
    ),
    ("create temporary table gone (a int)", "", "", ""),
    ("insert into t values (1, 1, 'x')", "", "", ""),
    ("analyze t", "", "", ""),
)  # fmt: skip


def _told(server: Server, database: str, chosen: list[_Change]) -> set[tuple[str, str, str]]:
    with psycopg.connect(server.conninfo(dbname=database), autocommit=True) as user:
        user.execute(_BEGINNING)
        before = _read(server, database)
        assert catalog.changes(before, _read(server, database)) == []
        for statement, *_ in chosen:
            user.execute(statement.format(database=database).encode())
        found = catalog.changes(before, _read(server, database))
    for text in found:
        assert i18n.text(text)
    return {(m.id, m.args["object"].id.removeprefix("object-"), m.args["name"].text) for m in found}  # type: ignore[union-attr]


def _read(server: Server, database: str) -> catalog.Catalog:
    with administration.connect(target_of(server, database)) as conn:
        return catalog.read(conn)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))])
def test_random_changes_are_told(server: Server, database: str, seed: int) -> None:
    chosen = random.Random(seed).sample(_CHANGES, 7)
    statements = [statement for statement, *_ in chosen]
    # An index goes with its table, which is told alone; and what was made on a table that is gone never was.
    gone = "drop table other.t" in statements
    expected = {(id, kind, name) for _, id, kind, name in chosen if id and not (gone and name == "other.other_a")}
    assert _told(server, database, sorted(chosen, key=lambda c: c[0].startswith("drop table"))) == expected
