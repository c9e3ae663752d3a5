"""Estimates of a plan, and what a captured parameter may reveal."""

from __future__ import annotations

from typing import Any

import pytest
from pgdyno.capture import harm, sql, statements


def node(kind: str, rows: float, *inner: Any, relationship: str = "Outer") -> dict[str, Any]:
    return {"Node Type": kind, "Plan Rows": rows, "Plans": list(inner), "Parent Relationship": relationship}


@pytest.mark.parametrize(
    ("plan", "changed"),
    [
        (node("ModifyTable", 0, node("Seq Scan", 7)), [7.0]),
        # DELETE in a CTE below an aggregate; a subplan of RETURNING; partitions before 14.
        (node("Aggregate", 1, node("ModifyTable", 0, node("Seq Scan", 40), relationship="InitPlan")), [40.0]),
        (node("ModifyTable", 0, node("Result", 1), node("Seq Scan", 99, relationship="SubPlan")), [1.0]),
        (node("ModifyTable", 0, *(node("Seq Scan", 3, relationship="Member") for _ in range(2))), [6.0]),
        (node("Seq Scan", 5), []),
    ],
)
def test_rows_are_those_that_are_changed(plan: dict[str, Any], changed: list[float]) -> None:
    assert list(harm._changes(plan)) == changed


def test_ten_times_as_many_rows_are_too_many() -> None:
    assert harm.differs(11, 1) and not harm.differs(10, 1) and harm.differs(1, 0) and not harm.differs(0, 0)


@pytest.mark.parametrize(
    ("type_", "drawn"),
    [
        ("public.citext", "::public.citext)"), ("text[]", "array["), ("character", "::bpchar)"), ("uuid", "::uuid)"),
        ("bytea", "decode("), ("jsonb", "to_jsonb("), ("integer", "null::integer"), ("date", "null::date"),
    ],
)  # fmt: skip
def test_what_is_generated_fits_its_type(type_: str, drawn: str) -> None:
    expression = statements.by_chance(type_)
    assert drawn in expression and statements.is_open(type_) is expression.startswith("null::")


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("/* x */ delete from t", True), ("with gone as (delete from t returning 1) select 1", True),
        ("with q as (select 1) update t set a = 1", True), ("with q as (select 1 for update) select 1", False),
        ("insert into t values (1)", False), ("select 1", False),
    ],
)  # fmt: skip
def test_what_changes_rows(text: str, changes: bool) -> None:
    assert (statements._CHANGES.match(sql.bare(text)) is not None) is changes
