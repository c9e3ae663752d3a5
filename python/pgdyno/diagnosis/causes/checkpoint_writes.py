"""A checkpoint's writes beside the clients'."""

from __future__ import annotations

from pgdyno.diagnosis.causes.checkpoint_full_pages import in_checkpoint
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.said import part

_LOSS = 0.05


def _judge(e: Evidence) -> Finding | None:
    spans = {id(r): in_checkpoint(r) for r in e.trials}
    if not any(spans.values()) or not e.mean("counters", "checkpoint_buffers_per_s"):
        return None
    # Counters are sampled less often.
    source = "waits" if e.has("waits") else "counters"
    cost = e.lost(lambda r, start, end: any(a < end and b > start for a, b in spans[id(r)]), source)
    if cost is None or cost.mean < _LOSS or cost.low <= 0:
        return None
    pages = e.mean("counters", "checkpoint_buffers_per_s") or 0.0
    written = e.mean("processes", "write_bytes_per_s", kind="checkpointer") or pages * 8192
    full = e.per_transaction("wal_full_pages_per_s") or 0.0
    return e.finding(
        CAUSE,
        f"While checkpoints write, throughput is lower: {part(cost)} of it is lost; the checkpointer writes "
        f"{written / 1e6:.3g} MB/s on average.",
        cost, "the throughput", Confidence.MEDIUM if full > 0.1 else Confidence.HIGH,
        f"checkpoint_completion_target = 0.9 (now {e.setting('checkpoint_completion_target') or 'the default'}); "
        "checkpoint_timeout and max_wal_size larger; pg_wal on a device of its own; vm.dirty_background_bytes smaller.",
        [Fact("checkpointer writes", written, "bytes/s"), Fact("dirty pages of the machine",
              e.mean("machine", "dirty_bytes") or 0.0, "bytes"),
         Fact(f"utilisation of {e.busiest_device or 'the device'}", e.device("utilisation"), "%")],
    )  # fmt: skip


CAUSE = Cause("checkpoint-writes", Kind.TROUBLE, "checkpoints that write beside the load", _judge)
