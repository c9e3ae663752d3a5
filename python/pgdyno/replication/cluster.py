"""Primary and its standbys in a folder: create, start, stop and remove them.

The module also finishes operations during which pgdyno was killed.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg import sql

from pgdyno.cluster import administration
from pgdyno.cluster import network as networks
from pgdyno.cluster.layout import DATABASE
from pgdyno.cluster.removal import Made
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.errors import ClusterError, LocalError, RefusedError, UsageError
from pgdyno.replication import archives, disks, quorum, record, slots, state, tablespaces
from pgdyno.replication.backup import BaseBackup, bytes_in, pg_basebackup, quoted
from pgdyno.replication.member import Member
from pgdyno.replication.pgbouncer import PgBouncer
from pgdyno.replication.record import Record

#: The role that standbys connect as, and the one that clients do.
REPLICATION_ROLE = "pgdyno_replication"
CLIENT_ROLE = "pgdyno"
#: How long a standby may take until it streams.
STREAMING_S = 60.0
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


class ReplicatedCluster:
    """See the module. Raises RefusedError where `base` holds none."""

    def __init__(self, base: Path) -> None:
        self.base = base.absolute()
        self.record: Record = record.load(self.base)
        found = self.record.network
        owner = networks.owner_word(self.base)
        self.network = None if found is None else networks.Network(found[0], found[1], self.record.members, owner)
        self.members = [self._member(name) for name in self.record.members]

    def _member(self, name: str) -> Member:
        address = "127.0.0.1" if self.network is None else self.network.address(name)
        member = Member(name, self.base / name, address, self.record.ports[name], [])
        if self.network is not None:
            member.launch = self.network.launch(name, member.cluster.account)
        return member

    def member(self, name: str) -> Member:
        """Return the member with that name.

        Raise RefusedError if no such member exists.
        """
        for m in self.members:
            if m.name == name:
                return m
        raise RefusedError(f"{name} is no member of {self.base}", f"Members: {', '.join(self.record.members)}.")

    @property
    def primary(self) -> Member:
        """The primary, as pgdyno has made it."""
        return self.member(self.record.primary)

    def others(self, member: Member) -> list[Member]:
        """All members but that."""
        return [m for m in self.members if m.name != member.name]

    @property
    def promise(self) -> quorum.Promise:
        """Promise that synchronous_standby_names makes with the current primary."""
        return quorum.read(self.record.synchronous_standby_names, self.record.members, self.record.primary)

    def states(self) -> list[state.State]:
        """All members as they are now."""
        return state.all_states(self.members)

    def target_of(self, member: Member) -> Target:
        """Return the target by which clients reach one member."""
        return Target(
            host=member.address,
            port=member.port,
            user=CLIENT_ROLE,
            dbname=DATABASE,
            password=self.record.client_password,
            options={"sslmode": "disable"},
            connect_timeout_s=5.0,
        )

    @property
    def conninfo(self) -> str:
        """Connection string of libpq, with the password, by which clients reach the current primary."""
        hosts, ports = ",".join(m.address for m in self.members), ",".join(str(m.port) for m in self.members)
        return (
            f"host={hosts} port={ports} user={CLIENT_ROLE} dbname={DATABASE} password={self.record.client_password} "
            "target_session_attrs=read-write"
        )

    # ------------------------------------------------------------ what is under way

    @contextlib.contextmanager
    def doing(self, what: str, primary: str) -> Iterator[None]:
        """Record an operation as unfinished until the block ends successfully.

        If pgdyno is killed within the block, the record stays.
        """
        self.record.unfinished = (what, primary)
        self.record.save(self.base)
        yield
        if self.record.primary != primary:
            self.record.primary, self.record.following = primary, []
        self.record.unfinished = None
        self.record.save(self.base)

    def begin_again(self) -> None:
        """Clear the record of the unfinished operation, because it has been undone."""
        self.record.unfinished = None
        self.record.save(self.base)

    # ------------------------------------------------------------ configuration

    def settings_for(self, member: Member, primary: Member) -> list[Setting]:
        """Return the settings of a member while `primary` is the primary."""
        settings = [self._expanded(Setting(*s)) for s in self.record.settings]
        if self.archive is not None:
            settings += archives.settings(self.archive)
        if member.name == primary.name:
            return settings
        passfile = str(self.base / member.name / "passfile")
        source = {
            "host": primary.address,
            "port": primary.port,
            "user": REPLICATION_ROLE,
            "application_name": member.name,
            "passfile": passfile,
            "connect_timeout": 3,
            "sslmode": "disable",
        }
        return [
            *settings,
            Setting("primary_conninfo", " ".join(f"{k}={quoted(str(v))}" for k, v in source.items()), "primary"),
            Setting("primary_slot_name", member.name, "slot"),
        ]

    def _expanded(self, setting: Setting) -> Setting:
        """`*` would be anybody who streams, a base backup that is being taken too: members are meant."""
        if setting.name != "synchronous_standby_names":
            return setting
        return replace(setting, value=self.names_of(setting.value))

    def names_of(self, synchronous_standby_names: str) -> str:
        """Return the setting with the names of the members in place of `*`."""
        return synchronous_standby_names.replace("*", ", ".join(self.record.members))

    def configure(self, member: Member, primary: Member) -> None:
        """Write a member's configuration."""
        self._write_passfile(member)
        member.configure(self.settings_for(member, primary), self._access())

    @property
    def pooler(self) -> PgBouncer | None:
        """PgBouncer before it, where there is one: on this machine, as clients are."""
        if self.record.pooler is None:
            return None
        port, console = self.record.pooler
        address = "127.0.0.1" if self.network is None else self.network.client
        passwords = (self.record.client_password, console)
        account = self.primary.cluster.account
        return PgBouncer(self.base / "pooler", address, port, account, CLIENT_ROLE, passwords)

    @property
    def pooled_target(self) -> Target | None:
        """Target by which clients reach the current primary through the pooler, or None without a pooler."""
        pooler = self.pooler
        if pooler is None:
            return None
        return replace(self.target_of(self.primary), host=pooler.address, port=pooler.port)

    def lead_clients(self) -> None:
        """Point the pooler to the primary."""
        if (pooler := self.pooler) is not None:
            pooler.lead_to(self.primary.address, self.primary.port)

    @property
    def archive(self) -> Path | None:
        """Folder of archived WAL, or None if WAL is not archived."""
        return archives.folder_of(self.base) if self.record.archive else None

    def _access(self) -> list[str]:
        members = sorted({m.address for m in self.members})
        client = "127.0.0.1" if self.network is None else self.network.client
        return [
            *(f"host replication {REPLICATION_ROLE} {a}/32 scram-sha-256" for a in members),
            f"host all {CLIENT_ROLE} {client}/32 scram-sha-256",
            *(f"host all {CLIENT_ROLE} {a}/32 scram-sha-256" for a in members if a != client),
        ]

    def _write_passfile(self, member: Member) -> None:
        path = self.base / member.name / "passfile"
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        lines = [f"{m.address}:{m.port}:*:{REPLICATION_ROLE}:{self.record.replication_password}" for m in self.members]
        path.write_text("\n".join(lines) + "\n")
        member.cluster.account.own(path)

    def set(self, **values: str) -> None:
        """Change settings of all members that need no restart; the members apply them at once."""
        unlike = [s for s in self.record.settings if s[0] not in values]
        self.record.settings = [*unlike, *((name, value, "set later", 0) for name, value in values.items())]
        self.record.synchronous_standby_names = values.get(
            "synchronous_standby_names", self.record.synchronous_standby_names
        )
        self.record.save(self.base)
        for m in self.members:
            self.configure(m, self.primary)
            m.reload()

    def setting(self, name: str) -> str:
        """Return the value of a setting on the primary."""
        with administration.connect(self.primary.local) as conn:
            row = conn.execute("select current_setting(%s)", [name]).fetchone()
        return str(row[0]) if row else ""

    # ------------------------------------------------------------ made and removed

    def build(self, watch: Callable[[str, int], object]) -> list[BaseBackup]:
        """Create the members that do not exist yet, and start all members.

        During each base backup, `watch` receives the member's name and the number of bytes so far. A half-finished
        member is created again.
        """
        backups = []
        with self.doing("create", self.record.primary):
            if self.network is not None:
                self.network.up()
            for member in [self.primary, *self.others(self.primary)]:
                if member.name in self.record.built:
                    continue
                if self.record.disk_bytes:
                    disks.make(self.base / member.name, self.record.disk_bytes)
                self._discard(member)
                if member.name == self.record.primary:
                    if self.archive is not None:
                        archives.make(self.archive, member.cluster.account)
                    self._build_primary(member)
                else:
                    backups.append(self.base_backup(member, self.primary, watch))
                self.record.built.append(member.name)
                self.record.save(self.base)
            self.start()
        return backups

    def _build_primary(self, member: Member) -> None:
        settings = self.settings_for(member, member)
        # Nobody is there yet that a commit could wait for.
        alone = [s for s in settings if s.name != "synchronous_standby_names"]
        pg_bin = None if self.record.pg_bin is None else Path(self.record.pg_bin)
        stage = self.base / "programs"
        member.cluster.create(alone, pg_bin=pg_bin, checksums=self.record.checksums, stage=stage)
        self._write_passfile(member)
        member.configure(alone, self._access())
        member.start()
        with administration.connect(member.local) as conn:
            for role, rights, password in (
                (REPLICATION_ROLE, "replication", self.record.replication_password),
                (CLIENT_ROLE, "in role pg_monitor", self.record.client_password),
            ):
                # Its verifier: a statement may stand in a log.
                verifier = conn.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
                words = sql.SQL("create role {} login password {} " + rights)
                conn.execute(words.format(sql.Identifier(role), sql.Literal(verifier)))
            conn.execute(
                sql.SQL("alter database {} owner to {}").format(sql.Identifier(DATABASE), sql.Identifier(CLIENT_ROLE))
            )
            spaces, identity = self.record.tablespaces, self.record.identity
            tablespaces.make(spaces, identity, member.name, member.cluster.account)
            tablespaces.create(conn, spaces, identity, member.name, CLIENT_ROLE)
            if member.major < 15:
                conn.execute(sql.SQL("grant create on schema public to {}").format(sql.Identifier(CLIENT_ROLE)))

    def base_backup(self, member: Member, source: Member, watch: Callable[[str, int], object]) -> BaseBackup:
        """Create a standby from nothing.

        pg_basebackup copies the running primary over the network and creates a slot for the standby.
        """
        began, spaces = time.monotonic(), self.record.tablespaces
        member.cluster.prepare()
        try:
            member.take_programs_of(source)
            tablespaces.make(spaces, self.record.identity, member.name, member.cluster.account)
            self._write_passfile(member)
            slots.drop(source.local, member.name)
            # pg_basebackup makes its own folder, and pgdyno's is not the account's to write in.
            member.cluster.layout.make_folder(member.data, member.cluster.account)
            conninfo = (
                f"host={source.address} port={source.port} user={REPLICATION_ROLE} "
                f"passfile={quoted(str(self.base / member.name / 'passfile'))} sslmode=disable connect_timeout=10"
            )
            pg_basebackup(
                source.program("pg_basebackup"),
                member.data,
                conninfo,
                member.name,
                member.cluster.account,
                lambda size: watch(member.name, size),
                launch=member.launch_bound,
                more=tablespaces.mapping(spaces, self.record.identity, source.name, member.name),
            )
            self.configure(member, source)
            member.mark_as_standby()
        except BaseException:
            member.cluster.abandon()
            raise
        return BaseBackup(member.name, bytes_in(member.data), time.monotonic() - began)

    def _discard(self, member: Member) -> None:
        """Remove a member that is not complete."""
        member.stop()
        folder = self.base / member.name
        tablespaces.remove(self.record.tablespaces, self.record.identity, member.name)
        if not any((folder / name).exists() for name in ("cluster.json", "cluster.json.unfinished")):
            return
        for part in ("data", "socket"):
            with contextlib.suppress(OSError):
                Made.at(folder / part).remove()
        for file in ("passfile", "server.log", "rewinding", "cluster.json", "cluster.json.unfinished"):
            (folder / file).unlink(missing_ok=True)

    def rebuild(self, member: Member, source: Member, watch: Callable[[str, int], object]) -> BaseBackup:
        """Create a member again from a base backup."""
        self._discard(member)
        return self.base_backup(member, source, watch)

    def destroy(self) -> None:
        """Stop all members and remove the folder."""
        if (pooler := self.pooler) is not None:
            pooler.remove()
        for m in self.members:
            m.kill()
        if self.network is not None:
            self.network.down()
        for m in self.members:
            self._discard(m)
            disks.remove(self.base / m.name)
            with contextlib.suppress(OSError):
                (self.base / m.name).rmdir()
        archives.remove(self.base)
        left = [m.name for m in self.members if (self.base / m.name).exists()]
        if left:
            raise LocalError(
                f"{self.base}: {', '.join(left)} could not be removed whole", "Something else lies there: look."
            )
        with contextlib.suppress(OSError):
            Made.at(self.base / "programs").remove()
        for file in (record.FILE, record.LOCK):
            (self.base / file).unlink(missing_ok=True)
        # Whatever else lies there is somebody else's.
        with contextlib.suppress(OSError):
            self.base.rmdir()

    # ------------------------------------------------------------ started and stopped

    def start(self) -> list[str]:
        """Start the primary, then its standbys, and wait until they stream; return the members left alone.

        A former primary that has not joined again is left alone, because it would accept writes. A member whose
        pg_rewind was interrupted is left alone, because its blocks are of two points in time.
        """
        if self.network is not None:
            self.network.up()
            self.network.mend_all()
        primary = self.primary
        for m in self.members:
            disks.mount(self.base / m.name)
            disks.empty(self.base / m.name)
            m.refuse_if_unbuilt()
            m.thaw()
        self.configure(primary, primary)
        primary.start()
        primary.reload()
        standbys = [m for m in self.others(primary) if m.is_marked_as_standby and not m.is_half_rewound]
        for m in standbys:
            slots.ensure(primary.local, m.name)
            self.configure(m, primary)
            m.start()
        for m in standbys:
            self.wait_streaming(m)
        if (pooler := self.pooler) is not None:
            pooler.start(primary.address, primary.port)
        return [m.name for m in self.others(primary) if m not in standbys]

    def stop(self) -> None:
        """Stop all members, then the network.

        The primary stops first, so that its standbys receive all of its WAL.
        """
        if (pooler := self.pooler) is not None:
            pooler.stop()
        for m in [self.primary, *self.others(self.primary)]:
            m.stop()
        for m in self.members:
            disks.unmount(self.base / m.name)
        if self.network is not None:
            self.network.down()

    def is_streaming(self, member: Member) -> bool:
        """Return True if the primary streams to the member on the primary's own timeline."""
        with administration.connect(self.primary.local, patience_s=5.0) as conn:
            return self._streams(conn, member)

    def _streams(self, conn: psycopg.Connection[tuple[object, ...]], member: Member) -> bool:
        ask = (
            "select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int "
            "from pg_stat_replication where application_name = %s and state = 'streaming'"
        )
        found = conn.execute(ask, [member.name]).fetchone()
        # A standby whose WAL has parted from the primary's is streamed the old timeline for a moment, up to where they
        # parted; it takes nothing of the new one.
        return found is not None and state.received_timeline(member) == found[0]

    def wait_streaming(self, member: Member, patience_s: float = STREAMING_S) -> None:
        """Wait until the primary streams to a member on the primary's own timeline.

        Raise ClusterError if that takes longer than `patience_s` seconds.
        """
        deadline = time.monotonic() + patience_s
        with administration.connect(self.primary.local, patience_s=5.0) as conn:
            while not self._streams(conn, member):
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"{member.name} does not stream from {self.primary.name} within {patience_s:g} s: "
                        f"{member.last_words()}",
                        "Build it anew: pgdyno cluster rejoin.",
                    )
                time.sleep(0.02)
        if member.name not in self.record.following:
            self.record.following.append(member.name)
            self.record.save(self.base)

    def wait_receiving(self, patience_s: float = STREAMING_S) -> None:
        """Wait until every other running member has received the WAL that the primary writes now.

        A connection over a cut link counts as streaming until the timeout of one of its ends. Only then is the
        connection made anew. Raise ClusterError if the wait takes longer than `patience_s` seconds.
        """
        deadline = time.monotonic() + patience_s
        names = [m.name for m in self.others(self.primary) if m.process_id is not None]
        ask = "select count(*) from pg_stat_replication where application_name = any(%s) and write_lsn >= %s::pg_lsn"
        with administration.connect(self.primary.local, patience_s=5.0) as conn:
            # It must not wait for those that it asks about.
            conn.execute("set synchronous_commit to local")
            row = conn.execute("select pg_logical_emit_message(true, 'pgdyno', '')").fetchone()
            now = row[0] if row else None
            while conn.execute(ask, [names, now]).fetchone() != (len(names),):
                if time.monotonic() > deadline:
                    raise ClusterError("the standbys do not receive", "pgdyno cluster status shows how far they are.")
                time.sleep(0.02)

    def wait_caught_up(self, patience_s: float = STREAMING_S) -> None:
        """Wait until all streaming standbys have replayed the WAL that the primary has now.

        Raise ClusterError if that takes longer than `patience_s` seconds.
        """
        deadline = time.monotonic() + patience_s
        ask = "select bool_and(replay_lsn >= %s::pg_lsn) from pg_stat_replication where state = 'streaming'"
        with administration.connect(self.primary.local, patience_s=5.0) as conn:
            row = conn.execute("select pg_current_wal_flush_lsn()").fetchone()
            now = row[0] if row else None
            while not (found := conn.execute(ask, [now]).fetchone()) or not found[0]:
                if time.monotonic() > deadline:
                    raise ClusterError("the standbys do not catch up", "pgdyno cluster status shows how far they are.")
                time.sleep(0.02)


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
            f"--sync: {promise.wanted} of {len(promise.candidates)} standbys: commits would wait for ever",
            "Ask for fewer, or for more standbys.",
        )
    if base.exists() and any(base.iterdir()):
        raise RefusedError(f"{base} is not empty", "Name a folder that does not exist yet.")
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
    raise RefusedError(f"there are no free ports from {first} to {first + 999}", "Stop servers that are not needed.")
