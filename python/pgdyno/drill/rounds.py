"""Rounds of a drill: load, fault, failover, audit; one after the other, each written down when it is over."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from pgdyno import home
from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.drill import copies, ledger
from pgdyno.drill.beside import Beside
from pgdyno.drill.detector import Detector
from pgdyno.drill.faults import Fault, Scene, recover
from pgdyno.drill.ledger import Audit, Outage
from pgdyno.drill.load import INTERVAL_S, Load
from pgdyno.errors import PgdynoError, RefusedError, TrialError
from pgdyno.format import one_line
from pgdyno.replication import disks, roles, state
from pgdyno.replication.cluster import ReplicatedCluster

#: How long the primary may take to be found dead, and a client to come back.
_DETECT_S = 60.0
_BACK_S = 15.0
#: What a round's record says until the round is over.
KILLED = "pgdyno was killed within this round"

Say = Callable[[str], object]


@dataclass(frozen=True)
class Options:
    """Options of a drill."""

    clients: int = 8
    #: Seconds of load before the fault, and after somebody is served again.
    before_s: float = 2.0
    after_s: float = 1.0
    #: How long a client waits for an answer, and for a connection.
    answer_timeout_s: float = 3.0
    connect_timeout_s: float = 1.0
    #: The old primary is killed before another is promoted.
    fence: bool = True
    #: Clients go through the cluster's pooler.
    pooled: bool = False
    #: A workload beside the ledger.
    beside: Beside | None = None


@dataclass
class Round:
    """Result of one round.

    Times are nanoseconds since 1970.
    """

    number: int
    fault: str
    synchronous_standby_names: str
    synchronous_commit: str
    #: Of its rows in the ledger.
    run: int = 0
    #: Standbys that there are, and that a commit waits for; 0 and 0: another tool's cluster, of which nothing is known.
    standbys: int = 0
    waits_for: int = 0
    fault_ns: int = 0
    #: When the primary was gone, and was found to be.
    down_ns: int | None = None
    detected_ns: int | None = None
    promoted_ns: int | None = None
    #: That pg_promote took.
    promote_s: float | None = None
    old_primary: str = ""
    new_primary: str = ""
    #: Commits a second, and the latency of a ledger's transaction, before the fault.
    tps: float = 0.0
    #: Transactions a second of the workload beside it.
    beside_tps: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    audit: Audit | None = None
    outages: list[Outage] = field(default_factory=list)
    #: Of the others after the round: how each came back.
    rejoined: dict[str, str] = field(default_factory=dict)
    #: Members whose ledger differs from the primary's.
    differing: list[str] = field(default_factory=list)
    #: Of the workload beside the ledger what its tables break of its conditions, on the primary.
    inconsistent: list[str] = field(default_factory=list)
    #: The policy's words where it declined to promote anybody; it was forced then.
    refused: str = ""
    #: Two members acknowledged commits, each after the other had become a primary.
    split_brain: bool = False
    #: Members that were primaries beside the new one, whether they took writes or not.
    other_primaries: list[str] = field(default_factory=list)
    #: Before mending: how many acknowledged commits only one of several primaries had, by that primary.
    divided: dict[str, int] = field(default_factory=dict)
    #: When each client had a commit acknowledged again.
    served_ns: int | None = None
    #: Commits a second and 99th percentile of the latency: from the fault until then, and from then to the end.
    during_tps: float | None = None
    during_p99_s: float | None = None
    after_tps: float | None = None
    after_p99_s: float | None = None
    #: Seconds from the fault to the first acknowledged commit, and until a second held 90% of the commits of before;
    #: None: not within the round, which went on for `watched_s` behind the fault.
    first_commit_s: float | None = None
    recovered_s: float | None = None
    watched_s: float = 0.0
    #: The mode's manager lets commits wait for nobody where no standby is there.
    fell_back: bool = False
    events: list[tuple[int, str]] = field(default_factory=list)
    #: Seconds since the fault, and commits a second: of each tenth of a second.
    series: list[tuple[float, float]] = field(default_factory=list)
    #: Why the round says nothing about what is kept, where it does not; what it lost counts all the same.
    error: str = ""
    #: The cluster could not be mended after it.
    broken: bool = False

    def as_json(self) -> dict[str, Any]:
        """For machines, and for `pgdyno report`: all of it."""
        values = asdict(self)
        if self.audit is not None:
            values["audit"]["lost_count"] = len(self.audit.lost)
            values["audit"]["lost_in_silence"] = len(self.audit.lost_in_silence)
        return values


def play(
    cluster: ReplicatedCluster,
    fault: Fault,
    number: int,
    options: Options,
    folder: Path,
    say: Say,
    *,
    falls_back: bool = False,
) -> Round:
    """Run one round on a cluster that is whole.

    Afterwards the cluster is whole again, unless the round is marked as broken. The records of the round are in
    `folder`.
    """
    refuse_unfit(cluster, fault)
    folder.mkdir(parents=True)
    found = Round(number, fault.name, cluster.record.synchronous_standby_names, cluster.setting("synchronous_commit"))
    found.old_primary, found.fell_back = cluster.primary.name, falls_back
    found.standbys, found.waits_for = len(cluster.members) - 1, cluster.promise.wanted
    found.run = time.time_ns() // 1_000_000
    # What is there if pgdyno is killed within: the clients' records lie beside it.
    save(folder, replace(found, error=KILLED))
    with administration.connect(cluster.target_of(cluster.primary)) as conn:
        ledger.create(conn)
    cluster.wait_caught_up()
    scene = Scene(cluster, found.run)
    load = Load(
        (options.pooled and cluster.pooled_target) or cluster.target_of(cluster.primary),
        [] if options.pooled else [(m.address, m.port) for m in cluster.others(cluster.primary)],
        ledger.workload(found.run, folder / "ledger"),
        folder / "ledger",
        options.clients,
        options.answer_timeout_s,
        options.connect_timeout_s,
        read_write=not options.pooled,
    )
    beside = None if options.beside is None else options.beside.load(load)
    sums = {} if options.beside is None else options.beside.sums(cluster)
    try:
        if beside is not None:
            beside.start()
        _play(scene, fault, options, load, found, say)
    except (PgdynoError, psycopg.Error) as e:
        found.error = one_line(e)
    finally:
        load.stop()
        if beside is not None:
            beside.stop()
            found.beside_tps = _before(beside, found.fault_ns)
        begin_s = (load.started_ns - found.fault_ns) / 1e9
        found.series = [(round(begin_s + s.at_s, 3), s.committed / INTERVAL_S) for s in load.series]
        speeds(found, load)
        found.events = sorted([*scene.events, *((load.started_ns + round(s * 1e9), text) for s, text in load.events)])
        save(folder, replace(found, error=found.error or KILLED))
        scene.mend_links()
        for m in cluster.members:
            m.thaw()
            disks.empty(cluster.base / m.name)
    if load.error and not found.error:
        found.error = f"the load ended by itself: {load.error}"
    if beside is not None and beside.error and not found.error:
        found.error = f"the workload beside it ended by itself: {beside.error}"
    say("audit")
    try:
        compare_copies(found, load, {m.name: m.local for m in cluster.members})
        _audit(cluster, scene, found, load)
        _mend(cluster, found)
        _compare(cluster, scene, found)
        if options.beside is not None:
            say("consistency")
            found.inconsistent = options.beside.inconsistent(cluster, sums)
    except (PgdynoError, psycopg.Error) as e:
        found.error = found.error or one_line(e)
        found.broken = True
    save(folder, found)
    return found


def save(folder: Path, found: Round) -> None:
    """Write a round beside its records, at once."""
    home.replace_file(folder / "round.json", json.dumps(found.as_json(), indent=2) + "\n")


#: A second that holds this part of the commits of before is as good as before.
_AS_BEFORE = 0.9
_A_SECOND = round(1 / INTERVAL_S)


def speeds(found: Round, load: Load) -> None:
    """Work out what the fault did to throughput and latency, and when the cluster was back."""
    if not found.fault_ns or not load.series:
        return
    fault = (found.fault_ns - load.started_ns) / 1e9
    end = load.series[-1].at_s + INTERVAL_S
    found.watched_s = end - fault
    served = end if found.served_ns is None else (found.served_ns - load.started_ns) / 1e9
    for name, (a, b) in (("during", (fault, served)), ("after", (served, end))):
        if b - a >= INTERVAL_S:
            part = load.between(a, b)
            setattr(found, f"{name}_tps", part.committed / (b - a))
            if part.committed:
                setattr(found, f"{name}_p99_s", part.latency.percentile(99) / 1e9)
    behind = [s for s in load.series if s.at_s >= fault]
    found.first_commit_s = next((s.at_s - fault for s in behind if s.committed), None)
    for n in range(len(behind) - _A_SECOND + 1):
        if sum(s.committed for s in behind[n : n + _A_SECOND]) >= _AS_BEFORE * found.tps:
            found.recovered_s = behind[n].at_s - fault
            break


def compare_copies(found: Round, load: Load, members: Mapping[str, Target]) -> None:
    """Compare the records with every reachable member, before any repair.

    Rows that only one of two primaries has are gone once one of them is made to follow the other.
    """
    seen = copies.read(members, found.run)
    entries = ledger.read(load.records)
    apart = copies.divided(entries, seen)
    found.divided = {member: len(of) for member, of in apart.items()}
    primaries = [c.member for c in seen if c.is_primary]
    if len(primaries) > 1:
        found.other_primaries = sorted({*found.other_primaries, *(m for m in primaries if m != found.new_primary)})
        # The only one that is missing elsewhere may have been written before the other was promoted.
        since = found.promoted_ns or found.fault_ns
        took = [m for m, of in apart.items() if any(e.at_ns > since for e in of)]
        found.split_brain = len(took) > 1
        # Of a cluster that never becomes whole this is all there is.
        found.audit = ledger.audit(entries, copies.union(seen), fault_ns=found.fault_ns)
        found.outages = ledger.outages(entries, load.clients, found.fault_ns, load.ended_ns)


def _before(load: Load, fault_ns: int) -> float | None:
    """Its transactions a second until the fault."""
    seconds = (fault_ns - load.started_ns) / 1e9
    return load.between(0.0, seconds).committed / seconds if load.started_ns and seconds > 0 else None


def refuse_unfit(cluster: ReplicatedCluster, fault: Fault) -> None:
    """Raise RefusedError if the cluster does not support this fault."""
    if len(cluster.members) - 1 < fault.standbys:
        raise RefusedError(
            f"{fault.name} needs {fault.standbys} standbys, and there are {len(cluster.members) - 1}",
            f"Make a cluster with --standbys {fault.standbys}.",
        )
    if fault.needs_disk and not cluster.record.disk_bytes:
        raise RefusedError(
            f"{fault.name} fills a member's disk, and the members lie on this machine's",
            "Make the cluster as root with --disk 1GB: each member has a disk of its own then.",
        )
    if fault.needs_network and cluster.network is None:
        raise RefusedError(
            f"{fault.name} cuts links, and the members share this machine's network",
            "Make the cluster as root, with ip (iproute2) and setpriv: each member has a network namespace then.",
        )


def begin(fault: str, options: Options, load: Load, found: Round, say: Say) -> None:
    """Start the load, let it run, and set the time of the fault.

    Raise TrialError if the load does not start, or if no commit is acknowledged before the fault.
    """
    say("load")
    load.start()
    if load.error:
        raise TrialError(f"the load did not begin: {load.error}")
    time.sleep(options.before_s)
    if not any(s.committed for s in load.series):
        raise TrialError("no commit was acknowledged before the fault", "Is anybody there whom commits wait for?")
    say(fault)
    found.fault_ns = time.time_ns()
    # Not the first half second: connections are warm then.
    since = (found.fault_ns - load.started_ns) / 1e9
    healthy = load.between(0.5, since)
    found.tps = healthy.committed / max(0.1, since - 0.5)
    if healthy.committed:
        found.p50_s = healthy.latency.percentile(50) / 1e9
        found.p99_s = healthy.latency.percentile(99) / 1e9


def _play(scene: Scene, fault: Fault, options: Options, load: Load, found: Round, say: Say) -> None:
    begin(fault.name, options, load, found, say)
    detector = Detector(scene.cluster)
    fault.act(scene)
    if fault.then == "detect":
        if not detector.wait_down(_DETECT_S):
            raise TrialError("the standbys did not find the primary dead", "Was it broken?")
        found.detected_ns = scene.happened("the standbys take the primary for dead")
        found.down_ns = scene.down_ns or found.fault_ns
    promotion = _recovered(scene, fault, options, found)
    if promotion is not None:
        found.promoted_ns = promotion.at_ns
        scene.events.append((promotion.at_ns, f"{promotion.member} promoted in {promotion.seconds * 1e3:.0f} ms"))
        found.promote_s = promotion.seconds
        _look_for_two(scene, found)
    found.new_primary = scene.cluster.primary.name
    if len(_streaming(scene.cluster)) < scene.cluster.promise.wanted:
        # Commits wait until there are standbys again.
        scene.mend_links()
        _mend(scene.cluster, found)
        scene.happened("the other members have joined again")
    _wait_served(load, time.time_ns())
    found.served_ns = time.time_ns()
    time.sleep(options.after_s)
    if promotion is not None:
        # One that was frozen, and that nobody has fenced, wakes up and goes on.
        scene.cluster.member(found.old_primary).thaw()
        _look_for_two(scene, found)


def _look_for_two(scene: Scene, found: Round) -> None:
    """Record every other member that is a primary after the new one was promoted."""
    for m in scene.cluster.others(scene.cluster.primary):
        if m.name not in found.other_primaries and state.member_state(m).role == "primary":
            found.other_primaries.append(m.name)
            scene.happened(f"{m.name} is a primary as well")


def _recovered(scene: Scene, fault: Fault, options: Options, found: Round) -> roles.Promotion | None:
    try:
        return recover(scene, fault, fence=options.fence)
    except RefusedError as e:
        if fault.then not in ("detect", "promote") or not fault.must_lose:
            raise
        found.refused = e.message
        scene.happened(f"the policy refuses to promote: {e.message}; forced")
        return roles.failover(scene.cluster, force=True, fence=options.fence)


def _wait_served(load: Load, since_ns: int) -> None:
    """Until each client has had a commit acknowledged again."""
    deadline = time.monotonic() + _BACK_S
    while time.monotonic() < deadline and load.is_on():
        if ledger.are_served(load.records, load.clients, since_ns):
            return
        time.sleep(0.02)


def _streaming(cluster: ReplicatedCluster) -> list[str]:
    return [m.name for m in cluster.others(cluster.primary) if cluster.is_streaming(m)]


def _mend(cluster: ReplicatedCluster, found: Round) -> None:
    """All members are whole and stream again."""
    if cluster.network is not None:
        cluster.network.mend_all()
    primary = cluster.primary
    if state.member_state(primary).role != "primary":
        primary.stop()
        primary.start()
    for m in cluster.others(primary):
        how = roles.rejoin(cluster, m)
        # Done twice in a round, the first time is what it took.
        found.rejoined.setdefault(m.name, how)


def write_lost(path: Path, lost: list[ledger.Entry]) -> None:
    """All lost rows; without any there is no such file."""
    if lost:
        rows = [f"{e.client},{e.sequence},{e.at_ns},{'warned' if e.warned else ''}" for e in lost]
        home.replace_file(path, "\n".join(["client,sequence,acknowledged_ns,warning", *rows]) + "\n")


def _audit(cluster: ReplicatedCluster, scene: Scene, found: Round, load: Load) -> None:
    entries = ledger.read(load.records)
    with administration.connect(cluster.primary.local) as conn:
        there = ledger.look(conn, scene.run)
    found.audit = ledger.audit(
        entries, there.rows, fault_ns=found.fault_ns, seen=scene.seen, changed=there.changed, states=there.states
    )
    lost = {e.key for e in found.audit.lost}
    found.outages = ledger.outages(entries, load.clients, found.fault_ns, load.ended_ns, lost)
    write_lost(load.records.parent / "lost.csv", found.audit.lost)


def _compare(cluster: ReplicatedCluster, scene: Scene, found: Round) -> None:
    """Compare the rows of all members, and record the members whose rows differ from the primary's."""
    cluster.wait_caught_up()
    with administration.connect(cluster.primary.local) as conn:
        there = ledger.look(conn, scene.run)
    for m in cluster.others(cluster.primary):
        with administration.connect(m.local) as conn:
            if ledger.look(conn, scene.run) != there:
                found.differing.append(m.name)
