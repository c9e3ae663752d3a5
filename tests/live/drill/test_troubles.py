"""Drills on real clusters that go wrong: killed, interrupted, without fencing, on damaged members."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from pgdyno.cluster import administration
from pgdyno.drill import ledger
from pgdyno.drill.own import amcheck
from pgdyno.replication import build, following
from pgdyno.replication.cluster import ReplicatedCluster

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.drills import drilled, needs_network
from tests.support.folders import reachable
from tests.support.tells import tells
from tests.support.waiting import wait_until


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
        assert left["messages"]["error"][0]["id"] == "drill-killed"
        # Wherever it was cut off: what clients were told is kept.
        entries = ledger.read(file.parent / "ledger")
        with administration.connect(ReplicatedCluster(cluster).primary.local) as conn:
            audit = ledger.audit(entries, ledger.rows(conn, left["run"]), fault_ns=time.time_ns())
        assert audit.acknowledged > 100 and not audit.lost and not audit.resurrected
    assert drilled(cluster, tmp_path, "--fault", fault, "--rounds", 1)["verdicts"][0]["lost"] == 0


@pytest.mark.slow
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
    assert tells(err, "drill-mending") and tells(err, "drill-whole"), err
    assert tells(out, "drill-nothing-lost") and tells(" ".join(out.split()), "drill-note-errors", n="1", of="2"), out
    assert "ended early" in out, out
    (folder,) = tmp_path.glob("*-drill-*")
    page = folder / "report.html"
    page.unlink()
    # The same by the verb, also of one that is killed.
    shown = pgdyno("report", folder)
    assert shown.code == 0 and tells(shown.out, "drill-nothing-lost") and page.exists(), shown.err
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
                with administration.connect(t) as conn:
                    having.append(set(ledger.rows(conn, run_number)))
            acknowledged = {e.key for e in entries if e.outcome == "acknowledged"}
            # By hand.
            assert v["divided"] == len(acknowledged & (having[0] ^ having[1])) and v["lost"] == 0
        finally:
            build.destroy(made)


@pytest.mark.slow
def test_a_damaged_member_is_found(cluster: Path) -> None:
    c = ReplicatedCluster(cluster)
    with administration.connect(c.primary.local) as conn:
        conn.execute("create extension if not exists amcheck with schema pg_catalog")
        conn.execute("create table public.damaged as select generate_series(1, 10000) as a")
        conn.execute("create index on public.damaged (a)")
        row = conn.execute("select pg_relation_filepath('public.damaged_a_idx')").fetchone()
        conn.execute("checkpoint")
    following.wait_caught_up(c)
    assert row is not None and [amcheck(m) for m in c.members] == [None, None, None]
    (victim, *_) = c.others(c.primary)
    victim.stop()
    with (victim.data / row[0]).open("r+b") as f:
        f.seek(2 * 8192 + 4000)
        f.write(b"\xff" * 200)
    victim.start()
    try:
        following.wait_streaming(c, victim)
        assert "damaged_a_idx" in str(amcheck(victim)) and amcheck(c.primary) is None
    finally:
        build.rebuild(c, victim, c.primary, lambda *_: None)
        victim.start()
        following.wait_streaming(c, victim)


@pytest.mark.slow
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


@pytest.mark.slow
def test_only_clusters_of_ours_are_broken(tmp_path: Path) -> None:
    done = pgdyno("drill", tmp_path)
    assert done.code == 3 and tells(done.err, "error-holds-no-cluster-standbys-no")
    assert "kill-primary" in pgdyno("drill", "--list").out
