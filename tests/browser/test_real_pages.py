"""The pages of runs as pgdyno makes them, of every kind: each is opened in Chromium and every control of it is used."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from pgdyno.cluster import network as networks
from pgdyno.replication import build
from pgdyno.replication.cluster import ReplicatedCluster

from tests.support import causes, observed
from tests.support.cli import pgdyno
from tests.support.folders import reachable
from tests.support.page import CHROMIUM, used

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
#: As short as each kind of run can be.
BRIEF = ("--embedded", "--scale", 1, "--duration", 1, "--warmup", 0.2)
KINDS: dict[str, tuple[Any, ...]] = {
    "matrix": ("run", "quick", "--embedded", "--scale", 1, "--duration", 0.3, "--warmup", 0.1, "--repetitions", 1),
    "duet-of-settings": (
        "run", "quick", *BRIEF, "--clients", 2, "--hot-set", 1, "--vary", "shared_buffers=16MB,64MB,128MB",
        "--restarts", 2,
    ),
    "tpcc": ("run", "tpcc", "--embedded", "--shrink", 100, "--duration", 1, "--repetitions", 1),
    "feed": ("run", "iot-brin", "--embedded", "--shrink", 1000, "--duration", 0.5, "--repetitions", 1),
    "capacity": ("capacity", "quick", *BRIEF, "--slo", "p50 < 20ms"),
}  # fmt: skip


def usable(page: Path, tmp_path: Path) -> dict[str, Any]:
    """Use a page's controls, and require what holds of every page; returns what its tables came to."""
    found = used(page.read_text(encoding="utf-8"), tmp_path)
    assert found["wrong"] == [] and found["broken"] == []
    assert found["twice"] == [] and found["nowhere"] == []
    assert found["undrawn"] == 0
    for name, table in found["tables"].items():
        rows = list(csv.reader(io.StringIO(table["csv"])))
        assert len(rows) == table["rows"] + 1, name
        assert table["sorted"] == len(rows[0]), name
    return dict(found["tables"])


@pytest.mark.slow
def test_the_page_of_a_run_as_make_demo_makes_it(tmp_path: Path) -> None:
    done = pgdyno(*KINDS["matrix"], "-q", "--runs", tmp_path, timeout=170)
    assert done.code in (0, 1), done.err
    tables = usable(next(tmp_path.glob("*/report.html")), tmp_path)
    assert tables["trials"]["rows"] == 12


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "matrix"])
def test_every_kind_of_run(tmp_path: Path, kind: str) -> None:
    done = pgdyno(*KINDS[kind], "-q", "--runs", tmp_path, timeout=380)
    assert done.code in (0, 1), done.err
    page = next(tmp_path.glob("*/report.html"))
    assert "trials" in usable(page, tmp_path)
    assert pgdyno("report", page.parent, "--lang", "zh").code == 0
    assert "trials" in usable(page.with_name("report.zh.html"), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not networks.is_possible(), reason="network namespaces need root, ip and setpriv")
def test_standbys_and_a_drill(tmp_path: Path) -> None:
    words = ("run", "replication-cost", "--shrink", 30, "--set", "round_trip_ms=0", "--duration", 1,
             "--repetitions", 1)  # fmt: skip
    done = pgdyno(*words, "-q", "--runs", tmp_path / "a", timeout=170)
    assert done.code in (0, 1), done.err
    assert "replication" in usable(next((tmp_path / "a").glob("*/report.html")), tmp_path)
    with reachable() as base:
        try:
            done = pgdyno("cluster", "create", base / "c", "--standbys", 2, "--set", "shared_buffers=32MB")
            assert done.code == 0, done.err
            words = ("--before", 1, "--after", 0.3, "--rounds", 1, "--clients", 4, "--fault", "kill-primary")
            done = pgdyno("drill", base / "c", *words, "-q", "--runs", tmp_path / "b", timeout=170)
            assert done.code in (0, 1), done.err
            assert "lost" in usable(next((tmp_path / "b").glob("*/report.html")), tmp_path)
        finally:
            if (base / "c").exists():
                build.destroy(ReplicatedCluster(base / "c"))


@pytest.mark.slow
def test_an_observation(tmp_path: Path) -> None:
    """The page of a server that PostgreSQL's own pgbench loads, in both languages."""
    if why := observed.why_not():
        pytest.skip(why)
    (made,) = [i for i in causes.EVERY if i.name == "hot row"]
    found = observed.observed(made, tmp_path, 8.0)
    page = Path(found["path"]) / "report.html"
    assert {"busy-statements", "busy-parts"} <= set(usable(page, tmp_path))
    assert pgdyno("report", page.parent, "--lang", "zh").code == 0
    assert "busy-parts" in usable(page.with_name("report.zh.html"), tmp_path)
