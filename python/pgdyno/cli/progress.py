"""Progress: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from pgdyno import i18n
from pgdyno.cli import streams
from pgdyno.message import Message, Name, Text, counted, listed, message
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
from pgdyno.units import Quantity


def short_name(plan: TrialPlan) -> str:
    """Return a trial's configuration, short enough for the side of a bar."""
    more = f" {plan.label}" if plan.varied else ""
    hot = f" hot {plan.hot_set * 100:g}%" if plan.hot_set != 1 else ""
    text = f"{plan.workload}{more}{hot} c={plan.clients}"
    # The bar and the figures need their room.
    return text if len(text) <= 24 else f"{text[:23]}…"


def loaded_so_far(p: DatasetProgress, seconds: float) -> list[Text]:
    """Return the progress of a load: rows, and throughput in MB/s."""
    parts: list[Text] = [counted("n-rows", p.rows)] if p.rows else []
    if p.done_bytes and seconds > 0.05:
        parts.append(Name(f"{p.done_bytes / seconds / 1e6:,.0f} MB/s"))
    return parts


#: Steps of a flashback, by their name in the stream.
_FLASHBACK = {"copy": message("phase-flashback-copy"), "replay": message("phase-flashback-replay")}
#: Phases that are no part of loading.
_OF_CLUSTERS = {"snapshot", "restore-cluster"}


def phase_name(p: DatasetProgress) -> Text:
    """Return the name of a phase of loading."""
    if (step := _FLASHBACK.get(p.member)) is not None and p.phase == "flashback":
        return step
    phase = Message(f"phase-{p.phase}")
    if p.member:
        return message("progress-member", phase=phase, member=Name(p.member))
    return message("progress-load", phase=phase) if p.phase not in _OF_CLUSTERS else phase


def _tps(plan_tps: float, p99_ns: float) -> Message:
    if not p99_ns:
        # Of an observed server no single latency is known.
        return message("progress-tps", tps=Quantity(plan_tps, "whole"))
    return message("progress-figures", tps=Quantity(plan_tps, "whole"), p99=Quantity(p99_ns, "ms"))


def planned_trials(trials: Sequence[TrialPlan], seconds_each: float) -> Message:
    """Return the line that says how many trials follow."""
    return message("progress-trials", trials=counted("n-trials", len(trials)), seconds=Quantity(seconds_each, "rate"))


def check_name(what: str) -> Message:
    """Return the name of a check of what was loaded."""
    return message("progress-check", what=Name(what))


def time_left(seconds: float) -> Message:
    """Return the time that is left, for a line."""
    return message("progress-left", seconds=Quantity(seconds, "whole"))


def is_between(row: IntervalRow) -> bool:
    """Return True for an interval of no figure: a duet's changes of side, and what ends after the measurement."""
    return row.phase in ("transition", "drain")


class Viewer:
    """Subscriber that shows events; a subclass names what it shows."""

    #: Writes a text in the language of the output.
    say: Callable[[Text], str] = staticmethod(i18n.writer("en"))

    def handle(self, event: RunEvent) -> None:
        """Receive an event of the run."""
        match event.body:
            case Noted(text=text):
                self.note(self.say(text))
            case DatasetProgress() as p:
                self.loading(p)
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
    def loading(self, p: DatasetProgress) -> None: ...
    def checking(self, what: str, number: int, of: int) -> None: ...
    def loaded(self) -> None: ...
    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None: ...
    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None: ...
    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Mapping[str, Any]) -> None: ...
    def trial_ended(self, record: TrialRecord) -> None: ...
    def close(self) -> None: ...


#: Seconds between lines of a trial that takes long, where there is no terminal.
_A_LINE_S = 60.0


class PlainProgress(Viewer):
    """One line for each thing, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._total = 0
        self._ended = 0
        #: Trials under way: two of a duet.
        self._active = 0
        self._failed = 0
        #: Of the latest event, seconds: a run that is watched later tells the same times.
        self._at: float | None = None
        self._begun = self._told = self._now()
        self._phase = ""
        self._since = 0.0

    def handle(self, event: RunEvent) -> None:
        """Receive an event of the run."""
        if self._at is None:
            self._begun = self._told = event.stamp.at_ns / 1e9
        # A clock that is set back does not take the time back.
        self._at = max(self._at or 0.0, event.stamp.at_ns / 1e9)
        super().handle(event)

    def _now(self) -> float:
        return time.monotonic() if self._at is None else self._at

    def note(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def loading(self, p: DatasetProgress) -> None:
        now = self._now()
        if (phase := f"{p.phase} {p.member}") != self._phase:
            self._phase, self._since = phase, now
        if now - self._told <= 5:
            return
        self._told = now
        done, total = (p.done_bytes, p.total_bytes) if p.total_bytes else (p.rows, p.total_rows)
        left = (now - self._since) * (total - done) / done if done and total else None
        parts = [phase_name(p), *loaded_so_far(p, now - self._since), None if left is None else time_left(left)]
        self.note(self.say(listed(parts)))

    def checking(self, what: str, number: int, of: int) -> None:
        now = self._now()
        if now - self._told > 5:
            self._told = now
            self.note(self.say(listed([check_name(what), message("progress-of", n=number + 1, of=of)])))

    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None:
        # A run that was continued plans the rest anew.
        self._total, self._ended, self._active = len(trials), 0, 0
        self._begun = self._now()
        self.note(self.say(planned_trials(trials, seconds_each)))

    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None:
        self._told, self._failed = self._now(), 0
        self._active += 1

    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Mapping[str, Any]) -> None:
        self._failed += row.failed + row.unknown
        now = self._now()
        if now - self._told < _A_LINE_S or row.end_ns <= row.start_ns or is_between(row):
            return
        self._told = now
        tps = row.committed / ((row.end_ns - row.start_ns) / 1e9)
        figures = [_tps(tps, row.p99_ns), message("progress-failed", n=self._failed)]
        self.note(
            self.say(
                message(
                    "progress-trial-goes-on",
                    trial=Name(f"{self._which(self._ended + 1)} {plan.slug}"),
                    seconds=Quantity(row.end_ns / 1e9, "whole"),
                    figures=listed(figures),
                )
            )
        )

    def trial_ended(self, record: TrialRecord) -> None:
        self._ended += 1
        self._active = max(0, self._active - 1)
        s = record.summary
        figures = [_tps(s.tps, s.latency.p99_ns) if s else record.state_name]
        if s and s.failed:
            figures.append(message("progress-failed", n=sum(s.failed.values())))
        # The two of a duet end together.
        ended = self._ended + self._active
        left = (self._now() - self._begun) / ended * max(0, self._total - ended)
        # A search may take more trials than it usually does.
        eta = message("in-brackets", text=time_left(left)) if self._ended <= self._total else None
        trial = Name(f"{self._which(self._ended)} {record.plan.slug}")
        self.note(self.say(message("progress-trial", trial=trial, figures=listed(figures), left=eta)))

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
            left = message("in-brackets", text=time_left(max(0.0, total_s - passed_s)))
            self._console.print(streams.written(message("progress-step", step=Name(step), left=left)), markup=False)
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
