"""Members of a cluster that another tool manages, observed in threads: who is the primary, and who streams."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Literal

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.cluster.target import Target
from pgdyno.drill.description import Description
from pgdyno.errors import PgdynoError, RefusedError, TrialError, UsageError, msg
from pgdyno.message import Name, Text, message

#: How often each member is looked at, and for how long a look counts.
_LOOK_S, _FRESH_S = 0.05, 1.0
#: How long a member may take to answer.
_ANSWER_S = 3.0
Role = Literal["primary", "standby", "not answering"]


@dataclass(frozen=True)
class Seen:
    """A member as it was when it last answered."""

    role: Role
    at: float
    #: Bytes of WAL from 0/0: written on a primary, replayed on a standby.
    position: int = 0
    #: Of a primary: how many standbys stream.
    streaming: int = 0


class Member:
    """Looked at again and again in a thread of its own: one that is frozen holds up nobody else."""

    _ASK = """
    select pg_is_in_recovery(),
           pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
                           '0/0')::bigint,
           (select count(*) from pg_stat_get_wal_senders() where state = 'streaming'),
           pg_has_role(current_user, 'pg_read_all_stats', 'usage')"""

    def __init__(self, name: str, target: Target) -> None:
        self.name = name
        self.target = target
        #: Whom a primary streams to is shown to members of pg_monitor alone.
        self.may_see = True
        self._seen = Seen("not answering", 0.0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()

    @property
    def last(self) -> Seen:
        """Return its last answer, however old, or that it does not answer."""
        return self._seen

    @property
    def seen(self) -> Seen:
        fresh = time.monotonic() - self._seen.at < _FRESH_S
        return self._seen if fresh else Seen("not answering", self._seen.at)

    def _look_on(self) -> None:
        while not self._over.is_set():
            try:
                with administration.connect(self.target, patience_s=_ANSWER_S) as conn:
                    while not self._over.is_set():
                        row = conn.execute(self._ASK.encode()).fetchone()
                        assert row is not None
                        self.may_see = bool(row[3])
                        role: Role = "standby" if row[0] else "primary"
                        self._seen = Seen(role, time.monotonic(), int(row[1] or 0), int(row[2]))
                        self._over.wait(_LOOK_S)
            except (PgdynoError, psycopg.Error):
                self._seen = Seen("not answering", time.monotonic())
                self._over.wait(_LOOK_S)


class Members:
    """Use as a context manager: members are looked at within it."""

    def __init__(self, description: Description) -> None:
        """Resolve the members of a description.

        Raise UsageError if a connection string is not valid, or if two members are the same server. Raise TargetError
        if a member cannot be connected to.
        """
        self.description = description
        self.members: list[Member] = []
        for name, text in description.members.items():
            target = targets.resolve(text, _ANSWER_S, named=f"members.{name}")
            self.members.append(Member(name, target))
        places = {(m.target.host, m.target.port) for m in self.members}
        if len(places) < len(self.members):
            raise UsageError(msg("error-members-two-them-one-server"), msg("remedy-give-each-own-host-port"))

    def __enter__(self) -> Members:
        for m in self.members:
            m.start()
        return self

    def __exit__(self, *_: object) -> None:
        for m in self.members:
            m.stop()

    def primaries(self) -> list[Member]:
        """Return the members that accept writes."""
        return [m for m in self.members if m.seen.role == "primary"]

    def is_whole(self) -> bool:
        """One primary, to which all others stream."""
        found = self.primaries()
        standbys = [m for m in self.members if m.seen.role == "standby"]
        # Others may stream as well: an archive, logical replication.
        return len(found) == 1 and len(standbys) == len(self.members) - 1 <= found[0].seen.streaming

    def wait_whole(self, patience_s: float) -> Member:
        """Wait until the cluster is whole; return the primary.

        Raise TrialError if it is not whole within `patience_s` seconds. Raise RefusedError if the role may not see
        whether the standbys stream.
        """
        deadline = time.monotonic() + patience_s
        while not self.is_whole():
            if not all(m.may_see for m in self.members):
                role = self.members[0].target.user
                raise RefusedError(
                    msg("error-role-may-not-see-whether", role=role), msg("remedy-grant-pg-monitor", role=role)
                )
            if time.monotonic() > deadline:
                shown = ", ".join(f"{m.name}: {m.seen.role}" for m in self.members)
                raise TrialError(
                    msg("error-members-not-one-primary-standbys", patience_s=f"{patience_s:g}", shown=shown),
                    msg("remedy-put-cluster-right-first-whole"),
                )
            time.sleep(_LOOK_S)
        return self.primaries()[0]

    def wait_caught_up(self, patience_s: float) -> None:
        """Wait until the standbys have replayed the primary's current WAL position.

        Raise TrialError if they have not done so within `patience_s` seconds.
        """
        deadline = time.monotonic() + patience_s
        wanted = self.wait_whole(patience_s).seen.position
        while any(m.seen.position < wanted for m in self.members):
            if time.monotonic() > deadline:
                raise TrialError(
                    msg("error-standbys-do-not-catch-up", patience_s=f"{patience_s:g}"), msg("remedy-one-them-paused")
                )
            time.sleep(_LOOK_S)


class Watcher:
    """Writes down who takes writes from the fault on."""

    def __init__(self, cluster: Members, old: str) -> None:
        self._cluster = cluster
        self._roles: dict[str, Role] = {}
        self._old = old
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self.events: list[tuple[int, Text]] = []
        self.promoted_ns: int | None = None
        self.other_primaries: list[str] = []
        #: Of members that answered as primaries: since when, by the monotonic clock.
        self._since: dict[str, float] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(_ANSWER_S)

    def _look_on(self) -> None:
        while not self._over.is_set():
            now = time.time_ns()
            for m in self._cluster.members:
                role = m.seen.role
                if self._roles.get(m.name) not in (None, role):
                    self.events.append((now, message("drill-event-role", member=Name(m.name), role=Name(role))))
                    if role == "primary" and m.name != self._old and self.promoted_ns is None:
                        self.promoted_ns = now
                self._roles[m.name] = role
            self._look_for_two(now)
            self._over.wait(_LOOK_S)

    def _look_for_two(self, now: int) -> None:
        """Record members that are primaries at the same time.

        Two members are primaries at the same time if each was seen as a primary after the other had been. A single
        observation is not enough: a frozen member was a primary until a moment ago.
        """
        for m in self._cluster.members:
            last = m.last
            if last.role == "primary":
                self._since.setdefault(m.name, last.at)
            elif last.role == "standby":
                self._since.pop(m.name, None)
        primaries = [m for m in self._cluster.members if m.last.role == "primary"]
        for m in primaries:
            later = [o for o in primaries if self._since[o.name] > self._since[m.name]]
            if m.name not in self.other_primaries and any(m.last.at > self._since[o.name] for o in later):
                self.other_primaries.append(m.name)
                self.events.append((now, message("drill-event-second-primary", member=Name(m.name))))
