"""What an experiment says along an axis, as a table."""

from __future__ import annotations

import math
from functools import partial

from pgdyno.analysis.compare import Comparison
from pgdyno.figures import TPS
from pgdyno.judge.axes import AxisComparisons
from pgdyno.model import TrialRecord
from pgdyno.report import verdicts
from pgdyno.report.cells import Cell, Table, linked


def table(found: AxisComparisons) -> Table:
    """A row for each figure of each pair."""
    cells: list[list[str | Cell]] = []
    # Of what nothing can be said: only where it is what was asked for.
    rows = [r for r in found.rows if not math.isnan(r.comparison.low) or r.figure is TPS]
    for row in rows:
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
    more = f" Only the first {len(rows)} rows are shown." if found.left_out else ""
    slices = [r for r in rows if r.by_slices]
    explained = (duet_note if slices else partial(note, blocked=True))((slices or rows)[0].comparison) if rows else ""
    return Table(
        "comparisons",
        "Compared along an axis",
        ["configuration", "compared", "figure", "means", "change", "n", "verdict"],
        cells,
        explained + more,
        3,
        ["means", "n"],
    )


def duet_note(c: Comparison) -> str:
    """How to read verdicts of duets."""
    return (
        f"Change: {verdicts.level(c)} interval of the ratio over n pairs of slices: both servers are up, and the "
        "load goes to one at a time; the beginning of each slice is left out. Where nothing differs, one verdict in "
        "100 and one table in 20 is wrong at most, as far as these two starts of the servers go (--restarts 5: as far "
        f"as starts go). Not yet known: neither no difference nor one of {verdicts.margin(c)} is ruled out; so much "
        "more time of measuring would, nine times in ten. What takes longer than a slice (checkpoints, vacuum, what a "
        "cache learns, writes to a disk that both share) a duet does not show: --order random does."
    )


def note(c: Comparison, *, blocked: bool) -> str:
    """How to read verdicts of a table that has this comparison."""
    units = "repetitions" if blocked else "repetitions or starts"
    rounds = ", which are compared within their round" if blocked else ""
    return (
        f"Change: {verdicts.level(c)} interval of the ratio of geometric means over n {units}{rounds}; how far they "
        "lie apart is learned from all configurations. Where nothing differs, one verdict in 100 and one table in 20 "
        f"is wrong at most. Not yet known: neither no difference nor one of {verdicts.margin(c)} is ruled out; so "
        "much more time of measuring would, nine times in ten. WAL, blocks read, server CPU: of a transaction, warm-up "
        "included."
    )
