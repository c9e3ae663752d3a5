"""Comparison of configurations by one model: it tells whether B is faster than A.

The model covers one figure of all compared configurations. See docs/math.md, Comparing, for formulas, assumptions and
sources.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy

from pgdyno.analysis.moderated import Array, Prior, Spread, Variance, learn

#: A verdict is wrong at most so often where there is no difference: of one comparison, and of any in its table.
ALPHA, TABLE_ALPHA = 0.01, 0.05
#: The difference that matters, where nothing else is said.
MARGIN = 0.05
#: What is asked for tells of it with this probability, where the noise is not above its upper bound of this confidence.
POWER, CONFIDENCE = 0.90, 0.80
#: Of a figure: percentiles come from histograms with three digits.
RESOLUTION = 0.001
#: Repetitions: to ask for more says nothing.
_MOST = 10_000_000

#: Figures of a configuration by their unit: the number of a repetition, or of a start of the server.
Figures = Mapping[int, float]


class Verdict(Enum):
    """Outcome of a comparison."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "the same"
    UNKNOWN = "not yet known"


@dataclass(frozen=True)
class Comparison:
    """B beside A."""

    #: Units on each side that were compared.
    n_a: int
    n_b: int
    #: Geometric means of these.
    mean_a: float
    mean_b: float
    #: B / A of the means, and the interval that the verdict stands on; NaN where nothing says how far units lie apart.
    ratio: float
    low: float = math.nan
    high: float = math.nan
    #: How often such an interval holds the truth.
    level: float = 1 - ALPHA
    #: Whether units of the same number were compared with each other: run one after the other.
    paired: bool = False
    verdict: Verdict = Verdict.UNKNOWN
    #: The difference that matters.
    margin: float = MARGIN
    #: Units that both sides need besides to know: see POWER; None where that cannot be said.
    more: int | None = None

    @property
    def is_negligible(self) -> bool:
        """There is a difference, and it is not worth much."""
        return self.verdict in (Verdict.FASTER, Verdict.SLOWER) and _is_within(self.low, self.high, self.margin)


def level_for(comparisons: int) -> float:
    """Return the confidence level of each interval in a table with this number of comparisons."""
    return 1 - min(ALPHA, TABLE_ALPHA / max(1, comparisons))


def compare(
    figures: Mapping[Hashable, Figures],
    pairs: Sequence[tuple[Hashable, Hashable]],
    *,
    blocked: bool,
    higher_is_better: bool = True,
    level: float = 1 - ALPHA,
    margin: float = MARGIN,
    also: Mapping[Hashable, Sequence[Figures]] | None = None,
    shared: float = 0.0,
) -> list[Comparison]:
    """Compare one positive figure of configurations: for each pair (A, B), B with A.

    `also` holds, by A, further series of units of this pair's configuration. They only tell how far units lie apart.
    `shared` is the variance of the difference that units of a side have in common, as a ratio to the variance of one
    unit.

    `blocked` means that units of the same number ran one after the other, in an order that favours none. A drift of
    the machine then affects them alike. Differences are of logarithms, and variances are moderated over all
    configurations. The model assumes that units are independent except for their block, and that logarithms are about
    normal.
    """
    logs = {name: {u: math.log(v) for u, v in units.items()} for name, units in figures.items()}
    estimates = _blocked(logs, pairs) if blocked else _unpaired([logs[n] for pair in pairs for n in pair])
    further = {
        name: _unpaired([{u: math.log(v) for u, v in units.items()} for units in series])
        for name, series in (also or {}).items()
    }
    estimates += [v for of in further.values() for v in of]
    prior = learn(estimates) if estimates else None
    known = [further.get(a, []) for a, _ in pairs]
    return [
        _compared(logs[a], logs[b], blocked, prior, more, shared, higher_is_better, level, margin)
        for (a, b), more in zip(pairs, known, strict=True)
    ]


# -------------------------------------------------------------------- variances

_Logs = dict[Hashable, dict[int, float]]
#: What rounding to three digits adds: repetitions that are equal to the last digit are so by rounding.
_FLOOR = RESOLUTION**2 / 12


def _variance(x: Sequence[float] | Array) -> float:
    return float(np.var(x, ddof=1))


def _unpaired(logs: Sequence[dict[int, float]]) -> list[Variance]:
    # A configuration may be in several pairs.
    known = [list(x.values()) for x in {id(x): x for x in logs}.values()]
    return [Variance(max(_variance(x), _FLOOR), len(x) - 1) for x in known if len(x) > 1]


def _blocked(logs: _Logs, pairs: Sequence[tuple[Hashable, Hashable]]) -> list[Variance]:
    """Estimate the variances of configurations within their blocks.

    The estimates come from the residuals of configuration and block, over configurations that are compared with each
    other.
    """
    out = []
    parts = _connected(pairs)
    while parts:
        together = parts.pop(0)
        common = sorted(set.intersection(*(set(logs[n]) for n in together)))
        k, n = len(together), len(common)
        if n < 2:
            # One that lacks rounds must not take the others' away: by pairs then.
            parts += [[a, b] for a, b in pairs if k > 2 and a in together]
            continue
        x = np.array([[logs[name][u] for u in common] for name in together])
        if k == 2:
            # Which of the two varies cannot be told from their differences.
            out.append(Variance(max(_variance(x[1] - x[0]) / 2, _FLOOR), n - 1))
            continue
        residuals = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0, keepdims=True) + x.mean()
        degrees = (n - 1) * (k - 1) / k
        out += [Variance(max(float(r @ r) / degrees, _FLOOR), degrees) for r in residuals]
    return out


def _connected(pairs: Sequence[tuple[Hashable, Hashable]]) -> list[list[Hashable]]:
    """Group the configurations that are compared with each other, directly or through others."""
    near: dict[Hashable, list[Hashable]] = defaultdict(list)
    for a, b in pairs:
        near[a].append(b)
        near[b].append(a)
    seen: set[Hashable] = set()
    out = []
    for name in near:
        if name in seen:
            continue
        seen.add(name)
        reached = [name]
        for at in reached:
            fresh = [x for x in dict.fromkeys(near[at]) if x not in seen]
            seen.update(fresh)
            reached += fresh
        out.append(reached)
    return out


# -------------------------------------------------------------------- one pair


def _compared(
    a: dict[int, float],
    b: dict[int, float],
    blocked: bool,
    prior: Prior | None,
    further: list[Variance],
    shared: float,
    higher_is_better: bool,
    level: float,
    margin: float,
) -> Comparison:
    common = sorted(set(a) & set(b)) if blocked else []
    paired = len(common) > 1
    x, y = ([a[u] for u in common], [b[u] for u in common]) if paired else ([*a.values()], [*b.values()])
    n, m = len(x), len(y)
    mean_a, mean_b = (math.exp(math.fsum(z) / len(z)) if z else math.nan for z in (x, y))
    ratio = mean_b / mean_a if n and m else math.nan
    nothing = Comparison(n, m, mean_a, mean_b, ratio, level=level, paired=paired, margin=margin)
    if min(n, m) < 1 or prior is None or (blocked and not paired):
        # Of units that are in no common block, the variance within blocks says too little.
        return nothing
    apart = 1 / n + 1 / m
    parts = apart + shared
    if further or min(n, m) < 2:
        own = _pooled([*further, *_unpaired([a, b])], parts)
    elif paired:
        own = Variance(max(_variance(np.subtract(y, x)) / n, _FLOOR * apart), n - 1)
    else:
        va, vb = max(_variance(x), _FLOOR) / n, max(_variance(y), _FLOOR) / m
        # Satterthwaite's degrees of freedom.
        degrees = (va + vb) ** 2 / (va**2 / (n - 1) + vb**2 / (m - 1))
        own = Variance((va + vb) * parts / apart, degrees)
    spread = prior.spread(own, parts)
    half = spread.half_width(level)
    difference = math.log(ratio)
    low, high = math.exp(difference - half), math.exp(difference + half)
    verdict = verdict_of(low, high, margin, higher_is_better)
    more = _more(spread, half, n, m, paired, shared, level, margin) if verdict is Verdict.UNKNOWN else 0
    return Comparison(n, m, mean_a, mean_b, ratio, low, high, level, paired, verdict, margin, more)


def _pooled(estimates: Sequence[Variance], factor: float) -> Variance:
    """One estimate from several of the same variance, times a factor; none has no degrees of freedom."""
    degrees = sum(e.degrees for e in estimates)
    return Variance(factor * sum(e.value * e.degrees for e in estimates) / degrees if degrees else 0.0, degrees)


def _is_within(low: float, high: float, margin: float) -> bool:
    return 1 / (1 + margin) < low and high < 1 + margin


def verdict_of(low: float, high: float, margin: float, higher_is_better: bool) -> Verdict:
    """Return the verdict that an interval of the ratio gives."""
    if low > 1 or high < 1:
        return Verdict.FASTER if (low > 1) == higher_is_better else Verdict.SLOWER
    return Verdict.SAME if _is_within(low, high, margin) else Verdict.UNKNOWN


def _more(
    spread: Spread, half: float, n: int, m: int, paired: bool, shared: float, level: float, margin: float
) -> int | None:
    """Return the number of further units that each side needs.

    With them, a difference as large as the margin is detected, and so is its absence. The noise is taken at its upper
    bound, since the noise of few units may be small by chance. None means that ten million units would not be enough.
    """
    fewer = min(n, m)
    sigma = spread.upper_sigma(CONFIDENCE) / math.sqrt(1 / n + 1 / m + shared)
    typical = math.sqrt(float(np.sum(spread.weights * spread.variances)))
    both_sides = float(scipy.special.ndtri(1 - (1 - POWER) / 2))

    def would_tell(units: int) -> bool:
        degrees = max(1, units - 1 if paired else 2 * units - 2)
        # Not above what this table knows already.
        quantile = min(float(scipy.special.stdtrit(degrees, (1 + level) / 2)), half / typical)
        return (quantile + both_sides) * sigma * math.sqrt(2 / units + shared) <= math.log1p(margin)

    high = max(2, fewer + 1)
    while not would_tell(high):
        high *= 2
        if high > _MOST:
            return None
    low = fewer
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if would_tell(middle) else (middle, high)
    return high - fewer
