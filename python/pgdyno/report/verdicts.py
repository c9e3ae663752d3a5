"""Verdicts of comparisons as text, in the same terms for terminal, page and JSON."""

from __future__ import annotations

import math
from decimal import Decimal

from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.figures import Figure
from pgdyno.format import span
from pgdyno.judge.compared import Row

#: From here on (and below its inverse) a difference is said as a factor.
_FACTOR = 2.0
#: Seconds of measuring that are worth advising.
MOST_S = 3600.0
#: An interval whose ends lie further apart than by this factor says little.
WIDEST = 10.0


def verdict(row: Row) -> str:
    """For a table: "faster", "within 5% of each other", "not yet known (12 min)": the time that would tell."""
    c = row.comparison
    if c.verdict is Verdict.SAME:
        return f"within {margin(c)} of each other"
    if c.verdict is Verdict.UNKNOWN:
        return "not yet known" + (f" ({told})" if (told := time_that_would_tell(row)) else "")
    word = direction(c, row.figure)
    return f"{word}, within {margin(c)}" if c.is_negligible else word


def time_that_would_tell(row: Row) -> str:
    """Return the measuring time that would tell more, in words; empty: none that anybody would wait for."""
    return span(row.seconds) if row.seconds and row.seconds <= MOST_S else ""


def direction(c: Comparison, figure: Figure) -> str:
    """Return the direction of a difference.

    For times and rates it is "faster" or "slower". For used resources it is "less" or "more".
    """
    if figure.is_cost:
        return "less" if c.verdict is Verdict.FASTER else "more"
    return c.verdict.value


def change(c: Comparison) -> str:
    """B by A, as the interval has it: "+4.2% to +9.1%", "2.4 to 2.9 times"; where there is none, the ratio alone."""
    if math.isnan(c.low):
        return _percent(c.ratio)
    return between(c.low, c.high)


def between(low: float, high: float) -> str:
    """Return an interval of a ratio in one form: two factors, or two changes.

    An interval wider than a factor of WIDEST shows only the end that is known: "3.1 times or more", "-40% or less". If
    neither end is known, return "not known".
    """
    if not is_readable(low, high):
        if low > 1:
            return f"{_end(low)} or more"
        return f"{_end(high)} or less" if high < 1 else "not known"
    if low >= _FACTOR or high <= 1 / _FACTOR:
        return times(low, high)
    return f"{_percent(low)} to {_percent(high)}"


def is_readable(low: float, high: float) -> bool:
    """Return False for an interval so wide that its ends say nothing together."""
    return 0 < low <= high <= WIDEST * low


def times(low: float, high: float) -> str:
    """Return an interval of a factor in words, e.g. "2.4 to 2.9 times".

    A very wide interval shows only its lower end.
    """
    if not is_readable(low, high):
        return f"at least {_factor(low)} times"
    digits = 2 if f"{low:.2g}" != f"{high:.2g}" else 3
    return f"{_factor(low, digits)} to {_factor(high, digits)} times"


def _factor(x: float, digits: int = 2) -> str:
    """Return a factor in significant digits, never with an exponent, e.g. 0.31, 4.2, 585 or 3,600."""
    rounded = float(f"{x:.{digits}g}")
    return f"{rounded:,.0f}" if rounded >= 10 ** (digits - 1) else f"{Decimal(repr(rounded)):f}".removesuffix(".0")


def _end(ratio: float) -> str:
    return f"{_factor(ratio)} times" if ratio >= _FACTOR or ratio <= 1 / _FACTOR else _percent(ratio)


def margin(c: Comparison) -> str:
    """Return the smallest relevant difference as text, e.g. "5%"."""
    return f"{c.margin * 100:g}%"


def level(c: Comparison) -> str:
    """Return the confidence level of the interval as text, e.g. "99%"."""
    return f"{c.level * 100:.4g}%"


def _percent(ratio: float) -> str:
    """Return a ratio as a change in percent, e.g. +4.2%, -13% or +210%.

    From a factor of 10 on, return the factor, e.g. "12 times".
    """
    if ratio >= 10:
        return f"{_factor(ratio)} times"
    part = (ratio - 1) * 100
    digits = 0 if abs(part) >= 9.95 else 1
    text = f"{part:+.{digits}f}%"
    return "0.0%" if text in ("+0.0%", "-0.0%") else text
