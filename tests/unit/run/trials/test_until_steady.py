"""Length of a trial that goes on until its throughput is steady: series with known truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from pgdyno.run.trials.until_steady import PRECISION, LongEnoughError, UntilSteady
from pgdyno.spec.experiment import Run

from tests.support.synthetic import row

_LONGEST = 1800


def _noise(rng: np.random.Generator, alike: float, spread: float) -> Iterator[float]:
    """First-order autoregressive values about 1 with standard deviation `spread`, neighbours as alike as `alike`."""
    x = rng.normal()
    while True:
        yield 1 + spread * x
        x = alike * x + math.sqrt(1 - alike**2) * rng.normal()


def _ended(tps: Callable[[int], float], has_cycle: Callable[[], bool] = lambda: True) -> tuple[int, UntilSteady]:
    """Return the number of seconds after which the trial ends, and its observer."""
    observer = UntilSteady(Run(duration_s=30, duration_limit_s=_LONGEST), has_cycle)
    for n in range(_LONGEST):
        try:
            observer.add(row(n, 1.0, tps(n), 1_000_000))
        except LongEnoughError:
            return n + 1, observer
    return _LONGEST, observer


@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_a_steady_trial_ends_when_its_interval_is_narrow_and_holds_the_truth(alike: float) -> None:
    rng = np.random.default_rng(7)
    trials, held, ended, lengths = 120, 0, 0, list[int]()
    for _ in range(trials):
        noise, values = _noise(rng, alike, 0.03), []

        def tps(_: int, noise: Iterator[float] = noise, values: list[float] = values) -> float:
            values.append(next(noise))
            return 10_000 * values[-1]

        seconds, observer = _ended(tps)
        ended += observer.ended
        assert observer.result.id == ("event-length-enough" if observer.ended else "event-length-limit")
        lengths.append(seconds)
        held += abs(float(np.mean(values)) - 1) <= PRECISION
    # Each look is a chance to stop while the interval is too narrow by chance.
    assert held / trials > 0.93 and ended / trials > 0.95
    # 1.96 * 3% / sqrt(n) is 1% at n = 35; neighbours that are alike take three times as long. The interval does not
    # know the kind of noise: it is wider than one that did.
    expected = 35 * (1 + alike) / (1 - alike)
    assert expected < float(np.median(lengths)) < 5 * expected


def test_a_trial_lasts_its_duration_however_steady_it_is() -> None:
    rng = np.random.default_rng(1)
    assert _ended(lambda _: 1000 * (1 + 0.001 * rng.normal()))[0] == 30


def test_a_level_that_changes_is_no_steady_throughput() -> None:
    rng = np.random.default_rng(2)
    seconds, observer = _ended(lambda n: (1000 if n % 1200 < 600 else 700) * (1 + 0.02 * rng.normal()))
    # What comes later cannot be known: the first level was long enough.
    assert seconds < 600 and observer.ended
    seconds, observer = _ended(lambda n: (1000 if n < 20 else 700) * (1 + 0.02 * rng.normal()))
    # The beginning is a small part at last, and the interval still holds what it brings.
    assert seconds > 200
    seconds, observer = _ended(lambda n: 1000 * (1 - n / 2000) * (1 + 0.01 * rng.normal()))
    assert (seconds, observer.ended, observer.result.id) == (_LONGEST, False, "event-length-not-steady")


def test_a_load_that_writes_goes_through_a_period_of_checkpoints() -> None:
    rng, looks = np.random.default_rng(3), [0]

    def has_cycle() -> bool:
        looks[0] += 1
        return looks[0] > 5

    seconds, _ = _ended(lambda _: 1000 * (1 + 0.001 * rng.normal()), has_cycle)
    # Five times a tenth longer.
    assert 30 * 1.1**5 - 1 <= seconds <= 30 * 1.1**5 + 6


def test_what_is_not_measured_is_not_counted() -> None:
    observer = UntilSteady(Run(duration_s=5, duration_limit_s=10), lambda: True)
    for n in range(100):
        observer.add(row(n, 1.0, 100.0, 1_000_000, phase="warmup"))
    assert observer.result.id == "event-length-not-steady"
