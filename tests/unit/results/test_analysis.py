"""The analysis of a run is computed once, whoever asks for it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pgdyno import i18n
from pgdyno.cli import as_json, thresholds
from pgdyno.diagnosis import explain
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes import every_cause
from pgdyno.diagnosis.finding import Finding
from pgdyno.diagnosis.observed import Observed
from pgdyno.judge import axes
from pgdyno.message import message
from pgdyno.report import html, view
from pgdyno.results import analysis
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run.recorder import Outcome, Recorder
from pgdyno.store import reading
from pgdyno.store.journal import RunRecorder
from pgdyno.store.rundir import RunDirectory

from tests.support import synthetic

WAITS = {"ours": 1.0, "kind": "client backend", "state": "active", "wait_type": "IO", "wait": "WalSync",
         "processes": 4.0, "looks": 10.0}  # fmt: skip


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each cause was judged, and trials were grouped and compared."""
    counted: Counter[str] = Counter()

    def counting(cause: Cause) -> Cause:
        def judge(observed: Observed) -> Finding | None:
            counted[f"{cause.name} {observed.plan.clients}"] += 1
            return cause.judge(observed)

        return Cause(cause.name, cause.kind, cause.title, judge)

    causes = [counting(c) for c in every_cause()]
    monkeypatch.setattr(explain, "every_cause", lambda: causes)
    for name, of in (("groups_of", analysis.groups_of), ("along_axes", axes.along_axes)):

        def called(*args: object, name: str = name, of: object = of) -> object:
            counted[name] += 1
            return of(*args)  # type: ignore[operator]

        monkeypatch.setattr(analysis, name, called)
    return counted


def test_each_cause_is_judged_once_for_all_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Counter[str]
) -> None:
    """The record's findings, the pages, the terminal, JSON and bounds of a run of three configurations."""
    run = synthetic.make_run(tmp_path, synthetic.plans([2, 4, 8], 2), lambda *_: 1000.0, sampled={"waits": [WAITS]})
    made = Recorder.__new__(Recorder)
    monkeypatch.setattr(made, "_directory", RunDirectory(run), raising=False)
    monkeypatch.setattr(made, "_record", RunRecorder(), raising=False)
    outcome = made.finish(Outcome(0))
    assert outcome.analysis is not None and outcome.view is not None and outcome.reports, outcome.error
    as_json.run_as_json(outcome.analysis, 0, None)
    thresholds.met(outcome.analysis, [thresholds.threshold("TPS < 1")])
    view.build(outcome.analysis, lang="zh")
    assert set(calls.values()) == {1}, calls
    assert len(calls) == 3 * len(every_cause()) + 2


def test_one_configuration_is_judged_alone(tmp_path: Path, calls: Counter[str]) -> None:
    run = RunAnalysis(reading.read(synthetic.make_run(tmp_path, synthetic.plans([2, 4], 1), lambda *_: 1000.0)))
    run.diagnosis_of(run.groups[0])
    assert {name.split()[-1] for name in calls} == {"2", "groups_of"}
    assert run.diagnosis and set(calls.values()) == {1}


def test_of_very_many_configurations_the_fastest_and_some_others_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = synthetic.plans(list(range(1, 21)), 1)
    made = synthetic.make_run(tmp_path, plans, lambda p, *_: 5000.0 if p.clients == 7 else 100.0, intervals=3)
    monkeypatch.setattr(analysis, "MOST_DIAGNOSED", 19)
    monkeypatch.setattr(analysis, "SAMPLE_DIAGNOSED", 5)
    run = RunAnalysis(reading.read(made))
    judged = [g.clients for g in run.diagnosed]
    assert len(judged) == 5 and 7 in judged and judged == sorted(judged)
    shown = view.build(run)
    (sentence,) = shown.not_judged
    assert sentence == message("not-judged-many", n=5, of=20)
    assert "5 of 20 configurations" in i18n.text(sentence) and "5 of 20 configurations" in html.render(shown)
    assert as_json.run_as_json(run, 0, None)["judged_configurations"] == 5
    monkeypatch.undo()
    assert len(RunAnalysis(reading.read(made)).diagnosed) == 20
