"""Curves over a load: throughput by clients with the scaling law, latency by throughput."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pgdyno.analysis.compare import Verdict
from pgdyno.judge.compared import Row
from pgdyno.judge.groups import Group
from pgdyno.message import Name, message
from pgdyno.plot.model import (
    COLOURS,
    DASHES,
    GREY,
    Axis,
    Band,
    Dots,
    Figure,
    Interval,
    Key,
    Line,
    Mark,
    Panel,
    Rule,
    colours,
)  # fmt: skip
from pgdyno.report import verdicts
from pgdyno.report.charts import Say, line_of
from pgdyno.store.manifest import Capacity
from pgdyno.store.reading import RunData

if TYPE_CHECKING:
    from pgdyno.analysis.scaling import Scaling

_PERCENTILES = ("p50", "p95", "p99", "p99.9")
#: Levels that a fit of the law needs.
_LEVELS = 4
_MOST = 6
_MOST_LEVELS = 24
#: Room beside the longest interval, as a ratio.
_MARGIN = 1.03
#: Intervals of a picture.
_MOST_RATIOS = 40
#: Names and colours of verdicts.
_KINDS = {
    Verdict.FASTER: (message("verdict-faster"), COLOURS[2]),
    Verdict.SLOWER: (message("verdict-slower"), COLOURS[3]),
    Verdict.SAME: (message("verdict-the-same"), COLOURS[0]),
    Verdict.UNKNOWN: (message("verdict-unknown"), GREY),
}
#: A picture's band needs fewer than a figure.
_RESAMPLES = 150


def scaling(groups: Sequence[Group], say: Say) -> Figure | None:
    """Return a chart of throughput by clients, or None if there are too few levels.

    The chart shows each repetition as a point, the fitted law with its interval, and its knee.
    """
    # SciPy takes half a second to import; most reports do not need it.
    from pgdyno.analysis.scaling import fit

    curves: dict[str, list[tuple[float, float]]] = {}
    # Of thousands of levels some tell the curve as well.
    every = sorted({g.clients for g in groups})
    kept = {every[round(i * (len(every) - 1) / (_MOST_LEVELS - 1))] for i in range(_MOST_LEVELS)} if every else set()
    # Of an open loop the throughput is what was asked for.
    closed = [g for g in groups if all(t.parameters.get("rate") is None for t in g.trials)]
    some_groups = [g for g in closed if g.clients in kept]
    for g in some_groups:
        points = curves.setdefault(f"{g.workload}, {line_of(g, some_groups)}", [])
        points += [(float(g.clients), t.summary.tps) for t in g.trials if t.summary and t.summary.tps > 0]
    some = dict(list(curves.items())[:_MOST])
    laws = {}
    for name, points in some.items():
        levels = [n for n, _ in points]
        if len(set(levels)) >= _LEVELS:
            laws[name] = fit(levels, [x for _, x in points], until=1.5 * max(levels), resamples=_RESAMPLES)
    return law_chart(some, laws, say(message("axis-clients")), say(message("axis-throughput")))


def law_chart(
    curves: dict[str, list[tuple[float, float]]], laws: dict[str, Scaling], axis: str, throughput: str
) -> Figure | None:
    """Points of each curve, its law with the interval, and its knee; None where there is no law."""
    marks: list[Mark] = []
    keys = []
    for (name, law), colour in zip(laws.items(), colours(len(laws)), strict=True):
        curve = [(p.n, p.law) for p in law.curve]
        marks.append(Band([(n, t.low, t.high) for n, t in curve], colour))
        marks.append(Line([(n, t.value) for n, t in curve], name, colour))
        marks.append(Dots(curves[name], colour=colour))
        if math.isfinite(law.knee.value) and law.knee.value <= law.curve[-1].n:
            marks.append(Dots([(law.knee.value, law.peak.value)], colour=colour, radius=5, shape="triangle"))
        keys.append(Key(name, colour, shape="line"))
    if not marks:
        return None
    panel = Panel(Axis(axis, is_whole=True), Axis(throughput, form="si"), marks, width=560, height=260)
    return Figure([panel], keys=keys if len(keys) > 1 else [])


def ratios(compared: Sequence[Row], say: Say) -> Figure | None:
    """Return a chart of the compared ratios, or None if no ratio has an interval.

    The chart shows the interval of each ratio relative to no difference.
    """
    # One that nothing is known of would stretch the axis until the others cannot be read.
    rows = [r for r in compared if verdicts.is_readable(r.comparison.low, r.comparison.high)][:_MOST_RATIOS]
    if not rows:
        return None
    sides = {r.pair.difference for r in rows}
    several = len(sides) > 1
    ratio = message("axis-b-by-a") if several or "" in sides else message("axis-ratio", sides=Name(sides.pop()))
    panels: dict[str, list[Interval]] = {}
    for r in rows:
        c = r.comparison
        label = ", ".join(filter(None, [r.pair.difference if several else "", r.pair.label]))
        words = f"{r.figure.name}: {c.ratio:.4g} ({c.low:.4g} – {c.high:.4g}), {say(verdicts.verdict(r))}"
        colour = _KINDS[c.verdict][1]
        panels.setdefault(label, []).append(Interval(r.figure.name, c.low, c.ratio, c.high, words, colour))
    # All have one axis: what is compared is compared with the others too.
    ends = [x for r in rows for x in (r.comparison.low, r.comparison.high, 1.0)]
    bounds = min(ends) / _MARGIN, max(ends) * _MARGIN
    drawn = []
    for n, (label, own) in enumerate(panels.items(), 1):
        x = Axis(say(ratio) if n == len(panels) else "", "log", bounds)
        y = Axis(kind="band", bands=tuple(i.band for i in own))
        drawn.append(Panel(x, y, [Rule(x=1.0), *own], label, 460, 24 * len(own)))
    shown = {r.comparison.verdict for r in rows}
    keys = [Key(say(name), colour, shape="circle") for v, (name, colour) in _KINDS.items() if v in shown]
    return Figure(drawn, keys=keys, legend=say(message("column-verdict")))


def latency_by_throughput(data: RunData, say: Say) -> Figure | None:
    """Return a chart of the trials of a capacity search: latency by achieved throughput, and the objective."""
    found = data.manifest.capacity or Capacity()
    by_number = {t.plan.number: t for t in data.trials}
    curves: dict[str, list[tuple[float, float, bool]]] = {}
    for number, probe in enumerate(found.probes, 2):
        t = by_number.get(number)
        if t is None or t.summary is None:
            continue
        for name, ns in zip(_PERCENTILES, t.summary.latency.percentiles(), strict=True):
            if ns:
                curves.setdefault(name, []).append((t.summary.tps, ns / 1e6, probe.holds))
    if not curves:
        return None
    marks: list[Mark] = [Rule(y=found.below_ns / 1e6, colour=COLOURS[3], hint=say(message("section-objective")))]
    keys = []
    for (name, points), colour, dash in zip(curves.items(), colours(len(curves)), DASHES, strict=False):
        marks.append(Line(sorted((x, y) for x, y, _ in points), name, colour, dash, 1.2, 0.6))
        marks.append(Dots([(x, y) for x, y, holds in points if holds], colour=colour, radius=3.5))
        marks.append(Dots([(x, y) for x, y, holds in points if not holds], colour=colour, radius=3.5, shape="ring"))
        keys.append(Key(name, colour, dash, "line"))
    holds = say(message("column-holds"))
    keys += [
        Key(f"{holds}: {say(message('yes'))}", shape="circle"),
        Key(f"{holds}: {say(message('no'))}", shape="ring"),
    ]
    x = Axis(say(message("column-done-tps")), form="si", has_zero=False)
    panel = Panel(x, Axis(say(message("axis-latency")), "log"), marks, width=560, height=260)
    return Figure([panel], keys=keys)
