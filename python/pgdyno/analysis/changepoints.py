"""Change points: the places in a history of figures where the level changed.

The method is E-divisive means (Matteson and James 2014) with Student's t test for significance. As in Hunter and
Apache Otava, it first splits and prunes at the end. See docs/math.md, History.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from pgdyno.analysis.series import Array

#: A history of equal values shows a change with this probability at most; so do all series of a table together, which
#: share it.
ALPHA = 0.05
#: And when the level moved by this part, at least.
SMALLEST = 0.01
#: Values on each side, at least.
FEWEST = 3


@dataclass(frozen=True)
class ChangePoint:
    """The first value of a new level."""

    index: int
    before: float
    after: float
    #: Probability of such a change, or a larger one, anywhere between its neighbours if there were none.
    p: float

    @property
    def ratio(self) -> float:
        """The new level by the old one."""
        return self.after / self.before if self.before else math.nan


def change_points(values: Sequence[float], *, alpha: float = ALPHA, smallest: float = SMALLEST) -> list[ChangePoint]:
    """Return all of them, in order. Assumes independent values: one a run."""
    x = np.asarray(values, dtype=np.float64)
    # Every split that there is: the first of a dip that was repaired is not significant before the second is found.
    bounds = sorted(_splits(x, 0, len(x)))
    while bounds:
        tested = [_tested(x, low, at, high) for low, at, high in _neighbours(bounds, len(x))]
        weakest = max(tested, key=lambda c: c.p)
        small = [c for c in tested if abs(c.after - c.before) < smallest * abs(c.before)]
        if weakest.p >= alpha:
            bounds.remove(weakest.index)
        elif small:
            bounds.remove(min(small, key=lambda c: abs(c.after - c.before)).index)
        elif _is_too_young(x, bounds):
            bounds.pop()
        else:
            return tested
    return []


def _is_too_young(x: Array, bounds: list[int]) -> bool:
    """Return True if the last change cannot be placed because it is too recent.

    This is the case if fewer than FEWEST values follow the change: the first values that are assigned to it fit the
    level before better.
    """
    low, at, n = (bounds[-2] if len(bounds) > 1 else 0), bounds[-1], len(x)
    if n - at > FEWEST:
        return False

    def error(place: int) -> float:
        return float(x[low:place].var() * (place - low) + x[place:].var() * (n - place))

    return any(error(place) < error(at) for place in range(at + 1, n))


def _neighbours(bounds: list[int], n: int) -> list[tuple[int, int, int]]:
    edges = [0, *bounds, n]
    return list(zip(edges, edges[1:], edges[2:], strict=False))


def _splits(x: Array, low: int, high: int) -> list[int]:
    if high - low < 2 * FEWEST:
        return []
    at = low + best_split(x[low:high])
    return [*_splits(x, low, at), at, *_splits(x, at, high)]


def best_split(x: Array) -> int:
    """Return the place where two parts differ most: the largest Q of E-divisive.

    Q is mn/(m+n) times a difference. The difference is twice the mean distance between the parts less the mean
    distances within them. Prefix sums of the distances are used; the tests have the plain form.
    """
    n = len(x)
    distances = np.abs(x[:, None] - x[None, :])
    # within[k]: of the first k values to each other; all pairs once.
    rows = np.cumsum(distances, axis=1)
    first = np.concatenate([[0.0], np.cumsum([rows[k, k] for k in range(n)])])
    total = first[n]
    back = distances[::-1, ::-1]
    back_rows = np.cumsum(back, axis=1)
    last = np.concatenate([[0.0], np.cumsum([back_rows[k, k] for k in range(n)])])[::-1]
    best, at = -math.inf, FEWEST
    for k in range(FEWEST, n - FEWEST + 1):
        m = n - k
        between = total - first[k] - last[k]
        within = first[k] / (k * (k - 1) / 2) + last[k] / (m * (m - 1) / 2)
        q = k * m / n * (2 * between / (k * m) - within)
        if q > best:
            best, at = q, k
    return at


def _tested(x: Array, low: int, at: int, high: int) -> ChangePoint:
    a, b = x[low:at], x[at:high]
    before, after = float(a.mean()), float(b.mean())
    # Student's t test: with the variance of both parts together. The three runs behind a change by themselves hardly
    # know theirs.
    degrees = len(a) + len(b) - 2
    variance = (float(a.var()) * len(a) + float(b.var()) * len(b)) / degrees
    if variance == 0:
        return ChangePoint(at, before, after, 1.0 if before == after else 0.0)
    t = abs(after - before) / math.sqrt(variance * (1 / len(a) + 1 / len(b)))
    # The place is the best of all, and so is the one beside it (Bonferroni over the two ends of a level): by simulation
    # equal values show a change in 1% where alpha is 5%.
    places = 2 * len(x)
    return ChangePoint(at, before, after, min(1.0, places * 2 * float(scipy.special.stdtr(degrees, -t))))
