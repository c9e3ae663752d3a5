"""A cgroup's limit on the processors: found wherever it stands, and read as it is used up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pgdyno.collect.sources.base import Row
from pgdyno.collect.sources.quota import Quota
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading

from tests.support import synthetic
from tests.support.tells import tells

POD, SERVER = "kubepods/pod1", "kubepods/pod1/server"


STAT = {
    1: "nr_periods {p}\nnr_throttled {t}\nthrottled_time {ms}000000\n",
    2: "usage_usec 5\nuser_usec 5\nnr_periods {p}\nnr_throttled {t}\nthrottled_usec {ms}000\nnr_bursts 0\n",
}


def cgroups(
    folder: Path,
    version: int,
    limits: dict[str, str],
    *counted: int,
    path: str = f"/{SERVER}",
    ours: bool = True,
    of: str = "",
) -> Quota:
    """The cgroups of a machine, and a process in one of them, which is also our own if it is `ours`. `limits`: quotas
    by cgroup, the period is 100 ms; `counted`: periods, those held back, ms, of all of them or of one.
    """
    proc, root = folder / "proc", folder / "cgroup"
    lines = {1: f"5:cpu,cpuacct:{path}\n4:memory:/other\n", 2: f"0::{path}\n"}
    for pid in ("7", "self") if ours else ("7",):
        (proc / pid).mkdir(parents=True, exist_ok=True)
        (proc / pid / "cgroup").write_text(lines[version])
    if not ours:
        (proc / "self").mkdir(parents=True, exist_ok=True)
        (proc / "self" / "cgroup").write_text("0::/\n")
    base = root if version == 2 else root / "cpu,cpuacct"
    for name in ("", "kubepods", POD, SERVER):
        (base / name).mkdir(parents=True, exist_ok=True)
    for name, quota in limits.items():
        if version == 2:
            (base / name / "cpu.max").write_text(f"{quota} 100000\n")
        else:
            (base / name / "cpu.cfs_quota_us").write_text(f"{quota}\n")
            (base / name / "cpu.cfs_period_us").write_text("100000\n")
        if counted and of in ("", name):
            (base / name / "cpu.stat").write_text(
                STAT[version].format(**dict(zip(("p", "t", "ms"), counted, strict=True)))
            )
    return Quota(7, proc, root)


def sampled(quota: Quota, folder: Path, version: int, limits: dict[str, str]) -> list[Row]:
    """A sample of 2 s in which 20 periods passed, 5 of them held back, for 1 s."""
    assert quota.rows(1.0) == []
    cgroups(folder, version, limits, 120, 15, 1500)
    return quota.rows(2.0)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("limits", "cpus"),
    [
        ({SERVER: "50000"}, 0.5),
        ({SERVER: "200000", POD: "150000", "kubepods": "-1"}, 1.5),
        ({SERVER: "-1"}, None),
        ({}, None),
    ],
)
def test_the_tightest_limit_is_read(tmp_path: Path, version: int, limits: dict[str, str], cpus: float | None) -> None:
    limits = {name: "max" if q == "-1" and version == 2 else q for name, q in limits.items()}
    quota = cgroups(tmp_path, version, limits, 100, 10, 500)
    found = sampled(quota, tmp_path, version, limits)
    assert found == ([] if cpus is None else [{"cpus": cpus, "held_back": 0.25, "throttled": 0.5}])


def test_the_limit_that_holds_it_back_is_the_one_that_counts(tmp_path: Path) -> None:
    """A neighbour in the pod uses up what is the pod's."""
    limits = {SERVER: "100000", POD: "150000"}
    quota = cgroups(tmp_path, 2, limits, 100, 10, 500)
    assert quota.rows(1.0) == []
    cgroups(tmp_path, 2, limits, 120, 20, 900, of=POD)
    assert quota.rows(1.0) == [{"cpus": 1.5, "held_back": 0.5, "throttled": pytest.approx(0.4)}]


def test_a_limit_may_be_set_changed_and_lifted_while_it_runs(tmp_path: Path) -> None:
    quota = cgroups(tmp_path, 2, {SERVER: "max"}, 100, 10, 500)
    assert quota.is_there and quota.rows(1.0) == []
    cgroups(tmp_path, 2, {SERVER: "50000"}, 100, 10, 500)
    assert quota.rows(1.0) == []
    cgroups(tmp_path, 2, {SERVER: "70000"}, 110, 20, 500)
    assert quota.rows(1.0) == [{"cpus": 0.7, "held_back": 1.0, "throttled": 0.0}]
    cgroups(tmp_path, 2, {SERVER: "max"}, 120, 30, 500)
    assert quota.rows(1.0) == []


def test_within_a_container_the_limit_is_its_own(tmp_path: Path) -> None:
    """Its cgroup is mounted as if it were the first, and the path is the machine's."""
    quota = cgroups(tmp_path, 1, {"": "25000"}, 100, 10, 500, path="/docker/1234")
    assert [row["cpus"] for row in sampled(quota, tmp_path, 1, {"": "25000"})] == [0.25]


@pytest.mark.parametrize("path", ["/docker/1234", "/../cri-1234"])
def test_another_containers_limit_is_not_ours(tmp_path: Path, path: str) -> None:
    assert not cgroups(tmp_path, 2, {"": "25000"}, 100, 10, 500, path=path, ours=False).is_there


def test_without_cgroups_there_is_none(tmp_path: Path) -> None:
    found = Quota(7, tmp_path, tmp_path)
    assert not found.is_there and found.rows(1.0) == []


def test_a_cgroup_that_is_gone_is_a_gap(tmp_path: Path) -> None:
    quota = cgroups(tmp_path, 2, {SERVER: "50000"}, 100, 10, 500)
    (tmp_path / "cgroup" / SERVER / "cpu.stat").unlink()
    with pytest.raises(OSError, match="No such file"):
        quota.rows(1.0)


@pytest.mark.parametrize(
    ("held", "throttled", "found"),
    # Held back often, seldom, and often for no time to speak of.
    [(0.9, 3.0, ["cpu-quota"]), (0.02, 3.0, []), (0.3, 0.01, [])],
)
def test_a_server_that_is_held_back_is_named(tmp_path: Path, held: float, throttled: float, found: list[str]) -> None:
    waits = {"kind": "client backend", "ours": 1.0, "state": "active", "wait_type": "", "wait": "", "processes": 8.0}
    machine = {"cores": 4.0, "cpu_user": 0.5, "cpu_system": 0.1, "cpu_idle": 3.4}
    machine |= dict.fromkeys(("cpu_nice", "cpu_iowait", "cpu_irq", "cpu_softirq", "cpu_steal"), 0.0)
    process: dict[str, Any] = {"kind": "client backend", "cpu": 0.5, "waiting_for_cpu": 7.0, "processes": 8.0}
    quota = {"cpus": 0.5, "held_back": held, "throttled": throttled}
    run = synthetic.make_run(
        tmp_path, synthetic.plans([32], 1), lambda *_: 1000.0, intervals=30,
        sampled={"waits": [waits], "machine": [machine], "processes": [process], "quota": [quota]},
    )  # fmt: skip
    findings = RunAnalysis(reading.read(run)).diagnosis.findings
    # Nor is it a matter of connections, of which there are eight a core.
    assert [f.cause for f in findings if f.cause in ("cpu-quota", "connections")] == (found or ["connections"])
    if found:
        assert tells(findings[0].sentence, "cpu-quota", allowed="0.5")
        assert findings[0].cause == "cpu-quota" and findings[0].cost.mean == pytest.approx(0.75)
