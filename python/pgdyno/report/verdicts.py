"""What a comparison came to, in words. One language for terminal, page and JSON."""

from __future__ import annotations

import math

from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.figures import Figure
from pgdyno.format import span
from pgdyno.judge.compared import Row

#: From here on (and below its inverse) a difference is said as a factor.
_FACTOR = 2.0


def verdict(row: Row) -> str:
    """For a table: "faster", "within 5% of each other", "not yet known (12 min)": the time that would tell."""
    c = row.comparison
    if c.verdict is Verdict.SAME:
        return f"within {margin(c)} of each other"
    if c.verdict is Verdict.UNKNOWN:
        return "not yet known" + (f" ({span(row.seconds)})" if row.seconds else "")
    word = direction(c, row.figure)
    return f"{word}, within {margin(c)}" if c.is_negligible else word


def direction(c: Comparison, figure: Figure) -> str:
    """Of times and rates "faster" or "slower"; of what is used "less" or "more"."""
    if figure.is_cost:
        return "less" if c.verdict is Verdict.FASTER else "more"
    return c.verdict.value


def change(c: Comparison) -> str:
    """B by A, as the interval has it: "+4.2% to +9.1%", "2.4 to 2.9 times"; where there is none, the ratio alone."""
    if math.isnan(c.low):
        return _percent(c.ratio)
    return between(c.low, c.high)


def between(low: float, high: float) -> str:
    """An interval of a ratio."""
    if low >= _FACTOR or high <= 1 / _FACTOR:
        return times(low, high)
    if high > 10 or low < 0.1:
        return f"{_percent(low)} to {high:,.3g} times"
    return f"{_percent(low)} to {_percent(high)}"


def times(low: float, high: float) -> str:
    """An interval of a factor: "2.4 to 2.9 times"."""
    if high >= 100:
        return f"{low:,.0f} to {high:,.0f} times"
    digits = 2 if f"{low:.2g}" != f"{high:.2g}" else 3
    return f"{low:.{digits}g} to {high:.{digits}g} times"


def margin(c: Comparison) -> str:
    """The difference that matters: "5%"."""
    return f"{c.margin * 100:g}%"


def level(c: Comparison) -> str:
    """Of the interval: "99%"."""
    return f"{c.level * 100:.4g}%"


def _percent(ratio: float) -> str:
    """Of a ratio: +4.2%, -13%, 3.1 times."""
    if ratio >= 10:
        return f"{ratio:,.3g} times"
    part = (ratio - 1) * 100
    digits = 0 if abs(part) >= 9.95 else 1
    text = f"{part:+.{digits}f}%"
    return "0.0%" if text in ("+0.0%", "-0.0%") else text
