"""Dips that follow each other regularly, and such that only seem to."""

from __future__ import annotations

import numpy as np
import pytest
from pgdyno.diagnosis import dips


@pytest.mark.parametrize("n", [4, 5, 8])
def test_the_time_between_regular_dips(n: int) -> None:
    rng = np.random.default_rng(n)

    def at(seconds: object) -> list[dips.Dip]:
        starts = np.sort(np.asarray(seconds, dtype=float))
        return [dips.Dip(int(s * 1e9), int(s * 1e9) + 500_000_000, 0.9) for s in starts]

    # Each is seen at the begin of an interval of half a second.
    regular = [dips.period_s(at(3 + 10 * np.arange(n) + rng.uniform(-0.25, 0.25, n))) for _ in range(200)]
    assert all(p is not None and abs(p - 10) < 0.3 for p in regular)
    named = sum(dips.period_s(at(rng.uniform(0, 60, n))) is not None for _ in range(2000))
    assert named <= 40
