"""Drivers of Python: names, placeholders, tags and errors."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from types import SimpleNamespace

import psycopg
import pymysql
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno.driver import adapters, named
from pgdyno.driver.adapters import DbApi, Failed, Server, Statement
from pgdyno.driver.placeholders import converted

SERVER = Server("", "h", 1, "u", None, "d", "postgresql", "prepared")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python:psycopg", ("psycopg", "")),
        ("python:my.pool:make.one", ("my.pool", "make.one")),
        ("python:", None),
        ("python:a:b:c", None),
        ("python:a;import os", None),
        ("python:../x", None),
        ("psycopg", None),
    ],
)
def test_names(text: str, expected: tuple[str, str] | None) -> None:
    found = named.parse(text)
    assert (None if found is None else (found.module, found.factory)) == expected


#: Parts that hold no placeholder, although some look like it.
_QUOTED = [
    "'a $1 ? %'",
    '"c$2"',
    "-- $3 ?\n",
    "/* $1 /* ? */ % */",
    "$$ $1 $$",
    "$q$ '$2 $q$",
    "e'\\'$1'",
    "x$1",
    " + ",
    "%",
]


@given(st.lists(st.one_of(st.sampled_from(_QUOTED), st.integers(1, 5)), max_size=8))
def test_placeholders_keep_their_values(parts: list[str | int]) -> None:
    """Whatever stands between them, each placeholder gets the value that it had, and all other text stays."""
    sql = " ".join(p if isinstance(p, str) else f"${p}" for p in parts)
    numbers = [p for p in parts if isinstance(p, int)]
    text, order = converted(sql, "format")
    assert [n + 1 for n in order] == numbers
    # As a driver replaces them.
    assert text % tuple(f"${n + 1}" for n in order) == sql
    for style, mark in (("dollar", "$"), ("numeric", ":"), ("named", ":p")):
        text, order = converted(sql, style)  # type: ignore[arg-type]
        assert order == list(range(max(numbers, default=0)))
        assert text == " ".join(p if isinstance(p, str) else f"{mark}{p}" for p in parts)


def test_question_marks_of_mysql() -> None:
    sql = "select `a?`, '?\\'?', ? from t # ?\nwhere b = ? and c like '5%'"
    text, order = converted(sql, "format", are_marks=True)
    assert order == [0, 1] and text % ("?", "?") == sql


@pytest.mark.parametrize(
    ("sql", "count", "tag"),
    [
        ("insert into t values (1)", 1, "INSERT 0 1"),
        ("UPDATE t SET a = 1", 0, "UPDATE 0"),
        ("select 1", 1, "SELECT 1"),
        ("end;", -1, "COMMIT"),
        ("commit", -1, "COMMIT"),
        ("start transaction", -1, "BEGIN"),
        ("with a as (select 1) select 2", 3, "SELECT 3"),
        ("", -1, ""),
    ],
)
def test_tags(sql: str, count: int, tag: str) -> None:
    assert adapters.tag_of(sql, count) == tag


def test_codes_of_errors() -> None:
    assert adapters.sqlstate_of(pymysql.OperationalError(1213, "Deadlock found")) == "40001"
    assert adapters.sqlstate_of(pymysql.OperationalError(1205, "Lock wait timeout")) == "M1205"
    assert adapters.sqlstate_of(pymysql.ProgrammingError(1054, "Unknown column")) == "42S22"
    assert adapters.sqlstate_of(psycopg.errors.DeadlockDetected("x")) == "40P01"
    assert adapters.sqlstate_of(Exception(1213, "of another kind")) == "XX000"
    assert adapters.sqlstate_of(Exception("no")) == "XX000" == adapters.sqlstate_of(Exception())


def test_a_driver_of_the_standard() -> None:
    """sqlite3 is a driver of PEP 249 with question marks."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    driver = adapters.adapted(connection, "sqlite3", SERVER)
    assert isinstance(driver, DbApi)
    create = Statement("create table t (a integer, b text)", (), "simple")
    insert = Statement("insert into t values ($1, $2)", (5, "x%$1"), "prepared")
    select = Statement("select b, a from t where a = $1 and a = $1", (5,), "extended")
    ((_,), (inserted,), (found,)) = (driver.run([s])[0] for s in (create, insert, select))
    assert inserted == (None, (), "INSERT 0 1")
    assert found == (["b", "a"], [("x%$1", 5)], "SELECT 1")
    with pytest.raises(Failed) as failed:
        driver.run([Statement("select nothing", (), "simple")])
    assert not failed.value.done and "nothing" in str(failed.value) and failed.value.sqlstate == "XX000"
    # Sent together they would be one transaction.
    with pytest.raises(Failed) as failed:
        driver.run([select, select])
    assert failed.value.sqlstate == "0A000"


def test_a_driver_without_several_results_and_one_that_loses_its_connection() -> None:
    class NotSupportedError(Exception):
        pass

    class Cursor:
        description = None
        rowcount = 1

        def execute(self, text: str, values: object = None) -> None:
            if text == "lost":
                connection.open = False
                raise OSError("gone")

        def nextset(self) -> None:
            raise NotSupportedError

    connection = SimpleNamespace(cursor=Cursor, open=True)
    driver = DbApi(connection, "format")
    assert driver.run([Statement("DELETE FROM t", (), "simple")]) == [[(None, (), "DELETE 1")]]
    with pytest.raises(Failed) as failed:
        driver.run([Statement("lost", (), "simple")])
    assert failed.value.is_fatal


def test_settings_of_a_session() -> None:
    """Drivers may ignore what a connection string has of them: whoever may only read must not write."""
    at = replace(
        SERVER, options={"options": r"-c default_transaction_read_only=on --search-path=a\ b -csomething=it's"}
    )
    texts = [s.sql for s in adapters.preparing(replace(at, settings={"application_name": "x"}))]
    assert texts == [
        "SELECT set_config('application_name', 'x', false)",
        "SELECT set_config('default_transaction_read_only', 'on', false)",
        "SELECT set_config('search_path', 'a b', false)",
        "SELECT set_config('something', 'it''s', false)",
    ]
    mysql = replace(SERVER, dialect="mysql", settings={"sql_mode": "'ANSI'"})
    assert [s.sql for s in adapters.preparing(mysql)] == ["SET SESSION sql_mode = 'ANSI'"]


def test_values_as_asyncpg_wants_them() -> None:
    """It takes no text for a number, and no number for a text."""
    for value, kind, expected in (
        ("5", "int8", 5), ("2.5", "float8", 2.5), ("1.10", "numeric", Decimal("1.10")), ("t", "bool", True),
        (5, "text", "5"), (5, "int4", 5), (5.0, "int4", 5), (5, "float8", 5), ("x", "uuid", "x"), (None, "int4", None),
        ("2026-11-29 01:02:03", "timestamp", datetime(2026, 11, 29, 1, 2, 3)),
    ):  # fmt: skip
        found = adapters._typed(value, kind)
        assert found == expected and type(found) is type(expected), (value, kind)


def test_what_is_no_driver_is_refused() -> None:
    with pytest.raises(TypeError):
        adapters.adapted(object(), "sqlite3", SERVER)
    with pytest.raises(AttributeError):
        adapters.factory("json", "")
    with pytest.raises(ImportError):
        adapters.factory("no_such_module", "")
