"""Estimates against scipy and against plain arithmetic."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno.analysis.spread import estimate, student_975
from scipy import stats


@pytest.mark.parametrize("degrees", [*range(1, 31), 31, 40, 60, 120, 1000])
def test_student_quantiles_agree_with_scipy(degrees: int) -> None:
    assert student_975(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=5e-4)


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=30))
def test_the_interval_is_scipys(values: list[float]) -> None:
    e = estimate(values)
    assert e.n == len(values) and e.minimum == min(values) and e.maximum == max(values)
    assert e.median == statistics.median(values)
    assert e.half_width is not None
    sem = stats.sem(values)
    assert e.half_width == pytest.approx(stats.t.ppf(0.975, e.n - 1) * sem, rel=1e-3, abs=1e-6)


def test_one_value_has_no_spread_and_none_is_no_number() -> None:
    assert estimate([5.0]).half_width is None and estimate([5.0]).spread is None
    assert math.isnan(estimate([]).median)
    assert estimate([9.0, 10.0, 12.0]).spread == pytest.approx(0.3)


def test_the_confidence_interval_covers_the_truth() -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(2000):
        e = estimate(list(rng.normal(100, 10, 5)))
        assert e.half_width is not None
        hits += abs(e.mean - 100) <= e.half_width
    # 95% of 2,000 with a standard error of 0.5%.
    assert 0.93 < hits / 2000 < 0.97
