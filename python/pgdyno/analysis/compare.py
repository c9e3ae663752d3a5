"""Is B faster than A? Formulas, assumptions and sources: docs/math.md, Comparing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

import numpy as np
from scipy import special

#: A verdict is wrong at most so often where there is no difference.
ALPHA = 0.01
#: The difference that repetitions are recommended for, and with which probability they show it.
WORTH, POWER = 0.05, 0.90
#: Fewer on a side say nothing about how far equal runs lie apart.
FEWEST = 3
_MOST = 500
#: Of a figure: percentiles come from histograms with three digits.
RESOLUTION = 0.001


class Verdict(Enum):
    """What a comparison came to."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no difference shown"
    UNCLEAR = "cannot tell"


@dataclass(frozen=True)
class Comparison:
    """B beside A, by a figure of each repetition."""

    n_a: int
    n_b: int
    mean_a: float
    mean_b: float
    #: B / A, of geometric means, and its 99% confidence interval; NaN where repetitions are too few.
    ratio: float
    low: float
    high: float
    #: Probability of such a difference, or a larger one, if there were none; corrected for the number of comparisons.
    p: float
    #: Hedges' g: the difference in standard deviations of a repetition.
    effect: float
    #: Whether repetitions were compared in pairs that were run one after the other.
    paired: bool
    verdict: Verdict
    #: Standard deviation of a repetition's logarithm.
    sigma: float = math.nan
    #: How many comparisons are made together.
    comparisons: int = 1

    @property
    def needed(self) -> int | None:
        """Repetitions on each side that would show a difference of 5% with a probability of 90%, and of a smaller one
        that it is none of 5%; None: more than 500.
        """
        n = repetitions_needed(self.sigma, paired=self.paired, comparisons=self.comparisons)
        # So many would have told of 5%: what is left to tell is that it is less.
        margin = math.log1p(WORTH) - abs(math.log(self.ratio))
        if n is None or n > min(self.n_a, self.n_b) or margin <= 0:
            return n
        half = math.log(self.high / self.low) / 2
        more = math.ceil(min(self.n_a, self.n_b) * max(1.1, (half / margin) ** 2))
        return more if more <= _MOST else None


def compare(
    a: Sequence[float], b: Sequence[float], *, paired: bool = False, higher_is_better: bool = True
) -> Comparison:
    """Compares figures of repetitions, each of a trial of its own; all positive. With `paired`, a[i] and b[i] were run
    one after the other, so that a drift of the machine meets both.

    Differences are of logarithms, by Student's t test, Welch's unless paired. Assumes that repetitions are independent
    and the logarithms about normal.
    """
    x, y = np.log(np.asarray(a, dtype=np.float64)), np.log(np.asarray(b, dtype=np.float64))
    n, m = len(x), len(y)
    paired = paired and n == m
    mean_a, mean_b = (float(np.exp(z.mean())) if len(z) else math.nan for z in (x, y))
    difference = float(y.mean() - x.mean()) if n and m else math.nan
    if min(n, m) < 2:
        nothing = math.nan
        return Comparison(
            n, m, mean_a, mean_b, math.exp(difference), nothing, nothing, nothing, nothing, paired, Verdict.UNCLEAR
        )
    if paired:
        d = y - x
        sigma = float(d.std(ddof=1)) / math.sqrt(2)
        error, degrees = float(d.std(ddof=1)) / math.sqrt(n), float(n - 1)
    else:
        va, vb = float(x.var(ddof=1)) / n, float(y.var(ddof=1)) / m
        sigma = math.sqrt((n * va + m * vb) / 2)
        error = math.sqrt(va + vb)
        degrees = (va + vb) ** 2 / (va**2 / (n - 1) + vb**2 / (m - 1)) if va + vb > 0 else float(n + m - 2)
    # Figures have three digits: repetitions that are equal to the last one are so by rounding.
    floor = RESOLUTION / math.sqrt(12)
    sigma, error = max(sigma, floor), max(error, floor * math.sqrt(1 / n + 1 / m))
    p = float(2 * special.stdtr(degrees, -abs(difference) / error))
    half = float(special.stdtrit(degrees, 1 - ALPHA / 2)) * error
    spread = math.sqrt((float(x.var(ddof=1)) * (n - 1) + float(y.var(ddof=1)) * (m - 1)) / (n + m - 2))
    correction = 1 - 3 / (4 * (n + m) - 9) if n + m > 3 else 1.0
    effect = (
        difference / spread * correction if spread > 0 else math.copysign(math.inf, difference) if difference else 0.0
    )
    found = Comparison(
        n_a=n,
        n_b=m,
        mean_a=mean_a,
        mean_b=mean_b,
        ratio=math.exp(difference),
        low=math.exp(difference - half),
        high=math.exp(difference + half),
        p=p,
        effect=effect,
        paired=paired,
        verdict=Verdict.UNCLEAR,
        sigma=sigma,
    )
    return replace(found, verdict=_verdict(found, higher_is_better))


def corrected(comparisons: Sequence[Comparison], *, higher_is_better: Sequence[bool]) -> list[Comparison]:
    """The same with p values, and so verdicts, corrected for their number (Holm 1979): with many comparisons some would
    look significant by chance.
    """
    order = sorted(range(len(comparisons)), key=lambda i: (math.isnan(comparisons[i].p), comparisons[i].p))
    counted = sum(not math.isnan(c.p) for c in comparisons)
    out, highest = list(comparisons), 0.0
    for rank, i in enumerate(order):
        c = comparisons[i]
        if math.isnan(c.p):
            continue
        highest = max(highest, min(1.0, c.p * (counted - rank)))
        c = replace(c, p=highest, comparisons=counted)
        out[i] = replace(c, verdict=_verdict(c, higher_is_better[i]))
    return out


def _verdict(c: Comparison, higher_is_better: bool) -> Verdict:
    if min(c.n_a, c.n_b) < FEWEST:
        return Verdict.UNCLEAR
    if c.p < ALPHA:
        return Verdict.FASTER if (c.ratio > 1) == higher_is_better else Verdict.SLOWER
    # A difference that matters would have been seen.
    narrow = 1 / (1 + WORTH) < c.low <= 1 <= c.high < 1 + WORTH
    return Verdict.SAME if narrow else Verdict.UNCLEAR


@lru_cache(maxsize=4096)
def _power(n: int, ratio: float, paired: bool, alpha: float) -> float:
    """Probability that n repetitions show a difference of `ratio` standard deviations of a repetition."""
    degrees = n - 1 if paired else 2 * n - 2
    critical = float(special.stdtrit(degrees, 1 - alpha / 2))
    shift = ratio * math.sqrt(n / 2)
    # The other tail, a difference of the wrong sign, adds nothing worth counting.
    power = 1.0 - float(special.nctdtr(degrees, shift, critical))
    if math.isfinite(power):
        return power
    # The noncentral distribution is not computable far out.
    return 1.0 if shift > 3 * critical else 0.0


def repetitions_needed(sigma: float, *, paired: bool, worth: float = WORTH, comparisons: int = 1) -> int | None:
    """Repetitions on each side that show a difference of `worth` with POWER, where a repetition's logarithm has the
    standard deviation `sigma` and so many comparisons are corrected for; None: more than 500.
    """
    alpha = ALPHA / comparisons
    if not math.isfinite(sigma):
        return None
    ratio = round(math.log1p(worth) / max(sigma, 1e-6), 3)
    z = float(special.ndtri(1 - alpha / 2) + special.ndtri(POWER))
    # By the normal distribution, which asks for fewer; from there on upwards.
    n = max(FEWEST, math.floor(2 * (z / ratio) ** 2))
    while n <= _MOST and _power(n, ratio, paired, alpha) < POWER:
        n += 1
    return n if n <= _MOST else None
