"""Storage that does so many requests, or bytes, and no more."""

from __future__ import annotations

import numpy as np

from pgdyno.diagnosis.causes import data_io, wal_flush
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.said import part
from pgdyno.format import integer

#: Part of the clients' time; samples; how little a plateau moves; how much longer a request takes than at its device.
_SHARE, _SAMPLES, _FLAT, _BEFORE = 0.3, 8, 0.06, 4.0


def _judge(e: Evidence) -> Finding | None:
    cost = e.waiting(*data_io.READS, *wal_flush.WAITS, "IO:DataFileWrite", "IO:DataFileExtend", "IO:DataFileSync")
    if cost is None or cost.mean < _SHARE or not e.busiest_device:
        return None
    rows = [row for r in e.trials for row in r.rows("devices") if row["device"] == e.busiest_device]
    requests = np.array([row["reads_per_s"] + row["writes_per_s"] for row in rows])
    moved = np.array([row["read_bytes_per_s"] + row["write_bytes_per_s"] for row in rows])
    if len(rows) < _SAMPLES or not requests.mean() > 0:
        return None
    flat = {name: float(x.std() / x.mean()) for name, x in (("requests", requests), ("bytes", moved)) if x.mean() > 0}
    name = min(flat, key=lambda n: flat[n])
    # A limit in front of the device shows as time that the device knows nothing of; one behind it as its queue.
    own = max(e.device("flush_await_ns") + e.device("write_await_ns"), e.device("read_await_ns"), 1.0)
    seen = wal_flush.sync_ns(e) or (e.mean("counters", "read_ms_per_s") or 0.0) * 1e6 / max(
        1.0, e.mean("counters", "blocks_read_per_s") or 0.0
    )
    before = seen / own
    queued = e.device("utilisation") > 0.95 and e.device("queue") > 2
    if flat[name] > _FLAT or (not (before > _BEFORE and seen > 1e6) and not queued):
        return None
    level = f"{integer(float(requests.mean()))} requests/s" if name == "requests" else f"{moved.mean() / 1e6:.3g} MB/s"
    where = (
        f"a request waits {seen / 1e6:.3g} ms, {before:.0f} times as long as {e.busiest_device} itself takes"
        if before > _BEFORE
        else f"{e.busiest_device} has {e.device('queue'):.2g} requests in its queue"
    )
    return e.finding(
        CAUSE,
        f"The storage is throttled: {level}, within {flat[name] * 100:.1f}% from sample to sample, while clients wait "
        f"for it {part(cost)} of their time; {where}.",
        cost, "the clients' time", Confidence.HIGH if before > _BEFORE else Confidence.MEDIUM,
        "The limit of the volume or of the instance (IOPS, MB/s), or of a cgroup: raise it, or move WAL to a volume of "
        "its own.",
        [Fact("requests", float(requests.mean()), "/s"), Fact("bytes", float(moved.mean()), "bytes/s"),
         Fact("variation", flat[name], "%"), Fact("a request takes", seen, "ns"), Fact("the device itself", own, "ns")],
    )  # fmt: skip


CAUSE = Cause("throttled-storage", Kind.TROUBLE, "storage with a limit", _judge)
