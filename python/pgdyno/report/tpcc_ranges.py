"""TPC-C at the standard's pace: whether what its clients drew, and deliveries that found nothing, lie in the standard's
ranges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.judge.groups import Group

_Z95 = 1.959964
#: Of order lines of an order, from 5 to 15 and each as often.
_SPREAD_OF_LINES = math.sqrt(10)


@dataclass(frozen=True)
class Range:
    """One of them: its name, where it must lie, and what it was of how many."""

    name: str
    low: float
    high: float
    value: float
    count: int
    #: The standard deviation of a single one; of parts None: it follows from the part.
    spread: float | None = None
    #: A mean, and no part.
    is_mean: bool = False

    @property
    def verdict(self) -> str:
        """Outside by what chance alone may do to so few: the run was too short to say."""
        if self.low <= self.value <= self.high:
            return "met"
        middle = (self.low + self.high) / 2
        spread = math.sqrt(middle * (1 - middle)) if self.spread is None else self.spread
        half = _Z95 * spread / math.sqrt(self.count)
        return "not met" if self.value + half < self.low or self.value - half > self.high else "too short to say"


#: Parts: name, of what, of how many, from, to. Those of other warehouses need one.
_PARTS = (
    ("new orders rolled back", "rolled_back_new_orders", "new_orders", 0.009, 0.011, False),
    ("order lines of other warehouses", "remote_order_lines", "order_lines", 0.0095, 0.0105, True),
    ("payments of other warehouses", "remote_payments", "payments", 0.14, 0.16, True),
    ("payments by last name", "payments_by_name", "payments", 0.57, 0.63, False),
    ("order-statuses by last name", "order_statuses_by_name", "order_statuses", 0.57, 0.63, False),
)


def ranges(g: Group, warehouses: int) -> list[Range]:
    """Of a configuration's trials together; nothing where they have not recorded it."""
    total: dict[str, float] = {}
    for t in g.trials:
        for name, n in t.activity.items():
            if name.startswith("tpcc_"):
                total[name[5:]] = total.get(name[5:], 0.0) + n
    found = []
    for name, of, whole, low, high, remote in _PARTS:
        if (n := total.get(whole, 0.0)) and not (remote and warehouses == 1):
            found.append(Range(name, low, high, total.get(of, 0.0) / n, int(n)))
    if n := total.get("new_orders", 0.0):
        lines = total.get("order_lines", 0.0) / n
        found.insert(1, Range("order lines of an order", 9.5, 10.5, lines, int(n), _SPREAD_OF_LINES, is_mean=True))
    if n := total.get("deliveries", 0.0):
        # One may be, of however few.
        part = total.get("skipped_deliveries", 0.0) / n
        found.append(Range("deliveries that skipped a district", 0.0, max(0.01, 1 / n), part, int(n), spread=0.0))
    return found


def missed(found: Sequence[Range]) -> list[str]:
    """The names of those that are not met."""
    return [r.name for r in found if r.verdict == "not met"]
