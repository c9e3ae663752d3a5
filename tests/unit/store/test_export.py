"""Time series for other tools: read back by the tools themselves where they are here."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pgdyno.errors import UsageError
from pgdyno.store import export, reading

from tests.support import synthetic
from tests.support.cli import pgdyno
from tests.support.tells import telling
from tests.support.waiting import wait_until

PROMTOOL = shutil.which("promtool")


def made(tmp_path: Path) -> Path:
    plans = synthetic.plans([2, 8], 2, target=["a b", 'c"d'])
    return synthetic.make_run(tmp_path, plans, lambda p, *_: 100.0 * p.clients, intervals=5)


def text(run: Path, form: str) -> str:
    return "".join(export.lines(reading.read(run), form))


def test_prometheus_and_openmetrics_say_the_same(tmp_path: Path) -> None:
    run = made(tmp_path)
    one, other = text(run, "prometheus"), text(run, "openmetrics")
    assert other.endswith("# EOF\n") and "# EOF" not in one
    sample = re.compile(r"^(pgdyno_\w+)\{(.*)\} (\S+) (\S+)$")
    for a, b in zip(one.splitlines(), other.splitlines(), strict=False):
        x, y = sample.match(a), sample.match(b)
        assert (x is None) == (y is None)
        if x and y:
            assert x.groups()[:3] == y.groups()[:3] and abs(int(x[4]) / 1000 - float(y[4])) < 0.002
    tps = [m for line in one.splitlines() if (m := sample.match(line)) and m[1] == "pgdyno_tps"]
    assert len(tps) == 8 * 5 and {m[3] for m in tps} == {"200", "800"}
    assert r'axis_target="c\"d"' in one and 'quantile="0.99"' in one


def test_influx_lines_are_whole(tmp_path: Path) -> None:
    lines = text(made(tmp_path), "influx").splitlines()
    assert len(lines) == 8 * 5
    for line in lines:
        tags, fields, stamp = re.split(r"(?<!\\) ", line)
        assert tags.startswith("pgdyno,run=") and int(stamp) > 1_600_000_000 * 10**9
        assert dict(f.split("=") for f in fields.split(","))["tps"] in ("200", "800")
    assert r"axis_target=a\ b" in lines[0] + lines[-1]


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    with telling(UsageError, "error-there-no-format"):
        list(export.lines(reading.read(made(tmp_path)), "csv"))
    assert pgdyno("export").code == 2 and pgdyno("export", "--influx").code == 2
    out = tmp_path / "x.txt"
    (run,) = (p.parent for p in tmp_path.glob("*/manifest.json"))
    assert pgdyno("export", run, "--openmetrics", "--output", out).code == 0 and out.read_text().endswith("# EOF\n")


def queries() -> list[str]:
    board = json.loads(export.dashboard())
    found = [t["expr"] for panel in board["panels"] for t in panel["targets"]]
    return [re.sub(r"\$\w+", ".*", q) for q in found]


def test_the_dashboard_asks_for_what_is_exported(tmp_path: Path) -> None:
    names = {m.name for m in export.METRICS}
    for q in queries():
        assert set(re.findall(r"pgdyno_\w+", q)) <= names, q
    board = json.loads(pgdyno("export", "--grafana").out)
    assert board["title"] == "pgdyno" and {v["name"] for v in board["templating"]["list"]} >= {"run", "workload"}


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """A Prometheus with a run in it, as its own promtool imports it."""
    if PROMTOOL is None or shutil.which("prometheus") is None:
        pytest.skip("needs Prometheus: apt-get install prometheus")
    out, data = tmp_path / "x.txt", tmp_path / "data"
    out.write_text(text(made(tmp_path), "openmetrics"))
    subprocess.run([PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", out, data], check=True, capture_output=True)
    (tmp_path / "prometheus.yml").write_text("global: {}\n")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    argv = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={data}",
            "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
    process = subprocess.Popen(["prometheus", *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _is_ready(f"{url}/-/ready"), 20, process=process)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def test_a_real_prometheus_answers_every_query_of_the_dashboard(prometheus: str, tmp_path: Path) -> None:
    (run,) = (p.parent for p in tmp_path.glob("*/manifest.json"))
    first = min(t.start_ns for t in reading.read(run).trials) / 1e9

    def ask(query: str) -> Any:
        asked = {"query": query, "start": first, "end": first + 10, "step": 1}
        with urllib.request.urlopen(f"{prometheus}/api/v1/query_range?{urllib.parse.urlencode(asked)}") as answer:
            return json.load(answer)["data"]["result"]

    for q in queries():
        assert ask(q), q
    (series,) = ask('pgdyno_tps{clients="8",axis_target="a b",repetition="1"}')
    assert {v for _, v in series["values"]} == {"800"}
