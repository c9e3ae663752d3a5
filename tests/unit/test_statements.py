"""What is said of a statement by its words."""

from __future__ import annotations

import pytest
from pgdyno.statements import writes


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1)", "with x as (delete from t returning 1) select * from x", "select nextval('s')",
        "MERGE INTO t USING s ON true", "select 1 from t for no key  update", "select 1 from t for share",
        "copy t (a) from stdin", "\\set x 1\n  delete from t where a = :x", "explain (analyze) update t set a = 1",
        "TRUNCATE t", "create table x()", "drop table x", "BEGIN;\nUPDATE t SET a = 1;\nEND;",
    ],
)  # fmt: skip
def test_what_changes_something_writes(text: str) -> None:
    assert writes(text)


@pytest.mark.parametrize(
    "text",
    [
        "select 1", "select 'insert into t' from t", 'select "update" from t', "select update_time from t",
        "-- delete all\nselect 1", "select /* drop\ntable */ 1", "select $$update$$, $x$ create $x$",
        "copy t to stdout", "select title, copy from ads", "select delete, update from acl",
        "select max(update), coalesce(copy, 1) from t", "\\set insert random(1, 9)\nselect 1",
        "begin; select last_value from s; commit", "select substring(a from 2) from t",
    ],
)  # fmt: skip
def test_what_only_reads_does_not(text: str) -> None:
    assert not writes(text)
