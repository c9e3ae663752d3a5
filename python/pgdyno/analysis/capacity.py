"""Search for the highest rate that a server sustains under a latency objective.

It tries the rates at which the outcome of a trial tells most about the threshold, by Bayes' rule (Kontsevich and Tyler
1999). See docs/math.md, Capacity.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist

import numpy as np
import scipy

from pgdyno.analysis.series import Array

#: A rate is sustained when so much of what became due was done in time.
SUSTAINED = 0.98
#: Of the intervals that are given.
LEVEL = 0.95
#: How wide they may be for the search to end, highest by lowest: of the rate that half of the trials hold, and of the
#: one that most of them hold.
_NARROW, _NARROW_MOST = 1.08, 1.2
#: Trials at least and at most; and at most where the interval of the rate that most hold is as wide as this.
_FEWEST, _MOST, _MOST_UNDECIDED, _UNDECIDED = 8, 32, 64, 1.5
#: Of the trials, lapses among them, those that "most" is.
MOST_HOLD = 0.95
_STEP = 2.0
#: How often a trial is no sign of its rate: a checkpoint, a neighbour.
_LAPSE = 0.03
#: In standard deviations below the rate that half of the trials hold: the one that most of them hold.
_MARGIN = NormalDist().inv_cdf((MOST_HOLD - _LAPSE) / (1 - 2 * _LAPSE))
#: Standard deviations, of the logarithm of the rate, with which trials of one rate may lie about the threshold.
_SPREADS = np.geomspace(0.003, 0.4, 14)
#: Of the threshold's logarithm: how fine, and how far beyond what was tried.
_FINE, _BEYOND = 0.004, 1.0
#: A rate that failed and a higher one that held, by so much, are worth a word.
_CONTRADICTION = 1.1
_UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9}
_OBJECTIVE = re.compile(r"^\s*(p50|p95|p99|p99\.9|mean|max)\s*<=?\s*(\d+(?:\.\d+)?)\s*(us|ms|s)\s*$")


@dataclass(frozen=True)
class Objective:
    """A latency objective: a figure of the distribution, and what it must stay below."""

    figure: str
    below_ns: float

    def __str__(self) -> str:
        return f"{self.figure} < {self.below_ns / 1e6:g} ms"


def objective(text: str) -> Objective:
    """Parse an objective such as "p99<5ms".

    Raise ValueError if the text is not a latency objective.
    """
    match = _OBJECTIVE.match(text)
    if match is None:
        raise ValueError(
            f'"{text}" is not a latency objective: write it as p99<5ms (p50, p95, p99, p99.9, mean, max; us, ms, s)'
        )
    return Objective(match[1], float(match[2]) * _UNITS[match[3]])


@dataclass(frozen=True)
class Probe:
    """Outcome of a trial at one rate."""

    rate: float
    #: Transactions per second that were done.
    done: float
    latency_ns: float
    #: Whether what became due was done: of Poisson arrivals another number each time, so not of the rate.
    kept_up: bool = True

    def holds(self, wanted: Objective) -> bool:
        """Return True if the rate was sustained within the objective."""
        return self.kept_up and self.latency_ns < wanted.below_ns


@dataclass(frozen=True)
class Rate:
    """A rate, with its interval."""

    rate: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Highest by lowest."""
        return self.high / self.low


@dataclass(frozen=True)
class Threshold:
    """Estimates of the two rates that a search looks for."""

    #: That half of the trials hold.
    half: Rate
    #: That 95% of them hold.
    most: Rate
    #: Standard deviation of the logarithm of the rate at which a trial would just hold.
    spread: float


@dataclass
class Search:
    """Asks for rates, is told what came of them, and estimates the threshold from all of them.

    `start` is a first guess, such as half of what a closed loop reaches. Doubles or halves it until one rate has held
    and another has not. The chance to hold falls as a normal distribution of the rate's logarithm, whose width is not
    known, but for lapses. Assumes that the server is the same throughout.
    """

    objective: Objective
    start: float
    most_trials: int = _MOST
    probes: list[Probe] = field(default_factory=list)
    _outcomes: list[tuple[float, bool]] = field(default_factory=list)

    def next_rate(self) -> float | None:
        """Return the rate to try next, or None if the search is over."""
        held = [r for r, yes in self._outcomes if yes]
        failed = [r for r, yes in self._outcomes if not yes]
        if self.is_narrow or len(self._outcomes) >= self._trials_at_most:
            return None
        if not failed:
            return max(held, default=self.start / _STEP) * _STEP
        if not held:
            # Nothing holds: not even a thousandth of the guess would be an answer.
            return min(failed) / _STEP if min(failed) / _STEP > self.start / 1000 else None
        return self._most_telling()

    def tell(self, probe: Probe) -> None:
        """Record the outcome of the trial at the requested rate."""
        self.probes.append(probe)
        self._outcomes.append((probe.rate, probe.holds(self.objective)))
        self.__dict__.pop("_posterior", None)

    @property
    def threshold(self) -> Threshold | None:
        """Estimates of the rates found so far, or None if no rate held or none failed."""
        if {yes for _, yes in self._outcomes} != {True, False}:
            return None
        grid, posterior = self._posterior
        spread = float(np.exp(posterior.sum(axis=0) @ np.log(_SPREADS)))
        everywhere = np.broadcast_to(grid[:, None], posterior.shape)
        return Threshold(_rate(everywhere, posterior), _rate(_most(grid), posterior), spread)

    @property
    def is_narrow(self) -> bool:
        """Return True if the interval is so narrow that further trials are not worth their time."""
        t = self.threshold
        return (
            t is not None
            and len(self._outcomes) >= _FEWEST
            and t.half.width <= _NARROW
            and t.most.width <= _NARROW_MOST
        )

    @property
    def _trials_at_most(self) -> int:
        """More where what is asked for is still undecided."""
        t = self.threshold
        is_undecided = t is not None and t.most.width > _UNDECIDED
        return self.most_trials * (_MOST_UNDECIDED // _MOST) if is_undecided else self.most_trials

    @property
    def contradiction(self) -> tuple[float, float] | None:
        """A rate that failed, and a higher one that held, the farthest apart; None where all is as it should be."""
        pairs = [(a, b) for a, yes in self._outcomes if not yes for b, held in self._outcomes if held and b > a]
        worst = max(pairs, key=lambda p: p[1] / p[0], default=None)
        return worst if worst is not None and worst[1] / worst[0] > _CONTRADICTION else None

    @cached_property
    def _posterior(self) -> tuple[Array, Array]:
        """Logarithms of thresholds; and the probability of each with each of the spreads."""
        tried = np.log([r for r, _ in self._outcomes])
        grid = np.arange(tried.min() - _BEYOND, tried.max() + _BEYOND, _FINE)
        # Wide spreads are somewhat more likely than narrow ones: few trials look as if they lay closer than they do.
        logs = np.zeros((len(grid), len(_SPREADS))) + 0.5 * np.log(_SPREADS)
        for rate, yes in self._outcomes:
            logs += np.log(_chance(grid, math.log(rate)) if yes else 1 - _chance(grid, math.log(rate)))
        weights = np.exp(logs - logs.max())
        return grid, weights / weights.sum()

    def _most_telling(self) -> float:
        """Return the candidate rate at which a trial is expected to tell most about the two rates.

        A trial at this rate should leave the smallest variance of the logarithms of the two rates. They are the rate
        that half of the trials hold and the rate that most of them hold.
        """
        grid, posterior = self._posterior
        below = np.cumsum(posterior.sum(axis=1))
        candidates = [float(np.interp(p, below, grid)) for p in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)]

        asked = (grid[:, None], _most(grid))

        def unknown_after(at: float) -> float:
            chance, total = _chance(grid, at), 0.0
            for weight in (posterior * chance, posterior * (1 - chance)):
                p = float(weight.sum())
                for what in asked:
                    mean = float((weight * what).sum()) / p
                    total += float((weight * (what - mean) ** 2).sum())
            return total

        return math.exp(min(candidates, key=unknown_after))


def _most(grid: Array) -> Array:
    """Return the logarithm of the rate that most of the trials hold, by threshold and spread."""
    return np.asarray(grid[:, None] - _MARGIN * _SPREADS[None, :])


def _rate(logarithms: Array, weights: Array) -> Rate:
    """Return the median rate with its interval."""
    order = np.argsort(logarithms, axis=None)
    below, values = np.cumsum(weights.ravel()[order]), logarithms.ravel()[order]
    tail = (1 - LEVEL) / 2
    middle, low, high = (float(np.exp(np.interp(p, below, values))) for p in (0.5, tail, 1 - tail))
    return Rate(middle, low, high)


def _chance(grid: Array, at: float) -> Array:
    """Return the probability that a trial at the rate `at` holds, by threshold and spread."""
    return np.asarray(_LAPSE + (1 - 2 * _LAPSE) * scipy.special.ndtr((grid[:, None] - at) / _SPREADS[None, :]))


#: Of a percentile: values that should lie beyond it in each trial; and seconds of a trial, at least and at most.
_VALUES_BEYOND, _SHORTEST_S, _LONGEST_S = 20, 5.0, 60.0
_SHARE_BEYOND = {"p50": 0.5, "p95": 0.05, "p99": 0.01, "p99.9": 0.001, "mean": 0.05, "max": 0.001}


def seconds_for(wanted: Objective, rate: float, shortest_s: float | None = None) -> float:
    """Return the seconds that a trial at a rate needs for a meaningful figure of the objective and for warm caches."""
    needed = _VALUES_BEYOND / _SHARE_BEYOND[wanted.figure] / rate
    return min(max(needed, shortest_s or _SHORTEST_S), max(_LONGEST_S, shortest_s or 0.0))
