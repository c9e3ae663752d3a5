"""Drills on real clusters: in each protection mode, under other workloads, on other versions."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pgdyno.cluster import administration
from pgdyno.drill import drill as drills
from pgdyno.drill import modes
from pgdyno.drill.beside import Beside
from pgdyno.drill.own import OwnTarget
from pgdyno.drill.records import Options
from pgdyno.message import Name, message
from pgdyno.replication import build, configuration, following
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.stream.stream import RunStream

from tests.support import versions
from tests.support.cli import pgdyno
from tests.support.drills import drilled, needs_network
from tests.support.folders import reachable
from tests.support.waiting import wait_until


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
    with modes.manager(c, available), administration.connect(c.primary.local, patience_s=30) as conn:
        conn.execute("create table if not exists public.t (a int)")
        try:
            for m in c.others(c.primary):
                c.network.cut(c.primary.name, m.name)
            began = time.monotonic()
            conn.execute("insert into public.t values (1)")
            # As long as the primary takes to give its standbys up, which is wal_sender_timeout.
            assert 3 < time.monotonic() - began < 15
            assert configuration.setting_of(c, "synchronous_standby_names") == ""
        finally:
            c.network.mend_all()
        wait_until(lambda: bool(configuration.setting_of(c, "synchronous_standby_names")), 20)
        # Members, not anybody: who takes a base backup streams as well.
        assert configuration.setting_of(c, "synchronous_standby_names") == "ANY 1 (node1, node2, node3)"
        for m in c.others(c.primary):
            following.wait_streaming(c, m)


@pytest.mark.slow
@needs_network
def test_a_mode_that_falls_back_loses_with_its_next_failure(cluster: Path, tmp_path: Path) -> None:
    c = ReplicatedCluster(cluster)
    available, protected = (m for m in modes.MODES if m.name in ("maximum availability", "maximum protection"))
    options = Options(clients=4, before_s=1.0, after_s=0.3)
    found = drills.run(
        OwnTarget(c), ["kill-lonely-primary"], 1, options, tmp_path / "d", RunStream(), all_modes=(available, protected)
    )
    (_, lost), (_, kept) = found.verdicts
    assert not lost.errors and not kept.errors and not found.stopped
    assert lost.lost_in_silence > 0 and lost.why == message("drill-why-fell-back") and kept.lost == 0
    assert not available.keeps("kill-lonely-primary") and protected.keeps("kill-lonely-primary")


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
        with administration.connect(ReplicatedCluster(cluster).primary.local) as conn:
            conn.execute(
                "delete from public.tpcc_new_order where no_o_id = (select max(no_o_id) from public.tpcc_new_order)"
            )
        broken = Beside(workload, 3, 1).inconsistent(OwnTarget(ReplicatedCluster(cluster)).client(), {})
        assert broken and all(b.id == "drill-condition-broken" for b in broken), broken
    else:
        target, beside_it = OwnTarget(ReplicatedCluster(cluster)), Beside(workload, 3, 1)
        sums = beside_it.sums(target.client())
        assert beside_it.inconsistent(target.client(), sums) == []
        with administration.connect(target.primary()) as conn:
            conn.execute("update public.pgbench_tellers set tbalance = tbalance + 7 where tid = 1")
        (broken_one,) = beside_it.inconsistent(target.client(), sums)
        assert broken_one.id == "drill-sums-differ" and broken_one.args["table"] == Name("pgbench_tellers")
    refused = pgdyno("drill", cluster, "--workload", "sysbench")
    assert refused.code == 2 and "'sysbench' is unknown" in refused.err


@pytest.mark.slow
@pytest.mark.parametrize("major", [14, 16, 17])
def test_other_versions_keep_their_promise_and_go_back(major: int, tmp_path: Path) -> None:
    found = versions.folder_of(major)
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
            build.destroy(ReplicatedCluster(folder))
