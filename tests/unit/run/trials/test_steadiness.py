"""What could bend a figure: each case has a truth that it is held against."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pgdyno._core import Histogram
from pgdyno.analysis import steady
from pgdyno.analysis.client import ClientHealth
from pgdyno.analysis.compare import Verdict
from pgdyno.errors import SpecError
from pgdyno.judge.axes import along_axes
from pgdyno.judge.groups import groups_of
from pgdyno.model import IntervalRow, TrialSummary
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run.planning.options import Options
from pgdyno.run.trials.steadiness import backlog_of, without_warmup
from pgdyno.spec.experiment import Experiment
from pgdyno.store import hlog, reading

from tests.support import plans, synthetic
from tests.support.synthetic import row


def trial(rows: list[IntervalRow]) -> TrialSummary:
    """A summary of these intervals, before it is judged."""
    n = sum(r.committed for r in rows)
    seconds = (rows[-1].end_ns - rows[0].start_ns) / 1e9
    return synthetic.summary_of(n / seconds, seconds, n)


def test_a_server_that_stalls_is_no_limit_of_the_client() -> None:
    # Threads that wait for a server use no CPU, want none, and their timers are on time.
    assert not ClientHealth(cpu_share=0.12, delay_share=0.01, wakeup_p99_ns=80_000).limits
    # Late timers alone, where the threads were never kept waiting, are a coarse clock.
    assert not ClientHealth(0.1, 0.02, 4e6).limits
    assert not ClientHealth(0.1, 0.6, 50_000).limits
    starved = ClientHealth(0.3, 0.5, 6e6)
    assert starved.limits and "waited for a CPU 50% of the time" in starved.evidence
    assert ClientHealth(0.97, 0.0).limits
    # No timers in a closed loop: a thread is on a CPU or waits for one all the time, and no server takes it away.
    assert ClientHealth(0.5, 0.45, 0.0, busy_share=0.95).limits
    assert not ClientHealth(0.5, 0.45, 0.0, busy_share=0.95, shared=True).limits


def open_loop(latency_ms: list[float], done: list[int], due: int) -> list[IntervalRow]:
    return [
        IntervalRow(**{**vars(row(i, 1.0, n, round(ms * 1e6))), "scheduled": due})
        for i, (ms, n) in enumerate(zip(latency_ms, done, strict=True))
    ]


def test_an_open_loop_is_judged_by_its_queue() -> None:
    rng = random.Random(1)
    noise = [rng.gauss(0, 0.05) for _ in range(60)]
    # Throughput is the rate in both; in one the queue grows.
    calm = open_loop([5 * (1 + e) for e in noise], [1000] * 60, 1000)
    growing = open_loop([5 * (1 + e) + i for i, e in enumerate(noise)], [980] * 60, 1000)
    assert [r.committed for r in growing[:2]] == [980, 980], "steady throughput, by itself"
    assert steady.judge([float(r.committed) for r in growing]).steady is True
    judged = [
        steady.judge_open_loop([r.mean_ns for r in rows], [float(r.scheduled) for r in rows], backlog_of(rows)).steady
        for rows in (calm, growing)
    ]
    assert judged == [True, False]
    # A latency that stays while the backlog grows: clients are too few, and nobody began what was due.
    backlog = open_loop([5 * (1 + e) for e in noise], [950] * 60, 1000)
    latencies = [r.mean_ns for r in backlog]
    assert steady.judge_open_loop(latencies, [1000.0] * 60, backlog_of(backlog)).steady is False


def test_a_stall_is_no_warm_up_of_an_open_loop() -> None:
    """Nothing failed, and one interval's latency is hundreds of times that of the others: it stays in the figures."""
    for at in (3, 8, 12, 22, 27, 40):
        for seed in range(10):
            rng = random.Random(seed)
            latency = [2.0 * math.exp(rng.gauss(0, 0.05)) for _ in range(60)]
            latency[at], latency[at + 1] = 500.0, 250.0
            rows = open_loop(latency, [1000] * 60, 1000)
            rows[at] = replace(rows[at], committed=300)
            rows[at + 1] = replace(rows[at + 1], committed=1700)
            found = without_warmup(trial(rows), rows, open_loop=True).summary
            assert found.warmup_dropped_s == 0 and found.steady is not False, (at, seed)
    # A true warm-up is still found.
    rng = random.Random(1)
    slow = [(2 + 20 * math.exp(-i / 4)) * math.exp(rng.gauss(0, 0.05)) for i in range(60)]
    rows = open_loop(slow, [1000] * 60, 1000)
    assert without_warmup(trial(rows), rows, open_loop=True).summary.warmup_dropped_s >= 5


def test_at_a_low_rate_intervals_without_arrivals_say_nothing() -> None:
    unsteady = dropped = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        due = rng.poisson(3, 60)
        rows = [
            replace(row(i, 1.0, int(n), round(2e6 * math.exp(rng.normal(0, 0.3)))), scheduled=int(n))
            for i, n in enumerate(due)
        ]
        found = without_warmup(trial(rows), rows, open_loop=True).summary
        unsteady += found.steady is False
        dropped += found.warmup_dropped_s > 0
    assert unsteady <= 3 and dropped <= 3


def test_an_outage_in_the_head_belongs_to_the_figure_and_to_its_interval(tmp_path: Path) -> None:
    rng = random.Random(2)
    rates = [0.0] * 8 + [1000 + rng.gauss(0, 10) for _ in range(52)]
    rows = [row(i, 1.0, rate, 200_000) for i, rate in enumerate(rates)]
    rows[3] = IntervalRow(**{**vars(rows[3]), "lost": 4})
    found = without_warmup(trial(rows), rows).summary
    mean = sum(rates) / len(rates)
    assert found.warmup_dropped_s == 0 and math.isclose(found.tps, mean, rel_tol=1e-3)
    # The calm part alone would give +-3 of 867 TPS; the figure is of all of it.
    assert found.tps_half_width is None or found.tps_half_width > 50
    # Without the loss it is a warm-up, and both are of the rest.
    calm = [row(i, 1.0, rate, 200_000) for i, rate in enumerate(rates)]
    found = without_warmup(trial(calm), calm).summary
    assert found.warmup_dropped_s >= 8 and found.tps > 990


def test_weights_of_zero_are_found_before_anything_runs() -> None:
    def workload(*weights: int) -> dict[str, object]:
        scripts = [{"builtin": "select-only", "weight": w} for w in weights]
        return {"name": "x", "title": "X", "workloads": {"w": {"scripts": scripts}}}

    assert Experiment.model_validate(workload(0, 1))
    for wrong in ((0, 0), (2**63 - 1, 2**63 - 1)):
        with pytest.raises(ValueError, match=r"weight|2147483647"):
            Experiment.model_validate(workload(*wrong))


def test_a_figure_and_its_interval_are_of_one_estimator(tmp_path: Path) -> None:
    """The mean and the percentile of all repetitions lie within their intervals as often as these say."""
    rng = np.random.default_rng(3)
    held = {"mean": 0, "p99": 0}
    known = {"mean": 0, "p99": 0}
    truth = {"mean": math.exp(12 + 0.25**2 / 2 + 0.1**2 / 2), "p99": 0.0}
    everything = np.exp(12 + rng.normal(0, 0.1, 400_000) + rng.normal(0, 0.25, 400_000))
    truth["p99"] = float(np.quantile(everything, 0.99))
    rounds = 200
    for _ in range(rounds):
        parts = []
        for _ in range(5):
            h = Histogram()
            for v in np.exp(12 + rng.normal(0, 0.1) + rng.normal(0, 0.25, 400)):
                h.record(int(v))
            parts.append(h)
        together = Histogram()
        for h in parts:
            together.merge(h)
        latency = reading.with_half_widths(hlog.latency_of(together), together, parts)
        for name, field, value in (("mean", "mean_ns", latency.mean_ns), ("p99", "p99_ns", float(latency.p99_ns))):
            half = latency.half_widths.get(field)
            if half is not None:
                known[name] += 1
                held[name] += abs(value - truth[name]) <= half
    # Five repetitions: about 95%, where it is given at all.
    assert held["mean"] >= 0.9 * known["mean"] > 0.9 * rounds * 0.9
    assert held["p99"] >= 0.85 * known["p99"] and known["p99"] > rounds // 2


def test_the_table_shows_the_mean_that_its_interval_is_of(tmp_path: Path) -> None:
    plans = synthetic.plans([4], 3)
    levels = {1: 900.0, 2: 1000.0, 3: 1700.0}
    run = synthetic.make_run(tmp_path, plans, lambda p, i, rng: levels[p.repetition])
    from pgdyno.report import view

    detail = view.build(RunAnalysis(reading.read(run)), with_charts=False).table("detail")
    assert detail is not None
    shown = dict(zip(detail.keys, detail.texts()[0], strict=True))
    assert shown["TPS"] == "1,200", "not the median, which the interval is not of"


def test_pairs_are_of_equal_repetitions(tmp_path: Path) -> None:
    """A drift from repetition to repetition cancels only between repetitions of the same number."""
    drift = {1: 1000.0, 2: 2000.0, 3: 4000.0, 4: 8000.0, 5: 16000.0}
    plans = synthetic.plans([4], 5, sync=["on", "off"])
    # A repetition of either side is missing, and not the same one.
    kept = [p for p in plans if (p.varied["sync"], p.repetition) not in (("on", 2), ("off", 4))]
    run = synthetic.make_run(
        tmp_path, kept, lambda p, i, rng: drift[p.repetition] * (1.1 if p.varied["sync"] == "off" else 1.0)
    )
    data = reading.read(run)
    (tps,) = [r for r in along_axes(data, groups_of(data)).rows if r.figure.name == "TPS"]
    c = tps.comparison
    assert c.ratio == pytest.approx(1.1, abs=0.001) and c.n_a == c.n_b == 3 and c.verdict is Verdict.FASTER


def test_datasets_of_one_database_come_one_after_the_other() -> None:
    e = Experiment.model_validate(
        {
            "name": "x",
            "title": "X",
            "datasets": {"small": {"kind": "tpcb", "scale": 1}, "large": {"kind": "tpcb", "scale": 2}},
            "axes": {"dataset": ["small", "large"], "clients": [1, 2]},
            "run": {"repetitions": 3},
            "workloads": {"w": {"scripts": [{"builtin": "select-only"}]}},
        }
    )

    def turns(one_database: bool) -> int:
        seen = [t.configuration.place.dataset for t in plans.trials(e, one_database=one_database)]
        return sum(a != b for a, b in itertools.pairwise(seen))

    assert turns(one_database=True) == 1, "loading anew for each trial would be paid with the data of the other"
    assert turns(one_database=False) > 1
    assert plans.plan_of(e, Options("host=x")).is_batched and not plans.plan_of(e).is_batched


def test_scripts_that_weigh_nothing_are_a_mistake_of_the_experiment() -> None:
    from pgdyno.run.planning.workloads import compiled

    with pytest.raises(SpecError, match="add up to zero"):
        compiled([("a.sql", "SELECT 1;", 0), ("b.sql", "SELECT 2;", 0)], {})


def test_a_stall_is_no_warm_up_of_a_closed_loop() -> None:
    for stall in ((4,), (20, 21), (1, 2, 3, 4), (27, 28), (40, 41, 42)):
        rng = random.Random(len(stall))
        rates = [0.0 if i in stall else 1000 + rng.gauss(0, 10) for i in range(60)]
        rows = [row(i, 1.0, rate, 200_000) for i, rate in enumerate(rates)]
        found = without_warmup(trial(rows), rows).summary
        assert found.warmup_dropped_s == 0 and found.steady is not False, stall
        assert math.isclose(found.tps, sum(rates) / 60, rel_tol=1e-3), stall
    # What grows into its level is one, whether from nothing or from half.
    for slow in ([0.0] * 10, [500 + 20 * i for i in range(20)]):
        rng = random.Random(1)
        rates = [*slow, *(1000 + rng.gauss(0, 10) for _ in range(60 - len(slow)))]
        rows = [row(i, 1.0, rate, 200_000) for i, rate in enumerate(rates)]
        assert without_warmup(trial(rows), rows).summary.warmup_dropped_s >= 10
