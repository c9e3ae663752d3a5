"""Who is the primary: promoted, switched, followed, and joined again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.cluster import target as targets
from pgdyno.cluster.process import environment
from pgdyno.errors import ClusterError, RefusedError
from pgdyno.replication import state
from pgdyno.replication.cluster import ReplicatedCluster, drop_all_slots, ensure_slot
from pgdyno.replication.member import Member

#: How long a standby that only has to look elsewhere may take until it streams.
_FOLLOW_S = 10.0
Watch = Callable[[str, int], object]


def nobody(_: str, __: int) -> None:
    """Watches nothing."""


@dataclass(frozen=True)
class Promotion:
    """A standby has become the primary."""

    member: str
    #: That pg_promote took.
    seconds: float
    #: When it was done, in nanoseconds since 1970: before the others were told.
    at_ns: int
    #: Members whose positions were compared, and how many had to be.
    seen: list[str]
    needed: int


def candidate(cluster: ReplicatedCluster, *, despite_quorum: bool = False) -> tuple[Member, list[str]]:
    """The most advanced standby, and whose positions were compared: of those that have followed this primary, so that
    their positions are on its timeline. What a standby says of its timeline when its WAL receiver is gone is that of
    its last restartpoint, and must not be compared. Raises RefusedError where too few answer to be sure that one of
    them has every acknowledged commit, unless `despite_quorum`.
    """
    followers = [m for m in cluster.others(cluster.primary) if m.name in cluster.record.following]
    standbys = [s for m in followers if (s := state.of_member(m)).role == "standby"]
    seen = [s.name for s in standbys]
    promise = cluster.promise
    if not standbys:
        raise RefusedError(
            f"no standby answers that has followed {cluster.primary.name}: there is nobody to promote",
            "pgdyno cluster status shows why. --to NAME --force promotes one all the same.",
        )
    counted = [name for name in seen if name in promise.candidates]
    if promise.wanted and len(counted) < promise.must_be_seen() and not despite_quorum:
        raise RefusedError(
            f"{len(counted)} of {len(promise.candidates)} standbys answer, and {promise.must_be_seen()} must: with "
            f"{cluster.record.synchronous_standby_names!r} an acknowledged commit may be on none of those that do",
            "Start the others first, or --force and lose what only they have.",
        )
    best = max(standbys, key=lambda s: s.received or 0)
    return cluster.member(best.name), seen


def failover(
    cluster: ReplicatedCluster, *, to: str = "", force: bool = False, fence: bool = True, watch: Watch = nobody
) -> Promotion:
    """Promotes the most advanced standby, or `to`; the old primary is killed first, so that nobody writes there any
    more, unless `fence` is False. The others follow; the old primary is left as it is.
    """
    old = cluster.primary
    if fence:
        old.kill()
    if to:
        chosen, seen = cluster.member(to), [to]
        if chosen.name == old.name:
            raise RefusedError(f"{to} is the primary already")
        if to not in cluster.record.following and not force:
            raise RefusedError(
                f"{to} has not followed {old.name} since that is the primary: it may be far behind",
                "Promote another, or --force.",
            )
    else:
        chosen, seen = candidate(cluster, despite_quorum=force)
    needed = cluster.promise.must_be_seen()
    before, followed = {s.name: s for s in cluster.states()}, set(cluster.record.following)
    with cluster.doing("failover", chosen.name):
        seconds = promote(chosen)
        at_ns = time.time_ns()
    for m in cluster.others(chosen):
        if m.name != old.name and before[m.name].role == "standby":
            ahead = (before[m.name].received or 0) > (before[chosen.name].received or 0)
            follow(cluster, m, watch, ahead=ahead and m.name in followed)
    return Promotion(chosen.name, seconds, at_ns, seen, needed)


def switchover(cluster: ReplicatedCluster, *, to: str = "", watch: Watch = nobody) -> Promotion:
    """The primary is stopped in order, so that a standby has all of it, which is promoted then; the old primary follows
    it. Raises RefusedError where that standby does not stream.
    """
    old = cluster.primary
    if to == old.name:
        raise RefusedError(f"{to} is the primary already")
    chosen = cluster.member(to) if to else candidate(cluster)[0]
    if not cluster.is_streaming(chosen):
        raise RefusedError(f"{chosen.name} does not stream from {old.name}", "Join it first: pgdyno cluster rejoin.")
    needed = cluster.promise.must_be_seen()
    with cluster.doing("switchover", chosen.name):
        old.stop()
        seconds = promote(chosen)
        at_ns = time.time_ns()
    # The old primary last: the others have turned away from its slots by then.
    for m in sorted(cluster.others(chosen), key=lambda m: m.name == old.name):
        rejoin(cluster, m, watch)
    return Promotion(chosen.name, seconds, at_ns, [chosen.name], needed)


def promote(member: Member) -> float:
    """Makes a standby the primary; returns how many seconds that took until it takes writes."""
    began = time.monotonic()
    with targets.administrative(member.local) as conn:
        row = conn.execute("select pg_is_in_recovery()").fetchone()
        if row and row[0]:
            done = conn.execute("select pg_promote(true, 60)").fetchone()
            if not done or not done[0]:
                raise ClusterError(f"{member.name} was not promoted within 60 s: {member.last_words()}")
    return time.monotonic() - began


def rejoin(cluster: ReplicatedCluster, member: Member, watch: Watch = nobody) -> str:
    """Makes a member a standby of the primary, in the cheapest way that works; says which: "streams", "rewound", "built
    anew".
    """
    if member.name == cluster.primary.name:
        raise RefusedError(f"{member.name} is the primary")
    found = state.of_member(member)
    if found.role == "standby" and follow(cluster, member, watch) == "streams":
        return "streams"
    member.stop()
    return _rewound_or_rebuilt(cluster, member, watch)


def follow(cluster: ReplicatedCluster, member: Member, watch: Watch = nobody, *, ahead: bool = False) -> str:
    """A standby that runs turns to the primary; where its WAL has parted from it (`ahead`: that is known), it is
    rewound.
    """
    if ahead:
        member.stop()
        return _rewound_or_rebuilt(cluster, member, watch)
    cluster.configure(member, cluster.primary)
    ensure_slot(cluster.primary, member.name)
    member.reload()
    try:
        cluster.wait_streaming(member, _FOLLOW_S)
    except ClusterError:
        member.stop()
        return _rewound_or_rebuilt(cluster, member, watch)
    drop_all_slots(member)
    return "streams"


def _rewound_or_rebuilt(cluster: ReplicatedCluster, member: Member, watch: Watch) -> str:
    primary = cluster.primary
    ensure_slot(primary, member.name)
    how = "rewound"
    try:
        _rewind(primary, member)
        cluster.configure(member, primary)
        member.mark_as_standby()
        member.start()
        cluster.wait_streaming(member)
    except ClusterError:
        how = "built anew"
        cluster.rebuild(member, primary, watch)
        member.start()
        cluster.wait_streaming(member)
    drop_all_slots(member)
    return how


def _rewind(source: Member, member: Member) -> None:
    """pg_rewind: the member's data directory as the primary's was where they parted. Raises ClusterError."""
    with targets.administrative(source.local) as conn:
        # pg_rewind reads the timeline from the control file, which a promotion does not write at once.
        conn.execute("checkpoint")
    socket, account = source.cluster.layout.socket, member.cluster.account
    conninfo = f"host='{socket}' port={source.port} user=postgres dbname=postgres"
    done = subprocess.run(
        [source.program("pg_rewind"), "-D", member.data, f"--source-server={conninfo}", "--no-sync"],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=environment(),
        **account.popen(),
    )
    if done.returncode != 0:
        raise ClusterError(f"pg_rewind of {member.name} failed: {' '.join(done.stderr.split())}")


def repair(cluster: ReplicatedCluster, watch: Watch = nobody) -> list[str]:
    """Brings a cluster that a pgdyno was killed over to an order: one primary, whom all others follow. What was begun
    is finished where its primary-to-be is promoted, and undone where it is not. Says what was done.
    """
    record = cluster.record
    if len(record.built) < len(record.members):
        backups = cluster.build(watch=watch)
        return [f"built {b.member}" for b in backups] or ["built the rest"]
    if cluster.network is not None:
        cluster.network.up()
        cluster.network.mend_all()
    for m in cluster.members:
        m.thaw()
    said = []
    found = state.primary_of(cluster.states())
    intended = record.unfinished[1] if record.unfinished is not None else record.primary
    if found is None:
        chosen = cluster.member(intended)
        if chosen.is_marked_as_standby and intended != record.primary:
            # Not promoted: the old one is still whole.
            chosen = cluster.primary
        chosen.start()
        found = state.of_member(chosen)
        if found.role == "standby":
            promote(chosen)
        said.append(f"started {chosen.name} as the primary")
    with cluster.doing("repair", found.name):
        pass
    # Those that run first: they have turned away from the slots of one that was the primary by the time of its turn.
    for m in sorted(cluster.others(cluster.primary), key=lambda m: m.process_id is None):
        said.append(f"{m.name}: {rejoin(cluster, m, watch)}")
    cluster.configure(cluster.primary, cluster.primary)
    cluster.primary.reload()
    return said
