"""Summary of a trial from its log: sums, without a warm-up, and how certain its latencies are."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno._core import Histogram
from pgdyno.analysis.quantiles import mean_half_width, mean_half_width_over, quantile_band
from pgdyno.analysis.spread import student_975
from pgdyno.model import StatementLatency, TrialSummary
from pgdyno.store import hlog
from pgdyno.store.summary import summarize
from scipy import stats

from tests.support import synthetic
from tests.unit.analysis.test_truth import ar1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_a_percentiles_interval_holds_the_truth(part: float, rho: float) -> None:
    """Latencies whose level wanders from interval to interval: neighbours resemble each other, and transactions of one
    interval even more.
    """
    rng = np.random.default_rng(11)
    n, each, rounds, wander, noise = 200, 200, 300, 0.2, 0.4
    truth = math.exp(stats.norm.ppf(part) * math.hypot(wander, noise))
    held = counted = 0
    widths: list[float] = []
    for _ in range(rounds):
        level = ar1(rng, n, rho) * wander
        values = np.exp(level[:, None] + rng.normal(0, noise, (n, each)))
        found = np.quantile(values, part)
        band = quantile_band([each] * n, (values <= found).sum(axis=1))
        if band is None:
            continue
        counted += 1
        held += bool(np.quantile(values, band[0]) <= truth <= np.quantile(values, band[1]))
        # As if transactions were independent, as binomial intervals have it.
        naive = 2 * 1.96 * math.sqrt(part * (1 - part) / (n * each))
        widths.append((band[1] - band[0]) / naive)
    assert counted > 0.98 * rounds
    assert held / counted > 0.9
    assert float(np.median(widths)) > (2 if rho else 1)


def test_a_means_interval_holds_the_truth() -> None:
    rng = np.random.default_rng(12)
    held, widths = 0, []
    for _ in range(300):
        counts = rng.poisson(100, 100)
        sums = np.array([rng.exponential(2.0, c).sum() for c in counts])
        half = mean_half_width(counts, sums)
        assert half is not None
        held += abs(sums.sum() / counts.sum() - 2.0) <= half
        widths.append(half)
    # That of all values as independent ones; that they are is not known.
    assert held / 300 > 0.93 and 1 < np.median(widths) / (1.96 * 2.0 / math.sqrt(100 * 100)) < 1.4


def test_what_cannot_be_told_is_not_told() -> None:
    assert mean_half_width([], []) is None
    assert mean_half_width([0, 0, 0, 0], [0, 0, 0, 0]) is None
    assert mean_half_width([5] * 19, [9] * 19) is None
    # The 99.9th percentile of 800 values is their largest: nothing lies beyond it.
    assert quantile_band([10] * 80, [10] * 80) is None
    assert quantile_band([0] * 80, [0] * 80) is None
    # All of it happened in one interval: nothing is known of others.
    assert mean_half_width([0] * 79 + [5], [0] * 79 + [400]) is None
    assert quantile_band([0] * 79 + [8], [0] * 79 + [4]) is None
    # Two values on one side are no ground for a bound.
    assert quantile_band([1] * 30, [0, 1] + [1] * 27 + [0]) is None


def summary_of(latency: Histogram, statement: Histogram) -> TrialSummary:
    """A finished trial's."""
    return TrialSummary(
        tps=1, qps=1, elapsed_s=1, scheduled=1, committed=1, failed={}, skipped=0, unknown=0, unfinished=0, lost=0,
        reconnects=0, client_cpu_share=0, connect_s=0, latency=hlog.latency_of(latency),
        statements=[StatementLatency("s.sql", 1, "SELECT 1", hlog.latency_of(statement))],
    )  # fmt: skip


def log_of(path: Path, intervals: int) -> tuple[list[synthetic.IntervalRow], dict[str, Histogram]]:
    """A trial's log: the warm-up is ten times slower; the last interval is the drain's."""
    rng = random.Random(3)
    rows = [synthetic.row(i, 1.0, 200, 1) for i in range(intervals)]
    rows[0] = synthetic.row(0, 1.0, 200, 1, phase="warmup")
    rows[-1] = synthetic.row(intervals - 1, 1.0, 200, 1, phase="drain")
    merged: dict[str, Histogram] = {}
    with path.open("w") as out:
        out.write(hlog.header(0))
        for i, row in enumerate(rows):
            for tag, scale in ((hlog.TRANSACTION, 1.0), (hlog.statement(0), 0.1)):
                h = synthetic.histogram(round(scale * (2_000_000 if i == 0 else 200_000)), rng)
                out.write(hlog.line(tag, row.start_ns, row.end_ns, h))
                if i:
                    merged.setdefault(tag, Histogram()).merge(h)
        out.write("Tag=transaction,torn")
    return rows[1:], merged


def test_a_trials_log_says_how_sure_it_is(tmp_path: Path) -> None:
    rows, merged = log_of(tmp_path / "latency.hlog", 40)
    summary = summary_of(merged[hlog.TRANSACTION], merged[hlog.statement(0)])
    sure = summarize(tmp_path / "latency.hlog", rows, summary, merged).summary
    for latency in (sure.latency, sure.statements[0].latency):
        assert latency.half_widths.keys() >= {"mean_ns", "p50_ns", "p95_ns", "p99_ns"}
        # Lognormal with sigma 0.3, 39 intervals of 200; how alike neighbours are is known only roughly from so few.
        error = 0.3 / math.sqrt(7800)
        assert 1 < latency.half_widths["mean_ns"] / latency.mean_ns / error < 6
        parts = [latency.half_widths[f"p{p}_ns"] / getattr(latency, f"p{p}_ns") for p in (50, 95, 99)]
        assert 0.001 < parts[0] < parts[2] < 0.05
    assert sure.latency.percentiles() == summary.latency.percentiles()


def test_a_warm_up_that_is_cut_leaves_the_count_of_empty_results_its_base(tmp_path: Path) -> None:
    """40% of all executions found no row: not most of them, however few latencies a cut leaves."""
    rows, merged = log_of(tmp_path / "latency.hlog", 40)
    summary = summary_of(merged[hlog.TRANSACTION], merged[hlog.statement(0)])
    n = merged[hlog.statement(0)].count
    summary = replace(summary, statements=[replace(summary.statements[0], empty=int(0.4 * n), executions=n)])
    until = rows[len(rows) // 2].start_ns
    cut = summarize(tmp_path / "latency.hlog", rows, summary, merged, dropped_until_ns=until).summary.statements[0]
    assert cut.latency.count < 0.6 * n and cut.executed == n and not cut.does_nothing
    # Records of earlier versions have no number of executions.
    assert replace(cut, executions=0).executed == cut.latency.count


def test_a_log_that_is_gone_or_short_says_nothing(tmp_path: Path) -> None:
    rows, merged = log_of(tmp_path / "latency.hlog", 20)
    summary = summary_of(merged[hlog.TRANSACTION], merged[hlog.statement(0)])
    assert summarize(tmp_path / "latency.hlog", rows, summary, merged).summary.latency.half_widths == {}
    assert summarize(tmp_path / "none", rows, summary, merged).summary.latency.half_widths == {}
    assert summarize(tmp_path / "latency.hlog", [], summary, merged).summary == summary


@pytest.mark.parametrize("wrong", ["queue shrinks", "skipped", "unfinished"])
def test_what_is_not_steady_has_no_interval(tmp_path: Path, wrong: str) -> None:
    """The latency of a queue that grows throughout tells how long was measured."""
    rows, merged = log_of(tmp_path / "latency.hlog", 40)
    if wrong == "queue shrinks":
        # What the drain waited for is slow in every trial, and says nothing of a trend.
        slow = {"measure": 1, "drain": 50}
        rows = [replace(r, mean_ns=200_000 * (40 - r.index) * slow[r.phase]) for r in rows]
    summary = summary_of(merged[hlog.TRANSACTION], merged[hlog.statement(0)])
    summary = replace(summary, **({} if wrong == "queue shrinks" else {wrong: 5}))
    assert summarize(tmp_path / "latency.hlog", rows, summary, merged).summary == summary


def test_equal_percentiles_are_not_certain(tmp_path: Path) -> None:
    """All values in one bucket: known to the histogram's resolution, no better."""
    rows, merged = [synthetic.row(i, 1.0, 200, 1) for i in range(30)], {hlog.TRANSACTION: Histogram()}
    with (tmp_path / "latency.hlog").open("w") as out:
        for row in rows:
            h = Histogram()
            for value in (100_000, 100_001, 100_002) * 10:
                h.record(value)
            merged[hlog.TRANSACTION].merge(h)
            out.write(hlog.line(hlog.TRANSACTION, row.start_ns, row.end_ns, h))
    summary = summary_of(merged[hlog.TRANSACTION], Histogram())
    found = summarize(tmp_path / "latency.hlog", rows, summary, merged).summary.latency
    assert all(width >= 50 for name, width in found.half_widths.items() if name != "mean_ns")


def test_a_slow_drain_is_no_trend(tmp_path: Path) -> None:
    rows, merged = log_of(tmp_path / "latency.hlog", 40)
    rows[-1] = replace(rows[-1], mean_ns=100 * rows[0].mean_ns)
    summary = summary_of(merged[hlog.TRANSACTION], merged[hlog.statement(0)])
    assert summarize(tmp_path / "latency.hlog", rows, summary, merged).summary.latency.half_widths


def test_a_warm_up_that_is_dropped_leaves_what_the_rest_alone_would_give(tmp_path: Path) -> None:
    """One reading of the log gives the sums, percentiles and intervals of a trial that began later."""
    rng, log = random.Random(5), tmp_path / "latency.hlog"
    rows = [synthetic.row(i, 1.0, 200, 1) for i in range(60)]
    whole, rest = Histogram(), Histogram()
    with log.open("w") as out:
        out.write(hlog.header(0))
        for i, row in enumerate(rows):
            h = synthetic.histogram(900_000 if i < 8 else 200_000, rng)
            out.write(hlog.line(hlog.TRANSACTION, row.start_ns, row.end_ns, h))
            out.write(hlog.line("staleness-s1", row.start_ns, row.end_ns, h))
            whole.merge(h)
            if i >= 8:
                rest.merge(h)
    sums = {hlog.TRANSACTION: whole}
    cut = summarize(log, rows, summary_of(whole, Histogram()), sums, dropped_until_ns=rows[8].start_ns)
    alone = summarize(log, rows[8:], summary_of(rest, Histogram()), {hlog.TRANSACTION: rest})
    assert cut.summary.latency.percentiles() == alone.summary.latency.percentiles()
    assert cut.summary.latency.half_widths == alone.summary.latency.half_widths != {}
    assert {tag: h.buckets() for tag, h in cut.merged.items()} == {
        hlog.TRANSACTION: rest.buckets(),
        "staleness-s1": rest.buckets(),
    }
    assert whole.count > rest.count, "the engine's sum stays as it is"


@given(
    st.lists(
        st.tuples(st.integers(1, 10**9), st.floats(0, 1e12, allow_nan=False)).map(lambda x: (x[0], x[0] * x[1] / 1e12)),
        min_size=2,
        max_size=9,
    )
)
def test_the_deviation_of_repetitions_is_exact(found: list[tuple[int, float]]) -> None:
    """The deviation is that of `statistics.stdev`, which computes with fractions."""
    counts, sums = [float(n) for n, _ in found], [s for _, s in found]
    half = mean_half_width_over(counts, sums)
    ratio, size = math.fsum(sums) / math.fsum(counts), math.fsum(counts) / len(counts)
    parts = [(s - ratio * n) / size for n, s in zip(counts, sums, strict=True)]
    exact = student_975(len(counts) - 1) * statistics.stdev(parts) / math.sqrt(len(counts))
    assert half == pytest.approx(exact, rel=1e-9, abs=1e-15)
