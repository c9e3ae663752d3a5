"""Findings as reports show them: the answer's last sentence, a list, and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from pgdyno import i18n
from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.diagnosis import difference
from pgdyno.diagnosis.finding import Confidence, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.format import printable
from pgdyno.judge.compared import Row
from pgdyno.judge.groups import Group
from pgdyno.message import Message, Name, message
from pgdyno.model import spelled
from pgdyno.report.cells import Cell, Table, linked
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

#: Configurations whose findings are told one by one; the table has all.
_SOME = 4
#: Of a cost, the part from which on a trouble is in the answer.
_WORTH_MENDING = 0.05
#: Pairs whose difference is explained.
_PAIRS = 2


@dataclass(frozen=True)
class FindingText:
    """A finding in words."""

    cause: str
    sentence: str
    #: How much it costs, and how sure that is.
    cost: str
    facts: str
    remedy: str
    #: What it is to the others of its configuration; empty: nothing in particular.
    role: str = ""


@dataclass(frozen=True)
class Explained:
    """A configuration, and what was found of it."""

    title: str
    findings: list[FindingText] = field(default_factory=list)


def title_of(f: Finding | Group) -> str:
    """Return the title of a configuration."""
    varied = [f"{k} = {spelled(v)}" for k, v in f.varied.items()]
    hot = [f"{f.hot_set * 100:g}% hot"] if f.hot_set != 1 else []
    return ", ".join([f.workload, *varied, *hot, f"{f.clients} client{'s' if f.clients != 1 else ''}"])


def explained(
    found: Sequence[Finding], groups: Sequence[Group], most: int | None = _SOME, lang: str = "en"
) -> list[Explained]:
    """Return the findings of selected configurations.

    Of each workload, and of each value of the other varied axes, the fastest configuration is selected. `most` limits
    their number; None means all configurations.
    """
    chosen = list(groups) if most is None else fastest(groups)[:most]
    by_title: dict[str, list[Finding]] = {}
    for f in found:
        by_title.setdefault(title_of(f), []).append(f)
    for own in by_title.values():
        own.sort(key=lambda f: not f.is_largest)
    return [
        Explained(printable(title_of(g)), [in_words(f, lang) for f in by_title.get(title_of(g), [])]) for g in chosen
    ]


def fastest(groups: Sequence[Group]) -> list[Group]:
    """Return the configuration with the best throughput for each workload and each value of the other varied axes."""
    best: dict[tuple[object, ...], Group] = {}
    for g in groups:
        key = (g.workload, *g.varied.items())
        if key not in best or g.over("tps").mean > best[key].over("tps").mean:
            best[key] = g
    return list(best.values())


def in_words(f: Finding, lang: str = "en") -> FindingText:
    """Return a finding as reports show it."""
    confidence = message(f"confidence-{f.confidence.value}")
    cost = i18n.text(message("finding-cost", share=f.cost, whole=f.whole, confidence=confidence), lang)
    facts = ("；" if lang == "zh" else "; ").join(f"{x.title(lang)} {i18n.quantity(x.quantity, lang)}" for x in f.facts)
    sentence, remedy = (printable(i18n.text(m, lang)) for m in (f.message, f.advice))
    return FindingText(f.cause, sentence, cost, printable(facts), remedy, _role(f, lang))


def _role(f: Finding, lang: str) -> str:
    """One limit a configuration: the largest part; other limits come beside it."""
    if f.is_largest:
        return i18n.text(message("role-limit" if f.is_limited else "role-largest"), lang)
    return i18n.text(message("role-also" if f.kind is Kind.LIMIT else "role-trouble"), lang)


def sentences(found: Sequence[Finding], groups: Sequence[Group], lang: str = "en") -> list[str]:
    """Return what limits the fastest configurations, in sentences for the answer.

    The answer covers at most two configurations. Each reports the cause with the largest share, and the largest
    avoidable cause if that is another one.
    """
    out = []
    leading = fastest(groups)[:2]
    for g in leading:
        own = [f for f in found if title_of(f) == title_of(g) and math.isfinite(f.cost.mean)]
        largest = [f for f in own if f.is_largest]
        troubles = [f for f in own if f.kind is Kind.TROUBLE and not f.is_largest and f.cost.mean >= _WORTH_MENDING]
        sure = [f for f in troubles if f.confidence is not Confidence.LOW]
        for f in [*largest, *sorted(sure, key=lambda f: -f.cost.mean)[:1]]:
            out.append(_sentence(f, title_of(g) if len(groups) > 1 else "", lang))
    return out


def _sentence(f: Finding, where: str, lang: str) -> str:
    text = i18n.text(f.message, lang)
    if lang == "zh":
        from pgdyno.report import words

        return f"{_role(f, lang)}{f'（{words.place(where)}）' if where else ''}：{text}"
    return f"{_role(f, lang)}{f' ({where})' if where else ''}: {_begun_small(text)}"


def _begun_small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def why_they_differ(a: Observed, b: Observed, lang: str = "en", label: str = "") -> str:
    """Return a sentence on how the time of a transaction changed between A and B.

    Return an empty string if the collected data do not explain the difference. `label` names the pair.
    """
    states = [_moved(m) for m in difference.moved(a, b)]
    uses = [_used(u) for u in difference.used(a, b)]
    if not states and not uses:
        return ""
    told = message(
        "why-of" if label else "why",
        label=Name(label),
        states=_joined(states, lang) if states else message("why-no-state"),
        a=Quantity(a.latency_ns, "ns"),
        b=Quantity(b.latency_ns, "ns"),
        uses=message("why-uses", uses=_joined(uses, lang)) if uses else None,
    )
    return i18n.text(told, lang)


def _joined(parts: Sequence[Message], lang: str) -> Name:
    return Name(("、" if lang == "zh" else ", ").join(i18n.text(m, lang) for m in parts))


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


def of_comparisons(
    left: RunAnalysis, right: RunAnalysis, rows: Sequence[Row], most: int = _PAIRS, lang: str = "en"
) -> list[tuple[Row, str]]:
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
    return [(r, why_they_differ(a, b, lang, r.pair.label if len(found) > 1 else "")) for r, a, b in found]


def _differs(c: Comparison) -> bool:
    """Only a difference that is established has a reason."""
    return c.verdict in (Verdict.FASTER, Verdict.SLOWER) and not c.is_negligible


def table(data: RunData, found: Sequence[Finding]) -> Table:
    """All findings."""
    by_number = {t.plan.number: t for t in data.trials}
    cells: list[list[str | Cell]] = []
    for f in found:
        trials = [by_number[n] for n in f.trials if n in by_number]
        cells.append(
            [
                title_of(f),
                f.cause,
                linked(i18n.text(message("share", share=f.cost)), trials, f.cost.mean),
                i18n.text(f.whole),
                f.confidence.value,
                f.kind.value,
            ]
        )
    return Table(
        "findings",
        "All findings",
        ["configuration", "cause", "cost", "share of", "confidence", "kind"],
        cells,
        "Cost: the part of the clients' time, or of the throughput, that goes into the cause, with its 95% interval "
        "over samples. Parts of the clients' time come from samples of pg_stat_activity; parts of the throughput "
        "compare times with and without the cause. What could not be sampled is not found.",
        2,
        ["kind", "share of"],
    )
