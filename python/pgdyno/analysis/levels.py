"""Find a step in a trial's throughput. Formulas: docs/math.md, Levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from pgdyno.analysis.series import Array, autocorrelation_time

#: The lower level lies below the higher one by this part of it, at least.
SMALLEST = 0.2
#: A series without a change shows one with this probability at most.
ALPHA = 0.001
#: Values on each side, at least; and of longer series this part of them.
FEWEST, LEAST_PART = 3, 0.05


@dataclass(frozen=True)
class LevelChange:
    """The place at which a series goes from one level to another."""

    #: The first value of the second level.
    index: int
    #: Means of the two parts.
    before: float
    after: float


def level_change(values: Sequence[float] | Array, smallest: float = SMALLEST) -> LevelChange | None:
    """Return the step of a series, or None where it has one level, or goes from one to the other gradually.

    The split has the least squared error about two means. It is a step if the levels differ by `smallest` in their
    means and medians, if Student's t (with the residuals' autocorrelation time, for all places that were tried) is
    beyond ALPHA, and if two means leave less error than a line does, and less than half of what one mean leaves.
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    fewest = max(FEWEST, math.ceil(LEAST_PART * n))
    if n < 2 * fewest:
        return None
    sums, squares = np.cumsum(x), np.cumsum(x**2)
    left = np.arange(fewest, n - fewest + 1)
    before = sums[left - 1]
    error = squares[-1] - before**2 / left - (sums[-1] - before) ** 2 / (n - left)
    at = int(left[np.argmin(error)])
    head, rest = x[:at], x[at:]
    levels, medians = (head.mean(), rest.mean()), (np.median(head), np.median(rest))
    if not (_apart(*levels, smallest) and _apart(*medians, smallest)) or (levels[0] < levels[1]) != (
        medians[0] < medians[1]
    ):
        return None
    residuals = np.concatenate([head - levels[0], rest - levels[1]])
    two = float(residuals @ residuals)
    if two > min(_error_of_a_line(x), float(((x - x.mean()) ** 2).sum()) / 2):
        return None
    tau = autocorrelation_time(residuals)
    degrees = max(1.0, n / tau - 2)
    variance = two / (n - 2) * tau * (1 / at + 1 / (n - at))
    t = abs(levels[1] - levels[0]) / math.sqrt(variance) if variance > 0 else math.inf
    p = 2 * float(scipy.special.stdtr(degrees, -t)) * len(left)
    return LevelChange(at, float(levels[0]), float(levels[1])) if p < ALPHA else None


def _apart(a: float, b: float, smallest: float) -> bool:
    return abs(a - b) > smallest * max(a, b)


def _error_of_a_line(x: Array) -> float:
    at = np.arange(len(x)) - (len(x) - 1) / 2
    slope = float(at @ x) / float(at @ at)
    residuals = x - x.mean() - slope * at
    return float(residuals @ residuals)
