"""Canaries: a machine that changed between trials is named, and one that is merely noisy is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pgdyno import i18n
from pgdyno.collect import canary
from pgdyno.judge.canaries import host_changes
from pgdyno.model import TrialPlan
from pgdyno.report import heading
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading

from tests.support import synthetic
from tests.support.tells import tells


def _run(folder: Path, cpu_ns: list[tuple[float, float]], sync_ns: float = 2e5) -> reading.RunData:
    """Make a run with a trial for each pair of figures, before and after."""

    def rows(plan: TrialPlan) -> list[dict[str, float | str]]:
        return [
            {"at": at, "cpu_ns": ns, "stalled": 0.0, "sync_ns": sync_ns, "loopback_ns": 1e4}
            for at, ns in zip(("before", "after"), cpu_ns[plan.number - 1], strict=True)
        ]

    plans = synthetic.plans([4], len(cpu_ns))
    run = synthetic.make_run(folder, plans, lambda *_: 1000.0, intervals=4, totals={"canary": rows})
    return reading.read(run)


def test_it_measures_this_machine(tmp_path: Path) -> None:
    row = canary.measure("before", tmp_path)
    assert row["at"] == "before" and float(row["cpu_ns"]) > 1e4 and 0 <= float(row["stalled"]) < 1
    assert float(row["sync_ns"]) > 0 and float(row["loopback_ns"]) > 0
    assert list(tmp_path.iterdir()) == []
    assert canary.measure("after", tmp_path / "none")["sync_ns"] == canary.measure("after")["sync_ns"] == -1.0


def test_a_machine_that_changed_is_named(tmp_path: Path) -> None:
    data = _run(tmp_path, [(1e6, 1.01e6), (0.99e6, 1e6), (1.3e6, 1.3e6), (1e6, 1e6)])
    (change,) = host_changes(data)
    assert (change.figure, change.trials) == ("cpu_ns", [3]) and change.ratio == pytest.approx(1.3, rel=0.02)
    texts = [i18n.text(c.sentence) for c in heading.caveats(RunAnalysis(data))]
    assert any(tells(t, "caveat-host") and "+30%" in t for t in texts)


def test_a_change_within_the_only_trial_is_named(tmp_path: Path) -> None:
    assert [c.trials for c in host_changes(_run(tmp_path, [(1e6, 1.5e6)]))] == [[1]]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("noise", [0.01, 0.05, 0.15])
def test_noise_is_no_change(tmp_path: Path, noise: float) -> None:
    """A machine with a spread of its own: an alarm in one run of ten at most."""
    rng = np.random.default_rng(4)
    alarms = 0
    for n in range(10):
        pairs = [(float(a), float(b)) for a, b in 1e6 * np.exp(rng.normal(0, noise, (8, 2)))]
        alarms += bool(host_changes(_run(tmp_path / str(n), pairs)))
    assert alarms <= 1


def test_runs_without_canaries_have_no_change(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, synthetic.plans([4], 3), lambda *_: 1000.0)
    assert host_changes(reading.read(run)) == []
