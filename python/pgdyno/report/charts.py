"""Charts as Vega-Lite: one description for the page, the SVG and the PNG. Data are thinned to what a screen shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno import i18n
from pgdyno.judge.groups import Group, variant_column
from pgdyno.message import Message, Text, listed, message
from pgdyno.model import IntervalRow
from pgdyno.report import replication, tpcc
from pgdyno.report.cells import own_column
from pgdyno.report.names import clients as clients_of
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.reading import RunData

#: Writes a message in the language of a chart.
Say = Callable[[Text], str]
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
#: Points of one line; more than a screen has columns would not be seen.
MAX_POINTS = 400
#: Configurations with lines of their own, and with bars.
MOST_LINES, MOST_BARS = 24, 120
#: Columns of small charts, one for each number of clients.
MOST_COLUMNS = 6
#: Colour-blind safe (Okabe and Ito).
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
_CONFIG: dict[str, object] = {
    "font": "system-ui, sans-serif",
    "range": {"category": COLOURS},
    "background": "transparent",
    "view": {"stroke": "transparent"},
    "axis": {"gridColor": "#e5e7eb", "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 11, "titleFontSize": 11},
    "header": {"labelFontSize": 12, "labelFontWeight": "bold"},
}


@dataclass(frozen=True)
class Chart:
    """A chart as a Vega-Lite description in one language."""

    name: str
    title: Text
    note: Text
    spec: dict[str, object]


def all_charts(run: RunAnalysis, lang: str = "en") -> list[Chart]:
    """Return the charts of a run's configurations."""
    if not run.groups:
        return []
    some = _representative(run.groups)
    say, drawn = i18n.writer(lang), _drawn(some, run.groups)
    return [
        *_standbys(run, lang),
        *_bar_charts(run, say),
        Chart(
            "throughput",
            message("chart-throughput"),
            listed([message("chart-throughput-note"), drawn], "sentence"),
            _over_time(run.data, some, ["tps"], say),
        ),
        Chart(
            "latency-time",
            message("chart-latency-time"),
            listed([message("chart-latency-time-note"), drawn], "sentence"),
            _over_time(run.data, some, ["p50", "p95", "p99"], say),
        ),
        Chart(
            "latency",
            message("chart-latency"),
            listed([message("chart-latency-note"), drawn], "sentence"),
            _distribution(run.data, some, say),
        ),
    ]


def _bar_charts(run: RunAnalysis, say: Say) -> list[Chart]:
    """QPS of scripts; of TPC-C new orders a minute: the same transactions may take few statements or many."""
    orders = {id(g): r for g in run.groups if (r := tpcc.rates(run.data, g)) is not None}
    scripts, others = [g for g in run.groups if id(g) not in orders], [g for g in run.groups if id(g) in orders]
    found = []
    if bars := scripts[:MOST_BARS]:
        values = [(g, g.over("qps").mean, g.half_width("qps")) for g in bars]
        note = listed([message("chart-bars-note"), _drawn(bars, scripts)], "sentence")
        found.append(Chart("qps", message("chart-qps"), note, _bars(values, say(message("axis-qps")), say)))
    if bars := others[:MOST_BARS]:
        values = [(g, orders[id(g)].new_orders, orders[id(g)].half_width) for g in bars]
        note = listed([message("chart-bars-note"), _drawn(bars, others)], "sentence")
        spec = _bars(values, say(message("axis-new-orders")), say)
        found.append(Chart("new-orders", message("chart-new-orders"), note, spec))
    return found


def _standbys(run: RunAnalysis, lang: str) -> list[Chart]:
    """Throughput by what commits wait for, and whom, a panel for each network."""
    say = i18n.writer(lang)
    values = replication.bars(run, lang)[:MOST_BARS]
    if not values:
        return []
    sync = [
        s
        for s in ("off", "local", "remote_write", "on", "remote_apply")
        if s in {v["synchronous_commit"] for v in values}
    ]
    lines = list(dict.fromkeys(str(v["standbys"]) for v in values))
    networks = list(dict.fromkeys(str(v["network"]) for v in sorted(values, key=lambda v: float(str(v["trip"])))))
    x = _axis("synchronous_commit", "synchronous_commit", "nominal", sort=sync, axis={"labelAngle": -30})
    offset = {"field": "standbys", "sort": lines}
    shown = ("workload", "clients", "synchronous_commit", "standbys", "network", "TPS", "low", "high", "commit p99 ms")
    colour = {"field": "standbys", "type": "nominal", "title": say(message("axis-waited-for")), "sort": lines}
    layers = [
        {
            "mark": "bar",
            "encoding": {"x": x, "xOffset": offset, "y": _axis("TPS", "TPS", axis={"format": "~s"}), "color": colour,
                         "tooltip": [{"field": f} for f in shown]},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "color": "#6b7280"},
            "encoding": {"x": x, "xOffset": offset, "y": _axis("low", "TPS"), "y2": {"field": "high"}},
        },
    ]  # fmt: skip
    whole = base(values, 0, 0)
    del whole["width"], whole["height"]
    facet = {"column": {"field": "network", "type": "nominal", "title": None, "sort": networks}}
    spec = {**whole, "facet": facet, "spec": {"width": 230, "height": 220, "layer": layers}}
    return [Chart("standbys", message("chart-standbys"), message("chart-bars-note"), spec)]


def _representative(groups: Sequence[Group]) -> list[Group]:
    """Return the groups that get lines in the charts.

    If there are many numbers of clients, choose some at even distances. The smallest and the largest number are always
    among them.
    """
    every = sorted({g.clients for g in groups})
    n = min(MOST_COLUMNS, len(every))
    chosen = {every[round(i * (len(every) - 1) / max(1, n - 1))] for i in range(n)}
    return [g for g in groups if g.clients in chosen][:MOST_LINES]


def _drawn(shown: Sequence[Group], groups: Sequence[Group]) -> Message | None:
    """Return a sentence that not everything is drawn, or None if it is."""
    return message("chart-some", n=len(shown), of=len(groups)) if len(shown) < len(groups) else None


def line_of(g: Group, groups: Sequence[Group]) -> str:
    """Return the label of a group's colour: the variant, and the hot set if there are several."""
    hot = [_hot(g.hot_set)] if len({x.hot_set for x in groups}) > 1 or not g.varied else []
    return ", ".join([*([g.variant] if g.varied else []), *hot])


def _legend(groups: Sequence[Group], say: Say) -> str:
    name = variant_column(list(groups))
    return say(own_column(name).title) if name else say(message("column-hot-set"))


def base(values: list[dict[str, object]], width: int, height: int, **more: Any) -> dict[str, object]:
    """Return the part of a chart description that all charts share."""
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


def _colour(lines: Sequence[str], title: str | None) -> dict[str, object]:
    """Return the colour encoding of a chart, with one colour per line.

    A chart with one line has no legend, because a legend of one value conveys nothing.
    """
    one = {"legend": None} if len(lines) < 2 else {}
    return {"field": "line of", "type": "nominal", "title": title, "sort": list(lines), **one}


def _axis(field: str, title: str, kind: str = "quantitative", **more: Any) -> dict[str, object]:
    return {"field": field, "type": kind, "title": title, **more}


def _bars(figures: Sequence[tuple[Group, float, float | None]], name: str, say: Say) -> dict[str, object]:
    """Return a bar chart with one bar for each configuration.

    `figures` holds each configuration with its figure and half the width of its interval, as a ratio of the figure.
    """
    values: list[dict[str, object]] = []
    groups = [g for g, _, _ in figures]
    for g, mean, part in figures:
        half = part or 0.0
        values.append(
            {
                "workload": g.workload,
                "line of": line_of(g, groups),
                "clients": g.clients,
                name: round(mean),
                "low": round(mean * (1 - min(1.0, half))),
                "high": round(mean * (1 + half)),
            }
        )
    x = _axis("clients", say(message("axis-clients")), "ordinal", axis={"labelAngle": 0})
    lines = list(dict.fromkeys(line_of(g, groups) for g in groups))
    offset = {"field": "line of", "sort": lines}
    tip = [{"field": f} for f in ("workload", "line of", "clients", name, "low", "high")]
    layers = [
        {
            "mark": "bar",
            "encoding": {
                "x": x,
                "xOffset": offset,
                "y": _axis(name, name, axis={"format": "~s"}),
                "color": _colour(lines, _legend(groups, say)),
                "tooltip": tip,
            },
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "color": "#6b7280"},
            "encoding": {
                "x": x,
                "xOffset": offset,
                "y": {"field": "low", "type": "quantitative"},
                "y2": {"field": "high"},
            },
        },
    ]
    facet = {"column": {"field": "workload", "type": "nominal", "title": None, "sort": _order(groups)}}
    whole = base(values, 300, 220)
    width, height = whole.pop("width"), whole.pop("height")
    spec = {"width": width, "height": height, "layer": layers}
    return {**whole, "facet": facet, "spec": spec, "resolve": {"scale": {"y": "independent"}}}


def _order(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(g.workload for g in groups))


def _points(series: Sequence[IntervalRow]) -> Iterator[tuple[float, list[IntervalRow]]]:
    """Seconds from the measurement's beginning, and the intervals of a stretch; at most MAX_POINTS stretches."""
    shown = [r for r in series if r.phase != "drain" and r.end_ns > r.start_ns]
    zero = next((r.start_ns for r in shown if r.phase == "measure"), 0)
    step = max(1, math.ceil(len(shown) / MAX_POINTS))
    for i in range(0, len(shown), step):
        stretch = shown[i : i + step]
        yield (stretch[-1].end_ns - zero) / 1e9, stretch


def _figures(stretch: Sequence[IntervalRow], what: str) -> list[float]:
    """Return the values to draw for a stretch of intervals.

    Percentiles are never averaged, so the highest is drawn. For throughput the lowest and the highest are drawn, so
    that no dip is lost.
    """
    if what != "tps":
        return [max(getattr(r, f"{what}_ns") for r in stretch) / 1e6]
    rates = [r.committed / ((r.end_ns - r.start_ns) / 1e9) for r in stretch]
    if len(rates) == 1:
        return rates
    low, high = rates.index(min(rates)), rates.index(max(rates))
    return [rates[i] for i in sorted((low, high))]


def _over_time(data: RunData, groups: Sequence[Group], what: list[str], say: Say) -> dict[str, object]:
    values: list[dict[str, object]] = []
    single = what == ["tps"]
    title = say(message("axis-tps")) if single else say(message("axis-latency"))
    for g in groups:
        for t in g.trials:
            if not single and t.plan.repetition != 1:
                continue
            for second, stretch in _points(data.series[t.plan.number]):
                for w in what:
                    for figure in _figures(stretch, w):
                        if w != "tps" and not figure:
                            continue
                        values.append(
                            {
                                "s": round(second, 3),
                                "v": float(f"{figure:.4g}"),
                                "line of": line_of(g, groups),
                                "clients": say(clients_of(g.clients)),
                                "workload": g.workload,
                                "line": f"{t.plan.number}{w}",
                                "what": w,
                            }
                        )
    lines = list(dict.fromkeys(line_of(g, groups) for g in groups))
    scale = {"zero": True} if single else {"type": "log"}
    encoding: dict[str, object] = {
        "x": _axis("s", say(message("axis-seconds"))),
        "y": _axis("v", title, scale=scale, axis={"format": "~s" if single else "~g"}),
        "color": _colour(lines, _legend(groups, say)),
        "detail": {"field": "line"},
        "tooltip": [{"field": f} for f in ("workload", "clients", "line of", "what", "s", "v")],
    }
    if not single:
        encoding["strokeDash"] = {
            "field": "what",
            "type": "nominal",
            "title": say(message("axis-percentile")),
            "sort": what,
        }
    spec = {
        "width": 190,
        "height": 130,
        "mark": {"type": "line", "strokeWidth": 1.3, "opacity": 0.85, "interpolate": "linear"},
        "encoding": encoding,
    }
    whole = base(values, 0, 0)
    whole.pop("width")
    whole.pop("height")
    clients = [say(clients_of(c)) for c in sorted({g.clients for g in groups})]
    rows = []
    for workload in _order(groups):
        # Panels of one workload are compared: they have one scale.
        facet = {"column": {"field": "clients", "type": "nominal", "title": None, "sort": clients}}
        only = [{"filter": {"field": "workload", "equal": workload}}]
        heading = {"text": workload, "anchor": "start", "fontSize": 12}
        rows.append({"title": heading, "transform": only, "facet": facet, "spec": spec})
    return {**whole, "vconcat": rows}


def _distribution(data: RunData, groups: Sequence[Group], say: Say) -> dict[str, object]:
    """Return a chart of the share of transactions that took longer than each latency.

    Both axes are logarithmic, which shows the tail directly.
    """
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
                    "clients": say(clients_of(g.clients)),
                    "line of": line_of(g, groups),
                    "workload": g.workload,
                }
            )
    clients = [say(clients_of(c)) for c in sorted({g.clients for g in groups})]
    lines = list(dict.fromkeys(line_of(g, groups) for g in groups))
    by_line = _colour(lines, _legend(groups, say))
    by_clients = {"field": "clients", "type": "nominal", "sort": clients, "title": say(message("axis-clients"))}
    # Colours tell more lines apart than dashes do.
    colours = {"color": by_line} if len(clients) == 1 else {"color": by_clients, "strokeDash": by_line}
    spec = {
        "width": 300,
        "height": 220,
        "mark": {"type": "line", "strokeWidth": 1.5},
        "encoding": {
            "x": _axis("ms", say(message("axis-latency")), scale={"type": "log"}, axis={"format": "~g"}),
            "y": _axis("share", say(message("axis-slower")), scale={"type": "log"}, axis={"format": "~g"}),
            **colours,
            "tooltip": [{"field": f} for f in ("workload", "clients", "line of", "ms", "share")],
        },
    }
    whole = base(values, 0, 0)
    whole.pop("width")
    whole.pop("height")
    facet = {"column": {"field": "workload", "type": "nominal", "title": None, "sort": _order(groups)}}
    return {**whole, "facet": facet, "spec": spec}
