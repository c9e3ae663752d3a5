"""Duets: turns, what pairs of slices say, and when an experiment is one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pgdyno.analysis import duet
from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.analysis.duet import Difference
from pgdyno.cli import vary
from pgdyno.cli.overrides import Overrides
from pgdyno.errors import SpecError, UsageError
from pgdyno.run.planning.matrix import Place
from pgdyno.run.planning.options import Options
from pgdyno.run.planning.prepared import prepare
from pgdyno.run.planning.turns import order_of, slice_of, turns_for
from pgdyno.spec.experiment import Experiment

from tests.support import plans

PRIVATE = Options(None, embedded=True)


def experiment(axes: dict[str, Any], run: dict[str, Any] | None = None, **more: Any) -> Experiment:
    return Experiment.model_validate(
        {
            "name": "x",
            "title": "X",
            "dataset": {"scale": 1},
            "workloads": {"w": {"scripts": [{"text": "SELECT :n;"}]}, "v": {"scripts": [{"builtin": "select-only"}]}},
            "axes": {"clients": [4], **axes},
            "run": run or {},
            **more,
        }
    )


# ---------------------------------------------------------------- turns


def test_turns_are_fair() -> None:
    for turns in (4, 40, 400):
        found = order_of(turns, 7)
        assert found.count(0) == found.count(1) == turns // 2
        # Each pair has both; a drift that is straight cancels over four.
        assert all({found[i], found[i + 1]} == {0, 1} for i in range(0, turns, 2))
        assert all(found[i] == found[i + 3] for i in range(0, turns, 4))
    assert order_of(40, 7) == order_of(40, 7) != order_of(40, 8)


@pytest.mark.parametrize(
    ("seconds", "slice_s", "turns"), [(15, 0.25, 120), (2, 0.25, 16), (0, 0.25, 0), (0.1, 0.25, 4), (60, 1, 120)]
)
def test_turns_hold_the_seconds_that_are_asked_for(seconds: float, slice_s: float, turns: int) -> None:
    assert turns_for(seconds, slice_s) == turns
    assert slice_of(15) == 0.25 and slice_of(60) == 1 and slice_of(3600) == 2


# ---------------------------------------------------------------- what pairs say


def noise(rng: np.random.Generator, n: int, rho: float, sigma: float) -> np.ndarray:
    e = rng.normal(0, sigma * math.sqrt(1 - rho**2), n)
    out = [rng.normal(0, sigma)]
    for x in e[1:]:
        out.append(rho * out[-1] + x)
    return np.array(out)


@pytest.mark.parametrize(("rho", "least"), [(0.0, 0.975), (-0.3, 0.975), (0.3, 0.965), (0.6, 0.95)])
def test_an_interval_of_pairs_holds_the_truth(rho: float, least: float) -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(600):
        found = duet.pair_ratio(list(noise(rng, 60, rho, 0.07)))
        assert found is not None
        c = duet.compared([[found]], 60, 1.0, 1.0)
        held += c.low <= 1 <= c.high
    assert held / 600 >= least


def units(rng: np.random.Generator, k: int, between: float, within: float = 0.01, truth: float = 0.0) -> Comparison:
    found = [[Difference(truth + rng.normal(0, between) + rng.normal(0, within), within**2, 50)] for _ in range(k)]
    return duet.compared(found, 60 * k, 1.0, 1.0)


@pytest.mark.parametrize("between", [0.0, 0.01, 0.05])
def test_what_starts_differ_by_is_part_of_the_error(between: float) -> None:
    rng = np.random.default_rng(6)
    different = sum(units(rng, 5, between).verdict in (Verdict.FASTER, Verdict.SLOWER) for _ in range(400))
    assert different / 400 <= 0.025
    assert sum(units(rng, 5, 0.005, truth=0.06).verdict is Verdict.FASTER for _ in range(100)) > 90


@pytest.mark.sampled(2)
def test_the_time_that_is_asked_for_tells() -> None:
    rng = np.random.default_rng(7)
    told = asked = 0
    for _ in range(200):
        first = duet.pair_ratio(list(rng.normal(0, 0.1, 20)))
        assert first is not None
        c = duet.compared([[first]], 20, 1.0, 1.0)
        if c.verdict is Verdict.UNKNOWN:
            assert c.more
            asked += 1
            then = duet.pair_ratio(list(rng.normal(0, 0.1, 20 + c.more)))
            assert then is not None
            told += duet.compared([[then]], 20 + c.more, 1.0, 1.0).verdict is Verdict.SAME
    assert told / asked > 0.85


def test_few_pairs_say_nothing() -> None:
    assert duet.pair_ratio([0.1] * 19) is None
    equal = duet.pair_ratio([0.0] * 30)
    assert equal is not None
    assert duet.compared([[equal]], 30, 1.0, 1.0).verdict is Verdict.SAME


# ---------------------------------------------------------------- when it is one


def decided(e: Experiment, options: Options = PRIVATE) -> str:
    return plans.plan_of(e, options).experiment.run.order


def test_two_settings_on_private_servers_are_a_duet() -> None:
    two: dict[str, Any] = {"settings": {"fsync": ["on", "off"]}}
    long = {"duration_s": 10}
    assert decided(experiment(two, long)) == "duet"
    assert decided(experiment({"variables": {"n": [1, 2]}}, long)) == "duet"
    assert decided(experiment({"version": ["17", "18"]}, long)) == "duet"
    assert decided(experiment(two, {"duration_s": 1})) == "random", "too few slices"
    assert decided(experiment(two, {**long, "order": "interleaved"})) == "interleaved"
    assert decided(experiment(two, {**long, "rate": 100})) == "random"
    assert decided(experiment({"settings": {"fsync": ["on", "off"], "jit": ["on", "off"]}}, long)) == "random"
    assert decided(experiment({"settings": {"jit": ["a", "b", "c"]}}, long)) == "random"
    assert decided(experiment({"protocol": ["simple", "prepared"]}, long)) == "random"
    assert decided(experiment({"scale": [1, 2]}, long)) == "random", "caches hold other parts of them"
    assert decided(experiment({}, long)) == "random"
    assert decided(experiment(two, long), Options("host=db1")) == "random"
    large = experiment(two, long, dataset={"scale": 100_000})
    assert decided(large) == "random", "two of them do not fit into the memory"
    # Also where the scale is an axis of one value, as by --set scale=100000.
    assert decided(experiment({**two, "scale": [100_000]}, long, dataset={})) == "random"
    wanted = plans.plan_of(experiment(two, {"duration_s": 30}))
    assert wanted.experiment.run.slice_s == 0.5


@pytest.mark.parametrize(
    ("axes", "run", "words"),
    [
        ({}, {}, "nothing varies"),
        ({"settings": {"jit": ["a", "b", "c"]}}, {}, "jit has 3"),
        ({"protocol": ["simple", "prepared"]}, {}, "does not go with the axis protocol"),
        ({"settings": {"jit": ["on", "off"]}}, {"rate": 100}, "closed loop"),
        ({"settings": {"jit": ["on", "off"]}}, {"between": {"restart": True}}, "between.restart"),
    ],
)
def test_what_cannot_be_a_duet_is_refused(axes: dict[str, Any], run: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        decided(experiment(axes, {**run, "order": "duet"}))


def test_the_two_of_a_duet_stand_together() -> None:
    e = experiment(
        {"settings": {"jit": ["on", "off"]}, "clients": [1, 2]}, {"order": "duet", "repetitions": 2, "restarts": 2}
    )
    found = plans.units(e)
    # Two workloads, two numbers of clients, four repetitions.
    assert len(found) == 16 and all(len(unit) == 2 for unit in found)
    assert [p.plan.number for unit in found for p in unit] == list(range(1, 33))
    for a, b in found:
        assert (a.plan.varied, b.plan.varied) == ({"jit": "on"}, {"jit": "off"})
        assert (a.configuration.place.copy, b.configuration.place.copy) == (1, 2), "each setting has a server"
        assert a.plan.repetition == b.plan.repetition and a.plan.start == b.plan.start == (a.plan.repetition + 1) // 2
    same = experiment({"variables": {"n": [1, 2]}}, {"order": "duet"})
    assert {p.configuration.place for unit in plans.units(same) for p in unit} == {Place("private", "dataset")}


# ---------------------------------------------------------------- --set and --vary


def test_names_find_their_place() -> None:
    e = experiment({})
    assert vary.axes_of(e, [], ["synchronous_commit=on,off"]) == {"settings": {"synchronous_commit": ["on", "off"]}}
    assert vary.axes_of(e, [], ["n=1,2.5,x"]) == {"variables": {"n": [1, 2.5, "x"]}}
    assert vary.axes_of(e, ["clients=8", "work_mem=64MB"], ["protocol=simple,prepared"]) == {
        "clients": [8],
        "settings": {"work_mem": ["64MB"]},
        "protocol": ["simple", "prepared"],
    }


@pytest.mark.parametrize(
    ("fixed", "varied", "words"),
    [
        (["x"], [], "not of the form NAME=VALUE"),
        ([], ["=1,2"], "not of the form NAME=A,B"),
        ([], ["jit=on"], "one value is no comparison"),
        ([], ["clients=1,many"], "many is not a number"),
    ],
)
def test_what_is_no_setting_is_refused(fixed: list[str], varied: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        vary.axes_of(experiment({}), fixed, varied)


def test_an_experiment_of_many_configurations_becomes_a_comparison(tmp_path: Path) -> None:
    quick = prepare("quick", Overrides(varied=("jit=on,off",)).apply, tmp_path).experiment
    (axes,) = quick.matrices
    assert axes.hot_set == [1.0] and len(axes.clients) == 1 and (quick.run.duration_s, quick.run.restarts) == (5, 5)
    named = prepare(
        "quick",
        Overrides(run={"duration_s": 3.0}, axes={"hot_set": [0.5]}, varied=("jit=on,off",)).apply,
        tmp_path,
    ).experiment
    assert named.matrices[0].hot_set == [0.5] and named.run.duration_s == 3
