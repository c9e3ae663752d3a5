"""Pages that are not in shared buffers, though in the page cache."""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes.data_io import READS, copying, from_device, larger_buffers, memory
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import dominant_share, setting
from pgdyno.diagnosis.thresholds import BufferMisses
from pgdyno.message import message
from pgdyno.units import Quantity, Share


def _judge(e: Observed) -> Finding | None:
    waits = e.waiting(*READS, "LWLock:BufferMapping")
    read, hit = e.mean("counters", "blocks_read_per_s"), e.mean("counters", "blocks_hit_per_s")
    if waits is None or read is None or hit is None or not read:
        return None
    # What the backends themselves say, where they measure it, and what samples see. The former is of the whole
    # database: beside other sessions it is not ours.
    timed = (
        0.0
        if any(r.are_others_at_work for r in e.trials)
        else min(1.0, (e.mean("counters", "read_ms_per_s") or 0.0) / 1000 / (e.busy_clients or e.clients))
    )
    waited = Share(max(timed, waits.mean), max(waits.low, min(timed, waits.mean)), max(timed, waits.high))
    # An upper bound of an estimate is no more than the CPU time that was seen.
    cpu = min(copying(e), e.running.mean if e.running else 0.0)
    cost = Share(min(1.0, waited.mean + cpu / 2), waited.low, min(1.0, waited.high + cpu))
    fresh = from_device(e)
    misses = read / (read + hit)
    if (
        cost.mean < BufferMisses.SHARE
        or misses < BufferMisses.RATIO
        or (fresh is not None and fresh >= BufferMisses.FROM_DEVICE)
    ):
        return None
    source = "buffer-misses-cache" if fresh is not None else "buffer-misses-unknown"
    return e.finding(
        CAUSE,
        message(
            "buffer-misses", misses=Quantity(misses, "share"), of=dominant_share(*e.most_missed), share=cost,
            source=message(source),
        ),
        cost, CLIENTS_TIME,
        # What is estimated is less sure than what was seen.
        Confidence.HIGH if misses > 2 * BufferMisses.RATIO and waited.mean >= cpu / 2 else Confidence.MEDIUM,
        message(
            "buffer-misses-remedy", buffers=setting(e, "shared_buffers"), data=Quantity(e.data_bytes, "bytes"),
            hot=Quantity(e.plan.hot_set, "share"), memory=memory(e),
        ),
        [Fact("misses", misses, "%"),
         Fact("pages-missed", e.per_transaction("blocks_read_per_s") or 0.0)],
        actions=larger_buffers(e, waited, 0.3),
    )  # fmt: skip


CAUSE = Cause("buffer-misses", Kind.LIMIT, "pages that are not in shared buffers", _judge)
