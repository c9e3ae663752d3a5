"""The Universal Scalability Law over clients or cores (Gunther 1993, 2007). docs/math.md, Scaling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pgdyno.analysis.series import Array
from pgdyno.analysis.spread import NORMAL_975, student_975

#: Of the intervals, percent on each side.
_TAIL = 2.5
_RESAMPLES = 400
_SEED = 20180901
#: A part of the work that is less than this is none.
_NOTHING = 1e-4
#: Steps of a fit at most, and the decrease of its sum, as a part, that ends it.
_MOST_STEPS, _STILL = 200, 1e-12
#: A knee whose interval is wider, highest by lowest, is not known.
_WIDE = 3.0


@dataclass(frozen=True)
class Interval:
    """A value and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """Throughput by the law for one number of clients or cores."""

    n: float
    #: Of a new measurement.
    throughput: Interval
    #: Of the law itself.
    law: Interval
    #: Beyond what was measured.
    predicted: bool


@dataclass(frozen=True)
class Scaling:
    """X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1))."""

    #: Throughput of one.
    lambda_: Interval
    #: Contention: the part of the work that is done one after the other.
    sigma: Interval
    #: Coherency: what keeping each two of them in agreement costs.
    kappa: Interval
    #: Where the curve is highest; infinite where nothing turns it down.
    knee: Interval
    #: The highest throughput; infinite as above.
    peak: Interval
    curve: list[Point]
    #: Root of the mean square of the relative errors.
    error: float
    #: Different numbers of clients or cores that were measured.
    levels: int

    @property
    def unknown(self) -> list[Literal["sigma", "kappa", "knee"]]:
        """Parameters that these data do not determine: their intervals reach from nothing to something."""
        out: list[Literal["sigma", "kappa", "knee"]] = []
        if self.sigma.low < _NOTHING < self.sigma.high:
            out.append("sigma")
        if self.kappa.low < _NOTHING**2 < self.kappa.high:
            out.append("kappa")
        if self.knee.high > _WIDE * self.knee.low:
            out.append("knee")
        return out


def usl(n: Array, lambda_: float, sigma: float, kappa: float) -> Array:
    """Compute the throughput of `n` by the Universal Scalability Law."""
    return np.asarray(lambda_ * n / (1 + sigma * (n - 1) + kappa * n * (n - 1)), dtype=np.float64)


def fit(
    levels: Sequence[float], throughputs: Sequence[float], *, until: float | None = None, resamples: int = _RESAMPLES
) -> Scaling:
    """Fits the law by least squares of relative errors, with sigma in 0..1 and kappa not negative.

    Intervals are percentiles of a bootstrap whose units are levels, and repetitions within them; those of the curve
    hold a new measurement, not only the mean. Raises ValueError with fewer than 4 different levels.
    """
    n, x = np.asarray(levels, dtype=np.float64), np.asarray(throughputs, dtype=np.float64)
    distinct = len(set(n.tolist()))
    if distinct < 4 or len(n) != len(x) or (x <= 0).any() or (n <= 0).any():
        raise ValueError("the law has three parameters: it needs at least 4 different levels, all positive")
    best = _fitted(n, x)
    residuals = np.log(x) - np.log(usl(n, *best))
    error = math.sqrt(float((residuals**2).mean()))
    rng = np.random.default_rng(_SEED)
    grid = np.unique(np.concatenate([n, np.geomspace(max(1.0, n.min()), until or 2 * n.max(), 60)]))
    of_levels, within = _grouped_by_level(n, residuals, distinct)
    where = np.searchsorted(np.unique(n), n)
    parameters, curves, laws = [], [], []
    for _ in range(resamples):
        noise = rng.choice(of_levels, distinct)[where] + (rng.choice(within, len(n)) if len(within) else 0.0)
        p = _fitted(n, np.exp(np.log(usl(n, *best)) + noise), start=best)
        parameters.append(p)
        new = rng.choice(of_levels, len(grid)) + (rng.choice(within, len(grid)) if len(within) else 0.0)
        laws.append(usl(grid, *p))
        curves.append(laws[-1] * np.exp(new))
    lambdas, sigmas, kappas = np.asarray(parameters).T
    knees = np.asarray([_knee(s, k) for _, s, k in parameters])
    peaks = np.asarray([_peak(*p) for p in parameters])
    middle = usl(grid, *best)
    new_ones, means = (_band(middle, np.asarray(x)) for x in (curves, laws))
    curve = [Point(float(g), new, law, bool(g > n.max())) for g, new, law in zip(grid, new_ones, means, strict=True)]
    return Scaling(
        _interval(best[0], lambdas),
        _interval(best[1], sigmas),
        _interval(best[2], kappas),
        _interval(_knee(best[1], best[2]), knees),
        _interval(_peak(*best), peaks),
        curve,
        error,
        distinct,
    )


def _band(middle: Array, curves: Array) -> list[Interval]:
    low, high = np.percentile(curves, [_TAIL, 100 - _TAIL], axis=0)
    return [
        Interval(float(m), float(min(lo, m)), float(max(hi, m))) for m, lo, hi in zip(middle, low, high, strict=True)
    ]


def _grouped_by_level(n: Array, residuals: Array, distinct: int) -> tuple[Array, Array]:
    """Split the residuals into the error that a level has in common and the errors of its repetitions.

    The law misses whole levels, and repetitions of one level do not show this. Both errors are as large as they would
    be if the fit had taken no degrees of freedom. Few levels know the size of their error badly: it is multiplied by
    the ratio of Student's t quantile to the normal quantile.
    """
    _, where = np.unique(n, return_inverse=True)
    means = np.bincount(where, residuals) / np.bincount(where)
    free = distinct - 3
    of_levels = (means - means.mean()) * math.sqrt(distinct / free) * student_975(free) / NORMAL_975
    within = residuals - means[where]
    spare = len(n) - distinct
    return of_levels, within * math.sqrt(len(n) / spare) if spare else np.zeros(0)


def _fitted(n: Array, x: Array, start: Sequence[float] | None = None) -> tuple[float, float, float]:
    """Return lambda, sigma and kappa of the least sum of squared relative errors.

    Logarithms keep lambda positive and make the errors relative; lambda is then the mean that they leave (variable
    projection), and kappa is scaled to the range of n. `scipy.optimize` does the same; to import it takes longer than
    all fits of a report.
    """
    scale = float(n.max()) ** 2
    contention, coherency, ratio = n - 1, n * (n - 1) / scale, np.log(n / x)
    starts = [(0.01, 0.1), (0.1, 1.0), (0.5, 0.01)] if start is None else [(start[1], start[2] * scale)]
    (sigma, kappa), _ = min((_descended(contention, coherency, ratio, s) for s in starts), key=lambda found: found[1])
    # What the fit left at its bound is 0, and no 6e-30.
    sigma, kappa = (v if v > 1e-9 else 0.0 for v in (sigma, kappa))
    lambda_ = math.exp(float((np.log(1 + sigma * contention + kappa * coherency) - ratio).mean()))
    return lambda_, sigma, kappa / scale


def _descended(
    contention: Array, coherency: Array, ratio: Array, start: tuple[float, float]
) -> tuple[tuple[float, float], float]:
    """Return sigma in 0..1 and scaled kappa of at least 0, and the sum of squares that they leave.

    The method is that of Levenberg and Marquardt; a parameter stays at its bound while the sum falls beyond it.
    """
    highest = np.array([1.0, np.inf])

    def left(p: Array) -> tuple[Array, Array, float]:
        below = 1 + p[0] * contention + p[1] * coherency
        errors = np.log(below) - ratio
        errors -= errors.mean()
        return below, errors, float(errors @ errors)

    p, damping = np.clip(np.asarray(start), 0.0, highest), 1e-3
    below, errors, total = left(p)
    for _ in range(_MOST_STEPS):
        slopes = np.stack([contention / below, coherency / below])
        slopes -= slopes.mean(axis=1, keepdims=True)
        gradient, curvature = slopes @ errors, slopes @ slopes.T
        free = ~(((p <= 0) & (gradient > 0)) | ((p >= highest) & (gradient < 0)))
        if not free.any():
            break
        step = np.zeros(2)
        inner = curvature[np.ix_(free, free)]
        step[free] = -np.linalg.solve(inner + damping * np.diag(np.diag(inner) + 1e-30), gradient[free])
        tried = np.clip(p + step, 0.0, highest)
        found = left(tried)
        if found[2] < total:
            is_still = total - found[2] <= _STILL * total
            p, (below, errors, total), damping = tried, found, max(damping / 10, 1e-12)
            if is_still:
                break
        elif damping > 1e8:
            break
        else:
            damping *= 10
    return (float(p[0]), float(p[1])), total


def _knee(sigma: float, kappa: float) -> float:
    """Compute the n of the highest throughput: sqrt((1 - sigma) / kappa)."""
    return math.sqrt((1 - sigma) / kappa) if kappa > 1e-12 else math.inf


def _peak(lambda_: float, sigma: float, kappa: float) -> float:
    knee = _knee(sigma, kappa)
    if math.isinf(knee):
        return lambda_ / sigma if sigma > 1e-9 else math.inf
    return float(usl(np.asarray([max(1.0, knee)]), lambda_, sigma, kappa)[0])


def _interval(value: float, samples: Array) -> Interval:
    low, high = np.percentile(samples, [_TAIL, 100 - _TAIL], method="nearest")
    return Interval(float(value), float(min(low, value)), float(max(high, value)))
