"""Servers that run, compared; runs under way, shown; settings refused before anything is made."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.waiting import wait_until


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--simultaneous"]])
def test_two_servers_that_run_are_compared(server: Server, database: str, tmp_path: Path, more: list[str]) -> None:
    file = tmp_path / "x.toml"
    file.write_text(
        'name = "x"\ntitle = "X"\ndataset = { scale = 1 }\n[workloads.w]\n'
        'scripts = [{ text = "SELECT pause();" }]\n[run]\nwarmup_s = 0.2\n'
    )
    other = f"{database}_b"
    server.sql(f"create database {other}")
    # So far apart that no noise of the machine is mistaken for it, nor hides it; sides that are swapped would show.
    # Not slower: slices with fewer than 12 transactions of a client are not compared, and a busy machine adds to 8 ms.
    for name, ms in ((database, 0.5), (other, 3)):
        server.sql(f"create function pause() returns void begin atomic; select pg_sleep({ms / 1000}); end", dbname=name)
    try:
        a, b = (server.conninfo(dbname=name) for name in (database, other))
        words = ["--experiment", file, "--duration", "6", "--clients", "2", "--runs", tmp_path / "runs", *more]
        done = pgdyno("compare", "--live", a, b, *words, "--json")
        assert done.code in (0, 1), done.err
        found = done.json
        assert found["manifest"]["run"]["order"] == ("simultaneous" if more else "duet")
        (tps,) = [c for c in found["comparisons"] if c["figure"] == "TPS"]
        assert tps["n_a"] >= 20 and tps["ratio"] < 0.5 and tps["verdict"] == "slower"
        assert pgdyno("compare", "--live", a).code == 2
    finally:
        server.sql(f"drop database {other} with (force)")


@pytest.mark.slow
def test_settings_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    for words in (["run", "quick", "--vary", "wal_compression=off,nonsense"], ["run", "quick", "--set", "no_such=1"]):
        done = pgdyno(*words, "--runs", tmp_path)
        assert done.code == 2 and tells(done.err, "error-settings-rejected") and "starting" not in done.err, done.err
    file = tmp_path / "x.toml"
    file.write_text(
        'name = "x"\ntitle = "X"\n[workloads.w]\nscripts = [{ text = "SELECT 1;" }]\n'
        '[axes]\nsettings = { wal_compression = ["off", "nonsense"] }\n'
    )
    planned = pgdyno("plan", file, "--json")
    assert planned.code == 5 and "wal_compression" in json.loads(planned.out)["problems"][0]


@pytest.mark.slow
def test_a_run_that_is_under_way_is_shown_as_such(tmp_path: Path) -> None:
    argv = [PGDYNO, "run", "quick", "--embedded", "--scale", "1", "--duration", "1", "--repetitions", "30", "--quiet",
            "--clients", "2", "--runs", tmp_path]  # fmt: skip
    process = subprocess.Popen(argv, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(list(tmp_path.glob("*/trials/*/intervals.parquet"))) >= 2, process=process)
        (run,) = tmp_path.iterdir()
        shown = pgdyno("report", run)
        assert shown.code == 0 and "cut off" not in shown.out and tells(shown.err, "report-later"), (
            shown.out + shown.err
        )
        assert not (run / "report.html").exists()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert (run / "report.html").exists() and "under way" not in pgdyno("report", run).err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sql", pytest.param("tpcb", marks=pytest.mark.slow)])
def test_a_new_experiment_runs_as_it_is(tmp_path: Path, kind: str) -> None:
    assert pgdyno("new", tmp_path / "mine", "--kind", kind).code == 0
    file = tmp_path / "mine.toml"
    again = pgdyno("new", file, "--kind", kind)
    assert again.code == 2 and tells(again.err, "error-there-already-nothing-was-written-2")
    words = ["--duration", "0.4", "--warmup", "0.1", "--repetitions", "1", "--clients", "2", "--runs", tmp_path]
    done = pgdyno("run", file, "--embedded", *words)
    assert done.code == 0, done.err
    for other in ("dump", "none"):
        assert pgdyno("new", tmp_path / other, "--kind", other).code == 0
    assert pgdyno("plan", tmp_path / "none.toml").code == 0


@pytest.mark.slow
def test_plan_lists_servers_in_the_files_order(tmp_path: Path) -> None:
    names = ["delta", "alpha", "charlie", "bravo"]
    text = 'name = "x"\ntitle = "X"\n[workloads.w]\nscripts = [{ text = "SELECT 1;" }]\n'
    (tmp_path / "x.toml").write_text(text + "".join(f"[targets.{n}]\n" for n in names))
    found = json.loads(pgdyno("plan", tmp_path / "x.toml", "--json").out)
    assert [p["target"] for p in found["places"]] == names


@pytest.mark.slow
def test_intervals_of_short_runs_can_be_read(tmp_path: Path) -> None:
    """Case 48: six short figures of two runs on a server that was loaded just before."""
    case = Path(__file__).parents[1] / "cases" / "48-unreadable-intervals"
    runs = tmp_path / "runs"
    for _ in range(2):
        done = pgdyno("run", case / "four.toml", "--embedded", "--runs", runs, "--quiet", timeout=300)
        assert done.code == 0, done.err
    done = pgdyno("compare", *sorted(runs.iterdir()))
    assert done.code in (0, 1), done.err
    assert "-100" not in done.out and not re.search(r"\de[+-]?\d", done.out), done.out


@pytest.mark.slow
def test_equal_runs_beside_a_neighbour_are_no_verdict(tmp_path: Path) -> None:
    """Case 47: how far two starts of a server lie apart is not known from one of each."""
    case = Path(__file__).parents[1] / "cases" / "47-equal-runs-noisy-neighbour"
    runs = tmp_path / "runs"
    busy = [sys.executable, "-c", "import time; end = time.monotonic() + 60\nwhile time.monotonic() < end: pass"]
    for beside in ([], [busy]):
        neighbours = [subprocess.Popen(words) for words in beside]
        try:
            done = pgdyno("run", case / "same.toml", "--embedded", "--runs", runs, "--quiet", timeout=300)
            assert done.code == 0, done.err
        finally:
            for n in neighbours:
                n.kill()
                n.wait()
    found = pgdyno("compare", *sorted(runs.iterdir()), "--json").json
    verdicts = {row["verdict"] for row in found["rows"]}
    assert verdicts and not verdicts & {"faster", "slower"}, verdicts
