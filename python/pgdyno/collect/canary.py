"""Canaries: small fixed pieces of work before and after a trial, which tell whether the machine has changed.

They take about 0.17 s: hashing (a CPU), writes with fdatasync (the storage of the data, where it is pgdyno's), and
round trips over loopback.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import statistics
import tempfile
import time
from pathlib import Path

#: Seconds of hashing, and bytes that are hashed at a time: about a millisecond.
_CPU_S, _HASHED = 0.15, bytes(1 << 20)
#: Writes that are synced, and round trips.
_SYNCS, _TRIPS = 15, 200
_PAGE = bytes(8192)
Row = dict[str, float | str]


def measure(when: str, folder: Path | None = None) -> Row:
    """Return the figures of one moment, "before" or "after": medians in ns, and the share of stolen time.

    `folder` lies on the storage of the data; None, or a folder in which nothing can be written: its figure is -1.
    """
    cpu_ns, stalled = _cpu()
    return {"at": when, "cpu_ns": cpu_ns, "stalled": stalled, "sync_ns": _sync(folder), "loopback_ns": _loopback()}


def _cpu() -> tuple[float, float]:
    """Return the median time of a piece of work, and the share of the time that pieces took beyond it."""
    took = []
    began = time.perf_counter_ns()
    while time.perf_counter_ns() - began < _CPU_S * 1e9:
        start = time.perf_counter_ns()
        hashlib.sha256(_HASHED).digest()
        took.append(time.perf_counter_ns() - start)
    median = statistics.median(took)
    return float(median), max(0.0, 1 - median * len(took) / sum(took))


def _sync(folder: Path | None) -> float:
    if folder is None:
        return -1.0
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as f:
            took = []
            for _ in range(_SYNCS):
                start = time.perf_counter_ns()
                f.write(_PAGE)
                os.fdatasync(f.fileno())
                took.append(time.perf_counter_ns() - start)
    except OSError:
        return -1.0
    return float(statistics.median(took))


def _loopback() -> float:
    """Return the median round trip of a byte over TCP on this machine; -1 if there is no loopback."""
    with contextlib.ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            one = stack.enter_context(socket.create_connection(listener.getsockname(), timeout=1))
            other = stack.enter_context(listener.accept()[0])
            for s in (one, other):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                s.settimeout(1)
            took = []
            for _ in range(_TRIPS):
                start = time.perf_counter_ns()
                one.send(b"x")
                other.send(other.recv(1))
                one.recv(1)
                took.append(time.perf_counter_ns() - start)
        except OSError:
            return -1.0
    return float(statistics.median(took))
