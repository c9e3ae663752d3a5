"""Variance of one configuration, estimated with the help of the variances of all configurations.

With three repetitions, the configuration's own variance is hardly known. Variances are treated as draws from a scaled
inverse chi-squared distribution, as in Smyth, "Linear models and empirical Bayes methods" (2004). The degrees of
freedom of this distribution tell how similar the variances are. Its degrees of freedom and its scale are not estimated
as single values, which a few variances cannot provide. Instead the model averages over them. See docs/math.md,
Comparing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Degrees of freedom of the prior, from variances that are all but unrelated to such that are all equal.
_DEGREES = np.array([1, 2, 4, 8, 16, 32, 64, math.inf])
#: What is believed of them beforehand: the less alike, the likelier. Chosen by simulation: verdicts stay right at 1%
#: where the variances differ by a factor of ten (benches/judging.py).
_BELIEF = np.append(_DEGREES[:-1], 64.0) ** -0.5
#: Scales that are looked at: so many, so far around the pooled variance (in standard errors of its logarithm, and on).
_SCALES, _REACH, _MARGIN, _FARTHEST = 41, 6.0, 1.5, 8.0


@dataclass(frozen=True)
class Variance:
    """An estimate of a variance: of equal ones, an estimate times its degrees of freedom is chi-squared."""

    value: float
    degrees: float


@dataclass(frozen=True, eq=False)
class Prior:
    """Knowledge about a variance before its own estimate: weights of pairs (degrees of freedom, scale)."""

    scales: Array
    #: By degrees of freedom and scale; their sum is 1.
    weights: Array

    def spread(self, own: Variance, factor: float) -> Spread:
        """Return the distribution of a difference.

        Its variance was estimated as `own`, and is `factor` times the variance of a configuration.
        """
        prior = factor * self.scales[None, :]
        degrees = _DEGREES[:, None]
        finite = np.isfinite(degrees)
        d = np.where(finite, degrees, 1.0)
        variances = np.where(finite, (d * prior + own.degrees * own.value) / (d + own.degrees), prior)
        total = np.where(finite, d + own.degrees, math.inf)
        return Spread(variances, np.broadcast_to(total, variances.shape), self.weights)


@dataclass(frozen=True, eq=False)
class Spread:
    """The distribution of an estimate about the truth: a mixture of Student's t."""

    variances: Array
    degrees: Array
    weights: Array

    def beyond(self, difference: float) -> float:
        """Probability of an estimate farther from the truth than that, on either side."""
        z = -abs(difference) / np.sqrt(self.variances)
        return float(2 * np.sum(self.weights * _student(self.degrees, z)))

    def half_width(self, level: float) -> float:
        """Return half the width of the interval that holds the true value with probability `level`."""
        typical = math.sqrt(float(np.sum(self.weights * self.variances)))
        return _root(lambda x: self.beyond(x) - (1 - level), typical)

    def upper_sigma(self, confidence: float) -> float:
        """Return the upper bound that the standard error does not exceed with probability `confidence`."""

        def above(x: float) -> float:
            # Of a variance v with d degrees of freedom: d v / sigma^2 is chi-squared.
            finite = np.isfinite(self.degrees)
            d = np.where(finite, self.degrees, 1.0)
            part = scipy.special.chdtr(d, d * self.variances / x**2)
            return float(np.sum(self.weights * np.where(finite, part, self.variances > x**2))) - (1 - confidence)

        return _root(above, math.sqrt(float(np.sum(self.weights * self.variances))))


def learn(estimates: Sequence[Variance]) -> Prior:
    """Estimate the prior of a variance from estimates of variances like it.

    The estimates must be positive and about independent.
    """
    v = np.array([e.value for e in estimates], dtype=np.float64)[:, None]
    d = np.array([e.degrees for e in estimates], dtype=np.float64)[:, None]
    centre = math.log(float((v * d).sum() / d.sum()))
    reach = min(_FARTHEST, _REACH * math.sqrt(2 / float(d.sum())) + _MARGIN)
    scales = np.exp(centre + np.linspace(-reach, reach, _SCALES))
    x = v / scales[None, :]
    logs = np.empty((len(_DEGREES), _SCALES))
    for i, prior in enumerate(_DEGREES):
        # Of v / scale: Fisher's F with (d, prior) degrees of freedom; chi-squared / d where all are equal.
        if math.isinf(prior):
            constant = d / 2 * np.log(d / 2) - scipy.special.gammaln(d / 2)
            each = constant + d / 2 * (np.log(x) - x)
        else:
            constant = d / 2 * np.log(d / prior) - scipy.special.betaln(d / 2, prior / 2)
            each = constant + d / 2 * np.log(x) - (d + prior) / 2 * np.log1p(d * x / prior)
        logs[i] = each.sum(axis=0)
    logs += np.log(_BELIEF)[:, None]
    weights = np.exp(logs - logs.max())
    return Prior(scales, weights / weights.sum())


def _student(degrees: Array, z: Array) -> Array:
    finite = np.isfinite(degrees)
    below: Array = np.where(finite, scipy.special.stdtr(np.where(finite, degrees, 1.0), z), scipy.special.ndtr(z))
    return below


def _root(falling: Callable[[float], float], start: float) -> float:
    """Find the point where a decreasing function of a positive number crosses zero, to six digits."""
    low = high = math.log(start)
    while falling(math.exp(low)) < 0:
        low -= 1
    while falling(math.exp(high)) > 0:
        high += 1
    while high - low > 1e-6:
        middle = (low + high) / 2
        if falling(math.exp(middle)) > 0:
            low = middle
        else:
            high = middle
    return math.exp(high)
