"""Draws of parameters in scripts, from most common values and a histogram.

An integer is drawn by a pgbench expression. A value of another type is picked from a list of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pgdyno.load.dataset import literal
from pgdyno.message import Message

#: Values and steps of a distribution that a script has; more cost the client time and tell little.
_COMMON, _STEPS, _VALUES = 10, 10, 100
PARTS = 1_000_000


@dataclass(frozen=True)
class Distribution:
    """Known distribution of a column's values, as text.

    It has the most common values with the shares of the rows that have them. It also has bounds between which the
    other values lie in equal shares.
    """

    common: Sequence[str] = ()
    parts: Sequence[float] = ()
    bounds: Sequence[str] = ()

    @classmethod
    def of(cls, values: Sequence[str]) -> Distribution:
        """Return the distribution of observed values."""
        counts: dict[str, int] = {}
        for v in values:
            counts[v] = counts.get(v, 0) + 1
        often = sorted((v for v, n in counts.items() if n > 1), key=lambda v: -counts[v])[:_COMMON]
        rest = sorted((v for v in values if v not in often), key=lambda v: (_number(v) is None, _number(v) or 0, v))
        if len(rest) <= 1:
            often, rest = [*often, *rest], []
        steps = min(_VALUES, len(rest))
        bounds = [rest[round(i * (len(rest) - 1) / max(1, steps - 1))] for i in range(steps)]
        return cls(often, [counts[v] / len(values) for v in often], bounds)

    def quantiles(self, type_: str) -> list[str]:
        """Return bounds between which about equal shares of the values lie, for a number or a time.

        They are the bounds of the histogram, or else the known values.
        """
        known = [*self.bounds] if len(self.bounds) > 1 else sorted({*self.common, *self.bounds}, key=_sorted_as(type_))
        return known if len(known) > 1 else []

    @property
    def is_empty(self) -> bool:
        """Nothing is known."""
        return not self.common and not self.bounds


@dataclass(frozen=True)
class Listed:
    """Values that a script picks from: rows of some columns."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Draw:
    """Lines before the statement, and what stands in it."""

    lines: tuple[str, ...]
    expression: str
    #: What is not as it was.
    remark: Message | None = None
    #: What the rows must have that its `\\pick` draws: sample, table, column, and whether it may be NULL.
    needs: tuple[tuple[str, str, str, bool], ...] = ()
    #: Values that its `\\pick` draws from.
    listed: Listed | None = None


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def are_integers(d: Distribution) -> bool:
    """Return True if the values are integers."""
    return any(_number(v) is not None for v in (*d.common, *d.bounds))


def integers(name: str, d: Distribution) -> Draw:
    """Create a draw for a parameter of an integer type."""
    common = [n for v in d.common[:_COMMON] if (n := _number(v)) is not None]
    bounds = [n for v in d.bounds if (n := _number(v)) is not None]
    choices = [(part, str(n)) for n, part in zip(common, d.parts, strict=False)]
    if len(bounds) > 1:
        steps = min(_STEPS, len(bounds) - 1)
        edges = [bounds[round(i * (len(bounds) - 1) / steps)] for i in range(steps + 1)]
        left = max(0.0, 1 - sum(part for part, _ in choices))
        choices += [(left / steps, f"random({a}, {max(a, b)})") for a, b in pairwise(edges)]
    elif bounds:
        choices.append((max(0.0, 1 - sum(part for part, _ in choices)), str(bounds[0])))
    return Draw(_chosen(name, choices), f":{name}")


def from_a_list(name: str, d: Distribution, place: str) -> Draw:
    """Create a draw for a parameter of any other type.

    It picks one of the values, each as often as it was seen. The name of the list of values begins with `place`.
    """
    common, bounds = list(d.common[:_COMMON]), list(d.bounds)[:_VALUES]
    parts = d.parts[: len(common)]
    rows = [v for v, part in zip(common, parts, strict=False) for _ in range(max(1, round(part * _VALUES)))]
    left = max(len(bounds) and 1, _VALUES - len(rows))
    rows += [bounds[i * len(bounds) // left] for i in range(left)] if bounds else []
    return from_values(name, rows, place)


def from_values(name: str, values: Sequence[str], place: str, remark: Message | None = None) -> Draw:
    """One of some values, each as often as the others."""
    if len(set(values)) == 1:
        return Draw((), literal_of(values[0]), remark)
    listed = Listed(f"{place}{name}", ("value",), [(v,) for v in values])
    return Draw((f"\\pick {listed.name} {name}_",), f":{name}_value", remark, listed=listed)


def pairs(name: str, of: Sequence[tuple[str, str]], place: str) -> tuple[Draw, Draw]:
    """Two parameters whose values belong together: one of some pairs."""
    listed = Listed(f"{place}{name}", ("low", "high"), list(dict.fromkeys(of)))
    return Draw((f"\\pick {listed.name} {name}_",), f":{name}_low", listed=listed), Draw((), f":{name}_high")


def spread(of: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return some of many pairs, evenly spread over all of them."""
    of = sorted(of)
    return [of[i * len(of) // _VALUES] for i in range(_VALUES)] if len(of) > _VALUES else of


def literal_of(value: str) -> str:
    """Return a value as a literal for a script's statement."""
    # A colon before a name would begin a variable; the time 10:00 has none.
    return re.sub(r":(?=[^\W\d])", "'||chr(58)||'", literal(value))


def _sorted_as(type_: str) -> Callable[[str], tuple[float, str]]:
    def key(value: str) -> tuple[float, str]:
        try:
            return (float(value), "")
        except ValueError:
            # Dates and times in the ISO style sort as text.
            return (0.0, value)

    return key if type_ != "interval" else lambda value: (0.0, value)


def _chosen(name: str, choices: Sequence[tuple[float, str]]) -> tuple[str, ...]:
    """Lines that choose by parts."""
    if len(choices) == 1:
        return (f"\\set {name} {choices[0][1]}",)
    whole = sum(part for part, _ in choices) or 1.0
    lines = [f"\\set {name}_u random(1, {PARTS})"]
    cases, reached = [], 0.0
    for part, value in choices[:-1]:
        reached += part / whole
        cases.append(f"when :{name}_u <= {round(reached * PARTS)} then {value}")
    lines.append(f"\\set {name} case {' '.join(cases)} else {choices[-1][1]} end")
    return tuple(lines)
