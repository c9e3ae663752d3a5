"""A lock that another session holds."""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes.row_locks import foreign_seconds, is_foreign
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import ForeignLock
from pgdyno.message import Name, message


def _judge(e: Observed) -> Finding | None:
    rows = [row for row in e.whole("blockers") if is_foreign(row)]
    if not rows:
        return None
    # While somebody else holds what one of ours waits for, the others may wait for that one: all locks count.
    spans = {id(r): foreign_seconds(r) for r in e.trials}
    cost = e.time_share(
        lambda what: what[1] == "Lock",
        within=lambda r, start, end: any(a < end and b > start for a, b in spans[id(r)]),
    )
    if cost is None or cost.mean < ForeignLock.SHARE:
        return None
    worst = max(rows, key=lambda row: row["by_seconds"])
    held = worst["by_statement"]
    return e.finding(
        CAUSE,
        message(
            "foreign-lock", share=cost, relation=Name(worst["relation"] or worst["lock"]),
            session=Name(worst["by"]) if worst["by"] else message("session-unnamed"),
            state=Name(worst["by_state"]) if worst["by_state"] else message("session-active"),
            statement=Name(held[:80]) if held else message("statement-none"),
        ),
        cost, CLIENTS_TIME, Confidence.HIGH,
        message("foreign-lock-remedy"),
        [Fact("transaction-age", worst["by_seconds"] * 1e9, "ns"), Fact("times-seen", len(rows))],
    )  # fmt: skip


CAUSE = Cause("foreign-lock", Kind.TROUBLE, "a lock held by another session", _judge)
