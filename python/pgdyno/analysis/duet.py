"""Is B faster than A, by slices that took turns? docs/math.md, Duets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from pgdyno.analysis.compare import ALPHA, CONFIDENCE, MARGIN, POWER, RESOLUTION, Comparison, Verdict, verdict_of
from pgdyno.analysis.moderated import Array, Spread
from pgdyno.analysis.series import autocorrelation_time

#: What units may differ by, as multiples of the variance that their own errors make: 1 and so on by a factor, up to
#: so many times the largest that is seen; 1 is believed so many times as likely as each other. By simulation.
_STEP, _WIDEST, _BELIEF = 1.6, 100.0, 3.0
#: Pairs of slices, at least: fewer do not know how alike neighbours are.
FEWEST = 20


@dataclass(frozen=True)
class Difference:
    """Estimate of ln(B / A) by one duet, with the uncertainty that this duet alone shows."""

    mean: float
    #: Of the mean.
    variance: float
    degrees: float


def pair_ratio(differences: Sequence[float]) -> Difference | None:
    """Estimate ln(B / A) from the differences of the logarithms of pairs of slices, in order.

    The estimate allows for the correlation of neighbours. None means too few pairs.
    """
    x = np.asarray(differences, dtype=np.float64)
    n = len(x)
    if n < FEWEST:
        return None
    # Both come out too small about the series' own mean (Marriott and Pope 1954).
    found = autocorrelation_time(x)
    tau = min(found * (1 + 2 * found / n), n / 2)
    variance = float(x.var(ddof=1)) / (1 - min(tau / n, 0.5)) if tau > 1 else float(x.var(ddof=1))
    tau = tau if found > 1 else 1.0
    return Difference(float(x.mean()), variance * tau / n, max(1.0, n / tau - 1))


def figure_ratio(a: float, b: float, error_a: float, error_b: float) -> Difference:
    """Return the difference from one figure of each side and the standard errors of their logarithms.

    The two errors count as about independent.
    """
    return Difference(math.log(b / a), error_a**2 + error_b**2, 15.0)


def compared(
    units: Sequence[Sequence[Difference]],
    pairs: int,
    mean_a: float,
    mean_b: float,
    *,
    higher_is_better: bool = True,
    level: float = 1 - ALPHA,
    margin: float = MARGIN,
) -> Comparison:
    """Compare B with A over duets.

    `units` has, for each unit, the differences that it measured; a unit is a repetition or a start of the servers.
    Differences between units beyond their own error are part of the error. `pairs` is the total number of pairs of
    slices.
    """
    means = [float(np.mean([d.mean for d in unit])) for unit in units]
    difference = float(np.mean(means))
    ratio = math.exp(difference)
    every = [d for unit in units for d in unit]
    within = sum(sum(d.variance for d in unit) / len(unit) ** 2 for unit in units) / len(units) ** 2
    within = max(within, 2 * RESOLUTION**2 / 12 / len(every))
    spread = _spread(within, sum(d.degrees for d in every), means)
    half = spread.half_width(level)
    low, high = math.exp(difference - half), math.exp(difference + half)
    verdict = verdict_of(low, high, margin, higher_is_better)
    more = _more(spread, level, margin, pairs) if verdict is Verdict.UNKNOWN else 0
    return Comparison(pairs, pairs, mean_a, mean_b, ratio, low, high, level, True, verdict, margin, more)


def _spread(within: float, degrees: float, means: Sequence[float]) -> Spread:
    """Return the distribution of the error of the mean over units.

    `within` is the variance of the mean that the units' own errors make. The variance between the units may be any
    multiple of it. The observed variance of the units tells something about the multiple, but little if there are few
    units.
    """
    if len(means) < 2:
        return Spread(np.array([within]), np.array([degrees]), np.array([1.0]))
    d = len(means) - 1
    observed = max(float(np.var(means, ddof=1)) / len(means), 1e-12)
    steps = math.ceil(math.log(_WIDEST * max(1.0, observed / within)) / math.log(_STEP))
    multiples: Array = np.power(_STEP, np.arange(steps + 1, dtype=np.float64))
    q = observed / (multiples * within)
    logs = d / 2 * (np.log(q) - q)
    logs[0] += math.log(_BELIEF)
    weights = np.exp(logs - logs.max())
    return Spread(multiples * within, np.full(len(multiples), degrees), weights / weights.sum())


def _more(spread: Spread, level: float, margin: float, pairs: int) -> int:
    """Pairs that are needed besides to tell: the noise at its upper bound, which falls with their number."""
    needed = float(scipy.special.ndtri((1 + level) / 2) + scipy.special.ndtri(1 - (1 - POWER) / 2))
    return max(1, math.ceil(pairs * ((spread.upper_sigma(CONFIDENCE) * needed / math.log1p(margin)) ** 2 - 1)))
