"""The statistics against the truth: series whose means, changes and differences are known, and slow references."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgdyno import i18n
from pgdyno.analysis import capacity, changepoints, scaling, series, steady
from pgdyno.analysis.compare import Verdict, compare
from pgdyno.cli import compare as cli_compare
from pgdyno.cli import judge
from pgdyno.errors import UsageError
from pgdyno.judge import history, runs
from pgdyno.judge import scaling as laws
from pgdyno.judge.siblings import siblings
from pgdyno.message import message
from pgdyno.model import Caveat, TrialPlan
from pgdyno.store import reading
from scipy.stats import norm

from tests.support import reports, synthetic
from tests.support.tells import telling, tells

Array = np.ndarray


def ar1(rng: np.random.Generator, n: int, rho: float, sigma: float = 1.0) -> Array:
    """A series whose neighbours have the correlation rho."""
    noise = rng.normal(0, sigma * math.sqrt(1 - rho**2), n)
    out = np.empty(n)
    out[0] = rng.normal(0, sigma)
    for i in range(1, n):
        out[i] = rho * out[i - 1] + noise[i]
    return out


# ---------------------------------------------------------------- series


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_autocorrelation_time_is_that_of_the_process(rho: float) -> None:
    rng = np.random.default_rng(5)
    found = np.mean([series.autocorrelation_time(ar1(rng, 2000, rho)) for _ in range(20)])
    # Of an AR(1): (1 + rho) / (1 - rho).
    assert found == pytest.approx((1 + rho) / (1 - rho), rel=0.2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("n", "rho", "least"),
    # Nominally 0.95; short series know their autocorrelation only roughly. As docs/math.md has it.
    [
        (20, 0.0, 0.94),
        (20, 0.5, 0.93),
        (20, 0.8, 0.91),
        (20, 0.9, 0.86),
        (60, 0.5, 0.94),
        (60, 0.8, 0.94),
        (200, 0.0, 0.94),
        (200, 0.6, 0.94),
        (200, 0.9, 0.94),
    ],
)
def test_the_interval_of_a_mean_holds_the_truth(n: int, rho: float, least: float) -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(600):
        found = series.mean_of(100 + ar1(rng, n, rho, 5.0))
        assert found.half_width is not None
        hits += abs(found.mean - 100) <= found.half_width
    assert hits / 600 > least


@pytest.mark.slow
def test_a_mean_among_slow_noise_agrees_with_the_stretch_behind_it() -> None:
    """Noise at all scales, as machines have it: a sum of such as falls off in 1, 4, 16 ... 1,024 intervals."""
    rng = np.random.default_rng(9)
    slow = sum((ar1(rng, 12_000, math.exp(-1 / 4**k)) for k in range(6)), np.zeros(12_000))
    for n in (20, 40, 100, 400):
        parts = [series.mean_of(100 + slow[i : i + n]) for i in range(0, len(slow) - n + 1, n)]
        agree = [
            abs(a.mean - b.mean) <= math.hypot(a.half_width or 0, b.half_width or 0)
            for a, b in itertools.pairwise(parts)
        ]
        assert np.mean(agree) > (0.92 if len(agree) > 100 else 0.85), n


def test_ignoring_autocorrelation_would_lie() -> None:
    rng = np.random.default_rng(8)
    x = 100 + ar1(rng, 200, 0.9, 5.0)
    naive = 1.96 * float(x.std(ddof=1)) / math.sqrt(len(x))
    half = series.mean_of(x).half_width
    assert half is not None and half > 2 * naive


@pytest.mark.parametrize("n", [100, 101, 119, 120, 595, 1000])
def test_every_value_of_a_long_series_counts(n: int) -> None:
    rng = np.random.default_rng(10)
    x = rng.normal(100, 1, n)
    for at in (0, n - 1):
        stalled = x.copy()
        stalled[at] = 0
        found = series.mean_of(stalled)
        assert found.half_width is not None and abs(found.mean - 100) < found.half_width, at
    # What is alike when neighbours are taken together, and what happened once.
    for odd in ([100.0] + [0.0] * (n - 1), [10.0, 0.0] * (n // 2)):
        found = series.mean_of(odd)
        assert found.half_width is not None and math.isfinite(found.half_width)
    assert series.mean_of([7.0] * n).half_width == 0


def test_short_and_constant_series() -> None:
    assert series.mean_of([]).n == 0
    assert series.mean_of([5.0]).half_width is None
    assert series.mean_of([5.0] * 19).half_width is None, "too few to know how alike neighbours are"
    assert series.mean_of([5.0] * 20).half_width == 0
    assert series.autocorrelation_time([1.0, 2.0]) == 1


# ---------------------------------------------------------------- steady state


def naive_mser(x: list[float]) -> int:
    """As the paper has it, without prefix sums."""
    batches = [sum(x[i * 5 : i * 5 + 5]) / 5 for i in range(len(x) // 5)]
    errors = []
    for d in range(len(batches) // 2 + 1):
        rest = batches[d:]
        mean = sum(rest) / len(rest)
        errors.append(sum((b - mean) ** 2 for b in rest) / len(rest) ** 2)
    return 5 * next(d for d, e in enumerate(errors) if e <= 1.1 * min(errors))


@given(st.lists(st.floats(1, 1000), min_size=20, max_size=120))
@settings(max_examples=60, deadline=None)
def test_mser_is_that_of_the_paper(x: list[float]) -> None:
    found, slow = steady.warmup_end(x), naive_mser(x)
    # Rounding may tell two truncations apart that are equal.
    assert found == slow or len(set(x)) < 5 or abs(found - slow) <= 5 * (len(x) // 10)


def test_a_warm_up_is_found_and_dropped() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([np.linspace(20, 100, 20), rng.normal(100, 3, 80)])
    found = steady.judge(x)
    assert 15 <= found.drop <= 30 and found.steady


def test_a_trend_is_never_steady() -> None:
    rng = np.random.default_rng(2)
    found = steady.judge(np.linspace(50, 100, 100) + rng.normal(0, 2, 100))
    assert found.steady is False and found.drop == 0 and found.drift > 0.3


def test_noise_is_steady_and_nothing_is_dropped() -> None:
    rng = np.random.default_rng(3)
    judged = [steady.judge(100 + ar1(rng, 60, 0.5, 3.0)) for _ in range(300)]
    assert sum(j.steady is False for j in judged) <= 6
    assert sum(j.drop > 0 for j in judged) <= 15


@pytest.mark.parametrize("variation", [5, 10, 20])
def test_noise_is_no_warm_up_however_large(variation: float) -> None:
    rng = np.random.default_rng(23)
    dropped = sum(steady.judge(rng.normal(100, variation, 60)).drop > 0 for _ in range(400))
    assert dropped / 400 < 0.04


def test_a_warm_up_ends_when_it_has_settled() -> None:
    rng = np.random.default_rng(4)
    rising = [float(v) for v in np.linspace(10, 100, 40) + rng.normal(0, 1, 40)]
    assert not any(steady.has_settled(rising[:n]) for n in range(1, 40))
    flat = rising + [float(v) for v in rng.normal(100, 1, 60)]
    assert steady.has_settled(flat)
    assert not steady.has_settled([100.0] * 5), "too short to tell"


# ---------------------------------------------------------------- change points


def naive_q(x: list[float], k: int) -> float:
    """E-divisive's Q of a split, from its definition."""
    a, b = x[:k], x[k:]
    m, n = len(a), len(b)
    between = sum(abs(p - q) for p in a for q in b) * 2 / (m * n)
    within = sum(abs(a[i] - a[j]) for i in range(m) for j in range(i)) * 2 / (m * (m - 1))
    within += sum(abs(b[i] - b[j]) for i in range(n) for j in range(i)) * 2 / (n * (n - 1))
    return m * n / (m + n) * (between - within)


def _found(x: Array, *where: int) -> bool:
    places = [c.index for c in changepoints.change_points(x)]
    return all(any(abs(at - p) <= 1 for p in places) for at in where)


@pytest.mark.parametrize("sigmas", [5, 10, 20])
def test_a_dip_that_was_repaired_is_found_at_both_ends(sigmas: int) -> None:
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(100):
        x = rng.normal(100, 1, 25)
        x[10:17] -= sigmas
        found += _found(x, 10, 17)
    assert found >= 95


def test_a_dip_of_the_past_hides_no_fresh_fall() -> None:
    rng = np.random.default_rng(6)
    found = 0
    for _ in range(100):
        x = rng.normal(100, 2, 25)
        x[8:13] -= 10
        x[22:] -= 10
        found += any(c.index == 22 for c in changepoints.change_points(x))
    assert found >= 90


@pytest.mark.parametrize("n", [8, 12, 25, pytest.param(60, marks=pytest.mark.slow)])
def test_equal_values_show_a_change_in_a_hundredth(n: int) -> None:
    rng = np.random.default_rng(7)
    assert sum(bool(changepoints.change_points(rng.normal(100, 2, n))) for _ in range(300)) <= 8


@pytest.mark.parametrize("newest", [1, 2])
def test_a_change_of_fewer_than_three_runs_is_told_of_no_other_run(newest: int) -> None:
    """Placed at the run before, it would stand beside the wrong run's environment."""
    rng = np.random.default_rng(8)
    told = 0
    for _ in range(100):
        x = rng.normal(100, 1, 25)
        x[-newest:] -= 15
        told += bool(changepoints.change_points(x))
    assert told <= 3
    x = rng.normal(100, 1, 25)
    x[-3:] -= 15
    assert [c.index for c in changepoints.change_points(x)] == [22]


@given(st.lists(st.floats(1, 100), min_size=6, max_size=25))
@settings(max_examples=50, deadline=None)
def test_the_best_split_is_that_of_the_definition(x: list[float]) -> None:
    at = changepoints.best_split(np.asarray(x))
    best = max(naive_q(x, k) for k in range(3, len(x) - 2))
    assert naive_q(x, at) == pytest.approx(best, abs=1e-6)


def test_changes_of_level_are_found_where_they_are() -> None:
    rng = np.random.default_rng(16)
    x = np.concatenate([rng.normal(100, 2, 30), rng.normal(93, 2, 25), rng.normal(101, 2, 20)])
    found = changepoints.change_points(x)
    assert [abs(c.index - at) <= 1 for c, at in zip(found, (30, 55), strict=True)] == [True, True]
    assert found[0].ratio == pytest.approx(0.93, abs=0.02)


@pytest.mark.slow
def test_noise_and_outliers_are_no_changes() -> None:
    rng = np.random.default_rng(17)
    assert sum(bool(changepoints.change_points(rng.normal(100, 2, 60))) for _ in range(100)) <= 8
    # Of a table of many series, all together.
    tables = [
        [changepoints.change_points(rng.normal(100, 2, 20), alpha=0.05 / 10) for _ in range(10)] for _ in range(60)
    ]
    assert sum(any(t) for t in tables) <= 6
    x = rng.normal(100, 1, 40)
    x[20] = 50
    assert not changepoints.change_points(x)
    assert not changepoints.change_points([100.0] * 20) and not changepoints.change_points([1.0, 2.0])


def test_a_fresh_drop_is_found_when_three_runs_have_it() -> None:
    rng = np.random.default_rng(29)
    found = 0
    for _ in range(50):
        x = np.concatenate([rng.normal(100, 1, 30), rng.normal(95, 1, 3)])
        found += any(abs(c.index - 30) <= 1 for c in changepoints.change_points(x, alpha=0.05 / 20))
    assert found >= 49


# ---------------------------------------------------------------- scaling


@pytest.mark.slow
def test_the_law_is_found_again_and_predicts() -> None:
    rng = np.random.default_rng(18)
    inside = 0
    for _ in range(20):
        n = np.repeat([1, 2, 4, 8, 16, 32, 64], 3).astype(float)
        x = scaling.usl(n, 1000, 0.03, 0.0002) * np.exp(rng.normal(0, 0.02, len(n)))
        found = scaling.fit(n, x, until=128, resamples=150)
        assert found.sigma.low <= found.sigma.value <= found.sigma.high
        truth = float(scaling.usl(np.asarray([128.0]), 1000, 0.03, 0.0002)[0])
        last = found.curve[-1]
        assert last.predicted and not found.curve[0].predicted
        inside += last.throughput.low <= truth <= last.throughput.high
        assert found.knee.value == pytest.approx(math.sqrt(0.97 / 0.0002), rel=0.25)
    assert inside >= 17


@pytest.mark.slow
def test_the_laws_intervals_hold_the_truth_with_few_points() -> None:
    rng = np.random.default_rng(24)
    for levels, times, least in (([1, 2, 4, 8, 16], 1, 0.85), ([1, 2, 4, 8, 16], 3, 0.85)):
        inside = 0
        for _ in range(40):
            n = np.repeat(levels, times).astype(float)
            x = scaling.usl(n, 1000, 0.05, 0.002) * np.exp(rng.normal(0, 0.05, len(n)))
            found = scaling.fit(n, x, resamples=150)
            inside += found.sigma.low <= 0.05 <= found.sigma.high
        assert inside / 40 >= least, (levels, times, inside)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(16))
def test_any_curve_is_told_in_both_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    """Curves with known sigma and kappa, from nothing to much, at two to nine levels, with more or less noise."""
    rng = np.random.default_rng(seed)
    n = np.unique(rng.integers(1, 100, rng.integers(2, 10)))
    law = (float(rng.choice([0.0, 0.01, 0.2])), float(rng.choice([0.0, 1e-4, 1e-2])))
    x = (
        100
        * n
        / (1 + law[0] * (n - 1) + law[1] * n * (n - 1))
        * np.exp(rng.normal(0, rng.choice([0.001, 0.2]), len(n)))
    )
    file = tmp_path / "x.csv"
    file.write_text("clients,tps\n" + "".join(f"{a},{b:.6g}\n" for a, b in zip(n, x, strict=True)))
    for lang in i18n.LANGUAGES:
        assert judge.scale(file, "clients", "tps", None, None, None, None, None, False, lang) == 0
        said = capsys.readouterr().out
        assert (i18n.text(message("scaling-no-fit"), lang)[:12] in said) is (len(n) < 4), (n, said)
    assert judge.scale(file, "clients", "tps", None, None, None, None, None, True) == 0
    (curve,) = json.loads(capsys.readouterr().out)
    assert bool(curve["reason"]) is (len(n) < 4) is (curve["scaling"] is None)


def test_linear_scaling_has_no_knee() -> None:
    n = [1.0, 2, 4, 8, 16]
    found = scaling.fit(n, [100 * x for x in n])
    assert found.sigma.value < 1e-4 and found.knee.value > 100


@pytest.mark.slow
def test_levels_are_the_units_of_scaling() -> None:
    """Many repetitions of levels that the law misses know no more than the levels."""
    rng = np.random.default_rng(5)
    levels = np.asarray([1.0, 2, 4, 8, 16, 32])
    n = np.repeat(levels, 20)
    inside = 0
    for _ in range(20):
        missed = np.repeat(rng.normal(0, 0.05, len(levels)), 20)
        x = scaling.usl(n, 1000, 0.05, 0.0005) * np.exp(missed + rng.normal(0, 0.005, len(n)))
        found = scaling.fit(n, x, resamples=150)
        inside += found.sigma.low <= 0.05 <= found.sigma.high
    assert inside >= 16, inside


def test_a_law_says_what_the_data_cannot_tell() -> None:
    n = [1.0, 2, 4, 8, 16]
    found = scaling.fit(n, [100 * x * f for x, f in zip(n, (1, 1.01, 0.99, 1.01, 0.98), strict=True)])
    assert found.sigma.low == 0.0, "no 6e-30"
    assert {"sigma", "kappa"} <= set(found.unknown)


def test_too_few_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        scaling.fit([1, 2, 4, 4], [1, 2, 3, 3])


@pytest.mark.slow
def test_the_worked_example_is_there() -> None:
    path = Path(laws.__file__).parent.parent / "experiments" / "polardb-2024.csv"
    found = laws.fit_csv(path, "cores", "read_only_qps", "hot_rows", None)
    assert len(found) == 3
    for f in found:
        assert f.scaling is not None and f.scaling.error < 0.1 and 50 < f.scaling.knee.value < 100
    with pytest.raises(UsageError, match='no column "no"'):
        laws.fit_csv(path, "no", None, None, None)


# ---------------------------------------------------------------- capacity


def test_objectives_are_read() -> None:
    assert capacity.objective("p99<5ms") == capacity.Objective("p99", 5e6)
    assert capacity.objective(" p99.9 <= 1.5 s ").below_ns == 1.5e9
    for bad in ("p98<5ms", "p99>5ms", "p99<5", "", "p99<ms"):
        with pytest.raises(ValueError, match="p99<5ms"):
            capacity.objective(bad)


def searched(search: capacity.Search, holds: Callable[[float], bool]) -> capacity.Threshold | None:
    while (rate := search.next_rate()) is not None:
        rate = float(f"{rate:.3g}")
        search.tell(capacity.Probe(rate, rate, 1e6 if holds(rate) else 9e6))
    return search.threshold


@pytest.mark.parametrize("start", [10.0, 900.0, 5000.0])
def test_the_search_finds_the_knee_of_a_queue(start: float) -> None:
    """An M/M/1 queue of 1,000/s: p99 = ln(100) / (1000 - rate) seconds, so 50 ms holds below 907.9/s."""
    truth = 1000 - math.log(100) / 0.05
    search = capacity.Search(capacity.objective("p99<5ms"), start)
    found = searched(search, lambda rate: rate < truth)
    assert found is not None and found.half.low <= truth <= found.half.high and found.half.width < 1.1
    assert found.most.low <= truth <= found.most.high * 1.01 and found.most.width < 1.25
    assert search.is_narrow and search.contradiction is None and len(search.probes) < 32


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.01, 0.05, 0.15])
def test_the_intervals_of_a_capacity_hold_the_truth(spread: float) -> None:
    """Trials of one rate scatter; now and then one fails for another reason."""
    rng = np.random.default_rng(21)
    lapses, inside = 0.02, np.zeros(2)
    for _ in range(30):
        half = 1000 * math.exp(rng.normal(0, 0.3))
        most = half * math.exp(-spread * norm.ppf(capacity.MOST_HOLD / (1 - lapses)))

        def holds(rate: float, truth: float = half) -> bool:
            return bool(rng.random() > lapses and math.log(rate) + rng.normal(0, spread) < math.log(truth))

        found = searched(capacity.Search(capacity.objective("p99<5ms"), rng.uniform(100, 900)), holds)
        assert found is not None
        inside += [r.low <= t <= r.high for r, t in ((found.half, half), (found.most, most))]
    # Of 30 at 95%: fewer than 25 in one of 300.
    assert min(inside) >= 25, inside


@pytest.mark.slow
def test_what_is_undecided_is_tried_more_often() -> None:
    """What 95% of the trials hold takes more of them where trials of one rate lie far apart."""
    trials = {}
    for spread in (0.01, 0.3):
        rng = np.random.default_rng(5)
        search = capacity.Search(capacity.objective("p99<5ms"), 500.0)
        searched(search, lambda rate, s=spread, rng=rng: math.log(rate) + rng.normal(0, s) < math.log(1000))
        trials[spread] = len(search.probes)
    assert trials[0.01] <= 32 < trials[0.3] <= 64, trials


def test_what_is_not_monotone_is_said() -> None:
    """A cold cache: the first trials fail at any rate."""
    search = capacity.Search(capacity.objective("p99<5ms"), 200.0)
    tried = iter([False, False])
    found = searched(search, lambda rate: next(tried, rate < 900))
    assert search.contradiction is not None
    failed, held = search.contradiction
    assert failed <= 200 and held > 600
    # One lapse does not decide.
    assert found is not None and found.half.high > 700


def test_a_search_where_nothing_holds_ends() -> None:
    search = capacity.Search(capacity.objective("p99<1us"), 1000.0)
    assert searched(search, lambda rate: False) is None and len(search.probes) < 30


def test_trials_are_as_long_as_the_objective_needs() -> None:
    p99, p999 = capacity.objective("p99<5ms"), capacity.objective("p99.9<5ms")
    assert capacity.seconds_for(p99, 100_000) == 5.0
    assert capacity.seconds_for(p99, 100) == 20.0 and capacity.seconds_for(p999, 100) == 60.0
    assert capacity.seconds_for(p99, 100_000, 1.0) == 1.0 and capacity.seconds_for(p99, 100, 90.0) == 90.0


# ---------------------------------------------------------------- whole runs


def test_two_runs_are_compared(tmp_path: Path) -> None:
    plans = synthetic.plans([4, 8], 5)
    made = [
        synthetic.make_run(tmp_path, plans, lambda p, i, r, f=f: 1000 * f * r.uniform(0.99, 1.01), seed=s, manifest=m)
        for f, s, m in ((1.0, 1, {}), (0.9, 2, {"host": {"cores": 4}, "server": {"version": "x"}}))
    ]
    found = runs.compare_runs([reading.read(made[0])], [reading.read(made[1])])
    tps = [r for r in found.rows if r.figure.name == "TPS"]
    assert found.is_of_single_starts
    assert [r.comparison.verdict for r in tps] == [Verdict.UNKNOWN] * 2, "two starts may lie apart by as much"
    assert tps[0].comparison.ratio == pytest.approx(0.9, abs=0.01) and tps[0].comparison.high < 1
    assert {n for n, _, _ in found.differences} >= {"cores", "server version"}
    assert "warn-one-after-the-other" in reports.ids(found.warnings)
    with pytest.raises(UsageError, match='no figure "p42"'):
        runs.compare_runs([reading.read(made[0])], [reading.read(made[1])], ["p42"])


def started(tmp_path: Path, name: str, levels: list[float], repetitions: int = 2) -> Path:
    """A run whose server was started once for each level."""
    plans = [
        TrialPlan(n * repetitions + r, "w", 1.0, 4, n * repetitions + r, {}, n + 1)
        for n in range(len(levels))
        for r in range(1, repetitions + 1)
    ]
    level = dict(enumerate(levels, 1))
    return synthetic.make_run(tmp_path, plans, lambda p, i, r: level[p.start] * r.uniform(0.999, 1.001), name=name)


def test_starts_of_the_server_are_the_units_of_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(31)
    apart = [started(tmp_path, f"apart{n}", list(1000 * rng.lognormal(0, 0.1, 4))) for n in range(2)]
    found = runs.compare_runs(*([reading.read(r)] for r in apart), ["TPS"])
    assert (found.starts_a, found.starts_b, found.rows[0].comparison.n_a) == (4, 4, 4)
    assert found.rows[0].comparison.verdict is Verdict.UNKNOWN, "repetitions of a start hardly differ, starts do"
    near = [started(tmp_path, f"near{n}", list(1000 * (1 - 0.1 * n) * rng.lognormal(0, 0.005, 4))) for n in range(2)]
    (row,) = runs.compare_runs(*([reading.read(r)] for r in near), ["TPS"]).rows
    assert row.comparison.verdict is Verdict.SLOWER
    # The same as runs of their own.
    single = [[reading.read(started(tmp_path, f"s{f}{n}", [1000 * f * rng.lognormal(0, 0.005)])) for n in range(4)]
              for f in (1.0, 0.9)]  # fmt: skip
    (row,) = runs.compare_runs(*single, ["TPS"]).rows
    assert row.comparison.verdict is Verdict.SLOWER and row.comparison.n_b == 4


def test_runs_beside_two_say_how_far_two_lie_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(32)
    for spread, verdict in ((0.005, Verdict.SLOWER), (0.1, Verdict.UNKNOWN)):
        folder = tmp_path / str(spread)
        folder.mkdir()

        def run(level: float, folder: Path = folder, spread: float = spread) -> Path:
            return started(folder, "x", [1000 * level * rng.lognormal(0, spread)])

        for _ in range(8):
            run(1.0)
        a, b = reading.read(run(1.0)), reading.read(run(0.9))
        others = siblings([a], [b])
        assert [len(x) for x in others] == [8]
        found = runs.compare_runs([a], [b], ["TPS"], others=others)
        assert found.others == 8 and not found.is_of_single_starts
        assert found.rows[0].comparison.verdict is verdict
    changed = synthetic.make_run(
        folder, synthetic.plans([4], 1), lambda *_: 1.0, name="x", manifest={"host": {"cores": 99}}
    )
    assert [len(x) for x in siblings([a], [b])] == [8], "another environment"
    assert siblings([reading.read(changed)], [reading.read(changed)]) == []


def test_runs_are_the_units_where_others_say_how_far_they_lie_apart(tmp_path: Path) -> None:
    """Starts of one run hardly differ, runs do: by an hour, or by how each was loaded."""
    rng = np.random.default_rng(34)

    def run(hour: float) -> Path:
        return started(tmp_path, "x", [1000 * hour * rng.lognormal(0, 0.002) for _ in range(3)], 1)

    for _ in range(6):
        run(rng.lognormal(0, 0.05))
    a, b = reading.read(run(1.0)), reading.read(run(0.95))
    alone = runs.compare_runs([a], [b], ["TPS"])
    assert alone.are_single_runs and alone.rows[0].comparison.n_a == 3
    assert alone.rows[0].comparison.verdict is Verdict.SLOWER, "these starts are"
    found = runs.compare_runs([a], [b], ["TPS"], others=siblings([a], [b]))
    (row,) = found.rows
    assert (found.others, found.starts_a, row.comparison.n_a) == (6, 1, 1) and not found.are_single_runs
    assert row.comparison.verdict is Verdict.UNKNOWN and row.comparison.high > 1.03
    # Two others are too few: then they say how far starts lie apart.
    few = runs.compare_runs([a], [b], ["TPS"], others=[siblings([a], [b])[0][:2]])
    assert few.are_single_runs and few.others == 2 and few.rows[0].comparison.n_a == 3


def test_one_run_beside_several(tmp_path: Path) -> None:
    rng = np.random.default_rng(36)
    many = [reading.read(started(tmp_path, "m", [1000 * rng.lognormal(0, 0.01)])) for _ in range(5)]
    one = reading.read(started(tmp_path, "m", [800 * rng.lognormal(0, 0.01)]))
    found = runs.compare_runs(many, [one], ["TPS"])
    (row,) = found.rows
    assert (found.unit, found.starts_a, found.starts_b) == ("run", 5, 1) and not found.is_of_single_starts
    assert row.comparison.verdict is Verdict.SLOWER
    # Two do not know how far they lie apart.
    assert runs.compare_runs(many[:2], [one], ["TPS"]).rows[0].comparison.verdict is Verdict.UNKNOWN


def test_other_runs_count_only_where_they_are_alike(tmp_path: Path) -> None:
    rng = np.random.default_rng(37)
    a, b = (
        reading.read(started(tmp_path, "x", [1000 * f * rng.lognormal(0, 0.01) for _ in range(5)])) for f in (1, 0.8)
    )
    for _ in range(4):
        synthetic.make_run(tmp_path, synthetic.plans([16], 2), lambda *_: 1000.0, name="x")
    found = runs.compare_runs([a], [b], ["TPS"], others=siblings([a], [b]))
    assert (found.unit, found.others, found.starts_a) == ("start", 0, 5)
    assert found.rows[0].comparison.verdict is Verdict.SLOWER
    # Means of five starts lie closer together than starts do: runs of one start are another experiment.
    started(tmp_path, "x", [1000.0])
    (five,) = siblings([a], [a])
    assert [r.path for r in five] == [b.path]


def test_a_configuration_that_few_runs_have_does_not_decide_for_the_others(tmp_path: Path) -> None:
    def run(f: float, n: int) -> reading.RunData:
        plans = synthetic.plans([4, 8] if n == 0 else [4], 2)
        made = synthetic.make_run(
            tmp_path, plans, lambda p, i, r: 1000 * f * r.uniform(0.99, 1.01), seed=n, name=f"{f}{n}"
        )
        return reading.read(made)

    sides = [[run(f, n) for n in range(3)] for f in (1.0, 0.8)]
    found = runs.compare_runs(*sides, ["TPS"])
    (row,) = found.rows
    assert row.pair.a.clients == 4 and row.comparison.verdict is Verdict.SLOWER
    assert any(tells(w, "warn-left-out", name="c=8") for w in reports.words(found.warnings))


def test_single_starts_have_no_allowance_for_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(38)
    a, b = (reading.read(started(tmp_path, "s", [1000 * rng.lognormal(0, 0.01)], 5)) for _ in range(2))
    (row,) = runs.compare_runs([a], [b], ["TPS"]).rows
    both = {n: {i: t.summary.tps for i, t in enumerate(d.trials) if t.summary} for n, d in enumerate((a, b))}
    alone = compare(both, [(0, 1)], blocked=False)[0]
    assert row.comparison.low == pytest.approx(alone.low) and runs.compare_runs([a], [b]).unit == "repetition"


def test_figures_that_nobody_has_are_said(tmp_path: Path) -> None:
    runs_of = [synthetic.make_run(tmp_path, synthetic.plans([4], 3), lambda *_: 100.0, name=n) for n in "ab"]
    found = runs.compare_runs(*([reading.read(r)] for r in runs_of), ["reads/tx"])
    assert found.rows == [] and reports.ids(cli_compare._answer(found)) == ["nothing-to-compare"]


def test_what_a_run_adds_is_allowed_for(tmp_path: Path) -> None:
    rng = np.random.default_rng(35)
    logs = [[float(x) for x in rng.normal(0, 0.05, 4)] for _ in range(2)]
    figures = {n: {i: math.exp(x) for i, x in enumerate(each)} for n, each in enumerate(logs)}
    plain, more = (compare(figures, [(0, 1)], blocked=False, shared=s)[0] for s in (0.0, 0.5))
    # Variance of a mean of four: a quarter of a unit's, on each side.
    wider = math.log(more.high / more.low) / math.log(plain.high / plain.low)
    assert wider == pytest.approx(math.sqrt((0.5 + 0.5) / 0.5), rel=1e-6)


def test_definitions_that_differ_are_listed(tmp_path: Path) -> None:
    table = {"object": "table", "name": "t", "definition": ""}
    indexes = [{"object": "index", "name": f"t_{x}", "definition": "valid"} for x in "ab"]
    options = [{"object": "options", "name": "t", "definition": x} for x in ("", "fillfactor=50")]
    made = [
        synthetic.make_run(
            tmp_path, synthetic.plans([4], 3), lambda *_: 100.0, name=n, totals={"definitions": rows},
        )
        for n, rows in (
            ("one", [table, *indexes, options[0]]), ("two", [table, indexes[0], options[1]]),
            ("many", [{**table, "name": f"p{i}"} for i in range(30)]), ("unknown", []),
        )
    ]  # fmt: skip
    one, two, many, unknown = ([reading.read(m)] for m in made)
    assert runs.compare_runs(one, two).differences == [
        ("index t_b", "valid", "–"),
        ("options t", "(default)", "fillfactor=50"),
    ]
    assert runs.compare_runs(one, many).differences[-1] == ("14 more definitions", "…", "…")
    assert runs.compare_runs(one, unknown).differences == []


def test_another_script_under_the_same_name_is_said(tmp_path: Path) -> None:
    plans = synthetic.plans([4], 3)
    made = [
        synthetic.make_run(tmp_path, plans, lambda *_: 100.0, name=n, manifest={"scripts": {"w": [["s", text, 1]]}})
        for n, text in (("one", "SELECT 1;"), ("two", "UPDATE t SET x = 1;"))
    ]
    found = runs.compare_runs([reading.read(made[0])], [reading.read(made[1])])
    assert [n for n, _, _ in found.differences] == ["script of w"]


def test_warnings_of_a_comparison(tmp_path: Path) -> None:
    plans = synthetic.plans([4], 2)
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: 1000 * r.uniform(0.9, 1.1))
    found = runs.compare_runs([reading.read(run)], [reading.read(run)])
    assert message("warn-few", n=2) in found.warnings
    found = runs.compare_runs([reading.read(run)], [reading.read(run)], ("p99.9",))
    assert "warn-few-beyond" in reports.ids(found.warnings)
    drifting = synthetic.make_run(
        tmp_path, synthetic.plans([4], 9), lambda p, i, r: 1000 * (1 + 0.02 * p.repetition), name="drifting"
    )
    found = runs.compare_runs([reading.read(drifting)], [reading.read(drifting)])
    assert any("drift of +" in w for w in reports.words(found.warnings))
    # Latencies of open loops that the server did not sustain depend on how long they were.
    overloaded = reading.read(run)
    overloaded.trials[0].caveats.extend([Caveat.BACKLOG, Caveat.SKIPPED])
    found = runs.compare_runs([overloaded], [reading.read(run)])
    assert {"warn-not-steady", "warn-skipped"} <= set(reports.ids(found.warnings))
    other = synthetic.make_run(tmp_path, synthetic.plans([5], 2), lambda p, i, r: 1000.0, name="other")
    with telling(UsageError, "error-runs-no-configuration-common"):
        runs.compare_runs([reading.read(run)], [reading.read(other)])


def test_a_history_says_when_and_what_changed(tmp_path: Path) -> None:
    rng = random.Random(3)
    for day in range(1, 17):
        level = 1000 if day < 9 else 900
        synthetic.make_run(
            tmp_path,
            synthetic.plans([4], 3),
            lambda p, i, r, level=level: level * rng.uniform(0.99, 1.01),  # type: ignore[misc]
            name="nightly",
            intervals=3,
            manifest={"started_at": f"2026-01-{day:02}T00:00:00.000Z", "pgdyno": "1" if day < 9 else "2"},
        )
    found = history.of(tmp_path, None, ("TPS",))
    (tps,) = found.series
    (change,) = tps.changes
    assert change.index == 8 and change.ratio == pytest.approx(0.9, abs=0.02)
    assert found.differences[tps.runs[8]] == [("pgdyno", "1", "2")]
    with telling(UsageError, "error-there-no-run-of", name="else"):
        history.of(tmp_path, "else")
