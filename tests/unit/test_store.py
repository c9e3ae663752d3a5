"""The run directory: what was written is read, also after a kill at any byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pgdyno._core import Histogram
from pgdyno.errors import LocalError, UsageError
from pgdyno.model import Caveat, IntervalRow, Latency, StatementLatency, TrialPlan, TrialSummary
from pgdyno.report import markdown, view
from pgdyno.store import hlog, rundir

from tests.support import synthetic

PLAN = TrialPlan(1, "read-only", 0.1, 4, 1)


def row(index: int, phase: str = "measure", committed: int = 10) -> IntervalRow:
    s = 1_000_000_000
    return IntervalRow(
        index, phase, index * s, (index + 1) * s, committed, committed, 0, 0, 0, 0, 0, committed, 0, 0, 0, 1, 5e6,
        5_000_000, 6_000_000, 7_000_000, 8_000_000, 9_000_000, 0, "",
    )  # fmt: skip


def histogram(*values_ms: float) -> Histogram:
    h = Histogram()
    for v in values_ms:
        h.record(int(v * 1e6))
    return h


def summary() -> TrialSummary:
    latency = Latency(20, 5e6, 1e6, 9_000_000, 5_000_000, 6_000_000, 7_000_000, 8_000_000)
    statements = [StatementLatency("ro.sql", 2, "SELECT | 1", latency)]
    return TrialSummary(10, 10, 2, 20, 20, {}, 0, 0, 0, 0, 0, 0.1, 0.01, latency, statements)


def make(tmp_path: Path) -> tuple[rundir.RunDirectory, rundir.TrialWriter]:
    run = rundir.RunDirectory.create(tmp_path, "t", "name = 't'\n")
    run.update_manifest(
        title="T", workloads={"read-only": "read-only QPS"}, rows=1000, run={"repetitions": 1}, trials=1
    )
    writer = run.begin_trial(PLAN, {"scale": "1"})
    writer.start(1_700_000_000_000_000_000)
    writer.interval(row(0, "warmup"), {hlog.TRANSACTION: histogram(100.0)})
    for i in (1, 2):
        tags = {hlog.TRANSACTION: histogram(*[1.0] * 9, 2.0), hlog.statement(0): histogram(0.5)}
        writer.interval(row(i), tags)
    return run, writer


def test_what_was_written_is_read(tmp_path: Path) -> None:
    run, writer = make(tmp_path)
    writer.event(5, "connection_lost", "gone", client=3)
    writer.finish("finished", summary(), [Caveat.SHORT])
    data = rundir.read(run.path)
    (trial,) = data.trials
    assert trial.plan == PLAN and trial.summary == summary() and trial.caveats == [Caveat.SHORT]
    assert [r.index for r in data.series[1]] == [0, 1, 2]
    pooled = data.pooled["read-only", 0.1, 4]
    assert pooled.count == 20, "the warm-up is not counted"
    assert pooled.p50_ns == pytest.approx(1e6, rel=1e-3) and pooled.max_ns == pytest.approx(2e6, rel=1e-3)
    assert data.pooled_statements["read-only", 0.1, 4][0].latency.count == 2
    text = markdown.render(view.build(data), {})
    assert "SELECT \\| 1" in text and "read-only QPS" in text


def test_every_cut_of_a_running_trial_is_readable(tmp_path: Path) -> None:
    run, _ = make(tmp_path)
    folder = next((run.path / "trials").iterdir())
    for name in ("intervals.jsonl", "latency.hlog"):
        whole = (folder / name).read_bytes()
        for cut in range(0, len(whole), 7):
            (folder / name).write_bytes(whole[:cut])
            data = rundir.read(run.path)
            assert data.trials[0].state == "interrupted"
            assert len(data.series[1]) <= 3
        (folder / name).write_bytes(whole)
    (folder / "trial.json").write_text('{"plan": {"numb')
    assert rundir.read(run.path).trials == []


def test_logs_are_in_the_standard_format(tmp_path: Path) -> None:
    lines = (
        hlog.header(1_700_000_000_000_000_000) + hlog.line("transaction", 0, 10**9, histogram(1.0, 3.0))
    ).splitlines()
    assert lines[0] == "#[Histogram log format version 1.3]"
    assert lines[2].startswith("#[StartTime: 1700000000.000 (seconds since epoch), Tue Nov 14")
    tag, start, length, peak, data = lines[-1].split(",")
    assert (tag, float(start), float(length)) == ("Tag=transaction", 0.0, 1.0)
    assert float(peak) == pytest.approx(3.0, rel=1e-3)
    assert data.startswith("HISTFAAA"), "the cookie of the compressed V2 encoding, in base64"


def test_two_runs_in_one_second_have_two_folders(tmp_path: Path) -> None:
    paths = {rundir.RunDirectory.create(tmp_path, "t", "").path for _ in range(3)}
    assert len(paths) == 3


def test_what_is_no_run_directory_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run directory"):
        rundir.read(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        rundir.read(tmp_path)
    with pytest.raises(LocalError, match="cannot write"):
        rundir.RunDirectory.create(Path("/proc/nowhere"), "t", "")


def test_replacing_a_file_leaves_no_half_of_it(tmp_path: Path) -> None:
    rundir.replace_file(tmp_path / "f", "one")
    rundir.replace_file(tmp_path / "f", "two")
    assert (tmp_path / "f").read_text() == "two" and [p.name for p in tmp_path.iterdir()] == ["f"]
    assert json.dumps(rundir.now_text())


def test_a_warm_up_that_was_left_out_is_in_no_table(tmp_path: Path) -> None:
    """The intervals that turned out to be warm-up count neither in percentiles nor in the series of the measurement."""
    run = rundir.RunDirectory.create(tmp_path, "x", "")
    run.update_manifest(name="x")
    writer = run.begin_trial(PLAN, {})
    writer.start(0)
    slow, fast = Histogram(), Histogram()
    slow.record(50_000_000)
    fast.record(1_000_000)
    writer.interval(synthetic.row(0, 1.0, 10, 50_000_000), {hlog.TRANSACTION: slow})
    writer.interval(synthetic.row(1, 1.0, 100, 1_000_000), {hlog.TRANSACTION: fast})
    made = synthetic.make_run(tmp_path, [PLAN], lambda *_: 1.0, intervals=1)
    summary = rundir.read(made).trials[0].summary
    writer.finish("finished", summary, [], dropped_until_ns=1_000_000_000, merged={hlog.TRANSACTION: fast})
    data = rundir.read(run.path)
    assert [r.phase for r in data.series[PLAN.number]] == ["dropped", "measure"]
    latency = data.pooled[PLAN.key]
    assert latency.count == 1 and latency.max_ns < 2_000_000
