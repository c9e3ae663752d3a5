"""Replicated cluster in a folder: its members, its network, how clients reach it, and its unfinished operation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pgdyno.cluster import network as networks
from pgdyno.cluster.layout import DATABASE
from pgdyno.cluster.target import Target
from pgdyno.errors import RefusedError, msg
from pgdyno.replication import archives, quorum, record, state
from pgdyno.replication.member import Member
from pgdyno.replication.pgbouncer import PgBouncer
from pgdyno.replication.record import Record

#: The role that standbys connect as, and the one that clients do.
REPLICATION_ROLE = "pgdyno_replication"
CLIENT_ROLE = "pgdyno"


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
        raise RefusedError(
            msg("error-no-member", name=name, base=self.base),
            msg("remedy-members-2", members=", ".join(self.record.members)),
        )

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
