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
from rich.table import Table

from pgdyno.cli import console
from pgdyno.cli.cluster import settings_of
from pgdyno.cli.progress import stream_for
from pgdyno.cli.stopping import stoppable
from pgdyno.cluster import network as networks
from pgdyno.errors import ClusterError, PgdynoError, RefusedError, UsageError, msg
from pgdyno.format import one_line
from pgdyno.load.units import pg_size
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
        _say("no network namespaces: the programs ip (iproute2) and setpriv are not here, so links cannot be cut")
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
        with record.locked(cluster.base), watching("base backup") as watch:
            try:
                backups = build.build_members(cluster, watch)
            except PgdynoError:
                # What a crash leaves is to be repaired; a mistake leaves nothing.
                build.destroy(cluster)
                raise
    where = "each in a network namespace" if cluster.network else "on 127.0.0.1"
    _say(
        f"created: {cluster.base}: {cluster.record.primary} and {standbys} standby{'s' if standbys > 1 else ''}, "
        f"{where}, in {time.monotonic() - began:.1f} s",
        *(_backed_up(b) for b in backups),
        *_pooler_words(cluster),
        f"see it:    pgdyno cluster status {folder}",
        f"break it:  pgdyno drill {folder} --fault kill-primary",
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
        _say(f"! {name} cannot go on as it is and is left stopped: pgdyno cluster rejoin {folder} {name}")
    _say(f"started; the primary is {cluster.record.primary}; --target {_shown(cluster)}")
    return 1 if left else 0


def stop(folder: Path) -> int:
    """Stop all members of the cluster."""
    with stoppable(), record.locked(folder):
        lifecycle.stop_members(ReplicatedCluster(folder))
    _say("stopped")
    return 0


def destroy(folder: Path) -> int:
    """Stop the cluster and remove it."""
    with stoppable(), record.locked(folder):
        cluster = ReplicatedCluster(folder)
        build.destroy(cluster)
    _say(f"removed {cluster.base}")
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
            "troubles": troubles,
        }
        sys.stdout.write(json.dumps(facts, indent=2) + "\n")
        return 1 if troubles else 0
    sync = cluster.record.synchronous_standby_names or "none: standbys are asynchronous"
    _say(f"{cluster.base}: synchronous_standby_names {sync}")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("member", "role", "address", "TLI", "LSN", "lag bytes", "lag s", "sync"):
        right = column in ("TLI", "lag bytes", "lag s")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    for s in states:
        streams = "" if s.role != "standby" else s.sync_state or "does not stream"
        table.add_row(
            s.name,
            s.role,
            f"{s.address}:{s.port}",
            "" if s.timeline is None else str(s.timeline),
            s.lsn,
            "" if s.lag_bytes is None else f"{s.lag_bytes:,}",
            "" if s.lag_s is None or s.lag_bytes is None else f"{s.lag_s:.1f}",
            streams,
        )
    _out.print(table)
    for line in [*_pooler_words(cluster), *(f"! {line}" for line in troubles)]:
        _say(line)
    if not troubles:
        _say(f"--target {_shown(cluster)}")
    return 1 if troubles else 0


def switchover(folder: Path, to: str) -> int:
    """Perform an orderly switchover."""
    with at_work(folder) as cluster, watching("base backup") as watch:
        old, began = cluster.record.primary, time.monotonic()
        done = roles.switchover(cluster, to=to, watch=watch)
    _say(
        f"{done.member} is the primary, {old} follows it: promoted in {done.seconds:.2f} s, "
        f"{time.monotonic() - began:.1f} s in all"
    )
    return 0


def failover(folder: Path, to: str, *, force: bool) -> int:
    """Perform a failover from a dead primary."""
    with at_work(folder) as cluster, watching("base backup") as watch:
        found = state.member_state(cluster.primary)
        if found.role != "stopped" and not force:
            how = (
                "lives and takes writes" if found.role == "primary" else f"lives, and does not answer ({found.reason})"
            )
            raise RefusedError(f"{cluster.primary.name} {how}", msg("remedy-pgdyno-cluster-switchover-loses-nothing"))
        done = roles.failover(cluster, to=to, force=force, watch=watch)
    _say(
        f"{done.member} is the primary: promoted in {done.seconds:.2f} s; compared {' and '.join(done.seen)}",
        f"the old one comes back by: pgdyno cluster rejoin {folder}",
    )
    return 0


def rejoin(folder: Path, member: str | None) -> int:
    """Standbys again."""
    with at_work(folder) as cluster, watching("base backup") as watch:
        if state.member_state(cluster.primary).role != "primary":
            raise RefusedError(
                msg("error-primary-does-not-run", name=cluster.primary.name),
                msg("remedy-pgdyno-cluster-failover-promotes-standby", folder=folder),
            )
        chosen = [cluster.member(member)] if member else cluster.others(cluster.primary)
        for m in chosen:
            if member or not following.is_streaming(cluster, m):
                _say(f"{m.name}: {roles.rejoin(cluster, m, watch)}")
            else:
                slots.drop_all(m.local)
    return 0


def repair(folder: Path) -> int:
    """Repair the cluster: finish or undo an operation that was begun and not ended."""
    with stoppable(), record.locked(folder), watching("base backup") as watch:
        cluster = ReplicatedCluster(folder)
        done = roles.repair(cluster, watch)
        following.wait_receiving(cluster)
        fails = archives.failing(cluster.primary.local)
    _say(*(done or ["nothing was to be done"]), *([fails] if fails else []))
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
            f"{cluster.base}: {'; '.join(left)}",
            msg("remedy-pgdyno-cluster-status-shows-how", base=cluster.base),
        )


def _troubles(cluster: ReplicatedCluster, states: list[state.State]) -> list[str]:
    found = []
    if record.is_locked(cluster.base):
        found.append("another pgdyno is at work on it")
    else:
        found += [f"{line}: pgdyno cluster repair {cluster.base}" for line in leftovers.every(cluster)]
    if all(s.role == "stopped" for s in states):
        return [*found, f"all members are stopped: pgdyno cluster start {cluster.base}"]
    primaries = [s.name for s in states if s.role == "primary"]
    if len(primaries) > 1:
        found.append(f"split brain: {' and '.join(primaries)} take writes: pgdyno cluster repair {cluster.base}")
    if not primaries:
        found.append(f"no primary: pgdyno cluster failover {cluster.base}")
    if primaries and (fails := archives.failing(cluster.member(primaries[0]).local)):
        found.append(fails)
    for s in states:
        if s.role in ("stopped", "not answering"):
            why = f" ({s.reason})" if s.reason else ""
            found.append(f"{s.name}: {s.role}{why}")
        elif s.role == "standby" and s.streaming is None and primaries:
            found.append(f"{s.name} does not stream: pgdyno cluster rejoin {cluster.base} {s.name}")
    return found


def _pooler_words(cluster: ReplicatedCluster) -> list[str]:
    """Return the address of the pooler, and what does not work through it."""
    if (pooler := cluster.pooler) is None:
        return []
    if pooler.process_id is None:
        return ["pooler: stopped"]
    of = pgbouncer.version(pgbouncer.find())
    how = "" if pgbouncer.prepares(of) else "; without prepared statements (1.21 has them): --protocol extended"
    return [f"pooler: PgBouncer {of} by transaction, host={pooler.address} port={pooler.port}{how}"]


def _shown(cluster: ReplicatedCluster) -> str:
    """Return the connection string for clients, without the password.

    The password is in the cluster's record, which only its owner may read.
    """
    words = cluster.conninfo.replace(f"password={cluster.record.client_password} ", "")
    return f'"{words}"  (password: "client_password" in {cluster.base / "replication.json"})'


def _backed_up(b: BaseBackup) -> str:
    return f"{b.member}: base backup of {pg_size(b.bytes)} in {b.seconds:.2f} s, {b.bytes_per_s / 1e6:,.0f} MB/s"


@contextmanager
def watching(phase: str) -> Iterator[Callable[[str, int], object]]:
    """Yield a function that shows how many bytes a long operation has processed."""
    stream = stream_for(console.errors(), quiet=False)
    try:
        yield lambda member, done: stream.emit(DatasetProgress(f"{phase} {member}", 0, 0, done, 0))
    finally:
        stream.emit(DatasetDone())
        stream.close()


def _say(*lines: str) -> None:
    for line in lines:
        _out.print(line, soft_wrap=True)
