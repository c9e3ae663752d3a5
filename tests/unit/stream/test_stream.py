"""The stream of a run: one order, recorders that may end it, viewers that cannot; and the journal, read back."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pgdyno import _core
from pgdyno._core import Histogram
from pgdyno.errors import LocalError
from pgdyno.message import Name, message
from pgdyno.model import Caveat, EventKind, TrialPlan, TrialRecord
from pgdyno.store import hlog, manifest, reading, replay
from pgdyno.store.journal import JOURNAL, RunRecorder
from pgdyno.store.rundir import RunDirectory
from pgdyno.stream.events import (
    Body,
    DatasetDone,
    DatasetProgress,
    EventsDropped,
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
from pgdyno.stream.stream import RunStream, TrialStream

from tests.support import synthetic
from tests.support.tells import tells
from tests.support.waiting import wait_until

S = 1_000_000_000


class Seen:
    """A recorder, or a viewer that holds up as long as it is told to."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.events: list[RunEvent] = []
        self.fails_at = fails_at
        self.go_on = threading.Event()
        self.go_on.set()
        self.is_closed = False

    def handle(self, event: RunEvent) -> None:
        self.go_on.wait()
        if self.fails_at is not None and len(self.events) == self.fails_at:
            raise OSError("gone")
        self.events.append(event)

    def close(self) -> None:
        self.is_closed = True


def test_events_have_one_order_whoever_emits_them() -> None:
    stream, recorder, viewer = RunStream(), Seen(), Seen()
    stream.record(recorder)
    stream.subscribe(viewer, capacity=10_000)

    def emit(name: str) -> None:
        for n in range(500):
            stream.emit(Noted(f"{name}{n}"))

    threads = [threading.Thread(target=emit, args=(name,)) for name in "abcd"]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    stream.close()
    assert [e.stamp.seq for e in recorder.events] == list(range(2000)) and viewer.events == recorder.events
    assert viewer.is_closed
    # After the end nothing is passed on, and nobody fails.
    assert stream.emit(Noted(Name("late"))) is None and stream.late == 1 and len(recorder.events) == 2000


def test_a_slow_viewer_loses_events_and_learns_how_many() -> None:
    stream, recorder, slow = RunStream(), Seen(), Seen()
    slow.go_on.clear()
    stream.record(recorder)
    subscription = stream.subscribe(slow, capacity=10)
    began = time.monotonic()
    for n in range(1000):
        stream.emit(Noted(Name(str(n))))
    assert time.monotonic() - began < 5 and len(recorder.events) == 1000
    slow.go_on.set()
    stream.close()
    dropped = [e.body.n for e in slow.events if isinstance(e.body, EventsDropped)]
    shown = [e for e in slow.events if not isinstance(e.body, EventsDropped)]
    assert len(shown) + sum(dropped) == 1000 and sum(dropped) == subscription.dropped > 900
    # The newest is always among what it sees.
    assert shown[-1].body == Noted(Name("999")) and len(shown) < 25


def test_a_viewer_that_fails_does_not_end_the_run() -> None:
    stream, broken, recorder = RunStream(), Seen(fails_at=3), Seen()
    stream.record(recorder)
    subscription = stream.subscribe(broken)
    for n in range(10):
        stream.emit(Noted(Name(str(n))))
    stream.close()
    assert len(broken.events) == 3 and isinstance(subscription.error, OSError) and len(recorder.events) == 10


def test_a_recorder_that_fails_ends_the_run() -> None:
    stream, full, viewer = RunStream(), Seen(fails_at=1), Seen()
    stream.record(full)
    stream.subscribe(viewer)
    stream.emit(Noted(Name("a")))
    with pytest.raises(OSError, match="gone"):
        stream.emit(Noted(Name("b")))
    stream.close()
    # What is not on disk was not shown either.
    assert [e.body for e in viewer.events] == [Noted(Name("a"))]


def test_a_trial_that_has_ended_says_nothing_more() -> None:
    stream, recorder = RunStream(), Seen()
    stream.record(recorder)
    trial = TrialStream(stream, 7)
    trial.emit(LoadStarted(5), origin="engine")
    trial.close()
    trial.emit(Noted(Name("late")))
    (event,) = recorder.events
    assert (event.stamp.trial, event.stamp.origin, trial.start_ns) == (7, "engine", 5)


def test_rust_and_python_have_the_same_kinds_of_events() -> None:
    assert _core.event_kinds() == [k.value for k in EventKind][: len(_core.event_kinds())]


def bodies(plan: TrialPlan, start: int) -> Iterator[tuple[Body, str]]:
    """Yield what a trial emits while its load goes on, in some order."""
    rng = random.Random(plan.number)
    yield LoadStarted(start), "engine"
    for n in range(5):
        h = Histogram()
        for _ in range(20):
            h.record(rng.randrange(1, 10**8))
        yield IntervalClosed(plan, synthetic.row(n, 1.0, 20.0, 1000), {hlog.TRANSACTION: h}), "engine"
        span = (start + n * S, start + (n + 1) * S)
        rows = [{"wait": f"w{i}", "processes": float(i)} for i in range(rng.randrange(1, 4))]
        yield SamplesTaken("waits", *span, rows), "source:waits"
        if rng.random() < 0.5:
            yield Happened(rng.choice(list(EventKind)), Name(f"words {n}"), n * S, rng.choice([None, 3])), "session"
    yield TotalsRead("buffers", [{"relation": "t", "buffers": 1.0}]), "session"


def recorded(folder: Path, stop_at: int = 10**9) -> tuple[Path, list[RunEvent]]:
    """A run of two trials as its session emits it, killed at an event; and the events until then."""
    run = RunDirectory.create(folder, "r", 'name = "r"\n')
    stream, recorder, seen = RunStream(), RunRecorder(), Seen()
    stream.record(recorder)
    stream.record(seen)
    left = [stop_at]

    def emit(body: Body, trial: int | None = None, origin: str = "session") -> None:
        if left[0] <= 0:
            raise KeyboardInterrupt
        left[0] -= 1
        stream.emit(body, trial=trial, origin=origin)

    plans = [TrialPlan(n, "w", 1.0, 4, n) for n in (1, 2)]
    try:
        emit(Noted(message("progress-target", where=Name("db"))))
        emit(DatasetProgress("generate", 5, 10))
        recorder.open(run.path)
        emit(DatasetDone())
        for plan in plans:
            writer = run.begin_trial(plan, {})
            recorder.add(writer)
            if plan.number == 1:
                emit(TrialsPlanned(plans, 5.0))
            emit(TrialStarted(plan, ["SELECT 1"]), plan.number)
            for body, origin in bodies(plan, 1_700_000_000 * S + plan.number):
                emit(body, plan.number, origin)
            summary = synthetic.summary_of(20.0, 5.0, 100)
            writer.finish("finished", summary, [Caveat.SHORT])
            emit(TrialFinished(TrialRecord(plan, "finished", "", None, summary, [Caveat.SHORT])), plan.number)
        emit(RunFinished(0))
    except KeyboardInterrupt:
        pass
    return run.path, seen.events


def same(a: RunEvent, b: RunEvent) -> bool:
    """An event and what the record has of it."""
    if a.stamp != b.stamp or type(a.body) is not type(b.body):
        return False
    match a.body, b.body:
        case IntervalClosed(row=x, histograms=h), IntervalClosed(row=y, histograms=k):
            return x == y and {t: v.buckets() for t, v in h.items()} == {t: v.buckets() for t, v in k.items()}
        case TrialFinished(record=x), TrialFinished(record=y):
            return (x.plan, x.state, x.summary, x.caveats) == (y.plan, y.state, y.summary, y.caveats)
        case TrialsPlanned(), TrialsPlanned():
            # Trials that were never begun have no folder.
            return True
    return a.body == b.body


def test_killed_at_every_event_the_record_is_a_beginning(tmp_path: Path) -> None:
    _, whole = recorded(tmp_path / "whole")
    assert len(whole) > 30
    for n in range(3, len(whole) + 1):
        path, emitted = recorded(tmp_path / str(n), n)
        found = list(replay.replay(path))
        assert len(found) == len(emitted) == n
        assert [(a, b) for a, b in zip(emitted, found, strict=True) if not same(a, b)] == []


def test_a_torn_line_is_no_event(tmp_path: Path) -> None:
    path, emitted = recorded(tmp_path)
    journal = path / JOURNAL
    text = journal.read_bytes()
    rng = random.Random(3)
    for cut in sorted(rng.sample(range(len(text)), 60)):
        journal.write_bytes(text[:cut])
        found = list(replay.replay(path))
        assert all(same(a, b) for a, b in zip(emitted, found, strict=False))
        assert len(found) == text[:cut].count(b"\n")


def test_a_run_is_followed_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One who joins late sees the whole past, and then what comes."""
    path, emitted = recorded(tmp_path, 12)
    journal, later = path / JOURNAL, recorded(tmp_path / "b")[0] / JOURNAL
    lines = later.read_text().splitlines(keepends=True)
    claimed = RunDirectory(path)
    claimed._claim()
    found: list[RunEvent] = []
    polled = [0]

    def poll(seconds: float) -> None:
        polled[0] += 1
        threading.Event().wait(0.001)

    monkeypatch.setattr(replay, "time", SimpleNamespace(sleep=poll))
    reader = threading.Thread(target=lambda: found.extend(replay.replay(path, follow=True)))
    reader.start()
    wait_until(lambda: polled[0] > 1, 10)
    with journal.open("a") as f:
        f.write(lines[-1][:20])
        f.flush()
        seen = polled[0]
        wait_until(lambda: polled[0] > seen + 2, 10)
        f.write(lines[-1][20:])
    # The lock may be held longer, by a process that has several runs.
    (path / manifest.FILE).write_text(json.dumps({"schema": 1, "ended_at": "2026-01-01T00:00:00.000Z"}))
    reader.join(10)
    claimed._claimed.close()
    assert not reader.is_alive() and len(found) == len(emitted) + 1 and found[-1].body == RunFinished(0)


def test_a_run_without_a_journal_is_read_from_its_files(tmp_path: Path) -> None:
    run = synthetic.make_run(
        tmp_path, synthetic.plans([2], 2), lambda *_: 100.0, intervals=3, events=[(1.5, "error", "deadlock")],
        sampled={"waits": [{"wait": "x", "processes": 1.0}]},
    )  # fmt: skip
    found = list(replay.replay(run))
    assert [e.stamp.seq for e in found] == list(range(len(found)))
    kinds = [type(e.body).__name__ for e in found if e.stamp.trial == 1]
    assert kinds[:3] == ["TrialStarted", "LoadStarted", "IntervalClosed"] and kinds[-1] == "TrialFinished"
    assert kinds.count("IntervalClosed") == kinds.count("SamplesTaken") == 3 and kinds.count("Happened") == 1
    # The same figures as the report has.
    data = reading.read(run)
    rows = [e.body.row for e in found if isinstance(e.body, IntervalClosed) and e.stamp.trial == 1]
    assert rows == data.series[1]


def test_a_disk_that_is_full_names_the_remedy(tmp_path: Path) -> None:
    stream, recorder = RunStream(), RunRecorder()
    stream.record(recorder)
    run = RunDirectory.create(tmp_path, "r", "")
    recorder.open(run.path)

    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    recorder._file = type("Full", (), {"write": staticmethod(full), "close": staticmethod(lambda: None)})()  # type: ignore[assignment]
    with pytest.raises(LocalError, match="No space left") as e:
        stream.emit(Noted(Name("x")))
    assert tells(str(e.value), "remedy-free-space")
