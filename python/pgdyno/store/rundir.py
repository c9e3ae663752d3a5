"""A run directory: manifest, one folder a trial, reports.

Files that grow (intervals, histograms, events) are lines of text while a trial runs: a torn last line is the worst that
a kill can leave. When a trial ends, its intervals become Parquet as well. Files that do not grow are replaced whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pgdyno._core import Histogram
from pgdyno.errors import LocalError, UsageError
from pgdyno.model import (
    Caveat,
    IntervalRow,
    Latency,
    RunData,
    StatementLatency,
    TrialPlan,
    TrialRecord,
    TrialSummary,
)
from pgdyno.store import hlog


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the operating system's refusals into errors that say what to do."""
    try:
        yield
    except OSError as e:
        remedy = (
            "Free some space and run again: what was measured is kept." if e.errno == 28 else "Check its permissions."
        )
        raise LocalError(f"cannot write {path}: {e.strerror or e}", remedy) from e


def replace_file(path: Path, text: str) -> None:
    """Writes a file whole: after a kill the old one is there, or the new one."""
    with writing(path):
        temporary = path.with_name(f".{path.name}.new")
        with temporary.open("w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        temporary.replace(path)


def now_text() -> str:
    """The time, RFC 3339 UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class RunDirectory:
    """Writes one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifest: dict[str, Any] = {}

    @classmethod
    def create(cls, parent: Path, name: str, experiment_text: str) -> RunDirectory:
        """Makes `parent/<UTC time>-<name>`; two runs in one second get different names."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        with writing(parent):
            for n in range(100):
                path = parent / (f"{stamp}-{name}" if n == 0 else f"{stamp}-{name}-{n}")
                try:
                    (path / "trials").mkdir(parents=True)
                except FileExistsError:
                    continue
                run = cls(path)
                replace_file(path / "experiment.toml", experiment_text)
                return run
        raise LocalError(f"cannot make a new folder in {parent}")

    def update_manifest(self, **facts: Any) -> None:
        """Adds facts to manifest.json."""
        self._manifest.update(facts)
        replace_file(self.path / "manifest.json", json.dumps(self._manifest, indent=2, default=str) + "\n")

    def begin_trial(self, plan: TrialPlan, parameters: dict[str, Any]) -> TrialWriter:
        """Opens a trial's folder."""
        folder = self.path / "trials" / plan.folder
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return TrialWriter(folder, plan, parameters)

    def write_text(self, name: str, text: str) -> Path:
        """Writes a report."""
        replace_file(self.path / name, text)
        return self.path / name


class TrialWriter:
    """Writes one trial as it happens."""

    def __init__(self, folder: Path, plan: TrialPlan, parameters: dict[str, Any]) -> None:
        self.folder = folder
        self.plan = plan
        self._parameters = parameters
        self._started_at = now_text()
        self._rows: list[IntervalRow] = []
        with writing(folder):
            # Kept open for the length of the trial: lines are flushed one by one.
            self._intervals = (folder / "intervals.jsonl").open("w", encoding="utf-8", buffering=1)
            self._latency = (folder / "latency.hlog").open("w", encoding="utf-8", buffering=1)
            self._events = (folder / "events.jsonl").open("w", encoding="utf-8", buffering=1)
        self._write_state("running")

    def start(self, start_ns: int) -> None:
        """All clients are connected; the run begins."""
        with writing(self.folder):
            self._latency.write(hlog.header(start_ns))

    def interval(self, row: IntervalRow, histograms: dict[str, Histogram]) -> None:
        """Appends one interval and its histograms by tag."""
        with writing(self.folder):
            self._intervals.write(json.dumps(asdict(row)) + "\n")
            for tag, h in histograms.items():
                if h.count:
                    self._latency.write(hlog.line(tag, row.start_ns, row.end_ns, h))
        self._rows.append(row)

    def event(self, at_ns: int, kind: str, text: str, **more: Any) -> None:
        """Appends one event."""
        with writing(self.folder):
            self._events.write(json.dumps({"at_ns": at_ns, "kind": kind, "text": text, **more}) + "\n")

    def finish(self, state: str, summary: TrialSummary | None, caveats: list[Caveat], error: str = "") -> None:
        """Closes the trial: finished, failed or interrupted."""
        with writing(self.folder):
            for f in (self._intervals, self._latency, self._events):
                f.close()
            if self._rows:
                columns = {f.name: [getattr(r, f.name) for r in self._rows] for f in fields(IntervalRow)}
                temporary = self.folder / ".intervals.parquet.new"
                pq.write_table(pa.table(columns), temporary)
                temporary.replace(self.folder / "intervals.parquet")
                (self.folder / "intervals.jsonl").unlink(missing_ok=True)
        self._write_state(state, summary, caveats, error)

    def _write_state(
        self, state: str, summary: TrialSummary | None = None, caveats: list[Caveat] | None = None, error: str = ""
    ) -> None:
        record = {
            "plan": asdict(self.plan),
            "parameters": self._parameters,
            "state": state,
            "started_at": self._started_at,
            "ended_at": None if state == "running" else now_text(),
            "error": error,
            "caveats": [c.name for c in caveats or []],
            "summary": asdict(summary) if summary else None,
        }
        replace_file(self.folder / "trial.json", json.dumps(record, indent=2) + "\n")


# ---------------------------------------------------------------- reading


def read(path: Path) -> RunData:
    """Reads a run directory, whatever state it is in."""
    try:
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    except FileNotFoundError as e:
        raise UsageError(f"{path} is no run directory: it has no manifest.json", "Runs are in runs/ by default.") from e
    except ValueError as e:
        raise UsageError(f"{path}/manifest.json cannot be read: {e}") from e
    trials: list[TrialRecord] = []
    series: dict[int, list[IntervalRow]] = {}
    histograms: dict[int, dict[str, Histogram]] = {}
    for folder in sorted((path / "trials").glob("*/")):
        record = _read_trial(folder)
        if record is None:
            continue
        trials.append(record)
        series[record.plan.number] = read_intervals(folder)
        histograms[record.plan.number] = hlog.read_merged(folder / "latency.hlog", set(_counted(series, record)))
    buckets = {n: _transactions(h).buckets() for n, h in histograms.items()}
    pooled, pooled_statements = _pool(trials, histograms)
    return RunData(str(path), manifest, trials, series, buckets, pooled, pooled_statements)


def _counted(series: dict[int, list[IntervalRow]], record: TrialRecord) -> list[int]:
    """Starts of the intervals whose latencies count: all but the warm-up's."""
    return [r.start_ns for r in series[record.plan.number] if r.phase != "warmup"]


def _read_trial(folder: Path) -> TrialRecord | None:
    try:
        d = json.loads((folder / "trial.json").read_text(encoding="utf-8"))
        summary = _summary(d["summary"]) if d.get("summary") else None
        state = "interrupted" if d["state"] == "running" else d["state"]
        caveats = [Caveat[name] for name in d.get("caveats", []) if name in Caveat.__members__]
        return TrialRecord(TrialPlan(**d["plan"]), state, d["started_at"], d.get("error", ""), summary, caveats)
    except (OSError, ValueError, KeyError, TypeError):
        # A folder that was just being made when the run was killed.
        return None


def _summary(d: dict[str, Any]) -> TrialSummary:
    statements = [
        StatementLatency(s["script"], s["line"], s["text"], Latency(**s["latency"])) for s in d.pop("statements")
    ]
    return TrialSummary(**{**d, "latency": Latency(**d["latency"]), "statements": statements})


def read_intervals(folder: Path) -> list[IntervalRow]:
    """A trial's time series: from Parquet, or from the lines that were written until it was killed."""
    parquet = folder / "intervals.parquet"
    if parquet.exists():
        try:
            return [IntervalRow(**row) for row in pq.read_table(parquet).to_pylist()]
        except (OSError, pa.ArrowException, TypeError):
            # Damaged from outside: the rest of the run is still worth reading.
            return []
    rows = []
    try:
        for line in (folder / "intervals.jsonl").read_text(encoding="utf-8").splitlines():
            try:
                rows.append(IntervalRow(**json.loads(line)))
            except (ValueError, TypeError):
                break
    except OSError:
        pass
    return rows


def _transactions(h: dict[str, Histogram]) -> Histogram:
    return h.get(hlog.TRANSACTION) or Histogram()


def latency_of(h: Histogram) -> Latency:
    """A histogram's figures."""
    p50, p95, p99, p999 = (h.percentile(p) for p in (50.0, 95.0, 99.0, 99.9))
    return Latency(h.count, h.mean, h.stddev, h.max, p50, p95, p99, p999)


def _pool(
    trials: list[TrialRecord], histograms: dict[int, dict[str, Histogram]]
) -> tuple[dict[tuple[str, float, int], Latency], dict[tuple[str, float, int], list[StatementLatency]]]:
    """Merges the histograms of repetitions; percentiles are never averaged."""
    groups: dict[tuple[str, float, int], dict[str, Histogram]] = {}
    names: dict[tuple[str, float, int], list[StatementLatency]] = {}
    for t in trials:
        if t.summary is None or t.state != "finished":
            continue
        key = (t.plan.workload, t.plan.hot_set, t.plan.clients)
        merged = groups.setdefault(key, {})
        for tag, h in histograms[t.plan.number].items():
            merged.setdefault(tag, Histogram()).merge(h)
        names.setdefault(key, t.summary.statements)
    pooled = {key: latency_of(_transactions(h)) for key, h in groups.items()}
    statements = {
        key: [
            StatementLatency(s.script, s.line, s.text, latency_of(groups[key].get(hlog.statement(i)) or Histogram()))
            for i, s in enumerate(names[key])
        ]
        for key in groups
    }
    return pooled, statements
