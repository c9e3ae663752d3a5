"""Rows that many transactions change."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pgdyno.diagnosis.causes import wal_flush
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.diagnosis.said import part, percent, shortened

WAITS = ("Lock:transactionid", "Lock:tuple")
_SHARE = 0.05
#: Of the clients without such a wait, the part that waits for WAL, from which on locks are held for as long as a flush
#: takes: then they are ranked beside it, and the larger comes first.
_FLUSHING = 0.5
#: A second, that are said.
_DEADLOCKS = 0.05


def is_foreign(row: dict[str, Any]) -> bool:
    """Return True if the lock holder is not a client of pgdyno, and still existed when the sample was taken."""
    return not row["by_ours"] and bool(row["by"])


def foreign_seconds(r: Recorded) -> list[tuple[int, int]]:
    """Return the periods in which clients of pgdyno waited for other sessions, as pairs of start and end in ns."""
    return [(row["start_ns"], row["end_ns"]) for row in r.rows("blockers") if is_foreign(row)]


def most_blocked(e: Evidence) -> tuple[str, float]:
    """Return the statement that waits for locks most often, and its share of the waiting statements."""
    counts = Counter(row["statement"] for row in e.whole("blockers"))
    if not counts:
        return "", 0.0
    statement, n = counts.most_common(1)[0]
    return statement, n / counts.total()


def _flushing(e: Evidence, locked: Part) -> float:
    """Return the share of the clients not waiting for row locks that wait for WAL to be written to disk.

    Clients that do not wait for row locks may hold them.
    """
    flush = e.waiting(*wal_flush.WAITS)
    return flush.mean / (1 - locked.mean) if flush is not None and locked.mean < 1 else 0.0


def _judge(e: Evidence) -> Finding | None:
    cost = e.waiting(*WAITS)
    blockers = e.whole("blockers")
    ours = 1 - sum(is_foreign(row) for row in blockers) / len(blockers) if blockers else 1.0
    deadlocks = (e.mean("counters", "deadlocks_per_s") or 0.0) if e.has_deadlocks else 0.0
    if cost is None or (cost.mean * ours < _SHARE and deadlocks < _DEADLOCKS):
        return None
    cost = Part(*(x * ours for x in (cost.mean, cost.low, cost.high)))
    statement, share = most_blocked(e)
    words = f", with {deadlocks:.3g} deadlocks a second" if deadlocks >= _DEADLOCKS else ""
    words += f"; {percent(share)} of the waiting statements are: {shortened(statement)}" if statement else ""
    flushing = _flushing(e, cost)
    order = "Change rows in one order in all transactions: then none wait in a circle. " if deadlocks else ""
    return e.finding(
        CAUSE,
        f"Transactions wait for each other's row locks {part(cost)} of the clients' time{words}.",
        cost, "the clients' time", Confidence.HIGH,
        f"{order}Spread the updates over more rows (TPC-B: a scale above the number of clients; TPC-C: more "
        "warehouses); update the hot row last in the transaction; shorten what comes between it and COMMIT.",
        [Fact("clients waiting for row locks", cost.mean * e.clients), Fact("deadlocks", deadlocks, "/s"),
         Fact("of the others, waiting for WAL", flushing, "%")],
        kind=Kind.LIMIT if flushing >= _FLUSHING else Kind.TROUBLE,
    )  # fmt: skip


CAUSE = Cause("row-locks", Kind.TROUBLE, "hot rows", _judge)
