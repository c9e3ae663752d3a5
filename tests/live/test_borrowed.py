"""Experiments on a cluster that stays: started for the run, given back as it was but for what was loaded."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pgdyno.store import reading

from tests.live.test_experiments import HEAD, RUN, by, run
from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.tells import tells
from tests.support.waiting import wait_until


@pytest.fixture
def base() -> Iterator[Path]:
    """Where a cluster is to be made, in a folder that the server's account can reach."""
    path = Path(tempfile.mkdtemp(prefix="pgdyno-test-"))
    path.chmod(0o755)
    yield path / "mine"
    if (path / "mine").exists():
        pgdyno("cluster", "stop", path / "mine")
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.slow
def test_a_cluster_that_stays_is_borrowed_and_given_back(tmp_path: Path, base: Path) -> None:
    assert pgdyno("cluster", "create", base, "--set", "work_mem=7MB", "--set", "shared_buffers=64MB").code == 0
    before = (base / "data" / "postgresql.auto.conf").read_text()
    text = HEAD + f'[targets.mine]\ncluster = "{base}"\n[dataset]\nscale = 2\n[targets.mine.settings]\n'
    text += 'log_line_prefix = "it\'s \\\\ one"\n'
    text += "[axes]\nclients = [2]\nsettings = { jit = [true, false] }\n" + RUN + "between = { restart = true }\n"
    planned = pgdyno("plan", _file(tmp_path, text))
    assert planned.code == 0 and "mine (cluster)" in planned.out
    data = run(tmp_path, text)
    assert set(by(data, "jit")) == {True, False} and all(t.state == "finished" for t in data.trials)
    (place,) = data.manifest.as_json()["places"].values()
    shown = place["server"]["settings"]
    # Its own settings stay, ours come on top, for the run only.
    assert (shown["work_mem"]["value"], shown["shared_buffers"]["value"]) == ("7MB", "64MB")
    assert "it's \\ one" in (Path(data.path) / "server.log").read_text()
    assert (base / "data" / "postgresql.auto.conf").read_text() == before
    assert place["dataset"]["method"] == "direct"
    assert not (base / "data" / "postmaster.pid").exists(), "it is stopped again"
    # A second run finds what the first has loaded, also where it leaves the size to us.
    shutil.rmtree(tmp_path / "runs")
    data = run(tmp_path, text.replace("scale = 2", 'scale = "auto"'))
    (place,) = data.manifest.as_json()["places"].values()
    assert place["dataset"]["loaded"] is False and place["dataset"]["name"] == "tpcb scale=2"


@pytest.mark.slow
def test_two_datasets_share_a_borrowed_cluster(tmp_path: Path, base: Path) -> None:
    assert pgdyno("cluster", "create", base).code == 0
    text = HEAD + f'[targets.mine]\ncluster = "{base}"\n[datasets.small]\nscale = 1\n[datasets.large]\nscale = 2\n'
    data = run(tmp_path, text + "[axes]\nclients = [2]\n" + RUN.replace("repetitions = 1", "repetitions = 2"))
    found = [(t.plan.varied["dataset"], t.state) for t in data.trials]
    assert found == [("small", "finished")] * 2 + [("large", "finished")] * 2
    rows = {p["dataset"]["name"]: p["rows"] for p in data.manifest.as_json()["places"].values()}
    assert rows == {"tpcb scale=1": 100_000, "tpcb scale=2": 200_000}


@pytest.mark.slow
def test_what_lies_in_a_borrowed_cluster_is_safe(tmp_path: Path, base: Path) -> None:
    assert pgdyno("cluster", "create", base).code == 0
    started = pgdyno("cluster", "start", base)
    assert started.code == 0 and f'started; --target "host={base}/socket port=' in started.out
    text = HEAD + f'[targets.mine]\ncluster = "{base}"\n[dataset]\nscale = 1\n[axes]\nclients = [2]\n' + RUN
    conninfo = f"host={base}/socket port=5432 user=postgres dbname=postgres"
    try:
        with psycopg.connect(conninfo, autocommit=True) as conn:
            conn.execute("create table pgbench_accounts (precious int)")
            conn.execute("insert into pgbench_accounts values (1)")
            # It runs: somebody may be at work.
            done = pgdyno("run", _file(tmp_path, text), "--runs", tmp_path / "runs", "-q")
            assert (
                done.code == 3 and tells(done.err, "error-server-runs-somebody-may-be") and "cluster stop" in done.err
            )
            assert conn.execute("select 1").fetchone() == (1,)
    finally:
        assert pgdyno("cluster", "stop", base).code == 0
    done = pgdyno("run", _file(tmp_path, text), "--runs", tmp_path / "runs", "-q")
    assert done.code == 3 and "pgbench_accounts" in done.err
    assert pgdyno("cluster", "start", base).code == 0
    try:
        with psycopg.connect(conninfo) as conn:
            assert conn.execute("select precious from pgbench_accounts").fetchone() == (1,)
    finally:
        assert pgdyno("cluster", "stop", base).code == 0


@pytest.mark.slow
def test_an_archiving_cluster_is_loaded_over_connections(tmp_path: Path, base: Path) -> None:
    words = ["--set", "archive_mode=on", "--set", "archive_command=/bin/true"]
    assert pgdyno("cluster", "create", base, *words).code == 0
    text = HEAD + f'[targets.mine]\ncluster = "{base}"\n[dataset]\nscale = 1\n[axes]\nclients = [2]\n' + RUN
    (place,) = run(tmp_path, text).manifest.as_json()["places"].values()
    assert place["dataset"]["method"] == "copy"


@pytest.mark.slow
def test_sizes_that_were_left_open_are_equal_in_all_targets(tmp_path: Path, base: Path) -> None:
    """Whichever target comes first: what is there already is taken, or the run refuses to choose."""
    assert pgdyno("cluster", "create", base).code == 0
    assert pgdyno("load", "tpcb", "--scale=3", "--data", base).code == 0
    text = HEAD + f'[targets.private]\n[targets.mine]\ncluster = "{base}"\n[axes]\nclients = [2]\n' + RUN
    text += 'order = "written"\n'
    assert tells(pgdyno("plan", _file(tmp_path, text)).out, "plan-size-open")
    data = run(tmp_path, text)
    assert {p["dataset"]["name"] for p in data.manifest.as_json()["places"].values()} == {"tpcb scale=3"}
    other = base.with_name("other")
    assert pgdyno("cluster", "create", other).code == 0
    assert pgdyno("load", "tpcb", "--scale=2", "--data", other).code == 0
    text += f'[targets.other]\ncluster = "{other}"\n'
    done = pgdyno("run", _file(tmp_path, text), "--runs", tmp_path / "runs", "-q")
    assert done.code == 3 and "targets.mine has 3, targets.other has 2" in done.err and "dataset.scale" in done.err


@pytest.mark.slow
def test_what_the_run_itself_loads_says_nothing_of_sizes(tmp_path: Path, base: Path) -> None:
    assert pgdyno("cluster", "create", base).code == 0
    text = (
        HEAD
        + f'[targets.mine]\ncluster = "{base}"\n[datasets.small]\nscale = 1\n[datasets.large]\n[axes]\nclients = [2]\n'
    )
    places = run(tmp_path, text + RUN).manifest.as_json()["places"]
    large = next(p for label, p in places.items() if "large" in label)
    assert large["rows"] > 100_000
    # A feed begins empty where nothing is said of its rows, whatever lies there.
    assert pgdyno("load", "feed", "--rows=5000", "--data", base).code == 0
    shutil.rmtree(tmp_path / "runs")
    text = HEAD.replace('builtin = "select-only"', 'text = "select 1"') + f'[targets.mine]\ncluster = "{base}"\n'
    data = run(tmp_path, text + '[dataset]\nkind = "feed"\n[axes]\nclients = [2]\n' + RUN, "--replace")
    (place,) = data.manifest.places.values()
    assert place.dataset.name.startswith("feed rows=0")


@pytest.mark.slow
def test_nobody_gets_in_while_another_server_is_measured(tmp_path: Path, base: Path) -> None:
    assert pgdyno("cluster", "create", base).code == 0
    text = (
        HEAD + f'[targets.mine]\ncluster = "{base}"\n[targets.private]\n[dataset]\nscale = 1\n[axes]\nclients = [1]\n'
    )
    text += RUN.replace("duration_s = 0.5", "duration_s = 15") + 'order = "written"\n'
    argv = [str(PGDYNO), "run", str(_file(tmp_path, text)), "-q", "--runs", str(tmp_path / "runs")]
    process = subprocess.Popen(argv, env=environment(), stderr=subprocess.PIPE)
    try:
        wait_until(lambda: list((tmp_path / "runs").glob("*/trials/0002-*/trial.json")), process=process)
        for words in (("load", "tpcb", "--data", base), ("cluster", "start", base), ("cluster", "snapshot", base)):
            done = pgdyno(*words)
            assert done.code == 3 and "Traceback" not in done.err, done
        # They were turned away while the other one was measured, however long that took them.
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert not (base / "data" / "postmaster.pid").exists()


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.4, 0.5, 0.6, 0.7, 0.8, 1.0])
def test_stopped_at_any_moment_no_server_is_left(tmp_path: Path, base: Path, moment: float) -> None:
    assert pgdyno("cluster", "create", base).code == 0
    text = HEAD + f'[targets.mine]\ncluster = "{base}"\n[dataset]\nscale = 1\n[axes]\nclients = [1]\n' + RUN
    argv = [str(PGDYNO), "run", str(_file(tmp_path, text)), "-q", "--runs", str(tmp_path / "runs")]
    process = subprocess.Popen(argv, env=environment(), stderr=subprocess.DEVNULL)
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    process.wait()
    assert not (base / "data" / "postmaster.pid").exists()


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_cluster_only(tmp_path: Path, base: Path) -> None:
    assert pgdyno("cluster", "create", base).code == 0
    folder = base.parent
    text = HEAD + '[targets.mine]\ncluster = "mine"\n[dataset]\nscale = 1\n[axes]\nclients = [1]\n'
    file = _file(tmp_path, text + RUN.replace("repetitions = 1", "repetitions = 3"))
    argv = [str(PGDYNO), "run", str(file), "-q", "--runs", str(tmp_path / "runs")]
    process = subprocess.Popen(argv, env=environment(), cwd=folder, stderr=subprocess.DEVNULL)
    wait_until(lambda: list((tmp_path / "runs").glob("*/trials/0002-*/intervals.jsonl")), process=process)
    process.kill()
    process.wait()
    (path,) = (tmp_path / "runs").iterdir()
    # From anywhere, by the folder that was meant.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [PGDYNO, "run", path], env=environment(), cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 6), done.stderr
    # Another cluster in its place is another.
    last = reading.read(path).trials[-1]
    record = path / "trials" / last.plan.folder / "trial.json"
    record.write_text(record.read_text().replace('"finished"', '"running"'))
    wait_until(lambda: not (base / "data" / "postmaster.pid").exists())
    base.rename(folder / "moved")
    assert pgdyno("cluster", "create", base).code == 0
    before = (path / "manifest.json").read_text()
    again = pgdyno("run", path)
    assert again.code == 3 and "system identifier" in again.err
    # What the run says of itself stays.
    assert (path / "manifest.json").read_text() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('version = "17"\n', "give either cluster or version"),
        ('conninfo = "host=x"\n', "give either cluster or conninfo"),
        ('tablespaces = { t = "/tmp" }\n', "give either cluster or tablespaces"),
    ],
)
def test_what_a_cluster_has_of_its_own(tmp_path: Path, more: str, message: str) -> None:
    done = pgdyno("plan", _file(tmp_path, HEAD + f'[targets.mine]\ncluster = "/nowhere"\n{more}' + RUN))
    assert done.code == 2 and message in done.err
    done = pgdyno("plan", _file(tmp_path, HEAD + '[targets.mine]\ncluster = "/nowhere"\n' + RUN))
    assert tells(done.out, "plan-no-cluster", folder="/nowhere")
    done = pgdyno("run", _file(tmp_path, HEAD + '[targets.mine]\ncluster = "/nowhere"\n' + RUN), "--runs", tmp_path)
    assert done.code == 3 and tells(done.err, "error-no-cluster-pgdyno-s-no") and "Traceback" not in done.err


def _file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "made.toml"
    file.write_text(text)
    return file


@pytest.mark.slow
def test_a_log_stays_when_the_run_is_continued(tmp_path: Path, base: Path) -> None:
    assert pgdyno("cluster", "create", base).code == 0
    text = HEAD + f'[targets.mine]\ncluster = "{base}"\n[dataset]\nscale = 1\n[axes]\nclients = [1]\n'
    file = _file(tmp_path, text + RUN.replace("repetitions = 1", "repetitions = 3"))
    argv = [str(PGDYNO), "run", str(file), "-q", "--runs", str(tmp_path / "runs")]
    process = subprocess.Popen(argv, env=environment(), stderr=subprocess.DEVNULL)
    wait_until(lambda: list((tmp_path / "runs").glob("*/trials/0002-*/intervals.jsonl")), process=process)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    (path,) = (tmp_path / "runs").iterdir()
    first = (path / "server.log").read_text()
    assert "ready to accept connections" in first
    assert pgdyno("run", path).code == 0
    both = (path / "server.log").read_text()
    assert both.startswith(first) and "ready to accept connections" in both[len(first) :]
