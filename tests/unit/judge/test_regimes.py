"""Changes of level: which of them stand against the result of a run, of known truth."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pgdyno.analysis.compare import Verdict
from pgdyno.model import Caveat, TrialPlan
from pgdyno.report import view
from pgdyno.report.view import View
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading

from tests.support import synthetic

#: Of these, four have a pair of slices in a duet.
INTERVALS = 80
SETTINGS = {"on": 1000.0, "off": 1500.0}
DUET = {"run": {"repetitions": 8, "interval_s": 1.0, "order": "duet", "slice_s": 1.0}}


def made(
    folder: Path, changes: Callable[[TrialPlan, bool], float], manifest: dict[str, object] | None = None
) -> RunAnalysis:
    """A run of eight repetitions in which "off" is 1.5 times as fast; `changes` is a factor of each half of a trial."""

    def tps(plan: TrialPlan, i: int, rng: random.Random) -> float:
        return SETTINGS[str(plan.varied["setting"])] * changes(plan, i >= INTERVALS // 2) * rng.uniform(0.99, 1.01)

    plans = synthetic.plans([8], 8, setting=list(SETTINGS))
    return RunAnalysis(reading.read(synthetic.make_run(folder, plans, tps, manifest=manifest, intervals=INTERVALS)))


def is_alarmed(v: View) -> bool:
    """The page begins with a sentence that the figures cannot be used, and the run ends with exit code 1."""
    ids = {"answer-no-one-level", "answer-no-one-ratio"}
    alarmed = getattr(v.answer[0], "id", "") in ids
    assert alarmed == bool(v.wrong) == (getattr(v.short[0], "id", "") in ids)
    return alarmed


def tps_of(run: RunAnalysis) -> tuple[Verdict, int]:
    (row,) = (r for r in run.comparisons.rows if r.figure.name == "TPS")
    return row.comparison.verdict, row.comparison.n_b


@pytest.mark.parametrize(("n", "alarmed"), [(0, False), (1, False), (2, False), (3, True), (8, True)])
@pytest.mark.parametrize("side", ["on", "off"])
def test_a_verdict_does_without_few_trials(tmp_path: Path, n: int, side: str, alarmed: bool) -> None:
    run = made(tmp_path, lambda p, late: 0.5 if late and p.repetition <= n and p.varied["setting"] == side else 1.0)
    v = view.build(run, with_charts=False)
    assert is_alarmed(v) == alarmed
    assert bool(run.spoiling) == alarmed
    if n < 8:
        assert tps_of(run)[0] is Verdict.FASTER
    assert sum(Caveat.NO_ONE_LEVEL in t.caveats for t in run.data.trials) == n
    ids = {getattr(c.text, "id", "") for c in v.caveats}
    assert ("caveat-levels-left-out" in ids) == (n > 0 and not alarmed)


@pytest.mark.parametrize("n", [1, 8])
def test_levels_that_both_sides_of_a_duet_have_cancel_out(tmp_path: Path, n: int) -> None:
    run = made(tmp_path, lambda p, late: 0.5 if late and p.repetition <= n else 1.0, DUET)
    v = view.build(run, with_charts=False)
    assert not is_alarmed(v) and not run.spoiling
    assert tps_of(run)[0] is Verdict.FASTER
    assert [getattr(c.text, "id", "") for c in v.caveats].count("caveat-levels-cancel") == 1


@pytest.mark.parametrize(("n", "alarmed"), [(1, False), (2, False), (3, True), (8, True)])
def test_a_side_of_a_duet_that_changes_alone_has_no_ratio(tmp_path: Path, n: int, alarmed: bool) -> None:
    run = made(
        tmp_path, lambda p, late: 0.5 if late and p.repetition <= n and p.varied["setting"] == "off" else 1.0, DUET
    )
    v = view.build(run, with_charts=False)
    assert is_alarmed(v) == alarmed
    assert len(run.comparisons.uneven) == 2 * n
    assert "caveat-no-one-ratio" in {getattr(c.text, "id", "") for c in v.caveats}


def test_levels_of_a_run_that_compares_nothing_stand_against_it(tmp_path: Path) -> None:
    plans = synthetic.plans([8], 8)
    path = synthetic.make_run(
        tmp_path, plans, lambda p, i, r: 500.0 if i >= 12 and p.repetition == 1 else 1000.0, intervals=24
    )
    assert is_alarmed(view.build(RunAnalysis(reading.read(path)), with_charts=False))
