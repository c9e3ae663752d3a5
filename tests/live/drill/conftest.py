"""A cluster for each module, whole again after each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pgdyno.replication import build, configuration
from pgdyno.replication.cluster import ReplicatedCluster

from tests.support.cli import pgdyno
from tests.support.folders import reachable


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """A primary and two standbys, commits wait for one."""
    with reachable() as base:
        folder = base / "c"
        small = ("--set", "shared_buffers=32MB", "--set", "min_wal_size=80MB")
        done = pgdyno("cluster", "create", folder, "--standbys", 2, "--sync", "ANY 1 (*)", *small)
        assert done.code == 0, done.err
        yield folder
        build.destroy(ReplicatedCluster(folder))


@pytest.fixture(autouse=True)
def whole(cluster: Path) -> Iterator[None]:
    """However a drill went, the cluster is whole again after it, and its settings are as they were."""
    yield
    shown = pgdyno("cluster", "status", cluster, "--json")
    assert shown.json["troubles"] == [] and shown.json["synchronous_standby_names"] == "ANY 1 (*)"
    assert configuration.setting_of(ReplicatedCluster(cluster), "synchronous_commit") == "on"
