"""Tables and their cells, before they are shown in any form."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pgdyno.model import TrialRecord

#: Columns that fit on a sheet of paper.
_ON_PAPER = 11


#: In place of a percentile that too few values stand behind.
TOO_FEW = "too few"


@dataclass(frozen=True)
class Cell:
    """A figure, and the trials that it comes from."""

    text: str
    #: Their numbers.
    trials: tuple[int, ...] = ()
    #: In base units: seconds, bytes, parts; None: as the text says.
    value: float | None = None

    def __str__(self) -> str:
        return self.text


def linked(text: str, trials: Sequence[TrialRecord], value: float | None = None) -> Cell:
    """Return a cell with a figure and the numbers of the trials behind it."""
    return Cell(text, tuple(t.plan.number for t in trials), value)


def all_linked(
    texts: Sequence[str], trials: Sequence[TrialRecord], values: Sequence[float | None] = ()
) -> list[str | Cell]:
    """Figures of these trials; dashes lead nowhere."""
    known = [*values, *[None] * (len(texts) - len(values))]
    return [linked(t, trials, v) if t != "–" else t for t, v in zip(texts, known, strict=True)]


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
    #: The columns' names in English, where they are in another language.
    keys: list[str] = field(default_factory=list)
    #: Rows that a terminal shows; None: all of them.
    brief: list[int] | None = None

    @property
    def spare(self) -> set[str]:
        """Columns for which paper has no room: of a wide table those that go first."""
        over = len(self.columns) - _ON_PAPER
        return set(self.optional[: max(0, over)])

    def texts(self) -> list[list[str]]:
        """Return the cells as text."""
        return [[str(c) for c in row] for row in self.cells]

    def numbers(self) -> list[list[float | None]]:
        """Return the cells as numbers in base units.

        A cell is None if it holds text or stands in a text column.
        """

        def number(cell: str | Cell, column: int) -> float | None:
            if column < self.text_columns:
                return None
            try:
                return float(_base(cell, self.columns[column]))
            except ValueError:
                return None

        return [[number(c, i) for i, c in enumerate(row)] for row in self.cells]

    def as_csv(self) -> str:
        """Return the table as CSV with a heading, for programs.

        Numbers are in base units (seconds, bytes, ratios), which the headings name.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        named = [_base_heading(n) if i >= self.text_columns else n for i, n in enumerate(self.columns)]
        writer.writerow(named)
        for row in self.cells:
            writer.writerow([str(c) if i < self.text_columns else _base(c, self.columns[i]) for i, c in enumerate(row)])
        return out.getvalue()


#: What headings end in, with the base unit that is said instead, and what a number is multiplied by.
_HEADINGS = {" ms": (" s", 1e-3), " µs": (" s", 1e-6), " MB/s": (" bytes/s", 1e6), "MB/s": ("bytes/s", 1e6)}
_NUMBER = re.compile(r"([+~±>-]?)(\d[\d,]*(?:\.\d+)?)\s*(%|[KMGTP]iB|B|ms|µs|s|k|M|G)?")
_UNITS = {
    None: 1.0, "%": 1e-2, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3, "TiB": 1024.0**4, "PiB": 1024.0**5,
    "B": 1.0, "ms": 1e-3, "µs": 1e-6, "s": 1.0, "k": 1e3, "M": 1e6, "G": 1e9,
}  # fmt: skip


def _base_heading(name: str) -> str:
    for end, (base, _) in _HEADINGS.items():
        if name.endswith(end):
            return name.removesuffix(end) + base
    return name


def _base(cell: str | Cell, heading: str) -> str:
    """Return a cell as a number in base units, exact if its value is known.

    Return an empty string for a dash, and the text itself if it is not a number.
    """
    if isinstance(cell, Cell) and cell.value is not None:
        return f"{cell.value:.9g}"
    text = str(cell)
    match = _NUMBER.fullmatch(text)
    # A bound is no figure: it stays a text.
    if match is None or match[1] == ">":
        return "" if text == "–" else text
    factor = next((f for end, (_, f) in _HEADINGS.items() if heading.endswith(end)), 1.0)
    value = float(match[2].replace(",", "")) * _UNITS[match[3]] * factor
    return f"{-value if match[1] == '-' else value:.9g}"
