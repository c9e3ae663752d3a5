"""A figure from a time series whose neighbours resemble each other. Formulas and sources: docs/math.md, Series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgdyno.analysis.spread import student_975
from pgdyno.model import IntervalRow

Array = NDArray[np.float64]
#: Values below which nothing can be said of how alike neighbours are: intervals would hold the truth too seldom.
FEWEST = 20
#: Parts that a series is cut into to see what its neighbours do not show.
_BATCHES = 4
#: Where neighbours are more alike than that, quarters may be, too.
_MEMORY = 1.5
#: A last interval that is shorter than this part of the others tells of itself more than of the server.
_WHOLE = 0.5


@dataclass(frozen=True)
class SeriesMean:
    """A mean over time, with what it is worth."""

    n: int
    mean: float
    #: Independent values that would tell as much; at most n.
    effective: float
    #: Half the width of the 95% confidence interval; None where there are too few values to tell.
    half_width: float | None


def autocorrelation_time(values: Sequence[float] | Array) -> float:
    """How many values tell as much as one independent one: 1 + 2 times the sum of the autocorrelations, summed in
    neighbouring pairs while a pair is positive (Geyer 1992, the initial positive sequence). At least 1.
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n < 4:
        return 1.0
    x = x - x.mean()
    variance = float(x @ x) / n
    if variance <= 0:
        return 1.0
    # All lags at once; padded, so that the ends do not meet.
    spectrum = np.fft.rfft(x, 2 * n)
    rho = np.fft.irfft(spectrum * np.conj(spectrum))[:n] / (n * variance)
    total = 0.0
    for lag in range(1, n - 1, 2):
        pair = float(rho[lag] + rho[lag + 1])
        if pair <= 0:
            break
        total += pair
    return max(1.0, 1.0 + 2.0 * total)


def mean_of(values: Sequence[float] | Array) -> SeriesMean:
    """The mean of a series with an interval that respects its autocorrelation: the standard error of n values is that
    of n / tau independent ones, tau being the autocorrelation time. Both tau and the variance come out too small where
    they are taken about the series' own mean; they are corrected for it. Where
    neighbours are alike, the machine may have a longer memory than a short series shows: the interval is then no
    narrower than that of the series' quarters as units.
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n == 0:
        return SeriesMean(0, math.nan, 0.0, None)
    found = autocorrelation_time(x)
    tau = min(found * (1 + 2 * found / n), n / 2)
    effective = n / tau
    if n < FEWEST:
        return SeriesMean(n, float(x.mean()), effective, None)
    variance = float(x.var(ddof=1)) / (1 - min(tau / n, 0.5))
    half = student_975(max(1, int(effective) - 1)) * math.sqrt(variance / effective)
    if found > _MEMORY:
        half = max(half, _of_batches(x))
    return SeriesMean(n, float(x.mean()), effective, half)


def _of_batches(x: Array) -> float:
    """Half the width of the interval by non-overlapping batch means (Schmeiser 1982) of few batches."""
    length = len(x) // _BATCHES
    means = x[: length * _BATCHES].reshape(_BATCHES, length).mean(axis=1)
    return student_975(_BATCHES - 1) * float(means.std(ddof=1)) / math.sqrt(_BATCHES)


def measured(rows: list[IntervalRow]) -> list[IntervalRow]:
    """The intervals of the measurement, without a short last one."""
    found = [r for r in rows if r.phase == "measure" and r.end_ns > r.start_ns]
    longest = max((r.end_ns - r.start_ns for r in found), default=0)
    return [r for r in found if r.end_ns - r.start_ns > _WHOLE * longest]


def tps_of(rows: list[IntervalRow]) -> list[float]:
    """Transactions per second, of each interval."""
    return [r.committed / ((r.end_ns - r.start_ns) / 1e9) for r in rows]


#: Of n values, the least |S| (pairs in order less pairs out of order) that chance reaches in fewer than one of 20
#: cases; exact, over all orders. Kendall, "Rank Correlation Methods" (1948), appendix.
_KENDALL = {5: 10, 6: 13, 7: 15, 8: 18, 9: 20, 10: 23}


def is_trend(values: Sequence[float]) -> bool:
    """Whether values rise or fall in an order that is chance in fewer than one of 20 cases, by Kendall's tau. Fewer
    than five cannot tell.
    """
    n = len(values)
    if n < min(_KENDALL):
        return False
    signs = sum((b > a) - (b < a) for i, a in enumerate(values) for b in values[i + 1 :])
    return abs(signs) >= (_KENDALL.get(n) or 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18))
