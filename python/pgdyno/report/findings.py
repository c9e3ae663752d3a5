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
from pgdyno.judge.compared import Row
from pgdyno.judge.groups import Group
from pgdyno.message import Message, Name, Text, counted, listed, message
from pgdyno.report import names
from pgdyno.report.cells import Table, cells, column, linked
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

#: Configurations whose findings are told one by one; the table has all.
_SOME = 4
#: Findings of a configuration shown at once.
_CARDS = 3
#: Of a cost, the part from which on a trouble is in the answer.
_WORTH_MENDING = 0.05
#: Pairs whose difference is explained.
_PAIRS = 2


@dataclass(frozen=True)
class FindingText:
    """A finding as a report shows it."""

    cause: str
    sentence: Message
    #: How much it costs, and how sure that is.
    cost: Message
    #: Figures that support it; None: there are none.
    facts: Text | None
    remedy: Message
    #: What it is to the others of its configuration.
    role: Message
    #: Cost in percent, 0 to 100, for a bar.
    percent: int
    #: Changes that can be carried out.
    actions: list[Action] = field(default_factory=list)

    @property
    def title(self) -> Message:
        """The name of the cause."""
        return message(f"cause-{self.cause}")

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


def _key(f: Finding | Group) -> tuple[object, ...]:
    return (f.workload, f.hot_set, f.clients, *f.varied.items())


def explained(found: Sequence[Finding], groups: Sequence[Group], most: int | None = _SOME) -> list[Explained]:
    """Return the findings of selected configurations.

    Of each workload, and of each value of the other varied axes, the fastest configuration is selected. `most` limits
    their number; None means all configurations.
    """
    chosen = list(groups) if most is None else fastest(groups)[:most]
    by_key: dict[tuple[object, ...], list[Finding]] = {}
    for f in found:
        by_key.setdefault(_key(f), []).append(f)
    for own in by_key.values():
        own.sort(key=lambda f: not f.is_largest)
    return [
        Explained(names.configuration(g), [finding_message(f) for f in by_key.get(_key(g), [])], f"{n}-")
        for n, g in enumerate(chosen, 1)
    ]


def fastest(groups: Sequence[Group]) -> list[Group]:
    """Return the configuration with the best throughput for each workload and each value of the other varied axes."""
    best: dict[tuple[object, ...], Group] = {}
    for g in groups:
        key = (g.workload, *g.varied.items())
        if key not in best or g.over("tps").mean > best[key].over("tps").mean:
            best[key] = g
    return list(best.values())


def finding_message(f: Finding) -> FindingText:
    """Return a finding as reports show it."""
    confidence = message(f"confidence-{f.confidence.value}")
    cost = message("finding-cost", share=f.cost, whole=f.whole, confidence=confidence)
    facts = listed([message("finding-fact", name=x.title, figure=x.quantity) for x in f.facts], "semicolon")
    percent = round(100 * min(max(f.cost.mean, 0.0), 1.0)) if math.isfinite(f.cost.mean) else 0
    return FindingText(f.cause, f.message, cost, facts if f.facts else None, f.advice, _role(f), percent, f.actions)


def _role(f: Finding) -> Message:
    """One limit a configuration: the largest part; other limits come beside it."""
    if f.is_largest:
        return message("role-limit") if f.is_limited else message("role-largest")
    return message("role-also") if f.kind is Kind.LIMIT else message("role-trouble")


def sentences(found: Sequence[Finding], groups: Sequence[Group]) -> list[Text]:
    """Return what limits the fastest configurations, in sentences for the answer.

    The answer covers at most two configurations. Each reports the cause with the largest share, and the largest
    avoidable cause if that is another one.
    """
    out: list[Text] = []
    for g in fastest(groups)[:2]:
        own = [f for f in found if _key(f) == _key(g) and math.isfinite(f.cost.mean)]
        largest = [f for f in own if f.is_largest]
        troubles = [f for f in own if f.kind is Kind.TROUBLE and not f.is_largest and f.cost.mean >= _WORTH_MENDING]
        sure = [f for f in troubles if f.confidence is not Confidence.LOW]
        where = message("in-brackets", text=names.configuration(g)) if len(groups) > 1 else None
        for f in [*largest, *sorted(sure, key=lambda f: -f.cost.mean)[:1]]:
            out.append(message("finding-of", role=_role(f), where=where, sentence=f.message))
    return out


def why_they_differ(a: Observed, b: Observed, label: str = "") -> Message | None:
    """Return a sentence on how the time of a transaction changed between A and B.

    Return None if the collected data do not explain the difference. `label` names the pair.
    """
    states = [_moved(m) for m in difference.moved(a, b)]
    uses = [_used(u) for u in difference.used(a, b)]
    if not states and not uses:
        return None
    shown = listed(states, "list") if states else message("why-no-state")
    behind = message("why-uses", uses=listed(uses, "list")) if uses else None
    before, after = Quantity(a.latency_ns, "ns"), Quantity(b.latency_ns, "ns")
    if label:
        return message("why-of", label=Name(label), states=shown, a=before, b=after, uses=behind)
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
    chosen = [(r, left.observed(r.pair.a.trials), right.observed(r.pair.b.trials)) for r in list(first.values())[:most]]
    found = [(r, a, b) for r, a, b in chosen if why_they_differ(a, b)]
    # With several reasons, each names its pair.
    reasons = [(r, why_they_differ(a, b, r.pair.label if len(found) > 1 else "")) for r, a, b in found]
    return [(r, why) for r, why in reasons if why is not None]


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
                    names.configuration(f), f.cause, cost, f.whole, message(f"confidence-{f.confidence.value}"),
                    message(f"kind-{f.kind.value}"),
                ]
            )
        )  # fmt: skip
    return Table(
        "findings",
        message("table-findings"),
        [column(x) for x in ("configuration", "cause", "cost", "share of", "confidence", "kind")],
        rows,
        [message("note-findings")],
        2,
        ["kind", "share of"],
    )
