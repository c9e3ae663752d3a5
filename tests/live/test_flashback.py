"""Clusters with standbys as they were: snapshots of a standby while it replays, and archived WAL."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pgdyno.cluster import administration
from pgdyno.cluster.filesystem import LoopFileSystem
from pgdyno.cluster.managed import ManagedCluster
from pgdyno.replication import build
from pgdyno.replication.cluster import ReplicatedCluster

from tests.support.cli import pgdyno
from tests.support.folders import reachable
from tests.support.tells import tells
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow
SMALL = ("--set", "shared_buffers=32MB", "--set", "min_wal_size=80MB")


@pytest.fixture
def base() -> Iterator[Path]:
    """On a file system that shares blocks, where we may make one."""
    with reachable() as path:
        if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
            yield path
            return
        with LoopFileSystem("xfs", 1 << 30, mkfs=[], mount="noatime", parent=path) as made:
            yield made.path


def now(folder: Path) -> tuple[str, str]:
    """By the server's clock, and where its WAL is."""
    with administration.connect(ReplicatedCluster(folder).primary.local) as conn:
        row = conn.execute("select clock_timestamp()::text, pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return str(row[0]), str(row[1])


def test_a_cluster_as_it_was_at_a_time_and_at_a_position(base: Path) -> None:
    folder = base / "c"
    made = pgdyno("cluster", "create", folder, "--standbys", 2, "--sync", "ANY 1 (*)", "--archive", *SMALL)
    assert made.code == 0, made.err
    try:
        _flashbacks(base, folder)
    finally:
        build.destroy(ReplicatedCluster(folder))
    assert not folder.exists()


def _flashbacks(base: Path, folder: Path) -> None:
    before = pgdyno("cluster", "flashback", folder, "--to", "latest", "--into", base / "none")
    assert before.code == 3 and tells(before.err, "why-no-snapshot") and not (base / "none").exists()
    over, written = threading.Event(), [0]

    def write() -> None:
        with administration.connect(ReplicatedCluster(folder).primary.local) as conn:
            conn.execute("create table public.t (a int)")
            n = 0
            while not over.is_set():
                n += 1
                conn.execute("insert into public.t values (%s)", [n])
                written[0] = n

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: written[0] > 100)
    # While it replays what is written.
    taken = pgdyno("cluster", "snapshot", folder)
    before = written[0]
    wait_until(lambda: written[0] > before + 100)
    over.set()
    writer.join()
    assert taken.code == 0, taken.err
    assert "shared" in taken.out or "copied" in taken.out
    moment, _ = now(folder)
    drilled = pgdyno("drill", folder, "--fault", "kill-primary", "--rounds", 1, "--before", 1, "-q", "--runs", base)
    assert drilled.code == 0, drilled.err
    _, position = now(folder)
    with administration.connect(ReplicatedCluster(folder).primary.local) as conn:
        rows = conn.execute("select count(*) from public.t").fetchone()
        conn.execute("drop table public.t")
    # At a time before the failover: the ledger was made after it. At a position behind it, before the table went.
    for name, to, has_ledger in (("time", moment, False), ("lsn", position, True)):
        found = pgdyno("cluster", "flashback", folder, "--to", to, "--into", base / name, "--json")
        assert found.code == 0, found.err
        facts = found.json
        assert facts["rows"]["public.t"] == (rows[0] if rows else 0) and facts["torn"] == 0
        assert ("public.pgdyno_ledger" in facts["rows"]) is has_ledger
        if has_ledger:
            here, there = facts["ledger"]
            assert here == there > 100
        cluster = ManagedCluster(base / name)
        with administration.connect(cluster.layout.target) as conn:
            # It is nobody's standby, and archives into nobody's archive.
            assert conn.execute("select pg_is_in_recovery(), current_setting('archive_mode')").fetchone() == (
                False,
                "off",
            )
        cluster.stop()
    late = pgdyno("cluster", "flashback", folder, "--to", "2100-01-01 00:00:00+00", "--into", base / "late")
    assert late.code == 3 and tells(late.err, "error-wal-ends-before-last-transaction")
    early = pgdyno("cluster", "flashback", folder, "--to", "0/1", "--into", base / "early")
    assert early.code == 3 and tells(early.err, "error-no-snapshot-from-before")
    assert not (base / "late").exists() and not (base / "early").exists()
    assert subprocess.run(["pgrep", "-f", f"{base}/late"], check=False, capture_output=True).stdout == b""


@pytest.mark.parametrize(
    ("to", "words"), [("yesterday", "not a time, an LSN"), ("2026-01-01 00:00", "has no time zone")]
)
def test_what_is_no_time_is_said(base: Path, to: str, words: str) -> None:
    folder = base / "c"
    assert pgdyno("cluster", "create", folder, "--standbys", 1, "--archive", *SMALL).code == 0
    try:
        done = pgdyno("cluster", "flashback", folder, "--to", to, "--into", base / "f")
        assert done.code == 2 and words in done.err
    finally:
        build.destroy(ReplicatedCluster(folder))


def test_without_an_archive_a_snapshot_leads_nowhere(base: Path) -> None:
    folder = base / "c"
    assert pgdyno("cluster", "create", folder, "--standbys", 1, *SMALL).code == 0
    try:
        done = pgdyno("cluster", "snapshot", folder)
        assert done.code == 3 and tells(done.err, "error-archives-no-wal-so-snapshot")
    finally:
        build.destroy(ReplicatedCluster(folder))


def test_an_archiver_that_fails_is_said_everywhere(base: Path) -> None:
    folder = base / "c"
    made = pgdyno("cluster", "create", folder, "--standbys", 1, "--archive", *SMALL)
    assert made.code == 0, made.err
    try:
        primary = ReplicatedCluster(folder).primary
        with administration.connect(primary.local) as conn:
            (folder / "archive").chmod(0o500)
            conn.execute("create table public.filler (x int)")
            conn.execute("select pg_switch_wal()")
        wait_until(lambda: tells(pgdyno("cluster", "status", folder).out, "archiver-fails"))
        for words in (("repair",), ("snapshot",)):
            done = pgdyno("cluster", *words, folder)
            assert done.code != 0 and tells(done.out + done.err, "archiver-fails"), done
            assert "the archiver fails: last 0000" in done.out + done.err, done
        (folder / "archive").chmod(0o700)
        wait_until(lambda: not tells(pgdyno("cluster", "status", folder).out, "archiver-fails"))
        assert pgdyno("cluster", "snapshot", folder).code == 0
    finally:
        build.destroy(ReplicatedCluster(folder))
