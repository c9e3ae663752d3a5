"""Times in which next to nothing was done."""

from __future__ import annotations

from pgdyno.diagnosis import dips
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.message import message
from pgdyno.units import Quantity, Share

_LOSS = 0.03


def _judge(e: Observed) -> Finding | None:
    found = [(r, d) for r in e.trials for d in dips.dips_of(r)]
    unexplained = [d for r, d in found if not dips.explained(r, d)]
    length = sum(r.seconds for r in e.trials)
    loss = sum(d.loss * d.seconds for d in unexplained) / length if length else 0.0
    if loss < _LOSS or e.is_open_loop:
        return None
    longest = max(unexplained, key=lambda d: d.seconds)
    return e.finding(
        CAUSE,
        message(
            "stalls" if len(unexplained) > 1 else "stalls-once", n=len(unexplained), loss=Quantity(loss, "share"),
            longest=Quantity(longest.seconds, "seconds"), level=Quantity(1 - longest.loss, "share"),
        ),
        Share(loss, 0.0, loss), THROUGHPUT, Confidence.LOW,
        message("stalls-remedy"),
        [Fact("dips", len(unexplained)), Fact("longest", longest.seconds * 1e9, "ns")],
    )  # fmt: skip


CAUSE = Cause("stalls", Kind.TROUBLE, "dips without a known cause", _judge)
