"""Progress on a terminal: a bar with the time that is left, the latest figures, and their course in two lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text as Line

from pgdyno.cli.progress import Viewer, check_name, is_between, loaded_so_far, phase_name, planned_trials, short_name
from pgdyno.message import message
from pgdyno.model import IntervalRow, TrialPlan, TrialRecord
from pgdyno.stream.events import DatasetProgress, RunEvent
from pgdyno.units import Quantity, Unit

#: Blocks of a curve, from nothing to its highest value.
_BLOCKS = "▁▂▃▄▅▆▇█"
#: Intervals that a curve has, at most; narrower terminals show the latest of them.
_COURSE = 120
#: Columns beside a curve, for its name and its highest value.
_BESIDE = 26


def curve(values: Sequence[float | None], width: int) -> str:
    """Return the latest values as blocks, the highest of those that are shown full; a gap for None."""
    shown = list(values)[-width:]
    highest = max((v for v in shown if v is not None), default=0.0)
    if highest <= 0:
        return ""
    steps = [None if v is None else min(len(_BLOCKS) - 1, int(v / highest * len(_BLOCKS))) for v in shown]
    return "".join(" " if step is None else _BLOCKS[step] for step in steps)


class LiveProgress(Viewer):
    """Bar, time left, current throughput, p99 and failures, and the course of throughput and p99.

    Times are those of the events, not of the clock: a run that was joined late shows the same.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[figures]}", markup=False),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
        )
        self._load: TaskID | None = None
        self._phase = ""
        self._phase_ns = 0
        self._trials: TaskID | None = None
        self._each = 1.0
        self._planned = 0
        self._done = 0
        #: Trials under way: two of a duet.
        self._active = 0
        self._failed = 0
        #: When the trials began, and the latest event; nanoseconds since 1970.
        self._start_ns = 0
        self._now_ns = 0
        #: Trial whose course is drawn: of the two of a duet, the first.
        self._drawn: int | None = None
        self._tps: deque[float | None] = deque(maxlen=_COURSE)
        self._p99: deque[float | None] = deque(maxlen=_COURSE)
        self._live = Live(get_renderable=self._shown, console=console, transient=True, refresh_per_second=5)

    def handle(self, event: RunEvent) -> None:
        """Receive an event of the run."""
        self._now_ns = event.stamp.at_ns
        super().handle(event)

    def note(self, text: str) -> None:
        self._console.print(text, markup=False)

    def loading(self, p: DatasetProgress) -> None:
        if self._load is None:
            self._load = self._bars.add_task("", figures="", left="")
            self._live.start()
        if (phase := f"{p.phase} {p.member}") != self._phase:
            self._phase, self._phase_ns = phase, self._now_ns
            total = p.total_bytes or p.total_rows or None
            self._bars.reset(self._load, total=total, description=self.say(phase_name(p)))
        done, total = (p.done_bytes, p.total_bytes) if p.total_bytes else (p.rows, p.total_rows)
        seconds = (self._now_ns - self._phase_ns) / 1e9
        figures = "  ".join(map(self.say, loaded_so_far(p, seconds)))
        left = _clock(seconds / done * (total - done)) if done and total else ""
        self._bars.update(self._load, completed=done, figures=figures, left=left)

    def checking(self, what: str, number: int, of: int) -> None:
        self.loading(DatasetProgress("check", number, of))
        if self._load is not None:
            figures = self.say(message("progress-of", n=number + 1, of=of))
            self._bars.update(self._load, description=self.say(check_name(what)), figures=figures)

    def loaded(self) -> None:
        if self._load is not None:
            self._bars.remove_task(self._load)
            if self._trials is None:
                self._live.stop()
            self._load, self._phase = None, ""

    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None:
        self.note(self.say(planned_trials(trials, seconds_each)))
        self._each, self._planned, self._start_ns = seconds_each, len(trials), self._now_ns
        # A run that was continued plans the rest anew.
        self._done, self._active = 0, 0
        if self._trials is not None:
            self._bars.remove_task(self._trials)
        self._trials = self._bars.add_task("", total=len(trials) * seconds_each, figures="", left="")
        self._live.start()

    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None:
        if self._trials is None:
            return
        self._active += 1
        # A search may take more trials than it usually does.
        self._planned = max(self._planned, self._done + 1)
        number = self.say(message("progress-trial-of", n=self._done + 1, of=self._planned))
        self._bars.update(
            self._trials,
            total=self._planned * self._each,
            description=f"{number} {short_name(plan)}",
            figures=self.say(message("progress-connecting")),
        )
        if self._drawn is None and self._tps:
            self._tps.append(None)
            self._p99.append(None)
        self._drawn = self._drawn or plan.number

    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Mapping[str, Any]) -> None:
        if self._trials is None or row.end_ns <= row.start_ns or is_between(row):
            return
        tps = row.committed / ((row.end_ns - row.start_ns) / 1e9)
        if plan.number == self._drawn and row.phase == "measure":
            self._tps.append(tps)
            self._p99.append(float(row.p99_ns) if row.p99_ns else None)
        bad = self._failed + row.failed + row.unknown
        failed = self.say(message("progress-failed", n=bad))
        p99 = f"p99 {row.p99_ns / 1e6:.3g} ms  " if row.p99_ns else ""
        passed = self._done * self._each + min(row.end_ns / 1e9, max(1, self._active) * self._each)
        self._bars.update(
            self._trials, completed=passed, figures=f"{tps:>9,.0f} TPS  {p99}{failed}", left=self._left(passed)
        )

    def trial_ended(self, record: TrialRecord) -> None:
        self._done += 1
        self._active = max(0, self._active - 1)
        self._drawn = None
        if record.summary is not None:
            self._failed += sum(record.summary.failed.values()) + record.summary.unknown
        if self._trials is not None:
            # The two of a duet end together.
            passed = (self._done + self._active) * self._each
            self._bars.update(self._trials, completed=passed, left=self._left(passed))

    def close(self) -> None:
        """End the display."""
        self._live.stop()

    def _left(self, passed: float) -> str:
        """Return the time that is left if it passes as it did until now, between trials too."""
        elapsed = (self._now_ns - self._start_ns) / 1e9
        return _clock(elapsed / passed * (self._planned * self._each - passed)) if passed else ""

    def _shown(self) -> RenderableType:
        lines: list[RenderableType] = [self._bars.get_renderable()]
        width = self._console.width - _BESIDE
        if self._trials is not None and width >= 10 and self._console.encoding.startswith("utf"):
            courses: list[tuple[str, deque[float | None], Unit]] = [
                ("TPS", self._tps, "whole"),
                ("p99", self._p99, "ms"),
            ]
            for name, values, unit in courses:
                # Another thread adds to it.
                shown = list(values)[-width:]
                if drawn := curve(shown, width):
                    highest = Quantity(max(v for v in shown if v is not None), unit)
                    lines.append(Line(f"{name} {drawn} {self.say(message('progress-highest', value=highest))}"))
        return Group(*lines)


def _clock(seconds: float) -> str:
    """Return a time as m:ss or h:mm:ss."""
    minutes, s = divmod(max(0, round(seconds)), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"
