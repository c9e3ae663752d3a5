"""The tables of figures: throughput and latency."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from pgdyno.analysis.series import measured, tps_of
from pgdyno.analysis.spread import Estimate
from pgdyno.figures import MEAN, PERCENTILES, QPS, TPS, Figure, is_known
from pgdyno.format import integer, percent, plus_minus, rows, size
from pgdyno.judge.groups import Group, latency_half_width, single_latency, variant_column
from pgdyno.model import Latency, TrialRecord
from pgdyno.report import heading
from pgdyno.report.cells import TOO_FEW, Cell, Table, all_linked, linked
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.manifest import Capacity, Manifest, Place
from pgdyno.store.reading import RunData

#: Reading the time series of more configurations takes longer than their table is worth.
MOST_SERIES = 200
#: A table of more rows is not read; the page has a filter.
MOST_STATEMENTS = 2000
_PERCENTILE_HEADINGS = tuple(f.heading for f in PERCENTILES)
_PERCENTILE_INTERVALS = tuple(f"{f.name} ±" for f in PERCENTILES)


def _cells(latency: Latency, figures: Sequence[Figure], mixed: Sequence[TrialRecord] = ()) -> list[str]:
    """Return the figures of a latency as text; of `mixed` trials, which have no one level, dashes."""
    if mixed or not latency.count:
        return ["–"] * len(figures)
    return [f.cell(getattr(latency, f.column)) if is_known(latency.count, f) else TOO_FEW for f in figures]


def _values(latency: Latency, figures: Sequence[Figure]) -> list[float | None]:
    """Return the figures of a latency in seconds; None if too few transactions support a figure."""
    return [getattr(latency, f.column) / 1e9 if is_known(latency.count, f) else None for f in figures]


def _place_of(m: Manifest, g: Group) -> Place | None:
    """Return the place where a group ran."""
    return m.places.get(g.trials[0].place)


def main(run: RunAnalysis) -> Table:
    """Return the main table in the form that vendors publish.

    Its columns are the instance, the rows, the hot set, and a figure for each workload. Each figure is that of the
    workload's best number of clients.
    """
    m = run.data.manifest
    measured_ones = {g.workload for g in run.groups}
    titles = {name: title for name, title in m.workloads.items() if name in measured_ones}
    best: dict[tuple[str, float, str], tuple[Estimate, Group]] = {}
    for g in run.groups:
        e, key = g.over("qps"), (g.variant, g.hot_set, g.workload)
        if key not in best or e.mean > best[key][0].mean:
            best[key] = (e, g)
    column = variant_column(list(run.groups))
    lines = dict.fromkeys((g.variant, g.hot_set) for g in run.groups)
    cells: list[list[str | Cell]] = []
    for variant, hot_set in sorted(lines, key=lambda x: (list(lines).index((x[0], x[1])), x[1])):
        some = next(g for g in run.groups if (g.variant, g.hot_set) == (variant, hot_set))
        place = _place_of(m, some)
        total = place.rows if place else m.rows
        row: list[str | Cell] = [heading.instance(m, place), *([variant] if column else [])]
        row += [rows(total), f"{rows(round(total * hot_set))} ({hot_set * 100:g}%)"]
        for workload in titles:
            found = best.get((variant, hot_set, workload))
            if found is None:
                row += ["–", "–", "–"]
                continue
            e, g = found
            half = g.half_width("qps")
            figures = all_linked([QPS.cell(e.mean), plus_minus(half)], g.trials, [e.mean, half])
            row += [*figures, str(g.clients)]
        cells.append(row)
    columns = ["instance", *([column] if column else []), "rows", "hot set"]
    for title in titles.values():
        columns += [title, "±", "clients"]
    return Table(
        "qps",
        "Queries per second",
        columns,
        cells,
        "Mean over the repetitions, at the number of clients that was best; the next table has all of them. "
        f"QPS counts the SQL statements of committed transactions, BEGIN and END included. {m.note}".strip(),
        4 if column else 3,
        ["instance", "±", "clients"],
    )


def ingest(groups: Sequence[Group]) -> Table:
    """Rows per second, of workloads that say how many rows a transaction writes."""
    column = variant_column(list(groups))
    cells: list[list[str | Cell]] = []
    for g in groups:
        each = g.trials[0].rows_per_transaction
        if not each:
            continue
        tps = g.over("tps")
        inserted = [t.activity.get("index_bytes_growth", 0.0) for t in g.trials]
        cells.append(
            [
                g.workload,
                *([g.variant] if column else []),
                str(g.clients),
                str(each),
                linked(integer(tps.mean * each), g.trials),
                plus_minus(g.half_width()),
                str(tps.n),
                size(max(0.0, sum(inserted) / len(inserted))),
            ]
        )
    return Table(
        "rows",
        "Rows per second",
        [
            "workload",
            *([column] if column else []),
            "clients",
            "rows a transaction",
            "rows/s",
            "±",
            "n",
            "index growth",
        ],
        cells,
        "TPS times the rows that each transaction writes: mean of n repetitions, ± as in the next table. Index "
        "growth: of "
        "all indexes over a trial, warm-up included, mean of the repetitions.",
        2 if column else 1,
    )


def detail(run: RunAnalysis) -> Table:
    """Return the table of throughput and latency, with a row for each configuration."""
    column = variant_column(list(run.groups))
    cells: list[list[str | Cell]] = []
    for g in run.groups:
        tps = g.over("tps")
        pooled, alone = run.data.pooled[g.key], single_latency(g)
        cells.append(
            [
                g.workload,
                *([g.variant] if column else []),
                f"{g.hot_set * 100:g}%",
                str(g.clients),
                *all_linked(
                    [TPS.cell(tps.mean), plus_minus(g.half_width()), percent(tps.spread)],
                    g.trials,
                    [tps.mean, g.half_width(), tps.spread],
                ),
                str(tps.n),
                *all_linked(_cells(pooled, PERCENTILES, g.mixed), g.trials, _values(pooled, PERCENTILES)),
                *all_linked([plus_minus(latency_half_width(pooled, f.column, alone)) for f in PERCENTILES], g.trials),
            ]
        )
    more = [column] if column else []
    return Table(
        "detail",
        "Throughput and latency",
        [
            "workload",
            *more,
            "hot set",
            "clients",
            TPS.heading,
            "±",
            "spread",
            "n",
            *_PERCENTILE_HEADINGS,
            *_PERCENTILE_INTERVALS,
        ],
        cells,
        "TPS: mean over n repetitions, or over n starts of the server where there are several. "
        "±: half the width of its 95% confidence interval, as a part of it; of a single "
        "repetition from its own time series, which does not know how far equal runs lie apart. Spread: (highest - "
        "lowest) / median. Latency of whole transactions, percentiles of all repetitions' transactions together, to 3 "
        "significant digits; client and server on one machine count each other's waiting for a CPU. p50 ± and so on: "
        "as ±, of the percentile beside it. Too few: no transaction lies beyond it. A dash: no one figure holds.",
        3 if column else 2,
        ["p50 ±", "p95 ±", "p99.9 ±", "spread", "p50 ms", "p99.9 ms", "hot set", "p99 ±", "p95 ms"],
    )


def capacity(data: RunData) -> Table:
    """Return the table of trials of a capacity search under an objective.

    The rows are sorted by rate, so they also show latency by throughput.
    """
    found = data.manifest.capacity or Capacity()
    by_number = {t.plan.number: t for t in data.trials}
    cells: list[list[str | Cell]] = []
    numbered = [(n, p) for n, p in enumerate(found.probes, 2) if n in by_number]
    for number, p in sorted(numbered, key=lambda x: x[1].rate):
        t = by_number[number]
        if t.summary is None:
            continue
        cells.append(
            [
                linked(f"{p.rate:,g}", [t]),
                TPS.cell(t.summary.tps),
                *all_linked(_cells(t.summary.latency, PERCENTILES), [t], _values(t.summary.latency, PERCENTILES)),
                "yes" if p.holds else "no",
                *(plus_minus(_part(t.summary.latency, f.column)) for f in PERCENTILES),
            ]
        )
    columns = ["rate TPS", "done TPS", *_PERCENTILE_HEADINGS, "holds", *_PERCENTILE_INTERVALS]
    note = "p50 ± and so on: by the trial's own intervals."
    if all(str(c) == "–" for row in cells for c in row[7:]):
        # Trials of few intervals have none.
        columns, cells, note = columns[:7], [row[:7] for row in cells], ""
    optional = ["p50 ±", "p95 ±", "p99.9 ±"]
    answer = f"{capacity_text(found)} {note}".strip() if found.probes else ""
    return Table("capacity", "Capacity", columns, cells, answer, 0, optional)


def _part(latency: Latency, name: str) -> float | None:
    """Half the width of a figure's interval within its trial, as a part of it."""
    half, value = latency.half_widths.get(name), getattr(latency, name)
    return half / value if half is not None and value else None


def capacity_text(found: Capacity) -> str:
    """Return the note on how to read the result of a capacity search."""
    if not found.rate:
        return ""
    if found.low is None or found.high is None:
        return f"Highest rate that held {found.objective} twice: {found.rate:,.4g} TPS."
    sure = "" if found.narrow else " The search ended before the interval was narrow."
    return (
        f"At the rate that is given half of the trials hold {found.objective}; {found.level * 100:g}% interval by all "
        f"of them, of this server as it was started.{sure} Nothing is known of rates for hours."
    )


def over_time(run: RunAnalysis) -> Table:
    """Average, lowest and highest interval of each configuration."""
    column = variant_column(list(run.groups))
    cells: list[list[str | Cell]] = []
    for g in run.groups if len(run.groups) <= MOST_SERIES else []:
        tps = [x for t in g.trials for x in tps_of(measured(run.data.series[t.plan.number]))]
        if not tps:
            continue
        # Of an open loop it is the latency's: its throughput is what was asked for.
        drifts = [t.summary.drift for t in g.trials if t.summary and t.parameters.get("rate") is None]
        cells.append(
            [
                g.workload,
                *([g.variant] if column else []),
                f"{g.hot_set * 100:g}%",
                str(g.clients),
                *all_linked([integer(sum(tps) / len(tps)), integer(min(tps)), integer(max(tps))], g.trials),
                str(len(tps)),
                f"{max(drifts, key=abs) * 100:+.1f}%" if drifts else "–",
            ]
        )
    more = [column] if column else []
    return Table(
        "time",
        "TPS over time",
        ["workload", *more, "hot set", "clients", "average", "lowest", "highest", "intervals", "drift"],
        cells,
        f"Of the intervals of {_or_unknown(run.data.manifest.run.interval_s)} s of all repetitions. Drift: the "
        f"trend over a "
        "measurement, as a part of its mean; of the repetition where it is largest.",
        3 if column else 2,
        ["hot set", "intervals"],
    )


def _or_unknown(value: float | None) -> str:
    return "?" if value is None else str(value)


def scripts(run: RunAnalysis) -> Table:
    """Return the table of throughput and latency of each script, for workloads of several scripts."""
    column = variant_column(list(run.groups))
    cells: list[list[str | Cell]] = []
    for g in run.groups:
        found = run.data.pooled_scripts[g.key]
        whole = sum(s.latency.count for s in found)
        tps = g.over("tps").mean
        for n, s in enumerate(found):
            part = s.latency.count / whole if whole else 0.0
            alone = single_latency(g, script=n)
            widths = [plus_minus(latency_half_width(s.latency, f.column, alone)) for f in PERCENTILES]
            cells.append(
                [
                    g.workload,
                    *([g.variant] if column else []),
                    f"{g.hot_set * 100:g}%",
                    str(g.clients),
                    PurePath(s.name).name,
                    *all_linked([percent(part), TPS.cell(tps * part)], g.trials),
                    *all_linked(_cells(s.latency, PERCENTILES, g.mixed), g.trials, _values(s.latency, PERCENTILES)),
                    *all_linked(widths, g.trials),
                ]
            )
    return Table(
        "scripts",
        "By script",
        ["workload", *([column] if column else []), "hot set", "clients", "script", "share", TPS.heading,
         *_PERCENTILE_HEADINGS, *_PERCENTILE_INTERVALS],
        cells,
        "Share: of the committed transactions of all repetitions; TPS: that share of the workload's. Percentiles of "
        "all repetitions' transactions together.",
        5 if column else 4,
        ["p50 ±", "p95 ±", "p99.9 ±", "p50 ms", "p99.9 ms", "p99 ±", "clients", "hot set", "p95 ms"],
        brief=_middle([(g, len(run.data.pooled_scripts[g.key])) for g in run.groups]),
    )  # fmt: skip


def _middle(sizes: Sequence[tuple[Group, int]]) -> list[int]:
    """Return the table rows of the middle number of clients, for each workload and variant.

    Only the widest hot set counts. `sizes` holds each group with its number of table rows.
    """
    chosen = set()
    for key in dict.fromkeys((g.workload, g.variant) for g, _ in sizes):
        own = [g for g, _ in sizes if (g.workload, g.variant) == key]
        own = [g for g in own if g.hot_set == max(x.hot_set for x in own)]
        chosen.add(id(own[len(own) // 2]))
    out: list[int] = []
    at = 0
    for g, n in sizes:
        out += range(at, at + n) if id(g) in chosen else []
        at += n
    return out


def statements(run: RunAnalysis) -> Table:
    """Each statement of each configuration."""
    column = variant_column(list(run.groups))
    cells: list[list[str | Cell]] = []
    sizes: list[tuple[Group, int]] = []
    for g in run.groups:
        found = run.data.pooled_statements[g.key] if len(cells) < MOST_STATEMENTS else []
        sizes.append((g, len(found)))
        for n, s in enumerate(found):
            figures = (MEAN, *PERCENTILES)
            texts = all_linked(_cells(s.latency, figures, g.mixed), g.trials, _values(s.latency, figures))
            alone = single_latency(g, n)
            widths = [plus_minus(latency_half_width(s.latency, f.column, alone)) for f in figures]
            cells.append(
                [
                    g.workload,
                    *([g.variant] if column else []),
                    f"{g.hot_set * 100:g}%",
                    str(g.clients),
                    s.title,
                    linked(f"{s.latency.count:,}", g.trials),
                    *texts,
                    *all_linked(widths, g.trials),
                ]
            )
    return Table(
        "statements",
        "Latency by statement",
        [
            "workload",
            *([column] if column else []),
            "hot set",
            "clients",
            "statement",
            "count",
            MEAN.heading,
            *_PERCENTILE_HEADINGS,
            "mean ±",
            *_PERCENTILE_INTERVALS,
        ],
        cells,
        "From sending a statement to its ReadyForQuery, all repetitions together. A comment above a statement names "
        "it: -- name: place an order. Count: executions. Mean ± and so on: as in the table above.",
        5 if column else 4,
        ["count", "p50 ±", "p95 ±", "p99.9 ±", "mean ±", "p50 ms", "clients", "hot set", "p99 ±", "p99.9 ms", "p95 ms"],
        brief=_middle(sizes),
    )
