"""Drills on real clusters: what is promised is kept, and what is lost is found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pgdyno.cluster import network as networks
from pgdyno.cluster import target as targets
from pgdyno.drill import drill as drills
from pgdyno.drill import ledger, modes
from pgdyno.drill.beside import Beside
from pgdyno.drill.rounds import Options
from pgdyno.replication.cluster import ReplicatedCluster

from tests.support import versions
from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.folders import reachable
from tests.support.waiting import wait_until

needs_network = pytest.mark.skipif(not networks.is_possible(), reason="cutting links needs root, ip and setpriv")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """A primary and two standbys, commits wait for one."""
    with reachable() as base:
        folder = base / "c"
        small = ("--set", "shared_buffers=32MB", "--set", "min_wal_size=80MB")
        done = pgdyno("cluster", "create", folder, "--standbys", 2, "--sync", "ANY 1 (*)", *small)
        assert done.code == 0, done.err
        yield folder
        ReplicatedCluster(folder).destroy()


@pytest.fixture(autouse=True)
def whole(cluster: Path) -> Iterator[None]:
    """However a drill went, the cluster is whole again after it, and its settings are as they were."""
    yield
    shown = pgdyno("cluster", "status", cluster, "--json")
    assert shown.json["troubles"] == [] and shown.json["synchronous_standby_names"] == "ANY 1 (*)"
    assert ReplicatedCluster(cluster).setting("synchronous_commit") == "on"


def drilled(cluster: Path, tmp_path: Path, *args: Any, timeout: float = 160) -> Any:
    done = pgdyno(
        "drill", cluster, "--runs", tmp_path, "--json", "-q", "--before", 1, "--after", 0.3, *args, timeout=timeout
    )
    assert done.code in (0, 1), done.err
    return done.json | {"code": done.code}


def test_a_killed_primary_loses_nothing_and_everybody_comes_back(cluster: Path, tmp_path: Path) -> None:
    found = drilled(cluster, tmp_path, "--fault", "kill-primary", "--rounds", 1, "--clients", 4)
    (v,) = found["verdicts"]
    assert found["code"] == 0 and v["good"] and v["errors"] == [] and found["damaged"] == {}, json.dumps(found)
    assert v["acknowledged"] > 100 and v["lost"] == 0 and v["not_back"] == 0
    assert 0 < v["promote_s"] < v["outage_p50_s"] and v["detected_s"] > 0.4
    folder = Path(found["folder"])
    assert json.loads((folder / "drill.json").read_text())["verdicts"] == found["verdicts"]
    page = (folder / "report.html").read_text()
    assert "nothing lost: 0 of" in page and "http" not in page.split("<script>")[0]
    (played,) = folder.glob("*/round-01")
    assert len(list((played / "ledger").glob("client-*.log"))) == 4
    events = [text for _, text in json.loads((played / "round.json").read_text())["events"]]
    order = ("all processes killed", "take the primary for dead", "promoted in")
    places = [next(i for i, e in enumerate(events) if word in e) for word in order]
    assert places == sorted(places)


@pytest.mark.slow
@needs_network
@pytest.mark.timeout(660)
def test_each_fault_has_its_outcome(cluster: Path, tmp_path: Path) -> None:
    verdicts = drilled(cluster, tmp_path, "--fault", "all", "--rounds", 1, timeout=600)["verdicts"]
    found = {v["fault"]: v for v in verdicts}
    assert all(v["errors"] == [] and v["differing"] == [] and not v["split_brain"] for v in found.values())
    must_lose = {"cancel-sync-wait", "double-failure", "stale-promotion"}
    assert {name for name, v in found.items() if v["lost"]} == must_lose
    # Cancelled waits: acknowledged behind a warning, and only those are lost.
    cancelled = found["cancel-sync-wait"]
    rows = (next(tmp_path.glob("*/*-cancel-sync-wait/round-01/lost.csv"))).read_text().splitlines()
    assert len(rows) == cancelled["lost"] + 1 and all(r.endswith(",warned") for r in rows[1:])
    assert cancelled["lost_in_silence"] == 0 and "behind a warning" in cancelled["why"]
    # Restarted while they wait: others saw them, nobody was told that they are committed.
    restarted = found["restart-during-sync-wait"]
    assert restarted["seen_and_missing"] > 0 and "others could read them" in restarted["why"]
    assert "refused to promote" in found["double-failure"]["why"]
    assert "less WAL" in found["stale-promotion"]["why"]
    # A primary that is stopped in order answers what it has; the time out of service is that of finding out.
    assert found["freeze-primary"]["outage_p50_s"] > 0.5
    # Nobody waits for one standby of two: it would be for as long as it is cut off.
    assert found["cut-standbys"]["outage_p50_s"] > 9 > 3 * found["cut-standby"]["outage_p50_s"]


@pytest.mark.slow
@needs_network
@pytest.mark.timeout(400)
def test_the_audit_can_fail(cluster: Path, tmp_path: Path) -> None:
    found = drilled(cluster, tmp_path, "--modes", "--rounds", 1, "--fault", "cut-primary,kill-primary", timeout=360)
    assert found["code"] == 0 and all(v["errors"] == [] for v in found["verdicts"])
    killed = {v["mode"]: v for v in found["verdicts"] if v["fault"] == "kill-primary"}
    by = {v["mode"]: v for v in found["verdicts"] if v["fault"] == "cut-primary"}
    # Acknowledged before it was anywhere: the kill itself loses it, and the report says so.
    unsafe = killed["no durability"]
    assert unsafe["lost_in_silence"] > 0 and "synchronous_commit = off" in unsafe["why"], unsafe
    assert "no durability" in (report := next(tmp_path.glob("*/report.html")).read_text()) and "lost" in report
    assert killed["maximum availability"]["lost"] == killed["maximum protection"]["lost"] == 0
    # Those that promise nothing may lose.
    # Cut off from its standbys the primary goes on for as long as nobody fences it.
    assert by["maximum performance"]["lost_in_silence"] > 0 and "asynchronous" in by["maximum performance"]["why"]
    assert by["no durability"]["lost_in_silence"] > 0 and "synchronous_commit = off" in by["no durability"]["why"]
    for mode in ("maximum availability", "maximum protection", "protection, replayed"):
        assert by[mode]["lost"] == 0 and by[mode]["acknowledged"] > 100


@pytest.mark.slow
@needs_network
def test_a_manager_falls_back_where_no_standby_is_there(cluster: Path) -> None:
    c = ReplicatedCluster(cluster)
    (available,) = [m for m in modes.MODES if m.falls_back]
    assert c.network is not None
    with modes.manager(c, available), targets.administrative(c.primary.local, patience_s=30) as conn:
        conn.execute("create table if not exists public.t (a int)")
        try:
            for m in c.others(c.primary):
                c.network.cut(c.primary.name, m.name)
            began = time.monotonic()
            conn.execute("insert into public.t values (1)")
            # As long as the primary takes to give its standbys up, which is wal_sender_timeout.
            assert 3 < time.monotonic() - began < 15
            assert c.setting("synchronous_standby_names") == ""
        finally:
            c.network.mend_all()
        deadline = time.monotonic() + 20
        while not c.setting("synchronous_standby_names") and time.monotonic() < deadline:
            time.sleep(0.1)
        # Members, not anybody: who takes a base backup streams as well.
        assert c.setting("synchronous_standby_names") == "ANY 1 (node1, node2, node3)"
        for m in c.others(c.primary):
            c.wait_streaming(m)


@pytest.mark.slow
@needs_network
def test_without_fencing_two_primaries_are_seen(cluster: Path, tmp_path: Path) -> None:
    found = drilled(cluster, tmp_path, "--fault", "cut-primary", "--rounds", 1, "--no-fence", "--after", 3)
    (v,) = found["verdicts"]
    # Both could have taken writes, and only one did.
    assert found["code"] == 1 and v["two_primaries"] == 1 and v["split_brain"] == 0 and v["divided"] == 0
    # Commits on the old one wait for a standby that never answers: nothing that was acknowledged is lost.
    assert v["lost_in_silence"] == 0


@pytest.mark.slow
@needs_network
@pytest.mark.parametrize("fault", ["kill-primary", "freeze-primary", "cut-primary"])
def test_a_drill_that_is_killed_leaves_what_repair_mends(cluster: Path, tmp_path: Path, fault: str) -> None:

    def is_over(folder: Path) -> bool:
        return any(json.loads(f.read_text())["events"] for f in folder.glob("**/round.json"))

    # Just behind the fault; while the standbys find out; while one is promoted; while all is compared and mended.
    for number, seconds in enumerate((1.1, 1.4, 1.9, None)):
        folder = tmp_path / str(number)
        words = ("drill", cluster, "--fault", fault, "--rounds", 1, "--before", 1, "--runs", folder, "-q")
        victim = subprocess.Popen([PGDYNO, *map(str, words)], env=environment(), stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda at=folder: any(f.stat().st_size for f in at.glob("**/client-*.log")))  # type: ignore[misc]
            if seconds is None:
                wait_until(lambda at=folder: is_over(at))  # type: ignore[misc]
            else:
                time.sleep(seconds)
        finally:
            victim.kill()
            victim.wait()
        words = ("drill", cluster, "--fault", fault, "--rounds", 1, "--runs", tmp_path, "-q")
        refused = pgdyno(*words) if seconds is not None else None
        shown = pgdyno("cluster", "status", cluster, "--json").json["troubles"]
        assert refused is None or (refused.code != 0 and shown), (refused, shown)
        repaired = pgdyno("cluster", "repair", cluster)
        assert repaired.code == 0, repaired.err
        (file,) = folder.glob("**/round.json")
        left = json.loads(file.read_text())
        assert left["error"] == "pgdyno was killed within this round"
        # Wherever it was cut off: what clients were told is kept.
        entries = ledger.read(file.parent / "ledger")
        with targets.administrative(ReplicatedCluster(cluster).primary.local) as conn:
            audit = ledger.audit(entries, ledger.rows(conn, left["run"]), fault_ns=time.time_ns())
        assert audit.acknowledged > 100 and not audit.lost and not audit.resurrected
    assert drilled(cluster, tmp_path, "--fault", fault, "--rounds", 1)["verdicts"][0]["lost"] == 0


def test_ctrl_c_in_a_failover_mends_and_reports_what_was_done(cluster: Path, tmp_path: Path) -> None:
    words = ("drill", cluster, "--fault", "kill-primary", "--rounds", 3, "--before", 1, "--after", 0.3)
    drill = subprocess.Popen(
        [PGDYNO, *map(str, words), "--runs", tmp_path],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def is_broken() -> bool:
        records = [f for f in tmp_path.glob("**/round-02/ledger/client-*.log") if f.stat().st_size]
        return bool(records) and ReplicatedCluster(cluster).primary.process_id is None

    # In the second round, when the primary is dead and nobody is promoted yet.
    wait_until(is_broken)
    drill.send_signal(signal.SIGINT)
    out, err = drill.communicate(timeout=90)
    assert drill.returncode == 130, err
    assert "mending the cluster" in err and "the cluster is whole" in err, err
    assert "nothing lost: 0 of" in out and "1 of 2 rounds do not count" in " ".join(out.split()), out
    assert "ended early" in out, out
    (folder,) = tmp_path.glob("*-drill-*")
    page = folder / "report.html"
    page.unlink()
    # The same by the verb, also of one that is killed.
    shown = pgdyno("report", folder)
    assert shown.code == 0 and "nothing lost: 0 of" in shown.out and page.exists(), shown.err
    assert "What happened" in page.read_text() and "synchronous_standby_names" in page.read_text()


@pytest.mark.slow
def test_a_split_brain_that_stays_has_a_number(tmp_path: Path) -> None:
    """A failover script without fencing: both are primaries for ever, and clients are on either."""
    with reachable() as base:
        folder = base / "c"
        assert pgdyno("cluster", "create", folder, "--standbys", 1, "--set", "shared_buffers=32MB").code == 0
        made = ReplicatedCluster(folder)
        try:
            members = {m.name: m.local for m in made.members}
            sockets = {n: f"host={t.host} port={t.port} user={t.user} dbname={t.dbname}" for n, t in members.items()}
            psql = made.primary.program("psql")
            (standby,) = made.others(made.primary)
            half = (
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where pid <> pg_backend_pid() and backend_type = 'client backend' and pid % 2 = 0"
            )
            run = f"{psql} -qAtc '{{}}' '{{}}' >/dev/null"
            promote = run.format("select pg_promote()", sockets[standby.name])
            split = run.format(half.replace("'", "$$"), sockets[made.primary.name])
            text = 'name = "split"\nfailover_s = 5\nserved_s = 3\nwhole_s = 3\n[members]\n'
            text += "".join(f'{n} = "{t}"\n' for n, t in sockets.items())
            text += f'[faults]\npromote = """{promote}; {split}"""\n'
            (tmp_path / "split.toml").write_text(text)
            words = ("--rounds", 1, "--clients", 8, "--after", 2, "--runs", tmp_path, "--json", "-q")
            done = pgdyno("drill", tmp_path / "split.toml", "--i-know-this-breaks-it", *words, timeout=120)
            assert done.code == 1, done.err
            (v,) = done.json["verdicts"]
            assert v["verdict"].startswith("SPLIT BRAIN: ") and v["divided"] > 0 and v["two_primaries"] == 1, v
            (file,) = tmp_path.glob("*/*/round-01/round.json")
            entries = ledger.read(file.parent / "ledger")
            run_number = json.loads(file.read_text())["run"]
            having = []
            for t in members.values():
                with targets.administrative(t) as conn:
                    having.append(set(ledger.rows(conn, run_number)))
            acknowledged = {e.key for e in entries if e.outcome == "acknowledged"}
            # By hand.
            assert v["divided"] == len(acknowledged & (having[0] ^ having[1])) and v["lost"] == 0
        finally:
            made.destroy()


@pytest.mark.slow
def test_a_damaged_member_is_found(cluster: Path) -> None:
    c = ReplicatedCluster(cluster)
    with targets.administrative(c.primary.local) as conn:
        conn.execute("create extension if not exists amcheck with schema pg_catalog")
        conn.execute("create table public.damaged as select generate_series(1, 10000) as a")
        conn.execute("create index on public.damaged (a)")
        row = conn.execute("select pg_relation_filepath('public.damaged_a_idx')").fetchone()
        conn.execute("checkpoint")
    c.wait_caught_up()
    assert row is not None and [drills._checked(m) for m in c.members] == ["", "", ""]
    (victim, *_) = c.others(c.primary)
    victim.stop()
    with (victim.data / row[0]).open("r+b") as f:
        f.seek(2 * 8192 + 4000)
        f.write(b"\xff" * 200)
    victim.start()
    try:
        c.wait_streaming(victim)
        assert "damaged_a_idx" in drills._checked(victim) and drills._checked(c.primary) == ""
    finally:
        c.rebuild(victim, c.primary, lambda *_: None)
        victim.start()
        c.wait_streaming(victim)


@pytest.mark.slow
@needs_network
def test_a_frozen_primary_that_nobody_fences_is_seen_when_it_wakes(cluster: Path, tmp_path: Path) -> None:
    found = drilled(cluster, tmp_path, "--fault", "freeze-primary", "--rounds", 1, "--no-fence")
    (v,) = found["verdicts"]
    assert found["code"] == 1 and v["two_primaries"] == 1


@pytest.mark.slow
@needs_network
def test_what_a_standby_has_in_memory_is_enough(cluster: Path, tmp_path: Path) -> None:
    c = ReplicatedCluster(cluster)
    c.set(synchronous_commit="remote_write")
    try:
        found = drilled(cluster, tmp_path, "--fault", "kill-primary,freeze-primary", "--rounds", 2)
    finally:
        ReplicatedCluster(cluster).set(synchronous_commit="on")
    assert found["code"] == 0 and [v["lost"] for v in found["verdicts"]] == [0, 0]
    assert all(v["acknowledged"] > 100 and v["errors"] == [] for v in found["verdicts"])


@pytest.mark.slow
@needs_network
def test_asynchronous_standbys_behind_slow_links_lose(cluster: Path, tmp_path: Path) -> None:
    found = drilled(cluster, tmp_path, "--fault", "slow-standbys", "--rounds", 1)
    (v,) = found["verdicts"]
    assert found["code"] == 0 and v["lost"] == 0 and v["errors"] == []
    c = ReplicatedCluster(cluster)
    c.set(synchronous_standby_names="")
    try:
        found = drilled(cluster, tmp_path / "async", "--fault", "slow-standbys", "--rounds", 1)
    finally:
        ReplicatedCluster(cluster).set(synchronous_standby_names="ANY 1 (*)")
    (v,) = found["verdicts"]
    assert found["code"] == 1 and v["lost_in_silence"] > 0 and "asynchronous" in v["why"], v


@pytest.mark.slow
@needs_network
def test_a_mode_that_falls_back_loses_with_its_next_failure(cluster: Path, tmp_path: Path) -> None:
    c = ReplicatedCluster(cluster)
    available, protected = (m for m in modes.MODES if m.name in ("maximum availability", "maximum protection"))
    options = Options(clients=4, before_s=1.0, after_s=0.3)
    found = drills.run(
        c, ["kill-lonely-primary"], 1, options, tmp_path / "d", lambda *_: None, in_modes=(available, protected)
    )
    (_, lost), (_, kept) = found.verdicts
    assert not lost.errors and not kept.errors and not found.stopped
    assert lost.lost_in_silence > 0 and "fell back" in lost.why and kept.lost == 0
    assert not available.keeps("kill-lonely-primary") and protected.keeps("kill-lonely-primary")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems")
def test_a_full_disk_stops_commits_and_loses_none(tmp_path: Path) -> None:
    with reachable() as base:
        folder = base / "c"
        small = ("--set", "shared_buffers=32MB", "--set", "min_wal_size=80MB", "--set", "max_wal_size=96MB")
        made = pgdyno("cluster", "create", folder, "--standbys", 1, "--sync", "ANY 1 (*)", "--disk", "400MB", *small)
        assert made.code == 0, made.err
        try:
            found = drilled(folder, tmp_path, "--fault", "disk-full", "--rounds", 1)
            (v,) = found["verdicts"]
            assert found["code"] == 0 and v["errors"] == [] and v["lost"] == 0 and v["outage_max_s"] > 4, v
            assert pgdyno("cluster", "stop", folder).code == 0
            assert not (folder / "node1").is_mount()
            assert pgdyno("cluster", "start", folder).code == 0
        finally:
            ReplicatedCluster(folder).destroy()
        assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["tpcb-like", "tpcc"])
def test_a_drill_under_another_workload(cluster: Path, tmp_path: Path, workload: str) -> None:
    beside = ("--workload", workload, "--scale", 1, "--workload-clients", 3)
    found = drilled(cluster, tmp_path, "--fault", "kill-primary", "--rounds", 1, "--clients", 4, *beside)
    (v,) = found["verdicts"]
    assert found["code"] == 0 and v["good"] and v["beside_tps"] > 10, json.dumps(found)
    assert v["inconsistent"] == []
    if workload == "tpcc":
        # Orders of which a failover would have kept a part are seen.
        with targets.administrative(ReplicatedCluster(cluster).primary.local) as conn:
            conn.execute(
                "delete from public.tpcc_new_order where no_o_id = (select max(no_o_id) from public.tpcc_new_order)"
            )
        broken = Beside(workload, 3, 1).inconsistent(ReplicatedCluster(cluster), {})
        assert broken and broken[0].startswith("TPC-C 3.3.2."), broken
    else:
        made, beside_it = ReplicatedCluster(cluster), Beside(workload, 3, 1)
        sums = beside_it.sums(made)
        assert beside_it.inconsistent(made, sums) == []
        with targets.administrative(made.primary.local) as conn:
            conn.execute("update public.pgbench_tellers set tbalance = tbalance + 7 where tid = 1")
        (broken_one,) = beside_it.inconsistent(made, sums)
        assert "pgbench_tellers" in broken_one and "there in part" in broken_one
    refused = pgdyno("drill", cluster, "--workload", "sysbench")
    assert refused.code == 2 and "'sysbench' is unknown" in refused.err


@pytest.mark.slow
@pytest.mark.parametrize("major", [14, 16, 17])
def test_other_versions_keep_their_promise_and_go_back(major: int, tmp_path: Path) -> None:
    found = versions.programs(major)
    if found is None:
        pytest.skip(f"PostgreSQL {major} can neither be found nor fetched")
    with reachable() as base:
        folder = base / "c"
        words = ("--standbys", 2, "--sync", "ANY 1 (*)", "--archive", "--pg-bin", found, "--set", "shared_buffers=32MB")
        done = pgdyno("cluster", "create", folder, *words)
        assert done.code == 0, done.err
        try:
            assert pgdyno("cluster", "snapshot", folder).code == 0
            drill = drilled(folder, tmp_path, "--fault", "kill-primary", "--rounds", 1, "--clients", 4)
            (v,) = drill["verdicts"]
            assert drill["code"] == 0 and v["good"] and drill["version"].startswith(f"{major}."), json.dumps(drill)
            # Fetched versions have initdb and postgres alone.
            whole = (found / "pg_controldata").exists()
            switched = pgdyno("cluster", "switchover", folder)
            assert switched.code == (0 if whole else 3) and ("pg_controldata" in switched.err) is not whole
            back = pgdyno("cluster", "flashback", folder, "--to", "latest", "--into", base / "was", "--json")
            assert back.code == 0, back.err
            here, there = back.json["ledger"]
            assert here == there > 0 and back.json["torn"] == 0
            assert pgdyno("cluster", "destroy", base / "was").code == 0
        finally:
            ReplicatedCluster(folder).destroy()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fault", "meteor"], "'meteor' is unknown"),
        (["--rounds", "0"], "--rounds"),
        (["--clients", "0"], "--clients"),
    ],
)
def test_what_makes_no_sense_breaks_nothing(cluster: Path, arguments: list[str], words: str) -> None:
    done = pgdyno("drill", cluster, *arguments)
    assert done.code == 2 and words in done.err


def test_only_clusters_of_ours_are_broken(tmp_path: Path) -> None:
    done = pgdyno("drill", tmp_path)
    assert done.code == 3 and "holds no cluster with standbys" in done.err
    assert "kill-primary" in pgdyno("drill", "--list").out
