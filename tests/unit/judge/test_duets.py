"""Figures of duets, and the number of units that each stands on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading

from tests.support import synthetic


def test_a_percentile_counts_pairs_of_trials_and_the_throughput_pairs_of_slices(tmp_path: Path) -> None:
    """The p99 of a pair comes from the whole trials' own intervals; one trial here has none."""
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 3, jit=["on", "off"]), lambda p, i, r: 1000.0 * r.uniform(0.98, 1.02),
        intervals=20, manifest={"run": {"repetitions": 3, "interval_s": 1.0, "order": "duet"}},
    )  # fmt: skip
    data = reading.read(run)
    trials = []
    for t in data.trials:
        assert t.summary is not None
        latency = replace(t.summary.latency, half_widths={} if t.plan.number == 1 else {"p99_ns": 1e3})
        trials.append(replace(t, summary=replace(t.summary, latency=latency), start_ns=1))
        side = t.plan.number % 2
        data.series[t.plan.number][:] = [
            replace(row, index=4 * n + 2 * side, start_ns=row.start_ns)
            for n, row in enumerate(data.series[t.plan.number])
        ]
    data.trials[:] = trials
    n = {row.figure.name: (row.comparison.n_a, row.comparison.n_b) for row in RunAnalysis(data).comparisons.rows}
    assert n["TPS"] == (60, 60) and n["p99"] == (2, 2), n
