"""A run read back as the events that it emitted, whether it has ended or is still under way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pgdyno._core import Histogram
from pgdyno.message import Name, Text
from pgdyno.model import Event, IntervalRow, TrialRecord, event_kind
from pgdyno.store import hlog, manifest, samples, texts, trials
from pgdyno.store.journal import JOURNAL, parsed
from pgdyno.store.layout import LOG, TRIAL
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


def replay(folder: Path, *, follow: bool = False) -> Iterator[RunEvent]:
    """Yield the events of a run in order.

    With `follow`, wait for the events of a run under way until it has ended. A run that was killed gives the events
    until then. A run of a version without a journal gives the events that its files have, trial by trial.
    """
    if not (folder / JOURNAL).exists():
        yield from _from_files(folder)
        return
    trials = _Trials(folder)
    for facts in _lines(folder, follow=follow):
        event = _event(facts, trials)
        if event is not None:
            yield event


def _lines(folder: Path, *, follow: bool) -> Iterator[dict[str, Any]]:
    """Yield the lines of the journal; with `follow` also those that are still to come."""
    with (folder / JOURNAL).open("r", encoding="utf-8", errors="replace") as f:
        rest = ""
        while True:
            # Asked before reading: what is written until the end is read.
            goes_on = follow and is_under_way(folder)
            while line := f.readline():
                rest += line
                if not rest.endswith("\n"):
                    continue
                facts, rest = parsed(rest), ""
                if facts is None:
                    return
                yield facts
                if facts["type"] == "run-finished":
                    return
            if not goes_on:
                return
            time.sleep(_POLL_S)


def _event(facts: dict[str, Any], trials: _Trials) -> RunEvent | None:
    """Return the event of a line; None: of another version, or damaged."""
    try:
        stamp = Stamp(facts["seq"], facts["at_ns"], facts.get("trial"), facts.get("origin", "session"))
        body = _body(facts, trials.get(stamp.trial), trials)
    except (KeyError, TypeError, ValueError):
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
            return None if row is None else IntervalClosed(trial.record.plan, row, trial.histograms(row.start_ns))
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

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record: TrialRecord = trials.read_record(folder)
        self.start_ns = self.record.start_ns
        self._intervals: dict[tuple[int, int], IntervalRow] = {}
        self._log: hlog.Tail | None = None
        self._samples: dict[str, dict[tuple[int, int], list[samples.Row]]] = {}

    def interval(self, start_ns: int, end_ns: int) -> IntervalRow | None:
        """Return a row of the time series."""
        if (start_ns, end_ns) not in self._intervals:
            self._intervals = {(r.start_ns, r.end_ns): r for r in trials.read_intervals(self.folder)}
        return self._intervals.get((start_ns, end_ns))

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

    def __init__(self, folder: Path) -> None:
        self._folder = folder
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
        self._trials[number] = _Trial(self._folder / "trials" / folder)
        return self._trials[number]

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
