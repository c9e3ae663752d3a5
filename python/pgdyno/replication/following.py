"""Standbys of a replicated cluster that follow the primary: whether they stream, and waits for it."""

from __future__ import annotations

import time

import psycopg

from pgdyno.cluster import administration
from pgdyno.errors import ClusterError, msg
from pgdyno.replication import (
    state,
)
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.replication.member import Member

#: How long a standby may take until it streams.
STREAMING_S = 60.0


def is_streaming(cluster: ReplicatedCluster, member: Member) -> bool:
    """Return True if the primary streams to the member on the primary's own timeline."""
    with administration.connect(cluster.primary.local, patience_s=5.0) as conn:
        return _streams(cluster, conn, member)


def _streams(cluster: ReplicatedCluster, conn: psycopg.Connection[tuple[object, ...]], member: Member) -> bool:
    ask = (
        "select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int "
        "from pg_stat_replication where application_name = %s and state = 'streaming'"
    )
    found = conn.execute(ask, [member.name]).fetchone()
    # A standby whose WAL has parted from the primary's is streamed the old timeline for a moment, up to where they
    # parted; it takes nothing of the new one.
    return found is not None and state.received_timeline(member) == found[0]


def wait_streaming(cluster: ReplicatedCluster, member: Member, patience_s: float = STREAMING_S) -> None:
    """Wait until the primary streams to a member on the primary's own timeline.

    Raise ClusterError if that takes longer than `patience_s` seconds.
    """
    deadline = time.monotonic() + patience_s
    with administration.connect(cluster.primary.local, patience_s=5.0) as conn:
        while not _streams(cluster, conn, member):
            if time.monotonic() > deadline:
                raise ClusterError(
                    msg(
                        "error-does-not-stream-from-within",
                        name=member.name,
                        name2=cluster.primary.name,
                        patience_s=f"{patience_s:g}",
                        last_words=member.last_words(),
                    ),
                    msg("remedy-build-anew-pgdyno-cluster-rejoin"),
                )
            time.sleep(0.02)
    if member.name not in cluster.record.following:
        cluster.record.following.append(member.name)
        cluster.record.save(cluster.base)


def wait_receiving(cluster: ReplicatedCluster, patience_s: float = STREAMING_S) -> None:
    """Wait until every other running member has received the WAL that the primary writes now.

    A connection over a cut link counts as streaming until the timeout of one of its ends. Only then is the
    connection made anew. Raise ClusterError if the wait takes longer than `patience_s` seconds.
    """
    deadline = time.monotonic() + patience_s
    names = [m.name for m in cluster.others(cluster.primary) if m.process_id is not None]
    ask = "select count(*) from pg_stat_replication where application_name = any(%s) and write_lsn >= %s::pg_lsn"
    with administration.connect(cluster.primary.local, patience_s=5.0) as conn:
        # It must not wait for those that it asks about.
        conn.execute("set synchronous_commit to local")
        row = conn.execute("select pg_logical_emit_message(true, 'pgdyno', '')").fetchone()
        now = row[0] if row else None
        while conn.execute(ask, [names, now]).fetchone() != (len(names),):
            if time.monotonic() > deadline:
                raise ClusterError(
                    msg("error-standbys-do-not-receive"), msg("remedy-pgdyno-cluster-status-shows-how-2")
                )
            time.sleep(0.02)


def wait_caught_up(cluster: ReplicatedCluster, patience_s: float = STREAMING_S) -> None:
    """Wait until all streaming standbys have replayed the WAL that the primary has now.

    Raise ClusterError if that takes longer than `patience_s` seconds.
    """
    deadline = time.monotonic() + patience_s
    ask = "select bool_and(replay_lsn >= %s::pg_lsn) from pg_stat_replication where state = 'streaming'"
    with administration.connect(cluster.primary.local, patience_s=5.0) as conn:
        row = conn.execute("select pg_current_wal_flush_lsn()").fetchone()
        now = row[0] if row else None
        while not (found := conn.execute(ask, [now]).fetchone()) or not found[0]:
            if time.monotonic() > deadline:
                raise ClusterError(
                    msg("error-standbys-do-not-catch-up-2"), msg("remedy-pgdyno-cluster-status-shows-how-2")
                )
            time.sleep(0.02)
