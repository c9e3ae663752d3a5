"""Signals raise, wait while they are held, and stay ignored where they were."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pgdyno.interrupt import Terminated, raise_if_signalled, signals_held, signals_raise
from pgdyno.message import Name, listed, message
from pgdyno.run.recorder import Outcome, Recorder
from pgdyno.store import manifest
from pgdyno.store.journal import RunRecorder
from pgdyno.store.rundir import RunDirectory

from tests.support import synthetic

ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def nothing_is_ignored() -> Iterator[None]:
    """As a shell starts a program; under nohup the tests themselves would ignore SIGHUP, and what was ignored stays
    so.
    """
    before = {n: signal.signal(n, signal.default_int_handler if n == signal.SIGINT else signal.SIG_DFL) for n in ALL}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0.01)


def test_signals_raise_each_their_own() -> None:
    with signals_raise():
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        with pytest.raises(Terminated):
            send(signal.SIGTERM)
        with pytest.raises(Terminated):
            send(signal.SIGHUP)


def test_held_signals_wait_even_with_other_threads() -> None:
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(3)]
    for t in threads:
        t.start()
    done = []
    try:
        with signals_raise(), pytest.raises(Terminated), signals_held():
            with signals_held():
                send(signal.SIGTERM)
                done.append("inner")
            done.append("outer")
    finally:
        stop.set()
    assert done == ["inner", "outer"]


def test_a_signal_is_not_lost_with_a_failure_that_is_caught() -> None:
    with signals_raise():
        with pytest.raises(Terminated) as raised, contextlib.suppress(ValueError), signals_held():
            send(signal.SIGTERM)
            raise ValueError("the statement failed")
        # It is raised once.
        time.sleep(0.01)
        with signals_held():
            pass
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_signal_that_somebody_swallowed_is_raised_again_between_two_steps() -> None:
    with signals_raise():
        raise_if_signalled()
        with contextlib.suppress(BaseException):
            send(signal.SIGTERM)
        with pytest.raises(Terminated):
            raise_if_signalled()
    raise_if_signalled()


class _Deaf:
    """Its end is a callback whose exceptions Python drops."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass


def test_a_signal_that_python_drops_comes_again(capsys: pytest.CaptureFixture[str]) -> None:
    """In a destructor; so are callbacks around forks, and Ctrl-C was without effect now and then."""
    with signals_raise(), pytest.raises(KeyboardInterrupt):
        _Deaf()
        time.sleep(10)
    assert "Exception ignored" not in capsys.readouterr().err
    # And at the end of all work.
    with pytest.raises(KeyboardInterrupt), signals_raise():
        _Deaf()


def test_a_signal_that_meets_the_lock_of_a_fork_leaves_it_free() -> None:
    """Python's own callbacks around a fork hold the lock of its logging: one that is left held stops every thread."""

    def _releaseLock() -> None:  # noqa: N802
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass
        done.append(True)

    done: list[bool] = []
    with signals_raise(), pytest.raises(Terminated):
        _releaseLock()
        assert done
        time.sleep(10)


def test_what_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_raise():
            send(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_report_that_is_interrupted_is_named_with_what_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path, synthetic.plans([2], 1), lambda *_: 100.0)
    made = Recorder.__new__(Recorder)
    monkeypatch.setattr(made, "_directory", RunDirectory(run), raising=False)
    monkeypatch.setattr(made, "_record", RunRecorder(), raising=False)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pgdyno.report.view.build", interrupted)
    found = made.finish(Outcome(0))
    assert found.exit_code == 130 and found.reports == []
    assert found.error == listed([message("error-report-interrupted", path=Name(str(run)))], "line")
    assert manifest.read(run).error_text == found.error
