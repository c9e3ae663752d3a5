"""Drills of pgdyno's own clusters: pgdyno detects the failure, promotes by its policy, and rejoins the members."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pgdyno.cluster.process import environment
from pgdyno.cluster.target import Target
from pgdyno.drill import modes
from pgdyno.drill.detector import Detector
from pgdyno.drill.faults import FAULTS, Fault, Scene, recover
from pgdyno.drill.ledger import Key
from pgdyno.drill.modes import Mode
from pgdyno.drill.records import Options, Round, Say
from pgdyno.drill.target import Endpoint
from pgdyno.errors import ClusterError, RefusedError, TrialError, UsageError, msg
from pgdyno.message import Name, Text, listed, message
from pgdyno.replication import configuration, disks, following, leftovers, roles, state
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.replication.member import Member
from pgdyno.stream.stream import RunStream
from pgdyno.units import Quantity

#: Seconds until the primary must be found dead.
_DETECT_S = 60.0


class OwnTarget:
    """Cluster of pgdyno's in a folder, as a drill breaks it. See `target.DrillTarget`."""

    is_foreign = False

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self.cluster = cluster

    @property
    def name(self) -> str:
        """The name of the cluster's folder."""
        return self.cluster.base.name

    @property
    def remedy(self) -> str:
        """The command that repairs the cluster."""
        return f"pgdyno cluster repair {self.cluster.base}"

    @property
    def members(self) -> list[str]:
        """Names of the members."""
        return self.cluster.record.members

    @property
    def mode(self) -> Mode:
        """The cluster's own settings, without a name."""
        return Mode(
            "",
            self.cluster.record.synchronous_standby_names,
            configuration.setting_of(self.cluster, "synchronous_commit"),
        )

    def refuse_unfit(self, faults: Sequence[str]) -> None:
        """Raise UsageError if a fault is unknown, and RefusedError if the cluster does not support it."""
        for name in faults:
            if name not in FAULTS:
                raise UsageError(
                    msg("error-fault-unknown", name=repr(name)), msg("remedy-choices", choices=", ".join(FAULTS))
                )
            _refuse_unfit(self.cluster, FAULTS[name])

    def prepare(self, options: Options, stream: RunStream) -> None:
        """Check that the cluster is whole, and create the tables of the workload beside the ledger.

        Raise ClusterError if the cluster is not whole.
        """
        cluster, folder = self.cluster, self.cluster.base
        if left := leftovers.every(cluster):
            raise ClusterError(
                msg("error-unfinished-operations", base=folder, operations=listed(left, "semicolon")), self.remedy
            )
        status = msg("remedy-cluster-status", folder=folder)
        if state.member_state(cluster.primary).role != "primary":
            raise ClusterError(
                msg("error-primary-does-not-run-or", name=cluster.primary.name),
                msg("remedy-pgdyno-cluster-start-2", folder=folder, status=status),
            )
        for standby in cluster.others(cluster.primary):
            if not following.is_streaming(cluster, standby):
                raise ClusterError(
                    msg("error-does-not-stream-from-cluster", name=standby.name, name2=cluster.primary.name),
                    listed([Name(self.remedy), status], "semicolon"),
                )
        if options.beside is not None:
            options.beside.prepare(self.client(), stream)
            following.wait_caught_up(cluster)

    def version(self) -> str:
        """Return the version of PostgreSQL."""
        return self.cluster.primary.cluster.version()

    def primary(self) -> Target:
        """Return the primary, as the superuser reaches it."""
        return self.cluster.primary.local

    def client(self) -> Target:
        """Return the primary, as the role of the clients reaches it."""
        return self.cluster.target_of(self.cluster.primary)

    def hold_mode(self, mode: Mode) -> AbstractContextManager[None]:
        """Set the cluster to a protection mode, with the mode's manager."""
        return modes.manager(self.cluster, mode)

    def start_round(self, fault: str, number: int, options: Options, mode: Mode, say: Say) -> tuple[Round, OwnRound]:
        """Return the record of a new round and its steps."""
        cluster = self.cluster
        found = Round(
            number,
            fault,
            cluster.record.synchronous_standby_names,
            configuration.setting_of(cluster, "synchronous_commit"),
        )
        found.old_primary, found.fell_back = cluster.primary.name, mode.falls_back
        found.standbys, found.waits_for = len(cluster.members) - 1, cluster.promise.wanted
        return found, OwnRound(cluster, FAULTS[fault], options, found)

    def wait_caught_up(self) -> None:
        """Wait until the standbys have replayed the primary's WAL."""
        following.wait_caught_up(self.cluster)

    def everybody(self) -> Mapping[str, Target]:
        """Return each member, as the superuser reaches it."""
        return {m.name: m.local for m in self.cluster.members}

    def damaged(self) -> dict[str, Text]:
        """Run pg_amcheck on every member."""
        found, primary = {}, self.cluster.primary
        # The primary first: what the check needs is installed there.
        for m in [primary, *self.cluster.others(primary)]:
            following.wait_caught_up(self.cluster)
            if words := amcheck(m):
                found[m.name] = words
        return found


class OwnRound:
    """Round on a cluster of pgdyno's. See `target.LiveRound`."""

    served_s = 15.0

    def __init__(self, cluster: ReplicatedCluster, fault: Fault, options: Options, found: Round) -> None:
        self._cluster = cluster
        self._fault = fault
        self._options = options
        self._found = found
        self._scene = Scene(cluster, found)
        self._has_promoted = False

    @property
    def endpoint(self) -> Endpoint:
        """The pooler or the members."""
        cluster, pooled = self._cluster, self._options.pooled
        if pooled and cluster.pooled_target is not None:
            return Endpoint(cluster.pooled_target, [], read_write=False)
        others = [(m.address, m.port) for m in cluster.others(cluster.primary)]
        return Endpoint(cluster.target_of(cluster.primary), [] if pooled else others, read_write=not pooled)

    @property
    def seen(self) -> set[Key]:
        """Rows that the fault read while they were there."""
        return self._scene.seen

    def inject(self) -> None:
        """Inject the fault, detect the failure, and promote a standby by the policy."""
        found, scene, cluster = self._found, self._scene, self._cluster
        detector = Detector(cluster)
        self._fault.act(scene)
        if self._fault.then == "detect":
            if not detector.wait_down(_DETECT_S):
                raise TrialError(msg("error-standbys-did-not-find-primary"), msg("remedy-was-broken"))
            found.detected_ns = scene.happened("detected")
            found.down_ns = scene.down_ns or found.fault_ns
        promotion = self._promote()
        if promotion is not None:
            self._has_promoted = True
            found.promoted_ns = promotion.at_ns
            found.events.append(
                (
                    promotion.at_ns,
                    message(
                        "drill-event-promoted",
                        member=Name(promotion.member),
                        time=Quantity(promotion.seconds * 1e9, "ns"),
                    ),
                )
            )
            found.promote_s = promotion.seconds
            self._look_for_two()
        found.new_primary = cluster.primary.name
        if len(_streaming(cluster)) < cluster.promise.wanted:
            # Commits wait until there are standbys again.
            scene.mend_links()
            self._mend()
            scene.happened("rejoined")

    def _promote(self) -> roles.Promotion | None:
        """Recover by the policy; force a promotion that it refuses if the fault is one that must lose commits."""
        fault, fence = self._fault, self._options.fence
        try:
            return recover(self._scene, fault, fence=fence)
        except RefusedError as e:
            if fault.then not in ("detect", "promote") or not fault.must_lose:
                raise
            self._found.refused = e.message
            self._scene.happened("refused", reason=e.cause)
            return roles.failover(self._cluster, force=True, fence=fence)

    def is_served(self) -> bool:
        """Return True: a member has been promoted, or the primary goes on."""
        return True

    def settle(self) -> None:
        """Wake a primary that was frozen and that nobody has fenced: it goes on."""
        if self._has_promoted:
            self._cluster.member(self._found.old_primary).thaw()
            self._look_for_two()

    def stop(self) -> None:
        """Do nothing: nobody observes the members."""

    def release(self) -> None:
        """Mend the links, and free the disks and the processes."""
        self._scene.mend_links()
        for m in self._cluster.members:
            m.thaw()
            disks.empty(self._cluster.base / m.name)

    def abandon(self) -> None:
        """Do nothing: `release` and `roles.repair` bring the cluster into order."""

    def recover(self) -> Target:
        """Return the current primary."""
        return self._cluster.primary.local

    def make_whole(self) -> None:
        """Let the members join again, and wait until they have the primary's WAL."""
        self._mend()
        following.wait_caught_up(self._cluster)

    def _look_for_two(self) -> None:
        """Record every other member that is a primary after the new one was promoted."""
        for m in self._cluster.others(self._cluster.primary):
            if m.name not in self._found.other_primaries and state.member_state(m).role == "primary":
                self._found.other_primaries.append(m.name)
                self._scene.happened("second-primary", member=Name(m.name))

    def _mend(self) -> None:
        """Make all members whole, and let them stream again."""
        cluster = self._cluster
        if cluster.network is not None:
            cluster.network.mend_all()
        primary = cluster.primary
        if state.member_state(primary).role != "primary":
            primary.stop()
            primary.start()
        for m in cluster.others(primary):
            how = roles.rejoin(cluster, m)
            # Done twice in a round, the first time is what it took.
            self._found.rejoined.setdefault(m.name, how)


def _streaming(cluster: ReplicatedCluster) -> list[str]:
    return [m.name for m in cluster.others(cluster.primary) if following.is_streaming(cluster, m)]


def _refuse_unfit(cluster: ReplicatedCluster, fault: Fault) -> None:
    """Raise RefusedError if the cluster does not support this fault."""
    if len(cluster.members) - 1 < fault.standbys:
        raise RefusedError(
            msg("error-needs-standbys-there", name=fault.name, standbys=fault.standbys, value=len(cluster.members) - 1),
            msg("remedy-make-cluster-standbys", standbys=fault.standbys),
        )
    if fault.needs_disk and not cluster.record.disk_bytes:
        raise RefusedError(
            msg("error-fills-member-s-disk-members", name=fault.name),
            msg("remedy-make-cluster-root-disk-1gb"),
        )
    if fault.needs_network and cluster.network is None:
        raise RefusedError(
            msg("error-cuts-links-members-share-this", name=fault.name),
            msg("remedy-make-cluster-root-ip-iproute2"),
        )
    if fault.needs_network and cluster.network is not None and cluster.network.links_slowed():
        raise RefusedError(
            msg("error-pgdyno-cluster-link-slows-links"),
            msg("remedy-end-one-first-slow-standby"),
        )


def amcheck(member: Member) -> Text | None:
    """Run pg_amcheck on a member; return its findings in one line, or None."""
    amcheck = member.program("pg_amcheck")
    if not amcheck.exists():
        return msg("why-no-amcheck")
    words: list[str | Path] = [
        amcheck, "-h", member.cluster.layout.socket, "-p", str(member.port), "-U", "postgres", "--install-missing",
        "-d", "postgres",
    ]  # fmt: skip
    if member.is_marked_as_standby:
        # Nothing can be installed there; the primary has it.
        words.remove("--install-missing")
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd="/", env=environment(), **member.cluster.account.popen()
    )
    return None if done.returncode == 0 else Name(" ".join((done.stdout + done.stderr).split())[:300])
