"""Run directories that no server made: as large, and with such series, as a test needs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pgdyno._core import Histogram
from pgdyno.analysis.series import measured
from pgdyno.message import Name
from pgdyno.model import UNCOUNTED, Caveat, IntervalRow, Latency, StatementLatency, TrialPlan, TrialSummary
from pgdyno.run.trials.steadiness import regimes_of
from pgdyno.store import hlog
from pgdyno.store.rundir import RunDirectory

Tps = Callable[[TrialPlan, int, random.Random], float]


def row(index: int, seconds: float, tps: float, latency_ns: int, *, phase: str = "measure") -> IntervalRow:
    """An interval in which all went well."""
    start, end = round(index * seconds * 1e9), round((index + 1) * seconds * 1e9)
    n = round(tps * seconds)
    return IntervalRow(
        index=index, phase=phase, start_ns=start, end_ns=end, scheduled=n, committed=n, failed=0, skipped=0, unknown=0,
        unfinished=0, retried=0, statements=n, lost=0, reconnects=0, disconnected=0, client_cpu_ns=1,
        mean_ns=latency_ns,
        p50_ns=latency_ns, p95_ns=2 * latency_ns, p99_ns=3 * latency_ns, p999_ns=4 * latency_ns, max_ns=5 * latency_ns,
        lag_p99_ns=0, failed_by_sqlstate="",
    )  # fmt: skip


def histogram(latency_ns: int, rng: random.Random, n: int = 1000) -> Histogram:
    """Latencies about a value."""
    h = Histogram()
    for _ in range(n):
        h.record(max(1, round(latency_ns * math.exp(rng.gauss(0, 0.3)))))
    return h


def summary_of(
    tps: float, seconds: float, n: int, latency: Latency | None = None, statement: str = "SELECT 1"
) -> TrialSummary:
    """Of a trial in which all went well."""
    latency = latency or Latency(n)
    return TrialSummary(
        tps=tps, qps=tps, elapsed_s=seconds, scheduled=n, committed=n, failed={}, skipped=0, unknown=0, unfinished=0,
        lost=0, reconnects=0, client_cpu_share=0.4, connect_s=0.01, latency=latency,
        statements=[StatementLatency("s.sql", 1, statement, latency)],
    )  # fmt: skip


def make_run(
    folder: Path,
    plans: list[TrialPlan],
    tps: Tps,
    *,
    intervals: int = 20,
    seconds: float = 1.0,
    name: str = "made",
    manifest: dict[str, Any] | None = None,
    seed: int = 1,
    sampled: Mapping[str, Sequence[dict[str, Any]] | Callable[[int], Sequence[dict[str, Any]]]] | None = None,
    totals: Mapping[str, Sequence[dict[str, Any]] | Callable[[TrialPlan], Sequence[dict[str, Any]]]] | None = None,
    events: Sequence[tuple[float, str, str]] = (),
    warmup: int = 0,
    latency_ns: int = 200_000,
    statement: str = "SELECT 1",
    drift: float = 0.0,
) -> Path:
    """A finished run of these trials; `tps` gives each interval's throughput. `sampled`: rows of each source, of each
    interval; `totals`: of each whole trial. `events`: seconds, kind and text. The first `warmup` intervals are none of
    the measurement's. Returns its directory.
    """
    rng = random.Random(seed)
    run = RunDirectory.create(folder, name, f'name = "{name}"\n')
    workloads = dict.fromkeys(p.workload for p in plans)
    varied: dict[str, list[Any]] = {}
    for p in plans:
        for axis, value in p.varied.items():
            if value not in varied.setdefault(axis, []):
                varied[axis].append(value)
    facts: dict[str, Any] = {
        "name": name,
        "title": "Made up",
        "started_at": "2026-01-01T00:00:00.000Z",
        "ended_at": "2026-01-01T01:00:00.000Z",
        "workloads": {w: f"{w} QPS" for w in workloads},
        "run": {"repetitions": max(p.repetition for p in plans), "interval_s": seconds, "order": "random"},
        "rows": 1_000_000,
        "trials": len(plans),
        "varied": varied,
        "same_machine": False,
        "host": {"cores": 2, "memory_bytes": 1 << 34},
        "target": {"host": "db1", "port": 5432, "user": "u", "dbname": "d"},
    }
    run.update_manifest(**{**facts, **(manifest or {})})
    for plan in plans:
        writer = run.begin_trial(plan, {})
        writer.start(1_700_000_000_000_000_000)
        rates = [tps(plan, i, rng) for i in range(intervals)]
        merged = histogram(latency_ns, rng)
        for i, rate in enumerate(rates):
            tags = {hlog.TRANSACTION: merged, hlog.statement(0): merged} if i == warmup else {}
            phase = "warmup" if i < warmup else "measure"
            writer.interval(row(i, seconds, rate, latency_ns, phase=phase), tags)
            begin = 1_700_000_000_000_000_000 + round(i * seconds * 1e9)
            for source, rows in (sampled or {}).items():
                writer.samples(source, begin, begin + round(seconds * 1e9), list(rows(i) if callable(rows) else rows))
        for source, whole in (totals or {}).items():
            writer.totals(source, list(whole(plan) if callable(whole) else whole))
        for at, kind, text in events:
            writer.event(round(at * 1e9), kind, Name(text))
        mean = sum(rates) / len(rates)
        n = round(sum(r * seconds for r in rates))
        latency = hlog.latency_of(merged)
        regimes = regimes_of(measured(writer.rows), latency_ns)
        summary = replace(summary_of(mean, intervals * seconds, n, latency, statement), drift=drift, regimes=regimes)
        caveats: list[Caveat] = [Caveat.NO_ONE_LEVEL] if regimes else []
        sums = hlog.read_merged(
            writer.folder / "latency.hlog", [r.start_ns for r in writer.rows if r.phase not in UNCOUNTED]
        )
        activity = {"wal_bytes": 1e6, "rows_updated": 1000.0}
        writer.finish("finished", summary, caveats, activity=activity, merged=sums)
    return run.path


def plans(clients: list[int], repetitions: int, *, workload: str = "w", **varied: list[Any]) -> list[TrialPlan]:
    """Every combination, repetitions outermost."""
    axes = list(varied.items())
    out: list[TrialPlan] = []
    for repetition in range(1, repetitions + 1):
        combinations: list[dict[str, Any]] = [{}]
        for axis, values in axes:
            combinations = [{**c, axis: v} for c in combinations for v in values]
        for c in combinations:
            out += [TrialPlan(len(out) + i, workload, 1.0, n, repetition, c) for i, n in enumerate(clients, 1)]
    return out
