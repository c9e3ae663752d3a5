"""Scales: from a value to a place in the picture, and the values to write beside an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pgdyno.plot.model import Areas, Axis, Band, Bar, Cell, Dots, Interval, Line, Mark, Piece, Rule, Span

#: Ends of a logarithmic axis nearer than by this factor have round values at even distances beside them.
_NARROW = 4.0
#: Pixels between the numbers of an axis, at least.
_APART = {"x": 62.0, "y": 30.0}


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic scale from values to pixels. Values beyond the domain are placed at its end."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False
    is_whole: bool = False

    def at(self, value: float) -> float:
        """Return the place of a value, in pixels."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self, side: str) -> list[float]:
        """Return the values to write beside the axis: round ones, as many as fit."""
        most = max(2, int(abs(self.end - self.start) / _APART[side]))
        if self.is_log:
            return _log_ticks(self.low, self.high, most)
        return _linear_ticks(self.low, self.high, most, 1.0 if self.is_whole else 0.0)


def _linear_ticks(low: float, high: float, most: int, least: float = 0.0) -> list[float]:
    rough = max((high - low) / most, least)
    power = 10.0 ** math.floor(math.log10(rough))
    steps = (1, 2, 5, 10) if least else (1, 2, 2.5, 5, 10)
    step = next(power * m for m in steps if power * m >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    if high < _NARROW * low:
        return _linear_ticks(low, high, most)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [f * 10.0**e for e in range(first, last + 1) for f in factors]
        found = [x for x in found if low * 0.999 <= x <= high * 1.001]
        if len(found) <= most:
            return found if len(found) >= 2 else _linear_ticks(low, high, most)
    step = math.ceil((last - first) / most)
    return [x for e in range(first, last + 1, step) if low * 0.999 <= (x := 10.0**e) <= high * 1.001]


def scale(axis: Axis, values: Sequence[float], start: float, end: float) -> Scale:
    """Return the scale of an axis that shows these values between two places."""
    if axis.domain is not None:
        low, high = axis.domain
    elif axis.kind == "log":
        shown = [v for v in values if v > 0] or [1.0, 10.0]
        low, high = _round_log(min(shown), max(shown))
    else:
        low, high = min(values, default=0.0), max(values, default=1.0)
        if axis.has_zero:
            low, high = min(0.0, low), max(0.0, high)
        low, high = _round_linear(low, high)
    if not high > low:
        low, high = (low / 2, low * 2) if axis.kind == "log" and low > 0 else (low, low + 1.0)
    return Scale(low, high, start, end, axis.kind == "log", axis.is_whole)


def _round_linear(low: float, high: float) -> tuple[float, float]:
    """Return bounds at round values, so that the last one stands beside the axis."""
    if not high > low:
        return (low, low + 1.0) if low == 0 else (min(low, 0.0), max(low, 0.0))
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(step * m for m in (1, 2, 2.5, 5, 10) if step * m >= (high - low) / 5)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _round_log(low: float, high: float) -> tuple[float, float]:
    """Return bounds at the next 1, 2 or 5 of a decade."""

    def bound(value: float, up: bool) -> float:
        power = 10.0 ** math.floor(math.log10(value))
        steps = [power * m for m in (1, 2, 5, 10)]
        if up:
            return next(x for x in steps if x >= value * 0.999)
        return next(x for x in reversed(steps) if x <= value * 1.001)

    return bound(low, up=False), bound(high, up=True)


def bands(names: Sequence[str], start: float, end: float) -> dict[str, tuple[float, float]]:
    """Return the middle and the width of each band, in pixels."""
    step = (end - start) / max(1, len(names))
    return {name: (start + (i + 0.5) * step, abs(step)) for i, name in enumerate(names)}


def written(value: float, form: str) -> str:
    """Write a value beside an axis: 12k ("si") or 0.25 ("plain"), never with an exponent."""
    if form == "si":
        for bound, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= bound * 0.9999999:
                return f"{value / bound:.4g}{unit}"
    if value != 0 and abs(value) < 1e-4:
        return f"{value:.12f}".rstrip("0")
    return f"{value:,.10g}" if abs(value) < 1e15 else f"{value:,.0f}"


def extent(marks: Iterable[Mark], side: str) -> list[float]:
    """Return the values of marks that an axis must hold."""
    return [v for m in marks for v in (_xs(m) if side == "x" else _ys(m)) if math.isfinite(v)]


def _xs(m: Mark) -> Iterator[float]:
    match m:
        case Line() | Dots():
            yield from (x for x, _ in m.points)
        case Band():
            yield from (x for x, _, _ in m.points)
        case Areas():
            yield from (x for x, _ in m.rows)
        case Cell():
            yield from m.x
        case Interval() | Piece():
            yield from (m.low, m.high)
        case Rule() if m.x is not None:
            yield m.x
        case Span():
            yield from (m.start, m.end)


def _ys(m: Mark) -> Iterator[float]:
    match m:
        case Line() | Dots():
            yield from (y for _, y in m.points)
        case Band():
            yield from (y for _, low, high in m.points for y in (low, high))
        case Areas():
            yield from (sum(values) for _, values in m.rows)
        case Bar():
            yield from (m.value, m.high)
        case Cell():
            yield from m.y
        case Rule() if m.y is not None:
            yield m.y
