"""Leftovers of a killed pgdyno in a cluster: found by this module, mended by `roles.repair`.

Only the holder of the cluster's lock may look. Otherwise the current work of another pgdyno would count as a leftover.
"""

from __future__ import annotations

import psutil

from pgdyno.replication import archives, disks
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.replication.member import Member


def unfinished_operations(cluster: ReplicatedCluster) -> list[str]:
    """Describe each operation that began and did not end.

    No other operation may begin until these have ended.
    """
    found, record = [], cluster.record
    if record.unfinished is not None:
        verb, primary = record.unfinished
        found.append(f"a {verb} was begun and not ended (its primary: {primary})")
    if record.set_aside is not None:
        found.append("a drill was begun and not ended: its settings are in force")
    return found


def every(cluster: ReplicatedCluster) -> list[str]:
    """Describe each unfinished operation and every other leftover in the cluster.

    With any of them a drill would not find the state that it expects.
    """
    found = unfinished_operations(cluster)
    if cluster.network is not None and cluster.network.is_up():
        for a, b in cluster.network.links_cut():
            found.append(f"the link between {a or 'clients'} and {b} is cut (by a pgdyno cluster link, or left so)")
    for m in cluster.members:
        if _is_frozen(m):
            found.append(f"{m.name} was frozen and not woken")
        if m.is_half_rewound:
            found.append(f"pg_rewind of {m.name} was cut off")
        if disks.is_filled(cluster.base / m.name):
            found.append(f"the disk of {m.name} was filled and not emptied")
    if n := len(archives.unfinished_snapshots(cluster.base)):
        found.append(f"{n} snapshot{'s' if n > 1 else ''} without an end")
    return found


def _is_frozen(member: Member) -> bool:
    if (pid := member.process_id) is None:
        return False
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False
