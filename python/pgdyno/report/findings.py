"""Findings as reports show them: the answer's last sentences, a list, and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.diagnosis import difference
from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.finding import Confidence, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.judge.compared import Pair, Row
from pgdyno.judge.groups import Group
from pgdyno.message import Listed, Message, Name, Text, counted, listed, message
from pgdyno.report import names
from pgdyno.report.cells import Table, cells, column, linked
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

#: Configurations whose findings are told one by one; the table has all.
SHOWN = 4
#: Findings of a configuration shown at once.
_CARDS = 3
#: Of a cost, the part from which on a trouble is in the answer.
_WORTH_MENDING = 0.05
#: Pairs whose difference is explained.
_PAIRS = 2


@dataclass(frozen=True)
class FindingText:
    """A finding as a report shows it."""

    finding: Finding

    @property
    def cause(self) -> str:
        """The cause's id."""
        return self.finding.cause

    @property
    def title(self) -> Message:
        """The name of the cause."""
        return message(f"cause-{self.cause}")

    @property
    def sentence(self) -> Message:
        """The finding itself."""
        return self.finding.message

    @property
    def cost(self) -> Message:
        """The part of the time that it costs, with its confidence."""
        confidence = message(f"confidence-{self.finding.confidence.value}")
        return message("finding-cost", share=self.finding.cost, whole=self.finding.whole, confidence=confidence)

    @property
    def facts(self) -> Text | None:
        """Figures that support it, or None if there are none."""
        found = [message("finding-fact", name=x.title, figure=x.quantity) for x in self.finding.facts]
        return listed(found, "semicolon") if found else None

    @property
    def remedy(self) -> Message:
        """Advice on it."""
        return self.finding.advice

    @property
    def role(self) -> Message:
        """The limit, a further limit, or a trouble: what it is to the others of its configuration."""
        return _role(self.finding)

    @property
    def percent(self) -> int:
        """Cost in percent, 0 to 100, for a bar."""
        mean = self.finding.cost.mean
        return round(100 * min(max(mean, 0.0), 1.0)) if math.isfinite(mean) else 0

    @property
    def actions(self) -> list[Action]:
        """Changes that `verify` can make."""
        return self.finding.actions

    @property
    def about(self) -> list[tuple[Message | None, Message]]:
        """Texts on the cause: its nature, the way it is seen, and the way its cost is measured."""
        labels = (("", None), ("-seen", message("label-seen")), ("-cost", message("label-cost")))
        return [(label, message(f"about-{self.cause}{part}")) for part, label in labels]


@dataclass(frozen=True)
class Explained:
    """A configuration, and what was found of it."""

    title: Text
    findings: list[FindingText] = field(default_factory=list)
    #: Unique on the page.
    key: str = ""

    @property
    def first(self) -> list[FindingText]:
        """The findings shown as cards; the page folds the others."""
        return self.findings[:_CARDS]

    @property
    def others(self) -> list[FindingText]:
        """The findings that the page folds."""
        return self.findings[_CARDS:]

    @property
    def more(self) -> Message:
        """The title of the folded findings."""
        return counted("more-findings", len(self.others))


def explained(run: RunAnalysis, groups: Sequence[Group]) -> list[Explained]:
    """Return the findings of some configurations, the largest first."""
    found = [sorted(run.diagnosis_of(g).findings, key=lambda f: not f.is_largest) for g in groups]
    return [
        Explained(names.configuration(g), [FindingText(f) for f in own], f"{n}-")
        for n, (g, own) in enumerate(zip(groups, found, strict=True), 1)
    ]


def _role(f: Finding) -> Message:
    """One limit a configuration: the largest part; other limits come beside it."""
    if f.is_largest:
        return message("role-limit") if f.is_limited else message("role-largest")
    return message("role-also") if f.kind is Kind.LIMIT else message("role-trouble")


def sentences(run: RunAnalysis) -> list[Text]:
    """Return what limits the fastest configurations, in sentences for the answer.

    The answer covers at most two configurations. Each reports the cause with the largest share, and the largest
    avoidable cause if that is another one.
    """
    out: list[Text] = []
    for g in run.fastest[:2]:
        own = [f for f in run.diagnosis_of(g).findings if math.isfinite(f.cost.mean)]
        largest = [f for f in own if f.is_largest]
        troubles = [f for f in own if f.kind is Kind.TROUBLE and not f.is_largest and f.cost.mean >= _WORTH_MENDING]
        sure = [f for f in troubles if f.confidence is not Confidence.LOW]
        where = message("in-brackets", text=names.configuration(g)) if len(run.groups) > 1 else None
        for f in [*largest, *sorted(sure, key=lambda f: -f.cost.mean)[:1]]:
            out.append(message("finding-of", role=_role(f), where=where, sentence=f.message))
    return out


def why_they_differ(a: Observed, b: Observed) -> Message | None:
    """Return a sentence on how the time of a transaction changed between A and B.

    Return None if the collected data do not explain the difference.
    """
    states = [_moved(m) for m in difference.moved(a, b)]
    uses = [_used(u) for u in difference.used(a, b)]
    if not states and not uses:
        return None
    shown = listed(states, "list") if states else message("why-no-state")
    behind = message("why-uses", uses=listed(uses, "list")) if uses else None
    before, after = Quantity(a.latency_ns, "ns"), Quantity(b.latency_ns, "ns")
    return message("why", states=shown, a=before, b=after, uses=behind)


def _moved(m: difference.Moved) -> Message:
    known = message(f"state-{m.state}") if m.state in difference.STATES else None
    return message(
        "why-more" if m.change_ns > 0 else "why-less",
        change=Quantity(abs(m.change_ns), "ns"),
        state=known or message("state-wait", wait=Name(m.state.replace(":", " "))),
        a=Quantity(m.a_ns, "time"),
        b=Quantity(m.b_ns, "time"),
    )


def _used(u: difference.Used) -> Message:
    what = message(f"use-{u.what}")
    return message("why-use", what=what, a=Quantity(u.a, u.unit), b=Quantity(u.b, u.unit))


def comparison_reasons(
    left: RunAnalysis, right: RunAnalysis, rows: Sequence[Row], most: int = _PAIRS
) -> list[tuple[Row, Message]]:
    """Return the reasons for the first `most` pairs that differ in some figure.

    A difference whose verdict is not known gets no reason.
    """
    first: dict[int, Row] = {}
    for r in rows:
        if _differs(r.comparison):
            first.setdefault(id(r.pair), r)
    chosen = list(first.values())[:most]
    reasons = [(r, why_they_differ(left.observed(r.pair.a.trials), right.observed(r.pair.b.trials))) for r in chosen]
    found = [(r, why) for r, why in reasons if why is not None]
    if len({id(r.pair) for r in rows}) < 2:
        return found
    # With several pairs, each reason names its own.
    pairs = [r.pair for r, _ in found]
    return [(r, Message("why-of", {**why.args, "label": label(r.pair, pairs)})) for r, why in found]


def label(pair: Pair, shown: Sequence[Pair]) -> Listed:
    """Return what tells a pair from the other shown ones: its configuration, what differs within it, or both."""
    labels, differences = ({getattr(p, name) for p in shown} for name in ("label", "difference"))
    of = [pair.label] if len(labels) > 1 or len(differences) == 1 else []
    return listed(map(Name, [*of, *([pair.difference] if len(differences) > 1 else [])]))


def _differs(c: Comparison) -> bool:
    """Only a difference that is established has a reason."""
    return c.verdict in (Verdict.FASTER, Verdict.SLOWER) and not c.is_negligible


def table(data: RunData, found: Sequence[Finding]) -> Table:
    """All findings."""
    by_number = {t.plan.number: t for t in data.trials}
    rows = []
    for f in found:
        trials = [by_number[n] for n in f.trials if n in by_number]
        cost = linked(f.cost, trials)
        rows.append(
            cells(
                [
                    names.configuration(f), message(f"cause-{f.cause}"), cost, f.whole,
                    message(f"confidence-{f.confidence.value}"), message(f"kind-{f.kind.value}"), Name(f.cause),
                ]
            )
        )  # fmt: skip
    return Table(
        "findings",
        message("table-findings"),
        [column(x) for x in ("configuration", "cause", "cost", "share of", "confidence", "kind", "cause id")],
        rows,
        [message("note-findings")],
        2,
        ["cause id", "kind", "share of"],
    )
