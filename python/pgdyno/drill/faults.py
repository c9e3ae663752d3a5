"""Faults: what each one breaks and how, and its expected outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pgdyno.cluster import administration
from pgdyno.cluster.network import Links, Network
from pgdyno.drill import ledger
from pgdyno.drill.ledger import Key
from pgdyno.drill.records import Round
from pgdyno.errors import RefusedError, msg
from pgdyno.message import Argument, Message, Name, Text, listed, message
from pgdyno.replication import disks, following, lifecycle, roles, state
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.replication.member import Member
from pgdyno.units import Quantity

#: Bytes per second of a slow link: less than the ledger's clients write.
_SLOW = 100_000
#: What a round goes on with: the standbys find out and one is promoted; somebody promotes at once; the primary is
#: started again; nothing has to be done.
Then = Literal["detect", "promote", "restart", "nothing"]


@dataclass
class Scene:
    """A round under way, for its fault."""

    cluster: ReplicatedCluster
    #: Record of the round, which gets the events.
    round: Round
    #: Rows that were read while they were there.
    seen: set[Key] = field(default_factory=set)
    #: Who is to be promoted, whatever the others have; empty: the most advanced.
    promote: str = ""
    #: When the primary was gone, where that was not at once: nanoseconds since 1970.
    down_ns: int | None = None
    _links: Links | None = None

    def happened(self, event: str, **args: Argument) -> int:
        """Record an event by its message, less `drill-event-`; return its time in ns since 1970."""
        now = time.time_ns()
        self.round.events.append((now, Message(f"drill-event-{event}", args)))
        return now

    @property
    def primary(self) -> Member:
        """The one that is broken."""
        return self.cluster.primary

    @property
    def standbys(self) -> list[Member]:
        """The others."""
        return self.cluster.others(self.primary)

    @property
    def network(self) -> Network:
        """Raises RefusedError where there is none."""
        if self.cluster.network is None:
            raise RefusedError(
                msg("error-this-fault-cuts-links-members"),
                msg("remedy-make-cluster-root-ip-iproute2"),
            )
        return self.cluster.network

    def cut_standbys(self, *members: Member) -> None:
        """Cut the links between the primary and these standbys."""
        for m in members:
            self.network.cut(self.primary.name, m.name)
        self.happened("cut", primary=Name(self.primary.name), members=_names(members))

    def slow_standbys(self, *members: Member) -> None:
        """Limit the links between the primary and these standbys to a low bandwidth."""
        if self._links is None:
            self._links = Links(self.network)
        for m in members:
            self._links.slow(self.primary.name, m.name, bytes_per_s=_SLOW)
        speed = Quantity(_SLOW, "bytes/s")
        self.happened("slow", primary=Name(self.primary.name), members=_names(members), speed=speed)

    def mend_links(self) -> None:
        """All links are whole, and as fast as they were."""
        links, self._links = self._links, None
        if links is not None:
            links.close()
        if self.cluster.network is not None:
            self.cluster.network.mend_all()

    def look(self) -> None:
        """Read the ledger on the primary, as any client could."""
        with administration.connect(self.primary.local, patience_s=10) as conn:
            self.seen |= set(ledger.rows(conn, self.round.run))
        self.happened("read", n=len(self.seen), member=Name(self.primary.name))


def _names(members: Sequence[Member]) -> Text:
    return listed((Name(m.name) for m in members), "list")


@dataclass(frozen=True)
class Fault:
    """See the module."""

    name: str
    act: Callable[[Scene], None]
    then: Then
    #: Links are cut.
    needs_network: bool = False
    #: A member's disk is filled.
    needs_disk: bool = False
    #: At least so many standbys.
    standbys: int = 1
    #: Even with synchronous standbys acknowledged commits are lost: the drill shows that it can see it.
    must_lose: bool = False
    #: And only those that were acknowledged behind a warning, where commits wait for a standby.
    only_warned: bool = False


def _kill_primary(s: Scene) -> None:
    s.primary.kill()
    s.happened("killed", members=Name(s.primary.name))


def _stop_primary(s: Scene) -> None:
    s.primary.stop()
    s.happened("stopped", member=Name(s.primary.name))


def _freeze_primary(s: Scene) -> None:
    s.primary.freeze()
    s.happened("frozen", member=Name(s.primary.name))


def _cut_primary(s: Scene) -> None:
    # Clients still reach it: the worst case.
    s.cut_standbys(*s.standbys)


def _cut_standby(s: Scene) -> None:
    s.cut_standbys(s.standbys[0])
    # Longer than wal_sender_timeout: the primary gives it up.
    time.sleep(7)
    s.network.mend_all()
    s.happened("link-restored")
    following.wait_streaming(s.cluster, s.standbys[0])
    s.happened("streams", member=Name(s.standbys[0].name))


def _cut_standbys(s: Scene) -> None:
    s.cut_standbys(*s.standbys)
    time.sleep(10)
    s.network.mend_all()
    s.happened("links-restored")
    for m in s.standbys:
        following.wait_streaming(s.cluster, m)
    s.happened("all-stream")


def _slow_standby(s: Scene) -> None:
    s.slow_standbys(s.standbys[0])
    time.sleep(4)
    s.primary.kill()
    s.down_ns = s.happened("killed", members=Name(s.primary.name))


def _slow_standbys(s: Scene) -> None:
    s.slow_standbys(*s.standbys)
    time.sleep(4)
    s.primary.kill()
    s.down_ns = s.happened("killed", members=Name(s.primary.name))


def _kill_lonely_primary(s: Scene) -> None:
    s.cut_standbys(*s.standbys)
    # Longer than wal_sender_timeout: whoever falls back has done so.
    time.sleep(8)
    s.primary.kill()
    s.happened("killed", members=Name(s.primary.name))


def _disk_full(s: Scene) -> None:
    folder = s.cluster.base / s.primary.name
    size = s.primary.log.stat().st_size
    took = disks.fill(folder)
    s.happened("disk-full", member=Name(s.primary.name), size=Quantity(took, "bytes"))
    time.sleep(6)
    lives = state.member_state(s.primary).role == "primary"
    panicked = b"PANIC:" in s.primary.log.read_bytes()[size:]
    panic = message("drill-event-panic") if panicked else None
    s.happened("runs-without-space" if lives else "went-down", member=Name(s.primary.name), panic=panic)
    disks.empty(folder)
    s.happened("disk-freed", member=Name(s.primary.name))
    if not lives:
        s.primary.kill()
        s.primary.start()
        s.happened("restarted", member=Name(s.primary.name))


def _kill_all(s: Scene) -> None:
    for m in s.cluster.members:
        m.kill()
    s.happened("all-killed")


def _restart_during_sync_wait(s: Scene) -> None:
    s.cut_standbys(*s.standbys)
    time.sleep(1.5)
    s.primary.stop()
    s.happened("stopped-while-waiting", member=Name(s.primary.name))
    s.primary.start()
    s.happened("restarted", member=Name(s.primary.name))
    s.look()
    s.primary.kill()
    s.happened("killed", members=Name(s.primary.name))


def _cancel_sync_wait(s: Scene) -> None:
    s.cut_standbys(*s.standbys)
    cancel = (
        "select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep' and usename <> user"
    )
    cancelled = 0
    for _ in range(5):
        time.sleep(0.4)
        with administration.connect(s.primary.local, patience_s=10) as conn:
            row = conn.execute(cancel.encode()).fetchone()
            cancelled += int(row[0]) if row else 0
    s.happened("cancelled", n=cancelled)
    s.look()
    s.primary.kill()
    s.happened("killed", members=Name(s.primary.name))


def _double_failure(s: Scene) -> None:
    near, far = s.standbys[0], s.standbys[1]
    s.cut_standbys(far)
    time.sleep(2)
    s.primary.kill()
    near.kill()
    s.happened("killed", members=_names([s.primary, near]))


def _stale_promotion(s: Scene) -> None:
    stale = s.standbys[1]
    s.cut_standbys(stale)
    time.sleep(2)
    s.primary.kill()
    s.happened("killed", members=Name(s.primary.name))
    s.promote = stale.name


FAULTS = {
    f.name: f
    for f in (
        Fault("kill-primary", _kill_primary, "detect"),
        Fault("stop-primary", _stop_primary, "detect"),
        Fault("freeze-primary", _freeze_primary, "detect"),
        Fault(
            "cut-primary",
            _cut_primary,
            "detect",
            needs_network=True,
        ),
        Fault(
            "cut-standby",
            _cut_standby,
            "nothing",
            needs_network=True,
        ),
        Fault(
            "cut-standbys",
            _cut_standbys,
            "nothing",
            needs_network=True,
        ),
        Fault(
            "slow-standby",
            _slow_standby,
            "detect",
            needs_network=True,
        ),
        Fault(
            "slow-standbys",
            _slow_standbys,
            "detect",
            needs_network=True,
        ),
        Fault(
            "kill-lonely-primary",
            _kill_lonely_primary,
            "promote",
            needs_network=True,
        ),
        Fault(
            "disk-full",
            _disk_full,
            "nothing",
            needs_disk=True,
        ),
        Fault("kill-all", _kill_all, "restart"),
        Fault(
            "restart-during-sync-wait",
            _restart_during_sync_wait,
            "promote",
            needs_network=True,
        ),
        Fault(
            "cancel-sync-wait",
            _cancel_sync_wait,
            "promote",
            needs_network=True,
            must_lose=True,
            only_warned=True,
        ),
        Fault(
            "double-failure",
            _double_failure,
            "promote",
            needs_network=True,
            standbys=2,
            must_lose=True,
        ),
        Fault(
            "stale-promotion",
            _stale_promotion,
            "promote",
            needs_network=True,
            standbys=2,
            must_lose=True,
        ),
    )
}


def recover(scene: Scene, fault: Fault, *, fence: bool) -> roles.Promotion | None:
    """Recover from a fault as the policy prescribes.

    Raise RefusedError if the policy refuses.
    """
    cluster = scene.cluster
    if fault.then == "nothing":
        return None
    if fault.then == "restart":
        lifecycle.start_members(cluster)
        scene.happened("all-started", member=Name(cluster.primary.name))
        return None
    # Somebody who promotes whom they like does not ask.
    return roles.failover(cluster, to=scene.promote, force=bool(scene.promote), fence=fence)
