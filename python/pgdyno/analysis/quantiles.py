"""Uncertainty of latencies, from the intervals of one trial or from repetitions.

See docs/math.md, Series, for the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgdyno.analysis.series import FEWEST, mean_of
from pgdyno.analysis.spread import student_975

#: Histograms have three digits.
RESOLUTION = 1e-3
#: Values on each side of a quantile, at least.
_BEYOND = 5
#: Log odds beyond which an interval says nothing: a factor of 20.
_WIDEST = 3.0


def mean_half_width(counts: Sequence[float], sums: Sequence[float]) -> float | None:
    """Compute half the width of the 95% confidence interval of sum / count over all intervals.

    The result is in the unit of `sums`, or None if there are too few intervals. `counts` and `sums` have one value per
    interval.
    """
    n, total = np.asarray(counts, dtype=np.float64), np.asarray(sums, dtype=np.float64)
    if np.count_nonzero(n) < FEWEST:
        # What happened in a few intervals only says nothing of how it would be in others.
        return None
    # What an interval adds to the error of the ratio; intervals without a value add nothing.
    parts = (total - total.sum() / n.sum() * n) / n.mean()
    return mean_of(parts).half_width


def quantile_band(counts: Sequence[float], below: Sequence[float]) -> tuple[float, float] | None:
    """Return two shares of all values (0..1); their quantiles enclose a quantile q with 95% confidence.

    `below` has the number of values up to q in each interval. None means that there are too few intervals, or too few
    values beyond q.
    """
    return _band(counts, below, mean_half_width(counts, below))


def mean_half_width_over(counts: Sequence[float], sums: Sequence[float]) -> float | None:
    """Compute the result of mean_half_width over repetitions.

    Repetitions are independent of each other, so Student's t is used.
    """
    # Repetitions are few: arrays would cost ten times as much as the sums, and a report has ten thousand of these.
    total = math.fsum(counts)
    if len(counts) < 2 or total <= 0:
        return None
    ratio, size = math.fsum(sums) / total, total / len(counts)
    parts = [(s - ratio * n) / size for n, s in zip(counts, sums, strict=True)]
    # The parts lie about zero by construction, so the plain formula loses no digits. `statistics.stdev` computes with
    # fractions, which was a tenth of the time of a report of ten thousand trials.
    mean = math.fsum(parts) / len(parts)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in parts) / (len(parts) - 1))
    return student_975(len(counts) - 1) * deviation / math.sqrt(len(counts))


def quantile_band_over(counts: Sequence[float], below: Sequence[float]) -> tuple[float, float] | None:
    """Compute the result of quantile_band over repetitions.

    The band is that of the percentile of all values of the repetitions together.
    """
    return _band(counts, below, mean_half_width_over(counts, below))


def _band(counts: Sequence[float], below: Sequence[float], half: float | None) -> tuple[float, float] | None:
    total = math.fsum(counts)
    share = math.fsum(below) / max(1.0, total)
    if half is None or min(share, 1 - share) * total < _BEYOND:
        return None
    # On the scale of log odds: near 1 an interval that goes as far up as down would leave the range.
    odds, error = math.log(share / (1 - share)), half / (share * (1 - share))
    if error > _WIDEST:
        return None
    low, high = (1 / (1 + math.exp(-(odds + side * error))) for side in (-1, 1))
    # The bounds must lie among the values, not at their ends.
    return (low, high) if (1 - high) * total >= 1 and low * total >= 1 else None
