"""Commits that wait until their WAL is on disk."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.said import part

WAITS = ("IO:WALSync", "IO:WALWrite", "LWLock:WALWrite")
_SHARE = 0.1


def commits_wait(e: Evidence) -> bool:
    """Return True if commits wait for the WAL.

    If they do not, backends that write WAL do so because the WAL buffers are full.
    """
    return e.setting("synchronous_commit") != "off"


def sync_ns(e: Evidence) -> float | None:
    """Mean time of a sync of WAL; None: not known (track_wal_io_timing is off)."""
    ms, n = e.mean("counters", "wal_sync_ms_per_s"), e.mean("counters", "wal_syncs_per_s")
    return ms / n * 1e6 if ms and n else None


def _judge(e: Evidence) -> Finding | None:
    cost = e.waiting(*WAITS) if commits_wait(e) else e.waiting("IO:WALSync")
    if cost is None or cost.mean < _SHARE:
        return None
    facts = []
    commits, syncs = e.tps, e.mean("counters", "wal_syncs_per_s")
    words = ""
    if commits and syncs:
        group = commits / syncs
        words = f"; {group:.3g} transactions a sync"
        facts.append(Fact("transactions a sync", group))
    if (ns := sync_ns(e)) is not None:
        words += f", which takes {ns / 1e6:.3g} ms"
        facts.append(Fact("sync of WAL", ns, "ns"))
    if (took := e.commit_ns) is not None:
        words += f"; COMMIT takes {took / 1e6:.3g} ms"
        facts.append(Fact("COMMIT", took, "ns"))
    else:
        # Each statement is its own transaction: its time is the commit's, too.
        facts.append(Fact("transaction", e.latency_ns, "ns"))
    if flush := e.device("flush_await_ns", e.wal_device):
        facts.append(Fact(f"flush of {e.wal_device}", flush, "ns"))
    return e.finding(
        CAUSE,
        f"Commits wait for WAL to reach the disk {part(cost)} of the clients' time{words}.",
        cost, "the clients' time", Confidence.HIGH,
        "A device with faster syncs for pg_wal; more clients, so that more commits share a sync; larger transactions; "
        "synchronous_commit = off where the last commits may be lost.",
        facts,
    )  # fmt: skip


CAUSE = Cause("wal-flush", Kind.LIMIT, "WAL to disk at commit", _judge)
