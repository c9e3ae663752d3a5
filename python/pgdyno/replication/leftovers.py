"""What a pgdyno that was killed has left of a cluster: seen here, and mended by `roles.repair`. Only whoever holds the
cluster's lock may look, or what another is at now is taken for left.
"""

from __future__ import annotations

import psutil

from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.replication.member import Member


def of(cluster: ReplicatedCluster) -> list[str]:
    """Each in words; empty: nothing is left to be ended or undone."""
    found, record = [], cluster.record
    if record.unfinished is not None:
        verb, primary = record.unfinished
        found.append(f"a {verb} was begun and not ended (its primary: {primary})")
    if record.set_aside is not None:
        found.append("a drill was begun and not ended: its settings are in force")
    if cluster.network is not None and cluster.network.is_up():
        for a, b in cluster.network.links_cut():
            found.append(f"the link between {a or 'clients'} and {b} was cut and not mended")
    found += [f"{m.name} was frozen and not woken" for m in cluster.members if _is_frozen(m)]
    return found


def _is_frozen(member: Member) -> bool:
    if (pid := member.process_id) is None:
        return False
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False
