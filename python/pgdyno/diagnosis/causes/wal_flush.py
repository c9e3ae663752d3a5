"""Commits that wait until their WAL is on disk."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import WalFlush
from pgdyno.message import message
from pgdyno.units import Quantity, Share

WAITS = ("IO:WALSync", "IO:WALWrite", "LWLock:WALWrite")
#: Clients a CPU, up to which more of them are proposed.
_A_CPU = 8


def commits_wait(e: Observed) -> bool:
    """Return True if commits wait for the WAL.

    If they do not, backends that write WAL do so because the WAL buffers are full.
    """
    return e.setting("synchronous_commit") != "off"


def sync_ns(e: Observed) -> float | None:
    """Mean time of a sync of WAL; None: not known (track_wal_io_timing is off)."""
    ms, n = e.mean("counters", "wal_sync_ms_per_s"), e.mean("counters", "wal_syncs_per_s")
    return ms / n * 1e6 if ms and n else None


def _judge(e: Observed) -> Finding | None:
    cost = e.waiting(*WAITS) if commits_wait(e) else e.waiting("IO:WALSync")
    if cost is None or cost.mean < WalFlush.SHARE:
        return None
    facts = []
    commits, syncs = e.commits_per_s, e.mean("counters", "wal_syncs_per_s")
    group = sync = commit = None
    if commits and syncs:
        group = message("wal-flush-group", n=Quantity(commits / syncs, "factor"))
        facts.append(Fact("group", commits / syncs))
    if (ns := sync_ns(e)) is not None:
        sync = message("wal-flush-sync" if group else "wal-flush-sync-alone", sync=Quantity(ns, "ms"))
        facts.append(Fact("sync", ns, "ns"))
    if (took := e.commit_ns) is not None:
        commit = message("wal-flush-commit", commit=Quantity(took, "ms"))
        facts.append(Fact("commit", took, "ns"))
    else:
        # Each statement is its own transaction: its time is the commit's, too.
        facts.append(Fact("transaction", e.latency_ns, "ns"))
    if flush := e.device("flush_await_ns", e.wal_device):
        facts.append(Fact("flush-of", flush, "ns", e.wal_device))
    return e.finding(
        CAUSE,
        message("wal-flush", share=cost, group=group, sync=sync, commit=commit),
        cost, CLIENTS_TIME, Confidence.HIGH,
        message("wal-flush-remedy"),
        facts,
        actions=_actions(e, cost),
    )  # fmt: skip


def _actions(e: Observed, cost: Share) -> list[Action]:
    found = []
    if (p := e.processors) is not None and not p.are_full and e.clients <= _A_CPU * p.cores:
        # Twice the commits share a sync, if nothing else limits them.
        double = removed(e, Share(cost.mean / 2, cost.low / 2, cost.high / 2), 0.1)
        found.append(Action("latency", double, "group-commit", clients=2 * e.clients))
    if commits_wait(e) and e.setting("fsync") != "off":
        settings = {"synchronous_commit": "off"}
        # A commit that does not wait spares the switches to and from the waiting process as well: measured, the CPU
        # time of a small transaction falls by a third.
        gain = removed(e, cost, 0.3, frees_cpu=True)
        found.append(Action("last-commits", gain, "removed", settings, weakens_durability=True))
    return found


CAUSE = Cause("wal-flush", Kind.LIMIT, "WAL to disk at commit", _judge)
