"""Places in the WAL buffers."""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes.wal_flush import commits_wait
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import setting
from pgdyno.message import message
from pgdyno.units import Quantity

_WAITS = ("LWLock:WALInsert", "LWLock:WALBufMapping")
#: Of new segments: no old one is left to be used again.
SEGMENTS = ("IO:WALInitWrite", "IO:WALInitSync")
#: Of backends that make room themselves.
_WRITES = ("LWLock:WALWrite", "IO:WALWrite")
#: All that it is about.
WAITS = (*_WAITS, *SEGMENTS)
_SHARE = 0.05


def _judge(e: Observed) -> Finding | None:
    own = (*_WAITS, *(() if commits_wait(e) else _WRITES))
    places, segments, cost = e.waiting(*own), e.waiting(*SEGMENTS), e.waiting(*own, *SEGMENTS)
    if cost is None or places is None or segments is None or cost.mean < _SHARE:
        return None
    if segments.mean > places.mean:
        return e.finding(
            CAUSE,
            message("wal-segments", share=cost),
            cost, CLIENTS_TIME, Confidence.HIGH,
            message("wal-segments-remedy", size=setting(e, "min_wal_size")),
        )  # fmt: skip
    full = e.per_transaction("wal_buffers_full_per_s") or 0.0
    return e.finding(
        CAUSE,
        message("wal-insert", share=cost, full=Quantity(full, "factor")),
        cost, CLIENTS_TIME, Confidence.HIGH if full > 0.01 else Confidence.MEDIUM,
        message("wal-insert-remedy", buffers=setting(e, "wal_buffers")),
        [Fact("buffers-full", full)],
    )  # fmt: skip


CAUSE = Cause("wal-insert", Kind.LIMIT, "places in the WAL buffers", _judge)
