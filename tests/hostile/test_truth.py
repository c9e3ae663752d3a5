"""How a run ended is what it says of itself: with servers that go away, freeze, or are locked by somebody."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from pgdyno.message import message
from pgdyno.store import reading

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture
def own() -> Iterator[Server]:
    """A server that may be broken."""
    with Server() as s:
        s.sql("create role bench login")
        s.sql("create database bench owner bench")
        yield s


class Run:
    """A run in the background, on one trial of point selects."""

    def __init__(self, server: Server, runs: Path, *, warmup: float = 0.0, duration: float = 2.0) -> None:
        self.runs = runs
        target = f"host={server.socket} port={server.port} user=bench dbname=bench"
        file = runs.with_name(f"{runs.name}.toml")
        file.write_text(
            'name = "x"\ntitle = "X"\n[workloads.w]\nscripts = [{ builtin = "select-only" }]\n'
            "[dataset]\nscale = 1\n[axes]\nclients = [2]\n[run]\nrepetitions = 1\n"
            f"interval_s = 0.1\nwarmup_s = {warmup}\nduration_s = {duration}\n"
        )
        argv = [PGDYNO, "run", file, "--target", target, "--runs", runs]
        self.process = subprocess.Popen(
            [str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )

    def wait_for_interval(self) -> None:
        self._wait(lambda: any(f.stat().st_size for f in self.runs.glob("*/trials/0001-*/intervals.jsonl")))

    def _wait(self, true: Callable[[], object]) -> None:
        wait_until(true, process=self.process)

    def ended(self, timeout: float = 90) -> tuple[int, str, dict[str, Any], reading.RunData]:
        """Exit code, what was said, the manifest, the run."""
        _, err = self.process.communicate(timeout=timeout)
        assert "Traceback" not in err, err
        (path,) = self.runs.iterdir()
        return self.process.returncode, err, json.loads((path / "manifest.json").read_text()), reading.read(path)


@pytest.mark.parametrize("how", ["stop", "drop", "nologin"])
def test_a_trial_that_committed_nothing_has_failed(own: Server, tmp_path: Path, how: str) -> None:
    """The server goes away during the warm-up, for good."""
    run = Run(own, tmp_path, warmup=2.0, duration=3.0)
    run.wait_for_interval()
    if how == "stop":
        own.kill()
    elif how == "drop":
        own.sql("drop database bench with (force)")
    else:
        own.sql("alter role bench nologin")
        own.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'bench'")
    code, _, manifest, data = run.ended()
    (trial,) = data.trials
    assert trial.state == "failed" and trial.error == message("error-nothing-connections")
    assert {"TRIAL_FAILED", "OUTAGE"} <= {c.name for c in trial.caveats}
    assert code == manifest["exit_code"] == 1
    # The first thing that the report says.
    (path,) = tmp_path.iterdir()
    first = pgdyno("report", path).out.lstrip().splitlines()[0]
    assert tells(first, "heading-error") and "0001-w-hot100pct-c2-r1: no transaction" in first
    if how == "stop":
        own.start()


def test_a_table_that_is_locked_at_the_end_costs_a_gap_not_the_trial(own: Server, tmp_path: Path) -> None:
    own.sql("create table orders (id int)", dbname="bench")
    run = Run(own, tmp_path, duration=2.0)
    run.wait_for_interval()
    with psycopg.connect(own.conninfo(dbname="bench")) as conn:
        conn.execute("lock table orders in access exclusive mode")
        code, err, _, data = run.ended(timeout=60)
    (trial,) = data.trials
    assert code == 0 and trial.state == "finished" and trial.summary is not None
    assert tells(err, "progress-not-recorded") and "tables: " in err and "lock timeout" in err
    assert "wal_bytes" in trial.activity and "table_bytes" not in trial.activity
    assert "not_recorded" in next(tmp_path.glob("*/trials/*/events.jsonl")).read_text()


def freeze(server: Server, how: signal.Signals) -> None:
    assert server.process is not None
    for process in [*psutil.Process(server.process.pid).children(recursive=True), psutil.Process(server.process.pid)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            os.kill(process.pid, how)


@pytest.mark.slow
def test_a_frozen_server_does_not_hold_us(own: Server, tmp_path: Path) -> None:
    number = signal.SIGTERM
    run = Run(own, tmp_path, duration=60.0)
    run.wait_for_interval()
    time.sleep(1.5)
    freeze(own, signal.SIGSTOP)
    try:
        run.process.send_signal(number)
        began = time.monotonic()
        code, _, manifest, data = run.ended(timeout=60)
        # It gives up after its patience, not after the server's.
        assert time.monotonic() - began < 45
        assert code == manifest["exit_code"] == 128 + number
        (trial,) = data.trials
        assert trial.state == "interrupted" and trial.summary is not None and trial.summary.committed > 0
    finally:
        freeze(own, signal.SIGCONT)


@pytest.mark.slow
def test_a_server_that_freezes_at_the_end_costs_a_gap(own: Server, tmp_path: Path) -> None:
    run = Run(own, tmp_path, duration=3.0)
    run.wait_for_interval()
    threading.Timer(0.5, freeze, [own, signal.SIGSTOP]).start()
    try:
        code, err, manifest, data = run.ended(timeout=80)
    finally:
        freeze(own, signal.SIGCONT)
    (trial,) = data.trials
    assert trial.summary is not None and trial.summary.committed > 0 and "not recorded" in err
    assert code == manifest["exit_code"] != 0


def test_the_exit_code_is_that_of_the_record(own: Server, tmp_path: Path) -> None:
    """Also where the report cannot be written."""
    run = Run(own, tmp_path, duration=2.0)
    run.wait_for_interval()
    (path,) = tmp_path.iterdir()
    (path / "report.html").mkdir()
    code, err, manifest, _ = run.ended()
    assert code == manifest["exit_code"] == 5, err
    assert tells(manifest["error"], "error-no-report") and tells(err, "error-no-report")
    (path / "report.html").rmdir()
    assert pgdyno("report", path).code == 0
