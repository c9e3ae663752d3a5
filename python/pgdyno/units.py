"""Quantities with their units, as data: formatting is the last step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: share: 0..1, shown as percent. %: the same with three digits. percent: the same with one digit behind the point.
#: half-width: half an interval as a share of its figure; from 100% on, ">100%".
#: change: a ratio, shown as a change in percent. times: a factor, without an exponent.
#: ms: nanoseconds, shown as milliseconds. latency: the same, with three digits and never in another unit.
#: ns: nanoseconds, shown in a unit that fits. time: as ns, and 0 for nothing.
#: seconds: a duration that need not be exact. MB/s: bytes per second.
#: count: a whole number, or three digits. rows: a number of rows, e.g. 5 M. factor: three digits. two: two digits.
#: plain: as many digits as the value has. rate: six digits at most. rate4: four.
#: fixed: `digits` behind the point. whole: none. duration: seconds as people say them, e.g. 3 min 20 s.
Unit = Literal[
    "share", "%", "percent", "half-width", "change", "times", "ms", "latency", "ns", "time", "seconds", "bytes", "MB/s",
    "bytes/s", "/s", "", "count", "rows", "factor", "two", "plain", "rate", "rate4", "fixed", "whole", "duration",
]  # fmt: skip


@dataclass(frozen=True)
class Share:
    """Share of something, 0..1, with its 95% interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value in the unit's own base: nanoseconds, bytes, shares from 0 to 1.

    `digits` counts significant digits of "times" and "%", and digits behind the point of "share" and "change".
    """

    value: float
    unit: Unit
    digits: int | None = None
