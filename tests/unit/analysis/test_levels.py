"""Trials that one figure does not describe: a throughput with two levels, or that stands still."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno import i18n
from pgdyno.analysis.levels import level_change
from pgdyno.cli import judge
from pgdyno.figures import BY_NAME, is_known
from pgdyno.judge import history, runs
from pgdyno.judge.axes import along_axes
from pgdyno.judge.groups import groups_of
from pgdyno.message import Message, Name, message
from pgdyno.model import Caveat
from pgdyno.report import verdicts, view
from pgdyno.report.cells import DASH
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run.trials.steadiness import regimes_of, without_warmup
from pgdyno.store import reading

from tests.support import reports, synthetic
from tests.support.synthetic import row
from tests.support.tells import tells
from tests.unit.analysis.test_truth import ar1
from tests.unit.run.trials.test_steadiness import trial


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
        return without_warmup(trial(rows), rows).summary

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
    seen = view.build(RunAnalysis(data), with_charts=False)
    first = i18n.text(seen.answer[0])
    assert tells(first, "answer-no-one-level") and "(2 of 5 trials)" in first
    detail = seen.table("detail")
    assert detail is not None
    p99 = detail.keys.index("p99 ms")
    assert [r[p99].value == DASH for r in detail.cells] == [g.variant == "off" for g in groups]
    assert all((Caveat.NO_ONE_LEVEL in t.caveats) == (t.plan.number in broken) for t in data.trials)


def test_a_percentile_needs_values_beyond_it() -> None:
    known = {count: [name for name in ("p50", "p95", "p99", "p99.9") if is_known(count, BY_NAME[name])]
             for count in (1, 19, 20, 99, 100, 999, 1000)}  # fmt: skip
    assert known[1] == ["p50"] and known[19] == ["p50"] and known[20] == ["p50", "p95"]
    assert known[99] == ["p50", "p95"] and known[100] == ["p50", "p95", "p99"] == known[999]
    assert known[1000] == ["p50", "p95", "p99", "p99.9"]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.042, 1.091, "+4.2% to +9.1%"),
        (2.4, 2.9, "2.4 to 2.9 times"),
        (0.31, 0.42, "0.31 to 0.42 times"),
        (0.8, 3.1, "-20% to +210%"),
        # Beyond a factor of 10 both ends together say nothing.
        (1e-9, 585.0, "interval too wide"),
        (0.001, 3571.0, "interval too wide"),
        (3.06, 3571.0, "3.1 times or more"),
        (1.04, 12.0, "+4.0% or more"),
        (0.001, 0.6, "-40% or less"),
        (100.0, 585.4, "100 to 590 times"),
        (360.0, 3571.0, "360 to 3,600 times"),
    ],
)
def test_an_interval_can_be_read(low: float, high: float, said: str) -> None:
    assert i18n.text(verdicts.between(low, high)) == said


@given(low=st.floats(1e-12, 1e12), factor=st.floats(1, 1e12))
def test_no_interval_mixes_forms_or_has_an_exponent(low: float, factor: float) -> None:
    said = i18n.text(verdicts.between(low, low * factor))
    assert "e+" not in said and "e-" not in said and not ("%" in said and "times" in said), said
    assert all(len(re.sub(r"^0\.0*|\D", "", part).rstrip("0")) <= 3 for part in said.split(" to ")), said


def test_advice_is_of_what_somebody_would_do(tmp_path: Path) -> None:
    def said(restarts: int, repetitions: int, spread: float) -> list[str]:
        plans = synthetic.plans([8], restarts * repetitions, setting=["on", "off"])
        plans = [replace(p, start=(p.repetition - 1) // repetitions + 1) for p in plans]
        levels = random.Random(3)
        by_trial = {p.number: 1000 * (1 + levels.uniform(-spread, spread)) for p in plans}
        facts = {"run": {"repetitions": repetitions, "restarts": restarts, "interval_s": 1.0, "order": "random",
                         "duration_s": 60.0, "warmup_s": 5.0}}  # fmt: skip
        name = f"r{restarts}-{repetitions}-{spread}"
        run = synthetic.make_run(tmp_path, plans, lambda p, i, r: by_trial[p.number], name=name, manifest=facts)
        return reports.words(view.build(RunAnalysis(reading.read(run)), with_charts=False).answer)

    few = said(2, 3, 0.2)
    assert any(tells(s, "advice-tells-more", option="--restarts 5") for s in few), few
    assert not any(re.search(r"--restarts (?!5 )|\d+ (h|days)\b", s) for s in few), few
    hopeless = said(1, 8, 0.5)
    assert any(tells(s, "advice-below") or tells(s, "advice-disturbed") for s in hopeless), hopeless
    assert not any(re.search(r"\d+ (h|days)\b|--repetitions \d{3}", s) for s in hopeless), hopeless


def test_bars_and_verdicts_have_the_same_units(tmp_path: Path) -> None:
    plans = [replace(p, start=(p.repetition + 4) // 5) for p in synthetic.plans([8], 10)]
    # Repetitions of a start are alike, starts are not: ten repetitions are two values.
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: (1000 if p.start == 1 else 1200) * r.uniform(0.99, 1.01))
    (group,) = groups_of(reading.read(run))
    assert group.over("tps").n == 2 and (group.half_width() or 0) > 0.5


def test_a_run_that_lies_apart_is_named_with_its_reason(tmp_path: Path) -> None:
    def made(name: str, level: float, caveat: Caveat | None = None):  # type: ignore[no-untyped-def]
        run = synthetic.make_run(
            tmp_path, synthetic.plans([8], 3), lambda p, i, r: level * r.uniform(0.99, 1.01), name=name
        )
        data = reading.read(run)
        for t in data.trials:
            t.caveats.extend([caveat] if caveat else [])
        return data

    usual = [made(f"u{n}", 1000 * (1 + n / 500)) for n in range(7)]
    a, b = made("a", 1000), made("b", 1010)
    calm = runs.compare_runs([a], [b], ("TPS",), others=[usual])
    assert not any(x.startswith("apart-") for x in reports.ids(calm.warnings))
    # Disturbed, and known to have been: it is left out.
    beside = made("loud", 400, Caveat.BESIDE_ANOTHER)
    found = runs.compare_runs([a], [b], ("TPS",), others=[[*usual, beside]])
    (said,) = [w for w in reports.words(found.warnings) if "lies apart" in w]
    assert beside.path in said and tells(said, "caveat-beside-another") and "400 TPS" in said
    width = found.rows[0].comparison.high / found.rows[0].comparison.low
    assert width == pytest.approx(calm.rows[0].comparison.high / calm.rows[0].comparison.low)
    # No reason is known: the next may be as loud, so it counts, and is named.
    loud = made("loud2", 400)
    found = runs.compare_runs([a], [b], ("TPS",), others=[[*usual, loud]])
    (said,) = [w for w in reports.words(found.warnings) if "lies apart" in w]
    assert loud.path in said and tells(said, "apart-unknown")
    assert found.rows[0].comparison.high / found.rows[0].comparison.low > 2 * width


def searched(folder: Path, name: str, rate: float, number: int):  # type: ignore[no-untyped-def]
    probes = [{"rate": rate * (0.8 + 0.1 * n), "holds": n < 3} for n in range(5)]
    found = {"objective": "p99 < 5 ms", "figure": "p99", "below_ns": 5e6, "rate": rate, "low": rate * 0.9,
             "high": rate * 1.1, "most": {"rate": rate * 0.8, "low": rate * 0.7, "high": rate * 0.9},
             "closed_tps": 2 * rate, "probes": probes}  # fmt: skip
    facts = {"capacity": found, "started_at": f"2026-01-{number:02}T00:00:00.000Z", "name": "searched"}
    plans = synthetic.plans([8], 1, rate=["closed", *(p["rate"] for p in probes)])
    return synthetic.make_run(folder, plans, lambda p, i, r: 100.0, name=name, manifest=facts)


def test_a_search_answers_with_what_one_would_promise(tmp_path: Path) -> None:
    v = view.build(RunAnalysis(reading.read(searched(tmp_path, "s", 1000.0, 1))), with_charts=False)
    first, tile, p99, *_ = v.answer[0], *v.tiles
    assert isinstance(first, Message) and first.id == "capacity-most"
    assert [i18n.text(first.args[x]) for x in ("most", "most_low", "most_high", "rate")] == [
        "800",
        "700",
        "900",
        "1,000",
    ]
    # The tiles are of the rate that is promised and of trials near it, whatever the fastest trial did.
    assert i18n.text(tile.value) == "800 TPS" and "700 to 900" in i18n.text(tile.note)
    assert "rate = 1000" in i18n.text(p99.note)
    assert not v.table("comparisons") and isinstance(v.title, Message) and v.title.id == "title-capacity"


def test_a_matrix_without_a_difference_answers_with_its_levels(tmp_path: Path) -> None:
    plans = synthetic.plans([8], 1, target=["small", "medium", "large"])
    tps = {"small": 1000.0, "medium": 2000.0, "large": 4000.0}
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: tps[p.varied["target"]] * r.uniform(0.99, 1.01))
    v = view.build(RunAnalysis(reading.read(run)), with_charts=False)
    # One repetition each has no verdict; what was measured is an answer all the same.
    assert [getattr(x, "id", "") for x in v.answer][:2] == ["answer-level", "answer-comparisons"]
    assert "target = large" in i18n.text(v.answer[0]) and i18n.text(v.tiles[0].value) == "3,997 TPS"


@pytest.mark.parametrize("faster", [1.0, 1.5])
def test_the_tiles_of_a_comparison_are_of_its_pair(tmp_path: Path, faster: float) -> None:
    """The p99 and the limit are those of the workload that differs, though the other one is faster by far."""
    plans = [p for w in ("quick", "slow") for p in synthetic.plans([8], 5, workload=w, setting=["on", "off"])]
    plans = [replace(p, number=n) for n, p in enumerate(plans, 1)]

    def tps(plan, i: int, rng: random.Random) -> float:  # type: ignore[no-untyped-def]
        level = 9000.0 if plan.workload == "quick" else 100.0 * (faster if plan.varied["setting"] == "off" else 1.0)
        return level * rng.uniform(0.99, 1.01)

    v = view.build(RunAnalysis(reading.read(synthetic.make_run(tmp_path, plans, tps))), with_charts=False)
    verdict, p99, limit, _ = v.tiles
    assert i18n.text(verdict.label) == "setting: off vs on"
    if faster > 1:
        assert all("slow" in i18n.text(t.note) for t in (verdict, p99, limit))
    assert i18n.text(p99.value).count("→") == 1


@pytest.mark.slow
def test_searches_are_one_figure_of_a_history(tmp_path: Path) -> None:
    for n in range(1, 13):
        searched(tmp_path, f"s{n}", 1000.0 * (0.6 if n > 7 else 1.0) * (1 + n % 3 / 100), n)
    found = history.of(tmp_path, "searched")
    (series,) = found.series
    assert series.metric == "capacity" and len(series.values) == 12 and series.values[0] == pytest.approx(1010.0)
    assert [c.index for c in series.changes] == [7]
    assert judge.follow(tmp_path, "searched", None, "worse", False) == 6


def test_a_comparison_says_what_a_run_says_of_its_neighbours(tmp_path: Path) -> None:
    made = [synthetic.make_run(tmp_path, synthetic.plans([4], 3), lambda *_: 100.0, name=n) for n in ("a", "b")]
    said = {"cause": "noisy-neighbour", "sentence": "Somebody else is on the machine: 40%."}
    (made[1] / "findings.json").write_text(json.dumps([said]))
    a, b = map(reading.read, made)
    assert message("warn-neighbour", run=Name(str(made[1])), n=1) in runs.compare_runs([a], [b]).warnings
    for damage in ("{", "[1]", '{"x": 1}', "null"):
        (made[1] / "findings.json").write_text(damage)
        assert "warn-neighbour" not in reports.ids(runs.compare_runs([a], [b]).warnings)
