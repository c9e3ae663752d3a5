"""Judge throughput that other tools measured: one level, steady, long enough; and one side against another."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pgdyno.analysis import series, steady
from pgdyno.analysis.compare import Comparison, compare
from pgdyno.analysis.levels import LevelChange, level_change
from pgdyno.analysis.series import SeriesMean
from pgdyno.analysis.steady import Steadiness
from pgdyno.judge.logs import Measured

#: Half a 95% interval, as a part of the mean, that a run is long enough for.
PRECISION = 0.01
#: Runs on each side from which on their own spread tells how far runs lie apart.
RUNS = 3


@dataclass(frozen=True)
class Judged:
    """A series, and what can be said of it."""

    measured: Measured
    steadiness: Steadiness
    #: The step, if there are two levels.
    change: LevelChange | None
    #: Mean after the warm-up, with its interval.
    mean: SeriesMean
    precision: float

    @property
    def seconds(self) -> float:
        """Length of the series."""
        return len(self.measured.values) * self.measured.period_s

    @property
    def warmup_s(self) -> float:
        """Length of the warm-up that is left out."""
        return self.steadiness.drop * self.measured.period_s

    @property
    def relative(self) -> float | None:
        """Half the 95% interval as a part of the mean; None: too few values, or more than one level."""
        if self.mean.half_width is None or not self.mean.mean > 0 or not self.is_one_figure:
            return None
        return self.mean.half_width / self.mean.mean

    @property
    def is_one_figure(self) -> bool:
        """One figure can stand for the series: no step, and no trend that is seen."""
        return self.change is None and self.steadiness.steady is not False

    @property
    def enough_s(self) -> float | None:
        """Seconds after the warm-up that would give an interval of the wanted precision; None: not known.

        The width falls with the root of the length: neighbours are as alike as in this series.
        """
        if self.relative is None:
            return None
        return self.mean.n * self.measured.period_s * (self.relative / self.precision) ** 2

    @property
    def is_enough(self) -> bool:
        """The interval is as narrow as wanted."""
        return self.relative is not None and self.relative <= self.precision


def judge(measured: Measured, precision: float = PRECISION) -> Judged:
    """Judge one series."""
    steadiness = steady.judge(measured.values)
    rest = measured.values[steadiness.drop :]
    return Judged(measured, steadiness, level_change(rest), series.mean_of(rest), precision)


@dataclass(frozen=True)
class Sides:
    """B against A."""

    #: Mean of B by that of A, with its 95% interval.
    ratio: float
    low: float
    high: float
    #: The interval holds how far runs lie apart; else only the noise within the runs.
    is_between_runs: bool


def against(a: Sequence[Judged], b: Sequence[Judged]) -> Sides | None:
    """Compare two sides; None where a side has no figure, or its unit is another.

    With three runs a side, the spread of the runs decides. With fewer, the interval is that within the runs alone.
    """
    units = {j.measured.unit for j in (*a, *b)}
    if len(units) != 1 or any(not j.is_one_figure or not j.mean.mean > 0 for j in (*a, *b)):
        return None
    if min(len(a), len(b)) >= RUNS:
        figures: dict[Hashable, dict[int, float]] = {
            side: {n: j.mean.mean for n, j in enumerate(runs)} for side, runs in (("a", a), ("b", b))
        }
        found: Comparison = compare(figures, [("a", "b")], blocked=False)[0]
        return Sides(found.ratio, found.low, found.high, is_between_runs=True)
    if any(j.relative is None for j in (*a, *b)):
        return None
    means = [sum(j.mean.mean for j in runs) / len(runs) for runs in (a, b)]
    error = math.sqrt(sum(sum((j.relative or 0.0) ** 2 for j in runs) / len(runs) ** 2 for runs in (a, b)))
    ratio = means[1] / means[0]
    return Sides(ratio, ratio * math.exp(-error), ratio * math.exp(error), is_between_runs=False)


def rises(runs: Sequence[Judged]) -> float | None:
    """Return the change from the first run to the last, if each is above the one before; None else, or below three.

    Of equal runs three lie in that order in one of six cases: it is a hint, no proof.
    """
    means = [j.mean.mean for j in runs]
    if len(means) < RUNS or not all(y > x for x, y in pairwise(means)):
        return None
    return means[-1] / means[0] - 1
