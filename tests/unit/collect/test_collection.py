"""Sources and what becomes of their samples, without a server."""

from __future__ import annotations

import itertools
import json
import math
import multiprocessing
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno import i18n
from pgdyno.cluster.target import Target
from pgdyno.collect import collection, logformat, plans, serverlog, statements, totals
from pgdyno.collect.collection import Collection
from pgdyno.collect.serverlog import Log
from pgdyno.collect.sources import devices, processes
from pgdyno.collect.sources.base import Differences, Row, Source
from pgdyno.collect.sources.devices import devices_under, rates
from pgdyno.collect.sources.machine import Cores, Machine
from pgdyno.collect.sources.processes import Processes
from pgdyno.collect.totals import Totals
from pgdyno.errors import LocalError
from pgdyno.message import Message, Name, Text, message
from pgdyno.model import EventKind, TrialPlan
from pgdyno.run.sites import phases
from pgdyno.run.sites.phases import PhasesOnDevices
from pgdyno.run.trials.counting import Counting
from pgdyno.store import rundir, samples
from pgdyno.store.journal import RunRecorder
from pgdyno.store.samples import SampleWriter
from pgdyno.stream.events import Body, DatasetDone, DatasetProgress, Happened, LoadStarted, SamplesTaken
from pgdyno.stream.stream import RunStream, TrialStream
from pgdyno.units import Quantity

from tests.support.tells import telling
from tests.support.waiting import wait_until


def test_own_reloads_are_told_from_others() -> None:
    """By their order, however late a busy server reads its configuration."""
    counting = Counting(Target("localhost", 5432, "u", "d"), 1.0, lambda: 0)
    ms = 1_000_000
    counting.reloads = [1_000 * ms, 5_000 * ms]
    # Somebody's before; ours, 2 s late; somebody's; ours at once, as the log's clock has it.
    assert counting.own_reloads([t * ms for t in (500, 3_000, 4_000, 4_999)]) == {3_000 * ms, 4_999 * ms}
    assert counting.own_reloads([]) == set()


def test_counters_that_were_reset_say_nothing() -> None:
    d = Differences()
    assert d.of("a", {"x": 5.0}) is None
    assert d.of("a", {"x": 8.0}) == {"x": 3.0}
    assert d.of("a", {"x": 1.0}) is None
    assert d.of("a", {"x": 2.0}) == {"x": 1.0}


def test_figures_of_a_device_are_iostats() -> None:
    # 100 reads of 8 kB in 2 s that took 50 ms in all; 40 writes of 16 kB that took 400 ms; busy for 300 ms.
    d = {
        "reads": 100.0, "reads_merged": 0.0, "sectors_read": 1600.0, "read_ms": 50.0, "writes": 40.0,
        "writes_merged": 4.0, "sectors_written": 1280.0, "write_ms": 400.0, "busy_ms": 300.0, "weighted_ms": 450.0,
        "flushes": 10.0, "flush_ms": 5.0,
    }  # fmt: skip
    r = rates(d, 2.0)
    assert r["reads_per_s"] == 50 and r["read_request_bytes"] == 8192 and r["read_await_ns"] == 5e5
    assert r["writes_per_s"] == 20 and r["write_request_bytes"] == 16384 and r["write_await_ns"] == 1e7
    assert r["utilisation"] == 0.15 and r["queue"] == 0.225 and r["flush_await_ns"] == 5e5


def test_devices_are_found_through_partitions_volumes_and_loops(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    sys = tmp_path / "sys"
    disk = sys / "devices" / "sda"
    part = disk / "sda1"
    volume = sys / "devices" / "dm-0"
    for folder in (part, volume / "slaves" / "sda1", sys / "dev" / "block"):
        folder.mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (part / "dev").write_text("8:1\n")
    (part / "partition").write_text("1\n")
    (volume / "slaves" / "sda1" / "dev").write_text("8:1\n")
    block = sys / "dev" / "block"
    (block / f"{os.major(number)}:{os.minor(number)}").symlink_to(volume)
    (block / "8:1").symlink_to(part)
    (block / "8:0").symlink_to(disk)
    assert devices_under(tmp_path, sys) == ["dm-0", "sda1", "sda"]
    assert devices_under(tmp_path / "nothing", sys) == []


def test_every_disk_of_an_array_is_found(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    sys, block = tmp_path / "sys", tmp_path / "sys" / "dev" / "block"
    block.mkdir(parents=True)
    array = sys / "devices" / "md0"
    for minor, disk in enumerate(("sda", "sdb")):
        folder = sys / "devices" / disk
        folder.mkdir(parents=True)
        (folder / "dev").write_text(f"8:{minor}\n")
        (block / f"8:{minor}").symlink_to(folder)
        (array / "slaves" / disk).mkdir(parents=True)
        (array / "slaves" / disk / "dev").write_text(f"8:{minor}\n")
    (block / f"{os.major(number)}:{os.minor(number)}").symlink_to(array)
    assert devices_under(tmp_path, sys) == ["md0", "sda", "sdb"]


def test_a_file_system_with_a_number_of_its_own_is_found_by_its_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """btrfs: no block device has the number of its files."""
    others = (p for p in sorted(Path("/dev").iterdir()) if p.is_block_device())
    special = next((p for p in others if p.stat().st_rdev != tmp_path.stat().st_dev), None)
    if special is None:
        pytest.skip("needs a block device that this folder is not on")
    mounts = tmp_path / "mountinfo"
    point = tmp_path / "mnt"
    point.mkdir()
    mounts.write_text(
        f"22 1 0:20 / / rw shared:1 - overlay overlay rw\n29 22 0:40 / {point} rw - btrfs {special} rw\n"
        f"30 22 0:41 / {point}-other rw - btrfs /dev/null rw\n"
    )
    monkeypatch.setattr(devices, "_MOUNTS", mounts)
    sys = tmp_path / "sys"
    number = special.stat().st_rdev
    (sys / "dev" / "block").mkdir(parents=True)
    (sys / "devices" / special.name).mkdir(parents=True)
    (sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}").symlink_to(sys / "devices" / special.name)
    (point / "data").mkdir()
    assert devices_under(point / "data", sys) == [special.name]
    assert devices_under(tmp_path, sys) == []


def test_wal_and_tablespaces_are_places_of_their_own(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for folder in (data / "pg_tblspc", tmp_path / "elsewhere", tmp_path / "wal"):
        folder.mkdir(parents=True)
    (data / "pg_wal").symlink_to(tmp_path / "wal")
    (data / "pg_tblspc" / "16400").symlink_to(tmp_path / "elsewhere")
    places = devices.places_of(data)
    assert list(places) == ["data", "wal", "tablespace 16400"]
    assert places["tablespace 16400"].resolve() == tmp_path / "elsewhere"
    assert devices.places_of(tmp_path / "none") == {"data": tmp_path / "none", "wal": tmp_path / "none" / "pg_wal"}


def test_the_machine_and_its_processes_are_read() -> None:
    if not Machine.is_there():
        pytest.skip("Linux only")
    sources: list[Any] = [Machine(), Cores(), Processes(os.getpid())]
    assert all(s.rows(1.0) == [] or s.name in ("processes", "cores") for s in sources)
    # Time of a CPU: on a busy machine a process gets only a part of each second.
    began, until = time.monotonic(), time.process_time() + 0.2
    while time.process_time() < until:
        pass
    passed = time.monotonic() - began
    (machine,) = sources[0].rows(passed)
    busy = sum(float(v) for k, v in machine.items() if k.startswith("cpu_") and k not in ("cpu_idle", "cpu_iowait"))
    assert 0 < busy <= float(machine["cores"]) * 1.5
    named = {"running", "blocked", "memory_available_bytes", "page_cache_bytes", "dirty_bytes", "writeback_bytes",
             "context_switches_per_s", "cpu_softirq"}  # fmt: skip
    assert named <= set(machine) and float(machine["memory_available_bytes"]) > 1 << 20
    if Path("/proc/pressure/cpu").exists():
        assert 0 <= float(machine["pressure_cpu_some"]) <= 1.5
    (ours,) = [r for r in sources[2].rows(passed) if r["kind"] == "pgdyno"]
    assert float(ours["cpu"]) * passed > 0.15


def test_the_log_is_read_as_events(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "2026-01-02 03:04:05.678 UTC [12] LOG:  checkpoint starting: time\n"
        "2026-01-02 03:04:09.000 UTC [12] LOG:  checkpoint complete: wrote 44 buffers (0.3%); write=4.1 s\n"
        '2026-01-02 03:04:10.000 UTC [13] LOG:  automatic vacuum of table "a.public.t": index scans: 1\n'
        "\tpages: 0 removed\n"
        "2026-01-02 03:04:11.000 UTC [14] ERROR:  deadlock detected\n"
        "2026-01-02 03:04:11.000 UTC [14] DETAIL:  Process 14 waits\n"
        "torn"
    )
    read = logformat.read_lines("%m [%p] ", "UTC")
    text = log.read_text()
    log.write_text("2026-01-02 03:04:00.000 UTC [12] ERROR:  of before\n")
    watched = Log(log, read)
    with log.open("a") as f:
        f.write(text)
    found, missing = watched.events()
    assert [e.kind for e in found] == ["checkpoint begins", "checkpoint ends", "autovacuum", "error"] and not missing
    assert found[1].at_ns - found[0].at_ns == 3_322_000_000
    assert Log(log, read).events() == ([], [])
    with pytest.raises(OSError):
        Log(tmp_path / "none", read)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("LOG:  process 7 still waiting for ShareLock on transaction 9 after 1000.1 ms", "lock wait"),
        ('LOG:  temporary file: path "base/pgsql_tmp/1.0", size 9', "temporary file"),
        ("LOG:  checkpoints are occurring too frequently (3 seconds apart)", "too many checkpoints"),
        ("LOG:  received SIGHUP, reloading configuration files", "configuration reloaded"),
        ("LOG:  received fast shutdown request", "server stops"),
        ("LOG:  server process (PID 9) was terminated by signal 9: Killed", "server process died"),
        ("LOG:  client backend (PID 9) was terminated by signal 9: Killed", "server process died"),
        ("LOG:  database system was not properly shut down; automatic recovery in progress", "recovery"),
        ("PANIC:  could not write to file", "panic"),
    ],
)
def test_what_a_log_tells_has_its_kind(tmp_path: Path, line: str, kind: str) -> None:
    log = tmp_path / "log"
    log.touch()
    watched = Log(log, logformat.read_lines("%m [%p] ", "UTC"))
    log.write_text(f"2026-01-02 03:04:05.678 UTC [12] {line}\n")
    assert [e.kind for e in watched.events()[0]] == [kind]


_AT = datetime(2026, 7, 2, 3, 4, 5, 678_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("prefix", "zone", "line"),
    [
        ("%m [%p] ", "UTC", "2026-07-02 03:04:05.678 UTC [12] LOG:  checkpoint starting: time"),
        ("%m [%p] %q%u@%d ", "Europe/Berlin", "2026-07-02 05:04:05.678 CEST [12] a@b LOG:  checkpoint starting: time"),
        ("%m [%p] %q%u@%d ", "Europe/Berlin", "2026-07-02 05:04:05.678 CEST [12] LOG:  checkpoint starting: time"),
        ("%m:%a:%h%%", "Asia/Shanghai", "2026-07-02 11:04:05.678 CST:x:[local]%LOG:  checkpoint starting: time"),
        ("%m %-10u|", "America/Sao_Paulo", "2026-07-02 00:04:05.678 -03 u         |LOG:  checkpoint starting: time"),
        ("%s %m ", "UTC", "2026-01-01 00:00:00 UTC 2026-07-02 03:04:05.678 UTC LOG:  checkpoint starting: time"),
        ("[%p] %n ", "Europe/Berlin", "[12] 1782961445.678 LOG:  checkpoint starting: time"),
        ("%t [%p]: ", "UTC", "2026-07-02 03:04:05 UTC [12]: LOG:  checkpoint starting: time"),
    ],
)
def test_a_log_of_any_prefix_and_zone_is_read(prefix: str, zone: str, line: str) -> None:
    (record,) = logformat.read_lines(prefix, zone)(f"{line}\n\tgoes on\n")
    expected = round(_AT.timestamp() * 1000) - (678 if prefix.startswith("%t") else 0)
    assert record.at_ns == expected * 1_000_000
    assert (record.severity, record.message) == ("LOG", "checkpoint starting: time")


def test_the_hour_that_comes_twice_is_told_by_its_name() -> None:
    read = logformat.read_lines("%m ", "Europe/Berlin")
    first, second = read("2026-10-25 02:30:00.000 CEST LOG:  a\n2026-10-25 02:30:00.000 CET LOG:  b\n")
    assert second.at_ns - first.at_ns == 3600 * 10**9


def test_logs_for_programs_are_read() -> None:
    of_csv = (
        '2026-07-02 05:04:05.678 CEST,"u","d",12,"[local]",x,1,"",2026-01-01 00:00:00 CET,,0,ERROR,40P01,'
        '"deadlock\ndetected",,,,,,"update ""t""",,,"pgdyno","client backend",,0\ntorn,"'
    )
    (record,) = logformat.read_csv("Europe/Berlin")(of_csv)
    assert record.at_ns == round(_AT.timestamp() * 1000) * 1_000_000 and record.message == "deadlock\ndetected"
    lines = '{"timestamp":"2026-07-02 03:04:05.678 UTC","error_severity":"LOG","message":"x"}\n[]\n{"a":1}\n{'
    assert list(logformat.read_json("UTC")(lines)) == [logformat.Record(record.at_ns, "LOG", "x")]


def test_a_log_that_cannot_be_read_is_said_to_be_so() -> None:
    with pytest.raises(ValueError, match="has no time"):
        logformat.read_lines("[%p] ", "UTC")
    with telling(ValueError, "why-unknown-zone", zone="Nowhere/Land"):
        logformat.read_lines("%m ", "Nowhere/Land")


@pytest.mark.parametrize("how", ["a new name", "logrotate", "copytruncate", "truncated"])
def test_a_log_is_followed_where_it_goes(tmp_path: Path, how: str) -> None:
    def line(n: int) -> str:
        return f"2026-01-02 03:04:{n:02d}.000 UTC [1] ERROR:  {n}\n"

    log = tmp_path / "postgresql-2026-01-02_030400.log"
    log.write_text(line(1) * 3)
    (tmp_path / "other.log").write_text("")
    watched = Log(log, logformat.read_lines("%m [%p] ", "UTC"), "postgresql-%Y-%m-%d_%H%M%S.log")
    with log.open("a") as f:
        f.write(line(2))
    expected = ["2", "3"]
    if how == "a new name":
        (tmp_path / "postgresql-2026-01-02_030403.log").write_text(line(3))
        (tmp_path / "other.log").write_text(line(9))
    elif how == "logrotate":
        log.rename(f"{log}.1")
        log.write_text(line(3))
    elif how == "copytruncate":
        # Written now, the copy has what was before, too: of other times than the trial's.
        Path(f"{log}.1").write_bytes(log.read_bytes())
        log.write_text(line(3))
        expected = ["1", "1", "1", "2", "3"]
    else:
        log.write_text(line(3))
        expected = ["3"]
    found, missing = watched.events()
    assert [e.text for e in found] == expected and not missing


def test_of_a_log_that_is_gone_or_too_long_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    log.touch()
    watched = Log(log, logformat.read_lines("%m [%p] ", "UTC"))
    log.write_text("2026-01-02 03:04:05.000 UTC [1] ERROR:  x\n" * 3)
    monkeypatch.setattr(serverlog, "_MOST_BYTES", 60)
    found, missing = watched.events()
    assert len(found) == 1 and missing == [message("gap-log-long", file=Name("log"), size=Quantity(60, "bytes"))]
    log.unlink()
    found, missing = watched.events()
    assert found == [] and missing == [message("gap-log-gone", file=Name("log"))]


def _set(name: str, before: str, after: str) -> Message:
    return message("event-setting", name=Name(name), before=Name(before), after=Name(after))


def _gap(what: str, reason: str) -> Message:
    return message("gap-of", what=Name(what), reason=Name(reason))


def test_what_changed_between_two_readings_is_an_event() -> None:
    s = 10**9
    before = Totals(started_ns=s, configured_ns=s, settings={"work_mem": "4MB", "jit": "off"})
    after = Totals(started_ns=s, configured_ns=9 * s, settings={"work_mem": "8MB", "jit": "off"})
    assert totals.happened(before, before) == []
    # The clock of another machine is never quite the same.
    assert totals.happened(before, replace(before, started_ns=s + s // 10)) == []
    reloaded, changed = totals.happened(before, after)
    assert reloaded[:2] == (9 * s, "configuration reloaded")
    # It was changed when the server read it.
    assert changed == (9 * s, "setting changed", _set("work_mem", "4MB", "8MB"))
    # Of the role or the database: for sessions that begin, whenever that was.
    assert totals.happened(before, replace(after, configured_ns=s))[0][:2] == (0, "setting changed")
    restarted = Totals(started_ns=5 * s, configured_ns=5 * s)
    assert [x[:2] for x in totals.happened(before, restarted)] == [(5 * s, "server restarted")]


def test_counters_that_a_crash_has_reset_are_no_difference() -> None:
    key = ("t",)
    before = Totals(counted={"tables": {key: (0.0,) * 17}}, reset=("1", ""))
    after = Totals(counted={"tables": {key: (5.0,) * 17}}, reset=("1", "2"))
    # What had no time before had begun to count only then.
    assert totals.between(before, after, 180000)["tables"]
    crashed = replace(after, reset=("9", "9"))
    assert totals.between(before, crashed, 180000) == {}
    assert [kind for _, kind, _ in totals.happened(before, crashed)] == ["counters reset"]


def test_a_plan_that_changed_is_told_with_both() -> None:
    s = plans.Sample("a.sql", 3, "SELECT 1", "SELECT 1", "SELECT 1")
    one, other = plans.Plan(s, "Seq Scan on t"), plans.Plan(s, "Index Scan on t using i")
    assert plans.changed([one], [one]) == []
    (found,) = plans.changed([one], [other])
    assert i18n.text(found) == "a.sql:3: Seq Scan on t before, Index Scan on t using i after"


def test_a_setting_with_a_secret_is_said_to_have_changed_and_no_more() -> None:
    before, after = totals.Totals(), totals.Totals()
    before.settings = {"primary_conninfo": "", "log_line_prefix": "%m", "work_mem": "4MB", "app.key": "a"}
    after.settings = {
        "primary_conninfo": "host=p password=hunter2", "log_line_prefix": "postgresql://u:hunter2@h", "work_mem": "8MB",
        "app.key": "hunter2",
    }  # fmt: skip
    words = [text for _, _, text in totals.happened(before, after)]
    assert "hunter2" not in str(words) and len(words) == 4
    assert message("event-setting-hidden", name=Name("primary_conninfo")) in words
    assert _set("work_mem", "4MB", "8MB") in words


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        (b"postgres: checkpointer ", "checkpointer"),
        (b"postgres: node1: walwriter ", "walwriter"),
        (b"postgres: my own cluster: background writer ", "background writer"),
        (b"postgres: io worker 0", "io worker"),
        (b"postgres: walsender rep 10.0.0.1(5) streaming 0/3000000", "walsender"),
        (b"postgres: logical replication launcher ", "logical replication launcher"),
        (b"postgres: startup recovering 000000010000000000000003", "startup"),
        (b"postgres: startup_app shop [local] idle", "client backend"),
        (b"postgres: my own cluster: archiver_rw shop 10.0.0.1(5) SELECT", "client backend"),
        (b"/usr/lib/postgresql/18/bin/postgres\0-D\0/data", "starting"),
    ],
)
def test_a_process_is_known_by_its_title(title: bytes, kind: str) -> None:
    assert processes.kind_of(title) == kind


@given(st.binary(max_size=400))
def test_any_log_is_borne(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as f:
        readers = [logformat.read_lines("%m [%p] ", "UTC"), logformat.read_csv("UTC"), logformat.read_json("UTC")]
        logs = [Log(Path(f.name), read) for read in readers]
        f.write(b"2026-01-02 03:04:05.678 UTC [1] LOG:  " + data)
        f.flush()
        for log in logs:
            log.events()


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("SELECT a FROM t WHERE id = $1", True),
        ("UPDATE t SET a = a + $1 WHERE id = $2", True),
        ("INSERT INTO t (a, b) VALUES ($1, now())", True),
        ("SELECT count(*) FROM t", True),
        ("SELECT nextval('s')", False),
        ("SELECT my_function($1)", False),
        ("SELECT public.pay($1)", False),
        ("SELECT pg_terminate_backend(1)", False),
        ("DELETE FROM t", True),
        ("BEGIN", False),
        ("CALL p()", False),
        ("CREATE TABLE x (a int)", False),
        # Whatever stands in quotes may be anybody's function.
        ('SELECT "pay"(1)', False),
        ('SELECT public."pay"($1)', False),
        ('INSERT INTO "t" ("a") VALUES ($1)', True),
        ("WITH gone AS (DELETE FROM t RETURNING a) SELECT count(*) FROM gone", False),
        ("WITH few AS (SELECT a FROM t) SELECT count(*) FROM few", True),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", False),
    ],
)
def test_only_what_can_be_repeated_is_carried_out(text: str, repeats: bool) -> None:
    assert plans.can_be_repeated(text) is repeats


class _Source:
    name, period_s = "s", 0.0

    def __init__(self, wait_s: float = 0.0, wrong: bool = False) -> None:
        self.calls, self.wait_s, self.wrong = 0, wait_s, wrong

    def rows(self, seconds: float) -> list[Row]:
        self.calls += 1
        time.sleep(self.wait_s)
        if self.wrong:
            raise OSError("gone")
        return [{"n": float(self.calls)}]


class _Heard:
    """Receives what a collection emits."""

    def __init__(self) -> None:
        self.samples: list[SamplesTaken] = []
        self.events: list[Happened] = []

    def emit(self, body: Body, *, origin: str = "session") -> None:
        if isinstance(body, SamplesTaken):
            self.samples.append(body)
        elif isinstance(body, Happened):
            self.events.append(body)

    @property
    def gaps(self) -> list[Message]:
        """Return what was not recorded, without times at which the machine under the tests was late."""
        texts = [e.text for e in self.events if e.kind == EventKind.NOT_RECORDED]
        return [t for t in texts if t.id != "gap-late"]


def test_a_source_that_fails_is_a_gap_and_told_once() -> None:
    good, bad = _Source(), _Source(wrong=True)
    bad.name = "bad"
    heard = _Heard()
    # The load began half a period before the collection: periods count from the load.
    start = time.time_ns() - 25_000_000
    c = Collection([bad, good], None, heard, period_s=0.05, start_ns=lambda: start)
    c.start()
    wait_until(lambda: bad.calls == 5 and len(heard.samples) >= 8)
    c.stop()
    found = [(s.source, s.start_ns, s.end_ns) for s in heard.samples]
    assert heard.gaps == [_gap("bad", "gone"), message("gap-given-up", what=Name("bad"), n=5)] and bad.calls == 5
    assert {n for n, _, _ in found} == {"s"}
    # Samples follow each other without holes, and end at whole periods since the load began. A busy machine can only
    # make an end late, so that some ends in time show where they were due.
    assert all(b == a for (_, _, b), (_, a, _) in itertools.pairwise(found))
    ends = [((b - start) / 1e9) % 0.05 for _, _, b in found]
    assert sum(e < 0.02 for e in ends) >= 2


def test_a_source_that_takes_long_to_fail_is_asked_less_often() -> None:
    """Its part of the time is a tenth: the others are sampled meanwhile."""
    good, slow = _Source(), _Source(wait_s=0.1, wrong=True)
    slow.name = "slow"
    start = time.time_ns()
    c = Collection([slow, good], None, _Heard(), period_s=0.05, start_ns=lambda: start)
    c.start()
    wait_until(lambda: good.calls >= 12)
    c.stop()
    # And once more at the end.
    assert slow.calls <= 3


def test_a_disk_that_is_full_does_not_end_the_sampling() -> None:
    """The trial ends where its intervals are written; a thread that fails would only print a traceback."""

    class Full(_Heard):
        def emit(self, body: Body, *, origin: str = "session") -> None:
            super().emit(body)
            raise LocalError("cannot write x: No space left on device")

    heard, good, bad = Full(), _Source(), _Source(wrong=True)
    bad.name = "bad"
    start = time.time_ns()
    c = Collection([good, bad], None, heard, period_s=0.02, start_ns=lambda: start)
    c.start()
    wait_until(lambda: len(heard.samples) > 3 and len(heard.gaps) > 1)
    assert c._thread.is_alive()
    c.stop()


class _Stuck:
    """A connection whose source waits until it is let go of, and then finds that it is closed."""

    def __init__(self) -> None:
        self.asked, self.closed = threading.Event(), threading.Event()
        self.sources: list[Any] = [self]
        self.waits = None
        self.name, self.period_s = "server", 0.0

    @property
    def is_lost(self) -> bool:
        return self.closed.is_set()

    def renew(self) -> None:
        raise OSError("no")

    def rows(self, seconds: float) -> list[Row]:
        self.asked.set()
        self.closed.wait()
        raise OSError("connection already closed")


def test_a_source_that_outlasts_its_trial_says_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it finds is that pgdyno has closed the connection itself: no event of the trial, and no file is touched."""
    monkeypatch.setattr(collection, "_END_S", 0.05)
    run = rundir.RunDirectory.create(tmp_path, "t", "")
    writer = run.begin_trial(TrialPlan(1, "w", 1.0, 1, 1), {})
    stream = RunStream()
    recorder = RunRecorder()
    recorder.open(run.path)
    recorder.add(writer)
    stream.record(recorder)
    trial = TrialStream(stream, 1)
    trial.emit(LoadStarted(time.time_ns()))
    server = _Stuck()
    c = Collection([], server, trial, period_s=0.01, start_ns=lambda: trial.start_ns)
    failures: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    c.start()
    assert server.asked.wait(10)
    c.stop()
    trial.close()
    writer.finish("finished", None, [])
    server.closed.set()
    c._thread.join(10)
    assert not c._thread.is_alive() and failures == []
    (event,) = (writer.folder / "events.jsonl").read_text().splitlines()
    assert json.loads(event)["message"]["id"] == "gap-no-answer"
    # Whoever else holds the stream of the trial, or its writer, may say what it likes.
    trial.emit(Happened(EventKind.ERROR, Name("late")))
    writer.event(0, "late", Name("x"))
    writer.samples("late", 0, 1, [{"n": 1.0}])
    assert len((writer.folder / "events.jsonl").read_text().splitlines()) == 1


def _as_nobody(look: Callable[[], list[str]]) -> list[str]:
    """What somebody else than root, and than the server's user, gets to see."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def act() -> None:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        theirs.send(look())

    process = context.Process(target=act)
    process.start()
    theirs.close()
    try:
        found: list[str] = ours.recv()
    finally:
        process.join()
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is somebody else when it likes")
def test_what_only_the_servers_user_may_see_is_named_as_missing() -> None:
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(["sleep", "60"]) as postmaster:
        data = Path(folder) / "data"
        (data / "pg_wal").mkdir(parents=True)

        def look() -> list[str]:
            notes: list[Text] = []
            Processes(postmaster.pid, notes.append).rows(1.0)
            return [*dict.fromkeys(map(i18n.text, notes)), *devices.Devices(devices.places_of(data)).hidden]

        try:
            # The folder is root's alone.
            notes = i18n.text(message("gap-process-bytes"))
            assert _as_nobody(look) == [notes, "data", "wal"]
            assert look() == []
        finally:
            postmaster.kill()


def test_whatever_goes_wrong_in_a_source_the_others_go_on() -> None:
    class Odd(_Source):
        def rows(self, seconds: float) -> list[Row]:
            return [{"n": float(None)}]  # type: ignore[arg-type]

    odd, good = Odd(), _Source()
    odd.name = "odd"
    heard = _Heard()
    start = time.time_ns()
    c = Collection([odd, good], None, heard, period_s=0.05, start_ns=lambda: start)
    c.start()
    wait_until(lambda: len(heard.gaps) == 2 and heard.samples)
    c.stop()
    assert [(g.id, g.args["what"]) for g in heard.gaps] == [("gap-of", Name("odd")), ("gap-given-up", Name("odd"))]
    assert {s.source for s in heard.samples} == {"s"}


def test_a_source_that_hangs_does_not_hold_up_the_end() -> None:
    heard = _Heard()
    start = time.time_ns()
    source = _Source(wait_s=60)
    c = Collection([source], None, heard, period_s=0.05, start_ns=lambda: start)
    c.start()
    wait_until(lambda: source.calls)
    began = time.monotonic()
    c.stop()
    assert time.monotonic() - began < 5 and heard.gaps == [message("gap-no-answer")]


class _Server:
    """Is lost after some answers, and comes back after some tries."""

    def __init__(self) -> None:
        self.sources: list[Source] = [_Source()]
        self.waits = None
        self.is_lost = False
        self.tries = 0
        self.gone = False

    def renew(self) -> None:
        self.tries += 1
        if self.gone:
            raise OSError("refused")
        self.sources, self.is_lost = [_Source()], False


def test_a_server_that_comes_back_is_asked_again() -> None:
    server, local = _Server(), _Source()
    local.name = "local"
    heard = _Heard()
    start = time.time_ns()
    c = Collection([local], server, heard, period_s=0.05, start_ns=lambda: start)
    c.start()
    wait_until(lambda: any(s.source == "s" for s in heard.samples))
    first = server.sources[0]
    assert isinstance(first, _Source)
    server.gone = True
    first.wrong = server.is_lost = True
    wait_until(lambda: server.tries >= 8)
    lost_until = time.time_ns()
    server.gone = False
    wait_until(lambda: any(s.source == "s" and s.start_ns > lost_until for s in heard.samples))
    c.stop()
    # However long it was away, and what it counts anew is no difference to what was before.
    lost, back = heard.events
    assert (lost.kind, back.kind) == (EventKind.OWN_CONNECTION_LOST, EventKind.OWN_CONNECTION_BACK)
    assert 0 < lost.at_ns < lost_until - start < back.at_ns
    away = (start + lost.at_ns, start + back.at_ns)
    assert not any(s.start_ns < away[0] and s.end_ns > away[1] for s in heard.samples if s.source == "s")
    # The machine was sampled all the time.
    ours = [(s.start_ns, s.end_ns) for s in heard.samples if s.source == "local"]
    assert all(b == a for (_, b), (a, _) in itertools.pairwise(ours)) and max(b - a for a, b in ours) < 10**9


def test_nothing_is_sampled_before_the_load_begins() -> None:
    source = _Source()
    asked = itertools.count()
    c = Collection([source], None, _Heard(), period_s=0.02, start_ns=lambda: 0 * next(asked))
    c.start()
    # Five times over it looked whether the load has begun.
    wait_until(lambda: next(asked) > 5)
    assert source.calls == 0
    c.stop()


def test_samples_survive_a_kill(tmp_path: Path) -> None:
    writer = SampleWriter(tmp_path)
    for n in range(3):
        writer.append("waits", n, n + 1, [{"wait": "x", "processes": float(n)}])
    file = tmp_path / samples.FOLDER / "waits.jsonl"
    whole = samples.read(tmp_path, "waits")
    assert [r["processes"] for r in whole] == [0.0, 1.0, 2.0]
    # Torn by the kill.
    file.write_bytes(file.read_bytes()[:-7])
    notes: list[Path] = []
    assert len(samples.read(tmp_path, "waits", lambda p, _: notes.append(p))) == 2 and not notes
    file.write_text('{"start_ns": 1\n{"start_ns": 2}\n')
    assert samples.read(tmp_path, "waits", lambda p, _: notes.append(p)) == [] and notes
    assert samples.names(tmp_path) == ["waits"]


def test_samples_become_parquet(tmp_path: Path) -> None:
    writer = SampleWriter(tmp_path)
    rows = [{"wait": "é", "processes": 1.5}, {"wait": "", "processes": math.pi}]
    writer.append("waits", 0, 10, rows)
    writer.whole("plans", [{"plan": "Seq Scan", "ms": 1.0}])
    writer.whole("nothing", [])
    writer.finish()
    # Too late: it was given up.
    writer.append("waits", 10, 20, rows)
    assert samples.read(tmp_path, "waits") == [{"start_ns": 0, "end_ns": 10, **r} for r in rows]
    assert samples.names(tmp_path) == ["plans", "waits"]
    path = samples.file_of(tmp_path, "waits")
    assert path is not None
    path.write_bytes(b"PAR1 not")
    notes: list[str] = []
    assert samples.read(tmp_path, "waits", lambda _, why: notes.append(why)) == [] and notes


def test_lines_that_a_full_disk_has_torn_are_kept(tmp_path: Path) -> None:
    writer = SampleWriter(tmp_path)
    for name in ("whole", "torn", "empty"):
        writer.append(name, 0, 1, [{"x": 1.0}])
    folder = tmp_path / samples.FOLDER
    for name, size in (("torn", 20), ("empty", 0)):
        with (folder / f"{name}.jsonl").open("r+b") as f:
            f.truncate(size)
    writer.finish()
    assert (folder / "whole.parquet").exists() and not (folder / "whole.jsonl").exists()
    assert samples.read(tmp_path, "torn") == [] and samples.read(tmp_path, "empty") == []
    assert len(samples.read(tmp_path, "whole")) == 1


@pytest.mark.parametrize(
    ("ours", "servers"),
    [
        ("UPDATE t SET v = v + $1 WHERE id = $2;", "UPDATE t SET v = v + $1 WHERE id = $2"),
        # By the simple protocol constants are numbered where they stand.
        ("SELECT a FROM t\n WHERE b = 'x''y' AND c=5", "SELECT a FROM t WHERE b = $1 AND c = $2"),
        ("INSERT INTO h (tid, bid) VALUES ($1,$2)", "INSERT INTO h (tid, bid) VALUES ($1, $2)"),
        ("SELECT 1.5e3::numeric, x::int FROM t2", "SELECT $1::numeric, x::int FROM t2"),
        ("SELECT .5, 0x1F, E'a\\b', true, null", "SELECT $1, $2, $3, $4, $5"),
        ("UPDATE t SET v = v + -5 WHERE a > - 3", "UPDATE t SET v = v + $1 WHERE a > $2"),
        ("SELECT -1", "SELECT $1"),
        ("SELECT 'x--y', /* why */ 2 -- so\nFROM t", "SELECT $1, $2 FROM t"),
        # PostgreSQL 18 squashes lists.
        ("SELECT a FROM t WHERE b IN (1, 2, 3)", "SELECT a FROM t WHERE b IN ($1 /*, ... */)"),
        ("SELECT a FROM t WHERE b = $1", "prepare pgdyno_plan as SELECT a FROM t WHERE b = $1"),
        ("BEGIN", "BEGIN"),
    ],
)
def test_a_statement_is_known_by_its_shape(ours: str, servers: str) -> None:
    assert statements.shape(ours) == statements.shape(servers)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t1", "SELECT a FROM t2"), ("SELECT v - 1 FROM t", "SELECT v + 1 FROM t"),
        ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b > 1"), ("SELECT a::int", "SELECT a::text"),
    ],
)  # fmt: skip
def test_others_have_another_shape(one: str, other: str) -> None:
    assert statements.shape(one) != statements.shape(other)


def test_rows_of_the_server_are_given_to_the_scripts_that_sent_them() -> None:
    sent = [
        plans.Sample("a.sql", 3, "UPDATE t SET v = :x", "UPDATE t SET v = $1", "UPDATE t SET v = 1"),
        plans.Sample("b.sql", 9, "UPDATE t SET v = 2", "UPDATE t SET v = 2", "UPDATE t SET v = 2"),
    ]
    long = f"SELECT {'a, ' * 500} 1"
    sent.append(plans.Sample("c.sql", 1, long, long, long))
    texts = ("UPDATE t SET v = $1", "VACUUM t", long.replace(" 1", " $1"))
    rows: list[Row] = [{"statement": text, "calls": 7.0} for text in texts]
    first, second, third = statements.attributed(rows, sent)
    assert (first["script"], first["line"], first["calls"]) == ("a.sql", 3.0, 7.0)
    assert (second["script"], second["line"]) == ("", 0.0)
    # All of the text is compared, and some of it is kept.
    assert third["script"] == "c.sql" and len(str(third["statement"])) == 1000


@given(st.text(alphabet="aZ_0 ',;$:1.-+*/()<=>\n\"", max_size=60))
def test_any_text_has_a_shape_whatever_its_blanks(text: str) -> None:
    assert statements.shape(f"  {text};\n") == statements.shape(text)


def test_devices_are_read_between_the_phases_of_a_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted:
        def __init__(self, _: object) -> None:
            self.holds = {"sda": ["data"]}
            self.read = 0

        def rows(self, seconds: float) -> list[Row]:
            self.read += 1
            return [{"device": "sda", "reads_per_s": float(self.read)}] if self.read > 1 else []

    monkeypatch.setattr(phases, "Devices", Counted)
    monkeypatch.setattr(phases, "_SHORTEST_S", 0.0)
    watched = PhasesOnDevices(tmp_path)
    stream = RunStream()
    stream.record(watched)
    for phase in ("create", "generate", "generate", "vacuum"):
        stream.emit(DatasetProgress(phase))
    stream.emit(DatasetDone())
    found = [(row["phase"], row["reads_per_s"]) for row in watched.finish()]
    assert found == [
        ("create", 2.0),
        ("generate", 3.0),
        ("vacuum", 4.0),
    ]


def test_of_what_was_not_read_before_nothing_is_known() -> None:
    def counted(calls: dict[str, float]) -> dict[str, dict[tuple[str, ...], tuple[float | None, ...]]]:
        return {"statements": {(name, name): (n, *([1.0] * 10)) for name, n in calls.items()}}

    before, after = Totals(counted({"a": 1.0})), Totals(counted({"a": 5.0, "b": 9.0}))
    rows = {r["id"]: r["calls"] for r in totals.between(before, after, 180000)["statements"]}
    assert rows == {"a": 4.0, "b": 9.0}
    # There were more than are read: what `b` had counted before is not known.
    before.cut.add("statements")
    rows = {r["id"]: r["calls"] for r in totals.between(before, after, 180000)["statements"]}
    assert rows == {"a": 4.0}
