"""Simulations that docs/math.md quotes.

The rates of false and of found changes of a level, and the coverage of the intervals of a search for capacity.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from functools import partial

import numpy as np
from pgdyno.analysis import capacity
from pgdyno.analysis.levels import level_change
from pgdyno.analysis.series import Array
from scipy.stats import norm

#: Of noise: its part of the mean, and how alike neighbours are.
NOISES = ((0.10, 0.0), (0.10, 0.5), (0.25, 0.5), (0.25, 0.9))
LENGTHS = (10, 20, 60, 300)
STEPS = (0.5, 0.9)
SPREADS = (0.003, 0.02, 0.05, 0.15, 0.3)
LAPSES = 0.02


def noise(rng: np.random.Generator, n: int, part: float, rho: float) -> Array:
    """First order autoregressive, with that standard deviation."""
    out = np.empty(n)
    out[0] = rng.normal(0, part)
    for i in range(1, n):
        out[i] = rho * out[i - 1] + rng.normal(0, part * math.sqrt(1 - rho**2))
    return out


def changes(of: tuple[float, float, int, float], times: int) -> float:
    """Return the share of series in which a change is found; they fall by `step` at a random place."""
    part, rho, n, step = of
    rng = np.random.default_rng([n, round(100 * part), round(10 * rho), round(10 * step)])
    found = 0
    for _ in range(times):
        place = int(rng.integers(max(3, n // 5), max(4, n - n // 5)))
        level = np.where(np.arange(n) < place, 1.0, 1.0 - step)
        found += level_change(np.maximum(0.0, 1000 * level * (1 + noise(rng, n, part, rho)))) is not None
    return found / times


def searched(spread: float, seed: int) -> tuple[bool, bool, float, int]:
    """Run one search.

    Return whether the intervals of the rates that half and most of the trials hold contain the truth, the width of the
    second, and the number of trials.
    """
    rng = np.random.default_rng([seed, round(1000 * spread)])
    half = 1000 * math.exp(rng.normal(0, 0.3))
    most = half * math.exp(-spread * norm.ppf(capacity.MOST_HOLD / (1 - LAPSES)))
    search = capacity.Search(capacity.objective("p99<5ms"), rng.uniform(100, 900))
    while (rate := search.next_rate()) is not None:
        holds = rng.random() > LAPSES and math.log(rate) + rng.normal(0, spread) < math.log(half)
        search.tell(capacity.Probe(rate, rate, 1e6 if holds else 9e6))
    t = search.threshold
    assert t is not None
    return t.half.low <= half <= t.half.high, t.most.low <= most <= t.most.high, t.most.width, len(search.probes)


def main() -> None:
    """Simulate and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=500)
    parser.add_argument("--searches", type=int, default=300)
    args = parser.parse_args()
    with multiprocessing.Pool() as pool:
        print(f"levels, {args.times} series each: noise, rho, intervals: seen without a step; with one of 50%, 90%")
        for part, rho in NOISES:
            cases = [(part, rho, n, step) for n in LENGTHS for step in (0.0, *STEPS)]
            seen = dict(zip(cases, pool.map(partial(changes, times=args.times), cases), strict=True))
            for n in LENGTHS:
                figures = ", ".join(f"{seen[part, rho, n, step]:.1%}" for step in (0.0, *STEPS))
                print(f"  {part:.0%}, {rho:g}, {n}: {figures}", flush=True)
        print(
            f"capacity, {args.searches} searches each, lapses of {LAPSES:.0%}: spread: intervals that hold the truth of"
        )
        print("  the rate that half of the trials hold, that 95% hold; width of the second, trials (medians)")
        for spread in SPREADS:
            found = np.array(pool.map(partial(searched, spread), range(args.searches)), dtype=float)
            of_half, of_most = found[:, 0].mean(), found[:, 1].mean()
            width, trials = np.median(found[:, 2:], axis=0)
            print(f"  {spread:g}: {of_half:.1%}, {of_most:.1%}; {width:.2f}, {trials:.0f}", flush=True)


if __name__ == "__main__":
    main()
