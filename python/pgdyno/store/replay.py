"""A run read back as the events that it emitted, whether it has ended or is still under way."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pgdyno._core import Histogram
from pgdyno.errors import PgdynoError
from pgdyno.message import Name, Text
from pgdyno.model import Event, IntervalRow, TrialPlan, TrialRecord, event_kind
from pgdyno.store import hlog, manifest, samples, texts, trials
from pgdyno.store.journal import JOURNAL, parsed
from pgdyno.store.layout import LINES, LOG, TRIAL
from pgdyno.store.rundir import is_under_way
from pgdyno.stream.events import (
    Body,
    CheckStarted,
    DatasetDone,
    DatasetProgress,
    Happened,
    IntervalClosed,
    LoadStarted,
    Noted,
    RunEvent,
    RunFinished,
    SamplesTaken,
    Stamp,
    TotalsRead,
    TrialFinished,
    TrialsPlanned,
    TrialStarted,
)

#: Seconds between two looks at a run under way.
_POLL_S = 0.1


def replay(folder: Path, *, follow: bool = False, brief: bool = False) -> Iterator[RunEvent]:
    """Yield the events of a run in order.

    With `follow`, wait for the events of a run under way until it has ended. A run that was killed gives the events
    until then. A run of a version without a journal gives the events that its files have, trial by trial. With `brief`,
    leave out samples and histograms, which are costly to read beside a run under way.
    """
    while follow and not (folder / JOURNAL).exists() and is_under_way(folder):
        # Its folder has just been created.
        time.sleep(_POLL_S)
    if not (folder / JOURNAL).exists():
        yield from _from_files(folder)
        return
    trials = _Trials(folder, brief=brief)
    for facts in _lines(folder, follow=follow):
        event = _event(facts, trials)
        if event is not None:
            yield event
        if facts["type"] == "trial-finished":
            # Nothing of it follows.
            trials.end(facts.get("trial"))


def _lines(folder: Path, *, follow: bool) -> Iterator[dict[str, Any]]:
    """Yield the lines of the journal; with `follow` also those that are still to come."""
    with (folder / JOURNAL).open("r", encoding="utf-8", errors="replace") as f:
        rest, last = "", ""
        while True:
            # Asked before reading: what is written until the end is read.
            goes_on = follow and is_under_way(folder)
            while line := f.readline():
                rest += line
                if not rest.endswith("\n"):
                    continue
                facts, rest = parsed(rest), ""
                if facts is None:
                    # Damaged: what follows is still worth showing.
                    continue
                last = facts["type"]
                yield facts
            # A run that was continued has an end in its middle; a process may hold the lock of a run beyond its end.
            if not goes_on or (last == "run-finished" and _has_ended(folder)):
                return
            time.sleep(_POLL_S)


def _has_ended(folder: Path) -> bool:
    """Return True if a run says that it has ended; one that is continued takes it back before it goes on."""
    try:
        return manifest.read(folder, brief=True).ended_at is not None
    except PgdynoError:
        return False


def _event(facts: dict[str, Any], trials: _Trials) -> RunEvent | None:
    """Return the event of a line; None: of another version, or damaged."""
    try:
        stamp = Stamp(facts["seq"], facts["at_ns"], facts.get("trial"), facts.get("origin", "session"))
        body = _body(facts, trials.get(stamp.trial), trials)
    except (KeyError, TypeError, ValueError, OSError):
        return None
    return None if body is None else RunEvent(stamp, body)


def _body(f: dict[str, Any], trial: _Trial | None, trials: _Trials) -> Body | None:
    match f["type"]:
        case "noted":
            return Noted(_text(f))
        case "dataset-progress":
            return DatasetProgress(f["phase"], f["rows"], f["total_rows"], f["done_bytes"], f["total_bytes"])
        case "check-started":
            return CheckStarted(f["what"], f["number"], f["of"])
        case "dataset-done":
            return DatasetDone()
        case "trials-planned":
            if "plans" in f:
                return TrialsPlanned([TrialPlan(**p) for p in f["plans"]], f["seconds_each"])
            # Of an earlier version, which kept the numbers only.
            return TrialsPlanned([trials.plan(n) for n in f["trials"] if n in trials.planned], f["seconds_each"])
        case "run-finished":
            return RunFinished(f["exit_code"], texts.restored(f["error"], f.get("error_message")))
    if f["type"] == "trial-started":
        trial = trials.begin(f["trial"], f["folder"])
        return TrialStarted(trial.record.plan, f["statements"])
    return None if trial is None else _trial_body(f, trial)


def _text(f: dict[str, Any]) -> Text:
    return texts.restored(f["text"], f.get("message")) or Name("")


def _trial_body(f: dict[str, Any], trial: _Trial) -> Body | None:
    match f["type"]:
        case "load-started":
            trial.start_ns = f["start_ns"]
            return LoadStarted(f["start_ns"])
        case "happened":
            return Happened(event_kind(f["kind"]), _text(f), f["after_ns"], f["client"])
        case "interval-closed":
            row = trial.interval(f["start_ns"], f["end_ns"])
            if row is None:
                return None
            return IntervalClosed(trial.record.plan, row, {} if trial.brief else trial.histograms(row.start_ns))
        case "samples-taken" | "totals-read" if trial.brief:
            return None
        case "samples-taken":
            rows = trial.samples(f["source"], f["start_ns"] - trial.start_ns, f["end_ns"] - trial.start_ns)
            return SamplesTaken(f["source"], f["start_ns"], f["end_ns"], rows)
        case "totals-read":
            return TotalsRead(f["source"], samples.read(trial.folder, f["source"]))
        case "trial-finished":
            return TrialFinished(trials.read_record(trial.folder))
    return None


class _Trial:
    """Files of a trial, read as far as they are needed."""

    def __init__(self, folder: Path, *, brief: bool = False) -> None:
        self.folder = folder
        self.brief = brief
        self.record: TrialRecord = trials.read_record(folder)
        self.start_ns = self.record.start_ns
        self._intervals: dict[tuple[int, int], IntervalRow] = {}
        #: Bytes of the lines that were read while the trial went on.
        self._read = 0
        self._is_whole = False
        self._log: hlog.Tail | None = None
        self._samples: dict[str, dict[tuple[int, int], list[samples.Row]]] = {}

    def interval(self, start_ns: int, end_ns: int) -> IntervalRow | None:
        """Return a row of the time series."""
        key = (start_ns, end_ns)
        if key not in self._intervals:
            self._read_lines()
        if key not in self._intervals and not self._is_whole and not (self.folder / LINES).exists():
            # The trial has ended, and its lines with it.
            self._is_whole = True
            self._intervals |= {(r.start_ns, r.end_ns): r for r in trials.read_intervals(self.folder)}
        return self._intervals.get(key)

    def _read_lines(self) -> None:
        """Read the lines that were written since the last time."""
        try:
            with (self.folder / LINES).open("rb") as f:
                f.seek(self._read)
                whole = f.read().rpartition(b"\n")[0]
        except OSError:
            return
        for line in whole.splitlines():
            with suppress(ValueError, TypeError, RecursionError):
                row = IntervalRow(**json.loads(line))
                self._intervals[row.start_ns, row.end_ns] = row
        self._read += len(whole) + 1 if whole else 0

    def histograms(self, start_ns: int) -> dict[str, Histogram]:
        """Return the latencies of an interval by tag."""
        if self._log is None:
            self._log = hlog.Tail(self.folder / LOG)
        return self._log.take(start_ns)

    def samples(self, source: str, start_ns: int, end_ns: int) -> list[samples.Row]:
        """Return the samples of a source for a time, in nanoseconds since the load began."""
        key = (start_ns, end_ns)
        if key not in self._samples.get(source, {}):
            found: dict[tuple[int, int], list[samples.Row]] = {}
            for row in samples.read(self.folder, source):
                if "start_ns" in row:
                    own = {k: v for k, v in row.items() if k not in ("start_ns", "end_ns")}
                    found.setdefault((row["start_ns"], row["end_ns"]), []).append(own)
            self._samples[source] = found
        return self._samples[source].get(key, [])


class _Trials:
    """The trials of a run by number."""

    def __init__(self, folder: Path, *, brief: bool = False) -> None:
        self._folder = folder
        self._brief = brief
        self._trials: dict[int, _Trial] = {}
        self.planned: dict[int, Path] = {}
        for path in sorted((folder / "trials").glob("*")):
            number = path.name.partition("-")[0]
            if number.isdigit() and (path / TRIAL).exists():
                self.planned[int(number)] = path

    def plan(self, number: int) -> Any:
        """Return the plan of a trial that has begun."""
        return trials.read_record(self.planned[number]).plan

    def begin(self, number: int, folder: str) -> _Trial:
        """Return a trial that begins."""
        self._trials[number] = _Trial(self._folder / "trials" / folder, brief=self._brief)
        return self._trials[number]

    def end(self, number: int | None) -> None:
        """Forget the rows of a trial that has ended."""
        if number is not None:
            self._trials.pop(number, None)

    def get(self, number: int | None) -> _Trial | None:
        """Return a trial that has begun."""
        return None if number is None else self._trials.get(number)


def _from_files(folder: Path) -> Iterator[RunEvent]:
    """Yield what the files of a run say, in the order of its trials."""
    m = manifest.read(folder)
    seq = 0

    def event(body: Body, at_ns: int, trial: int | None, origin: str = "session") -> RunEvent:
        nonlocal seq
        seq += 1
        return RunEvent(Stamp(seq - 1, at_ns, trial, origin), body)

    for path in sorted((folder / "trials").glob("*")):
        if not (path / TRIAL).exists():
            continue
        trial = _Trial(path)
        t, number, start = trial.record, trial.record.plan.number, trial.record.start_ns
        statements = [s.text for s in t.summary.statements] if t.summary else []
        yield event(TrialStarted(t.plan, statements), start, number)
        yield event(LoadStarted(start), start, number, "engine")
        bodies: list[tuple[int, int, Body]] = []
        for row in trials.read_intervals(path):
            bodies.append((row.end_ns, 0, IntervalClosed(t.plan, row, trial.histograms(row.start_ns))))
        for e in trials.read_events(path):
            bodies.append((e.at_ns, 1, _happened(e)))
        for name in samples.names(path):
            rows = samples.read(path, name)
            spans = dict.fromkeys((r["start_ns"], r["end_ns"]) for r in rows if "start_ns" in r)
            for a, b in spans:
                bodies.append((b, 2, SamplesTaken(name, start + a, start + b, trial.samples(name, a, b))))
        for after_ns, _, body in sorted(bodies, key=lambda x: x[:2]):
            yield event(body, start + after_ns, number, "engine")
        yield event(TrialFinished(t), start, number)
    if m.ended_at:
        yield event(RunFinished(m.exit_code or 0, m.error_text), 0, None)


def _happened(e: Event) -> Happened:
    return Happened(e.kind, e.text, e.at_ns)
