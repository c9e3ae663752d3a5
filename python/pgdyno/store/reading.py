"""A run directory, read: whatever state it is in, and naming what cannot be read."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from pgdyno._core import Histogram, read_merged
from pgdyno.analysis.quantiles import RESOLUTION, mean_half_width_over, quantile_band_over
from pgdyno.errors import ReasonError, msg, reason
from pgdyno.message import Name, Text, message
from pgdyno.model import (
    PERCENTILE_NAMES,
    UNCOUNTED,
    Caveat,
    Event,
    IntervalRow,
    Key,
    Latency,
    ScriptLatency,
    StatementLatency,
    TrialPlan,
    TrialRecord,
    TrialSummary,
    event_kind,
)
from pgdyno.store import hlog, manifest, samples, texts
from pgdyno.store.manifest import Manifest, explained, text_of

T = TypeVar("T")
K = TypeVar("K")
#: Of a trial that is under way, and of one that has ended.
LINES, INTERVALS = "intervals.jsonl", "intervals.parquet"
#: Columns of the latter that say which trial it is of, and when each interval ended.
ADDED = ("trial", "time")
#: Of a trial that has ended: its histograms, merged over its intervals.
MERGED = "latency.merged"
#: Its histograms by interval.
LOG = "latency.hlog"
#: What pyarrow raises over a damaged file; the last over the name of a column.
DAMAGED_PARQUET = (OSError, pa.ArrowException, UnicodeDecodeError)
#: Of each trial: what it was, how it ended, its summary.
TRIAL = "trial.json"
#: What happened: a line an event.
EVENTS = "events.jsonl"
#: Of a run: what was found of its configurations.
FINDINGS = "findings.json"
#: In a trial's folder: what was checked in its tables afterwards.
CHECKS = "checks.json"


@dataclass(frozen=True)
class TrialFile:
    """trial.json. Without a schema it is of schema 0, which has the same keys but `start_ns`."""

    plan: TrialPlan
    state: str
    started_at: str
    parameters: dict[str, Any] = field(default_factory=dict)
    ended_at: str | None = None
    #: Nanoseconds since 1970: where the series' times count from; 0: not recorded.
    start_ns: int = 0
    error: str = ""
    error_message: Any = None
    caveats: list[str] = field(default_factory=list)
    summary: TrialSummary | None = None
    activity: dict[str, float] = field(default_factory=dict)
    schema: int = 0

    def record(self) -> TrialRecord:
        """Return the trial as the program represents it."""
        return TrialRecord(
            self.plan,
            "interrupted" if self.state == "running" else self.state,
            self.started_at,
            texts.restored(self.error, self.error_message),
            self.summary,
            [Caveat[name] for name in self.caveats if name in Caveat.__members__],
            self.activity,
            int(self.parameters.get("rows_per_transaction") or 0),
            str(self.parameters.get("place") or ""),
            self.start_ns,
            self.parameters,
        )


#: Of an interval, what is counted, and a trial has the sum of.
_COUNTED = {
    "scheduled", "committed", "skipped", "unknown", "unfinished", "lost", "reconnects", "violations", "statements"
}  # fmt: skip
_TRIAL_FILE = TypeAdapter(TrialFile)
#: Trials from which on their histograms are read in a thread.
_MANY = 500


@dataclass(frozen=True)
class RunData:
    """A run directory, read."""

    path: str
    manifest: Manifest
    trials: list[TrialRecord]
    series: Mapping[int, list[IntervalRow]]
    #: Buckets (value in nanoseconds, count) of the committed transactions' latency, by trial number.
    buckets: Mapping[int, list[tuple[int, int]]]
    #: Percentiles over merged repetitions, by configuration.
    pooled: Mapping[Key, Latency]
    #: The same by statement.
    pooled_statements: Mapping[Key, list[StatementLatency]]
    #: And by script, where a workload has several.
    pooled_scripts: Mapping[Key, list[ScriptLatency]]
    #: By trial number and source, what was sampled beside it: see pgdyno.store.samples.
    samples: Mapping[tuple[int, str], list[samples.Row]]
    #: By trial number, of each interval of its measurement the start and the buckets of its transactions' latency.
    over_time: Mapping[int, list[tuple[int, list[tuple[int, int]]]]]
    #: By trial number, what happened.
    events: Mapping[int, list[Event]]
    #: By trial number, what was checked in its tables afterwards: clause, title, holds, broken, example.
    checks: Mapping[int, list[dict[str, Any]]]
    #: All repetitions' values of a configuration together, by the log's tag.
    histogram: Callable[[str, Key], Histogram]
    #: By trial number: of each interval, by its start, how many values each of the log's tags has.
    counts_over_time: Callable[[int], dict[int, dict[str, int]]]
    #: Files that cannot be read, and why; more may be found as series and histograms are asked for.
    unreadable: list[tuple[str, Text]] = field(default_factory=list)
    #: It is still being written.
    under_way: bool = False


class _Lazy(dict[K, T]):
    """Values by trial number, or by trial number and source, each read at its first use.

    Reading is lazy because a run may have thousands of trials.
    """

    def __init__(self, load: Callable[[K], T]) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, key: K) -> T:
        self[key] = value = self._load(key)
        return value


class _LazyKeys(Mapping[Key, T]):
    """Values by configuration, each computed at its first use."""

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


class _Damage:
    """Files that cannot be read; each is named once."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self.files: list[tuple[str, Text]] = []

    def note(self, path: Path, why: Text) -> None:
        named = str(path.relative_to(self._base)) if path.is_relative_to(self._base) else str(path)
        if named not in (name for name, _ in self.files):
            self.files.append((named, why))


def read(path: Path) -> RunData:
    """Read a run directory, in whatever state it is.

    Raise UsageError if it has no readable manifest.
    """
    about = manifest.read(path)
    damage = _Damage(path)
    records = _records(path, damage)
    trials = [t for _, t in records]
    folders = {t.plan.number: folder for folder, t in records}
    series = _Lazy[int, list[IntervalRow]](lambda number: read_intervals(folders[number], damage.note))
    summaries = {t.plan.number: t.summary for t in trials}
    merged = _Lazy[int, _Merged](lambda number: _Merged(folders[number], series, number, summaries[number], damage))
    repetitions: dict[Key, list[TrialRecord]] = {}
    for t in trials:
        if t.summary is not None and t.state == "finished":
            repetitions.setdefault(t.plan.key, []).append(t)

    several = [t.plan.number for own in repetitions.values() if len(own) > 1 for t in own]
    transactions = _Ahead({number: folders[number] for number in several}, hlog.TRANSACTION)

    def histogram_of(number: int, tag: str) -> Histogram | None:
        ahead = transactions.take(number) if tag == hlog.TRANSACTION else None
        return merged[number].get(tag) if ahead is None else ahead

    buckets = _Lazy[int, list[tuple[int, int]]](
        lambda number: (histogram_of(number, hlog.TRANSACTION) or Histogram()).buckets()
    )

    def parts_of(tag: str, key: Key) -> list[tuple[int, Histogram]]:
        """Return the histograms of the repetitions that have values, each with its start of the server."""
        found = ((t.plan.start, histogram_of(t.plan.number, tag)) for t in repetitions[key])
        return [(start, h) for start, h in found if h is not None and h.count]

    def pooled(tag: str, key: Key) -> Latency:
        # Decoded once: it is most of the time that a report of thousands of trials takes.
        parts = parts_of(tag, key)
        whole = _together(h for _, h in parts)
        return with_half_widths(Latency.from_histogram(whole), whole, _units(parts))

    def latency(key: Key, tag: str, own: Latency) -> Latency:
        # A single repetition has its own, with confidence intervals from within it; of an observed server only a mean
        # is known, and no latency was recorded.
        has_own = len(repetitions[key]) == 1 and (own.max_ns or not own.count)
        return own if has_own else pooled(tag, key)

    latencies = _LazyKeys(repetitions, lambda key: latency(key, hlog.TRANSACTION, _first(repetitions[key]).latency))
    statements = _LazyKeys(
        repetitions,
        lambda key: [
            replace(s, latency=latency(key, hlog.statement(i), s.latency))
            for i, s in enumerate(_first(repetitions[key]).statements)
        ],
    )
    scripts = _LazyKeys(
        repetitions,
        lambda key: [
            replace(s, latency=latency(key, hlog.script(i), s.latency))
            for i, s in enumerate(_first(repetitions[key]).scripts)
        ],
    )
    sampled = _Lazy[tuple[int, str], list[samples.Row]](lambda key: samples.read(folders[key[0]], key[1], damage.note))
    over_time = _Lazy[int, list[tuple[int, list[tuple[int, int]]]]](
        lambda number: _buckets_over_time(folders[number] / LOG, series[number])
    )
    happened = _Lazy[int, list[Event]](lambda number: read_events(folders[number], damage.note))
    return RunData(
        str(path),
        about,
        trials,
        series,
        buckets,
        latencies,
        statements,
        scripts,
        sampled,
        over_time,
        happened,
        {n: found for n, folder in folders.items() if (found := read_checks(folder, damage.note))},
        lambda tag, key: _together(h for _, h in parts_of(tag, key)),
        lambda number: _counts_over_time(folders[number] / LOG, series[number]),
        damage.files,
    )


def _together(parts: Iterable[Histogram]) -> Histogram:
    """Merge histograms. Percentiles are never averaged."""
    whole = Histogram()
    for h in parts:
        whole.merge(h)
    return whole


def _units(parts: Sequence[tuple[int, Histogram]]) -> list[Histogram]:
    """Return the histograms of the units over which a confidence interval is computed.

    The units are the starts of the server if there are several, else the repetitions.
    """
    starts: dict[int, list[Histogram]] = {}
    for start, h in parts:
        starts.setdefault(start, []).append(h)
    return [_together(found) for found in starts.values()] if len(starts) > 1 else [h for _, h in parts]


def _first(repetitions: list[TrialRecord]) -> TrialSummary:
    summary = repetitions[0].summary
    # Only trials that have one are repetitions here.
    assert summary is not None
    return summary


def read_records(path: Path) -> list[TrialRecord]:
    """Return the trials of a run directory, without their time series and histograms."""
    return [t for _, t in _records(path, _Damage(path))]


def read_record(folder: Path) -> TrialRecord:
    """Return the record of a trial from its folder. Raise OSError or ValueError if it cannot be read."""
    return parse_trial(text_of(folder / TRIAL)).record()


def _records(path: Path, damage: _Damage) -> list[tuple[Path, TrialRecord]]:
    """Return the trials that can be read, each with its folder."""
    found = []
    for folder in _folders(path / "trials"):
        file = f"{folder}/{TRIAL}"
        try:
            record = parse_trial(text_of(file)).record()
            found.append((folder, _recovered(folder, record, damage) if record.state == "interrupted" else record))
        except FileNotFoundError:
            # It was just being made when the run was killed: there is nothing in it.
            if any(folder.iterdir()):
                damage.note(folder / TRIAL, msg("why-missing"))
        except (OSError, ValueError, TypeError, OverflowError) as e:
            damage.note(folder / TRIAL, reason(e))
    return found


def _folders(path: Path) -> list[Path]:
    """Return the folders of the trials in the order of their numbers, which may have five digits."""

    def order(name: str) -> tuple[int, str]:
        number = name.partition("-")[0]
        return (int(number) if number.isdecimal() else sys.maxsize, name)

    try:
        with os.scandir(path) as entries:
            return [Path(e.path) for e in sorted((e for e in entries if e.is_dir()), key=lambda e: order(e.name))]
    except OSError:
        return []


def _recovered(folder: Path, record: TrialRecord, damage: _Damage) -> TrialRecord:
    """Return a killed trial with the figures of its remaining intervals.

    There are no figures of its statements.
    """
    rows = [r for r in read_intervals(folder, damage.note) if r.phase == "measure" and r.end_ns > r.start_ns]
    if record.summary is not None or not rows:
        return record
    failed: Counter[str] = Counter()
    for r in rows:
        for part in filter(None, r.failed_by_sqlstate.split(",")):
            code, _, n = part.partition(":")
            failed[code] += int(n)
    total = {f.name: sum(getattr(r, f.name) for r in rows) for f in fields(IntervalRow) if f.name in _COUNTED}
    latency = hlog.read_merged(folder / LOG, {r.start_ns for r in rows}).get(hlog.TRANSACTION)
    elapsed_s = sum(r.end_ns - r.start_ns for r in rows) / 1e9
    cpu_s, delay_s = (sum(getattr(r, name) for r in rows) / 1e9 for name in ("client_cpu_ns", "client_run_delay_ns"))
    summary = TrialSummary(
        tps=total["committed"] / elapsed_s,
        qps=total.pop("statements") / elapsed_s,
        elapsed_s=elapsed_s,
        failed=dict(failed),
        # Of all workers together: the series does not have them one by one.
        client_cpu_share=cpu_s / elapsed_s,
        client_delay_share=delay_s / elapsed_s,
        connect_s=0.0,
        latency=Latency.from_histogram(latency or Histogram()),
        statements=[],
        **total,
    )
    caveats = [Caveat.INTERRUPTED, *([Caveat.FAILURES] if failed else []), *([Caveat.OUTAGE] if summary.lost else [])]
    return replace(record, summary=summary, caveats=list(dict.fromkeys([*record.caveats, *caveats])))


def parse_trial(text: str) -> TrialFile:
    """Parse the text of a trial.json file.

    Raise ValueError, which names the key and the mistake, if the text is not valid.
    """
    try:
        # A run may have ten thousand of them: one pass, and two only to tell what is wrong.
        with suppress(ValidationError):
            parsed = _TRIAL_FILE.validate_json(text)
            manifest.check_schema(parsed.schema)
            return parsed
        found = json.loads(text)
        if isinstance(found, dict):
            manifest.check_schema(found.get("schema", 0))
        return _TRIAL_FILE.validate_python(found)
    except RecursionError:
        raise ReasonError(msg("why-too-deep")) from None
    except ValidationError as e:
        raise ReasonError(explained(e)) from e


def _counts(summary: TrialSummary | None) -> dict[str, int]:
    """Return the number of values behind a trial's summary, by tag."""
    if summary is None:
        return {}
    of_statements = {hlog.statement(n): s.latency.count for n, s in enumerate(summary.statements)}
    of_scripts = {hlog.script(n): s.latency.count for n, s in enumerate(summary.scripts)}
    return {hlog.TRANSACTION: summary.latency.count, **of_statements, **of_scripts}


class _Ahead:
    """Histograms of one tag of many trials, read together when the first is taken, and given away once each."""

    def __init__(self, folders: Mapping[int, Path], tag: str) -> None:
        self._folders = folders
        self._tag = tag
        self._found: dict[int, Histogram | None] | None = None
        # Beside whatever is computed before the first is taken: reading does not need the interpreter.
        self._reader = threading.Thread(target=self._read, daemon=True)
        if len(folders) >= _MANY:
            self._reader.start()

    def _read(self) -> None:
        found = read_merged([f"{folder}/{MERGED}" for folder in self._folders.values()], self._tag)
        self._found = dict(zip(self._folders, found, strict=True))

    def take(self, number: int) -> Histogram | None:
        """Return the histogram of a trial; None if it was taken already or cannot be read."""
        if self._reader.ident is not None:
            self._reader.join()
        if self._found is None:
            self._read()
        assert self._found is not None
        return self._found.pop(number, None)


class _Merged:
    """Histograms of a trial by tag, without the warm-up.

    Each histogram is decoded when it is requested. The histograms of a killed trial come from its log.
    """

    def __init__(
        self,
        folder: Path,
        series: _Lazy[int, list[IntervalRow]],
        number: int,
        summary: TrialSummary | None,
        damage: _Damage,
    ) -> None:
        self._folder = folder
        self._counts = _counts(summary)
        self._series = series
        self._number = number
        self._damage = damage
        self._encoded = hlog.encoded_lines(folder / MERGED)
        self._logged: dict[str, Histogram] | None = None

    def get(self, tag: str) -> Histogram | None:
        """Return the histogram of a tag, or None if nothing was recorded."""
        if self._encoded is not None:
            try:
                if tag in self._encoded or not self._counts.get(tag):
                    return hlog.decoded(self._encoded[tag]) if tag in self._encoded else None
                raise ReasonError(msg("why-lacks", what=tag))
            except ValueError as e:
                # The log may be whole.
                self._damage.note(self._folder / MERGED, reason(e))
                self._encoded = None
        if self._logged is None:
            counted = {r.start_ns for r in self._series[self._number] if r.phase not in UNCOUNTED}
            self._logged = hlog.read_merged(self._folder / LOG, counted)
        found, expected = self._logged.get(tag), self._counts.get(tag)
        if expected is not None and (count := found.count if found else 0) != expected:
            self._damage.note(self._folder / LOG, message("why-values-missing", what=Name(tag), n=count, of=expected))
        return found


def read_checks(folder: Path, note: Callable[[Path, Text], None] = lambda *_: None) -> list[dict[str, Any]]:
    """Return the checks of a trial's tables; the list is empty if nothing was checked."""
    # A run may have ten thousand trials, and few have checks.
    if not os.path.exists(f"{folder}/{CHECKS}"):  # noqa: PTH110
        return []
    path = folder / CHECKS
    try:
        found = json.loads(manifest.text_of(path))
        kinds = {"clause": str, "title": str, "holds": bool, "broken": int, "example": str}
        if not isinstance(found, list) or not all(
            isinstance(c, dict) and all(isinstance(c.get(k), t) for k, t in kinds.items()) for c in found
        ):
            raise ReasonError(msg("why-no-checks"))
    except (OSError, ValueError) as e:
        note(path, reason(e))
        return []
    return found


def read_intervals(folder: Path, note: Callable[[Path, Text], None] = lambda *_: None) -> list[IntervalRow]:
    """Return a trial's time series.

    It comes from the Parquet file, or from the lines that were written until the trial was killed. `note` is called
    for each file that cannot be read.
    """
    parquet = folder / INTERVALS
    if parquet.exists():
        try:
            with pq.ParquetFile(parquet) as file:
                # One thread: the files are small, and there may be ten thousand.
                table = file.read(use_threads=False)
            found = table.drop_columns([name for name in ADDED if name in table.column_names]).to_pylist()
            return [IntervalRow(**row) for row in found]
        except (*DAMAGED_PARQUET, TypeError) as e:
            # The rest of the run is still worth reading.
            note(parquet, reason(e))
            return []
    rows: list[IntervalRow] = []
    try:
        lines = (folder / LINES).read_bytes().split(b"\n")
    except FileNotFoundError:
        return rows
    except OSError as e:
        note(folder / LINES, reason(e))
        return rows
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            rows.append(IntervalRow(**json.loads(line)))
        except (ValueError, TypeError, RecursionError) as e:
            # The last line may be torn by a kill; a whole one is damaged.
            if number < len(lines):
                note(folder / LINES, message("why-line", line=number, reason=reason(e)))
            break
    return rows


def _counts_over_time(log: Path, rows: list[IntervalRow]) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for start, tag, h in hlog.intervals(log, [r.start_ns for r in rows]):
        found.setdefault(start, {})[tag] = h.count
    return found


def _buckets_over_time(log: Path, rows: list[IntervalRow]) -> list[tuple[int, list[tuple[int, int]]]]:
    measured = [r.start_ns for r in rows if r.phase == "measure"]
    return [(start, h.buckets()) for start, tag, h in hlog.intervals(log, measured) if tag == hlog.TRANSACTION]


def read_events(folder: Path, note: Callable[[Path, Text], None] = lambda *_: None) -> list[Event]:
    """Return the events of a trial, in order of time.

    `note` is called if the file cannot be read.
    """
    file, found = folder / EVENTS, []
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as e:
        note(file, reason(e))
        return []
    for number, line in enumerate(lines, 1):
        try:
            if line:
                facts = json.loads(line)
                text = texts.restored(str(facts["text"]), facts.get("message")) or Name("")
                found.append(Event(int(facts["at_ns"]), event_kind(str(facts["kind"])), text))
        except (ValueError, TypeError, KeyError, RecursionError) as e:
            if number < len(lines):
                note(file, message("why-line", line=number, reason=reason(e)))
            break
    return sorted(found, key=lambda e: e.at_ns)


def with_half_widths(latency: Latency, together: Histogram, parts: list[Histogram]) -> Latency:
    """Return the figures of merged repetitions, with confidence intervals.

    `together` is the merged histogram of the repetitions. The confidence intervals are computed from `parts`.
    """
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
