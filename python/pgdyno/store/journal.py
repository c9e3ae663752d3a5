"""The record of a run as it happens: what a trial writes, and the order of everything in `journal.jsonl`.

The journal has a line an event. Events that carry much (intervals, samples) are in the files of their trial, and the
journal refers to them: each line is written after what it refers to, so a journal that a kill has cut off is a
beginning of the run.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from pgdyno.store import texts
from pgdyno.store.rundir import TrialWriter
from pgdyno.store.writing import writing
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
    TotalsRead,
    TrialFinished,
    TrialsPlanned,
    TrialStarted,
)

JOURNAL = "journal.jsonl"
#: Version of its lines.
SCHEMA = 2
_NAMES = {
    Noted: "noted",
    DatasetProgress: "dataset-progress",
    CheckStarted: "check-started",
    DatasetDone: "dataset-done",
    TrialsPlanned: "trials-planned",
    TrialStarted: "trial-started",
    LoadStarted: "load-started",
    IntervalClosed: "interval-closed",
    SamplesTaken: "samples-taken",
    TotalsRead: "totals-read",
    Happened: "happened",
    TrialFinished: "trial-finished",
    RunFinished: "run-finished",
}


class RunRecorder:
    """Recorder of a run's directory.

    Events before `open` are kept, and written when the directory exists.
    """

    def __init__(self) -> None:
        self._file: TextIO | None = None
        self._folder = Path()
        self._early: list[RunEvent] = []
        self._writers: dict[int, TrialWriter] = {}
        self._phase = ""

    def open(self, folder: Path) -> None:
        """Begin to write the journal in a run's directory, or go on with it."""
        self._folder = folder
        with writing(folder):
            path = folder / JOURNAL
            if path.exists():
                # A line that a kill has cut: readers would stop at it.
                whole = path.read_bytes().rpartition(b"\n")
                if whole[2]:
                    os.truncate(path, len(whole[0]) + len(whole[1]))
            self._file = path.open("a", encoding="utf-8", buffering=1)
        early, self._early = self._early, []
        for event in early:
            self._line(event)

    def add(self, writer: TrialWriter) -> None:
        """Write the events of a trial with its writer."""
        self._writers[writer.plan.number] = writer

    def handle(self, event: RunEvent) -> None:
        """Write an event."""
        writer = self._writers.get(event.stamp.trial) if event.stamp.trial is not None else None
        if writer is not None:
            _write(writer, event.body)
        if self._file is None:
            self._early.append(event)
        else:
            self._line(event)

    def close(self) -> None:
        """Close the journal."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                # The line that a full disk did not take is tried again, in vain.
                self._file.close()
            self._file = None

    def _line(self, event: RunEvent) -> None:
        if isinstance(event.body, DatasetProgress):
            # How far a phase is, is for who looks on.
            if event.body.phase == self._phase:
                return
            self._phase = event.body.phase
        name = _NAMES.get(type(event.body))
        if name is None:
            return
        stamp = {k: v for k, v in asdict(event.stamp).items() if v is not None}
        with writing(self._folder):
            assert self._file is not None
            self._file.write(json.dumps({"schema": SCHEMA, "type": name, **stamp, **_facts(event.body)}) + "\n")


def _write(writer: TrialWriter, body: Body) -> None:
    match body:
        case LoadStarted(start_ns=start_ns):
            writer.start(start_ns)
        case IntervalClosed(row=row, histograms=histograms):
            writer.interval(row, dict(histograms))
        case SamplesTaken(source=source, start_ns=start_ns, end_ns=end_ns, rows=rows):
            writer.samples(source, start_ns, end_ns, rows)
        case TotalsRead(source=source, rows=rows):
            writer.totals(source, rows)
        case Happened(kind=kind, text=text, at_ns=at_ns, client=client):
            writer.event(at_ns, kind, text, client=client)


def _facts(body: Body) -> dict[str, Any]:
    """Return what the journal has of an event: all of it, or where the rest is."""
    match body:
        case Noted(text=text):
            return texts.fields_of("text", text, "message")
        case TrialsPlanned(trials=trials, seconds_each=seconds):
            # Whole: their folders are not there yet.
            return {"plans": [asdict(t) for t in trials], "seconds_each": seconds}
        case TrialStarted(plan=plan, statements=statements):
            return {"folder": plan.folder, "statements": list(statements)}
        case IntervalClosed(row=row):
            return {"index": row.index, "start_ns": row.start_ns, "end_ns": row.end_ns}
        case SamplesTaken(source=source, start_ns=start_ns, end_ns=end_ns, rows=rows):
            return {"source": source, "start_ns": start_ns, "end_ns": end_ns, "rows": len(rows)}
        case TotalsRead(source=source, rows=rows):
            return {"source": source, "rows": len(rows)}
        case TrialFinished(record=record):
            return {"state": record.state, **texts.fields_of("error", record.error)}
        case RunFinished(exit_code=exit_code, error=error):
            return {"exit_code": exit_code, **texts.fields_of("error", error)}
        case Happened(kind=kind, text=text, at_ns=at_ns, client=client):
            happened = {"kind": str(kind), "after_ns": at_ns, "client": client}
            return happened | texts.fields_of("text", text, "message")
    return asdict(body)


def parsed(line: str) -> dict[str, Any] | None:
    """Return the facts of a line; None: it is torn or damaged."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and {"type", "seq", "at_ns"} <= set(found) else None
