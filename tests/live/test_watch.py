"""A run is watched from another process: until its end, and where it dies."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pgdyno.store import catalog

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.tells import tells
from tests.support.waiting import wait_until

RUN = ("run", "quick", "--embedded", "--workload", "read-only", "--clients", "2", "--hot-set", "1", "--scale", "1")


@contextlib.contextmanager
def started(runs: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A run in the background, which has begun its first trial."""
    process = subprocess.Popen(
        [PGDYNO, *RUN, *more, "--quiet", "--runs", runs],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    try:
        wait_until(
            lambda: any(runs.glob("*/trials/*/intervals.jsonl")) or process.poll() is not None,
            why=lambda: f"no trial has begun: {list(runs.rglob('*'))}",
        )
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_run_is_watched_until_its_end(tmp_path: Path) -> None:
    with started(tmp_path, "--duration", "2", "--warmup", "0.2", "--repetitions", "2", "--tag", "watched") as process:
        seen = pgdyno("watch", "--runs", tmp_path)
        assert process.wait(timeout=60) in (0, 1)
    assert seen.code == 0, seen.err
    # The past, also what had not begun when the watching did.
    assert tells(seen.err, "progress-trials") and "1/2 " in seen.err and "2/2 " in seen.err, seen.err
    (run,) = tmp_path.iterdir()
    assert tells(seen.out, "watch-report", run=str(run)) and "read-only" in seen.out.splitlines()[0]
    (listed,) = pgdyno("runs", tmp_path, "--tag", "watched", "--json").json
    assert listed["state"] == "finished" and listed["verdict"] == seen.out.splitlines()[0]
    again = pgdyno("watch", run)
    assert again.code == 0 and again.out == seen.out and "2/2 " in again.err
    none = pgdyno("watch", "--runs", tmp_path)
    assert none.code == 2 and tells(none.err, "error-watch-none")


def test_a_run_that_dies_is_told_at_once(tmp_path: Path) -> None:
    with started(tmp_path, "--duration", "60") as process:
        watcher = subprocess.Popen(
            [PGDYNO, "watch", "--runs", tmp_path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        assert watcher.stderr is not None
        assert str(tmp_path) in watcher.stderr.readline()
        process.kill()
        process.wait()
        out, err = watcher.communicate(timeout=30)
    assert watcher.returncode == 1 and tells(out, "watch-died"), out + err
    (entry,), _ = catalog.entries(tmp_path)
    assert entry.state == catalog.KILLED


@pytest.mark.slow
def test_several_runs_are_told_apart(tmp_path: Path) -> None:
    with started(tmp_path, "--duration", "60"), started(tmp_path, "--duration", "60"):
        wait_until(lambda: len(catalog.running(tmp_path)) == 2, why=lambda: str(list(tmp_path.iterdir())))
        done = pgdyno("watch", "--runs", tmp_path)
    assert done.code == 2 and tells(done.err, "error-watch-several")
