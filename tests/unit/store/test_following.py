"""A run under way is followed: what was written is read once, also of a run that was continued."""

from __future__ import annotations

import fcntl
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from pgdyno.store import trials
from pgdyno.store.journal import JOURNAL, RunRecorder
from pgdyno.store.replay import replay
from pgdyno.stream.events import IntervalClosed, RunEvent, RunFinished, SamplesTaken

from tests.support import synthetic
from tests.support.waiting import wait_until


def line(seq: int, type_: str, **facts: Any) -> str:
    return json.dumps({"schema": 1, "type": type_, "seq": seq, "at_ns": seq, "origin": "session", **facts}) + "\n"


def follow(folder: Path, seen: list[RunEvent]) -> None:
    for event in replay(folder, follow=True):
        seen.append(event)


ENDED = {"exit_code": 130, "error": ""}


def test_a_run_that_was_continued_is_followed_to_its_last_end(tmp_path: Path) -> None:
    journal, seen = tmp_path / JOURNAL, list[RunEvent]()
    journal.write_text(line(1, "run-finished", **ENDED))
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reader = threading.Thread(target=follow, args=(tmp_path, seen))
        reader.start()
        wait_until(lambda: bool(seen), 10)
        with journal.open("a") as f:
            f.write(line(2, "noted", text="on it goes") + line(3, "run-finished", **ENDED))
    reader.join(30)
    assert [type(e.body).__name__ for e in seen] == ["RunFinished", "Noted", "RunFinished"]


def test_a_run_without_a_journal_yet_is_waited_for(tmp_path: Path) -> None:
    seen = list[RunEvent]()
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reader = threading.Thread(target=follow, args=(tmp_path, seen))
        reader.start()
        (tmp_path / JOURNAL).write_text(line(1, "run-finished", **ENDED))
    reader.join(30)
    assert [type(e.body) for e in seen] == [RunFinished]


def test_a_line_that_a_kill_has_cut_does_not_hide_what_follows(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text(line(1, "noted", text="whole") + '{"schema": 1, "type": "no')
    record = RunRecorder()
    record.open(tmp_path)
    record.close()
    with (tmp_path / JOURNAL).open("a") as f:
        f.write(line(2, "run-finished", **ENDED))
    assert [type(e.body).__name__ for e in replay(tmp_path)] == ["Noted", "RunFinished"]


def test_who_looks_on_reads_each_interval_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are read from where the last reading ended, and neither samples nor histograms."""
    run = synthetic.make_run(tmp_path, synthetic.plans([4], 1), lambda *_: 100.0, intervals=3)
    (folder,) = (run / "trials").iterdir()
    rows = trials.read_intervals(folder)
    (folder / "intervals.parquet").unlink()
    (folder / "intervals.jsonl").write_text("".join(json.dumps(vars(r) | {}) + "\n" for r in rows))
    begin = line(1, "trial-started", trial=1, folder=folder.name, statements=[])
    closed = [
        line(n, "interval-closed", trial=1, index=r.index, start_ns=r.start_ns, end_ns=r.end_ns)
        for n, r in enumerate(rows, 2)
    ]
    taken = line(9, "samples-taken", trial=1, source="waits", start_ns=0, end_ns=1, rows=1)
    (run / JOURNAL).write_text("".join([begin, *closed, taken]))
    monkeypatch.setattr(trials, "read_intervals", lambda *_: pytest.fail("the whole file was read"))
    found = [e.body for e in replay(run, brief=True)]
    assert [b.row for b in found if isinstance(b, IntervalClosed)] == rows
    assert not any(isinstance(b, SamplesTaken) for b in found)
    assert all(not b.histograms for b in found if isinstance(b, IntervalClosed))
