"""A figure from a time series whose neighbours resemble each other. Formulas and sources: docs/math.md, Series."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from pgdyno.analysis.spread import student_975
from pgdyno.model import IntervalRow

Array = NDArray[np.float64]
#: Values below which nothing can be said of how alike neighbours are: intervals would hold the truth too seldom.
FEWEST = 20
#: Kinds of noise that are looked at, besides white noise: correlations of neighbours that fall off fast (first order
#: autoregressive), Hurst exponents of such that hardly fall off, and the part that the latter has beside white noise.
#: Chosen so that intervals hold as often as they say on recorded series (benches/judging.py).
_SHORT, _LONG, _PARTS = (0.3, 0.5, 0.7, 0.85, 0.95), (0.6, 0.7, 0.8, 0.9), (0.3, 0.6, 1.0)
#: Of longer series neighbours are taken together.
_MOST = 100
#: Values that differ by less are equal but for rounding.
_EQUAL = 1e-12
#: A last interval that is shorter than this part of the others tells of itself more than of the server.
_WHOLE = 0.5


@dataclass(frozen=True)
class SeriesMean:
    """A mean over time, with what it is worth."""

    n: int
    mean: float
    #: Half the width of the 95% confidence interval; None where there are too few values to tell.
    half_width: float | None


def autocorrelation_time(values: Sequence[float] | Array) -> float:
    """Compute how many values carry as much information as one independent value; at least 1.

    The result is 1 + 2 times the sum of the autocorrelations. They are summed in neighbouring pairs while a pair is
    positive (Geyer 1992, the initial positive sequence).
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
    """Compute the mean of a series, with an interval that holds the mean of its process.

    In 95 of 100 cases, the means of two neighbouring stretches differ by less than their combined half width. It is
    the root of the sum of the squares of both half widths. Few values hardly tell how alike near and far neighbours
    are. The interval is therefore averaged over kinds of noise, each weighted by its likelihood for the series
    (docs/math.md, Series).
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n == 0:
        return SeriesMean(0, math.nan, None)
    mean = float(x.mean())
    if n < FEWEST:
        return SeriesMean(n, mean, None)
    # Of a long series means of neighbours: it is the slow part of the noise that decides.
    together = -(-n // _MOST)
    y = np.array([part.mean() for part in np.array_split(x, -(-n // together))]) - mean
    deviation = float(y.std())
    if deviation <= abs(mean) * _EQUAL:
        return SeriesMean(n, mean, 0.0)
    return SeriesMean(n, mean, _half_width(y / deviation) * deviation)


def _half_width(x: Array) -> float:
    """Half the width of the interval about 0 that holds the mean with 95%, of a series about 0."""
    n = len(x)
    # A plan, or a run that begins, starts faster without it.
    from scipy import optimize

    kinds = _noises(n)
    means, errors, logs = (np.empty(len(kinds)) for _ in range(3))
    for i, noise in enumerate(kinds):
        # The mean's distribution under this noise, its variance unknown: Student's t; and the likelihood of the series.
        white = noise.whitener @ x
        means[i] = noise.constant @ white / noise.information
        rest = max(float(white @ white) - means[i] ** 2 * noise.information, np.finfo(float).tiny)
        errors[i] = math.sqrt(rest / (n - 1) / noise.information)
        logs[i] = (
            noise.log_belief - (noise.log_determinant + math.log(noise.information) + (n - 1) * math.log(rest)) / 2
        )
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()

    def beyond(half: float) -> float:
        outside = scipy.special.stdtr(n - 1, (-half - means) / errors) + scipy.special.stdtr(
            n - 1, (means - half) / errors
        )
        return float(weights @ outside) - 0.05

    high = float(student_975(n - 1) * errors.max() + abs(means).max())
    return float(optimize.brentq(beyond, 0.0, 2 * high, xtol=1e-4 * high))


@dataclass(frozen=True)
class _Noise:
    """A kind of noise, for series of one length: what it needs to be weighed, and to say how sure a mean is."""

    #: Makes the noise white: the inverse of the Cholesky factor of its correlations, and what that makes of a constant.
    whitener: Array
    constant: Array
    #: Of the mean by generalised least squares, 1 / variance in units of the noise's.
    information: float
    #: The logarithms of the determinant of the correlations, and of what is believed of it beforehand.
    log_determinant: float
    log_belief: float


def _correlations(n: int) -> Iterator[tuple[float, Array]]:
    """Kinds of noise by their autocorrelations up to n - 1, each with what is believed of it beforehand."""
    lag = np.arange(n, dtype=np.float64)
    yield 1.0, (lag == 0).astype(np.float64)
    for rho in _SHORT:
        yield 1 / len(_SHORT), rho**lag
    for hurst, part in itertools.product(_LONG, _PARTS):
        # Fractional Gaussian noise, with white noise upon it.
        r = (abs(lag + 1) ** (2 * hurst) - 2 * lag ** (2 * hurst) + abs(lag - 1) ** (2 * hurst)) / 2 * part
        r[0] = 1.0
        yield 1 / (len(_LONG) * len(_PARTS)), r


@functools.lru_cache(maxsize=_MOST + 1)
def _noises(n: int) -> tuple[_Noise, ...]:
    from scipy import linalg

    found = []
    for belief, r in _correlations(n):
        factor = np.linalg.cholesky(linalg.toeplitz(r))
        whitener = linalg.solve_triangular(factor, np.eye(n), lower=True)
        constant = whitener.sum(axis=1)
        log_determinant = 2 * float(np.log(np.diag(factor)).sum())
        found.append(_Noise(whitener, constant, float(constant @ constant), log_determinant, math.log(belief)))
    return tuple(found)


def measured(rows: list[IntervalRow]) -> list[IntervalRow]:
    """Return the intervals of the measurement, without a short last one."""
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
    """Return True if values rise or fall in an order that chance gives in fewer than one of 20 cases.

    The test is Kendall's tau. Fewer than five values cannot tell.
    """
    n = len(values)
    if n < min(_KENDALL):
        return False
    signs = sum((b > a) - (b < a) for i, a in enumerate(values) for b in values[i + 1 :])
    return abs(signs) >= (_KENDALL.get(n) or 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18))
