"""pgdyno cluster: clusters that stay, snapshots, restores; by reflink and byte by byte; whole or not at all."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgdyno.cluster import clone, templates
from pgdyno.cluster.account import owner_of

from tests.support.cli import PGDYNO, SHORT, Result, environment, pgdyno
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that the server's account can reach."""
    path = Path(tempfile.mkdtemp(prefix="pgdyno-test-"))
    path.chmod(0o755)
    yield path
    for cluster in path.glob("**/cluster.json"):
        pgdyno("cluster", "stop", cluster.parent)
    shutil.rmtree(path, ignore_errors=True)


def test_bad_settings_are_said_when_they_are_given(folder: Path) -> None:
    done = pgdyno("cluster", "create", folder / "worse", "--set", "shared_buffers=banana")
    assert done.code == 3 and 'invalid value for parameter "shared_buffers": "banana"' in done.err
    assert not (folder / "worse").exists()


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Path:
    """A stopped cluster with tpcb of scale 2."""
    path = folder / "loaded"
    assert pgdyno("cluster", "create", path, "--set", "shared_buffers=64MB").code == 0
    assert pgdyno("load", "tpcb", "--scale=2", "--data", path).code == 0
    return path


@pytest.fixture(params=["xfs", "btrfs"])
def reflinks(request: pytest.FixtureRequest, folder: Path) -> Iterator[Path]:
    """A file system that can share blocks."""
    mkfs = shutil.which(f"mkfs.{request.param}")
    if os.geteuid() != 0 or mkfs is None:
        pytest.skip(f"needs root and mkfs.{request.param}")
    image, mount = folder / "image", folder / "mount"
    mount.mkdir(exist_ok=True)
    with image.open("wb") as f:
        f.truncate(1 << 30)
    subprocess.run([mkfs, "-q", image], check=True, capture_output=True)
    if subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True, check=False).returncode:
        pytest.skip(f"{request.param} cannot be mounted here")
    mount.chmod(0o755)
    yield mount
    for cluster in mount.glob("*/cluster.json"):
        pgdyno("cluster", "stop", cluster.parent)
    subprocess.run(["umount", "-l", mount], check=True)
    image.unlink()


def cluster(*args: Any, store: Path) -> Result:
    return pgdyno("cluster", *args, "--store", store)


def sql(path: Path, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(f"host={path / 'socket'} user=postgres dbname=postgres", autocommit=True) as conn:
        return conn.execute(text.encode()).fetchall()


NAME = "tpcb-scale=2-pg18"


@pytest.mark.slow
def test_a_snapshot_is_restored_as_often_as_needed(loaded: Path, folder: Path) -> None:
    store = folder / "store"
    kept = cluster("snapshot", loaded, store=store)
    assert kept.code == 0 and kept.out.startswith(NAME) and "copied" in kept.out.replace("shared by reflink", "copied")
    name = kept.out.split(":")[0]
    assert name.endswith("-checksums")
    (entry,) = pgdyno("cluster", "list", "--store", store, "--json").json
    assert entry["name"] == name and entry["datasets"] == ["tpcb scale=2"] and entry["bytes"] > 30_000_000
    assert name in cluster("list", store=store).out
    for copy in (folder / "a", folder / "b"):
        done = cluster("restore", name, copy, store=store)
        assert done.code == 0 and f"restored {name}" in done.out
    assert pgdyno("cluster", "start", folder / "a").code == 0
    assert pgdyno("cluster", "start", folder / "b").code == 0
    # Each is its own.
    sql(folder / "a", "delete from pgbench_accounts returning 1")
    assert sql(folder / "b", "select count(*) from pgbench_accounts") == [(200_000,)]
    assert sql(folder / "a", "select count(*) from pgbench_accounts") == [(0,)]
    for copy in (folder / "a", folder / "b"):
        assert pgdyno("cluster", "stop", copy).out == "stopped\n"
    again = cluster("restore", name, folder / "a", store=store)
    assert again.code == 3 and tells(again.err, "error-not-empty")
    taken = cluster("snapshot", loaded, store=store)
    assert taken.code == 3 and "already" in taken.err
    assert cluster("drop", name, store=store).code == 0
    assert "no templates" in cluster("list", store=store).out
    assert cluster("restore", name, folder / "c", store=store).code == 3


@pytest.mark.slow
def test_a_running_cluster_is_refused_or_backed_up(loaded: Path, folder: Path) -> None:
    store, live = folder / "online", folder / "live"
    assert cluster("snapshot", loaded, "--name", "base", store=store).code == 0
    assert cluster("restore", "base", live, store=store).code == 0
    assert pgdyno("cluster", "start", live).code == 0
    refused = cluster("snapshot", live, store=store)
    assert refused.code == 3 and tells(refused.err, "error-server-at-work") and "--online" in refused.err
    done = cluster("snapshot", live, "--online", "--name", "now", store=store)
    assert done.code == 0, done.err
    sql(live, "delete from pgbench_accounts returning 1")
    assert cluster("restore", "now", folder / "then", store=store).code == 0
    assert pgdyno("cluster", "start", folder / "then").code == 0
    assert sql(folder / "then", "select count(*) from pgbench_accounts") == [(200_000,)]
    assert pgdyno("cluster", "stop", folder / "then").code == 0 and pgdyno("cluster", "stop", live).code == 0


@pytest.mark.slow
def test_blocks_are_shared_where_the_file_system_can(reflinks: Path) -> None:
    store, path = reflinks / "store", reflinks / "c"
    assert pgdyno("cluster", "create", path, "--no-checksums").code == 0
    assert pgdyno("load", "tpcb", "--scale=20", "--data", path).code == 0
    before = os.statvfs(reflinks).f_bfree
    kept = cluster("snapshot", path, store=store)
    assert kept.code == 0 and tells(kept.out, "cluster-shared") and "nochecksums" in kept.out
    restored = cluster("restore", kept.out.split(":")[0], reflinks / "d", store=store)
    assert restored.code == 0 and tells(restored.out, "cluster-shared")
    os.sync()
    # Two more clusters of 330 MB cost next to nothing.
    assert (before - os.statvfs(reflinks).f_bfree) * os.statvfs(reflinks).f_frsize < 60_000_000
    assert pgdyno("cluster", "start", reflinks / "d").code == 0
    assert sql(reflinks / "d", "select count(*) from pgbench_accounts") == [(2_000_000,)]
    assert pgdyno("cluster", "stop", reflinks / "d").code == 0


@pytest.mark.slow
def test_a_snapshot_that_is_killed_is_not_there(loaded: Path, folder: Path) -> None:
    store = folder / "killed"
    words = [PGDYNO, "cluster", "snapshot", loaded, "--store", store]
    start = time.monotonic()
    assert subprocess.run(words, check=False, capture_output=True, env=environment()).returncode == 0
    length = time.monotonic() - start
    (name,) = [t.name for t in templates.Store(store).all()]
    assert cluster("drop", name, store=store).code == 0
    whole = 0
    for n in range(7):
        shot = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
        time.sleep(length * (0.4 + 0.65 * n / 7))
        shot.send_signal(signal.SIGKILL)
        shot.wait()
        wait_until(lambda: not (loaded / "data" / "postmaster.pid").exists(), 20)
        there = templates.Store(store).all()
        if there:
            whole += 1
            assert cluster("restore", name, folder / f"k{n}", store=store).code == 0
            assert pgdyno("cluster", "start", folder / f"k{n}").code == 0
            assert sql(folder / f"k{n}", "select count(*) from pgbench_accounts") == [(200_000,)]
            assert pgdyno("cluster", "stop", folder / f"k{n}").code == 0
            assert cluster("drop", name, store=store).code == 0
    assert whole < 7
    assert cluster("snapshot", loaded, store=store).code == 0
    # What the killed ones left is gone with the next.
    assert [p.name for p in store.iterdir()] == [name]


@pytest.mark.slow
def test_runs_begin_from_templates(folder: Path) -> None:
    env = environment(PGDYNO_TEMPLATES=str(folder / "for-runs"))
    args = ("run", "quick", *SHORT, "--embedded", "--runs", folder / "runs")
    kept = pgdyno(*args, "--templates", "keep", env=env)
    assert kept.code == 0 and tells(kept.err, "progress-kept-template"), kept.err
    assert "the template tpcb-scale=1-pg18" in kept.err
    used = pgdyno(*args, "--json", env=env)
    assert (
        used.code == 0
        and tells(used.err, "progress-from-template", name="tpcb-scale=1-pg18")
        and "found in" in used.err
    )
    assert used.json["manifest"]["dataset"]["loaded"] is False
    without = pgdyno(*args, "--templates", "off", env=env)
    assert without.code == 0 and "template" not in without.err and "creating" in without.err
    assert pgdyno(*args, "--templates", "some", env=env).code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("create", "{loaded}"), 3, "is not empty"),
        (("create", "/proc/x"), 5, "cannot make /proc/x"),
        (("create", "{folder}/x", "--set", "nonsense"), 2, "not of the form NAME=VALUE"),
        (("start", "{folder}"), 3, "is no cluster of pgdyno's"),
        (("stop", "{folder}"), 3, "is no cluster of pgdyno's"),
        (("restore", "../../etc", "{folder}/x"), 3, "there is no template"),
        (("drop", "../../etc"), 3, "there is no template"),
        (("snapshot", "{folder}"), 3, "is no data directory"),
        (("snapshot", "{loaded}", "--name", "a/b"), 3, "is no name for a template"),
        (("snapshot", "{loaded}", "--store", "/proc/x"), 5, "cannot write to the store"),
    ],
)
def test_mistakes(loaded: Path, folder: Path, args: tuple[str, ...], code: int, words: str) -> None:
    done = pgdyno("cluster", *(a.format(loaded=loaded, folder=folder) for a in args))
    assert done.code == code and words in done.err, done.err
    assert not (folder / "x").exists()


@pytest.mark.slow
def test_a_setting_that_the_server_refuses_is_told(folder: Path) -> None:
    assert pgdyno("cluster", "create", folder / "bad").code == 0
    with (folder / "bad" / "data" / "postgresql.auto.conf").open("a") as conf:
        conf.write("shared_buffers = never\n")
    (folder / "bad" / "server.log").write_text("what an earlier server has said\n")
    done = pgdyno("cluster", "start", folder / "bad")
    assert done.code == 4 and "shared_buffers" in done.err and "earlier" not in done.err


@pytest.mark.slow
def test_only_the_clusters_own_server_is_stopped(loaded: Path) -> None:
    """A pid file may be stale, and its number somebody else's by now."""
    bystander = subprocess.Popen(["sleep", "60"])
    pid_file = loaded / "data" / "postmaster.pid"
    try:
        pid_file.write_text(f"{bystander.pid}\n")
        assert pgdyno("cluster", "stop", loaded).out == "stopped\n"
        assert bystander.poll() is None
    finally:
        pid_file.unlink()
        bystander.kill()
        bystander.wait()


@pytest.mark.slow
def test_a_copy_of_somebodys_server_is_not_its_twin(folder: Path) -> None:
    """It does not listen, archive or lie in wait where the original does."""
    with Server(conf="archive_mode=on\narchive_command='true'") as original:
        original.stop()
        store = folder / "foreign"
        kept = pgdyno("cluster", "snapshot", original.data, "--name=f", "--store", store, "--pg-bin", original.bin)
        assert kept.code == 0, kept.err
        original.start()
        assert cluster("restore", "f", folder / "twin", store=store).code == 0
        started = pgdyno("cluster", "start", folder / "twin")
        assert started.code == 0, started.err
        shown = sql(folder / "twin", "select name, setting from pg_settings where name in "
                    "('port', 'listen_addresses', 'archive_mode') order by 1")  # fmt: skip
        assert shown == [("archive_mode", "off"), ("listen_addresses", ""), ("port", "5432")]
        assert pgdyno("cluster", "stop", folder / "twin").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["it's", "with space"])
def test_odd_names(folder: Path, name: str) -> None:
    path = folder / name
    assert pgdyno("cluster", "create", path).code == 0
    started = pgdyno("cluster", "start", path)
    assert started.code == 0, started.err
    (target,) = shlex.split(started.out.split("--target ")[1])
    with psycopg.connect(target) as conn:
        assert conn.execute("select 1").fetchone() == (1,)
    assert pgdyno("cluster", "stop", path).code == 0


@pytest.mark.slow
def test_names_that_no_server_could_have(folder: Path) -> None:
    for name in ("a,b", "x" * 100):
        done = pgdyno("cluster", "create", folder / name)
        assert done.code == 3 and not (folder / name).exists(), done.err


@pytest.mark.slow
def test_links_are_not_copied(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="symbolic link"):
        clone.tree(tmp_path / "a", tmp_path / "b", owner_of(tmp_path / "a"))
