"""Progress without a terminal: a line for each trial, and one a minute within."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pgdyno._core import Histogram
from pgdyno.cli import progress
from pgdyno.cli.sysbench import SysbenchLines
from pgdyno.model import TrialPlan, TrialRecord
from pgdyno.store import hlog, reading
from pgdyno.stream.events import Body, RunEvent, Stamp, TrialFinished, TrialsPlanned, TrialStarted

from tests.support import synthetic

PLAN = TrialPlan(1, "w", 1.0, 4, 1)


def test_a_long_trial_says_something_each_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    out = io.StringIO()
    shown = progress.PlainProgress(out)
    shown.planned([PLAN], 600)
    shown.trial_started(PLAN, [])
    for second in range(1, 200):
        now = float(second)
        shown.interval(PLAN, synthetic.row(second - 1, 1.0, 1000.0, 2_000_000), {})
    lines = out.getvalue().splitlines()
    assert len(lines) == 4, lines
    assert lines[1] == "1/1 w-hot100pct-c4-r1, 60 s into it: 1,000 TPS, p99 6 ms, 0 failed"


def test_the_time_left_is_the_same_for_who_joins_late() -> None:
    """All events at once, of 60 s a trial: their stamps count, not the clock."""
    out = io.StringIO()
    shown = progress.PlainProgress(out)
    plans = [TrialPlan(n, "w", 1.0, 4, n) for n in range(1, 11)]

    def emit(body: Body, second: int) -> None:
        shown.handle(RunEvent(Stamp(0, (1_000_000 + second) * 10**9, 1, "session"), body))

    emit(TrialsPlanned(plans, 60), 0)
    for n, plan in enumerate(plans[:5]):
        emit(TrialStarted(plan, []), 60 * n)
        emit(TrialFinished(TrialRecord(plan, "finished", "")), 60 * (n + 1))
    assert out.getvalue().splitlines()[-1].endswith("(300 s left)")


def test_progress_never_goes_beyond_the_end(tmp_path: Path) -> None:
    data = reading.read(synthetic.make_run(tmp_path, synthetic.plans([4], 3), lambda *_: 1000.0))
    out = io.StringIO()
    shown = progress.PlainProgress(out)
    shown.planned([t.plan for t in data.trials[:2]], 1)
    for t in data.trials:
        shown.trial_ended(t)
    lines = out.getvalue().splitlines()
    assert lines[2].startswith("2/2 ") and lines[2].endswith("(0 s left)")
    assert lines[3].startswith("3 w-") and "left" not in lines[3]


def test_a_reader_of_sysbenchs_lines_that_goes_ends_no_run(tmp_path: Path) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            if "Threads started" in self.getvalue():
                raise BrokenPipeError
            return super().write(text)

    data = reading.read(synthetic.make_run(tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0))
    (trial,) = data.trials
    out, log = Gone(), io.StringIO()
    shown = SysbenchLines(out, log)
    shown.planned([trial.plan], 3)
    shown.trial_started(trial.plan, ["select 1", "update t set v = 1"])
    h = Histogram()
    h.record(1_000_000)
    for n in range(3):
        latencies = {hlog.TRANSACTION: h, hlog.statement(0): h, hlog.statement(1): h}
        shown.interval(trial.plan, synthetic.row(n, 1.0, 1000.0, 2_000_000), latencies)
    shown.trial_ended(trial)
    assert isinstance(shown.error, BrokenPipeError) and out.getvalue().endswith("Threads started!\n\n")
    # What goes to the log goes on.
    assert trial.plan.slug in log.getvalue()
