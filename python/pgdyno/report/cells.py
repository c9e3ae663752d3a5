"""Tables as data: columns, cells with their values, and notes. Text is written last, in a language."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pgdyno import i18n
from pgdyno.format import integer, milliseconds, percent, plus_minus, printable, rows, size
from pgdyno.format import significant as to_digits
from pgdyno.message import Listed, Message, Name, Text, listed, message
from pgdyno.model import TrialRecord
from pgdyno.units import Quantity, Share

#: Columns that fit on a sheet of paper.
_ON_PAPER = 11


@dataclass(frozen=True, slots=True)
class Absent:
    """No value. `reason` is shown in its place; None: a dash."""

    reason: Message | None = None


DASH = Absent()
#: In place of a percentile that too few values stand behind.
TOO_FEW = Absent(message("too-few"))

Value = float | int | Quantity | Share | Text | Absent


@dataclass(frozen=True, slots=True)
class Cell:
    """A value, and the numbers of the trials that it comes from. A bare number has the unit of its column."""

    value: Value
    trials: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """Form of a column's numbers.

    `write` formats a value for readers, who find the unit in the heading. Machines get the value times `base` in the
    base unit `unit`, which their heading names if `in_heading`.
    """

    write: Callable[[float], str]
    unit: str = ""
    base: float = 1.0
    in_heading: bool = False


def fixed(digits: int, unit: str = "", per: float = 1.0) -> Form:
    """Return the form of numbers with a number of digits behind the point, divided by `per` for readers."""
    return Form(lambda v: f"{v / per:,.{digits}f}", unit, 1.0, bool(unit))


def significant(digits: int) -> Form:
    """Return the form of numbers with a number of significant digits."""
    return Form(lambda v: to_digits(v, digits))


#: Whole numbers, and three digits below a hundred.
NUMBER = Form(integer)
COUNT = fixed(0)
ROWS = Form(lambda v: rows(round(v)))
#: Values in nanoseconds.
MS = Form(milliseconds, "s", 1e-9, True)
SECONDS = fixed(2, "s")
#: Shares from 0 to 1.
PERCENT = Form(percent)
SHARE = Form(lambda v: f"{v * 100:g}%")
HALF_WIDTH = Form(plus_minus)
SIZE = Form(size)
GROWTH = Form(lambda v: f"{'-' if v < 0 else '+' if v > 0 else ''}{size(abs(v))}")
#: By the unit of a Figure.
BY_UNIT = {
    "ns": MS, "part": PERCENT, "bytes": SIZE, "1/s": NUMBER, "count": NUMBER, "s": significant(3), "": significant(3),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key in English, its title, and the form of its numbers; a column without a form holds text."""

    key: str
    title: Text
    form: Form | None = None
    #: Long text of its own: a statement, a list of outcomes.
    is_long: bool = False

    @property
    def machine_heading(self) -> str:
        """The key, with the base unit in place of the unit that readers see."""
        if self.form is None or not self.form.in_heading:
            return self.key
        return f"{_UNIT.sub('', self.key)} {self.form.unit}".strip()


#: A unit at the end of a key.
_UNIT = re.compile(r" ?(ms|µs|MB/s|s)$")


def column_id(key: str) -> str:
    """Return the id of a column's title in the catalogues."""
    words = key.lower().replace("±", " plus-minus ").replace("µ", "u").replace("%", " percent ")
    return f"column-{re.sub('[^a-z0-9]+', '-', words).strip('-')}"


def column(key: str, form: Form | None = None, *, id: str = "", is_long: bool = False) -> Column:
    """Return a column whose title the catalogues have: by its key, or by `column-` and `id`."""
    return Column(key, Message(f"column-{id}" if id else column_id(key)), form, is_long)


def own_column(key: str, form: Form | None = None, zh: str = "") -> Column:
    """Return a column with a title that is somebody's name: a workload, an axis."""
    known = column_id(key)
    # Axes that pgdyno names have titles in each language.
    return Column(key, Message(known) if known in _AXES else Name(key, zh), form)


_AXES = {column_id(x) for x in ("target", "dataset", "version", "variant", "memory", "driver", "protocol", "pooler")}


def linked(value: Value | None, trials: Sequence[TrialRecord]) -> Cell:
    """Return a cell with a value and the numbers of the trials behind it; None is a dash, which leads nowhere."""
    if value is None or isinstance(value, Absent):
        return Cell(DASH if value is None else value)
    return Cell(value, tuple(t.plan.number for t in trials))


def all_linked(values: Iterable[Value | None], trials: Sequence[TrialRecord]) -> list[Cell]:
    """Return cells with values of these trials."""
    numbers = tuple(t.plan.number for t in trials)
    return [Cell(DASH if v is None else v, () if v is None or isinstance(v, Absent) else numbers) for v in values]


def cells(values: Iterable[Value | Cell | str | None]) -> list[Cell]:
    """Return a row; a string is a name."""
    return [
        v if isinstance(v, Cell) else Cell(DASH if v is None else Name(v) if isinstance(v, str) else v) for v in values
    ]


@dataclass(frozen=True)
class Table:
    """A table."""

    name: str
    title: Text
    columns: list[Column]
    cells: list[list[Cell]]
    #: What the columns mean, where it is not plain; and the limits of the method. The first part is the shortest.
    note: list[Text] = field(default_factory=list)
    #: Leading columns that tell rows apart.
    labels: int = 1
    #: Keys of columns, in the order in which they go where there is little room.
    optional: list[str] = field(default_factory=list)
    #: Where a row leads: a folder beside the report.
    folders: list[str] = field(default_factory=list)
    #: Rows that a terminal shows; None: all of them.
    brief: list[int] | None = None
    _texts: dict[str, list[list[str]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def spare(self) -> set[str]:
        """Keys of columns for which paper has no room: of a wide table those that go first."""
        over = len(self.columns) - _ON_PAPER
        return set(self.optional[: max(0, over)])

    @property
    def keys(self) -> list[str]:
        """Keys of the columns."""
        return [c.key for c in self.columns]

    def is_number(self, i: int) -> bool:
        """Return True if a column holds numbers that do not tell rows apart; they are right-aligned."""
        return i >= self.labels and self.columns[i].form is not None

    def headings(self, lang: str = "en") -> list[str]:
        """Return the titles of the columns."""
        return [i18n.text(c.title, lang) for c in self.columns]

    def texts(self, lang: str = "en") -> list[list[str]]:
        """Return the cells as text; every renderer gets the same list."""
        if lang not in self._texts:
            self._texts[lang] = [self.row(i, lang) for i in range(len(self.cells))]
        return self._texts[lang]

    def row(self, i: int, lang: str = "en") -> list[str]:
        """Return the cells of one row as text."""
        return [_text(c, column, lang) for c, column in zip(self.cells[i], self.columns, strict=True)]

    def notes(self, lang: str = "en") -> str:
        """Return the note as text."""
        return printable(i18n.text(listed(self.note, "sentence"), lang))

    @cached_property
    def numbers(self) -> list[list[float | None]]:
        """The cells as numbers in base units; None if a cell holds none."""
        return [[_number(c, column) for c, column in zip(row, self.columns, strict=True)] for row in self.cells]

    @property
    def machine_headings(self) -> list[str]:
        """The headings of the columns for programs."""
        return [c.machine_heading for c in self.columns]

    def machine_text(self, i: int, k: int) -> str:
        """Return the cell of row `i` and column `k` for programs."""
        return _machine(self.cells[i][k], self.numbers[i][k], self.columns[k])

    @cached_property
    def as_csv(self) -> str:
        """The table as CSV with a heading, for programs.

        Numbers are in base units (seconds, bytes, ratios), which the headings name. A cell without a value is empty.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.machine_headings)
        for row, numbers in zip(self.cells, self.numbers, strict=True):
            writer.writerow(map(_machine, row, numbers, self.columns))
        return out.getvalue()


def _text(cell: Cell, column: Column, lang: str) -> str:
    value = cell.value
    if isinstance(value, float):
        # Most cells of a large table.
        return (column.form or NUMBER).write(value)
    match value:
        case Absent(reason=reason):
            return "–" if reason is None else i18n.text(reason, lang)
        case Message() | Name() | Listed() | Quantity() | Share():
            return printable(i18n.written(value, lang))
        case _:
            return (column.form or NUMBER).write(value)


def _number(cell: Cell, column: Column) -> float | None:
    # Most cells of a large table hold a number or nothing.
    if type(cell.value) is float:
        return cell.value * (column.form or NUMBER).base
    if cell.value is DASH:
        return None
    match cell.value:
        case int() | float():
            return cell.value * (column.form or NUMBER).base
        case Share(mean=mean):
            return mean
        case Quantity(value=value, unit=unit):
            return value * 1e-9 if unit in _NANOSECONDS else value
    return None


_NANOSECONDS = {"ms", "latency", "ns", "time"}


def _machine(cell: Cell, number: float | None, column: Column) -> str:
    if number is not None:
        return f"{number:.9g}"
    return "" if cell.value == DASH else _text(cell, column, "en")
