"""Duets on real servers, from the command line to the verdict."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from pgdyno import i18n
from pgdyno.errors import ClusterError
from pgdyno.model import UNCOUNTED
from pgdyno.run.planning.options import Options
from pgdyno.run.planning.plan import plan_run
from pgdyno.run.planning.prepared import prepare
from pgdyno.run.session import run_experiment
from pgdyno.run.trials.steps import TrialSteps
from pgdyno.store import reading
from pgdyno.stream.stream import RunStream

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.waiting import wait_until

pytestmark = pytest.mark.alone

EXPERIMENT = """
name = "duet"
title = "A delay beside a longer one"
[workloads.w]
scripts = [{ text = "SELECT 1;\\n\\\\sleep :n us\\n" }]
[dataset]
scale = 1
[axes]
clients = [4]
variables = { n = [1000, 8000] }
[run]
duration_s = 5
slice_s = 0.25
warmup_s = 0.2
repetitions = 1
"""


def measured(run: Path) -> dict[int, list[Any]]:
    data = reading.read(run)
    return {t.plan.number: [r for r in data.series[t.plan.number] if r.phase == "measure"] for t in data.trials}


@pytest.mark.slow
def test_a_known_delay_is_found(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(EXPERIMENT)
    done = pgdyno("run", file, "--embedded", "--runs", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["manifest"]["run"]["order"] == "duet" and found["manifest"]["run"]["slice_s"] == 0.25
    (tps,) = [c for c in found["comparisons"] if c["figure"] == "TPS"]
    assert tps["verdict"] == "slower" and tps["ratio"] < 0.5 and tps["n_a"] == 20
    assert "n = 1000 is" in found["answer"][0] and "times as fast as n = 8000" in found["answer"][0]
    run = Path(found["path"])
    rows = measured(run)
    assert [len(r) for r in rows.values()] == [20, 20]
    # One at a time: no slice of one lies in a slice of the other.
    slices = sorted((r.start_ns, r.end_ns) for of in rows.values() for r in of)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(slices))
    data = reading.read(run)
    for t in data.trials:
        assert t.summary is not None and t.state == "finished"
        every = data.series[t.plan.number]
        ends = [r.committed + r.failed + r.skipped + r.unknown + r.unfinished for r in every]
        assert sum(r.scheduled for r in every) == sum(ends), "each side's outcomes balance"
        assert t.summary.committed == sum(r.committed for r in every if r.phase not in UNCOUNTED)
        assert t.summary.elapsed_s == pytest.approx(5.0, rel=0.01)
        assert t.summary.tps == pytest.approx(sum(r.committed for r in every if r.phase == "measure") / 5, rel=0.01)
        assert t.summary.latency.count == t.summary.committed and len(t.summary.statements) == 1


@pytest.mark.slow
def test_each_setting_has_a_server(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(EXPERIMENT.replace("variables = { n = [1000, 8000] }\n", "").replace("\\n\\\\sleep :n us", ""))
    words = ["--vary", "log_disconnections=on,off", "--set", "work_mem=8MB", "--restarts", "2"]
    done = pgdyno("run", file, "--embedded", *words, "--runs", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["manifest"]["run"]["order"] == "duet"
    assert [t["start"] for t in found["trials"]] == [1] * 2 + [2] * 2
    places = found["manifest"]["places"]
    assert [p["server"]["settings"]["work_mem"]["value"] for p in places.values()] == ["8MB", "8MB"]
    assert {p["server"]["settings"]["log_disconnections"]["value"] for p in places.values()} == {"on", "off"}
    rows = [c for c in found["comparisons"] if c["figure"] == "TPS"]
    assert len(rows) == 1 and all(c["low"] < 1.3 and c["high"] > 0.75 for c in rows)
    # On the page, too.
    text = pgdyno("report", found["path"]).out
    assert not tells(text, "note-duet-blind") and text.index("log_disconnections") < 200
    assert tells((Path(found["path"]) / "report.md").read_text(), "note-duet-blind")


@pytest.mark.slow
def test_an_interrupted_duet_is_kept_and_continued(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(EXPERIMENT.replace("duration_s = 5", "duration_s = 6"))
    words = [PGDYNO, "run", file, "--embedded", "--runs", tmp_path / "runs", "-q"]
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    second = "runs/*/trials/0002*/intervals.jsonl"
    wait_until(lambda: any(f.read_text().count('"measure"') > 2 for f in tmp_path.glob(second)), process=process)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    (run,) = tmp_path.glob("runs/*")
    data = reading.read(run)
    assert [t.state for t in data.trials] == ["interrupted"] * 2
    assert all(t.summary is not None and t.summary.committed for t in data.trials)
    done = pgdyno("run", run, "--json")
    assert done.code == 0, done.err
    assert [t["state"] for t in done.json["trials"]] == ["finished"] * 2


def test_a_side_that_cannot_be_prepared_leaves_nothing_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other side's trial is closed, too, and nothing is collected for it any more."""
    before, prepared = TrialSteps.before_load, list[TrialSteps]()

    def fails_the_second_time(steps: TrialSteps) -> None:
        prepared.append(steps)
        before(steps)
        if len(prepared) == 2:
            raise ClusterError("side B cannot be prepared")

    monkeypatch.setattr(TrialSteps, "before_load", fails_the_second_time)
    file = tmp_path / "x.toml"
    file.write_text(EXPERIMENT)
    options = Options(embedded=True)
    plan = plan_run(prepare(str(file), lambda e: (e, []), tmp_path / "runs"), options)
    outcome = run_experiment(plan, RunStream())
    assert "side B" in i18n.text(outcome.error) and outcome.exit_code == ClusterError.exit_code
    (run,) = (tmp_path / "runs").iterdir()
    states = [json.loads(f.read_text())["state"] for f in sorted(run.glob("trials/*/trial.json"))]
    assert states == ["failed", "failed"]
    assert not [t.name for t in threading.enumerate() if t.name.startswith("pgdyno-")]


@pytest.mark.slow
def test_a_server_that_dies_in_a_duet_is_said(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(
        EXPERIMENT.replace("variables = { n = [1000, 8000] }", 'settings = { work_mem = ["4MB", "8MB"] }')
        .replace(":n us", "1000 us").replace("duration_s = 5", "duration_s = 20")
    )  # fmt: skip
    words = [PGDYNO, "run", file, "--embedded", "--runs", tmp_path / "runs"]
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    second = "runs/*/trials/0002*/intervals.jsonl"
    wait_until(lambda: any(f.read_text().count('"measure"') > 2 for f in tmp_path.glob(second)), process=process)
    postmasters = [p for p in psutil.Process(process.pid).children(recursive=True) if "postgres" in p.name()]
    mains = [p for p in postmasters if p.parent() is None or "postgres" not in (p.parent() or p).name()]
    os.kill(mains[-1].pid, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode not in (0, 70), err
    assert tells(err, "error-server-has-died") or "lost" in err
    (run,) = tmp_path.glob("runs/*")
    assert all(t.summary is not None for t in reading.read(run).trials), "what was measured is there"
    assert json.loads((run / "manifest.json").read_text())["error"]


@pytest.mark.slow
def test_two_databases_of_a_running_server(server: Server, tmp_path: Path) -> None:
    for name, ms in (("one", 1), ("two", 8)):
        server.sql(f"create database {name}")
        server.sql(f"create function pause() returns void begin atomic; select pg_sleep({ms / 1000}); end", dbname=name)
    where = f"host={server.socket} port={server.port} user=postgres"
    file = tmp_path / "x.toml"
    targets = "".join(f'[targets.{n}]\nconninfo = "{where} dbname={n}"\n' for n in ("one", "two"))
    text = EXPERIMENT.replace("variables = { n = [1000, 8000] }", "")
    text = text.replace("SELECT 1;\\n\\\\sleep :n us\\n", "SELECT pause();")
    file.write_text(text.replace("[workloads.w]", f"{targets}[workloads.w]").replace("[run]", '[run]\norder = "duet"'))
    done = pgdyno("run", file, "--runs", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    (tps,) = [c for c in done.json["comparisons"] if c["figure"] == "TPS"]
    assert tps["axis"] == "target" and tps["n_a"] == 20 and tps["ratio"] < 0.5
