"""Rows that many transactions change."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes import wal_flush
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import shortened
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.diagnosis.thresholds import RowLocks
from pgdyno.message import Name, message
from pgdyno.units import Quantity, Share

WAITS = ("Lock:transactionid", "Lock:tuple")


def is_foreign(row: dict[str, Any]) -> bool:
    """Return True if the lock holder is not a client of pgdyno, and still existed when the sample was taken."""
    return not row["by_ours"] and bool(row["by"])


def foreign_seconds(r: Recorded) -> list[tuple[int, int]]:
    """Return the periods in which clients of pgdyno waited for other sessions, as pairs of start and end in ns."""
    return [(row["start_ns"], row["end_ns"]) for row in r.rows("blockers") if is_foreign(row)]


def most_blocked(e: Observed) -> tuple[str, float]:
    """Return the statement that waits for locks most often, and its share of the waiting statements."""
    counts = Counter(row["statement"] for row in e.whole("blockers"))
    if not counts:
        return "", 0.0
    statement, n = counts.most_common(1)[0]
    return statement, n / counts.total()


def _flushing(e: Observed, locked: Share) -> float:
    """Return the share of the clients not waiting for row locks that wait for WAL to be written to disk.

    Clients that do not wait for row locks may hold them.
    """
    flush = e.waiting(*wal_flush.WAITS)
    return flush.mean / (1 - locked.mean) if flush is not None and locked.mean < 1 else 0.0


def _judge(e: Observed) -> Finding | None:
    cost = e.waiting(*WAITS)
    blockers = e.whole("blockers")
    ours = 1 - sum(is_foreign(row) for row in blockers) / len(blockers) if blockers else 1.0
    deadlocks = e.mean("counters", "deadlocks_per_s") or 0.0
    if deadlocks and not e.has_deadlocks:
        deadlocks = 0.0
    if cost is None or (cost.mean * ours < RowLocks.SHARE and deadlocks < RowLocks.DEADLOCKS_PER_S):
        return None
    cost = Share(*(x * ours for x in (cost.mean, cost.low, cost.high)))
    statement, share = most_blocked(e)
    rate = (
        message("row-locks-deadlocks", rate=Quantity(deadlocks, "factor"))
        if deadlocks >= RowLocks.DEADLOCKS_PER_S
        else None
    )
    blocked = message("row-locks-statement", share=Quantity(share, "share"), statement=Name(shortened(statement)))
    flushing = _flushing(e, cost)
    return e.finding(
        CAUSE,
        message("row-locks", share=cost, deadlocks=rate, waiting=blocked if statement else None),
        cost, CLIENTS_TIME, Confidence.HIGH,
        message("row-locks-remedy-deadlocks" if deadlocks else "row-locks-remedy"),
        [Fact("row-locked", cost.mean * e.clients), Fact("deadlocks", deadlocks, "/s"),
         Fact("flushing", flushing, "%")],
        kind=Kind.LIMIT if flushing >= RowLocks.FLUSHING else Kind.TROUBLE,
    )  # fmt: skip


CAUSE = Cause("row-locks", Kind.TROUBLE, "hot rows", _judge)
