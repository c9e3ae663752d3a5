"""Start and stop of the members of a replicated cluster."""

from __future__ import annotations

from pgdyno.replication import (
    configuration,
    disks,
    following,
    slots,
)
from pgdyno.replication.cluster import ReplicatedCluster


def start_members(cluster: ReplicatedCluster) -> list[str]:
    """Start the primary, then its standbys, and wait until they stream; return the members left alone.

    A former primary that has not joined again is left alone, because it would accept writes. A member whose
    pg_rewind was interrupted is left alone, because its blocks are of two points in time.
    """
    if cluster.network is not None:
        cluster.network.up()
        cluster.network.mend_all()
    primary = cluster.primary
    for m in cluster.members:
        disks.mount(cluster.base / m.name)
        disks.empty(cluster.base / m.name)
        m.refuse_if_unbuilt()
        m.thaw()
    configuration.configure(cluster, primary, primary)
    primary.start()
    primary.reload()
    standbys = [m for m in cluster.others(primary) if m.is_marked_as_standby and not m.is_half_rewound]
    for m in standbys:
        slots.ensure(primary.local, m.name)
        configuration.configure(cluster, m, primary)
        m.start()
    for m in standbys:
        following.wait_streaming(cluster, m)
    if (pooler := cluster.pooler) is not None:
        pooler.start(primary.address, primary.port)
    return [m.name for m in cluster.others(primary) if m not in standbys]


def stop_members(cluster: ReplicatedCluster) -> None:
    """Stop all members, then the network.

    The primary stops first, so that its standbys receive all of its WAL.
    """
    if (pooler := cluster.pooler) is not None:
        pooler.stop()
    for m in [cluster.primary, *cluster.others(cluster.primary)]:
        m.stop()
    for m in cluster.members:
        disks.unmount(cluster.base / m.name)
    if cluster.network is not None:
        cluster.network.down()
