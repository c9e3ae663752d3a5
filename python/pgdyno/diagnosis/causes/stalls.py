"""Stretches in which throughput fell far below its surroundings, and what was different meanwhile."""

from __future__ import annotations

from pgdyno.diagnosis import contrast, dips
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import Stalls
from pgdyno.message import Message, message
from pgdyno.units import Quantity, Share


def _judge(e: Observed) -> Finding | None:
    found = [(r, d) for r in e.trials for d in dips.dips_of(r)]
    length = sum(r.seconds for r in e.trials)
    loss = sum(d.loss * d.seconds for _, d in found) / length if length else 0.0
    if loss < Stalls.LOSS or e.is_open_loop:
        return None
    longest = max((d for _, d in found), key=lambda d: d.seconds)
    evidence = _evidence(e)
    if frozen := max(d.frozen_ns for _, d in found):
        evidence.insert(0, message("dip-freeze", time=Quantity(frozen, "ns")))
    return e.finding(
        CAUSE,
        message(
            "stalls" if len(found) > 1 else "stalls-once", n=len(found), loss=Quantity(loss, "share"),
            longest=Quantity(longest.seconds, "seconds"), level=Quantity(1 - longest.loss, "share"),
            seen=contrast.sentence(evidence), every=_every(e),
        ),
        # Of an observed server the mix of statements may have changed.
        Share(loss, 0.0, loss), THROUGHPUT,
        Confidence.MEDIUM if evidence and not e.is_observation else Confidence.LOW,
        message("stalls-remedy"),
        [Fact("dips", len(found)), Fact("longest", longest.seconds * 1e9, "ns")],
    )  # fmt: skip


def _every(e: Observed) -> Message | None:
    """Return the time from dip to dip in the trial with most of them, if they are regular there."""
    most = max((dips.dips_of(r) for r in e.trials), key=len, default=[])
    period = dips.period_s(most)
    return message("stalls-every", period=Quantity(period, "seconds")) if period is not None else None


def _evidence(e: Observed) -> list[Message]:
    """Return what overlaps the dips, each with the time that it overlaps; then what separates them from the rest."""
    overlapping: list[tuple[Message, float]] = []
    contrasts: list[Message] = []
    for r in e.trials:
        of_trial = dips.dips_of(r)
        for dip in of_trial:
            for why in dips.explained(r, dip):
                overlapping.append((why, dip.seconds))
        contrasts += (
            contrast.observations(contrast.separators(r, [(d.start_ns, d.end_ns) for d in of_trial]))
            if of_trial
            else []
        )
    seconds = [(sum(s for other, s in overlapping if other == why), why) for why, _ in overlapping]
    found: list[Message] = []
    for why in (*(why for _, why in sorted(seconds, key=lambda x: -x[0])), *contrasts):
        if why not in found:
            found.append(why)
    return found


CAUSE = Cause("stalls", Kind.TROUBLE, "dips of the throughput", _judge, is_generic=True)
