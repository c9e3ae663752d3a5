"""Leftovers of a killed pgdyno in a cluster: found by this module, mended by `roles.repair`.

Only the holder of the cluster's lock may look. Otherwise the current work of another pgdyno would count as a leftover.
"""

from __future__ import annotations

import psutil

from pgdyno.message import Name, Text, counted, message
from pgdyno.replication import archives, disks
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.replication.member import Member


def unfinished_operations(cluster: ReplicatedCluster) -> list[Text]:
    """Describe each operation that began and did not end.

    No other operation may begin until these have ended.
    """
    found: list[Text] = []
    record = cluster.record
    if record.unfinished is not None:
        verb, primary = record.unfinished
        found.append(message("leftover-operation", operation=Name(verb), primary=Name(primary)))
    if record.set_aside is not None:
        found.append(message("leftover-drill"))
    return found


def every(cluster: ReplicatedCluster) -> list[Text]:
    """Describe each unfinished operation and every other leftover in the cluster.

    With any of them a drill would not find the state that it expects.
    """
    found = unfinished_operations(cluster)
    if cluster.network is not None and cluster.network.is_up():
        for a, b in cluster.network.links_cut():
            other = Name(a) if a else message("leftover-clients")
            found.append(message("leftover-link", one=other, other=Name(b)))
    for m in cluster.members:
        if _is_frozen(m):
            found.append(message("leftover-frozen", member=Name(m.name)))
        if m.is_half_rewound:
            found.append(message("leftover-rewind", member=Name(m.name)))
        if disks.is_filled(cluster.base / m.name):
            found.append(message("leftover-disk", member=Name(m.name)))
    if n := len(archives.unfinished_snapshots(cluster.base)):
        found.append(counted("leftover-snapshots", n))
    return found


def _is_frozen(member: Member) -> bool:
    if (pid := member.process_id) is None:
        return False
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False
