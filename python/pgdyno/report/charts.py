"""Charts of a run's configurations: bars, lines over time, tail of the latency. A screen's points are enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pgdyno import i18n
from pgdyno.judge.groups import Group, variant_column
from pgdyno.message import Message, Name, Text, listed, message
from pgdyno.model import IntervalRow
from pgdyno.plot.model import COLOURS, DASHES, Axis, Bar, Figure, Key, Line, Panel, Square, colours
from pgdyno.plot.scales import scale, written
from pgdyno.report import replication, tpcc
from pgdyno.report.cells import own_column
from pgdyno.report.names import clients as clients_of
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.reading import RunData

#: Writes a message in the language of a chart.
Say = Callable[[Text], str]
#: Points of one line; more than a screen has columns would not be seen.
MAX_POINTS = 400
#: Configurations with lines of their own, and with bars.
MOST_LINES, MOST_BARS = 24, 120
#: Where intervals end that reach beyond the bars, by the longest bar of a panel.
_FARTHEST = 2.0
#: Columns of small charts, one for each number of clients.
MOST_COLUMNS = 6


@dataclass(frozen=True)
class Chart:
    """A chart with its title and note; its texts are in one language."""

    name: str
    title: Text
    note: Text
    figure: Figure


def all_charts(run: RunAnalysis, lang: str = "en") -> list[Chart]:
    """Return the charts of a run's configurations."""
    if not run.groups:
        return []
    some = _representative(run.groups)
    say, drawn = i18n.writer(lang), _drawn(some, run.groups)
    return [
        *_standbys(run, lang),
        *_throughput(run.groups, say),
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


def _throughput(groups: Sequence[Group], say: Say) -> list[Chart]:
    """Return throughput by clients: bars, or a heat map where more variants than colours are compared."""
    drawn = [g for g in groups if g.over("tps").mean > 0][:MOST_BARS]
    if not drawn:
        return []
    lines = {line_of(g, drawn) for g in drawn}
    if len(lines) > len(COLOURS):
        return [Chart("tps", message("chart-tps"), message("chart-cells-note"), _squares(drawn, say))]
    values = [(g, g.over("tps").mean, g.half_width()) for g in drawn]
    note = listed([message("chart-bars-note"), _drawn(drawn, groups)], "sentence")
    return [Chart("tps", message("chart-tps"), note, _bars(values, say(message("axis-tps")), say))]


def _squares(groups: Sequence[Group], say: Say) -> Figure:
    """Return a heat map for each workload: variants by clients, each cell with its throughput."""
    of_clients = say(message("axis-clients"))
    panels = []
    for workload in _order(groups):
        own = [g for g in groups if g.workload == workload]
        most = max(g.over("tps").mean for g in own)
        rows = tuple(dict.fromkeys(line_of(g, groups) for g in own))
        columns = tuple(str(c) for c in sorted({g.clients for g in own}))
        squares = []
        for g in own:
            tps = g.over("tps").mean
            hint = f"{line_of(g, groups)}\n{of_clients}: {g.clients}\nTPS: {tps:,.0f}"
            text = written(float(f"{tps:.3g}"), "si")
            squares.append(Square(str(g.clients), line_of(g, groups), 0.06 + 0.94 * tps / most, text, hint))
        width = max(60 * len(columns), 180)
        x, y = Axis(of_clients, "band", bands=columns), Axis(kind="band", bands=rows)
        panels.append(Panel(x, y, squares, workload, width, 24 * len(rows)))
    return Figure(panels, 2)


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
    sync = [x for x in _SYNC if x in {v["synchronous_commit"] for v in values}]
    lines = list(dict.fromkeys(str(v["standbys"]) for v in values))
    palette = dict(zip(lines, colours(len(lines)), strict=True))
    shown = ("workload", "clients", "synchronous_commit", "standbys", "network", "TPS", "low", "high", "commit p99 ms")
    panels = []
    places = {
        (v["network"], v["workload"], v["clients"]): v for v in sorted(values, key=lambda v: float(str(v["trip"])))
    }
    several = len({(workload, clients) for _, workload, clients in places}) > 1
    for place in places:
        bars = [
            Bar(
                str(v["synchronous_commit"]), float(str(v["TPS"])), float(str(v["low"])), float(str(v["high"])),
                "\n".join(f"{name}: {v[name]}" for name in shown if name in v),
                palette[str(v["standbys"])], lines.index(str(v["standbys"])), len(lines),
            )
            for v in values
            if (v["network"], v["workload"], v["clients"]) == place
        ]  # fmt: skip
        heading = str(place[0])
        if several:
            heading = say(listed([Name(heading), Name(str(place[1])), clients_of(int(str(place[2])))]))
        axis = Axis("synchronous_commit", "band", bands=tuple(sync))
        panels.append(Panel(axis, Axis("TPS", form="si"), bars, heading, 230, 200))
    keys = [Key(name, colour) for name, colour in palette.items()]
    figure = Figure(panels, 3, keys, say(message("axis-waited-for")))
    return [Chart("standbys", message("chart-standbys"), message("chart-bars-note"), figure)]


#: Values of synchronous_commit, from the least durable.
_SYNC = ("off", "local", "remote_write", "on", "remote_apply")


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


def _hot(hot_set: float) -> str:
    return f"{hot_set * 100:g}%"


def _keys(lines: Sequence[str], palette: Sequence[str], *, is_line: bool = False) -> list[Key]:
    """Return a legend of lines by colour; of a single line none, because a legend of one value conveys nothing."""
    return (
        [Key(n, c, shape="line" if is_line else "box") for n, c in zip(lines, palette, strict=True)]
        if len(lines) > 1
        else []
    )


def _bars(figures: Sequence[tuple[Group, float, float | None]], name: str, say: Say) -> Figure:
    """Return a bar chart with one bar for each configuration.

    `figures` holds each configuration with its figure and half the width of its interval, as a ratio of the figure.
    """
    groups = [g for g, _, _ in figures]
    lines = list(dict.fromkeys(line_of(g, groups) for g in groups))
    palette = colours(len(lines))
    of_line, of_clients = _legend(groups, say), say(message("axis-clients"))
    panels = []
    for workload in _order(groups):
        bars = []
        # An interval of two trials may reach far beyond all bars, and would make them too small to compare.
        most = _FARTHEST * max(mean for g, mean, _ in figures if g.workload == workload)
        for g, mean, part in figures:
            if g.workload != workload:
                continue
            half = part or 0.0
            n = lines.index(line_of(g, groups))
            low, high = mean * (1 - min(1.0, half)), mean * (1 + half)
            words = [f"{name}: {mean:,.0f}" + (f" ({low:,.0f} – {high:,.0f})" if half else "")]
            words += [f"{of_clients}: {g.clients}"]
            if len(lines) > 1:
                words.append(f"{of_line}: {lines[n]}")
            bars.append(Bar(str(g.clients), mean, low, min(high, most), "\n".join(words), palette[n], n, len(lines)))
        clients = tuple(str(c) for c in sorted({g.clients for g in groups if g.workload == workload}))
        wide = 300 if len(_order(groups)) > 1 else 560
        panels.append(Panel(Axis(of_clients, "band", bands=clients), Axis(name, form="si"), bars, workload, wide, 200))
    return Figure(panels, 2, _keys(lines, palette), of_line)


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


def _over_time(data: RunData, groups: Sequence[Group], what: list[str], say: Say) -> Figure:
    single = what == ["tps"]
    title = say(message("axis-tps")) if single else say(message("axis-latency"))
    seconds = say(message("axis-seconds"))
    lines = list(dict.fromkeys(line_of(g, groups) for g in groups))
    palette = colours(len(lines))
    panels = []
    for workload in _order(groups):
        own = [g for g in groups if g.workload == workload]
        drawn: dict[int, list[Line]] = {}
        for g in own:
            for t in g.trials:
                # Percentiles of several trials would be three lines each.
                if not single and t.plan.repetition != 1:
                    continue
                colour = palette[lines.index(line_of(g, groups))]
                drawn.setdefault(g.clients, []).extend(
                    Line(points, _line_name(w, g, groups, t.plan.repetition), colour, dash, 1.3, 0.85)
                    for w, dash in zip(what, DASHES, strict=False)
                    if (points := _series(data.series[t.plan.number], w))
                )
        # Panels of one workload are compared: they have one scale.
        every = [y for found in drawn.values() for line in found for _, y in line.points]
        domain = None if not every else _bounds(every, is_log=not single)
        for clients, found in sorted(drawn.items()):
            y = Axis(title, "linear" if single else "log", domain, form="si" if single else "plain")
            heading = say(listed([Name(workload), clients_of(clients)]))
            panels.append(
                Panel(
                    Axis(seconds, has_zero=False, is_time=True), y, found, heading, 300 if len(drawn) > 1 else 620, 130
                )
            )
    keys = _keys(lines, palette, is_line=True)
    if not single:
        keys += [Key(w, dash=dash, shape="line") for w, dash in zip(what, DASHES, strict=False)]
    return Figure(panels, 2, keys, _legend(groups, say) if len(lines) > 1 else "")


def _line_name(what: str, g: Group, groups: Sequence[Group], repetition: int) -> str:
    """Return the name of a line beside the pointer."""
    parts = [line_of(g, groups) if g.varied else "", f"#{repetition}" if what == "tps" else what]
    return " ".join(filter(None, parts))


def _series(series: Sequence[IntervalRow], what: str) -> list[tuple[float, float]]:
    return [
        (round(second, 3), figure)
        for second, stretch in _points(series)
        for figure in _figures(stretch, what)
        if what == "tps" or figure
    ]


def _bounds(values: Sequence[float], *, is_log: bool) -> tuple[float, float]:
    """Return the domain of an axis that several panels share."""
    found = scale(Axis(kind="log" if is_log else "linear"), values, 0, 1)
    return found.low, found.high


def _distribution(data: RunData, groups: Sequence[Group], say: Say) -> Figure:
    """Return a chart of the share of transactions that took longer than each latency.

    Both axes are logarithmic, which shows the tail directly.
    """
    lines = list(dict.fromkeys(line_of(g, groups) for g in groups))
    clients = sorted({g.clients for g in groups})
    # Colours tell more lines apart than dashes do.
    by_clients = len(clients) > 1
    palette = colours(len(clients) if by_clients else len(lines))
    panels = []
    for workload in _order(groups):
        drawn = []
        for g in groups:
            if g.workload != workload:
                continue
            n, line = clients.index(g.clients), lines.index(line_of(g, groups))
            dash = DASHES[line % len(DASHES)] if by_clients else ""
            name = [say(clients_of(g.clients)) if by_clients else "", lines[line] if len(lines) > 1 else ""]
            words = ", ".join(filter(None, name)) or say(clients_of(g.clients))
            drawn.append(Line(_tail(data, g), words, palette[n if by_clients else line], dash))
        x = Axis(say(message("axis-latency")), "log")
        wide = 300 if len(_order(groups)) > 1 else 560
        panels.append(Panel(x, Axis(say(message("axis-slower")), "log"), drawn, workload, wide, 220))
    if by_clients:
        keys = [Key(say(clients_of(c)), colour, shape="line") for c, colour in zip(clients, palette, strict=True)]
        if len(lines) > 1:
            keys += [Key(n, dash=DASHES[i % len(DASHES)], shape="line") for i, n in enumerate(lines)]
    else:
        keys = _keys(lines, palette, is_line=True)
    return Figure(panels, 2, keys)


def _tail(data: RunData, g: Group) -> list[tuple[float, float]]:
    """Return latencies in milliseconds with the percentage of transactions that took at least as long."""
    counts: dict[int, int] = {}
    for t in g.trials:
        for value, n in data.buckets[t.plan.number]:
            counts[value] = counts.get(value, 0) + n
    total = sum(counts.values())
    left, last = total, 0.0
    found = []
    for value in sorted(counts):
        share = left / total * 100
        left -= counts[value]
        # One point each percent of a decade is more than can be seen.
        if last and abs(share - last) < 0.02 * last and left:
            continue
        last = share
        if value > 0:
            found.append((float(f"{value / 1e6:.4g}"), float(f"{share:.4g}")))
    return found
