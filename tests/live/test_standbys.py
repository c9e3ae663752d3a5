"""Standbys of a private server, for the length of a run."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pgdyno.cluster import network as networks
from pgdyno.cluster import scratch
from pgdyno.cluster.network import Network

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.folders import reachable
from tests.support.tells import tells

pytestmark = pytest.mark.slow
needs_network = pytest.mark.skipif(not networks.is_possible(), reason="network namespaces need root, ip and setpriv")

TEXT = """
name = "standbys"
title = "Standbys"
[targets.alone]
[targets.two]
standbys = 2
[dataset]
kind = "tpcb"
scale = 2
[workloads.read-write]
scripts = [{ builtin = "tpcb-like" }]
[workloads.with-reads]
# A row a client: none of them waits for another one's.
scripts = [{ text = "BEGIN;\\nUPDATE pgbench_accounts SET abalance = 1 WHERE aid = :client_id + 1;\\nCOMMIT;" }]
standby_reads = { clients = 3, script = { builtin = "select-only" } }
[[axes]]
target = ["two"]
workload = ["with-reads"]
clients = [4]
settings = { synchronous_standby_names = ["", "ANY 1 (*)"] }
ROUND_TRIPS
[[axes]]
target = ["alone"]
workload = ["read-write"]
clients = [4]
[run]
duration_s = 2
warmup_s = 0.3
repetitions = 1
order = "written"
"""


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that the server's account can reach."""
    with reachable() as path:
        yield path


def rows(run: Path, table: str) -> list[dict[str, str]]:
    with (run / f"report-{table}.csv").open() as f:
        return list(csv.DictReader(f))


def namespaces() -> set[str]:
    """Of servers of runs, not of clusters that stay."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if "-standby" in line or "-primary" in line}


def carried_out(folder: Path, round_trips: str) -> Path:
    file = folder / "standbys.toml"
    file.write_text(TEXT.replace("ROUND_TRIPS", round_trips))
    done = pgdyno("run", file, "--runs", folder / "runs")
    assert done.code == 0, done.err
    assert tells(done.err, "progress-backup", member="standby2")
    return next((folder / "runs").iterdir())


@needs_network
def test_commits_wait_for_a_quorum_over_a_slower_network(tmp_path: Path) -> None:
    run = carried_out(tmp_path, "round_trip_ms = [0, 200]")
    cost = {(row["target"], row["rtt ms"], row["waits for"]): row for row in rows(run, "replication")}
    near, far = cost["two", "0", "ANY 1 (*)"], cost["two", "200", "ANY 1 (*)"]
    alone, nobody = cost["alone", "", ""], cost["two", "200", "''"]
    # A commit takes at least the round trip that was added, where it waits for somebody.
    assert float(far["commit p50 s"]) > 0.200
    assert max(float(c["commit p50 s"]) for c in (near, nobody)) < 0.100
    assert float(far["waiting"]) > 0.5 and float(nobody["waiting"]) == 0.0
    assert float(far["lag s"]) > 0.1 and alone["lag s"] == "" and alone["waiting"] == ""
    shown = rows(run, "standby-reads")
    assert {r["standby"] for r in shown} == {"standby1", "standby2"} and len(shown) == 8
    assert all(float(r["reads/s"]) > 0 for r in shown)
    # What was committed is seen half a round trip later at the earliest.
    late = [r for r in shown if r["rtt ms"] == "200"]
    assert late and all(float(r["stale p50 s"]) > 0.09 for r in late)
    parameters = [json.loads(p.read_text())["parameters"] for p in run.glob("trials/*/trial.json")]
    assert sorted(p["round_trip_ms"] or 0 for p in parameters) == [0, 0, 0, 200, 200]
    assert tells((run / "report.html").read_text(), "table-replication")


@needs_network
def test_a_network_is_left_to_a_process_that_can_remove_it(tmp_path: Path) -> None:
    """The folder is the only trace of a network: without the program ip it must stay."""
    path = tmp_path / f"{scratch.PREFIX}x"
    path.mkdir()
    (path / scratch.OWNER).touch()
    network = Network.for_folder(path, ["primary"])
    network.up()
    sweep = f"from pathlib import Path; from pgdyno.cluster import scratch; scratch.sweep(Path({str(tmp_path)!r}))"
    try:
        subprocess.run([sys.executable, "-c", sweep], env=environment(PATH="/nonexistent"), check=True)
        assert path.is_dir() and network.is_up()
        subprocess.run([sys.executable, "-c", sweep], env=environment(), check=True)
        assert not path.exists() and not network.is_up()
    finally:
        network.down()


def test_without_a_network_of_their_own(tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever is not root has them beside the primary; here the programs are not found.
    programs = base / "bin"
    programs.mkdir()
    for place in os.environ["PATH"].split(":"):
        for program in Path(place).glob("*"):
            if program.name not in ("ip", "setpriv") and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))
    run = carried_out(tmp_path, "")
    waiting = {row["waits for"]: row["waiting"] for row in rows(run, "replication")}
    assert float(waiting["ANY 1 (*)"]) > 0
    (tmp_path / "slow.toml").write_text(TEXT.replace("ROUND_TRIPS", "round_trip_ms = [5]"))
    refused = pgdyno("run", tmp_path / "slow.toml", "--runs", tmp_path / "slow")
    assert refused.code == 5 and tells(refused.err, "error-axes-round-trip-ms-slower")


@needs_network
def test_nothing_is_left_of_one_that_was_killed(tmp_path: Path, base: Path) -> None:
    file = tmp_path / "standbys.toml"
    file.write_text(TEXT.replace("ROUND_TRIPS", "round_trip_ms = [1]").replace("duration_s = 2", "duration_s = 60"))
    # A temporary folder of its own: other tests' processes remove what they find in the common one.
    own = environment(TMPDIR=str(base))
    victim = subprocess.Popen(
        [PGDYNO, "run", str(file), "--runs", str(tmp_path / "runs")], env=own, stderr=subprocess.PIPE, text=True
    )
    assert victim.stderr is not None
    for line in victim.stderr:
        if "trials of" in line:
            break
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    victim.stderr.close()
    (network,) = base.glob(f"{scratch.PREFIX}*/network")
    name = network.read_text().split()[0]
    assert len([n for n in namespaces() if name in n]) == 3
    done = pgdyno("run", "quick", "--embedded", "--duration", "0.3", "--scale", "1", "--repetitions", "1", env=own)
    assert done.code == 0, done.err
    assert not [n for n in namespaces() if name in n] and not list(base.glob(f"{scratch.PREFIX}*"))
    left = subprocess.run(["pgrep", "-f", f"{base}.*/data"], capture_output=True, text=True, check=False).stdout
    assert not left.strip()
