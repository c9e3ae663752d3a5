"""Trials that one figure does not describe: a throughput with two levels, or that stands still."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from pgdyno.analysis.levels import level_change
from pgdyno.figures import BY_NAME, is_known
from pgdyno.judge.axes import along_axes
from pgdyno.judge.groups import groups_of
from pgdyno.model import Caveat
from pgdyno.report import view
from pgdyno.run.steadiness import regimes_of, without_warmup
from pgdyno.store import reading

from tests.support import synthetic
from tests.support.synthetic import row
from tests.unit.test_bending import trial
from tests.unit.test_judging import ar1


@pytest.mark.parametrize("seed", range(40))
def test_a_step_is_found_where_it_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 400))
    at = int(rng.integers(max(4, n // 10), n - max(4, n // 10)))
    factor = float(rng.choice([0.002, 0.1, 0.5, 0.7, 1.5, 3.0]))
    x = 1000 * np.where(np.arange(n) < at, 1.0, factor) * (1 + rng.normal(0, 0.03, n))
    found = level_change(x)
    assert found is not None and abs(found.index - at) <= 1, (n, at, factor)
    assert found.after / found.before == pytest.approx(factor, rel=0.1)


def test_noise_drifts_dips_and_small_steps_are_none() -> None:
    rng = np.random.default_rng(7)
    false = 0
    for _ in range(200):
        n = int(rng.integers(6, 300))
        false += level_change(100 + ar1(rng, n, float(rng.choice([0.0, 0.5])), 10.0)) is not None
    assert false <= 3
    line = np.linspace(50, 100, 100) + rng.normal(0, 2, 100)
    dip = np.where(abs(np.arange(60) - 30) < 4, 300.0, 1000.0) + rng.normal(0, 10, 60)
    small = np.where(np.arange(60) < 30, 1000.0, 850.0) + rng.normal(0, 10, 60)
    spike = np.where(np.arange(60) < 3, 9000.0, 1000.0) + rng.normal(0, 10, 60)
    assert [level_change(x) for x in (line, dip, small)] == [None] * 3
    assert level_change(spike[:2]) is None and level_change([]) is None and level_change([0.0] * 30) is None
    assert level_change([5.0] * 30) is None


def test_a_fall_is_no_warm_up_and_a_rise_is() -> None:
    rng = random.Random(1)

    def judged(rates: list[float]):  # type: ignore[no-untyped-def]
        rows = [row(i, 1.0, rate, 200_000) for i, rate in enumerate(rates)]
        return without_warmup(trial(rows), rows, Path("none.hlog")).summary

    fell = judged([3000 + rng.gauss(0, 50) for _ in range(6)] + [6 + rng.gauss(0, 0.5) for _ in range(24)])
    assert fell.warmup_dropped_s == 0 and fell.tps_half_width is None
    assert fell.regimes is not None and fell.regimes.change_at_s == 6
    assert fell.regimes.before_tps == pytest.approx(3000, rel=0.05) and fell.regimes.after_tps < 8
    rose = judged([300 + rng.gauss(0, 5) for _ in range(10)] + [3000 + rng.gauss(0, 30) for _ in range(50)])
    assert 10 <= rose.warmup_dropped_s <= 20 and rose.regimes is None


@pytest.mark.parametrize(
    ("idle", "n", "latency_ns", "expected"),
    [
        (range(20, 23), 60, 1e6, (3.0, 20.0)),
        (range(57, 60), 60, 1e6, (3.0, 57.0)),
        # As long as 20 transactions take, or a small part of hours.
        (range(20, 23), 60, 200e6, None),
        (range(20, 23), 600, 1e6, None),
        # Two seconds in two places are not four.
        ([5, 6, 9, 10, 11, 12], 60, 1e6, (4.0, 9.0)),
    ],
)
def test_a_time_without_a_commit(
    idle: range | list[int], n: int, latency_ns: float, expected: tuple[float, float] | None
) -> None:
    rng = random.Random(2)
    rows = [row(i, 1.0, 0.0 if i in idle else 1000 + rng.gauss(0, 10), 200_000) for i in range(n)]
    found = regimes_of(rows, latency_ns)
    assert (None if found is None else (found.stall_s, found.stall_at_s)) == expected
    # Of an open loop in which nothing was due nothing stood still.
    if 57 not in idle:
        assert regimes_of(rows, latency_ns, open_loop=True) is None


def test_such_a_trial_is_named_first_and_is_in_no_verdict(tmp_path: Path) -> None:
    plans = synthetic.plans([8], 5, setting=["on", "off"])
    broken = {p.number for p in plans if p.varied["setting"] == "off" and p.repetition <= 2}

    def tps(plan, i: int, rng: random.Random) -> float:  # type: ignore[no-untyped-def]
        level = 6 if plan.number in broken and i >= 8 else 1000
        return level * rng.uniform(0.99, 1.01)

    data = reading.read(synthetic.make_run(tmp_path, plans, tps))
    groups = groups_of(data)
    rows = along_axes(data, groups).rows
    assert next(r for r in rows if r.figure.name == "TPS").comparison.n_b == 3
    seen = view.build(data, with_charts=False)
    assert "no one figure holds: throughput fell from 1,0" in seen.answer[0] and "(2 of 5 trials)" in seen.answer[0]
    detail = seen.table("detail")
    assert detail is not None
    p99 = detail.columns.index("p99 ms")
    assert [str(r[p99]) == "–" for r in detail.cells] == [g.variant == "off" for g in groups]
    assert all((Caveat.NO_ONE_LEVEL in t.caveats) == (t.plan.number in broken) for t in data.trials)


def test_a_percentile_needs_values_beyond_it() -> None:
    known = {count: [name for name in ("p50", "p95", "p99", "p99.9") if is_known(count, BY_NAME[name])]
             for count in (1, 19, 20, 99, 100, 999, 1000)}  # fmt: skip
    assert known[1] == ["p50"] and known[19] == ["p50"] and known[20] == ["p50", "p95"]
    assert known[99] == ["p50", "p95"] and known[100] == ["p50", "p95", "p99"] == known[999]
    assert known[1000] == ["p50", "p95", "p99", "p99.9"]
