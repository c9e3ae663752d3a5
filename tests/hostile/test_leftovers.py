"""Nothing runs on, and nothing stays for good, after whatever ended pgdyno."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.support.cli import PGDYNO, SHORT, environment, pgdyno
from tests.support.tells import tells
from tests.support.waiting import wait_until


def working_on(folder: Path) -> list[str]:
    """Programs that have the folder on their command line, or files in it open."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(folder) in word for word in process.cmdline()):
                found.append(process.name())
        except psutil.Error:
            continue
    return found


def test_fio_dies_with_pgdyno_and_the_next_call_sweeps(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    # A register of its own: any pgdyno sweeps what it finds in the user's, those of the tests beside this one too.
    env = environment(XDG_STATE_HOME=str(tmp_path / "state"))
    words = [PGDYNO, "storage", disk, "--seconds=20", "--size=64m"]
    probe = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    wait_until(lambda: [n for n in working_on(disk) if n in ("fio", "pg_test_fsync")], process=probe)
    probe.kill()
    probe.wait()
    wait_until(lambda: not working_on(disk))
    assert list(disk.glob("pgdyno-storage-*"))
    assert pgdyno("experiments", env=env).code == 0
    assert list(disk.iterdir()) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_plan_that_is_cut_off_leaves_no_probe(tmp_path: Path, number: signal.Signals) -> None:
    words = [PGDYNO, "load", "tpcb", "--scale", "1000", "--plan"]
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(TMPDIR=str(tmp_path))
    )
    wait_until(lambda: list(tmp_path.glob("pgsql_tmp_pgdyno_probe_*/probe*")), process=process)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert b"Traceback" not in err
    if number == signal.SIGKILL:
        assert pgdyno("load", "tpcb", "--plan", env=environment(TMPDIR=str(tmp_path))).code == 0
    elif process.returncode != 0:
        # Else it had just ended.
        assert process.returncode == (130 if number == signal.SIGINT else 143)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_any_verb_sweeps_what_a_killed_one_has_left(tmp_path: Path, reachable: Path) -> None:
    """Wherever it lies: in a temporary folder that is not ours now, in a storage folder, in a cluster half made."""
    home, elsewhere, disk = reachable / "state", reachable / "elsewhere", reachable / "disk"
    env = environment(XDG_STATE_HOME=str(home))
    for folder in (elsewhere, disk):
        folder.mkdir(mode=0o755)
    calls = {
        "a private server": (
            ["run", "quick", "--embedded", "--runs", tmp_path],
            elsewhere,
            "pgdyno-cluster-*/data/base",
        ),
        "a probe": (["storage", disk, "--seconds=20", "--size=64m"], disk, "pgdyno-storage-*/f*"),
        "a cluster": (["cluster", "create", disk / "c"], disk, "c/data/base"),
    }
    for name, (words, folder, there) in calls.items():
        process = subprocess.Popen(
            [PGDYNO, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**env, "TMPDIR": str(elsewhere), "PGDYNO_TEMPLATES": str(tmp_path / "none")},
        )  # fmt: skip
        wait_until(lambda folder=folder, there=there: list(folder.glob(there)), process=process)
        process.kill()
        process.wait()
        assert list(folder.iterdir()), name
        deadline = time.monotonic() + 30
        said = ""
        # A server that is only just dying is left to the next call.
        while any(folder.iterdir()) and time.monotonic() < deadline:
            said += pgdyno("experiments", env=env).err
        assert not list(folder.iterdir()), name
        assert "left by a pgdyno that was killed" in said and str(folder) in said
    assert not list((home / "pgdyno" / "temporary").iterdir())


def test_what_lives_is_not_swept(tmp_path: Path) -> None:
    env = environment(XDG_STATE_HOME=str(tmp_path / "state"))
    words = [PGDYNO, "storage", tmp_path, "--seconds=2", "--size=64m"]
    probe = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    wait_until(lambda: list(tmp_path.glob("pgdyno-storage-*/f*")), process=probe)
    assert pgdyno("experiments", env=env).err == ""
    assert list(tmp_path.glob("pgdyno-storage-*/f*"))
    probe.terminate()
    probe.wait()
    assert not list(tmp_path.glob("pgdyno-storage-*"))
    assert not list((tmp_path / "state" / "pgdyno" / "temporary").iterdir())


def test_something_else_in_its_place_stays(tmp_path: Path) -> None:
    entries = tmp_path / "state" / "pgdyno" / "temporary"
    entries.mkdir(parents=True)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    status = mine.stat()
    entry = {"kind": "folder", "path": str(mine), "device": status.st_dev, "inode": status.st_ino + 1, "existed": False}
    facts = {"machine": os.uname().nodename, "last": ""}
    (entries / "a.json").write_text(json.dumps({**entry, **facts}))
    (entries / "b.json").write_text("[" * 100_000)
    (entries / "c.json").write_text("{}")
    (entries / "d.json").write_text(json.dumps({**entry, **facts, "path": "/tmp/a\0b"}))
    # What is there, but is called as nothing of ours.
    (entries / "e.json").write_text(json.dumps({**entry, **facts, "inode": status.st_ino}))
    (entries / "f.young").write_text("")
    done = pgdyno("experiments", env=environment(XDG_STATE_HOME=str(tmp_path / "state")))
    assert done.code == 0 and done.err == ""
    assert (mine / "file").exists() and not list(entries.iterdir())


@pytest.mark.slow
def test_two_runs_on_one_machine_know_of_each_other(tmp_path: Path) -> None:
    first = subprocess.Popen(
        [PGDYNO, "run", "quick", "--embedded", *SHORT, "--duration", "6", "--runs", tmp_path / "a"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    wait_until(lambda: list(tmp_path.glob("a/*/trials/*/intervals*")), process=first)
    second = pgdyno("run", "quick", "--embedded", *SHORT, "--runs", tmp_path / "b", "--json")
    said = " ".join(second.err.split())
    assert tells(said, "progress-others") and str(first.pid) in said
    assert all("BESIDE_ANOTHER" in t["caveats"] for t in second.json["trials"])
    assert first.wait(120) in (0, 1)
    report = next(tmp_path.glob("a/*/report.md")).read_text()
    assert tells(report, "caveat-beside-another")


@pytest.mark.slow
def test_a_register_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    """`sudo -E`, a home of somebody else's: root would remove what they name."""
    entries = tmp_path / "state" / "pgdyno" / "temporary"
    entries.mkdir(parents=True)
    victim = tmp_path / "x.unfinished-1"
    victim.mkdir()
    status = victim.stat()
    entry = {"kind": "folder", "path": str(victim), "device": status.st_dev, "inode": status.st_ino, "existed": False,
             "last": "", "machine": os.uname().nodename}  # fmt: skip
    (entries / "a.json").write_text(json.dumps(entry))
    os.mkfifo(entries / "b.json")
    env = environment(XDG_STATE_HOME=str(tmp_path / "state"))
    entries.chmod(0o777)
    assert pgdyno("experiments", env=env).err == "" and victim.exists()
    entries.chmod(0o700)
    (entries / "a.json").chmod(0o666)
    assert pgdyno("experiments", env=env).err == "" and victim.exists()
    # Its own it believes.
    (entries / "a.json").chmod(0o600)
    assert "left by a pgdyno that was killed" in pgdyno("experiments", env=env).err and not victim.exists()


@pytest.mark.slow
def test_without_a_register_the_next_call_in_the_same_place_sweeps(tmp_path: Path) -> None:
    """An account without a home that it may write to."""
    env = environment(TMPDIR=str(tmp_path), XDG_STATE_HOME="/dev/null")
    words = [PGDYNO, "load", "tpcb", "--scale", "1000", "--plan"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    wait_until(lambda: list(tmp_path.glob("pgsql_tmp_pgdyno_probe_*/probe*")), process=process)
    process.kill()
    process.wait()
    assert pgdyno("experiments", env=env).code == 0
    assert list(tmp_path.iterdir())
    assert pgdyno("load", "tpcb", "--plan", env=env).code == 0
    assert list(tmp_path.iterdir()) == []
