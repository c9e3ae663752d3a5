"""Table of an experiment's comparisons along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgdyno.analysis.compare import Comparison
from pgdyno.figures import MEMORY, TPS
from pgdyno.judge.axes import AxisComparisons
from pgdyno.judge.compared import Row, starts
from pgdyno.message import Message, Name, Text, listed, message
from pgdyno.model import TrialRecord
from pgdyno.report import verdicts
from pgdyno.report.cells import COUNT, Table, cells, column, linked
from pgdyno.units import Quantity


def table(found: AxisComparisons) -> Table:
    """Return the table of comparisons, with a row for each figure of each pair."""
    # Of what nothing can be said: only where it is what was asked for.
    rows = [r for r in found.rows if not math.isnan(r.comparison.low) or r.figure is TPS]
    differences = list(dict.fromkeys(r.pair.difference for r in rows))
    # What all have is in the title.
    several = len(differences) != 1
    lines = []
    for row in rows:
        c, pair = row.comparison, row.pair
        trials: list[TrialRecord] = [*pair.a.trials, *pair.b.trials]
        means = message("means", a=row.figure.quantity(c.mean_a), b=row.figure.quantity(c.mean_b))
        lines.append(
            cells(
                [
                    pair.label, *([pair.difference] if several else []), figure_name(row), means,
                    linked(verdicts.change(c), trials), min(c.n_a, c.n_b), verdicts.verdict(row),
                ]
            )
        )  # fmt: skip
    slices = [r for r in rows if r.from_slices]
    note = _explained(found, slices or rows, from_slices=bool(slices)) if rows else []
    if any(r.figure is MEMORY for r in rows):
        note.append(message("note-memory"))
    if found.left_out:
        note.append(message("note-first-rows", n=len(rows)))
    labels = [column("configuration"), *([column("compared")] if several else []), column("figure")]
    return Table(
        "comparisons",
        message("table-compared") if several else message("table-compared-one", what=Name(differences[0])),
        [*labels, column("means"), column("change"), column("n", COUNT), column("verdict")],
        lines,
        note,
        3 if several else 2,
        ["n", "means"],
    )


def figure_name(row: Row) -> Text:
    """Return the name of a row's figure."""
    return message("figure-memory") if row.figure is MEMORY else Name(row.figure.name)


def _explained(found: AxisComparisons, rows: Sequence[Row], *, from_slices: bool) -> list[Text]:
    c = rows[0].comparison
    several = starts(rows[0].pair.a.trials)
    unit = message("unit-starts") if several > 1 else message("unit-repetitions")
    return duet_note(c, several, found) if from_slices else note(c, unit=unit, blocked=True)


def duet_note(c: Comparison, several: int, found: AxisComparisons) -> list[Text]:
    """Return the note on how to read the verdicts of duets.

    `several` is the number of starts of the servers.
    """
    reach = (
        message("reach-starts", n=several)
        if several > 1
        else message("reach-running")
        if found.running
        else message("reach-two-starts")
    )
    how = message("duet-together") if found.together else message("duet-in-turn")
    return [
        listed([message("note-change-duet", level=verdicts.level(c), reach=reach), message("note-duet-n")], "sentence"),
        how,
        message("note-duet-p99"),
        message("note-false-verdicts", alpha=Quantity(1 - c.level, "share", 1)),
        _unknown(c),
        message("note-per-transaction"),
        message("note-duet-blind"),
    ]


def note(c: Comparison, *, unit: Message, blocked: bool = False) -> list[Text]:
    """Return the note on how to read the verdicts of a table.

    `c` is a comparison from the table. `unit` is the plural name of its units.
    """
    rounds = message("compared-within-rounds") if blocked else None
    return [
        message("note-change", level=verdicts.level(c), unit=unit, rounds=rounds),
        message("note-spread-learned"),
        message("note-false-verdicts", alpha=Quantity(1 - c.level, "share", 1)),
        _unknown(c),
        message("note-per-transaction"),
    ]


def _unknown(c: Comparison) -> Message:
    return message("note-not-yet-known", margin=verdicts.margin(c))
