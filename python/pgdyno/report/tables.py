"""The tables of figures: throughput and latency."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from pgdyno.analysis.series import measured, tps_of
from pgdyno.analysis.spread import Estimate
from pgdyno.figures import MEAN, PERCENTILES, TPS, Figure, is_known
from pgdyno.judge.groups import Group, variant_column
from pgdyno.message import Message, Name, Text, message
from pgdyno.model import Latency, TrialRecord
from pgdyno.report import heading
from pgdyno.report.cells import (
    COUNT,
    DASH,
    HALF_WIDTH,
    MS,
    NUMBER,
    PERCENT,
    ROWS,
    SHARE,
    SIZE,
    TOO_FEW,
    Cell,
    Column,
    Form,
    Table,
    Value,
    all_linked,
    cells,
    column,
    linked,
    own_column,
)
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.manifest import Capacity, Manifest, Place
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

#: Reading the time series of more configurations takes longer than their table is worth.
MOST_SERIES = 200
#: A table of more rows is not read; the page has a filter.
MOST_STATEMENTS = 500
_DRIFT = Form(lambda v: f"{v * 100:+.1f}%")
_RATE = Form(lambda v: f"{v:,g}")


def percentile_columns() -> list[Column]:
    """Return the columns of the percentiles that every table shows."""
    return [column(f.heading, MS) for f in PERCENTILES]


def interval_columns() -> list[Column]:
    """Return the columns of the percentiles' intervals."""
    return [column(f"{f.name} ±", HALF_WIDTH) for f in PERCENTILES]


def latencies(latency: Latency, figures: Sequence[Figure], mixed: Sequence[TrialRecord] = ()) -> list[Value]:
    """Return the figures of a latency in nanoseconds; of `mixed` trials, which have no one level, dashes."""
    if mixed or not latency.count:
        return [DASH] * len(figures)
    return [(getattr(latency, f.column) or DASH) if is_known(latency.count, f) else TOO_FEW for f in figures]


def label_columns(groups: Sequence[Group]) -> list[Column]:
    """Return the columns that name a configuration."""
    variant = variant_column(list(groups))
    return [
        column("workload"), *([own_column(variant)] if variant else []), column("hot set", SHARE),
        column("clients", COUNT),
    ]  # fmt: skip


def labels(g: Group, *, variants: bool) -> list[Cell]:
    """Return the cells that name a configuration, for the columns of `label_columns`."""
    return cells([g.workload, *([g.variant] if variants else []), g.hot_set, g.clients])


def has_variants(groups: Sequence[Group]) -> bool:
    """Return True if tables of these configurations have a column for variants."""
    return bool(variant_column(list(groups)))


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
    variant_of = variant_column(list(run.groups))
    lines = list(dict.fromkeys((g.variant, g.hot_set) for g in run.groups))
    rows = []
    for variant, hot_set in sorted(lines, key=lambda x: (lines.index((x[0], x[1])), x[1])):
        some = next(g for g in run.groups if (g.variant, g.hot_set) == (variant, hot_set))
        place = _place_of(m, some)
        total = place.rows if place else m.rows
        hot = message("rows-of", rows=Quantity(round(total * hot_set), "rows"), share=Quantity(hot_set, "%"))
        row = cells([heading.instance(m, place), *([variant] if variant_of else []), total, hot])
        for workload in titles:
            found = best.get((variant, hot_set, workload))
            if found is None:
                row += cells([None, None, None])
                continue
            e, g = found
            row += [*all_linked([e.mean, g.half_width("qps")], g.trials), Cell(g.clients)]
        rows.append(row)
    columns = [column("instance"), *([own_column(variant_of)] if variant_of else []), column("rows", ROWS)]
    columns.append(column("hot set"))
    for name, title in titles.items():
        columns += [Column(title, Name(title, m.workloads_zh.get(name, "")), NUMBER), column("±", HALF_WIDTH)]
        columns.append(column("clients", COUNT))
    note: list[Text] = [message("note-qps")]
    note += [Name(m.note, m.note_zh)] if m.note else []
    return Table("qps", message("table-qps"), columns, rows, note, 4 if variant_of else 3, ["instance", "±", "clients"])


def ingest(groups: Sequence[Group]) -> Table:
    """Rows per second, of workloads that say how many rows a transaction writes."""
    variant = variant_column(list(groups))
    rows = []
    for g in groups:
        each = g.trials[0].rows_per_transaction
        if not each:
            continue
        tps = g.over("tps")
        inserted = [t.activity.get("index_bytes_growth", 0.0) for t in g.trials]
        rows.append(
            cells(
                [
                    g.workload, *([g.variant] if variant else []), g.clients, each, linked(tps.mean * each, g.trials),
                    g.half_width(), tps.n, max(0.0, sum(inserted) / len(inserted)),
                ]
            )
        )  # fmt: skip
    return Table(
        "rows",
        message("table-rows"),
        [
            column("workload"), *([own_column(variant)] if variant else []), column("clients", COUNT),
            column("rows a transaction", COUNT), column("rows/s", NUMBER), column("±", HALF_WIDTH), column("n", COUNT),
            column("index growth", SIZE),
        ],
        rows,
        [message("note-rows")],
        2 if variant else 1,
    )  # fmt: skip


def detail(run: RunAnalysis) -> Table:
    """Return the table of throughput and latency, with a row for each configuration."""
    rows, variants = [], has_variants(run.groups)
    for g in run.groups:
        tps = g.over("tps")
        pooled = run.data.pooled[g.key]
        widths = [pooled.relative_half_width(f.column) for f in PERCENTILES]
        rows.append(
            [
                *labels(g, variants=variants),
                *all_linked([tps.mean, g.half_width(), _known(tps.spread)], g.trials),
                Cell(tps.n),
                *all_linked([*latencies(pooled, PERCENTILES, g.mixed), *widths], g.trials),
            ]
        )
    of = label_columns(run.groups)
    return Table(
        "detail",
        message("table-detail"),
        [
            *of, column(TPS.heading, NUMBER), column("±", HALF_WIDTH), column("spread", PERCENT), column("n", COUNT),
            *percentile_columns(), *interval_columns(),
        ],
        rows,
        [message("note-detail")],
        len(of) - 1,
        ["p50 ±", "p95 ±", "p99.9 ±", "spread", "p50 ms", "p99.9 ms", "hot set", "p99 ±", "p95 ms"],
    )  # fmt: skip


def _known(value: float | None) -> float | None:
    """Return a value, or None for not-a-number."""
    return None if value is None or value != value else value


def capacity(data: RunData) -> Table:
    """Return the table of trials of a capacity search under an objective.

    The rows are sorted by rate, so they also show latency by throughput.
    """
    found = data.manifest.capacity or Capacity()
    by_number = {t.plan.number: t for t in data.trials}
    rows = []
    numbered = [(n, p) for n, p in enumerate(found.probes, 2) if n in by_number]
    for number, p in sorted(numbered, key=lambda x: x[1].rate):
        t = by_number[number]
        if t.summary is None:
            continue
        latency = t.summary.latency
        rows.append(
            [
                linked(p.rate, [t]),
                *cells([t.summary.tps]),
                *all_linked(latencies(latency, PERCENTILES), [t]),
                *cells([message("yes") if p.holds else message("no")]),
                *cells(latency.relative_half_width(f.column) for f in PERCENTILES),
            ]
        )
    columns = [column("rate TPS", _RATE), column("done TPS", NUMBER), *percentile_columns(), column("holds")]
    columns += interval_columns()
    shown: list[Text] = [*capacity_notes(found), message("note-own-intervals")]
    if all(c.value == DASH for row in rows for c in row[7:]):
        # Trials of few intervals have none.
        columns, rows, shown = columns[:7], [row[:7] for row in rows], capacity_notes(found)
    note = shown if found.probes else []
    return Table("capacity", message("table-capacity"), columns, rows, note, 0, ["p50 ±", "p95 ±", "p99.9 ±"])


def capacity_notes(found: Capacity) -> list[Text]:
    """Return the note on how to read the result of a capacity search."""
    if not found.rate:
        return []
    slo = Name(found.objective)
    if found.low is None or found.high is None:
        return [message("note-highest-rate", slo=slo, rate=Quantity(found.rate, "rate4"))]
    out: list[Text] = [message("note-capacity", slo=slo, level=Quantity(found.level, "%"))]
    if not found.narrow:
        out.append(message("note-capacity-wide"))
    return [*out, message("note-capacity-hours")]


def over_time(run: RunAnalysis) -> Table:
    """Average, lowest and highest interval of each configuration."""
    rows, variants = [], has_variants(run.groups)
    for g in run.groups if len(run.groups) <= MOST_SERIES else []:
        tps = [x for t in g.trials for x in tps_of(measured(run.data.series[t.plan.number]))]
        if not tps:
            continue
        # Of an open loop it is the latency's: its throughput is what was asked for.
        drifts = [t.summary.drift for t in g.trials if t.summary and t.parameters.get("rate") is None]
        rows.append(
            [
                *labels(g, variants=variants),
                *all_linked([sum(tps) / len(tps), min(tps), max(tps)], g.trials),
                *cells([len(tps), max(drifts, key=abs) if drifts else None]),
            ]
        )
    of = label_columns(run.groups)
    interval = run.data.manifest.run.interval_s
    return Table(
        "time",
        message("table-time"),
        [
            *of, *(column(x, NUMBER) for x in ("average", "lowest", "highest")), column("intervals", COUNT),
            column("drift", _DRIFT),
        ],
        rows,
        [message("note-time", seconds=Name("?" if interval is None else str(interval)))],
        len(of) - 1,
        ["hot set", "intervals"],
    )  # fmt: skip


def scripts(run: RunAnalysis) -> Table:
    """Return the table of throughput and latency of each script, for workloads of several scripts."""
    rows, variants = [], has_variants(run.groups)
    for g in run.groups:
        found = run.data.pooled_scripts[g.key]
        whole = sum(s.latency.count for s in found)
        tps = g.over("tps").mean
        for s in found:
            part = s.latency.count / whole if whole else 0.0
            widths = [s.latency.relative_half_width(f.column) for f in PERCENTILES]
            figures = [part, tps * part, *latencies(s.latency, PERCENTILES, g.mixed), *widths]
            rows.append(
                [*labels(g, variants=variants), *cells([PurePath(s.name).name]), *all_linked(figures, g.trials)]
            )
    of = label_columns(run.groups)
    return Table(
        "scripts",
        message("table-scripts"),
        [
            *of, column("script"), column("share", PERCENT), column(TPS.heading, NUMBER), *percentile_columns(),
            *interval_columns(),
        ],
        rows,
        [message("note-scripts")],
        len(of) + 1,
        ["p50 ±", "p95 ±", "p99.9 ±", "p50 ms", "p99.9 ms", "p99 ±", "clients", "hot set", "p95 ms"],
        brief=_middle([(g, len(run.data.pooled_scripts[g.key])) for g in run.groups]),
    )  # fmt: skip


def _middle(sizes: Sequence[tuple[Group, int]]) -> list[int]:
    """Return the table rows of the middle number of clients, for each workload and variant.

    Only the widest hot set counts. `sizes` holds each group with its number of table rows.
    """
    by_key: dict[tuple[str, str], list[Group]] = {}
    for g, _ in sizes:
        by_key.setdefault((g.workload, g.variant), []).append(g)
    chosen = set()
    for every in by_key.values():
        widest = max(g.hot_set for g in every)
        own = [g for g in every if g.hot_set == widest]
        chosen.add(id(own[len(own) // 2]))
    out: list[int] = []
    at = 0
    for g, n in sizes:
        out += range(at, at + n) if id(g) in chosen else []
        at += n
    return out


def statements(run: RunAnalysis) -> Table:
    """Each statement of each configuration."""
    variants = has_variants(run.groups)
    rows: list[list[Cell]] = []
    sizes: list[tuple[Group, int]] = []
    figures = (MEAN, *PERCENTILES)
    note: list[Text] = [message("note-statements")]
    for g in run.groups:
        if len(rows) >= MOST_STATEMENTS:
            note.append(
                message("note-statements-cut", n=Quantity(len(sizes), "count"), of=Quantity(len(run.groups), "count"))
            )
            break
        found = run.data.pooled_statements[g.key]
        sizes.append((g, len(found)))
        for s in found:
            widths = [s.latency.relative_half_width(f.column) for f in figures]
            values = [s.latency.count, *latencies(s.latency, figures, g.mixed), *widths]
            rows.append([*labels(g, variants=variants), *cells([s.title]), *all_linked(values, g.trials)])
    of = label_columns(run.groups)
    return Table(
        "statements",
        message("table-statements"),
        [
            *of, Column("statement", Message("column-statement"), is_long=True), column("count", COUNT),
            column(MEAN.heading, MS), *percentile_columns(), column("mean ±", HALF_WIDTH), *interval_columns(),
        ],
        rows,
        note,
        len(of) + 1,
        ["count", "p50 ±", "p95 ±", "p99.9 ±", "mean ±", "p50 ms", "clients", "hot set", "p99 ±", "p99.9 ms", "p95 ms"],
        brief=_middle(sizes),
    )  # fmt: skip
