"""Page of a comparison of runs: the answer, the ratios with their intervals, every figure, and what else differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pgdyno import i18n
from pgdyno.judge.compared import Row
from pgdyno.judge.runs import RunComparison
from pgdyno.message import Name, Text, listed, message
from pgdyno.report import curves, lead, verdicts
from pgdyno.report.cells import COUNT, Table, cells, column
from pgdyno.report.charts import Chart
from pgdyno.report.comparisons import figure_name
from pgdyno.report.lead import Tile
from pgdyno.report.page import Answer, Page, render


def written(
    found: RunComparison, answers: Sequence[Text], how: list[Text], a: Sequence[Path], b: Sequence[Path], lang: str
) -> str:
    """Return the page as HTML. `how` says how the sides were compared."""
    charts = []
    if figure := curves.ratios(found.rows, i18n.writer(lang)):
        charts.append(Chart("ratios", message("chart-ratios"), message("chart-ratios-note"), figure))
    sides = listed([message("side-is", side=Name(n), runs=_paths(x)) for n, x in (("A", a), ("B", b))], "semicolon")
    only = [
        message("only-in", side=Name(name), labels=listed(map(Name, labels)))
        for name, labels in (("A", found.only_a), ("B", found.only_b))
        if labels
    ]
    return render(
        Page(
            title=message("title-compared"),
            subtitle=sides,
            answers=[Answer(message("title-compared"), x) for x in answers[: lead.SENTENCES]],
            tables=[_figures(found.rows)] if found.rows else [],
            charts=charts,
            details=[_differences(found)] if found.differences else [],
            method=[*answers[lead.SENTENCES :], *found.warnings, *only, *how],
            tiles=_tiles(found),
            lang=lang,
        )
    )


def _paths(paths: Sequence[Path]) -> Text:
    return listed((Name(str(p)) for p in paths), "list")


def _tiles(found: RunComparison) -> list[Tile]:
    """Return the verdict that says most, what was compared, and what to beware of."""
    if not found.rows:
        return []
    compared = message("tile-sides", a=found.starts_a, b=found.starts_b)
    caveats = Tile(message("heading-caveats"), message("tile-none"), message("tile-no-caveats"), section="figures")
    if found.warnings:
        caveats = Tile(message("heading-caveats"), Name(str(len(found.warnings))), found.warnings[0], section="figures")
    differ = Tile(
        message("heading-differ"), Name(str(len(found.differences))), message("tile-besides"), section="figures"
    )
    sides = Tile(message("tile-compared"), compared, message(f"unit-{found.unit}s"), section="figures")
    return [lead.verdict(found.rows, "figures"), sides, differ, caveats]


def _figures(rows: Sequence[Row]) -> Table:
    lines = []
    for r in rows:
        c = r.comparison
        means = message("means", a=r.figure.quantity(c.mean_a), b=r.figure.quantity(c.mean_b))
        n = min(c.n_a, c.n_b)
        lines.append(cells([r.pair.label, figure_name(r), means, verdicts.change(c), n, verdicts.verdict(r)]))
    columns = [column(x) for x in ("configuration", "figure", "means", "change")]
    return Table("figures", message("table-compared"), [*columns, column("n", COUNT), column("verdict")], lines, [], 2)


def _differences(found: RunComparison) -> Table:
    rows = [cells([name, x, y]) for name, x, y in found.differences]
    columns = [
        column("what", id="fact"),
        column("A", id="side-a", is_long=True),
        column("B", id="side-b", is_long=True),
    ]
    return Table("differences", message("heading-differ"), columns, rows, [], 1)
