"""Progress on a terminal: which trial, how long still, and the course of throughput and p99."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from pgdyno import i18n
from pgdyno.cli.live_progress import LiveProgress, curve
from pgdyno.model import TrialPlan, TrialRecord
from pgdyno.stream.events import (
    Body,
    DatasetDone,
    DatasetProgress,
    IntervalClosed,
    RunEvent,
    Stamp,
    TrialFinished,
    TrialsPlanned,
    TrialStarted,
)
from rich.console import Console

from tests.support import synthetic

PLANS = [TrialPlan(n, "read-write", 0.1, 32, n) for n in range(1, 9)]


class Terminal:
    """A terminal of a width, and what it shows at a time."""

    def __init__(self, width: int = 80, lang: str = "en", encoding: str = "utf-8") -> None:
        file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
        self.console = Console(force_terminal=True, width=width, file=file, color_system=None)
        self.shown = LiveProgress(self.console)
        self.shown.say = i18n.writer(lang)
        self.second = 1_000_000

    def emit(self, body: Body, seconds: int = 0) -> None:
        self.second += seconds
        self.shown.handle(RunEvent(Stamp(0, self.second * 10**9, 1, "session"), body))

    def lines(self) -> list[str]:
        plain = Console(width=self.console.width, file=io.StringIO(), color_system=None)
        with plain.capture() as found:
            plain.print(self.shown._shown())
        return found.get().splitlines()


def run_until(t: Terminal, trials: int, second: int) -> None:
    """Trials of 10 s, with 5 s before each; the last one until a second of it."""
    t.emit(TrialsPlanned(PLANS, 10))
    for n, plan in enumerate(PLANS[:trials], 1):
        t.emit(TrialStarted(plan, []), 5)
        for s in range(10 if n < trials else second):
            t.emit(IntervalClosed(plan, synthetic.row(s, 1.0, 1000.0 + 100 * s, 2_000_000), {}), 1)
        if n < trials:
            t.emit(TrialFinished(TrialRecord(plan, "finished", "")))


def test_a_trial_has_its_number_the_time_left_and_its_course() -> None:
    t = Terminal()
    run_until(t, 3, 5)
    bar, tps, p99 = t.lines()
    # 40 s for 25 of 80 s of load: 88 s for the other 55.
    assert bar.startswith("trial 3 of 8: ") and bar.rstrip().endswith("1:28") and "1,400 TPS" in bar
    assert tps.startswith("TPS ") and tps.endswith("max 1,900") and tps.count(" ") >= 4
    assert p99.startswith("p99 ") and "█" in p99 and "ms" in p99
    assert all(len(line) <= 80 for line in (bar, tps, p99))
    t.shown.close()


def test_the_time_left_is_the_same_for_who_joins_late() -> None:
    """All events at once: their stamps count, not the clock."""
    now, late = Terminal(), Terminal()
    run_until(now, 2, 9)
    run_until(late, 2, 9)
    assert now.lines() == late.lines()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [30, 80, 200])
def test_no_line_is_wider_than_the_terminal(lang: str, width: int) -> None:
    t = Terminal(width, lang)
    run_until(t, 8, 9)
    assert len(t.lines()) <= 3 + (width == 30) * 8


def test_a_terminal_without_blocks_has_no_course() -> None:
    t = Terminal(encoding="ascii")
    run_until(t, 2, 9)
    assert len(t.lines()) == 1


def test_the_two_trials_of_a_duet_give_one_course() -> None:
    t = Terminal()
    t.emit(TrialsPlanned(PLANS[:2], 10))
    for plan in PLANS[:2]:
        t.emit(TrialStarted(plan, []))
    for s in range(5):
        for plan, tps in zip(PLANS[:2], (1000.0, 100.0), strict=True):
            t.emit(IntervalClosed(plan, synthetic.row(s, 1.0, tps, 2_000_000), {}), 1)
    bar, tps, _ = t.lines()
    # 10 s have passed of the 20 that both take together.
    assert "█████" in tps and "0:" in bar
    for s in range(5, 10):
        t.emit(IntervalClosed(PLANS[0], replace(synthetic.row(s, 1.0, 5.0, 1), phase="transition"), {}), 1)
    assert t.lines()[1] == tps and "5 TPS" not in t.lines()[0]


def test_a_run_that_was_continued_begins_anew() -> None:
    t = Terminal()
    run_until(t, 3, 5)
    run_until(t, 2, 5)
    lines = t.lines()
    assert len(lines) == 3 and lines[0].startswith("trial 2 of 8: ")


def test_a_warm_up_is_shown_and_not_drawn() -> None:
    t = Terminal()
    t.emit(TrialsPlanned(PLANS, 10))
    t.emit(TrialStarted(PLANS[0], []))
    t.emit(IntervalClosed(PLANS[0], replace(synthetic.row(0, 1.0, 700.0, 1), phase="warmup"), {}), 1)
    (bar,) = t.lines()
    assert "700 TPS" in bar
    for phase in ("drain", "transition"):
        t.emit(IntervalClosed(PLANS[0], replace(synthetic.row(1, 1.0, 5.0, 1), phase=phase), {}), 1)
    assert t.lines() == [bar]


def test_names_are_no_markup() -> None:
    t = Terminal(200)
    plan = TrialPlan(1, "w", 1.0, 4, 1, {"x": "[/a]"})
    t.emit(TrialsPlanned([plan], 10))
    t.emit(TrialStarted(plan, []))
    assert "[/a]" in t.lines()[0]


def test_a_load_says_how_long_it_takes_still() -> None:
    t = Terminal()
    t.emit(DatasetProgress("generate", 0, 0, 0, 100_000_000))
    t.emit(DatasetProgress("generate", 0, 0, 25_000_000, 100_000_000), 10)
    (bar,) = t.lines()
    assert bar.rstrip().endswith("0:30")
    t.emit(DatasetDone())
    assert t.lines() == []


@pytest.mark.parametrize(
    ("values", "width", "drawn"),
    [
        ([], 10, ""),
        ([0, 0], 10, ""),
        ([1, 2, 4], 10, "▃▅█"),
        ([1, None, 4], 10, "▃ █"),
        ([100, 1, 2], 2, "▅█"),
        ([None], 5, ""),
    ],
)
def test_a_curve(values: list[Any], width: int, drawn: str) -> None:
    assert curve(values, width) == drawn
