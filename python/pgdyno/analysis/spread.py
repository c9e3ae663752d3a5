"""Summary of repetitions: the middle and the spread.

See docs/math.md for the formulas.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

#: Standard deviation of a normal distribution divided by its median absolute deviation.
MAD = 1.4826


@dataclass(frozen=True)
class Estimate:
    """A figure over repetitions of one trial."""

    n: int
    median: float
    mean: float
    minimum: float
    maximum: float
    #: Half the width of the 95% confidence interval of the mean, by Student's t; None for fewer than two repetitions.
    half_width: float | None

    @property
    def spread(self) -> float | None:
        """(maximum - minimum) / median: how far equal runs lie apart; None for fewer than three repetitions."""
        return (self.maximum - self.minimum) / self.median if self.n > 2 and self.median else None


def estimate(values: Sequence[float]) -> Estimate:
    """Median, extremes and confidence interval of independent repetitions."""
    if not values:
        return Estimate(0, math.nan, math.nan, math.nan, math.nan, None)
    n = len(values)
    mean = math.fsum(values) / n
    half = None
    if n > 1:
        # The statistics module's stdev is exact by fractions, and slow where a report has thousands.
        deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
        half = student_975(n - 1) * deviation / math.sqrt(n)
    return Estimate(n, statistics.median(values), mean, min(values), max(values), half)


#: The 97.5% quantile of the normal distribution.
NORMAL_975 = 1.959964


def student_975(degrees: int) -> float:
    """Return the 97.5% quantile of Student's t distribution.

    It is tabled up to 30 degrees of freedom and expanded beyond. Source: Abramowitz and Stegun, table 26.10 and
    formula 26.7.5. The table spares a report the import of scipy.
    """
    table = (
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
        2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
        2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    )  # fmt: skip
    if degrees < 1:
        raise ValueError("at least one degree of freedom")
    if degrees <= len(table):
        return table[degrees - 1]
    z = NORMAL_975
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
