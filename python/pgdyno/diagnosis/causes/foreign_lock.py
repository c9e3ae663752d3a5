"""A lock that another session holds."""

from __future__ import annotations

from pgdyno.diagnosis.causes.row_locks import foreign_seconds, is_foreign
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.said import part

_SHARE = 0.02


def _judge(e: Evidence) -> Finding | None:
    rows = [row for row in e.whole("blockers") if is_foreign(row)]
    if not rows:
        return None
    # While somebody else holds what one of ours waits for, the others may wait for that one: all locks count.
    spans = {id(r): foreign_seconds(r) for r in e.trials}
    cost = e.part(
        lambda what: what[1] == "Lock",
        within=lambda r, start, end: any(a < end and b > start for a, b in spans[id(r)]),
    )
    if cost is None or cost.mean < _SHARE:
        return None
    worst = max(rows, key=lambda row: row["by_seconds"])
    what = worst["relation"] or worst["lock"]
    held = worst["by_statement"] or "no statement"
    return e.finding(
        CAUSE,
        f"Another session ({worst['by'] or 'unnamed'}, {worst['by_state'] or 'at work'}: {held[:80]}) holds a lock on "
        f"{what} that clients wait for: {part(cost)} of their time.",
        cost, "the clients' time", Confidence.HIGH,
        "End that session's transaction; set lock_timeout for maintenance, idle_in_transaction_session_timeout for "
        "the rest.",
        [Fact("its transaction's age", worst["by_seconds"] * 1e9, "ns"), Fact("times seen", len(rows))],
    )  # fmt: skip


CAUSE = Cause("foreign-lock", Kind.TROUBLE, "a lock held by another session", _judge)
