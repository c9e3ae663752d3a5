"""What is to be drawn of a column. Apart from the drawing itself, whose libraries take long to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Rows that are drawn together.
CHUNK = 50_000


@dataclass(frozen=True)
class Drawn:
    """How a column is drawn; bounds are numbers: of instants microseconds since 1970 (dates: days), of texts
    lengths.
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
    #: Of texts: the row's number is in it.
    unique: bool = False
    #: Of a key of several references, so that each combination comes once: the row's number is divided by it, and the
    #: remainder goes in steps. 0: it is drawn.
    divisor: int = 0
    step: int = 1
