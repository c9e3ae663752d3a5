"""Places in the WAL buffers."""

from __future__ import annotations

from pgdyno.diagnosis.causes.wal_flush import commits_wait
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.said import part

_WAITS = ("LWLock:WALInsert", "LWLock:WALBufMapping")
#: Of new segments: no old one is left to be used again.
SEGMENTS = ("IO:WALInitWrite", "IO:WALInitSync")
#: Of backends that make room themselves.
_WRITES = ("LWLock:WALWrite", "IO:WALWrite")
#: All that it is about.
WAITS = (*_WAITS, *SEGMENTS)
_SHARE = 0.05


def _judge(e: Evidence) -> Finding | None:
    own = (*_WAITS, *(() if commits_wait(e) else _WRITES))
    places, segments, cost = e.waiting(*own), e.waiting(*SEGMENTS), e.waiting(*own, *SEGMENTS)
    if cost is None or places is None or segments is None or cost.mean < _SHARE:
        return None
    if segments.mean > places.mean:
        return e.finding(
            CAUSE,
            f"Clients wait for new files of WAL to be made {part(cost)} of their time.",
            cost, "the clients' time", Confidence.HIGH,
            f"min_wal_size (now {e.setting('min_wal_size') or 'not known'}) larger, so that old files are used again; "
            "wal_recycle = on.",
        )  # fmt: skip
    full = e.per_transaction("wal_buffers_full_per_s") or 0.0
    return e.finding(
        CAUSE,
        f"Clients wait for a place in the WAL buffers {part(cost)} of their time; {full:.3g} times a transaction the "
        "buffers were full.",
        cost, "the clients' time", Confidence.HIGH if full > 0.01 else Confidence.MEDIUM,
        f"wal_buffers (now {e.setting('wal_buffers') or 'not known'}) larger, to 64MB; wal_compression; fewer indexes.",
        [Fact("WAL buffers full a transaction", full)],
    )  # fmt: skip


CAUSE = Cause("wal-insert", Kind.LIMIT, "places in the WAL buffers", _judge)
