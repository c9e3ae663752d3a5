"""Quantities with their units, as data: formatting is the last step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: share: 0..1, shown as percent. %: the same with three digits. ms: nanoseconds, shown as milliseconds.
#: ns: nanoseconds, shown in a unit that fits. time: as ns, and 0 for nothing.
#: seconds: a duration that need not be exact. MB/s: bytes per second.
#: count: a whole number, or three digits. factor: three digits. two: two digits.
Unit = Literal[
    "share", "%", "ms", "ns", "time", "seconds", "bytes", "MB/s", "bytes/s", "/s", "", "count", "factor", "two"
]


@dataclass(frozen=True)
class Share:
    """Share of something, 0..1, with its 95% interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value in the unit's own base: nanoseconds, bytes, shares from 0 to 1."""

    value: float
    unit: Unit
