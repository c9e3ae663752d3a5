"""Somebody else on the processors."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.recorded import Row
from pgdyno.diagnosis.said import percent

_STEAL, _OTHERS = 0.05, 0.15


def _judge(e: Evidence) -> Finding | None:
    p = e.processors
    if p is None:
        return None
    steal, others = p.steal / p.cores, p.others / p.cores
    if steal < _STEAL and (others < _OTHERS or not p.are_full):
        return None
    are_others = others >= _OTHERS
    taken = steal + (others if are_others else 0.0)

    def used(machine: Row, kinds: dict[str, float]) -> float:
        busy: float = machine["cpu_user"] + machine["cpu_nice"] + machine["cpu_system"]
        return float(machine["cpu_steal"]) + (busy - sum(kinds.values()) if are_others else 0.0)

    who = " and ".join(
        filter(None, [f"the hypervisor took {percent(steal)}" if steal >= _STEAL else "",
                      f"other processes used {percent(others)}" if are_others else ""])
    )  # fmt: skip
    return e.finding(
        CAUSE,
        f"Somebody else is on the machine: {who} of the processors while they were {percent(p.share)} busy.",
        # Where processors are idle all the same, what was taken of them has cost little.
        e.taken(taken, used), "the processors", Confidence.HIGH if p.are_full else Confidence.LOW,
        "Measure when the machine is quiet (pgdyno compares in turn to bear with it); a dedicated host.",
        [Fact("steal", steal, "%"), Fact("other processes", others, "%"), Fact("PostgreSQL", p.server / p.cores, "%"),
         Fact("pgdyno", p.client / p.cores, "%")],
    )  # fmt: skip


CAUSE = Cause("noisy-neighbour", Kind.TROUBLE, "somebody else on the processors", _judge)
