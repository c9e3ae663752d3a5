"""Estimates of a plan, and what a captured parameter may reveal."""

from __future__ import annotations

from typing import Any

import pytest
from pgdyno.capture import harm, secrets, sql, statements
from pgdyno.capture.draws import Draw
from pgdyno.capture.pace import think_time
from pgdyno.capture.relations import Relations


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
    expression = secrets.looks_random(type_)
    assert drawn in expression and secrets.holds_none(type_) is expression.startswith("null::")


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


def test_keys_of_a_transaction_belong_together() -> None:
    """The same row again, the next one, always a later one; and values that have nothing to do with each other."""
    r = Relations()
    alone = iter(range(9))

    def draw(values: list[str | None], of: tuple[str, str] | None = ("acct", "id")) -> Draw:
        n = next(alone)
        return r.draw(of, values, f"p{n}", lambda: Draw((f"\\set p{n} random(1, 9)",), f":p{n}"))

    assert draw(["1", "2", "7"]).expression == ":p0"
    assert draw(["1", "2", "7"]) == Draw((), ":p0")
    assert draw(["2", "3", "8"]).lines == ("\\set p2d 1", "\\set p2 :p0 + (:p2d)")
    assert draw(["4", "9", "8"]).lines[-1] == "\\set p3 :p0 + (:p3d)"
    assert draw(["9", "1", "8"]).lines == ("\\set p4 random(1, 9)",)
    assert draw(["1", "2", None]).expression == ":p5"
    assert draw(["1", "2", "7"], ("other", "id")).expression == ":p6" and draw(["x", "y", "z"]).expression == ":p7"


def test_think_times_are_kept_where_they_are_known() -> None:
    assert think_time("t2", [None, None]) == () and think_time("t2", [0.4, -0.3, 0.2]) == ()
    # Milliseconds of the log's clock make some negative; their mean stays.
    (line, *more) = think_time("t2", [-1.0, 0.0, 5.0, 12.0])
    assert "\n".join([line, *more]).count("random(") >= 2 and line.startswith("\\set t2")
    assert think_time("t2", [20.0] * 50) == ("\\set t2 20000",)
