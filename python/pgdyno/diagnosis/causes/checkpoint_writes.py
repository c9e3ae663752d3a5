"""A checkpoint's writes beside the clients'."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes.checkpoint_full_pages import checkpoint_spans, fewer_checkpoints
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import setting
from pgdyno.diagnosis.thresholds import CheckpointWrites
from pgdyno.message import message
from pgdyno.units import Quantity


def _judge(e: Observed) -> Finding | None:
    spans = {id(r): checkpoint_spans(r) for r in e.trials}
    if not any(spans.values()) or not e.mean("counters", "checkpoint_buffers_per_s"):
        return None
    # Counters are sampled less often.
    source = "waits" if e.has("waits") else "counters"
    cost = e.throughput_loss(lambda r, start, end: any(a < end and b > start for a, b in spans[id(r)]), source)
    if cost is None or cost.mean < CheckpointWrites.LOSS or cost.low <= 0:
        return None
    pages = e.mean("counters", "checkpoint_buffers_per_s") or 0.0
    written = e.mean("processes", "write_bytes_per_s", kind="checkpointer") or pages * 8192
    full = e.per_transaction("wal_full_pages_per_s") or 0.0
    return e.finding(
        CAUSE,
        message("checkpoint-writes", share=cost, written=Quantity(written, "MB/s")),
        cost, THROUGHPUT, Confidence.MEDIUM if full > 0.1 else Confidence.HIGH,
        message("checkpoint-writes-remedy", target=setting(e, "checkpoint_completion_target", "setting-default")),
        [Fact("checkpointer-writes", written, "bytes/s"), Fact("dirty",
              e.mean("machine", "dirty_bytes") or 0.0, "bytes"),
         Fact("utilisation-of", e.device("utilisation"), "%", e.busiest_device)],
        actions=[
            *fewer_checkpoints(e, cost),
            *([] if float(e.setting("checkpoint_completion_target") or 0.9) >= 0.9 else [
                Action("nothing", removed(e, cost, 0.0), "removed", {"checkpoint_completion_target": "0.9"}),
            ]),
        ],
    )  # fmt: skip


CAUSE = Cause("checkpoint-writes", Kind.TROUBLE, "checkpoints that write beside the load", _judge)
