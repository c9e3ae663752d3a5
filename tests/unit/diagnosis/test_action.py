"""Actions of findings, what they predict, and what a verification says of them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno import i18n
from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.diagnosis.action import Action, gain_shown, megabytes, size_of
from pgdyno.diagnosis.causes.missing_index import filtered_columns
from pgdyno.diagnosis.explain import Diagnosis
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.message import Name, message
from pgdyno.model import Caveat
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run import verify
from pgdyno.run.verify import Outcome, Verified
from pgdyno.store import reading
from pgdyno.units import Share

from tests.support import synthetic

_SHARES = st.floats(0, 1)
_GAIN = Share(0.1, 0.0, 0.2)


def _server(latency_ns: float, busy: float | None) -> Any:
    processors = None if busy is None else SimpleNamespace(share=busy, server=busy, client=0.0, cores=1.0)
    return SimpleNamespace(latency_ns=latency_ns, processors=processors)


@given(
    st.tuples(_SHARES, _SHARES, _SHARES).map(sorted), st.tuples(_SHARES, _SHARES).map(sorted), st.floats(1e3, 1e9),
    st.none() | st.floats(0, 1), st.booleans(),
)  # fmt: skip
def test_a_gain_is_an_interval_and_no_more_than_the_cpus_allow(
    cost: list[float], parts: list[float], latency_ns: float, busy: float | None, frees_cpu: bool
) -> None:
    low, mean, high = cost
    gain = removed(_server(latency_ns, busy), Share(mean, low, high), *parts, frees_cpu=frees_cpu)
    assert 0 <= gain.low <= gain.mean + 1e-9 <= gain.high + 2e-9 and math.isfinite(gain.high)
    if busy is not None and busy > 0.2 and not frees_cpu:
        # 0.15 CPUs are used at any throughput.
        assert gain.high <= max(0.05, 1.05 / (busy - 0.15) - 1) + 1e-9


def test_the_gain_of_a_share_is_that_of_a_closed_loop() -> None:
    # Half of the clients' time gone: twice the throughput.
    gain = removed(_server(1e7, None), Share(0.5, 0.5, 0.5), 1.0)
    assert gain.low == gain.high == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("(v = $1)", ["v"]),
        ("((a = $1) AND (b = $2))", ["a", "b"]),
        ("((at > $1) AND (v = $2))", ["v", "at"]),
        ("((at >= $1) AND (at < $2) AND (n > 3))", ["at"]),
        ("((name)::text = ($1)::text)", ["name"]),
        ("((at)::date = '2026-01-01'::date)", []),
        ("((n)::text = '5'::text)", []),
        ("(a = b)", []),
        ("(CASE WHEN (a = 1) THEN 1 ELSE 2 END = 2)", []),
        ("(note = '(secret = 1)'::text)", ["note"]),
        ("(a = ANY ('{1,2}'::integer[]))", ["a"]),
        ("(at >= ('2026-01-01'::timestamp with time zone + '00:00:01'::interval))", ["at"]),
        ('("Odd name" = 1)', ['"Odd name"']),
        ("(t.v = $1)", ["v"]),
        ("(lower(name) = $1)", []),
        ("((a = 1) OR (b = 2))", []),
        ("(note = 'a OR b')", ["note"]),
        ("(a <> 1)", []),
        ("(NOT done)", []),
        ("", []),
    ],
)
def test_columns_of_an_index_are_those_that_are_compared(condition: str, columns: list[str]) -> None:
    types = {"name": "character varying(20)", "n": "integer", "at": "timestamp with time zone"}
    assert filtered_columns(condition, types) == columns


def test_sizes_are_read_and_written_as_the_server_does() -> None:
    assert size_of("128MB") == 128 << 20 and size_of("1GB") == 1 << 30 and size_of("64kB") == 64 << 10
    assert size_of("on") == size_of("") == 0
    assert size_of(megabytes(300 << 20)) == 300 << 20


def _comparison(ratio: float, low: float, high: float) -> Comparison:
    return Comparison(60, 60, 100.0, 100.0 * ratio, ratio, low, high, 0.95, True, Verdict.UNKNOWN, 0.05, 0)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "outcome", "fits"),
    [
        (1.15, 1.10, 1.20, Outcome.VERIFIED, True),
        # Surely more, and not worth a change.
        (1.004, 1.001, 1.007, Outcome.NO_GAIN, True),
        (1.10, 0.95, 1.25, Outcome.UNKNOWN, True),
        (0.80, 0.75, 0.85, Outcome.WORSE, False),
        (1.80, 1.70, 1.90, Outcome.VERIFIED, False),
    ],
)
def test_a_verdict_follows_from_the_interval(
    ratio: float, low: float, high: float, outcome: Outcome, fits: bool
) -> None:
    found = Verified(["x"], Action("nothing", _GAIN, "removed"), _comparison(ratio, low, high))
    assert (found.outcome, found.is_as_predicted) == (outcome, fits)


def test_what_was_not_measured_has_no_verdict() -> None:
    found = Verified(["x"], Action("nothing", _GAIN, "removed"))
    assert found.outcome is Outcome.NOT_MEASURED and found.is_as_predicted is None
    assert found.as_json()["measured"] is None


def _slow_commits(folder: Path) -> Observed:
    waiting = {"kind": "client backend", "ours": 1.0, "state": "active", "wait_type": "IO", "wait": "WalSync",
               "processes": 4.0, "looks": 10.0}  # fmt: skip
    run = synthetic.make_run(folder, synthetic.plans([4], 1), lambda *_: 1000.0, sampled={"waits": [waiting]})
    data = reading.read(run)
    return Observed(data, data.trials)


def test_an_action_that_weakens_durability_says_so(tmp_path: Path) -> None:
    e = _slow_commits(tmp_path)
    diagnosis = RunAnalysis(e.data).diagnosis
    (finding,) = [f for f in diagnosis.findings if f.cause == "wal-flush"]
    (action,) = [a for a in finding.actions if a.settings]
    assert action.weakens_durability and "loses" in str(action.as_json()["price"])
    # With fsync off a commit waits for nothing that could be spared.
    assert [str(x.text) for x in action.lines if hasattr(x, "text")] == [
        "ALTER SYSTEM SET synchronous_commit = 'off';", "SELECT pg_reload_conf();",
    ]  # fmt: skip


def test_the_first_action_of_each_finding_is_measured_before_second_ones(tmp_path: Path) -> None:
    finding = RunAnalysis(_slow_commits(tmp_path).data).diagnosis.findings[0]
    a, b, c, d = (Action("nothing", _GAIN, "removed", {name: "1"}) for name in "abcd")
    two = Diagnosis([replace(finding, actions=[a, b]), replace(finding, cause="other", actions=[a, c, d])])
    assert [list(x.action.settings) for x in verify.candidates(two, 10)] == [["a"], ["b"], ["c"], ["d"]]
    assert [list(x.action.settings) for x in verify.candidates(two, 2)] == [["a"], ["b"]]


def test_actions_together_keep_the_first_value_of_a_setting() -> None:
    one = Action("memory", Share(0.1, 0.05, 0.2), "removed", {"work_mem": "8MB"}, ["CREATE INDEX ON t (v)"])
    other = Action("disk", Share(0.3, 0.1, 0.5), "removed", {"work_mem": "4MB", "max_wal_size": "8GB"})
    both = verify.merged([one, other])
    assert both.settings == {"work_mem": "8MB", "max_wal_size": "8GB"} and both.sql == ["CREATE INDEX ON t (v)"]
    assert both.gain.low == 0.1 and both.gain.high == pytest.approx(1.2 * 1.5 - 1)
    assert not both.weakens_durability


def test_a_measurement_that_failed_verifies_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The side that did not fail may look like a gain."""
    e = _slow_commits(tmp_path)
    v = object.__new__(verify.Verification)
    v.exit_code, v._loading_s = 0, 0.0
    v._prepared = v._configuration = SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setattr(v, "_experiment", lambda *_: (None, True))
    monkeypatch.setattr(verify, "replace", lambda of, **more: of if of is v._prepared else replace(of, **more))
    monkeypatch.setattr(verify, "plan_run", lambda *_: SimpleNamespace())
    monkeypatch.setattr(verify, "_comparison", lambda *_: _comparison(1.5, 1.4, 1.6))
    ended: dict[str, Any] = {"path": tmp_path, "analysis": RunAnalysis(e.data), "exit_code": 0, "error": None}

    def measured() -> Verified:
        monkeypatch.setattr(verify, "run_experiment", lambda *_: SimpleNamespace(**ended))
        return v._measured(["x"], Action("nothing", _GAIN, "removed"), 60.0, 1, SimpleNamespace())  # type: ignore[arg-type]

    assert measured().outcome is Outcome.VERIFIED
    ended |= {"exit_code": 4, "error": message("error-server-has-died", log=Name("killed"))}
    found = measured()
    assert found.outcome is Outcome.NOT_MEASURED and found.reason == ended["error"]
    ended |= {"exit_code": 0, "error": None}
    monkeypatch.setattr(verify, "_comparison", lambda *_: _comparison(1.5, math.nan, math.nan))
    assert measured().outcome is Outcome.NOT_MEASURED
    monkeypatch.setattr(verify, "_comparison", lambda *_: _comparison(1.5, 1.4, 1.6))
    trials = [replace(t, caveats=[Caveat.INCONSISTENT]) for t in e.data.trials]
    ended |= {"analysis": RunAnalysis(replace(e.data, trials=trials))}
    assert measured().outcome is Outcome.NOT_MEASURED


@pytest.mark.parametrize(
    ("gain", "shown"),
    [
        (Share(0.12, 0.0, 0.4), "12% (0 to 40%) higher"),
        (Share(20.0, 1.7, 160.0), "21 times as high (2.7 to 160)"),
        (Share(0.5, -0.1, 1.5), "1.5 times as high (0.9 to 2.5)"),
    ],
)
def test_large_gains_are_factors(gain: Share, shown: str) -> None:
    assert i18n.text(gain_shown(gain)) == shown
