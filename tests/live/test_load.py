"""pgdyno load: what it makes is what the server would have made; what cannot be finished leaves nothing."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgdyno.cluster import datadir
from pgdyno.cluster.binaries import wheel_folder
from pgdyno.load.direct import SCHEMA, STAGING
from pgdyno.load.plan import RESERVE

from tests.support.cli import PGDYNO, Result, environment, pgdyno
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.versions import folder_of
from tests.support.waiting import wait_until

CONTENT = "select count(*), sum(hashtextextended(t::text, 0)) from {} t"


def stopped(**options: Any) -> Server:
    s = Server(**options)
    # Started once, so that it has been shut down in order, as a user's has.
    s.start()
    s.stop()
    return s


def direct(server: Server, *args: Any) -> Result:
    return pgdyno("load", *args, "--data", server.data, "--pg-bin", server.bin, "--replace")


def check(server: Server) -> None:
    """Everything that PostgreSQL has for finding damage."""
    wheel = wheel_folder()
    assert wheel is not None
    words = ["--heapallindexed", "--parent-check", "--install-missing", "-h", server.socket, "-p", str(server.port),
             "-U", "postgres", "postgres"]  # fmt: skip
    done = subprocess.run(
        [wheel / "pg_amcheck", *words], capture_output=True, text=True, check=False, env=environment()
    )
    notices = [line for line in done.stderr.splitlines() if "already exists, skipping" not in line]
    assert (done.returncode, done.stdout, notices) == (0, "", [])


def frozen(server: Server, table: str) -> None:
    """VACUUM has nothing to do."""
    with psycopg.connect(server.conninfo(), autocommit=True) as conn:
        notices: list[str] = []
        conn.add_notice_handler(lambda n: notices.append(n.message_primary or ""))
        conn.execute(f"vacuum (freeze, verbose) {table}".encode())
    text = "\n".join(notices)
    if re.search(r"pages: 0 removed", text):
        # The last page is always looked at.
        assert re.search(r"pages: 0 removed, \d+ remain, [01] (scanned|skipped)|, 1 scanned", text), text
    assert "tuples: 0 removed" in text or "0 removable" in text or "found 0 removable" in text, text


@pytest.mark.parametrize(
    ("major", "checksums"),
    [
        *(
            pytest.param(n, c, marks=pytest.mark.slow)
            for n, c in ((14, False), (15, True), (16, True), (17, False), (18, False))
        ),
        (18, True),
    ],
)
def test_direct_makes_what_pgbench_makes(major: int, checksums: bool) -> None:
    options = ("--data-checksums",) if checksums else ("--no-data-checksums",) if major == 18 else ()
    server = stopped(bin_folder=folder_of(major), initdb=options)
    try:
        done = direct(server, "tpcb", "--scale", 3, "--json")
        assert done.code == 0, done.err
        assert done.json["loaded"]["method"] == "direct" and done.json["loaded"]["rows"] == 300_033
        if checksums and (server.bin / "pg_checksums").exists():
            words = [server.bin / "pg_checksums", "--check", "-D", server.data]
            assert subprocess.run(words, capture_output=True, check=False).returncode == 0
        server.start()
        assert server.sql("show data_checksums") == [("on" if checksums else "off",)]
        check(server)
        wheel = wheel_folder()
        assert wheel is not None
        server.sql("create database theirs")
        where = ["-h", server.socket, "-p", str(server.port), "-U", "postgres"]
        subprocess.run(
            [wheel / "pgbench", "-i", "-q", "-s3", *where, "theirs"], check=True, capture_output=True, env=environment()
        )
        for table in ("accounts", "tellers", "branches", "history"):
            query = CONTENT.format(f"pgbench_{table}")
            assert server.sql(query) == server.sql(query, dbname="theirs")
            sizes = f"select pg_relation_size('pgbench_{table}'), pg_indexes_size('pgbench_{table}')"
            assert server.sql(sizes) == server.sql(sizes, dbname="theirs")
        frozen(server, "pgbench_accounts")
        # A server that goes on with it: updates, inserts, another shutdown, and still nothing is wrong.
        subprocess.run(
            [wheel / "pgbench", "-n", "-t500", "-c2", *where, "postgres"], check=True, capture_output=True,
            env=environment(),
        )  # fmt: skip
        server.kill()
        server.start()
        check(server)
        assert server.sql("select count(*) from pgbench_history") == [(1000,)]
        assert server.sql("select count(*) from pgbench_accounts") == [(300_000,)]
    finally:
        server.remove()


@pytest.fixture(scope="module")
def module_cluster() -> Iterator[Server]:
    server = stopped()
    yield server
    server.remove()


@pytest.fixture
def cluster(module_cluster: Server) -> Iterator[Server]:
    """A stopped server; stopped again after each test, however that ended."""
    yield module_cluster
    if module_cluster.process is not None and module_cluster.process.poll() is None:
        module_cluster.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("tpcb", "--scale=2", "--partitions=3"),
        ("tpcb", "--scale=2", "--fillfactor=60"),
        ("tpcb", "--scale=2", "--unlogged"),
        ("pk", "--rows=123457"),
        ("feed", "--rows=5000", "--tables=7"),
        ("feed", "--rows=100000"),
        ("feed", "--tables=3"),
    ],
    ids=" ".join,
)
def test_all_methods_make_the_same(cluster: Server, server: Server, options: tuple[str, ...]) -> None:
    server.sql("drop database if exists same")
    server.sql("create database same")
    seen: list[Any] = []
    names = ["pgbench_accounts", "pgbench_tellers", "pk", "feed", "feed1", "feed7"]
    facts = """select relname, relkind, reloptions::text, relpersistence, pg_get_expr(relpartbound, oid),
        regexp_replace(obj_description(oid, 'pg_class'), ' ' || oid || ']', ' OID]'),
        (select string_agg(pg_get_indexdef(indexrelid), ';' order by 1) from pg_index
          where indrelid = c.oid)
        from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by 1"""
    for method in ("copy", "server", "direct"):
        if method == "direct":
            done = direct(cluster, *options)
            cluster.start()
            where, dbname = cluster, "postgres"
        else:
            target = server.conninfo(dbname="same")
            done = pgdyno("load", *options, "--method", method, "--target", target, "--force")
            where, dbname = server, "same"
        assert done.code == 0, done.err
        there = [n for n in names if where.sql(f"select to_regclass('{n}')", dbname=dbname) != [(None,)]]
        content = [where.sql(CONTENT.format(n), dbname=dbname) for n in there]
        seen.append([there, content, where.sql(facts, dbname=dbname)])
        if method == "direct":
            check(cluster)
        for table, *_ in seen[-1][2]:
            where.sql(f"drop table if exists {table}", dbname=dbname)
    cluster.stop()
    server.sql("drop database same with (force)")
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0]


@pytest.mark.slow
def test_a_page_is_of_a_load_that_was_measured(cluster: Server, tmp_path: Path) -> None:
    page = tmp_path / "load.html"
    argv = ("load", "pk", "--rows", 1_000, "--data", cluster.data, "--pg-bin", cluster.bin, "--replace", "--page", page)
    loaded = pgdyno(*argv)
    assert loaded.code == 0 and page.exists(), loaded.err
    page.unlink()
    again = pgdyno(*argv)
    assert again.code == 0 and tells(again.err, "page-nothing-loaded", path=page) and not page.exists(), again.err
    cluster.start()
    cluster.sql("drop table pk")
    cluster.stop()


@pytest.mark.slow
def test_a_dataset_that_is_there_is_found_and_one_of_another_size_replaced(cluster: Server) -> None:
    assert "done in" in direct(cluster, "tpcb", "--scale=1").out
    assert tells(direct(cluster, "tpcb", "--scale=1").out, "load-exists")
    again = direct(cluster, "tpcb", "--scale=2")
    assert tells(again.err, "progress-replacing", what="tpcb scale=1") and "200,022 rows" in again.out
    cluster.start()
    assert cluster.sql("select count(*) from pgbench_accounts") == [(200_000,)]
    cluster.sql("drop table pgbench_tellers; create table pgbench_tellers (mine text)")
    cluster.stop()
    refused = direct(cluster, "tpcb", "--scale=1")
    assert refused.code == 3 and tells(refused.err, "error-exists-not-ours", tables="pgbench_tellers")
    cluster.start()
    assert cluster.sql("select count(*) from pgbench_accounts") == [(200_000,)]
    cluster.sql("drop table pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history")
    cluster.stop()


@pytest.mark.slow
def test_more_files_than_may_be_open(cluster: Server) -> None:
    words = [PGDYNO, "load", "feed", "--tables=400", "--rows=300", "--data", cluster.data, "--pg-bin", cluster.bin]
    limited = ["prlimit", "--nofile=256:256", *words]
    done = subprocess.run(limited, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    cluster.start()
    assert cluster.sql("select count(*) from pg_class where relname ~ '^feed[0-9]+$' and reltuples = 300") == [(400,)]
    for first in (1, 201):
        names = ", ".join(f"feed{i}" for i in range(first, first + 200))
        cluster.sql(f"drop table {names}")


# ------------------------------------------------------------------ safety


def test_a_second_load_leaves_the_first_ones_server_alone(cluster: Server) -> None:
    with datadir.claimed(cluster.data):
        done = direct(cluster, "tpcb")
    assert done.code == 3 and tells(done.err, "error-another-pgdyno-at-work-2") and "pg_ctl" not in done.err, done.err


@pytest.mark.slow
def test_what_is_not_stopped_is_refused(cluster: Server, tmp_path: Path) -> None:
    cluster.start()
    done = direct(cluster, "tpcb")
    assert done.code == 3 and tells(done.err, "error-server-at-work-or-did") and "pg_ctl" in done.err
    # What was meant, perhaps.
    assert f'--target "host={cluster.socket} port={cluster.port} dbname=postgres"' in done.err, done.err
    cluster.kill()
    done = direct(cluster, "tpcb")
    assert done.code == 3 and tells(done.err, "error-server-at-work-or-did")
    (cluster.data / "postmaster.pid").unlink()
    done = direct(cluster, "tpcb")
    assert done.code == 3 and tells(done.err, "error-was-not-shut-down-order")
    cluster.start()
    cluster.stop()
    for folder, words in ((tmp_path, "no data directory"), (tmp_path / "nowhere", "no data directory")):
        done = pgdyno("load", "tpcb", "--data", folder)
        assert done.code == 3 and words in done.err


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("standby.signal", "is a standby"),
        ("pg_replslot/x", "has replication slots"),
        ("pg_twophase/x", "has prepared transactions"),
        ("PG_VERSION", "of PostgreSQL 13"),
    ],
)
def test_what_direct_would_break_is_refused(cluster: Server, name: str, words: str) -> None:
    path = cluster.data / name
    before = path.read_bytes() if path.exists() else None
    try:
        path.write_text("13\n")
        done = direct(cluster, "tpcb")
        assert done.code == 3 and words in done.err, done.err
    finally:
        path.unlink() if before is None else path.write_bytes(before)


def test_an_archive_is_not_left_behind(cluster: Server) -> None:
    conf = cluster.data / "postgresql.conf"
    before = conf.read_text()
    try:
        conf.write_text(before + "archive_mode=on\narchive_command='true'\n")
        done = direct(cluster, "tpcb")
        assert done.code == 3 and "archives its WAL" in done.err and "base backup" in done.err
    finally:
        conf.write_text(before)


@pytest.mark.slow
def test_what_an_archive_waits_for_is_kept(cluster: Server) -> None:
    """Segments that are not archived yet survive a snapshot and a load that is allowed all the same."""
    cluster.start()
    cluster.sql("alter system set archive_mode = on")
    cluster.sql("alter system set archive_command = 'false'")
    cluster.stop()
    try:
        cluster.start()
        for _ in range(3):
            cluster.sql("create table if not exists t (a int); insert into t select generate_series(1, 1000)")
            cluster.sql("select pg_switch_wal()")
        cluster.stop()
        waiting = set((cluster.data / "pg_wal" / "archive_status").glob("*.ready"))
        assert waiting
        snapshot = pgdyno(
            "cluster", "snapshot", cluster.data, "--store", cluster.base / "store", "--pg-bin", cluster.bin
        )
        assert snapshot.code == 0, snapshot.err
        assert direct(cluster, "pk", "--rows=1000").code == 3
        assert direct(cluster, "pk", "--rows=1000", "--ignore-archive").code == 0
        assert waiting <= set((cluster.data / "pg_wal" / "archive_status").glob("*.ready"))
    finally:
        auto = cluster.data / "postgresql.auto.conf"
        auto.write_text("")
        for path in (cluster.data / "pg_wal" / "archive_status").glob("*"):
            path.unlink()
    cluster.start()
    cluster.sql("drop table t, pk")


def test_a_configuration_elsewhere_is_asked_for(cluster: Server) -> None:
    """As Debian has it: without knowing whether WAL is archived nothing is written past it."""
    conf, away = cluster.data / "postgresql.conf", cluster.base / "away"
    conf.rename(away)
    try:
        done = direct(cluster, "pk", "--rows=10")
        assert (
            done.code == 3
            and tells(done.err, "error-configuration-was-not-found-so")
            and "--ignore-archive" in done.err
        )
    finally:
        away.rename(conf)


@pytest.mark.slow
def test_what_would_fail_at_the_end_fails_at_the_beginning(cluster: Server) -> None:
    cluster.start()
    cluster.sql("create table pk_old (id int); create index pk_pkey on pk_old (id)")
    cluster.stop()
    done = direct(cluster, "pk", "--rows=1000")
    assert done.code == 3 and '"pk_pkey" already exists' in done.err and tells(done.err, "left-nothing")
    assert direct(cluster, "pk", "--rows=1000", "--tablespace=nosuch").code == 3
    cluster.start()
    assert cluster.sql("select to_regclass('pk'), to_regnamespace('pgdyno_loading')") == [(None, None)]
    cluster.sql("drop table pk_old")
    cluster.stop()
    assert direct(cluster, "pk", "--rows=1000").code == 0
    cluster.start()
    cluster.sql("create view v as select * from pk")
    cluster.stop()
    done = direct(cluster, "pk", "--rows=2000")
    assert done.code == 3 and "depend" in done.err
    cluster.start()
    assert cluster.sql("select count(*) from pk") == [(1000,)]
    cluster.sql("drop table pk cascade")


@pytest.mark.slow
def test_settings_of_the_directory_do_not_stand_in_the_way(cluster: Server) -> None:
    cluster.start()
    without = {"options": "-c statement_timeout=0"}
    for setting in (
        "synchronous_standby_names = '*'", "max_connections = 5", "wal_level = minimal", "max_wal_senders = 0",
        "shared_buffers = '1GB'",
    ):  # fmt: skip
        cluster.sql(f"set synchronous_commit = local; alter system set {setting}".split("; ")[1])
    cluster.sql("alter role postgres set statement_timeout = '1ms'")
    cluster.stop()
    try:
        done = direct(cluster, "feed", "--tables=20", "--rows=10")
        assert done.code == 0, done.err
    finally:
        (cluster.data / "postgresql.auto.conf").write_text("")
        cluster.start()
        cluster.sql("alter role postgres reset statement_timeout", **without)
    cluster.sql(f"drop table {', '.join(f'feed{i}' for i in range(1, 21))}")


def test_a_link_in_place_of_the_folder_is_not_followed(cluster: Server, tmp_path: Path) -> None:
    (cluster.data / STAGING).symlink_to(tmp_path)
    assert direct(cluster, "pk", "--rows=1000").code == 0
    assert list(tmp_path.iterdir()) == []
    cluster.start()
    cluster.sql("drop table pk")


@pytest.mark.slow
def test_what_a_kill_leaves_does_not_hinder_a_backup(cluster: Server, tmp_path: Path) -> None:
    left = cluster.data / STAGING
    left.mkdir(mode=0o700)
    (left / "16384").write_bytes(b"x" * 8192)
    cluster.start()
    wheel = wheel_folder()
    assert wheel is not None
    words = [wheel / "pg_basebackup", "-D", tmp_path / "backup", "-c", "fast", "-d", cluster.conninfo()]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "backup" / STAGING).exists()
    cluster.stop()
    assert direct(cluster, "pk", "--rows=10").code == 0
    assert not left.exists()
    cluster.start()
    cluster.sql("drop table pk")


@pytest.mark.slow
def test_tables_that_a_crash_has_emptied_are_made_again(cluster: Server) -> None:
    assert direct(cluster, "pk", "--rows=5000", "--unlogged").code == 0
    assert tells(direct(cluster, "pk", "--rows=5000", "--unlogged").out, "load-exists")
    cluster.start()
    cluster.kill()
    cluster.start()
    assert cluster.sql("select count(*) from pk") == [(0,)]
    cluster.stop()
    assert "done in" in direct(cluster, "pk", "--rows=5000", "--unlogged").out
    cluster.start()
    assert cluster.sql("select count(*) from pk") == [(5000,)]
    cluster.sql("drop table pk")


@pytest.mark.slow
def test_fewer_tables_replace_more(cluster: Server) -> None:
    assert direct(cluster, "feed", "--tables=5", "--rows=10").code == 0
    assert direct(cluster, "feed", "--tables=3", "--rows=10").code == 0
    cluster.start()
    names = "select string_agg(relname, ',' order by relname) from pg_class where relname ~ '^feed[0-9]*$'"
    assert cluster.sql(names) == [("feed1,feed2,feed3",)]
    assert pgdyno("load", "feed", "--rows=10", "--target", cluster.conninfo(), "--force", "--replace").code == 0
    assert cluster.sql(names) == [("feed",)]
    cluster.sql("drop table feed")


@pytest.mark.slow
def test_a_database_without_an_encoding(cluster: Server) -> None:
    cluster.start()
    cluster.sql("create database ascii encoding SQL_ASCII template template0")
    target = cluster.conninfo(dbname="ascii")
    assert pgdyno("load", "pk", "--rows=1000", "--target", target, "--force").code == 0
    cluster.stop()
    assert tells(direct(cluster, "pk", "--rows=1000", "--dbname=ascii").out, "load-exists")
    assert direct(cluster, "pk", "--rows=2000", "--dbname=ascii").code == 0
    cluster.start()
    assert cluster.sql("select count(*) from pk", dbname="ascii") == [(2000,)]
    cluster.sql("drop database ascii")


def test_nobody_starts_the_server_meanwhile(cluster: Server) -> None:
    directory = datadir.examine(cluster.data)
    with datadir.kept_stopped(directory):
        done = subprocess.run(
            [cluster.bin / "postgres", "-D", cluster.data], capture_output=True, text=True, check=False, cwd="/",
            env=environment(), **cluster.account.popen(),
        )  # fmt: skip
        assert done.returncode != 0 and 'lock file "postmaster.pid" already exists' in done.stderr
        with pytest.raises(Exception, match="a server is at work"), datadir.kept_stopped(directory):
            pass
    assert not (cluster.data / "postmaster.pid").exists()
    cluster.start()
    cluster.stop()


def test_a_disk_that_is_too_small_is_told_before(cluster: Server) -> None:
    free = os.statvfs(cluster.data).f_bavail * os.statvfs(cluster.data).f_frsize
    scale = (free - RESERVE) // 15_000_000
    before = sorted(p.name for p in cluster.data.iterdir())
    done = direct(cluster, "tpcb", "--scale", scale)
    assert done.code == 5 and f"tpcb scale={scale} needs" in done.err and "smaller --scale" in done.err
    assert sorted(p.name for p in cluster.data.iterdir()) == before


@pytest.mark.slow
def test_a_disk_that_gets_full_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    mount = tmp_path / "mnt"
    mount.mkdir()
    for parent in [tmp_path, *tmp_path.parents][:4]:
        parent.chmod(parent.stat().st_mode | 0o111)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,mode=755", "none", mount], check=False).returncode:
        pytest.skip("no tmpfs here")
    try:
        server = stopped(folder=mount, conf="max_wal_size=64MB\nmin_wal_size=32MB")
        try:
            assert direct(server, "tpcb", "--scale=1").code == 0
            # 11 units fit when they are looked at, but the server's own files grow meanwhile: take the room away.
            free = os.statvfs(mount).f_bavail * os.statvfs(mount).f_frsize
            scale = (free - RESERVE) // 15_800_000
            code = (
                "import sys; from pgdyno.load import loader; loader.refuse_if_too_small = lambda *_: None\n"
                "from pgdyno.cli.entry import pgdyno; sys.argv[0] = 'pgdyno'; pgdyno()"
            )
            done = subprocess.run(
                [PGDYNO.parent / "python", "-c", code, "load", "tpcb", "--scale", str(scale + 10), "--data",
                 server.data, "--pg-bin", server.bin, "--replace"],
                capture_output=True, text=True, check=False, env=environment(),
            )  # fmt: skip
            assert done.returncode == 5 and tells(done.stderr, "error-loading-failed-disk-full"), done.stderr
            assert tells(done.stderr, "left-nothing")
            server.start()
            assert server.sql("select count(*) from pgbench_accounts") == [(100_000,)]
            assert server.sql(f"select count(*) from pg_namespace where nspname = '{SCHEMA}'") == [(0,)]
            assert not (server.data / STAGING).exists()
            check(server)
        finally:
            server.remove()
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


def processes_of(server: Server) -> list[int]:
    """Processes that have the data directory on their command line."""
    found = subprocess.run(["pgrep", "-f", f"postgres -D {server.data}"], capture_output=True, text=True, check=False)
    return [int(w) for w in found.stdout.split()]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_any_moment_nothing_is_half_there(cluster: Server) -> None:
    """Twenty loads are killed; each time the server starts, with the tables of the load before or of this one."""
    rng = random.Random(4)
    words = [PGDYNO, "load", "tpcb", "--data", cluster.data, "--pg-bin", cluster.bin, "--quiet", "--replace", "--scale"]
    options: dict[str, Any] = {
        "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment(), "start_new_session": True
    }  # fmt: skip
    assert subprocess.run([*words, "1"], check=False, **options).returncode == 0
    start = time.monotonic()
    assert subprocess.run([*words, "3"], check=False, **options).returncode == 0
    # When tables change places, as far as it is known: how fast the machine is changes from one load to the next.
    switch = 0.9 * (time.monotonic() - start)
    there, seen = 3, {"before": 0, "after": 0}
    shares = [(n + rng.random()) / 20 for n in range(20)]
    rng.shuffle(shares)
    for n, share in enumerate(shares):
        scale = 4 if there == 3 else 3
        load = subprocess.Popen([*words, str(scale)], **options)
        # Start-up is of no interest; the rest is met evenly, mostly before the switch.
        begun = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            load.wait(switch * (0.3 + 0.9 * share))
        moment = time.monotonic() - begun
        load.send_signal(signal.SIGKILL)
        load.wait()
        # Its server dies with it, by a fast shutdown.
        wait_until(lambda: not (processes_of(cluster) or (cluster.data / datadir.PID_FILE).exists()), 20)
        cluster.start()
        ((accounts, tellers),) = cluster.sql(
            "select (select count(*) from pgbench_accounts), (select count(*) from pgbench_tellers)"
        )
        assert accounts in (there * 100_000, scale * 100_000) and tellers * 10_000 == accounts, (n, accounts)
        with psycopg.connect(cluster.conninfo()) as conn:
            conn.execute("set enable_seqscan = off; set enable_bitmapscan = off")
            by_key = conn.execute("select count(*) from pgbench_accounts where aid > 0").fetchone()
        assert by_key == (accounts,)
        if accounts == scale * 100_000:
            seen["after"] += 1
            switch = min(switch, moment)
        else:
            seen["before"] += 1
            switch = max(switch, moment)
        there = accounts // 100_000
        cluster.stop()
    assert seen["before"] > 5 and seen["after"] > 1, seen
    done = direct(cluster, "tpcb", "--scale=2")
    assert done.code == 0, done.err
    cluster.start()
    check(cluster)
    assert cluster.sql(f"select count(*) from pg_namespace where nspname = '{SCHEMA}'") == [(0,)]
    assert not (cluster.data / STAGING).exists()
    # Killed loads leave no files behind: each in base/ belongs to a relation.
    orphans = """select f from pg_ls_dir('base/' || (select oid from pg_database where datname = 'postgres')) f
        where f ~ '^[0-9]+$' and pg_filenode_relation(0, f::oid) is null"""
    assert cluster.sql(orphans) == []
    cluster.sql("drop table pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history")
    cluster.stop()


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("method", ["direct", "copy", "server"])
def test_stopped_it_leaves_nothing(cluster: Server, method: str, sign: signal.Signals) -> None:
    where = ["--data", cluster.data, "--pg-bin", cluster.bin]
    if method != "direct":
        cluster.start()
        # We are the other session that it would refuse to disturb.
        where = ["--target", cluster.conninfo(), "--method", method, "--force"]
    words = [PGDYNO, "load", "tpcb", "--scale=150", "--replace", *where]
    load = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True)
    # In the middle of filling the tables.
    filling = "select 1 from pg_stat_activity where query ~ '^(copy|insert)' and state = 'active'"
    staged = f"{STAGING}/*"
    wait_until(
        lambda: list(cluster.data.glob(staged)) if method == "direct" else cluster.sql(filling),
        process=load, every_s=0.01,
    )  # fmt: skip
    load.send_signal(sign)
    _, err = load.communicate(timeout=60)
    said = ("interrupted by Ctrl-C", 130) if sign == signal.SIGINT else ("stopped by SIGTERM", 143)
    assert said[0] in err and load.returncode == said[1] and "Traceback" not in err, err
    assert not (cluster.data / STAGING).exists()
    if method == "direct":
        cluster.start()
    assert cluster.sql("select count(*) from pg_class where relname ~ 'pgbench|pgdyno'") == [(0,)]
    assert cluster.sql(f"select count(*) from pg_namespace where nspname = '{SCHEMA}'") == [(0,)]


# ------------------------------------------------------------------ the plan


@pytest.mark.slow
def test_the_plan_of_a_hundred_billion_rows() -> None:
    """Seed 000's catalogue: key 2,092 GB and level 4, table 12 TB."""
    done = pgdyno("load", "tpcb", "--scale", 1_000_000, "--plan", "--disk-mbps", 4096)
    assert done.code == 0
    line = next(x for x in done.out.splitlines() if "pgbench_accounts" in x).split()
    assert line[1:] == ["100,000,000,000", "12", "TB", "2092", "GB", "4"]
    assert max(map(len, done.out.splitlines())) <= 80
    facts = pgdyno("load", "tpcb", "--scale", 1_000_000, "--plan", "--disk-mbps", 4096, "--json").json
    assert facts["rows"] == 100_011_000_000 and facts["disk_bytes_per_s"] == 4.096e9
    assert facts["seconds_at_disk_speed"] == pytest.approx((facts["heap_bytes"] + facts["key_bytes"]) / 4.096e9)


@pytest.mark.parametrize("warehouses", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_plan_of_many_warehouses(warehouses: int) -> None:
    """Clause 1.2.1's cardinalities; order lines are 5 to 15 an order."""
    options = ("load", "tpcc", "--scale", warehouses, "--plan", "--disk-mbps", 4096)
    done = pgdyno(*options)
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    facts = pgdyno(*options, "--json").json
    rows = {t["name"]: t["rows"] for t in facts["tables"]}
    lines = rows.pop("tpcc_order_line")
    assert lines == pytest.approx(300_000 * warehouses, rel=1e-3)
    each = {"warehouse": 1, "district": 10, "new_order": 9000, "stock": 100_000}
    each |= dict.fromkeys(("customer", "history", "orders"), 30_000)
    assert rows == {"tpcc_item": 100_000} | {f"tpcc_{name}": n * warehouses for name, n in each.items()}
    assert facts["rows"] == sum(rows.values()) + lines
    whole = facts["heap_bytes"] + facts["key_bytes"] + facts["index_bytes"]
    assert facts["seconds_at_disk_speed"] == pytest.approx(whole / 4.096e9)
    # As the server made them for ten warehouses: 9.5 MB of orders by customer, and 16.8 of customers by name.
    assert facts["index_bytes"] == pytest.approx(warehouses * (9_486_336 + 16_801_792) / 10, rel=0.1)


@pytest.mark.slow
def test_the_plan_is_what_becomes(cluster: Server) -> None:
    for options in (("tpcb", "--scale=2", "--partitions=3", "--fillfactor=55"), ("pk", "--rows=200001")):
        planned = pgdyno("load", *options, "--plan", "--disk-mbps=1000", "--json").json
        assert direct(cluster, *options).code == 0
        cluster.start()
        for t in planned["tables"]:
            query = f"select pg_relation_size('{t['name']}'), pg_indexes_size('{t['name']}')"
            assert cluster.sql(query) == [(t["heap_bytes"], t["key_bytes"])]
        for table in ("pk", "pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history"):
            cluster.sql(f"drop table if exists {table}")
        cluster.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("tpch",), 'there is no dataset "tpch"'),
        (("tpcb",), "no server and no data directory"),
        (("tpcb", "--rows=5", "--plan"), "the size of tpcb is its --scale"),
        (("pk", "--rows=5", "--scale=1", "--plan"), "mean the same"),
        (("pk", "--partitions=5", "--plan"), "pk has no partitions"),
        (("tpcb", "--tables=5", "--plan"), "the tables of tpcb are fixed"),
        (("feed", "--rows=3000000000", "--plan"), "int id"),
        (("tpcb", "--method=best", "--data=/tmp"), '--method: there is no "best"'),
        (("tpcb", "--method=copy", "--data=/tmp"), "--data is for --method direct"),
        (("tpcb", "--method=direct", "--target=host=/tmp"), "stopped server"),
        (("tpcb", "--scale=4000000", "--plan"), "32 TB"),
    ],
)
def test_mistakes_on_the_command_line(args: tuple[str, ...], words: str) -> None:
    done = pgdyno("load", *args)
    assert done.code == 2 and words in done.err, done.err


def test_the_summary_says_how_long_each_phase_took(server: Server) -> None:
    server.sql("drop database if exists slow")
    server.sql("create database slow")
    done = pgdyno("load", "pk", "--rows=600000", "--target", server.conninfo(dbname="slow"))
    server.sql("drop database slow with (force)")
    assert done.code == 0 and re.search(r"done in [\d.]+ s \(create .*, generate .*, keys .*, vacuum .*\)", done.out)
