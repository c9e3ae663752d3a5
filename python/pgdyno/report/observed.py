"""Answer of an observation: how busy the server is and with what, what limits it, and what is ruled out."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.diagnosis import parts
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.parts import BusyStatement, Part
from pgdyno.message import Message, Text, listed, message
from pgdyno.model import EventKind
from pgdyno.report import findings
from pgdyno.report.findings import Explained
from pgdyno.results.analysis import RunAnalysis
from pgdyno.units import Quantity

#: Busy sessions and commits per second, below which a database is idle.
_IDLE, _QUIET = 0.02, 2.0
#: Share of the busy time from which on a part is told.
_TOLD = 0.05


@dataclass(frozen=True)
class ObservedAnswer:
    """Answer of an observation, in sentences and tables."""

    #: First how busy it is, then with what.
    sentences: list[Text]
    #: Findings of the one configuration.
    why: Explained
    ruled_out: list[Message]
    not_judged: list[Message]
    #: What could not be seen.
    gaps: list[Text]
    statements: list[BusyStatement]
    parts: list[Part]


def answer(run: RunAnalysis) -> ObservedAnswer | None:
    """Return the answer of an observation, or None if nothing was observed."""
    if not run.groups:
        return None
    g = run.groups[0]
    e = run.observed(g.trials)
    diagnosis = run.diagnosis_of(g)
    explained = findings.explained(run, [g])[0]
    gaps = [*run.data.manifest.gaps, *(x.text for x in e.events(EventKind.NOT_RECORDED))]
    all_parts = parts.parts(e)
    ruled_out = [
        message("ruled-out", part=message(f"part-{p.name}"), bound=Quantity(p.share.high, "percent"))
        for p in sorted(all_parts, key=lambda p: p.share.high)
        if p.is_ruled_out and p.name != "others"
    ]
    return ObservedAnswer(
        [*_busy(e), *_time(all_parts)], explained, ruled_out, [n.message for n in diagnosis.not_judged], gaps,
        parts.statements(e), all_parts,
    )  # fmt: skip


def _busy(e: Observed) -> list[Text]:
    seconds = sum(r.seconds for r in e.trials)
    if any(isinstance(gap, Message) and gap.id == "gap-no-pg-monitor" for gap in e.manifest.gaps):
        # What is not seen is not idle.
        tps = Quantity(e.tps, "rate4")
        return [message("observed-unseen", time=Quantity(seconds, "duration"), sessions=e.clients, tps=tps)]
    if e.busy_clients < _IDLE and e.tps < _QUIET:
        return [message("observed-idle", time=Quantity(seconds, "duration"), sessions=e.clients)]
    busy = message(
        "observed-busy", time=Quantity(seconds, "duration"), sessions=e.clients, busy=Quantity(e.busy_clients, "two"),
        tps=Quantity(e.tps, "rate4"), latency=Quantity(e.latency_ns, "ms"),
    )  # fmt: skip
    return [busy]


def _time(all_parts: list[Part]) -> list[Text]:
    told = [p for p in all_parts if p.share.mean >= _TOLD]
    if not told:
        return []
    shown = [
        message("observed-part", share=Quantity(p.share.mean, "share"), part=message(f"part-{p.name}")) for p in told
    ]
    return [message("observed-time", parts=listed(shown, "list"))]
