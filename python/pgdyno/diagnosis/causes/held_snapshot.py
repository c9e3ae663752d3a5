"""A snapshot that another session, a prepared transaction or a replication slot holds: dead rows cannot be removed."""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.diagnosis.thresholds import HeldSnapshot
from pgdyno.message import message
from pgdyno.units import Quantity, Share


def _held_throughout(r: Recorded) -> float:
    """Return the minimum age of the slots' oldest snapshot, in transactions, in the second half of a trial."""
    middle = sum(r.window) / 2
    return min((row["slot_transactions"] for row in r.rows("snapshots") if row["end_ns"] > middle), default=0.0)


def _judge(e: Observed) -> Finding | None:
    def most(column: str) -> float:
        return max((row[column] for row in e.whole("snapshots")), default=0.0)

    oldest, age = most("oldest_seconds"), most("oldest_transactions")
    dead = max((row["dead_rows"] for row in e.whole("tables")), default=0.0)
    if dead < HeldSnapshot.DEAD_ROWS:
        return None
    of_slots = max((_held_throughout(r) for r in e.trials), default=0.0)
    length = max((r.seconds for r in e.trials), default=0.0)
    is_session = oldest >= max(HeldSnapshot.AGE_S, length / 2) and age >= HeldSnapshot.DEAD_ROWS
    is_slot = of_slots >= max(HeldSnapshot.DEAD_ROWS, e.commits_per_s * max(HeldSnapshot.STANDBY_AGE_S, length / 2))
    if not (is_session or is_slot):
        return None
    fell = max(0.0, -e.movement)
    cost, of = Share(fell / 2, 0.0, fell), THROUGHPUT
    confidence = Confidence.HIGH if fell > 0.1 else Confidence.MEDIUM
    if is_session and (age >= of_slots or not is_slot):
        return e.finding(
            CAUSE,
            message(
                "held-snapshot", age=Quantity(oldest, "seconds"), transactions=Quantity(age, "count"),
                dead=Quantity(dead, "count"), drop=Quantity(fell, "share"),
            ),
            cost, of, confidence,
            message("held-snapshot-remedy"),
            [Fact("age", oldest * 1e9, "ns"), Fact("transactions-since", age), Fact("dead-rows", dead)],
        )  # fmt: skip
    return e.finding(
        CAUSE,
        message(
            "held-snapshot-slot", transactions=Quantity(of_slots, "count"), dead=Quantity(dead, "count"),
            drop=Quantity(fell, "share"),
        ),
        cost, of, confidence,
        message("held-snapshot-slot-remedy"),
        [Fact("transactions-since", of_slots), Fact("dead-rows", dead)],
    )  # fmt: skip


CAUSE = Cause("held-snapshot", Kind.TROUBLE, "a snapshot held by another session", _judge)
