"""Table of an experiment's comparisons along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgdyno.analysis.compare import Comparison
from pgdyno.figures import MEMORY, TPS
from pgdyno.judge.axes import AxisComparisons
from pgdyno.judge.compared import Row, starts
from pgdyno.model import TrialRecord
from pgdyno.report import verdicts
from pgdyno.report.cells import Cell, Table, linked


def table(found: AxisComparisons) -> Table:
    """Return the table of comparisons, with a row for each figure of each pair."""
    cells: list[list[str | Cell]] = []
    # Of what nothing can be said: only where it is what was asked for.
    rows = [r for r in found.rows if not math.isnan(r.comparison.low) or r.figure is TPS]
    differences = list(dict.fromkeys(r.pair.difference for r in rows))
    # What all have is in the title.
    several = len(differences) != 1
    for row in rows:
        c, pair = row.comparison, row.pair
        trials: list[TrialRecord] = [*pair.a.trials, *pair.b.trials]
        cells.append(
            [
                pair.label,
                *([pair.difference] if several else []),
                row.figure.name,
                f"{row.figure.cell(c.mean_a)} → {row.figure.shown(c.mean_b)}",
                linked(verdicts.change(c), trials),
                str(min(c.n_a, c.n_b)),
                verdicts.verdict(row),
            ]
        )
    more = f" Only the first {len(rows)} rows are shown." if found.left_out else ""
    slices = [r for r in rows if r.by_slices]
    explained = _explained(found, slices or rows, by_slices=bool(slices)) if rows else ""
    if any(r.figure is MEMORY for r in rows):
        explained += (
            " Memory: anonymous memory of the server's processes together, without shared buffers, the most at the end "
            "of any interval; it grows with the clients."
        )
    return Table(
        "comparisons",
        "Compared" if several else f"Compared: {differences[0]}",
        ["configuration", *(["compared"] if several else []), "figure", "means", "change", "n", "verdict"],
        cells,
        explained + more,
        3 if several else 2,
        ["n", "means"],
    )


def _explained(found: AxisComparisons, rows: Sequence[Row], *, by_slices: bool) -> str:
    c = rows[0].comparison
    several = starts(rows[0].pair.a.trials)
    unit = "starts of the server" if several > 1 else "repetitions"
    return duet_note(c, several, found) if by_slices else note(c, unit=unit, blocked=True)


def duet_note(c: Comparison, several: int, found: AxisComparisons) -> str:
    """Return the note on how to read the verdicts of duets.

    `several` is the number of starts of the servers.
    """
    reach = (
        f"over {several} starts of both servers, so it holds for the next start too"
        if several > 1
        else "for these two servers as they run now, caches and all"
        if found.running
        else "for these two starts of the servers only; --restarts 5 makes it hold for the next"
    )
    how = (
        "Both servers are up and under load at once: each has what the other leaves of the machine, so the ratio is "
        "one of servers that compete; the beginning of each slice is left out"
        if found.together
        else "Both servers are up, and the load goes to one at a time; the beginning of each slice is left out"
    )
    return (
        f"Change: {verdicts.level(c)} interval of the ratio, {reach}. Under n: pairs of slices; of what is per "
        f"transaction (/tx) starts or repetitions. {how}. Where nothing differs, about one verdict in 100 and one "
        f"table in 20 is wrong. Not yet known: it could be no difference, and it could be one of {verdicts.margin(c)}; "
        "in brackets the measuring time that would tell, nine times in ten. Per transaction (/tx): warm-up included. "
        "What takes longer than a slice (checkpoints, vacuum, what a cache learns, writes to a disk that both share) a "
        "duet does not show: --order random does."
    )


def note(c: Comparison, *, unit: str, blocked: bool = False) -> str:
    """Return the note on how to read the verdicts of a table.

    `c` is a comparison from the table. `unit` is the plural name of its units.
    """
    rounds = ", which are compared within their round" if blocked else ""
    return (
        f"Change: {verdicts.level(c)} interval of the ratio of geometric means over n {unit}{rounds}; how far they "
        "lie apart is learned from all configurations. Where nothing differs, about one verdict in 100 and one table "
        f"in 20 is wrong. Not yet known: it could be no difference, and it could be one of {verdicts.margin(c)}; in "
        "brackets the measuring time that would tell, nine times in ten. Per transaction (/tx): warm-up included."
    )
