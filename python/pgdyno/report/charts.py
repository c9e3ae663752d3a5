"""Charts as Vega-Lite: one description for the page, the SVG and the PNG. Data are thinned to what a screen shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pgdyno.model import IntervalRow, RunData

if TYPE_CHECKING:
    from pgdyno.report.view import Group

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
#: Points of one line; more than a screen has columns would not be seen.
MAX_POINTS = 400
#: Colour-blind safe (Okabe and Ito).
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
_CONFIG: dict[str, Any] = {
    "font": "system-ui, sans-serif",
    "range": {"category": COLOURS},
    "view": {"stroke": "transparent"},
    "axis": {"gridColor": "#e5e7eb", "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 11, "titleFontSize": 11},
    "header": {"labelFontSize": 12, "labelFontWeight": "bold"},
}


def all_charts(data: RunData, groups: Sequence[Group]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Name, title, note and description of each chart."""
    if not groups:
        return []
    return [
        (
            "qps",
            "Queries per second by hot set and clients",
            "Bars: median of the repetitions. Lines: lowest to highest repetition.",
            _qps(groups),
        ),
        (
            "throughput",
            "Throughput over time",
            "Each line is one trial; the warm-up is left of zero.",
            _over_time(data, groups, ["tps"], "TPS", 0),
        ),
        (
            "latency-time",
            "Latency percentiles over time",
            "First repetition of each configuration; of each interval's own transactions, logarithmic scale.",
            _over_time(data, groups, ["p50", "p95", "p99"], "latency (ms)", 1),
        ),
        (
            "latency",
            "Latency distribution",
            "All repetitions together. Read: so many percent of the transactions took longer than so long.",
            _distribution(data, groups),
        ),
    ]


def _base(values: list[dict[str, Any]], width: int, height: int, **more: Any) -> dict[str, Any]:
    return {
        "$schema": SCHEMA,
        "config": _CONFIG,
        "data": {"values": values},
        "width": width,
        "height": height,
        **more,
    }


def _hot(hot_set: float) -> str:
    return f"{hot_set * 100:g}%"


def _axis(field: str, title: str, kind: str = "quantitative", **more: Any) -> dict[str, Any]:
    return {"field": field, "type": kind, "title": title, **more}


def _qps(groups: Sequence[Group]) -> dict[str, Any]:
    values = []
    for g in groups:
        e = g.over("qps")
        values.append(
            {
                "workload": g.workload,
                "hot set": _hot(g.hot_set),
                "clients": g.clients,
                "QPS": round(e.median),
                "low": round(e.minimum),
                "high": round(e.maximum),
            }
        )
    x = _axis("clients", "clients", "ordinal", axis={"labelAngle": 0})
    offset = {"field": "hot set", "sort": [_hot(h) for h in sorted({g.hot_set for g in groups})]}
    tip = [{"field": f} for f in ("workload", "hot set", "clients", "QPS", "low", "high")]
    layers = [
        {
            "mark": "bar",
            "encoding": {
                "x": x,
                "xOffset": offset,
                "y": _axis("QPS", "QPS", axis={"format": "~s"}),
                "color": {"field": "hot set", "type": "nominal", "sort": offset["sort"], "title": "hot set"},
                "tooltip": tip,
            },
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "color": "#374151"},
            "encoding": {
                "x": x,
                "xOffset": offset,
                "y": {"field": "low", "type": "quantitative"},
                "y2": {"field": "high"},
            },
        },
    ]
    facet = {"column": {"field": "workload", "type": "nominal", "title": None, "sort": _order(groups)}}
    base = _base(values, 300, 220)
    width, height = base.pop("width"), base.pop("height")
    spec = {"width": width, "height": height, "layer": layers}
    return {**base, "facet": facet, "spec": spec, "resolve": {"scale": {"y": "independent"}}}


def _order(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(g.workload for g in groups))


def _points(series: Sequence[IntervalRow]) -> Iterator[tuple[float, IntervalRow]]:
    """Seconds from the measurement's beginning, and the interval; at most MAX_POINTS, evenly taken."""
    shown = [r for r in series if r.phase != "drain" and r.end_ns > r.start_ns]
    zero = next((r.start_ns for r in shown if r.phase == "measure"), 0)
    step = max(1, len(shown) // MAX_POINTS)
    for r in shown[::step]:
        yield (r.end_ns - zero) / 1e9, r


def _over_time(data: RunData, groups: Sequence[Group], what: list[str], title: str, repetition: int) -> dict[str, Any]:
    values: list[dict[str, Any]] = []
    for g in groups:
        for t in g.trials:
            if repetition and t.plan.repetition != repetition:
                continue
            for second, r in _points(data.series[t.plan.number]):
                figures = {
                    "tps": r.committed / ((r.end_ns - r.start_ns) / 1e9),
                    "p50": r.p50_ns / 1e6,
                    "p95": r.p95_ns / 1e6,
                    "p99": r.p99_ns / 1e6,
                }
                for w in what:
                    if w != "tps" and not figures[w]:
                        continue
                    values.append(
                        {
                            "s": round(second, 3),
                            "v": float(f"{figures[w]:.4g}"),
                            "hot set": _hot(g.hot_set),
                            "clients": f"{g.clients} clients",
                            "workload": g.workload,
                            "line": f"{t.plan.number}{w}",
                            "what": w,
                        }
                    )
    single = what == ["tps"]
    scale = {"zero": True} if single else {"type": "log"}
    encoding: dict[str, Any] = {
        "x": _axis("s", "seconds"),
        "y": _axis("v", title, scale=scale, axis={"format": "~s" if single else "~g"}),
        "color": {"field": "hot set", "type": "nominal", "title": "hot set"},
        "detail": {"field": "line"},
        "tooltip": [{"field": f} for f in ("workload", "clients", "hot set", "what", "s", "v")],
    }
    if not single:
        encoding["strokeDash"] = {"field": "what", "type": "nominal", "title": "percentile", "sort": what}
    spec = {
        "width": 190,
        "height": 130,
        "mark": {"type": "line", "strokeWidth": 1.3, "opacity": 0.85, "interpolate": "linear"},
        "encoding": encoding,
    }
    base = _base(values, 0, 0)
    base.pop("width")
    base.pop("height")
    clients = [f"{c} clients" for c in sorted({g.clients for g in groups})]
    facet = {
        "row": {"field": "workload", "type": "nominal", "title": None, "sort": _order(groups)},
        "column": {"field": "clients", "type": "nominal", "title": None, "sort": clients},
    }
    return {**base, "facet": facet, "spec": spec, "resolve": {"scale": {"y": "independent"}}}


def _distribution(data: RunData, groups: Sequence[Group]) -> dict[str, Any]:
    """The share of transactions that took longer, on logarithmic axes: a straight view into the tail."""
    values = []
    for g in groups:
        counts: dict[int, int] = {}
        for t in g.trials:
            for value, n in data.buckets[t.plan.number]:
                counts[value] = counts.get(value, 0) + n
        total = sum(counts.values())
        left, last = total, 0.0
        for value in sorted(counts):
            share = left / total * 100
            left -= counts[value]
            # One point each percent of a decade is more than can be seen.
            if last and abs(share - last) < 0.02 * last and left:
                continue
            last = share
            values.append(
                {
                    "ms": float(f"{value / 1e6:.4g}"),
                    "share": float(f"{share:.4g}"),
                    "clients": f"{g.clients} clients",
                    "hot set": _hot(g.hot_set),
                    "workload": g.workload,
                }
            )
    clients = [f"{c} clients" for c in sorted({g.clients for g in groups})]
    spec = {
        "width": 300,
        "height": 220,
        "mark": {"type": "line", "strokeWidth": 1.5},
        "encoding": {
            "x": _axis("ms", "latency (ms)", scale={"type": "log"}, axis={"format": "~g"}),
            "y": _axis("share", "slower than that (%)", scale={"type": "log"}, axis={"format": "~g"}),
            "color": {"field": "clients", "type": "nominal", "sort": clients, "title": "clients"},
            "strokeDash": {"field": "hot set", "type": "nominal", "title": "hot set"},
            "tooltip": [{"field": f} for f in ("workload", "clients", "hot set", "ms", "share")],
        },
    }
    base = _base(values, 0, 0)
    base.pop("width")
    base.pop("height")
    facet = {"column": {"field": "workload", "type": "nominal", "title": None, "sort": _order(groups)}}
    return {**base, "facet": facet, "spec": spec, "resolve": {"scale": {"x": "independent"}}}
