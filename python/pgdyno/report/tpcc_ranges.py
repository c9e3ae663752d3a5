"""Checks of TPC-C at the standard's pace against the standard's ranges.

The checks cover the random inputs of the clients, and the deliveries that found a district without a new order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import scipy

from pgdyno.judge.groups import Group
from pgdyno.message import Message, message
from pgdyno.units import Quantity

#: How rarely chance alone may do what is called "not met": several are looked at, of each configuration.
_RARE = 0.001
#: The standard deviation of the order lines of an order: from 5 to 15, each as often.
_SPREAD_OF_LINES = math.sqrt(10)


@dataclass(frozen=True)
class Range:
    """One of them: its name, where it must lie, and what it was of how many."""

    name: str
    low: float
    high: float
    value: float
    count: int

    @property
    def is_inside(self) -> bool:
        """It is in its range."""
        return self.low <= self.value <= self.high

    @property
    def chance(self) -> float:
        """Probability of a count this small or this large.

        The true share is assumed to be at the near end of its range (binomial distribution).
        """
        n, k = self.count, round(self.value * self.count)
        return float(
            scipy.special.bdtr(k, n, self.low) if self.value < self.low else scipy.special.bdtrc(k - 1, n, self.high)
        )

    @property
    def verdict(self) -> str:
        """Verdict on the range: "met", "not-met" or "too-short".

        The last one means that the value is outside, but chance alone may cause this with so small a count.
        """
        return "met" if self.is_inside else "not-met" if self.chance < _RARE else "too-short"

    @property
    def title(self) -> Message:
        """Name of the range."""
        return message(f"range-{self.name}")

    def shown(self, value: float) -> Quantity:
        """Return a figure with its unit."""
        return Quantity(value, "share", 2)


class Mean(Range):
    """Range of a mean of `count` values."""

    @property
    def chance(self) -> float:
        """Probability of a mean this far outside its range, as for a share, but from the normal distribution."""
        distance = max(self.low - self.value, self.value - self.high)
        return float(scipy.special.ndtr(-distance / (_SPREAD_OF_LINES / math.sqrt(self.count))))

    def shown(self, value: float) -> Quantity:
        """See Range."""
        return Quantity(value, "fixed", 2)


class Reported(Range):
    """Range outside of which a value must be reported, although it is not a fault."""

    @property
    def verdict(self) -> str:
        """See Range."""
        return "met" if self.is_inside else "to-report"


#: Parts: name, of what, of how many, from, to. Those of other warehouses need one.
_PARTS = (
    ("new-orders-rolled-back", "rolled_back_new_orders", "new_orders", 0.009, 0.011, False),
    ("order-lines-of-other-warehouses", "remote_order_lines", "order_lines", 0.0095, 0.0105, True),
    ("payments-of-other-warehouses", "remote_payments", "payments", 0.14, 0.16, True),
    ("payments-by-last-name", "payments_by_name", "payments", 0.57, 0.63, False),
    ("order-statuses-by-last-name", "order_statuses_by_name", "order_statuses", 0.57, 0.63, False),
)


def ranges(g: Group, warehouses: int) -> list[Range]:
    """Return the ranges over all trials of a configuration, or nothing if the trials did not record them.

    `warehouses` is the number of warehouses in a set, from which clients draw other warehouses.
    """
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
        found.insert(1, Mean("order-lines-of-an-order", 9.5, 10.5, total.get("order_lines", 0.0) / n, int(n)))
    if n := total.get("deliveries", 0.0):
        part = total.get("skipped_deliveries", 0.0) / n
        found.append(Reported("deliveries-that-skipped-a-district", 0.0, max(0.01, 1 / n), part, int(n)))
    return found


def missed(found: Sequence[Range]) -> list[Message]:
    """Return the names of the ranges that are not met."""
    return [r.title for r in found if r.verdict == "not-met"]
