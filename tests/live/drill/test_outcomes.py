"""Drills on real clusters: what each fault must lose, and what it must not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pgdyno.replication import build, configuration
from pgdyno.replication.cluster import ReplicatedCluster

from tests.support.cli import pgdyno
from tests.support.drills import drilled, needs_network
from tests.support.folders import reachable
from tests.support.tells import tells


def test_a_killed_primary_loses_nothing_and_everybody_comes_back(cluster: Path, tmp_path: Path) -> None:
    found = drilled(cluster, tmp_path, "--fault", "kill-primary", "--rounds", 1, "--clients", 4)
    (v,) = found["verdicts"]
    assert found["code"] == 0 and v["good"] and v["errors"] == [] and found["damaged"] == {}, json.dumps(found)
    assert v["acknowledged"] > 100 and v["lost"] == 0 and v["not_back"] == 0
    assert 0 < v["promote_s"] < v["outage_p50_s"] and v["detected_s"] > 0.4
    folder = Path(found["folder"])
    assert json.loads((folder / "drill.json").read_text())["verdicts"] == found["verdicts"]
    page = (folder / "report.html").read_text()
    assert tells(page, "drill-nothing-lost") and "http" not in page.split("<script>")[0]
    (played,) = folder.glob("*/round-01")
    assert len(list((played / "ledger").glob("client-*.log"))) == 4
    events = [m and m["id"] for m in json.loads((played / "round.json").read_text())["messages"]["events"]]
    places = [events.index(f"drill-event-{name}") for name in ("killed", "detected", "promoted")]
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
    assert restarted["seen_and_missing"] > 0 and tells(restarted["why"], "drill-why-seen")
    assert tells(found["double-failure"]["why"], "drill-why-double")
    assert "less WAL" in found["stale-promotion"]["why"]
    # A primary that is stopped in order answers what it has; the time out of service is that of finding out.
    assert found["freeze-primary"]["outage_p50_s"] > 0.5
    # Nobody waits for one standby of two: it would be for as long as it is cut off.
    assert found["cut-standbys"]["outage_p50_s"] > 9 > 3 * found["cut-standby"]["outage_p50_s"]


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
    configuration.change_settings(c, synchronous_commit="remote_write")
    try:
        found = drilled(cluster, tmp_path, "--fault", "kill-primary,freeze-primary", "--rounds", 2)
    finally:
        configuration.change_settings(ReplicatedCluster(cluster), synchronous_commit="on")
    assert found["code"] == 0 and [v["lost"] for v in found["verdicts"]] == [0, 0]
    assert all(v["acknowledged"] > 100 and v["errors"] == [] for v in found["verdicts"])


@pytest.mark.slow
@needs_network
def test_asynchronous_standbys_behind_slow_links_lose(cluster: Path, tmp_path: Path) -> None:
    found = drilled(cluster, tmp_path, "--fault", "slow-standbys", "--rounds", 1)
    (v,) = found["verdicts"]
    assert found["code"] == 0 and v["lost"] == 0 and v["errors"] == []
    c = ReplicatedCluster(cluster)
    configuration.change_settings(c, synchronous_standby_names="")
    try:
        found = drilled(cluster, tmp_path / "async", "--fault", "slow-standbys", "--rounds", 1)
    finally:
        configuration.change_settings(ReplicatedCluster(cluster), synchronous_standby_names="ANY 1 (*)")
    (v,) = found["verdicts"]
    assert found["code"] == 1 and v["lost_in_silence"] > 0 and "asynchronous" in v["why"], v


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
            build.destroy(ReplicatedCluster(folder))
        assert not folder.exists()
