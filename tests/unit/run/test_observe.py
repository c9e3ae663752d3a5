"""Observation: parts of the busy time, what is ruled out, and a load that differs by itself."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pgdyno.diagnosis import parts, thresholds
from pgdyno.diagnosis.finding import Confidence
from pgdyno.diagnosis.recorded import at_one_load
from pgdyno.model import IntervalRow
from pgdyno.report import observed, observed_page
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run.observe import summary_of
from pgdyno.samples import CUT
from pgdyno.store import reading

from tests.support import synthetic

_S = 1_000_000_000


def _interval(n: int, commits: int, busy: float) -> IntervalRow:
    zeros = dict.fromkeys(
        ("scheduled", "failed", "skipped", "unknown", "unfinished", "retried", "statements", "lost", "reconnects",
         "disconnected", "client_cpu_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns", "lag_p99_ns"), 0
    )  # fmt: skip
    mean_ns = busy * _S / max(1, commits)
    return IntervalRow(n, "measure", n * _S, (n + 1) * _S, committed=commits, mean_ns=mean_ns, failed_by_sqlstate="",
                       **zeros)  # fmt: skip


@pytest.mark.parametrize("seed", range(10))
def test_a_load_that_differs_by_itself_is_no_drift_of_the_server(seed: int) -> None:
    """The server is equally fast all through; demand goes up and down, and stops for a while."""
    rng = np.random.default_rng(seed)
    busy = np.abs(2 + 1.5 * np.sin(np.arange(60) / rng.uniform(3, 15)))
    busy[20:25] = 0.0
    rows = [_interval(n, round(b * 500 * rng.normal(1, 0.02)), float(b)) for n, b in enumerate(busy)]
    alike = at_one_load(rows)
    assert len(alike) <= 55
    speeds = [r.committed for r in alike]
    assert np.std(speeds) / np.mean(speeds) < 0.05
    summary = summary_of(rows)
    assert summary is not None and summary.regimes is None and abs(summary.drift) < 0.05
    assert summary.tps == pytest.approx(sum(r.committed for r in rows) / 60)
    assert summary.latency.mean_ns == pytest.approx(2e6, rel=0.05)


def test_a_server_that_becomes_slower_has_two_levels_whatever_the_load() -> None:
    rng = np.random.default_rng(1)
    rows = [
        _interval(n, round((b := rng.uniform(1, 4)) * (500 if n < 30 else 250) * rng.normal(1, 0.02)), b)
        for n in range(60)
    ]
    summary = summary_of(rows)
    assert summary is not None and summary.regimes is not None
    assert summary.regimes.change_at_s == pytest.approx(30, abs=1)
    assert summary.regimes.after_tps / summary.regimes.before_tps == pytest.approx(0.5, rel=0.05)


def test_without_intervals_there_is_no_summary() -> None:
    assert summary_of([]) is None


_STATES = [
    ("cpu", "active", "", ""), ("outside", "idle in transaction", "Client", "ClientRead"),
    ("locks", "active", "Lock", "transactionid"), ("data-io", "active", "IO", "DataFileRead"),
    ("wal", "active", "IO", "WalSync"), ("temporary", "active", "IO", "BuffileWrite"),
    ("standby", "active", "IPC", "SyncRep"), ("buffers", "active", "LWLock", "BufferContent"),
    ("lwlocks", "active", "LWLock", "ProcArray"), ("others", "active", "Timeout", "PgSleep"),
]  # fmt: skip


def _observation(folder: Path, rows: list[dict[str, Any]], totals: Any = None, **sampled: Any) -> RunAnalysis:
    run = synthetic.make_run(
        folder, synthetic.plans([8], 1), lambda *_: 1000.0, sampled={"waits": rows, **sampled}, totals=totals,
        manifest={"observed": True},
    )  # fmt: skip
    return RunAnalysis(reading.read(run))


@pytest.mark.parametrize("seed", range(3))
def test_parts_are_all_of_the_busy_time(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    true = {name: rng.choice([0.0, rng.uniform(0, 3)]) for name, *_ in _STATES}
    true["cpu"] += 0.5
    rows = [
        {"kind": "client backend", "ours": 1.0, "state": state, "wait_type": what, "wait": wait, "looks": 10.0,
         "processes": true[name]}
        for name, state, what, wait in _STATES
    ]  # fmt: skip
    # Idle sessions are in no part.
    rows.append({**rows[0], "state": "idle", "wait_type": "Client", "wait": "ClientRead", "processes": 5.0})
    run = _observation(tmp_path, rows)
    found = parts.parts(run.observed(run.data.trials))
    assert sum(p.share.mean for p in found) == pytest.approx(1.0)
    whole = sum(true.values())
    for p in found:
        assert p.share.mean == pytest.approx(true[p.name] / whole, abs=1e-6)
        assert p.share.low <= p.share.mean <= p.share.high
        assert not (p.is_ruled_out and true[p.name] / whole >= thresholds.Ranking.RULED_OUT)
        # What was never seen may still be there, by the rule of three.
        assert p.share.high > 0


@pytest.mark.parametrize(
    ("statements", "scanned", "unindexed", "named"),
    [
        (["SELECT count(*) FROM orders"], ["orders"], [], ""),
        (["SELECT v FROM orders WHERE a = …"], ["orders"], [], "orders"),
        # A check of a foreign key reads `orders` for each customer that is deleted.
        (["DELETE FROM customers WHERE id = …", "SELECT count(*) FROM orders"], ["orders"], ["orders"], "orders"),
        (["DELETE FROM customers WHERE id = …"], ["orders"], [], "orders"),
        # The table that is read most is meant to be read whole; the next is not.
        (["SELECT count(*) FROM orders", "SELECT v FROM items WHERE a = …"], ["orders", "items"], [], "items"),
        (["SELECT count(*) FROM orders", "SELECT sum(v) FROM items"], ["orders", "items"], [], ""),
        ([f"SELECT id, a, b FROM orders {CUT}"], ["orders"], [], "orders"),
    ],
)
def test_a_table_is_scanned_for_few_rows_or_for_all(
    tmp_path: Path, statements: list[str], scanned: list[str], unindexed: list[str], named: str
) -> None:
    row = {"kind": "client backend", "ours": 1.0, "state": "active", "wait_type": "", "wait": "", "looks": 10.0,
           "processes": 4.0}  # fmt: skip
    texts = [{"wait_type": "", "wait": "", "statement": s, "processes": 4.0 / len(statements)} for s in statements]
    tables = [
        {"table": name, "seq_scans": 9000.0, "seq_rows_read": (9 - n) * 1e7} for n, name in enumerate(scanned)
    ]  # fmt: skip
    keys = [{"object": "unindexed-key", "name": "customer", "definition": name} for name in unindexed]
    run = _observation(tmp_path, [row], {"tables": tables, "definitions": keys}, wait_statements=texts)
    found = [f for f in run.diagnosis.findings if f.cause == "missing-index"]
    assert [str(f.message.args["table"].text) for f in found] == ([named] if named else [])  # type: ignore[union-attr]


@pytest.mark.parametrize("observed", [True, False])
def test_another_load_is_no_trouble_of_an_observed_server(tmp_path: Path, observed: bool) -> None:
    row = {"kind": "client backend", "ours": 1.0, "state": "active", "wait_type": "IO", "wait": "WalSync",
           "looks": 10.0, "processes": 3.0}  # fmt: skip
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda p, i, r: (1000.0 if i < 20 else 500.0) * r.uniform(0.97, 1.03),
        intervals=40, sampled={"waits": [row]}, manifest={"observed": observed},
    )  # fmt: skip
    found = {f.cause: (n, f.confidence) for n, f in enumerate(RunAnalysis(reading.read(run)).diagnosis.findings)}
    first, confidence = found["level-change"]
    assert (confidence is Confidence.LOW) is observed and (first > 0) is observed, found


def test_little_is_ruled_out_where_little_was_seen(tmp_path: Path) -> None:
    """Twenty busy looks of 200: what was not among them may be a seventh of the busy time."""
    row = {"kind": "client backend", "ours": 1.0, "state": "active", "wait_type": "", "wait": "", "looks": 10.0,
           "processes": 0.1}  # fmt: skip
    run = _observation(tmp_path, [row])
    found = {p.name: p for p in parts.parts(run.observed(run.data.trials))}
    assert found["locks"].share.high == pytest.approx(3 / 20, rel=0.05) and not found["locks"].is_ruled_out


def test_the_answer_of_an_observation_names_what_it_is_busy_with(tmp_path: Path) -> None:
    waits = [
        {"kind": "client backend", "ours": 1.0, "state": "active", "wait_type": "IO", "wait": "WalSync",
         "processes": 3.0, "looks": 10.0},
        {"kind": "client backend", "ours": 1.0, "state": "active", "wait_type": "", "wait": "", "processes": 1.0,
         "looks": 10.0},
    ]  # fmt: skip
    statements = [{"wait_type": "IO", "wait": "WalSync", "statement": "COMMIT", "processes": 3.0},
                  {"wait_type": "", "wait": "", "statement": "UPDATE t SET v = …", "processes": 1.0}]  # fmt: skip
    run = _observation(tmp_path, waits, wait_statements=statements)
    found = observed.answer(run)
    assert found is not None
    assert [p.name for p in found.parts[:2]] == ["wal", "cpu"]
    assert [(s.statement, s.share) for s in found.statements] == [
        ("COMMIT", pytest.approx(0.75)), ("UPDATE t SET v = …", pytest.approx(0.25)),
    ]  # fmt: skip
    assert found.why.findings[0].cause == "wal-flush"
    # An observed server does not run as fast as it can: no gain of throughput is promised.
    assert all(not f.actions for f in run.diagnosis.findings)
    for lang in ("en", "zh"):
        assert "COMMIT" in observed_page.written(run, found, lang)
