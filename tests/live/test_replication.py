"""Clusters with standbys: made, seen, switched, failed over, joined again, repaired and removed; real servers."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pgdyno.cluster import administration
from pgdyno.cluster import network as networks
from pgdyno.cluster.managed import ManagedCluster
from pgdyno.replication import archives, build, following, state
from pgdyno.replication import roles as roles_of
from pgdyno.replication.cluster import ReplicatedCluster

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.folders import reachable
from tests.support.tells import tells
from tests.support.versions import folder_of
from tests.support.waiting import wait_until

Maker = Callable[..., Path]


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that the server's account can reach."""
    with reachable() as path:
        yield path


@pytest.fixture
def make(base: Path) -> Iterator[Maker]:
    """Makes a small cluster; it is gone afterwards."""
    folder = base / "c"

    def maker(*args: Any, standbys: int = 2) -> Path:
        small = ("--set", "shared_buffers=32MB", "--set", "min_wal_size=80MB")
        done = pgdyno("cluster", "create", folder, "--standbys", standbys, *small, *args)
        assert done.code == 0, done.err
        return folder

    yield maker
    if (folder / "replication.json").exists():
        build.destroy(ReplicatedCluster(folder))


def roles(folder: Path) -> dict[str, str]:
    return {m["name"]: m["role"] for m in status(folder)["members"]}


def status(folder: Path) -> Any:
    return pgdyno("cluster", "status", folder, "--json").json


def on_primary(folder: Path, sql: str) -> Any:
    cluster = ReplicatedCluster(folder)
    with administration.connect(cluster.primary.local) as conn:
        conn.execute("set search_path = public")
        found = conn.execute(sql.encode())
        return found.fetchall() if found.description else None


def everywhere(folder: Path, sql: str) -> list[Any]:
    cluster = ReplicatedCluster(folder)
    following.wait_caught_up(cluster)
    found = []
    for m in cluster.members:
        with administration.connect(m.local) as conn:
            conn.execute("set search_path = public")
            found.append(conn.execute(sql.encode()).fetchall())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("network", ["--no-network", "--network"])
def test_from_made_to_removed(make: Maker, network: str) -> None:
    if network == "--network" and not networks.is_possible():
        pytest.skip("network namespaces need root, ip and setpriv")
    folder = make("--sync", "ANY 1 (*)", network)
    before = status(folder)
    assert [m["role"] for m in before["members"]] == ["primary", "standby", "standby"]
    assert [m["sync_state"] for m in before["members"]] == [None, "quorum", "quorum"]
    assert before["troubles"] == [] and before["network"] is (network == "--network")
    on_primary(folder, "create table t as select 1 as a")
    # Standbys come in by SCRAM as a role that may do nothing else, each by its slot.
    assert sorted(on_primary(folder, "select usename, application_name from pg_stat_replication")) == [
        ("pgdyno_replication", "node2"), ("pgdyno_replication", "node3")
    ]  # fmt: skip
    assert on_primary(folder, "select count(*) from pg_replication_slots where active")[0][0] == 2
    hba = (folder / "node1" / "data" / "pg_hba.conf").read_text()
    assert "scram-sha-256" in hba and "trust" not in hba and "0.0.0.0/0" not in hba

    switched = pgdyno("cluster", "switchover", folder, "--to", "node3")
    assert switched.code == 0 and tells(switched.out, "cluster-switched", member="node3", old="node1")
    assert roles(folder) == {"node1": "standby", "node2": "standby", "node3": "primary"}
    assert status(folder)["troubles"] == []
    # A slot of a standby would hold back WAL for ever.
    cluster = ReplicatedCluster(folder)
    for m in cluster.others(cluster.primary):
        with administration.connect(m.local) as conn:
            assert conn.execute("select count(*) from pg_replication_slots").fetchone() == (0,)

    refused = pgdyno("cluster", "failover", folder)
    assert refused.code == 3 and tells(refused.err, "error-primary-is-alive", name="node3")
    # Nobody is killed for what cannot be.
    for words in (("--to", "node9"), ("--to", "node3")):
        assert pgdyno("cluster", "failover", folder, "--force", *words).code == 3
    assert roles(folder)["node3"] == "primary"
    cluster.primary.kill()
    assert tells(pgdyno("cluster", "rejoin", folder).err, "error-primary-does-not-run", name="node3")
    shown = pgdyno("cluster", "status", folder)
    assert shown.code == 1 and "node3: stopped" in shown.out and tells(shown.out, "cluster-no-primary")
    assert pgdyno("cluster", "failover", folder).code == 0
    assert pgdyno("cluster", "rejoin", folder).code == 0
    assert status(folder)["troubles"] == []
    assert {m["timeline"] for m in status(folder)["members"]} == {3}
    on_primary(folder, "insert into t values (2)")
    assert everywhere(folder, "select a from t order by a") == [[(1,), (2,)]] * 3

    assert pgdyno("cluster", "stop", folder).code == 0
    assert tells(pgdyno("cluster", "status", folder).out, "cluster-all-stopped")
    assert pgdyno("cluster", "start", folder).code == 0 and status(folder)["troubles"] == []
    assert pgdyno("cluster", "destroy", folder).code == 0 and not folder.exists()


@pytest.mark.slow
def test_members_have_tablespaces_of_their_own(make: Maker, base: Path) -> None:
    storage = base / "storage"
    storage.mkdir()
    folder = make("--no-network", "--tablespace", f"fast={storage}")
    on_primary(folder, "create table t (a int) tablespace fast")
    on_primary(folder, "insert into t select generate_series(1, 1000)")
    assert len(list(storage.glob("pgdyno-*/fast/PG_*/*/*"))) >= 1
    # Killed, rewound, built anew: each stays in its own.
    cluster = ReplicatedCluster(folder)
    cluster.primary.kill()
    assert pgdyno("cluster", "failover", folder).code == 0
    on_primary(folder, "insert into t values (-1)")
    assert pgdyno("cluster", "rejoin", folder).code == 0
    assert everywhere(folder, "select count(*) from t") == [[(1001,)]] * 3
    third = ReplicatedCluster(folder)
    member = third.others(third.primary)[0]
    build.rebuild(third, member, third.primary, lambda *_: None)
    member.start()
    following.wait_streaming(third, member)
    assert everywhere(folder, "select count(*) from t") == [[(1001,)]] * 3
    assert pgdyno("cluster", "destroy", folder).code == 0
    assert not list(storage.iterdir())
    refused = pgdyno("cluster", "create", base / "x", "--standbys", 1, "--tablespace", "fast")
    assert (
        refused.code == 2 and tells(refused.err, "error-tablespace-not-form-name-folder") and not (base / "x").exists()
    )


@pytest.mark.slow
def test_too_few_standbys_to_be_sure_are_not_promoted(make: Maker) -> None:
    folder = make("--sync", "ANY 1 (*)", "--no-network")
    cluster = ReplicatedCluster(folder)
    cluster.primary.kill()
    cluster.member("node3").kill()
    refused = pgdyno("cluster", "failover", folder)
    assert refused.code == 3 and tells(
        refused.err, "error-standbys-answer-must-acknowledged-commit", n_counted=1, n_candidates=2, must_be_seen=2
    )
    assert roles(folder) == {"node1": "stopped", "node2": "standby", "node3": "stopped"}
    assert pgdyno("cluster", "failover", folder, "--force").code == 0
    assert roles(folder)["node2"] == "primary"


@pytest.mark.slow
def test_a_standby_that_was_ahead_of_the_promoted_one_is_rewound(make: Maker) -> None:
    # It is streamed the old timeline for a moment, up to where they parted: that is not following.
    folder = make("--no-network")
    cluster = ReplicatedCluster(folder)
    on_primary(folder, "create table t (a int)")
    following.wait_caught_up(cluster)
    cluster.member("node3").stop()
    on_primary(folder, "insert into t select generate_series(1, 1000)")
    wait_until(lambda: not status(folder)["members"][1]["lag_bytes"], 20)
    cluster.primary.kill()
    cluster.member("node3").start()
    refused = pgdyno("cluster", "failover", folder, "--to", "node3")
    assert refused.code == 3 and tells(refused.err, "error-bytes-wal-more-than", named="node3")
    done = pgdyno("cluster", "failover", folder, "--to", "node3", "--force")
    assert done.code == 0, done.err
    # Started again, the old primary would take writes.
    assert pgdyno("cluster", "stop", folder).code == 0
    started = pgdyno("cluster", "start", folder)
    assert started.code == 1 and tells(started.out, "cluster-left-stopped", name="node1")
    assert roles(folder) == {"node1": "stopped", "node2": "standby", "node3": "primary"}
    assert pgdyno("cluster", "rejoin", folder).code == 0
    on_primary(folder, "insert into t values (-1)")
    assert everywhere(folder, "select a from t") == [[(-1,)]] * 3


@pytest.mark.slow
def test_the_most_advanced_is_promoted_whatever_its_control_file_says(make: Maker) -> None:
    # Of a standby whose WAL receiver is gone the control file has the timeline of its last restartpoint: that of one
    # that was restarted is newer than that of one that has only followed. A drill lost commits by comparing these.
    folder = make("--no-network")
    on_primary(folder, "create table t (a int)")
    assert pgdyno("cluster", "switchover", folder, "--to", "node2").code == 0
    cluster = ReplicatedCluster(folder)
    cluster.member("node1").freeze()
    # More than sockets hold.
    on_primary(folder, "insert into t select generate_series(1, 400000)")
    node3 = cluster.member("node3")
    wait_until(lambda: state.member_state(node3).received == state.member_state(cluster.primary).received, 20)
    cluster.primary.kill()
    cluster.member("node1").thaw()
    wait_until(lambda: state.received_timeline(node3) is None, 20)
    assert roles_of.candidate(cluster)[0].name == "node3"


@pytest.mark.slow
def test_a_pgdyno_that_is_killed_leaves_what_repair_ends(make: Maker) -> None:
    folder = make("--no-network")
    on_primary(folder, "create table t as select 1 as a")
    rng = [0.05, 0.15, 0.25, 0.4, 0.7]
    for n, seconds in enumerate(rng):
        verb = ["switchover", "rejoin"][n % 2] if n < 4 else "switchover"
        arguments = [PGDYNO, "cluster", verb, folder] + (["node2"] if verb == "rejoin" and n else [])
        victim = subprocess.Popen(list(map(str, arguments)), env=environment(), stderr=subprocess.DEVNULL)
        # What importing takes, and then somewhere within.
        time.sleep(0.5 + seconds)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        half_done = json.loads((folder / "replication.json").read_text()).get("unfinished")
        if half_done:
            assert any(tells(t, "leftover-operation") for t in status(folder)["troubles"])
        repaired = pgdyno("cluster", "repair", folder)
        assert repaired.code == 0, repaired.err
        assert status(folder)["troubles"] == []
        assert sorted(roles(folder).values()) == ["primary", "standby", "standby"]
    assert everywhere(folder, "select a from t") == [[(1,)]] * 3


@pytest.mark.slow
def test_a_failover_or_a_snapshot_that_is_killed(make: Maker) -> None:
    folder = make("--no-network", "--archive", "--sync", "ANY 1 (*)")
    on_primary(folder, "create table t as select 1 as a")
    for n, seconds in enumerate((0.05, 0.2, 0.4, 0.7)):
        for verb in ("snapshot", "failover"):
            if verb == "failover":
                ReplicatedCluster(folder).primary.kill()
            victim = subprocess.Popen([PGDYNO, "cluster", verb, folder], env=environment(), stdout=subprocess.DEVNULL)
            # What importing takes, and then somewhere within.
            time.sleep(0.5 + seconds)
            victim.kill()
            victim.wait()
            repaired = pgdyno("cluster", "repair", folder)
            assert repaired.code == 0, (n, verb, repaired.err)
            assert status(folder)["troubles"] == []
            assert sorted(roles(folder).values()) == ["primary", "standby", "standby"]
            # Of a snapshot all is there, or nothing.
            assert all((s / archives.SNAPSHOT).exists() for s in archives.snapshots_of(folder).glob("*"))
    assert everywhere(folder, "select a from t") == [[(1,)]] * 3
    assert pgdyno("cluster", "snapshot", folder).code == 0
    back = pgdyno("cluster", "flashback", folder, "--to", "latest", "--into", folder.parent / "back", "--json")
    assert back.code == 0 and back.json["rows"]["public.t"] == 1, back.err
    ManagedCluster(folder.parent / "back").stop()


@pytest.mark.slow
def test_a_half_rewound_member_is_not_started(make: Maker) -> None:
    folder = make("--no-network")
    on_primary(folder, "create table t as select 1 as a")
    assert pgdyno("cluster", "stop", folder).code == 0
    # As pgdyno leaves it that is killed within pg_rewind: a mix of blocks of two times.
    ReplicatedCluster(folder).member("node3").begin_rewinding()
    started = pgdyno("cluster", "start", folder)
    assert started.code == 1 and tells(started.err + started.out, "cluster-left-stopped", name="node3")
    assert any(tells(t, "leftover-rewind", member="node3") for t in status(folder)["troubles"])
    assert pgdyno("cluster", "repair", folder).code == 0
    assert status(folder)["troubles"] == [] and everywhere(folder, "select a from t") == [[(1,)]] * 3


@pytest.mark.slow
def test_an_unfinished_snapshot_is_removed_by_the_next(make: Maker) -> None:
    folder = make("--no-network", "--archive")
    left = archives.snapshots_of(folder) / "20260101-000000-node2" / "data"
    left.mkdir(parents=True)
    (left / "PG_VERSION").write_text("18\n")
    assert any(tells(t, "leftover-snapshots-one", n=1) for t in status(folder)["troubles"])
    assert pgdyno("cluster", "snapshot", folder).code == 0
    assert status(folder)["troubles"] == []
    assert [s.parent.parent == left.parent.parent for s in archives.snapshots_of(folder).glob("*/data")] == [True]
    assert not left.exists()


@pytest.mark.slow
def test_a_creation_that_is_killed_is_finished(base: Path) -> None:
    for n, seconds in enumerate((0.6, 1.0, 1.3)):
        folder = base / str(n)
        arguments = [PGDYNO, "cluster", "create", folder, "--standbys", "2", "--no-network"]
        victim = subprocess.Popen(list(map(str, arguments)), env=environment(), stdout=subprocess.DEVNULL)
        time.sleep(seconds)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        if not (folder / "replication.json").exists():
            continue
        try:
            repaired = pgdyno("cluster", "repair", folder)
            assert repaired.code == 0, repaired.err
            assert sorted(roles(folder).values()) == ["primary", "standby", "standby"]
        finally:
            build.destroy(ReplicatedCluster(folder))


@pytest.mark.slow
def test_an_older_version(make: Maker) -> None:
    folder = make("--pg-bin", folder_of(15), "--sync", "FIRST 1 (node1, node2, node3)")
    assert pgdyno("cluster", "switchover", folder).code == 0
    ReplicatedCluster(folder).primary.kill()
    assert pgdyno("cluster", "failover", folder, "--force").code == 0
    assert pgdyno("cluster", "rejoin", folder).code == 0 and status(folder)["troubles"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--standbys", "2", "--sync", "ANY 3 (*)"], 2, "commits would wait for ever"),
        (["--standbys", "2", "--sync", "FIRST 1 (node1)"], 2, "commits would wait for ever"),
        (["--standbys", "2", "--sync", "ANY x"], 2, "not what synchronous_standby_names takes"),
        (["--sync", "ANY 1 (*)"], 2, "--sync needs --standbys"),
        (["--standbys", "1", "--set", "port=7"], 2, "port is pgdyno's"),
        (["--standbys", "1", "--no-network", "--set", "shared_buffers=nonsense"], 3, "does not take its settings"),
    ],
)
def test_what_makes_no_sense_makes_nothing(base: Path, arguments: list[str], code: int, words: str) -> None:
    done = pgdyno("cluster", "create", base / "c", *arguments)
    assert done.code == code and words in " ".join(done.err.split()), done.err
    assert not (base / "c").exists()


@pytest.mark.slow
def test_verbs_for_standbys_name_what_there_is_not(tmp_path: Path) -> None:
    for verb in ("switchover", "failover", "rejoin", "repair"):
        done = pgdyno("cluster", verb, tmp_path)
        assert done.code == 3 and tells(done.err, "error-holds-no-cluster-standbys-no")
    destroyed = pgdyno("cluster", "destroy", tmp_path)
    assert destroyed.code == 3 and tells(destroyed.err, "error-no-cluster-pgdyno-s-no") and tmp_path.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_passwords_are_shown_to_nobody(make: Maker) -> None:
    folder = make("--no-network", standbys=1)
    known = json.loads((folder / "replication.json").read_text())
    secrets = [known["replication_password"], known["client_password"]]
    for done in (pgdyno("cluster", "status", folder), pgdyno("cluster", "status", folder, "--json")):
        assert not any(s in done.out + done.err for s in secrets)
    processes = subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout
    assert not any(s in processes for s in secrets)
    # The file is the server's, and nobody else's to read.
    assert (folder / "node2" / "passfile").stat().st_mode & 0o077 == 0


@pytest.mark.slow
@pytest.mark.skipif(not networks.is_possible(), reason="network namespaces need root and ip")
def test_links_are_slow_or_cut_while_a_command_runs(make: Maker) -> None:
    folder = make("--sync", "ANY 1 (*)", standbys=1)
    on_primary(folder, "create table t (a int)")
    cluster = ReplicatedCluster(folder)

    def commit_ms() -> float:
        with administration.connect(cluster.primary.local) as conn:
            conn.execute("set search_path = public; set synchronous_commit = on")
            took = []
            for _ in range(3):
                began = time.monotonic()
                conn.execute("insert into t values (1)")
                took.append(time.monotonic() - began)
        return min(took) * 1e3

    def link(*args: Any) -> subprocess.Popen[str]:
        argv = [PGDYNO, "cluster", "link", folder, *args]
        process = subprocess.Popen(
            [*map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        assert process.stdout is not None
        assert "node1 – node2" in process.stdout.readline()
        return process

    # Between a plain commit and one over the slow link lies more than a busy disk adds.
    assert commit_ms() < 200
    process = link("--between", "node1,node2", "--round-trip-ms", 400)
    assert 400 <= commit_ms() < 4000
    # What a drill would cut there would go on.
    refused = pgdyno("drill", folder, "--fault", "cut-standby", "--rounds", 1, "--runs", folder.parent)
    assert refused.code == 3 and tells(refused.err, "error-pgdyno-cluster-link-slows-links"), refused.err
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and "carried" in out and out.endswith("as it was\n"), err
    assert commit_ms() < 200
    # A cut link: nothing is acknowledged until it is mended.
    process = link("--cut")
    committing = threading.Thread(target=commit_ms, daemon=True)
    committing.start()
    with administration.connect(cluster.primary.local) as conn:
        waits = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"
        wait_until(lambda: conn.execute(waits).fetchone() == (1,), 20)
        time.sleep(0.5)
        assert conn.execute(waits).fetchone() == (1,) and committing.is_alive()
    assert any(tells(t, "leftover-link", one="node1", other="node2") for t in status(folder)["troubles"])
    refused = pgdyno("drill", folder, "--rounds", 1, "--runs", folder.parent)
    assert refused.code == 4 and "node2 is cut" in refused.err, refused.err
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    committing.join(20)
    assert not committing.is_alive()
    # For some seconds only: it ends by itself.
    assert link("--cut", "--seconds", 1).wait(20) == 0
    # Killed in the middle, it leaves no slow link behind.
    process = link("--round-trip-ms", 400)
    process.kill()
    process.communicate()
    assert commit_ms() < 200
    for arguments, words in (
        ([], "no change of the link given"),
        (["--cut", "--rate", "1MB"], "no change of the link given"),
        (["--rate", "fast"], "not a size"),
        (["--cut", "--between", "node1,node9"], "The members are node1, node2"),
    ):
        done = pgdyno("cluster", "link", folder, *arguments)
        assert done.code == 2 and words in done.err, done.err


@pytest.mark.slow
def test_standbys_that_are_there_are_measured(make: Maker, tmp_path: Path) -> None:
    """Whoever's they are: by a connection string alone."""
    folder = make("--sync", "ANY 1 (*)", "--no-network")
    words = ["--duration", "2", "--warmup", "0.3", "--repetitions", "1", "--clients", "4", "--scale", "1"]
    conninfo = ReplicatedCluster(folder).conninfo
    done = pgdyno("run", "quick", "--target", conninfo, *words, "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    writes = [r for r in done.json["replication"] if r["workload"] == "read-write"]
    assert writes and all(r["lag"] and r["waiting"]["mean"] > 0 and len(r["standbys"]) == 2 for r in writes), writes
    assert tells((Path(done.json["path"]) / "report.md").read_text(), "table-replication")
    # A standby only reads: what writes is left out, and said.
    cluster = ReplicatedCluster(folder)
    node = cluster.members[1]
    standby = (
        f"host={node.address} port={node.port} user=pgdyno dbname=postgres password={cluster.record.client_password}"
    )
    done = pgdyno("run", "quick", "--target", standby, *words, "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    assert tells(done.err, "progress-left-out", workloads="read-write")
    assert {t["workload"] for t in done.json["trials"]} == {"read-only"}


@pytest.mark.slow
def test_without_namespaces_there_is_no_link(make: Maker) -> None:
    done = pgdyno("cluster", "link", make("--no-network", standbys=1), "--cut")
    assert done.code == 3 and tells(done.err, "error-members-share-this-machine-s")
