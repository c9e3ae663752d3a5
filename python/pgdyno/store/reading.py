"""A run directory, read: whatever state it is in, and naming what cannot be read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pgdyno._core import Histogram, read_merged
from pgdyno.analysis.quantiles import RESOLUTION, mean_half_width_over, quantile_band_over
from pgdyno.errors import ReasonError, msg, reason
from pgdyno.message import Name, Text, message
from pgdyno.model import (
    PERCENTILE_NAMES,
    UNCOUNTED,
    Event,
    IntervalRow,
    Key,
    Latency,
    ScriptLatency,
    StatementLatency,
    TrialRecord,
    TrialSummary,
)
from pgdyno.store import hlog, manifest, samples
from pgdyno.store.layout import LOG, MERGED
from pgdyno.store.manifest import Manifest
from pgdyno.store.trials import Damage, read_checks, read_events, read_intervals, records_with_folders

T = TypeVar("T")
K = TypeVar("K")
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


def read(path: Path) -> RunData:
    """Read a run directory, in whatever state it is.

    Raise UsageError if it has no readable manifest.
    """
    about = manifest.read(path)
    damage = Damage(path)
    records = records_with_folders(path, damage)
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
        return with_half_widths(hlog.latency_of(whole), whole, _units(parts))

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
        damage: Damage,
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


def _counts_over_time(log: Path, rows: list[IntervalRow]) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for start, tag, h in hlog.intervals(log, [r.start_ns for r in rows]):
        found.setdefault(start, {})[tag] = h.count
    return found


def _buckets_over_time(log: Path, rows: list[IntervalRow]) -> list[tuple[int, list[tuple[int, int]]]]:
    measured = [r.start_ns for r in rows if r.phase == "measure"]
    return [(start, h.buckets()) for start, tag, h in hlog.intervals(log, measured) if tag == hlog.TRANSACTION]
