"""Times in which next to nothing was done."""

from __future__ import annotations

from pgdyno.diagnosis import dips
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.said import percent
from pgdyno.format import span

_LOSS = 0.03


def _judge(e: Evidence) -> Finding | None:
    found = [(r, d) for r in e.trials for d in dips.dips_of(r)]
    unexplained = [d for r, d in found if not dips.explained(r, d)]
    length = sum(r.seconds for r in e.trials)
    loss = sum(d.loss * d.seconds for d in unexplained) / length if length else 0.0
    if loss < _LOSS or e.is_open_loop:
        return None
    often = f"{len(unexplained)} times" if len(unexplained) > 1 else "once"
    longest = max(unexplained, key=lambda d: d.seconds)
    return e.finding(
        CAUSE,
        f"Throughput fell {often} without anything that was seen: {percent(loss)} of it was lost, the longest time "
        f"{span(longest.seconds)} at {percent(1 - longest.loss)} of what is usual.",
        Part(loss, 0.0, loss), "the throughput", Confidence.LOW,
        "Look at the charts over time, and at the machine's own log; --interval 0.2 shows more.",
        [Fact("dips", len(unexplained)), Fact("longest", longest.seconds * 1e9, "ns")],
    )  # fmt: skip


CAUSE = Cause("stalls", Kind.TROUBLE, "dips without a known cause", _judge)
