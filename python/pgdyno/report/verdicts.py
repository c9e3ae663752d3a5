"""Verdicts of comparisons as messages, in the same terms for terminal, page and JSON."""

from __future__ import annotations

import math

from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.figures import Figure
from pgdyno.judge.compared import Row
from pgdyno.message import Message, message
from pgdyno.units import Quantity

#: From here on (and below its inverse) a difference is said as a factor.
FACTOR = 2.0
#: A change from this factor on is shown as a factor.
_LARGE = 10
#: Seconds of measuring that are worth advising.
MOST_S = 3600.0
#: An interval whose ends lie further apart than by this factor says little.
WIDEST = 10.0


def verdict(row: Row) -> Message:
    """For a table: "faster", "within 5% of each other", "not yet known (12 min)": the time that would tell."""
    c = row.comparison
    if c.verdict is Verdict.SAME:
        return message("verdict-same", margin=margin(c))
    if c.verdict is Verdict.UNKNOWN:
        time = time_that_would_tell(row)
        return message("verdict-unknown-time", time=time) if time else message("verdict-unknown")
    word = direction(c, row.figure)
    return message("verdict-negligible", word=word, margin=margin(c)) if c.is_negligible else word


def time_that_would_tell(row: Row) -> Quantity | None:
    """Return the measuring time that would tell more; None: none that anybody would wait for."""
    return Quantity(row.seconds, "seconds") if row.seconds and row.seconds <= MOST_S else None


def direction(c: Comparison, figure: Figure) -> Message:
    """Return the direction of a difference.

    For times and rates it is "faster" or "slower". For used resources it is "less" or "more".
    """
    if figure.is_cost:
        return message("verdict-less") if c.verdict is Verdict.FASTER else message("verdict-more")
    return message("verdict-faster") if c.verdict is Verdict.FASTER else message("verdict-slower")


def change(c: Comparison) -> Message:
    """B by A, as the interval has it: "+4.2% to +9.1%", "2.4 to 2.9 times"; where there is none, the ratio alone."""
    if math.isnan(c.low):
        return _change(c.ratio)
    return between(c.low, c.high)


def between(low: float, high: float) -> Message:
    """Return an interval of a ratio in one form: two factors, or two changes.

    An interval wider than a factor of WIDEST shows only the end that is known: "3.1 times or more", "-40% or less". If
    neither end is known, return "interval too wide".
    """
    if not is_readable(low, high):
        if low > 1:
            return message("or-more", end=_end(low))
        return message("or-less", end=_end(high)) if high < 1 else message("interval-too-wide")
    if low >= FACTOR or high <= 1 / FACTOR:
        return times(low, high)
    return message("from-to", low=_change(low), high=_change(high))


def is_readable(low: float, high: float) -> bool:
    """Return False for an interval so wide that its ends say nothing together."""
    return 0 < low <= high <= WIDEST * low


def times(low: float, high: float) -> Message:
    """Return an interval of a factor, e.g. "2.4 to 2.9 times".

    A very wide interval shows only its lower end.
    """
    if not is_readable(low, high):
        return message("times-at-least", low=Quantity(low, "times"))
    digits = 2 if f"{low:.2g}" != f"{high:.2g}" else 3
    return message("times-from-to", low=Quantity(low, "times", digits), high=Quantity(high, "times", digits))


def _end(ratio: float) -> Message:
    if ratio >= FACTOR or ratio <= 1 / FACTOR:
        return message("n-times", x=Quantity(ratio, "times"))
    return _change(ratio)


def margin(c: Comparison) -> Quantity:
    """Return the smallest relevant difference, e.g. 5%."""
    return Quantity(c.margin, "%")


def level(c: Comparison) -> Quantity:
    """Return the confidence level of the interval, e.g. 99%."""
    return Quantity(c.level, "%", 4)


def _change(ratio: float) -> Message:
    """Return a ratio as a change in percent, e.g. +4.2%, -13% or +210%.

    From a factor of 10 on, return the factor, e.g. "12 times".
    """
    if ratio >= _LARGE:
        return message("n-times", x=Quantity(ratio, "times"))
    return message("change", x=Quantity(ratio, "change"))
