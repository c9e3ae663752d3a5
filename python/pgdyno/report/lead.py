"""First screen of a report: the answer in two sentences, a few tiles, and one chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pgdyno.analysis.compare import Verdict
from pgdyno.figures import PERCENTILES, is_known
from pgdyno.judge.compared import Pair, Row
from pgdyno.judge.groups import Group
from pgdyno.message import Message, Name, Text, listed, message
from pgdyno.report import names, tpcc, verdicts
from pgdyno.report.answer import is_matrix
from pgdyno.report.charts import Chart
from pgdyno.report.heading import CaveatText
from pgdyno.results.analysis import RunAnalysis
from pgdyno.units import Quantity

#: Sentences of the answer on the first screen; the others follow in the sections.
SENTENCES = 2
#: Half an interval as a part of its figure from which on the interval is shown instead of the figure.
_WIDE = 0.5
#: Charts that may come first: what was asked for, before what every run has.
_FIRST = ("capacity", "ratios", "standbys", "new-orders", "tps")


@dataclass(frozen=True)
class Tile:
    """A figure to see at once. `tone` is how it is shown: "wide" is a range in grey, "bad" a warning."""

    label: Text
    value: Text
    note: Text
    tone: Literal["", "wide", "bad"] = ""
    #: Section that says more.
    section: str = ""


def sentences(
    answer: Sequence[Text], headline: Sequence[Text], reasons: Sequence[Text], alarms: Sequence[Text] = ()
) -> list[Text]:
    """Return at most two sentences: the result and, where it is one of many, what limits it.

    `alarms` are those sentences of the answer that say that the result cannot be used: all of them come first.
    """
    results = [x for x in answer if x not in alarms]
    levels = [x for x in headline if x not in alarms]
    chosen = [listed(_each_workload(levels), "semicolon"), reasons[0]] if levels and reasons else results[:SENTENCES]
    return [*alarms, *chosen]


def _each_workload(levels: Sequence[Text]) -> list[Text]:
    """Return the fastest level of each of the first two workloads, or the sentence that stands before all levels."""
    if not (isinstance(levels[0], Message) and levels[0].id == "level"):
        # Another figure is what the run was made for: new orders, what standbys cost.
        return [levels[0]]
    best: dict[str, Text] = {}
    for x in levels:
        if isinstance(x, Message) and x.id == "level":
            workload = str(x.args.get("workload"))
            if workload not in best or _tps(x) > _tps(best[workload]):
                best[workload] = x
    return list(best.values())[:2]


def _tps(level: Text) -> float:
    tps = level.args.get("tps") if isinstance(level, Message) else None
    return tps.value if isinstance(tps, Quantity) else 0.0


def chart(charts: Sequence[Chart]) -> Chart | None:
    """Return the chart of the first screen; None: there is none that sums the run up."""
    by_name = {c.name: c for c in charts}
    return next((by_name[name] for name in _FIRST if name in by_name), None)


def tiles(run: RunAnalysis, caveats: Sequence[CaveatText]) -> list[Tile]:
    """Return three or four tiles: the result, the tail of the latency, what limits it, and what to beware of."""
    groups = [g for g in run.groups if g.over("tps").mean > 0]
    if not groups:
        return [_caveats(caveats)] if caveats else []
    rows = run.comparisons.rows
    if run.data.manifest.capacity is None and rows and not is_matrix(run):
        # The tiles are of one pair: a p99 of another configuration beside its verdict would mislead.
        pair = leading(rows).pair
        return [verdict(rows), _tail_of(run, pair), _limit(run, pair.b), _caveats(caveats)]
    best = max(groups, key=lambda g: g.over("tps").mean) if run.data.manifest.capacity is None else run.fastest[0]
    return [_result(run, best), _tail(run, best), _limit(run, best), _caveats(caveats)]


def _result(run: RunAnalysis, best: Group) -> Tile:
    capacity = run.data.manifest.capacity
    if capacity is not None:
        note = message("tile-objective", slo=Name(capacity.objective))
        if not capacity.rate:
            return Tile(message("tile-rate"), message("not-known"), note, "bad", "objective")
        rate = message("speed-tps", n=Quantity(capacity.rate, "count"))
        if capacity.most is not None:
            # What one would promise somebody, as in the answer.
            most = capacity.most
            rate = message("speed-tps", n=Quantity(most.rate, "count"))
            note = message("tile-objective-most", slo=Name(capacity.objective))
            return Tile(message("tile-rate"), rate, listed([_range(most.low, most.high), note]), section="objective")
        if capacity.low is None or capacity.high is None:
            return Tile(message("tile-rate"), rate, note, section="objective")
        return Tile(
            message("tile-rate"), rate, listed([_range(capacity.low, capacity.high), note]), section="objective"
        )
    orders = [r for g in run.groups if (r := tpcc.rates(run.data, g)) is not None]
    if orders:
        fastest = max(orders, key=lambda r: r.new_orders)
        return _figure("tile-new-orders", "speed-number", fastest.new_orders, fastest.half_width, fastest.group)
    return _figure("tile-throughput", "speed-tps", best.over("tps").mean, best.half_width(), best)


def _figure(label: str, form: str, value: float, half: float | None, g: Group) -> Tile:
    """Return a figure of a configuration with its interval; a very wide one is shown as a range."""
    where = names.configuration(g)
    n = message("tile-trials", n=len(g.trials))
    if half is None:
        return Tile(message(label), message(form, n=Quantity(value, "count")), listed([n, where]), section="speed")
    interval = _range(value * (1 - min(1.0, half)), value * (1 + half))
    if half > _WIDE:
        return Tile(
            message(label), message(form, n=interval), listed([message("tile-wide"), n, where]), "wide", "speed"
        )
    return Tile(
        message(label), message(form, n=Quantity(value, "count")), listed([interval, n, where]), section="speed"
    )


def _range(low: float, high: float) -> Text:
    return message("tile-range", low=Quantity(low, "count"), high=Quantity(high, "count"))


def leading(rows: Sequence[Row]) -> Row:
    """Return the row that says most: a difference, else equality, else one that is not known yet."""
    order = {Verdict.FASTER: 0, Verdict.SLOWER: 0, Verdict.SAME: 1, Verdict.UNKNOWN: 2}
    first = [r for r in rows if r.figure.name == rows[0].figure.name]
    return min(first, key=lambda r: order[r.comparison.verdict])


def verdict(rows: Sequence[Row], section: str = "differences") -> Tile:
    """Return the verdict that says most: a difference, else equality, else that nothing is known yet."""
    row = leading(rows)
    label = listed([Name(row.pair.label), Name(row.figure.name)])
    value: Text = verdicts.verdict(row)
    if row.comparison.verdict in (Verdict.FASTER, Verdict.SLOWER):
        ratio = row.comparison.ratio
        far = ratio >= verdicts.FACTOR or ratio <= 1 / verdicts.FACTOR
        value = (
            message("n-times", x=Quantity(ratio, "times")) if far else message("change", x=Quantity(ratio, "change"))
        )
    tone: Literal["", "wide"] = "wide" if row.comparison.verdict is Verdict.UNKNOWN else ""
    note = listed([verdicts.change(row.comparison), label] if not math.isnan(row.comparison.ratio) else [label])
    label_of_tile = Name(row.pair.difference) if row.pair.difference else message("tile-b-by-a")
    return Tile(label_of_tile, value, note, tone, section)


def _tail(run: RunAnalysis, g: Group) -> Tile:
    pooled = run.data.pooled[g.key]
    where = names.configuration(g)
    if not is_known(pooled.count, PERCENTILES[2]):
        return Tile(
            message("tile-p99"), message("not-known"), listed([message("tile-too-few"), where]), "wide", "latency"
        )
    half = pooled.relative_half_width(PERCENTILES[2].column)
    sure = message("tile-half", half=Quantity(half, "half-width")) if half is not None else None
    p50 = message("tile-p50", p50=Quantity(pooled.p50_ns, "latency"))
    return Tile(
        message("tile-p99"), message("tile-latency", x=Quantity(pooled.p99_ns, "latency")),
        listed([sure, p50, where]), "wide" if half is not None and half > _WIDE else "", "latency",
    )  # fmt: skip


def _tail_of(run: RunAnalysis, pair: Pair) -> Tile:
    """Return the p99 of A and of B, and the interval of their ratio."""
    row = next((r for r in run.comparisons.rows if r.pair is pair and r.figure is PERCENTILES[2]), None)
    if row is None:
        return _tail(run, pair.b)
    c = row.comparison
    moved = message("tile-moved", a=Quantity(c.mean_a, "latency"), b=Quantity(c.mean_b, "latency"))
    known = verdicts.verdict(row) if c.verdict is Verdict.UNKNOWN else verdicts.change(c)
    where = [Name(pair.label)] if pair.label else []
    tone: Literal["", "wide"] = "wide" if c.verdict is Verdict.UNKNOWN else ""
    return Tile(message("tile-p99"), moved, listed([known, *where]), tone, "differences")


def _limit(run: RunAnalysis, g: Group) -> Tile:
    """Return the largest part of the clients' time, by the cause's title."""
    own = [f for f in run.diagnosis_of(g).findings if f.is_largest and math.isfinite(f.cost.mean)]
    where = names.configuration(g)
    if not own:
        return Tile(
            message("tile-limit"),
            message("not-known"),
            listed([message("nothing-stands-out-short"), where]),
            "wide",
            "why",
        )
    label = message("tile-limit") if own[0].is_limited else message("tile-largest")
    note = message("tile-share", share=own[0].cost, whole=own[0].whole)
    return Tile(label, message(f"cause-{own[0].cause}"), listed([note, where]), section="why")


def _caveats(caveats: Sequence[CaveatText]) -> Tile:
    wrong = sum(c.is_wrong for c in caveats)
    if not caveats:
        return Tile(message("heading-caveats"), message("tile-none"), message("tile-no-caveats"), section="method")
    first = caveats[0].text
    return Tile(message("heading-caveats"), Name(str(len(caveats))), first, "bad" if wrong else "", "caveats")
