"""Relations of the values of one column within a transaction.

They are the same row again, rows one after another, and rows always in one order. Drawn separately, they would
deadlock although production never did.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pgdyno.capture import draws
from pgdyno.capture.draws import Distribution, Draw

#: One in a million, as a logarithm.
_CHANCE = math.log(1e-6)


@dataclass(frozen=True)
class _Known:
    of: tuple[str, str]
    values: Sequence[str | None]
    draw: Draw


@dataclass
class Relations:
    """The parameters of a transaction so far."""

    _known: list[_Known] = field(default_factory=list)

    def draw(
        self, of: tuple[str, str] | None, values: Sequence[str | None], name: str, alone: Callable[[], Draw]
    ) -> Draw:
        """Draw a parameter of a column, given its values in each transaction.

        Its values may depend on an earlier parameter of the same column. They may also depend on any earlier parameter
        that was always equal, and hardly by chance. Otherwise the result is that of `alone`.
        """
        made = self._related(of, values, name) or alone()
        self.keep(of, values, made)
        return made

    def keep(self, of: tuple[str, str] | None, values: Sequence[str | None], draw: Draw) -> None:
        """Add a parameter that later parameters may depend on."""
        if of is not None:
            self._known.append(_Known(of, values, draw))

    def is_related(self, of: tuple[str, str] | None, values: Sequence[str | None]) -> bool:
        """Return True if a parameter depends on an earlier one."""
        return self._related(of, values, "") is not None

    def _related(self, of: tuple[str, str] | None, values: Sequence[str | None], name: str) -> Draw | None:
        same = (k for k in self._known if k.of == of or _is_equal(k.values, values))
        return next((d for k in same if (d := _after(k, values, name))), None)


def _is_equal(a: Sequence[str | None], b: Sequence[str | None]) -> bool:
    """Return True if the values were equal in all transactions.

    Values of two columns are seldom equal in all transactions by chance.
    """
    if list(a) != list(b) or None in a:
        return False
    counts = Counter(a).values()
    looks_random = sum((n / len(a)) ** 2 for n in counts)
    return len(a) * math.log(looks_random) < _CHANCE


def _after(k: _Known, values: Sequence[str | None], name: str) -> Draw | None:
    pairs = [(a, b) for a, b in zip(k.values, values, strict=True) if a is not None and b is not None]
    if not pairs or len(pairs) < len(values):
        return None
    if all(a == b for a, b in pairs):
        return Draw((), k.draw.expression)
    try:
        apart = [int(b) - int(a) for a, b in pairs]
    except ValueError:
        return None
    # A variable of its own, and no expression of several.
    if not k.draw.expression.startswith(":") or not (all(d > 0 for d in apart) or all(d < 0 for d in apart)):
        return None
    between = draws.integers(f"{name}d", Distribution.of([str(d) for d in apart]))
    return Draw((*between.lines, f"\\set {name} {k.draw.expression} + ({between.expression})"), f":{name}")
