"""Somebody else on the processors."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.said import percent

_STEAL, _OTHERS = 0.05, 0.15


def _judge(e: Evidence) -> Finding | None:
    p = e.processors
    if p is None:
        return None
    steal, others = p.steal / p.cores, p.others / p.cores
    if steal < _STEAL and (others < _OTHERS or not p.are_full):
        return None
    taken = steal + (others if others >= _OTHERS else 0.0)
    who = " and ".join(
        filter(None, [f"the hypervisor took {percent(steal)}" if steal >= _STEAL else "",
                      f"other processes used {percent(others)}" if others >= _OTHERS else ""])
    )  # fmt: skip
    return e.finding(
        CAUSE,
        f"Somebody else is on the machine: {who} of the processors while they were {percent(p.share)} busy.",
        Part(taken, taken * 0.5, min(1.0, taken * 1.5)), "the processors", Confidence.HIGH,
        "Measure when the machine is quiet (pgdyno compares in turn to bear with it); a dedicated host.",
        [Fact("steal", steal, "%"), Fact("other processes", others, "%"), Fact("PostgreSQL", p.server / p.cores, "%"),
         Fact("pgdyno", p.client / p.cores, "%")],
    )  # fmt: skip


CAUSE = Cause("noisy-neighbour", Kind.TROUBLE, "somebody else on the processors", _judge)
