"""Curves over a load: throughput by clients with the scaling law, latency by throughput."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.compare import Verdict
from pgdyno.judge.axes import AxisComparisons
from pgdyno.judge.groups import Group
from pgdyno.message import message
from pgdyno.report import verdicts
from pgdyno.report.charts import COLOURS, Say, base, line_of
from pgdyno.store.manifest import Capacity
from pgdyno.store.reading import RunData

if TYPE_CHECKING:
    from pgdyno.analysis.scaling import Scaling

#: Levels that a fit of the law needs.
_LEVELS = 4
_MOST = 6
_MOST_LEVELS = 24
#: Intervals of a picture.
_MOST_RATIOS = 40
#: Names and colours of verdicts.
_KINDS = {
    Verdict.FASTER: (message("verdict-faster"), COLOURS[2]),
    Verdict.SLOWER: (message("verdict-slower"), COLOURS[5]),
    Verdict.SAME: (message("verdict-the-same"), COLOURS[0]),
    Verdict.UNKNOWN: (message("verdict-unknown"), "#9ca3af"),
}
#: A picture's band needs fewer than a figure.
_RESAMPLES = 150


def scaling(groups: Sequence[Group], say: Say) -> dict[str, object] | None:
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
) -> dict[str, object] | None:
    """Points of each curve, its law with the interval, and its knee; None where there is no law."""
    values: list[dict[str, object]] = []
    for name, law in laws.items():
        values += [{"kind": "point", "curve": name, "n": n, "TPS": round(x)} for n, x in curves[name]]
        for p in law.curve:
            t = p.law
            figures = {"TPS": round(t.value), "low": round(t.low), "high": round(t.high)}
            values.append({"kind": "law", "curve": name, "n": p.n, **figures})
        if math.isfinite(law.knee.value) and law.knee.value <= law.curve[-1].n:
            values.append({"kind": "knee", "curve": name, "n": round(law.knee.value, 1), "TPS": round(law.peak.value)})
    if not values:
        return None
    x = {"field": "n", "type": "quantitative", "title": axis}
    y = {"field": "TPS", "type": "quantitative", "title": throughput, "axis": {"format": "~s"}}
    one = {"legend": None} if len(laws) < 2 else {}
    colour = {"field": "curve", "type": "nominal", "title": None, **one}

    def layer(kind: str, mark: dict[str, object], **encoding: Any) -> dict[str, object]:
        return {
            "transform": [{"filter": f"datum.kind == '{kind}'"}],
            "mark": mark,
            "encoding": {"x": x, "y": y, "color": colour, **encoding},
        }

    layers = [
        layer("law", {"type": "area", "opacity": 0.12}, y={**y, "field": "low"}, y2={"field": "high"}),
        layer("law", {"type": "line", "strokeWidth": 1.5}),
        layer("point", {"type": "point", "filled": True, "size": 28}),
        layer("knee", {"type": "point", "shape": "triangle-down", "size": 90, "strokeWidth": 2}),
    ]
    return {**base(values, 560, 300), "layer": layers}


def ratios(found: AxisComparisons, say: Say) -> dict[str, object] | None:
    """Return a chart of the compared ratios, or None if no ratio has an interval.

    The chart shows the interval of each ratio relative to no difference.
    """
    # One that nothing is known of would stretch the axis until the others cannot be read.
    rows = [r for r in found.rows if verdicts.is_readable(r.comparison.low, r.comparison.high)]
    if not rows:
        return None
    several = len({r.pair.difference for r in rows}) > 1
    values: list[dict[str, object]] = []
    for r in rows[:_MOST_RATIOS]:
        c = r.comparison
        label = ", ".join(filter(None, [r.pair.difference if several else "", r.pair.label]))
        figures = {"low": c.low, "ratio": c.ratio, "high": c.high}
        values.append(
            {
                "configuration": label,
                "figure": r.figure.name,
                **{k: float(f"{v:.4g}") for k, v in figures.items()},
                "verdict": say(verdicts.verdict(r)),
                "kind": say(_KINDS[c.verdict][0]),
            }
        )
    x = {
        "field": "ratio", "type": "quantitative", "title": say(message("axis-b-by-a")),
        "scale": {"type": "log", "nice": True}, "axis": {"format": ".3~r", "tickCount": 6},
    }  # fmt: skip
    y = {"field": "figure", "type": "nominal", "title": None, "sort": None}
    kinds = {say(name): colour for name, colour in _KINDS.values()}
    colour = {
        "field": "kind", "type": "nominal", "title": say(message("column-verdict")),
        "scale": {"domain": list(kinds), "range": list(kinds.values())},
    }  # fmt: skip
    tip = [{"field": f} for f in ("configuration", "figure", "ratio", "low", "high", "verdict")]
    no_difference = {
        "mark": {"type": "rule", "strokeDash": [3, 3], "color": "#6b7280"},
        "encoding": {"x": {"datum": 1, "type": "quantitative"}},
    }
    layers = [
        no_difference,
        {
            "mark": {"type": "rule", "strokeWidth": 3},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour, "tooltip": tip},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tip},
        },
    ]
    whole = base(values, 0, 0)
    whole.pop("width")
    whole.pop("height")
    header = {"labelAngle": 0, "labelAlign": "left", "labelLimit": 260}
    facet = {"row": {"field": "configuration", "type": "nominal", "title": None, "sort": None, "header": header}}
    return {**whole, "facet": facet, "spec": {"width": 460, "height": {"step": 22}, "layer": layers},
            "resolve": {"scale": {"y": "independent"}}}  # fmt: skip


def latency_by_throughput(data: RunData, say: Say) -> dict[str, object] | None:
    """Return a chart of the trials of a capacity search: latency by achieved throughput, and the objective."""
    found = data.manifest.capacity or Capacity()
    by_number = {t.plan.number: t for t in data.trials}
    values: list[dict[str, object]] = []
    yes, no = say(message("yes")), say(message("no"))
    for number, probe in enumerate(found.probes, 2):
        t = by_number.get(number)
        if t is None or t.summary is None:
            continue
        for name, ns in zip(("p50", "p95", "p99", "p99.9"), t.summary.latency.percentiles(), strict=True):
            if ns:
                holds = yes if probe.holds else no
                values.append(
                    {"TPS": round(t.summary.tps), "ms": float(f"{ns / 1e6:.4g}"), "what": name, "holds": holds}
                )
    if not values:
        return None
    x = {
        "field": "TPS",
        "type": "quantitative",
        "title": say(message("column-done-tps")),
        "scale": {"zero": False},
        "axis": {"format": "~s"},
    }
    y = {"field": "ms", "type": "quantitative", "title": say(message("axis-latency")), "scale": {"type": "log"},
         "axis": {"format": "~r"}}  # fmt: skip
    colour = {
        "field": "what",
        "type": "nominal",
        "title": say(message("axis-percentile")),
        "sort": ["p50", "p95", "p99", "p99.9"],
    }
    shape = {"field": "holds", "type": "nominal", "title": say(message("column-holds")), "sort": [yes, no]}
    rule = {
        "data": {"values": [{"ms": found.below_ns / 1e6}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": COLOURS[5]},
        "encoding": {"y": {"field": "ms", "type": "quantitative"}},
    }
    layers = [
        {"mark": {"type": "line", "opacity": 0.5}, "encoding": {"x": x, "y": y, "color": colour}},
        {"mark": {"type": "point", "size": 50}, "encoding": {"x": x, "y": y, "color": colour, "shape": shape}},
        rule,
    ]
    return {**base(values, 560, 300), "layer": layers}
