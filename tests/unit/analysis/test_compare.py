"""Verdicts against the truth: simulated repetitions whose differences and variances are known, and slow references."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from pgdyno.analysis import compare, moderated
from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.analysis.moderated import Variance
from scipy import stats

Rng = np.random.Generator
DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)


def numbered(values: object) -> dict[int, float]:
    return dict(enumerate(np.asarray(values, dtype=float).tolist()))


def pair(a: object, b: object, *, blocked: bool = False, higher_is_better: bool = True) -> Comparison:
    figures = {"a": numbered(a), "b": numbered(b)}
    return compare.compare(figures, [("a", "b")], blocked=blocked, higher_is_better=higher_is_better)[0]


def table(
    rng: Rng, cells: int, size: int, n: int, sigma: Callable[[int, int], float], last: float = 0.0
) -> list[Comparison]:
    """Cells of so many configurations, each beside the cell's first; the cell's last differs from it by `last`."""
    figures, pairs = {}, []
    for cell in range(cells):
        machine = rng.normal(0, 0.05, n)
        for i in range(size):
            logs = machine + rng.normal(0, sigma(cell, i), n) + (last if i == size - 1 else 0)
            figures[cell, i] = numbered(1000 * np.exp(logs))
            pairs += [((cell, 0), (cell, i))] if i else []
    return compare.compare(figures, pairs, blocked=True)


# ---------------------------------------------------------------- against references


def test_a_single_pair_is_students_paired_test() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.lognormal(5, 0.1, 7), rng.lognormal(5.1, 0.1, 7)
    found = pair(a, b, blocked=True)
    low, high = stats.ttest_rel(np.log(b), np.log(a)).confidence_interval(0.99)
    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-3)
    assert found.paired and found.level == 0.99


def test_two_sides_lie_between_students_and_welchs_test() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.lognormal(5, 0.1, 7), rng.lognormal(5.1, 0.3, 5)
    found = pair(a, b)
    widths = [
        math.exp(i.high - i.low)
        for equal in (True, False)
        for i in [stats.ttest_ind(np.log(b), np.log(a), equal_var=equal).confidence_interval(0.99)]
    ]
    assert min(widths) * 0.98 < found.high / found.low < max(widths) * 1.02


def test_the_mixture_is_what_its_parts_add_up_to() -> None:
    """Slowly: a loop over all priors, with scipy's distributions."""
    rng = np.random.default_rng(3)
    estimates = [Variance(float(v), 2.0) for v in rng.chisquare(2, 5) / 2 * 0.01]
    prior = moderated.learn(estimates)
    weights, tails = [], []
    own, factor, difference = Variance(0.004, 2.0), 2 / 3, 0.2
    for degrees, belief in zip(moderated._DEGREES, moderated._BELIEF, strict=True):
        for scale in prior.scales:
            if math.isinf(degrees):
                density = [stats.chi2.pdf(e.value / scale * e.degrees, e.degrees) * e.degrees for e in estimates]
                tail = stats.norm.sf(difference, scale=math.sqrt(factor * scale))
            else:
                density = [stats.f.pdf(e.value / scale, e.degrees, degrees) for e in estimates]
                v = (degrees * factor * scale + own.degrees * own.value) / (degrees + own.degrees)
                tail = stats.t.sf(difference, degrees + own.degrees, scale=math.sqrt(v))
            # Scales are evenly spaced in their logarithm; of an estimate v, not of v / scale.
            weights.append(belief * float(np.prod(density)) / scale ** len(estimates))
            tails.append(2 * tail)
    expected = float(np.average(tails, weights=weights))
    spread = prior.spread(own, factor)
    assert spread.beyond(difference) == pytest.approx(expected, rel=1e-6)
    assert spread.beyond(spread.half_width(0.99)) == pytest.approx(0.01, rel=1e-4)


def test_the_upper_bound_of_the_noise_is_one() -> None:
    rng = np.random.default_rng(4)
    above = 0
    for _ in range(300):
        x = rng.normal(0, 1, (6, 3))
        prior = moderated.learn([Variance(float(r.var(ddof=1)), 2.0) for r in x])
        above += prior.spread(Variance(float(x[0].var(ddof=1)), 2.0), 1.0).upper_sigma(0.8) > 1
    assert 0.75 < above / 300 < 0.95


# ---------------------------------------------------------------- truth


SHAPES = [(1, 10, 3), (5, 2, 3), (5, 2, 5), (1, 3, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "size", "n"), SHAPES)
def test_equal_sides_are_called_different_once_in_a_hundred(cells: int, size: int, n: int) -> None:
    rng = np.random.default_rng(11)
    found = [c for _ in range(120) for c in table(rng, cells, size, n, lambda *_: 0.05)]
    assert sum(c.verdict in DIFFERENT for c in found) / len(found) <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "size", "n"), SHAPES)
def test_variances_that_differ_by_ten_do_not_make_differences(cells: int, size: int, n: int) -> None:
    rng = np.random.default_rng(12)
    noisy = 0.05 * math.sqrt(10)
    for sigma in (
        lambda cell, i: noisy if (cell + i) % 2 else 0.05,
        lambda cell, i: noisy if cell % 2 else 0.05,
        lambda cell, i: noisy if cell == 0 and i == size - 1 else 0.05,
    ):
        found = [c for _ in range(80) for c in table(rng, cells, size, n, sigma)]
        assert sum(c.verdict in DIFFERENT for c in found) / len(found) <= 0.03


@pytest.mark.slow
def test_what_all_configurations_know_finds_what_one_does_not() -> None:
    rng = np.random.default_rng(13)
    together = [table(rng, 1, 10, 3, lambda *_: 0.05, math.log(1.2))[-1] for _ in range(100)]
    alone = [table(rng, 1, 2, 3, lambda *_: 0.05, math.log(1.2))[-1] for _ in range(100)]
    # As simulated for the issue: 93% with a variance that is known to be common, 19% with the pair's own.
    assert sum(c.verdict is Verdict.FASTER for c in together) >= 70
    assert sum(c.verdict is Verdict.FASTER for c in alone) <= 40


@pytest.mark.slow
@pytest.mark.parametrize("blocked", [False, True])
def test_intervals_hold_the_truth(blocked: bool) -> None:
    rng = np.random.default_rng(14)
    held = 0
    for _ in range(500):
        machine = rng.normal(0, 0.03, 5) if blocked else np.zeros(5)
        a, b = (np.exp(machine + rng.normal(0, 0.02, 5)) for _ in range(2))
        c = pair(a, b * 1.1, blocked=blocked)
        held += c.low <= 1.1 <= c.high
    assert 0.97 <= held / 500 <= 1.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("truth", [1.0, 0.95])
def test_the_time_that_is_asked_for_tells(truth: float, blocked: bool) -> None:
    rng = np.random.default_rng(15)
    told = asked = 0
    for _ in range(60):
        first = pair(rng.lognormal(5, 0.03, 4), rng.lognormal(5, 0.03, 4), blocked=blocked)
        if first.verdict is not Verdict.UNKNOWN:
            continue
        assert first.more is not None and first.more > 0
        n = 4 + first.more
        asked += 1
        then = pair(rng.lognormal(5, 0.03, n), truth * rng.lognormal(5, 0.03, n), blocked=blocked)
        told += then.verdict is (Verdict.SAME if truth == 1 else Verdict.SLOWER)
    assert told / asked >= 0.85


def test_a_drift_of_the_machine_is_taken_out_by_rounds() -> None:
    rng = np.random.default_rng(16)
    found = {True: 0, False: 0}
    for _ in range(60):
        machine = np.cumsum(rng.normal(0, 0.05, 10))
        a, b = (np.exp(machine + rng.normal(0, 0.005, 10)) for _ in range(2))
        for blocked in found:
            found[blocked] += pair(a, 0.95 * b, blocked=blocked).verdict is Verdict.SLOWER
    assert found[True] > 55 > found[False]


@pytest.mark.slow
def test_a_table_is_wrong_once_in_twenty() -> None:
    rng = np.random.default_rng(17)
    level = compare.level_for(20)
    assert compare.level_for(5) == 0.99 and level == pytest.approx(0.9975)
    wrong = 0
    for _ in range(60):
        figures = {(n, side): numbered(rng.lognormal(5, 0.02, 4)) for n in range(20) for side in "ab"}
        pairs = [((n, "a"), (n, "b")) for n in range(20)]
        found = compare.compare(figures, pairs, blocked=False, level=level)
        wrong += any(c.verdict in DIFFERENT for c in found)
    assert wrong / 60 <= 0.1


# ---------------------------------------------------------------- edges


def test_the_verdicts() -> None:
    near = [1000.0, 1001.0, 999.0, 1000.5, 999.5]
    assert pair(near, near[::-1]).verdict is Verdict.SAME
    small = pair(near, [x * 1.01 for x in near])
    assert small.verdict is Verdict.FASTER and small.is_negligible
    faster = pair(near, [x * 1.1 for x in near])
    assert faster.verdict is Verdict.FASTER and not faster.is_negligible and faster.more == 0
    assert pair(near, [x * 1.1 for x in near], higher_is_better=False).verdict is Verdict.SLOWER
    noisy = pair([1000.0, 1400.0, 700.0, 1100.0], [1100.0, 700.0, 1400.0, 1000.0])
    assert noisy.verdict is Verdict.UNKNOWN and noisy.more is not None and noisy.more > 100
    assert noisy.low < 1 < noisy.high, "the interval is the verdict's"


def test_too_few_to_know_anything() -> None:
    one = pair([1000.0], [1100.0])
    assert one.verdict is Verdict.UNKNOWN and math.isnan(one.low) and one.more is None
    assert one.ratio == pytest.approx(1.1)
    assert pair([], [1100.0]).n_a == 0
    two = pair([1000.0, 1001.0], [1100.0, 1101.0], blocked=True)
    assert two.verdict is Verdict.UNKNOWN or two.low > 1


def test_single_units_are_judged_by_what_others_say() -> None:
    figures = {"a": {1: 1000.0}, "b": {1: 1100.0}}
    others = [numbered([1000 * (1 + 0.001 * i) for i in range(5)]) for _ in range(4)]
    (found,) = compare.compare(figures, [("a", "b")], blocked=False, also={"a": others})
    assert found.verdict is Verdict.FASTER
    apart = [numbered([1000.0, 1300.0, 800.0, 1100.0]) for _ in range(4)]
    (found,) = compare.compare(figures, [("a", "b")], blocked=False, also={"a": apart})
    assert found.verdict is Verdict.UNKNOWN and found.more is not None


def test_figures_that_are_equal_by_rounding_are_not_certain() -> None:
    assert pair([100.0] * 3, [100.1] * 3).verdict is not Verdict.FASTER
    assert pair([100.0] * 3, [100.0] * 3).verdict is Verdict.SAME
    assert pair([100.0] * 3, [110.0] * 3).verdict is Verdict.FASTER


def test_a_round_that_one_side_lacks_is_left_out() -> None:
    figures = {"a": {1: 100.0, 2: 200.0, 3: 300.0}, "b": {2: 220.0, 3: 331.0, 4: 400.0}}
    (found,) = compare.compare(figures, [("a", "b")], blocked=True)
    assert found.paired and found.n_a == 2 and found.ratio == pytest.approx(1.1, abs=0.01)
