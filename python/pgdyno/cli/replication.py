"""`pgdyno cluster …` for clusters with standbys."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from rich import box

from pgdyno import i18n
from pgdyno.cli import console, streams
from pgdyno.cli.cluster import settings_of
from pgdyno.cli.stopping import stoppable
from pgdyno.cli.tables import Table
from pgdyno.cli.viewers import stream_for
from pgdyno.cluster import network as networks
from pgdyno.errors import ClusterError, PgdynoError, RefusedError, UsageError, msg
from pgdyno.format import one_line
from pgdyno.load.units import pg_size
from pgdyno.message import Message, Name, Text, counted, listed, message
from pgdyno.replication import (
    archives,
    build,
    disks,
    following,
    leftovers,
    lifecycle,
    pgbouncer,
    record,
    roles,
    slots,
    state,
    tablespaces,
)
from pgdyno.replication.backup import BaseBackup
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.spec.values import size_bytes
from pgdyno.stream.events import DatasetDone, DatasetProgress
from pgdyno.units import Quantity

_out = console.output()


def create(
    folder: Path,
    standbys: int,
    sync: str,
    clients: int,
    given: list[str],
    checksums: bool | None,
    *,
    network: bool | None,
    archive: bool,
    pooler: bool,
    disk: str,
    spaces: list[str],
    pg_bin: Path | None,
) -> int:
    """Create a primary and its standbys and start them."""
    if network and not networks.is_possible():
        raise RefusedError(
            msg("error-network-namespaces-need-root-programs"),
            msg("remedy-leave-network-out-members-share"),
        )
    settings = settings_of(given, clients, pg_bin, members=standbys + 1)
    use_namespaces = networks.is_possible() if network is None else network
    began = time.monotonic()
    if network is None and not use_namespaces and os.geteuid() == 0:
        _say(msg("cluster-no-namespaces"))
    if pooler:
        # Before anything is made.
        pgbouncer.find()
    with stoppable():
        cluster = build.create(
            folder,
            standbys,
            sync,
            settings,
            use_namespaces=use_namespaces,
            archive=archive,
            pooler=pooler,
            disk_bytes=_disk_bytes(disk),
            spaces=tablespaces.read(spaces),
            pg_bin=pg_bin,
            checksums=checksums,
        )
        with record.locked(cluster.base), watching("base-backup") as watch:
            try:
                backups = build.build_members(cluster, watch)
            except PgdynoError:
                # What a crash leaves is to be repaired; a mistake leaves nothing.
                build.destroy(cluster)
                raise
    where = msg("cluster-in-namespaces" if cluster.network else "cluster-on-loopback")
    _say(
        msg(
            "cluster-members-created",
            base=cluster.base,
            primary=cluster.record.primary,
            standbys=counted("n-standbys", standbys),
            where=where,
            seconds=f"{time.monotonic() - began:.1f}",
        ),
        *(_backed_up(b) for b in backups),
        *_pooler_words(cluster),
        msg("cluster-hint-status", folder=folder),
        msg("cluster-hint-drill", folder=folder),
    )
    return 0


def _disk_bytes(text: str) -> int:
    """Return the number of bytes in the value of --disk; 0 if the text is empty.

    Raise UsageError if the text is not a size or the size is too small. Raise RefusedError if pgdyno does not run as
    root.
    """
    if not text:
        return 0
    if not re.fullmatch(r"[0-9]+ ?(kB|MB|GB|TB)", text) or (size := size_bytes(text)) < disks.LEAST_BYTES:
        raise UsageError(msg("error-disk-no-size-320-mb", text=repr(text)), msg("remedy-write-1gb"))
    if os.geteuid() != 0:
        raise RefusedError(msg("error-disk-only-root-may-mount"), msg("remedy-leave-out"))
    return size


def start(folder: Path) -> int:
    """Start all members of the cluster."""
    with at_work(folder) as cluster:
        left = lifecycle.start_members(cluster)
    for name in left:
        _say(msg("cluster-left-stopped", name=name, folder=folder))
    _say(msg("cluster-members-started", primary=cluster.record.primary, shown=_shown(cluster)))
    return 1 if left else 0


def stop(folder: Path) -> int:
    """Stop all members of the cluster."""
    with stoppable(), record.locked(folder):
        lifecycle.stop_members(ReplicatedCluster(folder))
    _say(msg("cluster-stopped"))
    return 0


def destroy(folder: Path) -> int:
    """Stop the cluster and remove it."""
    with stoppable(), record.locked(folder):
        cluster = ReplicatedCluster(folder)
        build.destroy(cluster)
    _say(msg("cluster-removed-base", base=cluster.base))
    return 0


def status(folder: Path, json_output: bool) -> int:
    """Show the state of each member; return exit code 1 if the cluster is not whole."""
    cluster = ReplicatedCluster(folder)
    states = cluster.states()
    troubles = _troubles(cluster, states)
    if json_output:
        facts = {
            "folder": str(cluster.base),
            "primary": cluster.record.primary,
            "synchronous_standby_names": cluster.record.synchronous_standby_names,
            "network": cluster.network is not None,
            "pooler": None
            if cluster.pooler is None
            else {"host": cluster.pooler.address, "port": cluster.pooler.port, "process": cluster.pooler.process_id},
            "unfinished": cluster.record.unfinished[0] if cluster.record.unfinished else None,
            "members": [s.as_json() for s in states],
            "troubles": [i18n.text(t) for t in troubles],
        }
        sys.stdout.write(json.dumps(facts, indent=2) + "\n")
        return 1 if troubles else 0
    sync = cluster.record.synchronous_standby_names or msg("cluster-async")
    _say(msg("cluster-sync", base=cluster.base, sync=sync))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("heading-member", "heading-role", "heading-address"):
        table.add_column(streams.written(Message(column)), no_wrap=True)
    table.add_column("TLI", justify="right", no_wrap=True)
    table.add_column("LSN", no_wrap=True)
    for column in ("heading-lag-bytes", "heading-lag-s"):
        table.add_column(streams.written(Message(column)), justify="right", no_wrap=True)
    table.add_column(streams.written(Message("heading-synchronous")), no_wrap=True)
    for s in states:
        synchronous = "" if s.role != "standby" else s.sync_state or streams.written(message("standby-not-streaming"))
        table.add_row(
            s.name,
            s.role,
            f"{s.address}:{s.port}",
            "" if s.timeline is None else str(s.timeline),
            s.lsn,
            "" if s.lag_bytes is None else f"{s.lag_bytes:,}",
            "" if s.lag_s is None or s.lag_bytes is None else f"{s.lag_s:.1f}",
            synchronous,
        )
    _out.print(table)
    _say(*_pooler_words(cluster), *(f"! {streams.written(t)}" for t in troubles))
    if not troubles:
        _say(f"--target {_shown(cluster)}")
    return 1 if troubles else 0


def switchover(folder: Path, to: str) -> int:
    """Perform an orderly switchover."""
    with at_work(folder) as cluster, watching("base-backup") as watch:
        old, began = cluster.record.primary, time.monotonic()
        done = roles.switchover(cluster, to=to, watch=watch)
    _say(
        msg(
            "cluster-switched",
            member=done.member,
            old=old,
            seconds=f"{done.seconds:.2f}",
            value=f"{time.monotonic() - began:.1f}",
        )
    )
    return 0


def failover(folder: Path, to: str, *, force: bool) -> int:
    """Perform a failover from a dead primary."""
    with at_work(folder) as cluster, watching("base-backup") as watch:
        found = state.member_state(cluster.primary)
        if found.role != "stopped" and not force:
            id = "error-primary-is-alive" if found.role == "primary" else "error-primary-does-not-respond"
            why = {} if found.role == "primary" else {"reason": found.reason}
            raise RefusedError(
                msg(id, name=cluster.primary.name, **why), msg("remedy-pgdyno-cluster-switchover-loses-nothing")
            )
        done = roles.failover(cluster, to=to, force=force, watch=watch)
    _say(
        msg("cluster-failed-over", member=done.member, seconds=f"{done.seconds:.2f}", seen=" and ".join(done.seen)),
        msg("cluster-hint-rejoin", folder=folder),
    )
    return 0


def rejoin(folder: Path, member: str | None) -> int:
    """Standbys again."""
    with at_work(folder) as cluster, watching("base-backup") as watch:
        if state.member_state(cluster.primary).role != "primary":
            raise RefusedError(
                msg("error-primary-does-not-run", name=cluster.primary.name),
                msg("remedy-pgdyno-cluster-failover-promotes-standby", folder=folder),
            )
        chosen = [cluster.member(member)] if member else cluster.others(cluster.primary)
        for m in chosen:
            if member or not following.is_streaming(cluster, m):
                _say(message("repaired-member", member=Name(m.name), how=roles.rejoin(cluster, m, watch)))
            else:
                slots.drop_all(m.local)
    return 0


def repair(folder: Path) -> int:
    """Repair the cluster: finish or undo an operation that was begun and not ended."""
    with stoppable(), record.locked(folder), watching("base-backup") as watch:
        cluster = ReplicatedCluster(folder)
        done = roles.repair(cluster, watch)
        following.wait_receiving(cluster)
        fails = archives.failing(cluster.primary.local)
    _say(*done, *([] if done else [msg("cluster-nothing-to-repair")]), *([fails] if fails else []))
    return 1 if fails else 0


# ---------------------------------------------------------------- inside


@contextmanager
def at_work(folder: Path) -> Iterator[ReplicatedCluster]:
    """Yield a cluster that has no unfinished operation, and lock it against other pgdyno processes.

    Raise ClusterError if an operation on the cluster was begun and not ended. Raise RefusedError if another pgdyno
    process works on the cluster.
    """
    with stoppable(), record.locked(folder):
        cluster = ReplicatedCluster(folder)
        refuse_unfinished(cluster)
        try:
            yield cluster
        except psycopg.Error as e:
            raise ClusterError(
                msg("error-member-refused-or-does-not", reason=one_line(e)),
                msg("remedy-pgdyno-cluster-status-shows-which", folder=folder),
            ) from e


def refuse_unfinished(cluster: ReplicatedCluster) -> None:
    """Raise ClusterError if an operation on the cluster was begun and not ended."""
    if left := leftovers.unfinished_operations(cluster):
        raise ClusterError(
            msg("error-unfinished-operations", base=cluster.base, operations=listed(left, "semicolon")),
            msg("remedy-pgdyno-cluster-status-shows-how", base=cluster.base),
        )


def _troubles(cluster: ReplicatedCluster, states: list[state.State]) -> list[Text]:
    found: list[Text] = []
    if record.is_locked(cluster.base):
        found.append(msg("cluster-busy"))
    else:
        found += [
            message("cluster-repair-it", trouble=x, folder=Name(str(cluster.base))) for x in leftovers.every(cluster)
        ]
    if all(s.role == "stopped" for s in states):
        return [*found, msg("cluster-all-stopped", base=cluster.base)]
    primaries = [s.name for s in states if s.role == "primary"]
    if len(primaries) > 1:
        found.append(msg("cluster-split-brain", names=" and ".join(primaries), base=cluster.base))
    if not primaries:
        found.append(msg("cluster-no-primary", base=cluster.base))
    if primaries and (fails := archives.failing(cluster.member(primaries[0]).local)):
        found.append(fails)
    for s in states:
        if s.role in ("stopped", "not answering"):
            why = message("in-brackets", text=Name(s.reason)) if s.reason else None
            found.append(message("cluster-member-is", member=Name(s.name), role=Name(s.role), reason=why))
        elif s.role == "standby" and s.streaming is None and primaries:
            found.append(msg("cluster-not-streaming", name=s.name, base=cluster.base))
    return found


def _pooler_words(cluster: ReplicatedCluster) -> list[Text]:
    """Return the address of the pooler, and what does not work through it."""
    if (pooler := cluster.pooler) is None:
        return []
    if pooler.process_id is None:
        return [msg("pooler-stopped")]
    of = pgbouncer.version(pgbouncer.find())
    limit = "" if pgbouncer.prepares(of) else msg("pooler-no-prepared")
    return [msg("pooler-address", version=of, host=pooler.address, port=pooler.port, limit=limit)]


def _shown(cluster: ReplicatedCluster) -> str:
    """Return the connection string for clients, without the password.

    The password is in the cluster's record, which only its owner may read.
    """
    words = cluster.conninfo.replace(f"password={cluster.record.client_password} ", "")
    return f'"{words}"  (password: "client_password" in {cluster.base / "replication.json"})'


def _backed_up(b: BaseBackup) -> Text:
    return message(
        "cluster-backed-up",
        member=Name(b.member),
        size=Name(pg_size(b.bytes)),
        time=Quantity(b.seconds, "seconds"),
        speed=Quantity(b.bytes_per_s, "bytes/s"),
    )


@contextmanager
def watching(phase: str) -> Iterator[Callable[[str, int], object]]:
    """Yield a function that shows how many bytes a long operation has processed."""
    stream = stream_for(console.errors(), quiet=False)
    try:
        yield lambda member, done: stream.emit(DatasetProgress(phase, done_bytes=done, member=member))
    finally:
        stream.emit(DatasetDone())
        stream.close()


def _say(*lines: Text | str) -> None:
    for line in lines:
        _out.print(line if isinstance(line, str) else streams.written(line), soft_wrap=True)
