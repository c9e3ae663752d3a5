"""Contrast of slow stretches with the rest: made-up series with known truth, and the causes that use it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pgdyno import i18n
from pgdyno.diagnosis import contrast, dips, foreign, wait_events
from pgdyno.diagnosis.contrast import Series
from pgdyno.diagnosis.finding import Confidence, Finding
from pgdyno.diagnosis.recorded import Array, Recorded, mean_over
from pgdyno.message import Name
from pgdyno.model import IntervalRow
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading

from tests.support import synthetic

_OURS = {"ours": 1.0, "kind": "client backend", "state": "active", "wait_type": "", "wait": "", "looks": 10.0}
_COMMAND = {"application": "cron", "command": "VACUUM FULL big", "state": "active", "wait": "", "sessions": 1.0}
_CPU = {"cpu_user": 1.9, "cpu_nice": 0.0, "cpu_system": 0.05, "cpu_irq": 0.0, "cpu_softirq": 0.0, "cpu_iowait": 0.0,
        "cpu_idle": 0.05, "cpu_steal": 0.0, "cores": 2.0}  # fmt: skip
_BACKENDS = {"kind": "client backend", "processes": 5.0, "cpu": 1.8, "waiting_for_cpu": 3.0, "in_disk_sleep": 0.0}


def _run(folder: Path, tps: Any, sampled: dict[str, Any], events: Any = (), n: int = 40) -> reading.RunData:
    return reading.read(
        synthetic.make_run(
            folder, synthetic.plans([4], 1), lambda p, i, r: tps(i) * r.uniform(0.97, 1.03), intervals=n,
            sampled=sampled, events=events,
        )
    )  # fmt: skip


def _found(data: reading.RunData, cause: str) -> Finding | None:
    return next((f for f in RunAnalysis(data).diagnosis.findings if f.cause == cause), None)


def _noise(rng: np.random.Generator, n: int, alike: float) -> Array:
    x = np.zeros(n)
    for i in range(1, n):
        x[i] = alike * x[i - 1] + rng.normal()
    return x + rng.normal() * 3


@pytest.mark.sampled(1)
@pytest.mark.parametrize("alike", [0.0, 0.5, pytest.param(0.8, marks=pytest.mark.slow)])
def test_noise_separates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alike: float) -> None:
    """Series that have nothing to do with the throughput raise an alarm in few trials."""
    data = _run(tmp_path, lambda i: 1000.0, {"waits": [{**_OURS, "processes": 4.0}]}, n=60)
    r = Recorded(data, data.trials[0])
    rng = np.random.default_rng(5)
    trials, alarms = 150, 0
    for _ in range(trials):
        series = [Series("wait", str(i), "share", _noise(rng, 60, alike)) for i in range(30)]
        monkeypatch.setattr(contrast, "every_series", lambda r, times, made=series: made)
        alarms += bool(contrast.separators(r, [(25_000_000_000, 33_000_000_000)]))
    # Benjamini and Hochberg hold 5%.
    assert alarms / trials <= 0.08


@pytest.mark.parametrize("seed", range(8))
def test_the_series_that_rises_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, begin, length = 60, int(rng.integers(5, 40)), int(rng.integers(5, 15))
    data = _run(tmp_path, lambda i: 1000.0, {"waits": [{**_OURS, "processes": 4.0}]}, n=n)
    series = [Series("wait", f"noise {i}", "share", _noise(rng, n, 0.3)) for i in range(40)]
    inside = (np.arange(n) >= begin) & (np.arange(n) < begin + length)
    planted = rng.normal(1, 0.1, n) + inside * rng.uniform(0.6, 2)
    falling = rng.normal(5, 0.1, n) - inside * 4
    series += [Series("wait", "planted", "share", planted), Series("wait", "falling", "share", falling)]
    monkeypatch.setattr(contrast, "every_series", lambda r, times: series)
    found = contrast.separators(Recorded(data, data.trials[0]), [(begin * 10**9, (begin + length) * 10**9)])
    # What falls with the throughput is its effect. One of 20 that are named may be noise.
    names = [s.series.about for s in found]
    assert names[0] == "planted" and len(names) <= 2 and "falling" not in names


def test_a_mean_over_times_is_weighted_and_knows_its_gaps() -> None:
    times = [(0, 10), (10, 20), (20, 30), (30, 40)]
    values = {(0, 5): 2.0, (5, 15): 4.0, (15, 20): 0.0}
    found = mean_over(times, values, [*values, (20, 24)])
    assert list(found[:2]) == [3.0, 2.0] and np.isnan(found[2]) and np.isnan(found[3])
    # A sample without a value counts as 0.
    assert list(mean_over(times[:2], {(0, 10): 1.0}, [(0, 10), (10, 20)])) == [1.0, 0.0]


def test_a_command_that_runs_for_a_part_of_the_trial_is_named_with_what_it_costs(tmp_path: Path) -> None:
    def commands(i: int) -> list[dict[str, Any]]:
        # Another one runs all the time, and costs nothing.
        other = {**_COMMAND, "command": "fetch 10 from c", "sessions": 0.6}
        return [_COMMAND, other] if 10 <= i < 18 else [other]

    data = _run(
        tmp_path, lambda i: 400.0 if 10 <= i < 18 else 1000.0,
        {"waits": [{**_OURS, "processes": 4.0}], "commands": commands},
    )  # fmt: skip
    found = _found(data, "foreign-command")
    assert found is not None and found.confidence is Confidence.HIGH
    assert found.message.args["command"] == Name("VACUUM FULL big")
    assert found.cost.low < 0.12 < found.cost.high and found.cost.high - found.cost.low < 0.05
    # It tells why, so the dip itself is not a finding of its own.
    assert _found(data, "stalls") is None


@pytest.mark.parametrize(("busy", "is_named"), [(True, True), (False, False)])
def test_a_command_that_runs_all_the_time_is_named_where_the_processors_are_full(
    tmp_path: Path, busy: bool, is_named: bool
) -> None:
    cpu = _CPU if busy else {**_CPU, "cpu_user": 0.5, "cpu_idle": 1.5}
    data = _run(
        tmp_path, lambda i: 1000.0,
        {"waits": [{**_OURS, "processes": 2.0}], "commands": [_COMMAND], "machine": [cpu], "processes": [_BACKENDS]},
    )  # fmt: skip
    found = _found(data, "foreign-command")
    assert (found is not None) == is_named
    if found is not None:
        assert found.message.id == "foreign-command-concurrent" and found.cost.mean == pytest.approx(1 / 3, abs=0.01)


def test_a_command_in_the_second_half_of_a_trial_that_falls_is_named_by_the_cpus_it_uses(tmp_path: Path) -> None:
    """A fall and a step cannot be told apart by so few samples; what the command uses of full CPUs is known."""
    data = _run(
        tmp_path, lambda i: 1000.0 - 20 * i,
        {
            "waits": [{**_OURS, "processes": 2.0}], "machine": [_CPU], "processes": [_BACKENDS],
            "commands": lambda i: [_COMMAND] if i >= 10 else [],
        }, n=20,
    )  # fmt: skip
    found = _found(data, "foreign-command")
    assert found is not None and found.message.id == "foreign-command-concurrent"
    # One of three that run, during half of the time.
    assert found.cost.mean == pytest.approx(1 / 6, abs=0.02) and found.cost.low > 0.1


def test_the_bytes_of_a_command_are_those_that_its_sessions_counted_or_the_kernel(tmp_path: Path) -> None:
    def some(row: dict[str, Any]) -> Any:
        return lambda i: [row] if 10 <= i < 14 else []

    kernel = {**_BACKENDS, "kind": "other session", "cpu": 0.5, "read_bytes_per_s": 0.0, "write_bytes_per_s": 1e7}
    counted = {"application": "psql", "command": "VACUUM FULL big", "read_bytes": 1e6, "write_bytes": 2e6,
               "wal_bytes": 3e6}  # fmt: skip
    sampled = {"commands": some(_COMMAND), "processes": [kernel]}
    runs = {
        name: _run(tmp_path / name, lambda i: 1000.0, {**sampled, **more})
        for name, more in (
            ("kernel", {}), ("counted", {"command_io": some(counted)}),
            ("several", {"commands": lambda i: [_COMMAND, {**_COMMAND, "command": "fetch 10 from c"}]}),
        )
    }  # fmt: skip
    found = {name: foreign.moved([Recorded(d, t) for t in d.trials], "VACUUM FULL big") for name, d in runs.items()}
    # Four samples of a second; of those before and behind, nothing.
    assert found == {"kernel": foreign.Moved(0.0, 4e7), "counted": foreign.Moved(0.0, 4e7, 1.2e7), "several": None}


def test_the_cpus_of_other_sessions_are_not_those_of_the_clients(tmp_path: Path) -> None:
    """Backends that wait for a CPU look idle: what the kernel counts for them shows it, beside others at work too."""
    idle = {**_OURS, "state": "idle", "wait_type": "Client", "wait": "ClientRead", "processes": 4.0}
    foreign = {**_OURS, "ours": 0.0, "processes": 1.0}
    own, theirs = {**_BACKENDS, "cpu": 1.0, "waiting_for_cpu": 1.0}, {**_BACKENDS, "kind": "other session", "cpu": 0.8}
    sampled = {"waits": [idle, foreign], "machine": [_CPU], "commands": [_COMMAND]}
    runs = {
        name: _run(tmp_path / name, lambda i: 1000.0, {**sampled, "processes": rows})
        for name, rows in (("old", [own]), ("new", [own, theirs]))
    }
    old, new = (Recorded(data, data.trials[0]) for data in runs.values())
    assert not old.tells_others_apart and new.tells_others_apart
    assert [sum(s.counts.get(("active", "", ""), 0.0) for s in r.client_time[:1]) for r in (old, new)] == [0.0, 2.0]


def test_freezes_at_the_beginning_are_no_lower_level(tmp_path: Path) -> None:
    """Two freezes in the first half make its mean lower: the same level with holes."""

    def slowest(i: int) -> dict[str, int]:
        return {"max_ns": 1_500_000_000} if i in (3, 7) else {}

    data = _run(
        tmp_path, lambda i: 100.0 if i in (2, 3, 6, 7) else 1000.0, {"waits": [{**_OURS, "processes": 4.0}]}, n=20
    )
    rows = data.series[1]
    data.series[1] = [replace(r, **slowest(n)) for n, r in enumerate(rows)]
    recorded = Recorded(data, data.trials[0])
    assert [d.frozen_ns for d in dips.dips_of(recorded)] == [1_500_000_000] * 2
    assert _found(data, "level-change") is None
    found = _found(data, "stalls")
    assert found is not None and found.cost.mean == pytest.approx(0.18, abs=0.03)


@pytest.mark.parametrize("n", [5, 40])
def test_a_freeze_that_the_engine_has_recorded_is_a_dip_however_noisy_the_rest(tmp_path: Path, n: int) -> None:
    data = _run(tmp_path, lambda i: 1000.0 * (0.6 + 0.4 * (i % 2)), {"waits": [{**_OURS, "processes": 4.0}]}, n=n)

    def silent(i: int, r: IntervalRow) -> IntervalRow:
        # One that lies in an interval, and one that began in the interval before.
        length, start = {1: (400, r.start_ns + 300_000_000), 4: (600, r.start_ns - 200_000_000)}.get(i, (1, r.start_ns))
        return replace(r, silent_ns=length * 1_000_000, silent_from_ns=start)

    data.series[1] = [silent(i, r) for i, r in enumerate(data.series[1])]
    found = dips.dips_of(Recorded(data, data.trials[0]))
    assert [d.frozen_ns for d in found] == [400_000_000, 600_000_000]
    assert [d.seconds for d in found] == [1.0, 2.0] and found[0].loss >= 0.4


def test_a_slow_script_that_one_client_runs_now_and_then_is_no_freeze(tmp_path: Path) -> None:
    """Nobody gets an answer meanwhile, and that is usual: the 99th percentile has it."""
    data = _run(tmp_path, lambda i: 1000.0, {"waits": [{**_OURS, "processes": 1.0}]}, n=40)
    slow = {"silent_ns": 150_000_000, "p50_ns": 1_000_000, "p99_ns": 150_000_000, "max_ns": 155_000_000}
    data.series[1] = [replace(r, **slow, silent_from_ns=r.start_ns + 200_000_000) for r in data.series[1]]
    assert dips.dips_of(Recorded(data, data.trials[0])) == []


def _waiting(i: int) -> list[dict[str, Any]]:
    slow = {**_OURS, "wait_type": "IO", "wait": "WalSync", "processes": 3.0}
    return [{**_OURS, "processes": 1.0}, slow] if i >= 25 else [{**_OURS, "processes": 4.0}]


def test_two_levels_are_told_with_what_differs(tmp_path: Path) -> None:
    events = [(0.0, "schema changed", "index t_pkey was dropped"), (25.5, "configuration reloaded", "x")]
    data = _run(tmp_path, lambda i: 200.0 if i >= 25 else 1000.0, {"waits": _waiting}, events)
    first = RunAnalysis(data).diagnosis.findings[0]
    assert first.cause == "level-change" and first.message.id == "level-change-fell"
    assert first.cost.mean == pytest.approx(0.8 * 15 / 40, abs=0.02) and first.confidence is Confidence.HIGH
    text = i18n.text(first.message)
    assert "index t_pkey was dropped" in text and "IO WalSync 0.0% → 75%" in text and "reloaded" in text


def test_a_small_step_counts_only_beside_a_known_change(tmp_path: Path) -> None:
    waits = {"waits": [{**_OURS, "processes": 4.0}]}

    def level(i: int) -> float:
        return 880.0 if i >= 15 else 1000.0

    assert _found(_run(tmp_path / "1", level, waits), "level-change") is None
    events = [(0.0, "schema changed", "index t_v was created")]
    found = _found(_run(tmp_path / "2", level, waits, events), "level-change")
    assert found is not None and found.cost.mean == pytest.approx(0.12 * 25 / 40, abs=0.02)
    calm = _run(tmp_path / "3", lambda i: 1000.0, waits, events)
    assert _found(calm, "level-change") is None


def test_a_level_without_an_event_is_less_sure_and_one_level_is_none(tmp_path: Path) -> None:
    data = _run(tmp_path / "1", lambda i: 1000.0 if i >= 12 else 500.0, {"waits": [{**_OURS, "processes": 4.0}]})
    found = _found(data, "level-change")
    assert found is not None and found.message.id == "level-change-rose"
    assert found.confidence is Confidence.MEDIUM and found.message.args["seen"].id == "contrast-nothing"  # type: ignore[union-attr]
    calm = _run(tmp_path / "2", lambda i: 1000.0, {"waits": _waiting})
    assert _found(calm, "level-change") is None and _found(calm, "stalls") is None


def test_a_dip_tells_what_rose_meanwhile(tmp_path: Path) -> None:
    def processes(i: int) -> list[dict[str, Any]]:
        return [{**_BACKENDS, "stopped": 4.0 if 20 <= i < 24 else 0.0}]

    data = _run(
        tmp_path, lambda i: 10.0 if 20 <= i < 24 else 1000.0,
        {"waits": [{**_OURS, "processes": 4.0}], "processes": processes},
    )  # fmt: skip
    found = _found(data, "stalls")
    assert found is not None and found.confidence is Confidence.MEDIUM
    assert "client backend processes stopped by a signal 0 → 4" in i18n.text(found.message)


def _frozen(tmp_path: Path, seconds: list[float], longest_s: list[float]) -> Recorded:
    """Intervals of a second of which some lack `seconds`, with the slowest transaction of each."""
    data = _run(tmp_path, lambda i: 1000.0, {"waits": [{**_OURS, "processes": 4.0}]}, n=len(seconds))
    r = Recorded(data, data.trials[0])
    r.__dict__["intervals"] = [
        replace(row, committed=round(row.committed * (1 - lacks)), p50_ns=200_000, max_ns=round(longest * 1e9))
        for row, lacks, longest in zip(r.intervals, seconds, longest_s, strict=True)
    ]
    return r


def test_a_freeze_shorter_than_an_interval_is_a_dip(tmp_path: Path) -> None:
    lacks, longest = [0.0] * 30, [0.002] * 30
    lacks[7], longest[7] = 0.27, 0.25
    lacks[19], longest[19] = 0.4, 0.4
    found = dips.dips_of(_frozen(tmp_path / "1", lacks, longest))
    assert [(d.start_ns // 10**9, d.frozen_ns) for d in found] == [(7, 250_000_000), (19, 400_000_000)]
    # One client alone was slow: the others went on.
    assert dips.dips_of(_frozen(tmp_path / "2", [0.0] * 30, longest)) == []
    # Throughput is a little lower, and nothing was slow.
    lacks[19] = 0.0
    assert dips.dips_of(_frozen(tmp_path / "3", lacks, [0.002] * 30)) == []


def test_commands_that_differ_in_numbers_are_one(tmp_path: Path) -> None:
    def commands(i: int) -> list[dict[str, Any]]:
        return [{**_COMMAND, "command": f"insert into log_{i} select …"}] if 10 <= i < 20 else []

    data = _run(
        tmp_path, lambda i: 500.0 if 10 <= i < 20 else 1000.0, {"waits": [{**_OURS, "processes": 4.0}],
        "commands": commands},
    )  # fmt: skip
    found = _found(data, "foreign-command")
    assert found is not None and found.message.args["command"] == Name("insert into log_… select …")
    assert found.message.args["others"] is None


@pytest.mark.parametrize("wait", ["IPC:SafeSnapshot", "LWLock:MultiXactGen"])
def test_a_wait_without_a_rule_is_described_and_placed(tmp_path: Path, wait: str) -> None:
    kind, event = wait.split(":")
    waits = [{**_OURS, "wait_type": kind, "wait": event, "processes": 2.0}, {**_OURS, "processes": 2.0}]
    where = [
        {"wait_type": kind, "wait": event, "statement": "update a set b = …", "processes": 1.5},
        {"wait_type": kind, "wait": event, "statement": "select 1", "processes": 0.5},
        {"wait_type": "Lock", "wait": "tuple", "statement": "select 2", "processes": 5.0},
    ]
    data = _run(tmp_path, lambda i: 1000.0, {"waits": waits, "wait_statements": where})
    found = _found(data, "other-waits")
    assert found is not None
    text = i18n.text(found.message)
    assert wait_events.description(wait).rstrip(".") in text and "75% of that in update a set b = …" in text
    assert wait_events.description(wait.upper()) and not wait_events.description("IO:Nothing")
