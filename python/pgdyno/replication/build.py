"""Creation and removal of a replicated cluster and of its members."""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from psycopg import sql

from pgdyno.cluster import administration
from pgdyno.cluster import network as networks
from pgdyno.cluster.layout import DATABASE
from pgdyno.cluster.removal import Made
from pgdyno.cluster.settings import Setting
from pgdyno.errors import LocalError, RefusedError, UsageError, msg
from pgdyno.replication import (
    archives,
    configuration,
    disks,
    lifecycle,
    quorum,
    record,
    slots,
    tablespaces,
)
from pgdyno.replication.backup import BaseBackup, bytes_in, pg_basebackup, quoted
from pgdyno.replication.cluster import CLIENT_ROLE, REPLICATION_ROLE, ReplicatedCluster
from pgdyno.replication.member import Member
from pgdyno.replication.record import Record

_PORT = 5432

#: What replication needs, on every member: any of them may be the primary.
_NEEDED = [
    Setting("wal_level", "replica", "standbys"),
    Setting("max_wal_senders", "20", "senders"),
    Setting("max_replication_slots", "20", "slots"),
    Setting("hot_standby", "on", "hot-standby"),
    Setting("wal_log_hints", "on", "rewind"),
    Setting("max_slot_wal_keep_size", "8GB", "slot-size"),
    Setting("wal_keep_size", "1GB", "keep-size"),
    Setting("wal_retrieve_retry_interval", "200ms", "standby-retrieve"),
    Setting("wal_receiver_timeout", "5s", "receiver-timeout"),
    Setting("wal_sender_timeout", "5s", "sender-timeout"),
]


def build_members(cluster: ReplicatedCluster, watch: Callable[[str, int], object]) -> list[BaseBackup]:
    """Create the members that do not exist yet, and start all members.

    During each base backup, `watch` receives the member's name and the number of bytes so far. A half-finished
    member is created again.
    """
    backups = []
    with cluster.doing("create", cluster.record.primary):
        if cluster.network is not None:
            cluster.network.up()
        for member in [cluster.primary, *cluster.others(cluster.primary)]:
            if member.name in cluster.record.built:
                continue
            if cluster.record.disk_bytes:
                disks.make(cluster.base / member.name, cluster.record.disk_bytes)
            _discard(cluster, member)
            if member.name == cluster.record.primary:
                if cluster.archive is not None:
                    archives.make(cluster.archive, member.cluster.account)
                _build_primary(cluster, member)
            else:
                backups.append(base_backup(cluster, member, cluster.primary, watch))
            cluster.record.built.append(member.name)
            cluster.record.save(cluster.base)
        lifecycle.start_members(cluster)
    return backups


def _build_primary(cluster: ReplicatedCluster, member: Member) -> None:
    settings = configuration.settings_for(cluster, member, member)
    # Nobody is there yet that a commit could wait for.
    alone = [s for s in settings if s.name != "synchronous_standby_names"]
    pg_bin = None if cluster.record.pg_bin is None else Path(cluster.record.pg_bin)
    stage = cluster.base / "programs"
    member.cluster.create(alone, pg_bin=pg_bin, checksums=cluster.record.checksums, stage=stage)
    configuration.write_passfile(cluster, member)
    member.configure(alone, configuration.access(cluster))
    member.start()
    with administration.connect(member.local) as conn:
        for role, rights, password in (
            (REPLICATION_ROLE, "replication", cluster.record.replication_password),
            (CLIENT_ROLE, "in role pg_monitor", cluster.record.client_password),
        ):
            # Its verifier: a statement may stand in a log.
            verifier = conn.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
            words = sql.SQL("create role {} login password {} " + rights)
            conn.execute(words.format(sql.Identifier(role), sql.Literal(verifier)))
        conn.execute(
            sql.SQL("alter database {} owner to {}").format(sql.Identifier(DATABASE), sql.Identifier(CLIENT_ROLE))
        )
        spaces, identity = cluster.record.tablespaces, cluster.record.identity
        tablespaces.make(spaces, identity, member.name, member.cluster.account)
        tablespaces.create(conn, spaces, identity, member.name, CLIENT_ROLE)
        if member.major < 15:
            conn.execute(sql.SQL("grant create on schema public to {}").format(sql.Identifier(CLIENT_ROLE)))


def base_backup(
    cluster: ReplicatedCluster, member: Member, source: Member, watch: Callable[[str, int], object]
) -> BaseBackup:
    """Create a standby from nothing.

    pg_basebackup copies the running primary over the network and creates a slot for the standby.
    """
    began, spaces = time.monotonic(), cluster.record.tablespaces
    member.cluster.prepare()
    try:
        member.take_programs_of(source)
        tablespaces.make(spaces, cluster.record.identity, member.name, member.cluster.account)
        configuration.write_passfile(cluster, member)
        slots.drop(source.local, member.name)
        # pg_basebackup makes its own folder, and pgdyno's is not the account's to write in.
        member.cluster.layout.make_folder(member.data, member.cluster.account)
        conninfo = (
            f"host={source.address} port={source.port} user={REPLICATION_ROLE} "
            f"passfile={quoted(str(cluster.base / member.name / 'passfile'))} sslmode=disable connect_timeout=10"
        )
        pg_basebackup(
            source.program("pg_basebackup"),
            member.data,
            conninfo,
            member.name,
            member.cluster.account,
            lambda size: watch(member.name, size),
            launch=member.launch_bound,
            more=tablespaces.mapping(spaces, cluster.record.identity, source.name, member.name),
        )
        configuration.configure(cluster, member, source)
        member.mark_as_standby()
    except BaseException:
        member.cluster.abandon()
        raise
    return BaseBackup(member.name, bytes_in(member.data), time.monotonic() - began)


def _discard(cluster: ReplicatedCluster, member: Member) -> None:
    """Remove a member that is not complete."""
    member.stop()
    folder = cluster.base / member.name
    tablespaces.remove(cluster.record.tablespaces, cluster.record.identity, member.name)
    if not any((folder / name).exists() for name in ("cluster.json", "cluster.json.unfinished")):
        return
    for part in ("data", "socket"):
        with contextlib.suppress(OSError):
            Made.at(folder / part).remove()
    for file in ("passfile", "server.log", "rewinding", "cluster.json", "cluster.json.unfinished"):
        (folder / file).unlink(missing_ok=True)


def rebuild(
    cluster: ReplicatedCluster, member: Member, source: Member, watch: Callable[[str, int], object]
) -> BaseBackup:
    """Create a member again from a base backup."""
    _discard(cluster, member)
    return base_backup(cluster, member, source, watch)


def destroy(cluster: ReplicatedCluster) -> None:
    """Stop all members and remove the folder."""
    if (pooler := cluster.pooler) is not None:
        pooler.remove()
    for m in cluster.members:
        m.kill()
    if cluster.network is not None:
        cluster.network.down()
    for m in cluster.members:
        _discard(cluster, m)
        disks.remove(cluster.base / m.name)
        with contextlib.suppress(OSError):
            (cluster.base / m.name).rmdir()
    archives.remove(cluster.base)
    left = [m.name for m in cluster.members if (cluster.base / m.name).exists()]
    if left:
        raise LocalError(
            msg("error-could-not-be-removed-whole-3", base=cluster.base, left=", ".join(left)),
            msg("remedy-something-else-lies-there-look"),
        )
    with contextlib.suppress(OSError):
        Made.at(cluster.base / "programs").remove()
    for file in (record.FILE, record.LOCK):
        (cluster.base / file).unlink(missing_ok=True)
    # Whatever else lies there is somebody else's.
    with contextlib.suppress(OSError):
        cluster.base.rmdir()


def create(
    base: Path,
    standbys: int,
    synchronous_standby_names: str,
    settings: Sequence[Setting],
    *,
    use_namespaces: bool,
    archive: bool = False,
    pooler: bool = False,
    disk_bytes: int = 0,
    spaces: Mapping[str, str] | None = None,
    pg_bin: Path | None = None,
    checksums: bool | None = None,
) -> ReplicatedCluster:
    """Record a new cluster, which `build` creates.

    Raise RefusedError if the folder is not empty.
    """
    members = [f"node{n + 1}" for n in range(standbys + 1)]
    promise = quorum.read(synchronous_standby_names, members, members[0])
    if synchronous_standby_names.strip() and not 0 < promise.wanted <= len(promise.candidates):
        raise UsageError(
            msg("error-sync-standbys-commits-would-wait", wanted=promise.wanted, n_candidates=len(promise.candidates)),
            msg("remedy-ask-for-fewer-or-for"),
        )
    if base.exists() and any(base.iterdir()):
        raise RefusedError(msg("error-not-empty", base=base), msg("remedy-name-folder-does-not-exist"))
    base.mkdir(mode=0o755, parents=True, exist_ok=True)
    record.refuse_others_folder(base)
    base.chmod(base.stat().st_mode | 0o111)
    network = None
    if use_namespaces:
        network = (secrets.token_hex(3), networks.free_number())
    own = {
        s.name: s
        for s in [
            *settings,
            *_NEEDED,
            Setting("synchronous_standby_names", synchronous_standby_names, "sync-names"),
        ]
    }
    given = {s.name: s for s in settings if s.reason == "command-line"}
    made = Record(
        members=members,
        ports=dict.fromkeys(members, _PORT) if network else dict(zip(members, _free_ports(len(members)), strict=True)),
        synchronous_standby_names=synchronous_standby_names,
        primary=members[0],
        replication_password=secrets.token_urlsafe(18),
        client_password=secrets.token_urlsafe(18),
        settings=[(s.name, s.value, s.reason, s.since) for s in {**own, **given}.values()],
        network=network,
        pg_bin=None if pg_bin is None else str(pg_bin.absolute()),
        checksums=checksums,
        archive=archive,
        disk_bytes=disk_bytes,
        tablespaces=dict(spaces or {}),
        identity=secrets.token_hex(4),
        pooler=(_free_ports(1, 6432)[0], secrets.token_urlsafe(18)) if pooler else None,
        unfinished=("create", members[0]),
    )
    made.save(base)
    return ReplicatedCluster(base)


def _free_ports(count: int, first: int = 5433) -> list[int]:
    """Behind PostgreSQL's own, and below those that the system gives to anybody's connections."""
    found = []
    for port in range(first, first + 1000):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise RefusedError(
        msg("error-there-no-free-ports-from", first=first, value=first + 999), msg("remedy-stop-servers-not-needed")
    )
