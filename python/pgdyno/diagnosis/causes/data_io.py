"""Table and index pages from the disk."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action, megabytes, size_of
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import dominant_share, setting
from pgdyno.diagnosis.thresholds import DataIo
from pgdyno.message import Message, Name, message
from pgdyno.units import Quantity, Share

READS = ("IO:DataFileRead", "IO:DataFilePrefetch", "IO:AioIoCompletion", "LWLock:BufferIO", "IPC:BufferIO",
         "IO:AioIoUringExecution", "IO:AioIoUringSubmit")  # fmt: skip
_WRITES = ("IO:DataFileWrite", "IO:DataFileExtend", "IO:DataFileFlush", "IO:DataFileSync")
#: All that it is about.
WAITS = (*READS, *_WRITES)
_COLUMNS = ("reads_per_s", "writes_per_s", "utilisation", "read_await_ns", "queue")
#: Of the memory, the part that shared buffers take at most; what they grow by at least, and at most at a time.
_OF_MEMORY, _WORTH, _STEP = 0.4, 1.5, 16
#: CPU time of a page from the page cache, in ns: at most, on a busy machine.
_MISS_NS = 15e3


def memory(e: Observed) -> Quantity | Message:
    """Return the memory of the server's machine.

    Pages that are not in shared buffers may be in the page cache of the machine.
    """
    return Quantity(e.memory_bytes, "bytes") if e.memory_bytes else message("setting-unknown")


def from_device(e: Observed) -> float | None:
    """Return the share of the bytes read outside shared buffers that came from the device.

    None means that the share is not known.
    """
    blocks = e.mean("counters", "blocks_read_per_s")
    if not blocks or not e.has("devices"):
        return None
    return e.device("read_bytes_per_s", e.data_device) / (blocks * 8192)


def copying(e: Observed) -> float:
    """Return the share of a transaction that pages from outside shared buffers take on a CPU, at most.

    They are looked up and copied, and others are evicted for them.
    """
    return min(1.0, (e.per_transaction("blocks_read_per_s") or 0.0) * _MISS_NS / (e.latency_ns or 1.0))


def larger_buffers(e: Observed, cost: Share, least: float) -> list[Action]:
    """Return the action of larger shared buffers, of which `least` is the part of the cost that goes at least."""
    now = size_of(e.setting("shared_buffers"))
    wanted = min(_OF_MEMORY * e.memory_bytes, max(1.25 * e.data_bytes if e.data_bytes else _STEP * now, 128 << 20))
    if not now or wanted < _WORTH * now:
        return []
    gain = removed(e, Share(cost.mean, cost.low, min(1.0, cost.high + copying(e))), least, frees_cpu=True)
    return [Action("memory", gain, "removed", {"shared_buffers": megabytes(wanted)})]


def _judge(e: Observed) -> Finding | None:
    cost = e.waiting(*READS, *_WRITES)
    if cost is None or cost.mean < DataIo.SHARE:
        return None
    fresh = from_device(e)
    if fresh is not None and fresh < DataIo.FROM_DEVICE and (e.waiting(*_WRITES) or cost).mean < DataIo.SHARE:
        return None
    missed = e.per_transaction("blocks_read_per_s") or 0.0
    device = e.data_device
    of = {c: e.device(c, device) for c in _COLUMNS}
    seen = message(
        "data-io-device",
        device=Name(device),
        requests=Quantity(of["reads_per_s"] + of["writes_per_s"], "count"),
        utilisation=Quantity(of["utilisation"], "share"),
        read=Quantity(of["read_await_ns"], "ms"),
    )
    return e.finding(
        CAUSE,
        message(
            "data-io", share=cost, missed=Quantity(missed, "factor"), of=dominant_share(*e.most_missed),
            device=seen if device else None,
        ),
        cost, CLIENTS_TIME, Confidence.HIGH if device else Confidence.MEDIUM,
        message(
            "data-io-remedy", buffers=setting(e, "shared_buffers"), memory=memory(e),
            data=Quantity(e.data_bytes, "bytes"),
        ),
        [Fact("pages-missed", missed), Fact("device-reads", of["reads_per_s"], "/s"),
         Fact("device-writes", of["writes_per_s"], "/s"), Fact("utilisation", of["utilisation"], "%"),
         Fact("read", of["read_await_ns"], "ns"), Fact("queue", of["queue"])],
        actions=larger_buffers(e, cost, 0.2),
    )  # fmt: skip


CAUSE = Cause("data-io", Kind.LIMIT, "table pages from the disk", _judge)
