"""Tables and their cells, before they are shown in any form."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

from pgdyno.model import TrialRecord


@dataclass(frozen=True)
class Cell:
    """A figure, and the trials that it comes from."""

    text: str
    #: Their numbers.
    trials: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.text


def linked(text: str, trials: Sequence[TrialRecord]) -> Cell:
    """A figure of these trials."""
    return Cell(text, tuple(t.plan.number for t in trials))


def all_linked(texts: Sequence[str], trials: Sequence[TrialRecord]) -> list[str | Cell]:
    """Figures of these trials; dashes lead nowhere."""
    return [linked(t, trials) if t != "–" else t for t in texts]


@dataclass(frozen=True)
class Table:
    """A table: columns with a name, and cells; numbers are right-aligned."""

    name: str
    title: str
    columns: list[str]
    cells: list[list[str | Cell]]
    #: What the columns mean, where it is not plain; and the limits of the method.
    note: str = ""
    #: How many leading columns are text.
    text_columns: int = 1
    #: Columns that go first where there is little room.
    optional: list[str] = field(default_factory=list)
    #: Where a row leads: a folder beside the report.
    folders: list[str] = field(default_factory=list)
    #: Rows that a terminal shows; None: all of them.
    brief: list[int] | None = None

    def texts(self) -> list[list[str]]:
        """The cells as text."""
        return [[str(c) for c in row] for row in self.cells]

    def as_csv(self) -> str:
        """With a heading; thousands are not set apart, so that programs can read the numbers."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.texts():
            writer.writerow([c if i < self.text_columns else _plain(c) for i, c in enumerate(row)])
        return out.getvalue()


def _plain(text: str) -> str:
    digits = text.replace(",", "")
    try:
        float(digits)
    except ValueError:
        return "" if text == "–" else text
    return digits
