"""A cgroup's limit on the processors: found wherever it stands, and read as it is used up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pgdyno.collect.sources.quota import Quota
from pgdyno.diagnosis import explain
from pgdyno.store import reading

from tests.support import synthetic

POD, SERVER = "kubepods/pod1", "kubepods/pod1/server"


def cgroups(folder: Path, version: int, limits: dict[str, str], stat: str, *, path: str = f"/{SERVER}") -> Quota:
    """The cgroups of a machine, and a process in one of them; `limits`: quotas by cgroup, the period is 100 ms."""
    proc, root = folder / "proc", folder / "cgroup"
    (proc / "7").mkdir(parents=True, exist_ok=True)
    lines = {1: f"5:cpu,cpuacct:{path}\n4:memory:/other\n", 2: f"0::{path}\n"}
    (proc / "7" / "cgroup").write_text(lines[version])
    base = root if version == 2 else root / "cpu,cpuacct"
    for name in ("", "kubepods", POD, SERVER):
        (base / name).mkdir(parents=True, exist_ok=True)
    for name, quota in limits.items():
        if version == 2:
            (base / name / "cpu.max").write_text(f"{quota} 100000\n")
        else:
            (base / name / "cpu.cfs_quota_us").write_text(f"{quota}\n")
            (base / name / "cpu.cfs_period_us").write_text("100000\n")
        (base / name / "cpu.stat").write_text(stat)
    return Quota(7, proc, root)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("limits", "cpus"),
    [
        ({SERVER: "50000"}, 0.5),
        ({SERVER: "200000", POD: "150000", "kubepods": "-1"}, 1.5),
        ({SERVER: "-1"}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_tightest_limit_is_found(tmp_path: Path, version: int, limits: dict[str, str], cpus: float) -> None:
    limits = {name: "max" if q == "-1" and version == 2 else q for name, q in limits.items()}
    found = cgroups(tmp_path, version, limits, "")
    assert (found.is_there, found.cpus) == (cpus > 0, cpus)


def test_within_a_container_the_limit_is_its_own(tmp_path: Path) -> None:
    """Its cgroup is mounted as if it were the first, and the path is the machine's."""
    found = cgroups(tmp_path, 1, {"": "25000"}, "", path="/docker/1234")
    assert found.cpus == 0.25


def test_without_cgroups_there_is_none(tmp_path: Path) -> None:
    found = Quota(7, tmp_path, tmp_path)
    assert not found.is_there and found.rows(1.0) == []


@pytest.mark.parametrize(
    ("version", "stat"),
    [
        (1, "nr_periods {p}\nnr_throttled {t}\nthrottled_time {ms}000000\n"),
        (2, "usage_usec 5\nuser_usec 5\nnr_periods {p}\nnr_throttled {t}\nthrottled_usec {ms}000\nnr_bursts 0\n"),
    ],
)
def test_what_was_held_back_is_read(tmp_path: Path, version: int, stat: str) -> None:
    found = cgroups(tmp_path, version, {SERVER: "50000"}, stat.format(p=100, t=10, ms=500))
    assert found.rows(1.0) == []
    cgroups(tmp_path, version, {SERVER: "70000"}, stat.format(p=120, t=15, ms=1500))
    assert found.rows(2.0) == [{"cpus": 0.7, "held_back": 0.25, "throttled": 0.5}]
    # The cgroup is gone: a gap.
    (tmp_path / ("cgroup" if version == 2 else "cgroup/cpu,cpuacct") / SERVER / "cpu.stat").unlink()
    with pytest.raises(OSError, match="No such file"):
        found.rows(1.0)


@pytest.mark.parametrize(("held", "found"), [(0.9, ["cpu-quota"]), (0.02, [])])
def test_a_server_that_is_held_back_is_named(tmp_path: Path, held: float, found: list[str]) -> None:
    waits = {"kind": "client backend", "ours": 1.0, "state": "active", "wait_type": "", "wait": "", "processes": 8.0}
    machine = {"cores": 4.0, "cpu_user": 0.5, "cpu_system": 0.1, "cpu_idle": 3.4}
    machine |= dict.fromkeys(("cpu_nice", "cpu_iowait", "cpu_irq", "cpu_softirq", "cpu_steal"), 0.0)
    process: dict[str, Any] = {"kind": "client backend", "cpu": 0.5, "waiting_for_cpu": 7.0, "processes": 8.0}
    quota = {"cpus": 0.5, "held_back": held, "throttled": 3.0}
    run = synthetic.make_run(
        tmp_path, synthetic.plans([32], 1), lambda *_: 1000.0, intervals=30,
        sampled={"waits": [waits], "machine": [machine], "processes": [process], "quota": [quota]},
    )  # fmt: skip
    findings = explain.of_run(reading.read(run))
    # Nor is it a matter of connections, of which there are eight a core.
    assert [f.cause for f in findings if f.cause in ("cpu-quota", "connections")] == (found or ["connections"])
    if found:
        assert "limit of 0.5 processors holds the server back in 90% of its periods" in findings[0].sentence
        assert findings[0].cause == "cpu-quota" and findings[0].cost.mean > 0.8
