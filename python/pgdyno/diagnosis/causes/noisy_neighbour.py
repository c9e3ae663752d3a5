"""Somebody else on the processors."""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CPUS, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Row
from pgdyno.diagnosis.thresholds import NoisyNeighbour
from pgdyno.message import message
from pgdyno.units import Quantity


def _judge(e: Observed) -> Finding | None:
    p = e.processors
    if p is None:
        return None
    steal, others = p.steal / p.cores, p.others / p.cores
    if steal < NoisyNeighbour.STEAL and (others < NoisyNeighbour.OTHERS or not p.are_full or e.is_duet):
        return None
    # In a duet the other side's server is among the other processes, in its own turns.
    are_others = others >= NoisyNeighbour.OTHERS and not e.is_duet
    taken = steal + (others if are_others else 0.0)

    def used(machine: Row, kinds: dict[str, float]) -> float:
        busy: float = machine["cpu_user"] + machine["cpu_nice"] + machine["cpu_system"]
        return float(machine["cpu_steal"]) + (busy - sum(kinds.values()) if are_others else 0.0)

    who = (
        "neighbour-processes"
        if steal < NoisyNeighbour.STEAL
        else "neighbour-both"
        if are_others
        else "neighbour-hypervisor"
    )
    return e.finding(
        CAUSE,
        message(
            "neighbour", busy=Quantity(p.share, "share"),
            who=message(who, steal=Quantity(steal, "share"), others=Quantity(others, "share")),
        ),
        # Where processors are idle all the same, what was taken of them has cost little.
        e.cpu_share(taken, used), CPUS, _confidence(e, steal),
        message("neighbour-remedy"),
        [Fact("steal", steal, "%"), Fact("other-processes", others, "%"), Fact("postgresql", p.server / p.cores, "%"),
         Fact("pgdyno", p.client / p.cores, "%")],
    )  # fmt: skip


def _confidence(e: Observed, steal: float) -> Confidence:
    if steal < NoisyNeighbour.STEAL and (e.is_observation or _wait_for_something_else(e)):
        # The other processes may be the application whose work is observed. They slow nobody who does not need a CPU.
        return Confidence.LOW
    return Confidence.HIGH if e.processors is not None and e.processors.are_full else Confidence.LOW


def _wait_for_something_else(e: Observed) -> bool:
    """Return True if clients wait in the server, neither for a processor nor for the client or the network."""
    running, outside = e.running, e.outside
    return running is not None and outside is not None and running.mean + outside.mean < NoisyNeighbour.NEEDED


CAUSE = Cause("noisy-neighbour", Kind.TROUBLE, "somebody else on the processors", _judge)
