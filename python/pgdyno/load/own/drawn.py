"""Rules for the drawing of columns, separate from the drawing itself.

The libraries that draw take long to import. Each value is a function of the row's number alone. So a reference to a
row knows the row's key without a lookup. The data are the same, no matter which connection draws which rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pgdyno.message import Text

#: Rows that are drawn together.
CHUNK = 50_000


@dataclass(frozen=True)
class Digit:
    """Digit that one column contributes to a key of several columns.

    Each row is a number in a permutation of all combinations. This column is one digit of that number.
    """

    #: What the number is divided by; the remainder of the column's size is its place.
    divisor: int
    #: Of all combinations.
    total: int
    seed: int


@dataclass(frozen=True)
class Drawn:
    """Rule by which a column is drawn.

    Bounds are numbers: microseconds since 1970 for timestamps, days since 1970 for dates, lengths for texts. Type
    "picked" takes a column of the row that a pick has chosen. Type "spelled" writes a number as a value of another
    type.
    """

    name: str
    type: str
    low: float = 1
    high: float = 1
    distribution: str = "uniform"
    skew: float = 1.0
    values: Sequence[object] = ()
    weights: Sequence[float] = ()
    nulls: float = 0.0
    like: str = ""
    correlation: float = 0.0
    #: Of numbers.
    decimals: int = 2
    #: Each row has another value: the row's number is in it.
    unique: bool = False
    digit: Digit | None = None
    #: Between `low` and `high`, where not all of it may come: intervals of which each row has one, the same one for all
    #: columns of the table that have some.
    segments: Sequence[tuple[float, float]] = ()
    #: What its random numbers are drawn by, where several columns have the same; else its name.
    source: str = ""
    #: Columns whose random numbers are sorted in each row, and which of them this is.
    sorted_with: Sequence[str] = ()
    #: Of "spelled" the type; of "picked" the pick, and the column there.
    spelling: str = ""
    pick: str = ""
    column: str = ""


@dataclass(frozen=True)
class Pick:
    """Which row of another table each row refers to."""

    name: str
    #: How a row is chosen: a column of integers from 0 on.
    drawn: Drawn
    #: The table that is filled; empty: the rows are those of `pool`, by column.
    parent: str = ""
    pool: Mapping[str, Sequence[object]] = field(default_factory=dict)
    #: Only rows before this one: of the table itself. The first row has none; it is NULL there, or the row itself.
    before: bool = False
    first_is_null: bool = False
    #: A column that has its value already, and the column there that must equal it.
    same: tuple[str, str] | None = None
    #: Another row than this pick's, of the same table.
    other_than: str = ""
    #: Only rows whose column has a value that a column of another filled table has: ours there, the table, its column.
    within: Sequence[tuple[str, str, str]] = ()


@dataclass(frozen=True)
class Filling:
    """A table that is to be filled, each column decided."""

    name: str
    rows: int
    columns: Sequence[Drawn]
    #: Tables that must be full before it.
    after: frozenset[str] = frozenset()
    picks: Sequence[Pick] = ()
    #: Its rows refer to earlier ones: one connection copies them in their order.
    in_order: bool = False
    #: What the reader should know: columns that are NULL in all rows, parents of which little is used.
    notes: Sequence[Text] = ()
    #: Columns with their default in all rows.
    constants: Sequence[str] = ()
