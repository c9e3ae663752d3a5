"""Pages that are not in shared buffers, though in the page cache."""

from __future__ import annotations

from pgdyno.diagnosis.causes.data_io import READS, from_device, memory
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.said import mostly, part, percent
from pgdyno.format import size

_SHARE, _MISSES, _FROM_DEVICE = 0.04, 0.05, 0.2


def _judge(e: Evidence) -> Finding | None:
    waits = e.waiting(*READS, "LWLock:BufferMapping")
    read, hit = e.mean("counters", "blocks_read_per_s"), e.mean("counters", "blocks_hit_per_s")
    if waits is None or read is None or hit is None or not read:
        return None
    # What the backends themselves say, where they measure it, and what samples see. The former is of the whole
    # database: beside other sessions it is not ours.
    timed = (
        0.0
        if any(r.are_others_at_work for r in e.trials)
        else min(1.0, (e.mean("counters", "read_ms_per_s") or 0.0) / 1000 / e.clients)
    )
    cost = Part(max(timed, waits.mean), max(waits.low, min(timed, waits.mean)), max(timed, waits.high))
    fresh = from_device(e)
    misses = read / (read + hit)
    if cost.mean < _SHARE or misses < _MISSES or (fresh is not None and fresh >= _FROM_DEVICE):
        return None
    where = "they came from the kernel's page cache" if fresh is not None else "from where cannot be seen"
    return e.finding(
        CAUSE,
        f"{percent(misses)} of the pages were not in shared buffers{mostly(*e.most_missed)}, and reading them takes "
        f"{part(cost)} of the clients' time; {where}.",
        cost, "the clients' time", Confidence.HIGH if misses > 2 * _MISSES else Confidence.MEDIUM,
        f"A larger shared_buffers: it is {e.setting('shared_buffers') or 'not known'}, the data are "
        f"{size(e.data_bytes)}, of which {percent(e.plan.hot_set)} of the rows are used; the memory is {memory(e)}.",
        [Fact("pages not in shared buffers", misses, "%"),
         Fact("pages missed a transaction", e.per_transaction("blocks_read_per_s") or 0.0)],
    )  # fmt: skip


CAUSE = Cause("buffer-misses", Kind.LIMIT, "pages that are not in shared buffers", _judge)
