"""A run directory: manifest, one folder a trial, reports.

Files that grow (intervals, histograms, events) are lines of text while a trial runs: a torn last line is the worst that
a kill can leave. When a trial ends, its intervals become Parquet as well. Files that do not grow are replaced whole.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pgdyno._core import Histogram
from pgdyno.analysis.quantiles import RESOLUTION, mean_half_width_over, quantile_band_over
from pgdyno.errors import LocalError, RefusedError, UsageError
from pgdyno.model import (
    PERCENTILE_NAMES,
    Caveat,
    IntervalRow,
    Key,
    Latency,
    RunData,
    StatementLatency,
    TrialPlan,
    TrialRecord,
    TrialSummary,
)
from pgdyno.store import hlog

T = TypeVar("T")
#: Of a trial that has ended: its histograms, merged over its intervals.
MERGED = "latency.merged"


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
                run._claim()
                replace_file(path / "experiment.toml", experiment_text)
                return run
        raise LocalError(f"cannot make a new folder in {parent}")

    @classmethod
    def resume(cls, path: Path) -> RunDirectory:
        """The directory of a run that is continued."""
        run = cls(path)
        run._claim()
        run._manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        return run

    def _claim(self) -> None:
        """For as long as we live nobody else writes here."""
        with writing(self.path):
            self._lock = (self.path / ".lock").open("w", encoding="utf-8")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                raise RefusedError(f"{self.path} is being written by another pgdyno", "Wait until it has ended.") from e

    @property
    def manifest(self) -> dict[str, Any]:
        """The facts so far."""
        return self._manifest

    def update_manifest(self, **facts: Any) -> None:
        """Adds facts to manifest.json."""
        self._manifest.update(facts)
        replace_file(self.path / "manifest.json", json.dumps(self._manifest, indent=2, default=str) + "\n")

    def begin_trial(self, plan: TrialPlan, parameters: dict[str, Any]) -> TrialWriter:
        """Opens a trial's folder."""
        folder = self.path / "trials" / plan.folder
        with writing(folder):
            if folder.exists():
                # Of a run that was cut off: what it measured is kept, and counted nowhere.
                broken = self.path / "broken"
                broken.mkdir(exist_ok=True)
                names = (broken / f"{plan.folder}.{n}" for n in itertools.count(1))
                folder.rename(next(n for n in names if not n.exists()))
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
        #: By tag, all intervals but the warm-up's together.
        self._merged: dict[str, Histogram] = {}
        with writing(folder):
            # Kept open for the length of the trial: lines are flushed one by one.
            self._intervals = (folder / "intervals.jsonl").open("w", encoding="utf-8", buffering=1)
            self._latency = (folder / "latency.hlog").open("w", encoding="utf-8", buffering=1)
            self._events = (folder / "events.jsonl").open("w", encoding="utf-8", buffering=1)
        self._write_state("running")

    @property
    def rows(self) -> list[IntervalRow]:
        """The intervals so far."""
        return self._rows

    @property
    def merged(self) -> dict[str, Histogram]:
        """By tag, the histograms so far, without the warm-up's."""
        return self._merged

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
                    if row.phase != "warmup":
                        self._merged.setdefault(tag, Histogram()).merge(h)
        self._rows.append(row)

    def event(self, at_ns: int, kind: str, text: str, **more: Any) -> None:
        """Appends one event."""
        with writing(self.folder):
            self._events.write(json.dumps({"at_ns": at_ns, "kind": kind, "text": text, **more}) + "\n")

    def finish(
        self,
        state: str,
        summary: TrialSummary | None,
        caveats: list[Caveat],
        error: str = "",
        activity: dict[str, float] | None = None,
        *,
        dropped_until_ns: int = 0,
        merged: dict[str, Histogram] | None = None,
    ) -> None:
        """Closes the trial: finished, failed or interrupted. Intervals that began before `dropped_until_ns` turned out
        to be warm-up; `merged` are the histograms without them.
        """
        self._rows = [
            replace(r, phase="dropped") if r.phase == "measure" and r.start_ns < dropped_until_ns else r
            for r in self._rows
        ]
        with writing(self.folder):
            for f in (self._intervals, self._latency, self._events):
                f.close()
            if self._rows:
                columns = {f.name: [getattr(r, f.name) for r in self._rows] for f in fields(IntervalRow)}
                temporary = self.folder / ".intervals.parquet.new"
                pq.write_table(pa.table(columns), temporary)
                temporary.replace(self.folder / "intervals.parquet")
                (self.folder / "intervals.jsonl").unlink(missing_ok=True)
        replace_file(self.folder / MERGED, hlog.merged_lines(self._merged if merged is None else merged))
        self._write_state(state, summary, caveats, error, activity)

    def _write_state(
        self,
        state: str,
        summary: TrialSummary | None = None,
        caveats: list[Caveat] | None = None,
        error: str = "",
        activity: dict[str, float] | None = None,
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
            "activity": activity or {},
        }
        replace_file(self.folder / "trial.json", json.dumps(record, indent=2) + "\n")


# ---------------------------------------------------------------- reading


class _Lazy(dict[int, T]):
    """By trial number; each read when it is first asked for: a run may have thousands of trials."""

    def __init__(self, load: Callable[[int], T]) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, number: int) -> T:
        self[number] = value = self._load(number)
        return value


def read(path: Path) -> RunData:
    """Reads a run directory, whatever state it is in."""
    try:
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    except FileNotFoundError as e:
        raise UsageError(f"{path} is no run directory: it has no manifest.json", "Runs are in runs/ by default.") from e
    except ValueError as e:
        raise UsageError(f"{path}/manifest.json cannot be read: {e}") from e
    if not isinstance(manifest, dict):
        raise UsageError(f"{path}/manifest.json is not what pgdyno writes", "It was damaged from outside.")
    trials = read_records(path)
    folders = {t.plan.number: path / "trials" / t.plan.folder for t in trials}
    series = _Lazy(lambda number: read_intervals(folders[number]))
    merged = _Lazy(lambda number: _Merged(folders[number], series, number))
    buckets = _Lazy(lambda number: (merged[number].get(hlog.TRANSACTION) or Histogram()).buckets())
    repetitions: dict[Key, list[TrialRecord]] = {}
    for t in trials:
        if t.summary is not None and t.state == "finished":
            repetitions.setdefault(t.plan.key, []).append(t)

    def pooled(tag: str, key: Key) -> Latency:
        """Percentiles are never averaged: histograms of repetitions are merged."""
        parts = [h for t in repetitions[key] if (h := merged[t.plan.number].get(tag)) is not None and h.count]
        together = Histogram()
        for h in parts:
            together.merge(h)
        return with_half_widths(latency_of(together), together, parts)

    latencies = _LazyKeys(repetitions, lambda key: pooled(hlog.TRANSACTION, key))
    statements = _LazyKeys(
        repetitions,
        lambda key: [
            StatementLatency(s.script, s.line, s.text, pooled(hlog.statement(i), key))
            for i, s in enumerate(_statements(repetitions[key]))
        ],
    )
    return RunData(str(path), manifest, trials, series, buckets, latencies, statements)


class _LazyKeys(Mapping[Key, T]):
    """By configuration; each computed when it is first asked for."""

    def __init__(self, keys: Iterable[Key], load: Callable[[Key], T]) -> None:
        self._keys = list(keys)
        self._load = load
        self._known: dict[Key, T] = {}

    def __getitem__(self, key: Key) -> T:
        if key not in self._known:
            self._known[key] = self._load(key)
        return self._known[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def _statements(repetitions: list[TrialRecord]) -> list[StatementLatency]:
    return repetitions[0].summary.statements if repetitions[0].summary else []


def read_records(path: Path) -> list[TrialRecord]:
    """The trials of a run directory, without their series and histograms."""
    records = (_read_trial(folder) for folder in sorted((path / "trials").glob("*/")))
    return [r for r in records if r is not None]


class _Merged:
    """A trial's histograms by tag, of all but the warm-up; each decoded when it is asked for. Of a trial that was
    killed, from its log.
    """

    def __init__(self, folder: Path, series: _Lazy[list[IntervalRow]], number: int) -> None:
        self._folder = folder
        self._series = series
        self._number = number
        self._encoded = hlog.encoded_lines(folder / MERGED)
        self._logged: dict[str, Histogram] | None = None

    def get(self, tag: str) -> Histogram | None:
        """The histogram, if anything was recorded."""
        if self._encoded is not None:
            try:
                return hlog.decoded(self._encoded[tag]) if tag in self._encoded else None
            except ValueError:
                # Damaged from outside; the log may be whole.
                self._encoded = None
        if self._logged is None:
            counted = {r.start_ns for r in self._series[self._number] if r.phase not in ("warmup", "dropped")}
            self._logged = hlog.read_merged(self._folder / "latency.hlog", counted)
        return self._logged.get(tag)


def _read_trial(folder: Path) -> TrialRecord | None:
    try:
        d = json.loads((folder / "trial.json").read_text(encoding="utf-8"))
        summary = _summary(d["summary"]) if d.get("summary") else None
        state = "interrupted" if d["state"] == "running" else d["state"]
        caveats = [Caveat[name] for name in d.get("caveats", []) if name in Caveat.__members__]
        plan = TrialPlan(**d["plan"])
        if not all(isinstance(x, int) for x in (plan.number, plan.clients, plan.repetition)):
            return None
        return TrialRecord(
            plan,
            state,
            d["started_at"],
            d.get("error", ""),
            summary,
            caveats,
            d.get("activity") or {},
            int(d["parameters"].get("rows_per_transaction") or 0),
            str(d["parameters"].get("place") or ""),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
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


def with_half_widths(latency: Latency, together: Histogram, parts: list[Histogram]) -> Latency:
    """The figures of repetitions' histograms `together`, with the confidence intervals that these `parts` give them."""
    if len(parts) < 2:
        return latency
    counts = [h.count for h in parts]
    half = {"mean_ns": mean_half_width_over(counts, [h.mean * h.count for h in parts])}
    below = [h.count_up_to([getattr(latency, name) for name in PERCENTILE_NAMES]) for h in parts]
    for name, up_to in zip(PERCENTILE_NAMES, zip(*below, strict=True), strict=True):
        band = quantile_band_over(counts, up_to)
        if band is not None:
            low, high = (together.percentile(part * 100) for part in band)
            half[name] = max(high - low, RESOLUTION * high) / 2
    return replace(latency, half_widths={name: width for name, width in half.items() if width is not None})


def latency_of(h: Histogram) -> Latency:
    """A histogram's figures."""
    p50, p95, p99, p999 = (h.percentile(p) for p in (50.0, 95.0, 99.0, 99.9))
    return Latency(h.count, h.mean, h.stddev, h.max, p50, p95, p99, p999)
