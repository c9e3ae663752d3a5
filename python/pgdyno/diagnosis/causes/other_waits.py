"""A wait that takes much of the clients' time, and that no other cause is about: said as such."""

from __future__ import annotations

from pgdyno.diagnosis import wait_events
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes import checkpoint_full_pages, data_io, parallel_query, row_locks, wal_flush, wal_insert
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import nested, shortened
from pgdyno.diagnosis.thresholds import OtherWaits
from pgdyno.message import Name, message
from pgdyno.units import Quantity

_SLEEP = "Timeout:PgSleep"
_TAKEN = {
    w.lower()
    for w in (
        *data_io.WAITS, *row_locks.WAITS, *wal_flush.WAITS, *wal_insert.WAITS, "IPC:SyncRep", "IO:BufFileRead",
        "IO:BufFileWrite", "IO:BufFileTruncate", "LWLock:BufferMapping",
    )
}  # fmt: skip
#: Waits that another cause is about where checkpoints follow each other.
_OF_CHECKPOINTS = {w.lower() for w in checkpoint_full_pages.STATUS}
#: Waits that another cause is about where parallel workers do not help.
_OF_WORKERS = {w.lower() for w in parallel_query.WAITS}


def _judge(e: Observed) -> Finding | None:
    # Of locks that others hold another cause tells.
    foreign = any(row_locks.is_foreign(row) for row in e.whole("blockers"))
    left = [w for w in e.waits if w.lower() not in _TAKEN and not (foreign and w.startswith("Lock:"))]
    # A script that sleeps does so on purpose; a function or a trigger that sleeps is a trouble.
    if any(r.mentions("pg_sleep") for r in e.trials):
        left = [w for w in left if w != _SLEEP]
    if checkpoint_full_pages.takes_status(e):
        left = [w for w in left if w.lower() not in _OF_CHECKPOINTS]
    if parallel_query.is_pointless(e):
        left = [w for w in left if w.lower() not in _OF_WORKERS]
    cost = e.waiting(*left) if left else None
    if cost is None or cost.mean < OtherWaits.SHARE:
        return None
    parts = sorted(((p.mean, w) for w in left if (p := e.waiting(w)) is not None), reverse=True)
    (most, wait), *_ = parts
    named = wait.replace(":", " ")
    statement, share = e.most_waiting(wait)
    waiting = message("other-waits-statement", share=Quantity(share, "share"), statement=Name(shortened(statement)))
    meaning = wait_events.description(wait)
    return e.finding(
        CAUSE,
        message(
            "other-waits", share=cost, wait=Name(named), most=Quantity(most, "share"),
            meaning=message("other-waits-meaning", description=Name(meaning.rstrip("."))) if meaning else None,
            waiting=waiting if statement else None, nested=nested(e),
        ),
        cost, CLIENTS_TIME, Confidence.MEDIUM,
        message("other-waits-asleep-remedy") if wait == _SLEEP else message("other-waits-remedy", wait=Name(named)),
        [Fact("most", most, "%"), Fact("kinds-of-waits", len(parts))],
        kind=Kind.TROUBLE if wait == _SLEEP else Kind.LIMIT,
    )  # fmt: skip


CAUSE = Cause("other-waits", Kind.LIMIT, "waits without a known cause", _judge)
