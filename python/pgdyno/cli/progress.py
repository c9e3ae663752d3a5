"""Progress: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from pgdyno import i18n
from pgdyno.cluster import waiting
from pgdyno.message import Message, Text, counted, message
from pgdyno.model import IntervalRow, TrialPlan, TrialRecord
from pgdyno.stream.events import (
    CheckStarted,
    DatasetDone,
    DatasetProgress,
    EventsDropped,
    IntervalClosed,
    Noted,
    RunEvent,
    TrialFinished,
    TrialsPlanned,
    TrialStarted,
    WarmupInterval,
)
from pgdyno.stream.stream import RunStream
from pgdyno.units import Quantity


def _short(plan: TrialPlan) -> str:
    more = f" {plan.label}" if plan.varied else ""
    hot = f" hot {plan.hot_set * 100:g}%" if plan.hot_set != 1 else ""
    text = f"{plan.workload}{more}{hot} c={plan.clients}"
    # The bar and the figures need their room.
    return text if len(text) <= 36 else f"{text[:35]}…"


def _loading(rows: int, done_bytes: int, seconds: float) -> str:
    """Return the progress of a load: rows, and throughput in MB/s."""
    parts = [f"{rows:,} rows"] if rows else []
    if done_bytes and seconds > 0.05:
        parts.append(f"{done_bytes / seconds / 1e6:,.0f} MB/s")
    return "  ".join(parts)


def _planned(trials: Sequence[TrialPlan], seconds_each: float) -> Message:
    """Return the line that says how many trials follow."""
    return message("progress-trials", trials=counted("n-trials", len(trials)), seconds=Quantity(seconds_each, "rate"))


class _Viewer:
    """Subscriber that shows events; a subclass names what it shows."""

    #: Writes a text in the language of the output.
    say: Callable[[Text], str] = staticmethod(i18n.writer("en"))

    def handle(self, event: RunEvent) -> None:
        """Receive an event of the run."""
        match event.body:
            case Noted(text=text):
                self.note(self.say(text))
            case DatasetProgress() as p:
                self.loading(p.phase, p.rows, p.total_rows, p.done_bytes, p.total_bytes)
            case CheckStarted(what=what, number=number, of=of):
                self.checking(what, number, of)
            case DatasetDone():
                self.loaded()
            case TrialsPlanned(trials=trials, seconds_each=seconds):
                self.planned(trials, seconds)
            case TrialStarted(plan=plan, statements=statements):
                self.trial_started(plan, statements)
            case IntervalClosed(plan=plan, row=row, histograms=histograms):
                self.interval(plan, row, histograms)
            case WarmupInterval(plan=plan, row=row):
                self.interval(plan, row, {})
            case TrialFinished(record=record):
                self.trial_ended(record)
            case EventsDropped(n=n):
                self.note(self.say(counted("progress-dropped", n)))

    def note(self, text: str) -> None: ...
    def loading(self, phase: str, rows: int, total_rows: int, done_bytes: int, total_bytes: int) -> None: ...
    def checking(self, what: str, number: int, of: int) -> None: ...
    def loaded(self) -> None: ...
    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None: ...
    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None: ...
    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Mapping[str, Any]) -> None: ...
    def trial_ended(self, record: TrialRecord) -> None: ...
    def close(self) -> None: ...


class RichProgress(_Viewer):
    """Bar, ETA, current TPS, p99 and failures."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
        )
        self._load: TaskID | None = None
        self._phase = ""
        self._since = 0.0
        self._trials: TaskID | None = None
        self._each = 1.0
        self._planned = 0
        self._done = 0
        self._failed = 0

    def note(self, text: str) -> None:
        self._console.print(text, markup=False)

    def loading(self, phase: str, rows: int, total_rows: int, done_bytes: int, total_bytes: int) -> None:
        if self._load is None:
            self._load = self._progress.add_task("load", figures="")
            self._progress.start()
        if phase != self._phase:
            self._phase, self._since = phase, time.monotonic()
            self._progress.reset(self._load, total=total_bytes or total_rows or None, description=f"load: {phase}")
        done = done_bytes if total_bytes else rows
        self._progress.update(
            self._load, completed=done, figures=_loading(rows, done_bytes, time.monotonic() - self._since)
        )

    def checking(self, what: str, number: int, of: int) -> None:
        self.loading("check", number, of, 0, 0)
        if self._load is not None:
            self._progress.update(self._load, description=f"check: {what}", figures=f"{number + 1} of {of}")

    def loaded(self) -> None:
        if self._load is not None:
            self._progress.remove_task(self._load)
            self._progress.stop()
            self._load, self._phase = None, ""

    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None:
        self.note(self.say(_planned(trials, seconds_each)))
        self._each, self._planned = seconds_each, len(trials)
        self._trials = self._progress.add_task("", total=len(trials) * seconds_each, figures="")
        self._progress.start()

    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None:
        if self._trials is not None:
            # A search may take more trials than it usually does.
            self._planned = max(self._planned, self._done + 1)
            total = self._planned * self._each
            self._progress.update(self._trials, total=total, description=_short(plan), figures="connecting")

    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Mapping[str, Any]) -> None:
        if self._trials is None or row.end_ns <= row.start_ns:
            return
        tps = row.committed / ((row.end_ns - row.start_ns) / 1e9)
        bad = self._failed + row.failed + row.unknown
        figures = f"{tps:>9,.0f} TPS  p99 {row.p99_ns / 1e6:.3g} ms  {bad} failed"
        passed = min(row.end_ns / 1e9, self._each)
        self._progress.update(self._trials, completed=self._done * self._each + passed, figures=figures)

    def trial_ended(self, record: TrialRecord) -> None:
        self._done += 1
        if record.summary is not None:
            self._failed += sum(record.summary.failed.values()) + record.summary.unknown
        if self._trials is not None:
            self._progress.update(self._trials, completed=self._done * self._each)

    def close(self) -> None:
        """End the display."""
        self._progress.stop()


#: Seconds between lines of a trial that takes long, where there is no terminal.
_A_LINE_S = 60.0


class PlainProgress(_Viewer):
    """One line for each thing, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._total = 0
        self._ended = 0
        self._failed = 0
        self._begun = time.monotonic()
        self._told = time.monotonic()
        self._phase = ""
        self._since = 0.0

    def note(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def loading(self, phase: str, rows: int, total_rows: int, done_bytes: int, total_bytes: int) -> None:
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._since = phase, now
        if now - self._told <= 5:
            return
        self._told = now
        done, total = (done_bytes, total_bytes) if total_bytes else (rows, total_rows)
        left = (now - self._since) * (total - done) / done if done and total else None
        eta = f", {left:.0f} s left" if left is not None else ""
        figures = _loading(rows, done_bytes, now - self._since)
        self.note(f"load: {phase}{', ' + figures if figures else ''}{eta}")

    def checking(self, what: str, number: int, of: int) -> None:
        now = time.monotonic()
        if now - self._told > 5:
            self._told = now
            self.note(f"check: {what}, {number + 1} of {of}")

    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None:
        self._total = len(trials)
        self._begun = time.monotonic()
        self.note(self.say(_planned(trials, seconds_each)))

    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None:
        self._told, self._failed = time.monotonic(), 0

    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Mapping[str, Any]) -> None:
        self._failed += row.failed + row.unknown
        now = time.monotonic()
        if now - self._told < _A_LINE_S or row.end_ns <= row.start_ns:
            return
        self._told = now
        tps = row.committed / ((row.end_ns - row.start_ns) / 1e9)
        self.note(
            f"{self._which(self._ended + 1)} {plan.slug}, {row.end_ns / 1e9:.0f} s into it: {tps:,.0f} TPS, "
            f"p99 {row.p99_ns / 1e6:.3g} ms, {self._failed} failed"
        )

    def trial_ended(self, record: TrialRecord) -> None:
        self._ended += 1
        s = record.summary
        figures = f"{s.tps:,.0f} TPS, p99 {s.latency.p99_ns / 1e6:.3g} ms" if s else record.state
        bad = f", {sum(s.failed.values())} failed" if s and s.failed else ""
        left = (time.monotonic() - self._begun) / self._ended * (self._total - self._ended)
        # A search may take more trials than it usually does.
        eta = f" ({left:.0f} s left)" if self._ended <= self._total else ""
        self.note(f"{self._which(self._ended)} {record.plan.slug}: {figures}{bad}{eta}")

    def _which(self, number: int) -> str:
        return f"{number}/{self._total}" if number <= self._total else f"{number}"


class Steps:
    """Progress of a few steps whose length is known beforehand: a bar on a terminal, a line for each step elsewhere."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._begun = time.monotonic()
        self._stop = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._task is not None:
            self._ticker.join()
            self._progress.stop()

    def show(self, step: str, passed_s: float, total_s: float) -> None:
        """Show that a step begins, `passed_s` seconds into `total_s`."""
        if self._quiet:
            return
        if not self._console.is_terminal:
            self._console.print(f"{step} ({max(0.0, total_s - passed_s):.0f} s left)", markup=False)
            return
        if self._task is None:
            self._task = self._progress.add_task(step, total=total_s)
            self._progress.start()
            self._ticker.start()
        self._begun = time.monotonic() - passed_s
        self._progress.update(self._task, description=step)

    def _tick(self) -> None:
        # The steps are programs that do not say how far they are.
        while not self._stop.wait(0.2):
            if self._task is not None:
                self._progress.update(self._task, completed=time.monotonic() - self._begun)


def stream_for(console: Console, *, quiet: bool, lang: str | None = None) -> RunStream:
    """Return a stream with the viewer that suits the destination of the messages: a terminal, a log, or none.

    Without a language it is that of the locale.
    """
    stream = RunStream()
    if not quiet:
        viewer = RichProgress(console) if console.is_terminal else PlainProgress(sys.stderr)
        viewer.say = i18n.writer(i18n.chosen(lang))
        viewed(stream, viewer)
    return stream


def viewed(stream: RunStream, viewer: _Viewer) -> None:
    """Show the events of a stream. What a preparation waits for is shown as well."""
    stream.subscribe(viewer)
    waiting.report = stream.note
