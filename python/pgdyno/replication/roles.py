"""Changes of the primary: promotion, switchover, following the new primary, and rejoining the cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.process import carried_out, run_while_we_live
from pgdyno.errors import ClusterError, PgdynoError, RefusedError, msg
from pgdyno.message import Name, Text, counted, message
from pgdyno.replication import archives, build, configuration, disks, following, slots, state
from pgdyno.replication.cluster import ReplicatedCluster
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
    #: Members whose positions were compared.
    seen: list[str]


def candidate(cluster: ReplicatedCluster, *, despite_quorum: bool = False, named: str = "") -> tuple[Member, list[str]]:
    """Return the most advanced standby, or the `named` one, and the members whose positions were compared.

    Only standbys that have followed this primary count, because their positions are on its timeline. Without a WAL
    receiver a standby reports the timeline of its last restartpoint. That timeline must not be compared.

    Raise RefusedError if too few standbys respond to be sure that one of them has every acknowledged commit. Raise
    RefusedError also if the named standby has less WAL than another. `despite_quorum` disables both checks.
    """
    if named and despite_quorum:
        return cluster.member(named), [named]
    followers = [m for m in cluster.others(cluster.primary) if m.name in cluster.record.following]
    standbys = [s for m in followers if (s := state.member_state(m)).role == "standby"]
    seen = [s.name for s in standbys]
    promise = cluster.promise
    if not standbys:
        raise RefusedError(
            msg("error-no-standby-answers-followed-there", name=cluster.primary.name),
            msg("remedy-pgdyno-cluster-status-shows-why"),
        )
    counted = [name for name in seen if name in promise.candidates]
    if promise.wanted and len(counted) < promise.must_be_seen() and not despite_quorum:
        raise RefusedError(
            msg(
                "error-standbys-answer-must-acknowledged-commit",
                n_counted=len(counted),
                n_candidates=len(promise.candidates),
                must_be_seen=promise.must_be_seen(),
                synchronous_standby_names=repr(cluster.record.synchronous_standby_names),
            ),
            msg("remedy-start-others-first-or-force"),
        )
    best = max(standbys, key=lambda s: s.received or 0)
    if named:
        mine = next((s for s in standbys if s.name == named), None)
        if mine is None:
            raise RefusedError(
                msg("error-no-standby-answers", named=named), msg("remedy-pgdyno-cluster-status-shows-why-2")
            )
        if (mine.received or 0) < (best.received or 0):
            raise RefusedError(
                msg(
                    "error-bytes-wal-more-than",
                    name=best.name,
                    value=f"{(best.received or 0) - (mine.received or 0):,}",
                    named=named,
                ),
                msg("remedy-promote-one-or-force-lose"),
            )
        best = mine
    return cluster.member(best.name), seen


def failover(
    cluster: ReplicatedCluster, *, to: str = "", force: bool = False, fence: bool = True, watch: Watch = nobody
) -> Promotion:
    """Promote the most advanced standby, or `to`.

    The old primary is killed first, so that no client writes to it any more, unless `fence` is False. The other
    standbys follow the new primary. The old primary is left as it is.
    """
    old = cluster.primary
    _refuse_bad_choice(cluster, to, force=force)
    # Nothing is killed for a promotion that is refused.
    candidate(cluster, despite_quorum=force, named=to)
    if fence:
        old.kill()
    for m in cluster.others(old):
        _end_receiver(m)
    chosen, seen = candidate(cluster, despite_quorum=force, named=to)
    before, followed = {s.name: s for s in cluster.states()}, set(cluster.record.following)
    with cluster.doing("failover", chosen.name):
        seconds = promote(chosen)
        at_ns = time.time_ns()
    with contextlib.suppress(ClusterError):
        # The sooner the better; and where it fails, once more at the end.
        cluster.lead_clients()
    for m in cluster.others(chosen):
        if m.name != old.name and before[m.name].role == "standby":
            ahead = (before[m.name].received or 0) > (before[chosen.name].received or 0)
            follow(cluster, m, watch, ahead=ahead and m.name in followed)
    cluster.lead_clients()
    return Promotion(chosen.name, seconds, at_ns, seen)


def _refuse_bad_choice(cluster: ReplicatedCluster, to: str, *, force: bool) -> None:
    if not to:
        return
    if cluster.member(to).name == cluster.record.primary:
        raise RefusedError(msg("error-primary-already", to=to))
    if to not in cluster.record.following and not force:
        raise RefusedError(
            msg("error-not-followed-since-primary-may", to=to, primary=cluster.record.primary),
            msg("remedy-promote-another-or-force"),
        )


def _end_receiver(member: Member) -> None:
    """Stop the WAL receiver of a standby, which flushes the WAL that it has written.

    With remote_write, commits are acknowledged before this flush. Positions are compared by flushed WAL.
    """
    ask = "select pid from pg_stat_wal_receiver"
    try:
        with administration.connect(member.local, patience_s=2.0) as conn:
            row = conn.execute(ask).fetchone()
            if row is None or not row[0]:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(row[0], signal.SIGTERM)
            deadline = time.monotonic() + 2.0
            while conn.execute(ask).fetchone() == row and time.monotonic() < deadline:
                time.sleep(0.005)
    except (PgdynoError, psycopg.Error):
        # It does not answer, and is no candidate.
        return


def switchover(cluster: ReplicatedCluster, *, to: str = "", watch: Watch = nobody) -> Promotion:
    """Stop the primary in an orderly way and promote a standby that has all of its WAL.

    The old primary then follows the new one. Raise RefusedError if that standby does not stream.
    """
    old = cluster.primary
    if to == old.name:
        raise RefusedError(msg("error-primary-already", to=to))
    if not old.program("pg_controldata").exists():
        raise RefusedError(
            msg("error-not-there-whether-standby-all", program=old.program("pg_controldata")),
            msg("remedy-use-whole-programs-pg-bin"),
        )
    chosen = cluster.member(to) if to else candidate(cluster)[0]
    if not following.is_streaming(cluster, chosen):
        raise RefusedError(
            msg("error-does-not-stream-from", name=chosen.name, name2=old.name),
            msg("remedy-join-first-pgdyno-cluster-rejoin"),
        )
    with administration.connect(old.local) as conn:
        # So that stopping takes no time.
        conn.execute("checkpoint")
    with _clients_paused(cluster), cluster.doing("switchover", chosen.name):
        old.stop()
        if behind := _lacks(old, chosen):
            old.start()
            cluster.begin_again()
            raise ClusterError(
                msg("error-not-got-all-primary-again", name=chosen.name, name2=old.name, behind=behind),
                msg("remedy-look-at-link-between-them"),
            )
        seconds = promote(chosen)
        at_ns = time.time_ns()
    # The old primary last: the others have turned away from its slots by then.
    for m in sorted(cluster.others(chosen), key=lambda m: m.name == old.name):
        rejoin(cluster, m, watch)
    return Promotion(chosen.name, seconds, at_ns, [chosen.name])


@contextlib.contextmanager
def _clients_paused(cluster: ReplicatedCluster) -> Iterator[None]:
    """Within it clients of the pooler wait; behind it they go to whoever is the primary then."""
    pooler = cluster.pooler
    if pooler is None:
        yield
        return
    with pooler.paused():
        try:
            yield
        finally:
            cluster.lead_clients()


def _lacks(old: Member, chosen: Member) -> Text | None:
    """Return why a standby lacks WAL of a stopped primary, or None if it has all of it."""
    done = carried_out([old.program("pg_controldata"), "-D", old.data], old.cluster.account)
    facts = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    status = facts.get("Database cluster state", "unknown").strip()
    if status != "shut down":
        return message("lacks-state", state=Name(status))
    high, low = facts["Latest checkpoint location"].strip().split("/")
    end = (int(high, 16) << 32) + int(low, 16)
    # The record that says so begins there: it must be behind that.
    found = state.member_state(chosen).received or 0
    return None if found > end else message("lacks-bytes", n=end - found)


def promote(member: Member) -> float:
    """Promote a standby to primary, and return the seconds until it accepts writes."""
    began = time.monotonic()
    with administration.connect(member.local) as conn:
        row = conn.execute("select pg_is_in_recovery()").fetchone()
        if row and row[0]:
            done = conn.execute("select pg_promote(true, 60)").fetchone()
            if not done or not done[0]:
                raise ClusterError(
                    msg("error-was-not-promoted-within-60", name=member.name, last_words=member.last_words())
                )
    return time.monotonic() - began


def rejoin(cluster: ReplicatedCluster, member: Member, watch: Watch = nobody) -> Text:
    """Make a member a standby of the primary, in the cheapest way that works.

    Return the way.
    """
    if member.name == cluster.primary.name:
        raise RefusedError(msg("error-primary", name=member.name))
    if member.process_id is None and member.is_marked_as_standby and not member.is_half_rewound:
        # A standby that was stopped, or killed: it mostly goes on where it was.
        configuration.configure(cluster, member, cluster.primary)
        with contextlib.suppress(ClusterError):
            member.start(20.0)
    if state.member_state(member).role == "standby":
        return follow(cluster, member, watch)
    member.stop()
    return _rewound_or_rebuilt(cluster, member, watch)


def follow(cluster: ReplicatedCluster, member: Member, watch: Watch = nobody, *, ahead: bool = False) -> Text:
    """Let a running standby follow the primary.

    Rewind the standby if its WAL has diverged from the primary. `ahead` means that this is known.
    """
    if ahead:
        member.stop()
        return _rewound_or_rebuilt(cluster, member, watch)
    configuration.configure(cluster, member, cluster.primary)
    slots.ensure(cluster.primary.local, member.name)
    member.reload()
    try:
        following.wait_streaming(cluster, member, _FOLLOW_S)
    except ClusterError:
        member.stop()
        return _rewound_or_rebuilt(cluster, member, watch)
    slots.drop_all(member.local)
    return message("rejoined-streams")


def _rewound_or_rebuilt(cluster: ReplicatedCluster, member: Member, watch: Watch) -> Text:
    primary = cluster.primary
    if cluster.archive is not None:
        # What only it has: of a primary that was killed all that nobody had received, too.
        timeline = state.member_state(primary).timeline or 0
        archives.save(
            member.data / "pg_wal", cluster.archive, member.cluster.account, timeline,
            was_primary=not member.is_marked_as_standby,
        )  # fmt: skip
    slots.ensure(primary.local, member.name)
    how = message("rejoined-rewound")
    try:
        if member.is_half_rewound:
            raise ClusterError(msg("error-pg-rewind-was-cut-off"))
        member.begin_rewinding()
        _rewind(primary, member)
        member.mark_as_standby()
        configuration.configure(cluster, member, primary)
        member.end_rewinding()
        member.start()
        following.wait_streaming(cluster, member)
    except ClusterError:
        how = message("rejoined-rebuilt")
        build.rebuild(cluster, member, primary, watch)
        member.end_rewinding()
        member.start()
        following.wait_streaming(cluster, member)
    slots.drop_all(member.local)
    return how


def _rewind(source: Member, member: Member) -> None:
    """pg_rewind: the member's data directory as the primary's was where they parted. Raises ClusterError."""
    with administration.connect(source.local) as conn:
        # pg_rewind reads the timeline from the control file, which a promotion does not write at once.
        conn.execute("checkpoint")
    socket, account = source.cluster.layout.socket, member.cluster.account
    conninfo = f"host='{socket}' port={source.port} user=postgres dbname=postgres"
    program = source.program("pg_rewind")
    if not program.exists():
        raise ClusterError(msg("error-pg-rewind-not-among-server"))
    words: list[str | Path] = [program, "-D", member.data, f"--source-server={conninfo}", "--no-sync"]
    done = run_while_we_live(words, account)
    if done.returncode != 0:
        raise ClusterError(msg("error-pg-rewind-failed", name=member.name, split=" ".join(done.stderr.split())))


def repair(cluster: ReplicatedCluster, watch: Watch = nobody) -> list[Text]:
    """Repair a cluster after pgdyno was killed: one primary that all other members follow.

    An unfinished operation is completed if its future primary is promoted, and undone if not. Return a description of
    each step.
    """
    record = cluster.record
    if len(record.built) < len(record.members):
        backups = build.build_members(cluster, watch)
        return [message("repaired-built", member=Name(b.member)) for b in backups] or [message("repaired-rest")]
    if cluster.network is not None:
        cluster.network.up()
        cluster.network.mend_all()
    for m in cluster.members:
        disks.mount(cluster.base / m.name)
        disks.empty(cluster.base / m.name)
        m.thaw()
    steps: list[Text] = []
    if record.set_aside is not None:
        # What a drill has set for itself.
        cluster.record.settings = [s for s in record.settings if s[0] not in record.set_aside]
        for name, value in record.set_aside.items():
            cluster.record.settings.append((name, value, "set later", 0))
        cluster.record.synchronous_standby_names = record.set_aside["synchronous_standby_names"]
        cluster.record.set_aside = None
        cluster.record.save(cluster.base)
        steps.append(message("repaired-settings"))
    found = state.primary_of(cluster.states())
    if found is None and record.unfinished is not None and record.unfinished[1] != record.primary:
        # A promotion may be under way: it is brought to its end, or to no beginning, before anybody else is started.
        cluster.member(record.unfinished[1]).stop()
    intended = record.unfinished[1] if record.unfinished is not None else record.primary
    if found is None:
        chosen = cluster.member(intended)
        if chosen.is_marked_as_standby and intended != record.primary:
            # Not promoted: the old one is still whole.
            chosen = cluster.primary
        chosen.start()
        found = state.member_state(chosen)
        if found.role == "standby":
            promote(chosen)
        steps.append(message("repaired-started", member=Name(chosen.name)))
    with cluster.doing("repair", found.name):
        pass
    # Those that run first: they have turned away from the slots of one that was the primary by the time of its turn.
    for m in sorted(cluster.others(cluster.primary), key=lambda m: m.process_id is None):
        steps.append(message("repaired-member", member=Name(m.name), how=rejoin(cluster, m, watch)))
    configuration.configure(cluster, cluster.primary, cluster.primary)
    cluster.primary.reload()
    if (pooler := cluster.pooler) is not None:
        pooler.start(cluster.primary.address, cluster.primary.port)
    if n := archives.remove_unfinished_snapshots(cluster.base):
        steps.append(counted("repaired-snapshots", n))
    return steps
