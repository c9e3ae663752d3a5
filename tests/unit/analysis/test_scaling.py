"""The fit of the Universal Scalability Law, held against scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pgdyno.analysis import scaling
from pgdyno.analysis.series import Array
from scipy import optimize


def _sum_of_squares(n: Array, x: Array, law: tuple[float, float, float]) -> float:
    return float(((np.log(x) - np.log(scaling.usl(n, *law))) ** 2).sum())


def _by_scipy(n: Array, x: Array) -> float:
    scale = float(n.max()) ** 2

    def residuals(p: Array) -> Array:
        law = math.exp(p[0]), float(p[1]), float(p[2]) / scale
        return np.asarray(np.log(x) - np.log(scaling.usl(n, *law)))

    first = math.log(float(x[np.argmin(n)] / n.min()))
    bounds = ([-np.inf, 0.0, 0.0], [np.inf, 1.0, np.inf])
    starts = [(0.01, 0.1), (0.1, 1.0), (0.5, 0.01)]
    return min(
        2 * float(optimize.least_squares(residuals, [first, *s], bounds=bounds, xtol=1e-12, ftol=1e-12).cost)
        for s in starts
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_fit_leaves_no_more_than_scipys(seed: int) -> None:
    """Random laws, levels and noise, also laws at the bounds and throughputs that follow no law."""
    rng = np.random.default_rng(seed)
    n = np.repeat(np.unique(rng.integers(1, 4 ** rng.integers(2, 7), rng.integers(5, 40))), rng.integers(1, 4))
    n = n.astype(np.float64) if len(set(n)) >= 4 else np.array([1.0, 2, 4, 8, 16])
    sigma = float(rng.choice([0.0, 10 ** rng.uniform(-4, 0), 1.0]))
    kappa = float(rng.choice([0.0, 10 ** rng.uniform(-7, -1)]))
    x = scaling.usl(n, 10 ** rng.uniform(1, 5), sigma, kappa) * np.exp(
        rng.normal(0, rng.choice([0, 0.02, 0.5]), len(n))
    )
    ours, theirs = _sum_of_squares(n, x, scaling._fitted(n, x)), _by_scipy(n, x)
    assert ours <= theirs * (1 + 1e-6) + 1e-15, f"seed {seed}: {ours} for {theirs}"
