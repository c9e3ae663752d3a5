"""What an experiment says along an axis, as a table."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.judge.axes import AxisComparisons
from pgdyno.model import TrialRecord
from pgdyno.report import verdicts
from pgdyno.report.cells import Cell, Table, linked


def table(found: AxisComparisons) -> Table:
    """A row for each figure of each pair."""
    cells: list[list[str | Cell]] = []
    for row in found.rows:
        c, pair = row.comparison, row.pair
        trials: list[TrialRecord] = [*pair.a.trials, *pair.b.trials]
        cells.append(
            [
                pair.label,
                pair.difference,
                row.figure.name,
                f"{row.figure.cell(c.mean_a)} → {row.figure.shown(c.mean_b)}",
                linked(verdicts.change(c), trials),
                str(min(c.n_a, c.n_b)),
                verdicts.verdict(row),
            ]
        )
    more = f" Only the first {len(found.rows)} rows are shown." if found.left_out else ""
    return Table(
        "comparisons",
        "Compared along an axis",
        ["configuration", "compared", "figure", "means", "change", "n", "verdict"],
        cells,
        (note(found.rows[0].comparison, blocked=True) if found.rows else "") + more,
        3,
        ["means", "n"],
    )


def note(c: Comparison, *, blocked: bool) -> str:
    """How to read verdicts of a table that has this comparison."""
    units = "repetitions" if blocked else "repetitions or starts"
    rounds = ", which are compared within their round" if blocked else ""
    return (
        f"Change: {verdicts.level(c)} interval of the ratio of geometric means over n {units}{rounds}; how far they "
        "lie apart is learned from all configurations. Where nothing differs, one verdict in 100 and one table in 20 "
        f"is wrong at most. Not yet known: neither no difference nor one of {verdicts.margin(c)} is ruled out; the "
        "time named would rule one out, nine times in ten. WAL, blocks read, server CPU: of a transaction, warm-up "
        "included."
    )
