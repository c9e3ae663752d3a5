"""Places in the WAL buffers."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action, megabytes, size_of
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes.wal_flush import commits_wait
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import setting
from pgdyno.diagnosis.thresholds import WalInsert
from pgdyno.message import message
from pgdyno.units import Quantity

_WAITS = ("LWLock:WALInsert", "LWLock:WALBufMapping")
#: Of new segments: no old one is left to be used again.
SEGMENTS = ("IO:WALInitWrite", "IO:WALInitSync")
#: Of backends that make room themselves.
_WRITES = ("LWLock:WALWrite", "IO:WALWrite")
#: All that it is about.
WAITS = (*_WAITS, *SEGMENTS)
#: Bytes of wal_buffers that are proposed: more do not help (PostgreSQL takes a segment at most by itself).
_BUFFERS = 64 << 20


def _judge(e: Observed) -> Finding | None:
    own = (*_WAITS, *(() if commits_wait(e) else _WRITES))
    places, segments, cost = e.waiting(*own), e.waiting(*SEGMENTS), e.waiting(*own, *SEGMENTS)
    if cost is None or places is None or segments is None or cost.mean < WalInsert.SHARE:
        return None
    if segments.mean > places.mean:
        return e.finding(
            CAUSE,
            message("wal-segments", share=cost),
            cost, CLIENTS_TIME, Confidence.HIGH,
            message("wal-segments-remedy", size=setting(e, "min_wal_size")),
            actions=[Action("disk", removed(e, cost, 0.2), "removed", {"min_wal_size": megabytes(more_wal(e))})],
        )  # fmt: skip
    full = e.per_transaction("wal_buffers_full_per_s") or 0.0
    return e.finding(
        CAUSE,
        message("wal-insert", share=cost, full=Quantity(full, "factor")),
        cost, CLIENTS_TIME, Confidence.HIGH if full > 0.01 else Confidence.MEDIUM,
        message("wal-insert-remedy", buffers=setting(e, "wal_buffers")),
        [Fact("buffers-full", full)],
        actions=[] if size_of(e.setting("wal_buffers")) >= _BUFFERS else [
            Action("memory", removed(e, cost, 0.1), "removed", {"wal_buffers": megabytes(_BUFFERS)}),
        ],
    )  # fmt: skip


def more_wal(e: Observed) -> float:
    """Return a min_wal_size that holds a minute of WAL, and twice what it was, in bytes."""
    now = size_of(e.setting("min_wal_size")) or 80 << 20
    most = size_of(e.setting("max_wal_size")) or 1 << 30
    return min(max(2 * now, 60 * (e.mean("counters", "wal_bytes_per_s") or 0.0)), max(most, now))


CAUSE = Cause("wal-insert", Kind.LIMIT, "places in the WAL buffers", _judge)
