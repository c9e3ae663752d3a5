"""Detection of the end of a warm-up, and check that the rest of the series is steady.

See docs/math.md, Steady state, for formulas and sources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgdyno.analysis.series import Array, autocorrelation_time

#: MSER-5: values are averaged by fives first.
BATCH = 5
#: A drift over the measurement that matters, as a part of the mean.
DRIFT = 0.05
#: Of an open loop: a drift of the latency that matters, and a part of all arrivals by which the backlog grows.
QUEUE_DRIFT, BEHIND = 0.25, 0.01
#: |t| of a trend that is more than noise.
_BEYOND_NOISE = 3
#: Fewer values tell nothing about a trend.
FEWEST = 10


@dataclass(frozen=True)
class Steadiness:
    """Warm-up, steadiness and drift of a series."""

    #: Values at the beginning that belong to the warm-up.
    drop: int
    #: None: too short to tell.
    steady: bool | None
    #: The trend over the rest, as a part of its mean: 0.1 is 10% more at the end than at the beginning.
    drift: float


def warmup_end(values: Sequence[float] | Array) -> int:
    """Return the number of values to drop as warm-up, by MSER-5.

    Sources: White 1997; White, Cobb and Spratt 2000. The truncation chosen is the one that makes the standard error of
    the remaining values smallest, or the first within a tenth of that minimum. The minimum is flat, and dropped values
    are lost. At most half of the values are dropped; a series that needs more is not steady.
    """
    x = np.asarray(values, dtype=np.float64)
    batches = len(x) // BATCH
    if batches < 4:
        return 0
    means = x[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    # Sums from the end: of d batches dropped, n - d are left.
    left = np.arange(batches, 0, -1)
    sums = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum((means**2)[::-1])[::-1]
    errors = (squares - sums**2 / left) / left**2
    half = errors[: batches // 2 + 1]
    return int(np.argmax(half <= 1.1 * half.min())) * BATCH


def judge(values: Sequence[float] | Array, limit: float = DRIFT) -> Steadiness:
    """Find the warm-up and judge whether the remaining values have a trend.

    A trend is the drift of a fitted line over these values if two conditions hold. It exceeds `limit`, a share of the
    mean, and it exceeds what autocorrelated noise makes (|t| > 3). Single values may be far out, as in a stall, which
    is no warm-up. The medians of the warm-up and of the remaining values must therefore differ by `limit` as well.
    """
    x = np.asarray(values, dtype=np.float64)
    drop = warmup_end(x)
    if drop and not (_differs(x[:drop], x[drop:]) and _medians_differ(x[:drop], x[drop:], limit)):
        # Noise, or a stall: what would be dropped is as the rest.
        drop = 0
    if drop and drop >= len(x) // BATCH // 2 * BATCH:
        # The best truncation would go on beyond half: there is no steady part that could stand for the whole.
        return Steadiness(0, False, _trend(x)[0])
    drift, t = _trend(x[drop:])
    if len(x) - drop < FEWEST:
        return Steadiness(drop, None, drift)
    return Steadiness(drop, not (abs(drift) > limit and abs(t) > _BEYOND_NOISE), drift)


def judge_open_loop(latency: Sequence[float], arrived: Sequence[float], backlog: Sequence[float]) -> Steadiness:
    """Judge an open loop by the latency of each interval and by the growth of its backlog.

    The throughput of an open loop is the requested rate, so it tells nothing. `arrived` is the number of transactions
    that became due in each interval. `backlog` is the number that were due but not done at its end. The drift is that
    of the latency, or the growth of the backlog as a share of all arrivals, whichever is greater.
    """
    judged = judge(latency, QUEUE_DRIFT)
    rest = np.asarray(backlog[judged.drop :], dtype=np.float64)
    due = float(np.sum(arrived[judged.drop :]))
    if len(rest) < FEWEST or due <= 0:
        return judged
    drift, t = _trend(rest)
    # As a part of what became due: what the server is behind by.
    behind = drift * float(rest.mean()) / due
    if behind > BEHIND and t > _BEYOND_NOISE:
        return Steadiness(0, False, max(judged.drift, behind))
    return judged


def _differs(head: Array, rest: Array) -> bool:
    """Return True if the means differ by more than 5%, and by more than the noise of the rest explains.

    The noise estimate includes the autocorrelation of the rest.
    """
    apart = abs(float(head.mean() - rest.mean()))
    effective = autocorrelation_time(rest) * (1 / len(head) + 1 / len(rest))
    return apart > DRIFT * float(rest.mean()) and apart > 4 * float(rest.std()) * math.sqrt(effective)


def _medians_differ(head: Array, rest: Array, limit: float) -> bool:
    middle = float(np.median(rest))
    return abs(float(np.median(head)) - middle) > limit * middle


def has_settled(values: Sequence[float]) -> bool:
    """Return True if a warm-up that is still in progress may end.

    It may end if its last half has at least ten values and no trend.
    """
    window = np.asarray(values[len(values) // 2 :], dtype=np.float64)
    if len(window) < FEWEST or warmup_end(values) > len(values) // 2:
        return False
    drift, t = _trend(window)
    return abs(drift) < DRIFT / 2 or (abs(drift) < DRIFT and abs(t) < 2)


def has_trend(values: Sequence[float] | Array, limit: float) -> bool:
    """Return True if a fitted line moves by more than `limit`, a share of the mean, and by more than noise does."""
    drift, t = _trend(np.asarray(values, dtype=np.float64))
    return abs(drift) > limit and abs(t) > _BEYOND_NOISE


def _trend(x: Array) -> tuple[float, float]:
    """Return the drift of a fitted line over the series, as a share of the mean, and its t value.

    The standard error includes the autocorrelation time of the residuals.
    """
    n = len(x)
    if n < 4 or x.mean() == 0:
        return 0.0, 0.0
    at = np.arange(n) - (n - 1) / 2
    slope = float(at @ x) / float(at @ at)
    residuals = x - x.mean() - slope * at
    variance = float(residuals @ residuals) / (n - 2)
    error = math.sqrt(variance * autocorrelation_time(residuals) / float(at @ at))
    drift = slope * (n - 1) / float(x.mean())
    if error == 0:
        return drift, 0.0 if slope == 0 else math.copysign(math.inf, slope)
    return drift, slope / error
