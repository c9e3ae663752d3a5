"""Storage with a limit on requests or bytes per second."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pgdyno.analysis.spread import MAD
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes import data_io, wal_flush
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import ThrottledStorage
from pgdyno.format import integer
from pgdyno.message import Name, message
from pgdyno.units import Quantity

#: Of table pages, beside what reads them.
_PAGES = ("IO:DataFileWrite", "IO:DataFileExtend", "IO:DataFileSync")
Array = NDArray[np.float64]


def _plateau(e: Observed, device: str) -> tuple[float, str, str, float, float] | None:
    """Return the smaller variation of a device's requests or bytes, which of them it is, and both medians.

    The variation is the median absolute deviation, scaled to a standard deviation, divided by the median. A few bursts
    therefore do not count as variation.
    """
    rows = [row for row in e.whole("devices") if row["device"] == device]
    if len(rows) < ThrottledStorage.SAMPLES:
        return None
    figures = {
        "requests": np.array([row["reads_per_s"] + row["writes_per_s"] for row in rows]),
        "bytes": np.array([row["read_bytes_per_s"] + row["write_bytes_per_s"] for row in rows]),
    }
    medians = {name: float(np.median(x)) for name, x in figures.items()}
    length = float(np.median([row["end_ns"] - row["start_ns"] for row in rows])) / 1e9
    spreads = {name: _spread(x, length) for name, x in figures.items() if medians[name] > 0}
    if not spreads:
        return None
    name = min(spreads, key=lambda n: spreads[n])
    return spreads[name], device, name, medians["requests"], medians["bytes"]


def _spread(x: Array, length_s: float) -> float:
    """Return the relative variation of samples of `length_s` seconds.

    It is the smaller value of two: of single samples, and of averages over some consecutive samples.
    """
    together = max(1, math.ceil(ThrottledStorage.JOINED_S / max(length_s, 1e-3)))
    n = len(x) // together
    taken = (
        [x, x[: n * together].reshape(n, together).mean(axis=1)]
        if together > 1 and n >= ThrottledStorage.JOINED_SAMPLES
        else [x]
    )
    medians = [float(np.median(y)) for y in taken]
    return min(MAD * float(np.median(np.abs(y - m))) / m for y, m in zip(taken, medians, strict=True) if m > 0)


def _read_ns(e: Observed) -> float | None:
    """Mean time of a page's read by the server; None: not known (track_io_timing is off)."""
    ms, blocks = e.mean("counters", "read_ms_per_s"), e.mean("counters", "blocks_read_per_s")
    return ms / blocks * 1e6 if ms and blocks else None


def _judge(e: Observed) -> Finding | None:
    wal, pages = e.waiting(*wal_flush.WAITS), e.waiting(*data_io.READS, *_PAGES)
    cost = e.waiting(*wal_flush.WAITS, *data_io.READS, *_PAGES)
    if cost is None or wal is None or pages is None or cost.mean < ThrottledStorage.SHARE or not e.busiest_device:
        return None
    # What clients wait for, by the device that it is on: another one says nothing of it, however steady it is.
    is_wal = wal.mean >= pages.mean
    plateau = _plateau(e, e.wal_device if is_wal else e.data_device)
    if plateau is None:
        return None
    variation, device, name, requests, moved = plateau

    def of(column: str) -> float:
        return e.mean("devices", column, device=device) or 0.0

    # A limit in front of the device shows as time that the device knows nothing of; one behind it as its queue.
    own = max(of("flush_await_ns") + of("write_await_ns") if is_wal else of("read_await_ns"), 1.0)
    seen = (wal_flush.sync_ns(e) if is_wal else _read_ns(e)) or 0.0
    before = seen / own
    # A device that flushes most of the time is slow at that; what waits behind a flush makes a queue as well.
    flushing = of("flushes_per_s") * of("flush_await_ns") / 1e9
    queued = of("utilisation") > 0.95 and of("queue") > 2 and flushing < ThrottledStorage.FLUSHING
    if variation > ThrottledStorage.FLAT or (not (before > ThrottledStorage.BEFORE and seen > 1e6) and not queued):
        return None
    level = Name(f"{integer(requests)} requests/s") if name == "requests" else Quantity(moved, "MB/s")
    waits = message(
        "throttled-before", seen=Quantity(seen, "ms"), times=Quantity(round(before), "count"), device=Name(device)
    )
    queue = message("throttled-queue", device=Name(device), n=Quantity(of("queue"), "two"))
    return e.finding(
        CAUSE,
        message(
            "throttled-storage", level=level, variation=Quantity(variation, "share"), share=cost,
            where=waits if before > ThrottledStorage.BEFORE else queue,
        ),
        cost, CLIENTS_TIME, Confidence.HIGH if before > ThrottledStorage.BEFORE else Confidence.MEDIUM,
        message("throttled-storage-remedy"),
        [Fact("requests", requests, "/s"), Fact("bytes", moved, "bytes/s"),
         Fact("variation", variation, "%"), Fact("request-time", seen, "ns"), Fact("device-time", own, "ns")],
    )  # fmt: skip


CAUSE = Cause("throttled-storage", Kind.TROUBLE, "storage with a limit", _judge)
