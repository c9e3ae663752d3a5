"""Causes, made on real servers: what pgdyno explain is to name first. Each is bounded in time, and undone."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.support import slowdisk
from tests.support.cli import PGDYNO, environment
from tests.support.proxy import Fault, Proxy
from tests.support.server import Server

#: What a trial takes; and its beginning, which is not measured.
SECONDS, WARMUP_S = 8.0, 1.0
Disturb = Callable[[Server], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Injected:
    """A cause, and how it is made."""

    name: str
    #: The finding that is to be first; "": none that is a trouble.
    cause: str
    script: str = ""
    setup: str = ""
    conf: str = ""
    #: In place of a script: TPC-C of so many warehouses, without waits, its transactions chosen by these weights.
    warehouses: int = 0
    mix: tuple[int, ...] = (10, 10, 1, 1, 1)
    #: What the first finding names: a statement, a table.
    says: str = ""
    clients: int = 4
    seconds: float = SECONDS
    interval_s: float = 0.2
    #: Something that goes on beside the load.
    disturb: Disturb = nullcontext
    #: Further options of pgdyno run.
    options: Sequence[str] = ()
    #: Where the data lie.
    place: Callable[[], AbstractContextManager[Path | None]] = nullcontext
    #: The client is held to this part of a processor.
    quota: float | None = None
    #: The server is held to so many processors.
    server_cpus: float | None = None
    #: Through a proxy that delays each message by so many milliseconds.
    delay_ms: int = 0
    #: Through a proxy that does so, and lets each message wait until the one before has been acknowledged.
    holds_back: bool = False
    #: Why it cannot be made here, if so.
    why_not: Callable[[], str] = field(default=lambda: "")


@contextmanager
def beside(act: Callable[[Server, threading.Event], None], server: Server) -> Iterator[None]:
    """In a thread, until told to end."""
    end = threading.Event()
    thread = threading.Thread(target=act, args=(server, end), daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join(20)


class _Session(ABC):
    """Another session, beside the load."""

    def __call__(self, server: Server) -> AbstractContextManager[None]:
        return beside(self._act, server)

    @abstractmethod
    def _act(self, server: Server, end: threading.Event) -> None:
        """Do it, until told to end."""


@dataclass(frozen=True)
class Repeated(_Session):
    """Statements that another session executes again and again."""

    sql: str
    every_s: float

    def _act(self, server: Server, end: threading.Event) -> None:
        with psycopg.connect(server.conninfo(), autocommit=True, application_name="somebody") as conn:
            while not end.wait(self.every_s):
                conn.execute(self.sql.encode())


@dataclass(frozen=True)
class Once(_Session):
    """Statements that another session executes once."""

    sql: str
    after_s: float

    def _act(self, server: Server, end: threading.Event) -> None:
        if not end.wait(self.after_s):
            for statement in self.sql.split(";"):
                server.sql(statement)


@dataclass(frozen=True)
class Held(_Session):
    """A transaction that does something, and stays open."""

    sql: str
    after_s: float
    for_s: float

    def _act(self, server: Server, end: threading.Event) -> None:
        with psycopg.connect(server.conninfo(), application_name="report") as conn:
            end.wait(self.after_s)
            conn.execute(self.sql.encode())
            end.wait(self.for_s)
            conn.rollback()


def _burn(until: float) -> None:
    while time.monotonic() < until:
        pass


@contextmanager
def _burners(_: Server) -> Iterator[None]:
    """Processes that want all processors."""
    until = time.monotonic() + 60
    ours = [multiprocessing.Process(target=_burn, args=(until,), daemon=True) for _ in range(2 * (os.cpu_count() or 1))]
    for p in ours:
        p.start()
    try:
        yield
    finally:
        for p in ours:
            p.kill()
            p.join()


@contextmanager
def _sleeping_trigger(server: Server) -> Iterator[None]:
    """A trigger that sleeps for 20 ms on one of a hundred updates."""
    server.sql(
        "create function nap() returns trigger language plpgsql as $$ begin "
        "if random() < 0.01 then perform pg_sleep(0.02); end if; return new; end $$"
    )
    server.sql("create trigger nap before update on t for each row execute function nap()")
    yield


def synced(server: Server) -> AbstractContextManager[Any]:
    """Write the loaded data to the disk before the clients connect, so that nothing of it is written later."""

    def act(server: Server, end: threading.Event) -> None:
        clients = "select 1 from pg_stat_activity where application_name = 'pgdyno' and backend_type = 'client backend'"
        while not end.wait(0.5) and not server.sql(clients):
            os.sync()

    return beside(act, server)


@contextmanager
def _frozen(server: Server) -> Iterator[None]:
    """The clients' backends are stopped for a while, twice."""

    def act(server: Server, end: threading.Event) -> None:
        for _ in range(2):
            if end.wait(3):
                return
            clients = "select pid from pg_stat_activity where application_name in ('pgdyno', 'pgbench')"
            pids = [r[0] for r in server.sql(clients)]
            for sig in (signal.SIGSTOP, signal.SIGCONT):
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, sig)
                if sig == signal.SIGSTOP:
                    end.wait(1.2)

    with beside(act, server):
        yield


def _cgroup(controller: str, limits: dict[str, str], pids: Sequence[int], of: str = "test") -> Path:
    folder = Path("/sys/fs/cgroup") / controller / f"throttled-{of}-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    for name, value in limits.items():
        (folder / name).write_text(value)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (folder / "cgroup.procs").write_text(str(pid))
    return folder


def leave(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (folder.parent / "cgroup.procs").write_text(pid)
        for _ in range(50):
            # A process that ends is in it for a moment longer.
            with contextlib.suppress(OSError):
                folder.rmdir()
                return
            time.sleep(0.1)


def limit_cpus(server: Server, cpus: float) -> Path:
    """Limit the CPUs of a server; `leave` removes the limit."""
    assert server.process is not None
    quota = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(int(100_000 * cpus))}
    family = [server.process.pid, *(c.pid for c in psutil.Process(server.process.pid).children())]
    return _cgroup("cpu", quota, family, "server")


def no_cgroups() -> str:
    """Why processes cannot be throttled here; empty: they can."""
    there = all(Path(f"/sys/fs/cgroup/{x}/cgroup.procs").exists() for x in ("blkio", "cpu"))
    return "" if os.geteuid() == 0 and there else "needs root and cgroups of version 1"


def no_loop() -> str:
    """Why a file system cannot be made here."""
    tools = os.geteuid() == 0 and shutil.which("mkfs.ext4") and Path("/dev/loop-control").exists()
    return "" if tools else "needs root, loop devices and mkfs.ext4"


#: What a flush of the slow disk takes, beside what the real one does.
FLUSH_S = 0.005


@contextmanager
def on_slow_disk() -> Iterator[Path]:
    """A folder on an ext4 of its own, on a device whose flushes are slow."""
    with on_loop(flush_s=FLUSH_S) as folder:
        yield folder


@contextmanager
def on_loop(flush_s: float = 0.0) -> Iterator[Path]:
    """A folder on an ext4 of its own, on a loop device."""
    base = Path(tempfile.mkdtemp(prefix="pgdyno-test-loop-"))
    image, mount = base / "image", base / "mount"
    mount.mkdir()
    slow = ExitStack()
    try:
        with image.open("wb") as f:
            f.truncate(3 << 30)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
        if flush_s:
            slow.enter_context(slowdisk.slow_file(image, base / "slow", flush_s))
            image = base / "slow"
        subprocess.run(["mount", "-o", "loop", image, mount], check=True, capture_output=True)
        base.chmod(0o755)
        yield mount
    finally:
        subprocess.run(["umount", mount], check=False, capture_output=True)
        slow.close()
        shutil.rmtree(base, ignore_errors=True)


@contextmanager
def _throttled(server: Server) -> Iterator[None]:
    """The device under the data does so many writes a second for the server's processes."""
    with _limited(server, "write_iops", 150):
        yield


@contextmanager
def _limited(server: Server, what: str, limit: int) -> Iterator[None]:
    number = server.data.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    assert server.process is not None
    family = [server.process.pid, *(c.pid for c in psutil.Process(server.process.pid).children())]
    knob = f"blkio.throttle.{what}_device"
    folder = _cgroup("blkio", {knob: f"{device} {limit}"}, family)
    try:
        yield
    finally:
        (folder / knob).write_text(f"{device} 0")
        leave(folder)


@contextmanager
def _slow_checkpoints(server: Server) -> Iterator[None]:
    """Checkpoints every few seconds, on a device that writes so many bytes a second for the server's processes."""
    with _limited(server, "write_bps", 24 << 20), Repeated("checkpoint", 4.0)(server):
        yield


@contextmanager
def _slow_writes(server: Server) -> Iterator[None]:
    """The device takes so many bytes a second."""
    with _limited(server, "write_bps", 48 << 20):
        yield


@contextmanager
def _standby(server: Server) -> Iterator[None]:
    """A synchronous standby that answers late: pg_receivewal, which tells of itself each second."""
    folder = Path(tempfile.mkdtemp(prefix="pgdyno-test-wal-"))
    server.account.own(folder)
    argv: list[str | Path] = [server.bin / "pg_receivewal", "-D", folder, "--synchronous", "-h", server.socket,
                              "-p", str(server.port), "-U", "postgres"]  # fmt: skip
    process = subprocess.Popen(argv, cwd="/", stderr=subprocess.DEVNULL, **server.account.popen())
    try:
        time.sleep(1)
        server.sql("alter system set synchronous_standby_names = '*'")
        server.sql("select pg_reload_conf()")
        yield
    finally:
        server.sql("alter system reset synchronous_standby_names")
        server.sql("select pg_reload_conf()")
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def experiment_of(i: Injected) -> str:
    """As pgdyno run takes it."""
    dataset, workload = 'kind = "none"', f"[[workloads.w.scripts]]\ntext = '''\n{i.script}'''"
    if i.warehouses:
        dataset, workload = f'kind = "tpcc"\nwarehouses = {i.warehouses}', f"tpcc = {{ mix = {list(i.mix)} }}"
    return (
        f'name = "cause"\ntitle = "Cause"\n[dataset]\n{dataset}\n[workloads.w]\n{workload}\n'
        f"[axes]\nclients = [{i.clients}]\n[run]\nduration_s = {i.seconds}\nwarmup_s = {WARMUP_S}\n"
        f"interval_s = {i.interval_s}\nrepetitions = 1\n{'max_tries = 100' if i.warehouses else ''}\n"
    )


_ROWS = "create table t (id int primary key, v int, pad text);"
_POINT = "\\set id random(1, {n})\nSELECT v FROM t WHERE id = :id;\n"
_UPDATE = "\\set id random(1, {n})\nUPDATE t SET v = v + 1 WHERE id = :id;\n"
#: Each client its own rows: no locks between them.
_OWN = "\\set id random(1, 1000) + 1000 * :client_id\nUPDATE t SET v = v + 1 WHERE id = :id;\n"


def _filled(n: int, pad: int = 100) -> str:
    return (
        f"{_ROWS} insert into t select i, 0, repeat('x', {pad}) from generate_series(1, {n}) i; vacuum analyze t;"
        "checkpoint"
    )


#: Throughput must not be the disk's where it is not the cause.
_DURABLE, _LOOSE = "fsync=on\n", "synchronous_commit=off\nautovacuum=off\n"

EVERY = (
    Injected(
        # So many pages that not all have been changed when the next checkpoint comes, on fast machines neither.
        "checkpoints", "checkpoint-full-pages", _UPDATE.format(n=1_500_000), _filled(1_500_000),
        f"{_DURABLE}autovacuum=off\ntrack_wal_io_timing=on\nwal_compression=off\nshared_buffers=512MB\n"
        "max_wal_size=8GB\n", clients=8, seconds=16, disturb=Repeated("checkpoint", 3.0),
    ),
    # Clients enough for two cores: with two of them, idle CPUs were the larger cost on a fast machine.
    Injected(
        "tiny shared_buffers", "buffer-misses", _POINT.format(n=500_000), _filled(500_000, 300),
        "shared_buffers=1MB\ntrack_io_timing=on\nautovacuum=off\n", clients=4,
    ),
    Injected(
        "throttled device", "throttled-storage", _OWN, _filled(20_000), f"{_DURABLE}track_wal_io_timing=on\n",
        disturb=_throttled, place=on_loop, why_not=lambda: no_cgroups() or no_loop(),
    ),
    Injected(
        "slow commits", "wal-flush", _OWN, _filled(20_000), f"{_DURABLE}autovacuum=off\ntrack_wal_io_timing=on\n",
        clients=2, place=on_slow_disk, why_not=lambda: slowdisk.why_not() or no_loop(),
    ),
    Injected(
        "hot row", "row-locks", "BEGIN;\nUPDATE t SET v = v + 1 WHERE id = 1;\n\\sleep 1 ms\nEND;\n", _filled(100),
        _LOOSE, clients=8,
    ),
    Injected(
        # Pairs of few rows in any order.
        "deadlocks", "row-locks",
        "\\set a random(1, 6)\n\\set b random(1, 6)\nBEGIN;\nUPDATE t SET v = v + 1 WHERE id = :a;\n"
        "UPDATE t SET v = v + 1 WHERE id = :b;\nEND;\n",
        _filled(100), f"{_LOOSE}deadlock_timeout=20ms\n", clients=8,
    ),
    Injected(
        "aggressive autovacuum", "autovacuum", _UPDATE.format(n=600_000),
        f"{_filled(600_000, 60)}; create index on t (pad, id); create index on t (id, pad);"
        "create index on t (pad, v); create index on t (v, id)",
        "synchronous_commit=off\nautovacuum_naptime=1\nautovacuum_vacuum_cost_delay=0\n"
        "autovacuum_vacuum_threshold=1\nautovacuum_vacuum_scale_factor=0\nautovacuum_analyze_threshold=1\n"
        "autovacuum_analyze_scale_factor=0\nmaintenance_work_mem=1MB\nlog_autovacuum_min_duration=0\n", clients=4,
    ),
    Injected(
        "starved client", "client-bound", "SELECT 1;\n", "", _LOOSE, clients=8, quota=0.1, why_not=no_cgroups,
    ),
    Injected(
        # As in a container with a limit.
        "processors' quota", "cpu-quota", _POINT.format(n=1000), _filled(1000), _LOOSE, clients=8, server_cpus=0.4,
        why_not=no_cgroups,
    ),
    Injected("slow network", "network", _POINT.format(n=1000), _filled(1000), _LOOSE, delay_ms=1),
    Injected("messages held back", "network", _POINT.format(n=1000), _filled(1000), _LOOSE, holds_back=True),
    Injected(
        "too many connections", "connections", "SELECT sum(i) FROM generate_series(1, 3000) i;\n", "",
        f"{_LOOSE}max_connections=200\n", clients=120,
    ),
    Injected(
        "locked table", "foreign-lock", _OWN, _filled(20_000), _LOOSE,
        disturb=Held("lock table t in share mode", 3.0, 4.0),
    ),
    Injected(
        "open transaction", "held-snapshot", "\\set id random(1, 20)\nUPDATE t SET v = v + 1 WHERE id = :id;\n",
        _filled(200), f"{_LOOSE}autovacuum=on\nautovacuum_naptime=1\n", clients=2, seconds=16,
        disturb=Held("set transaction isolation level repeatable read; select count(*) from t", 0.0, 60.0),
    ),
    Injected(
        "missing index", "missing-index", "\\set v random(1, 20000)\nSELECT id FROM t WHERE v = :v;\n",
        f"{_ROWS} insert into t select i, i, 'x' from generate_series(1, 20000) i; vacuum analyze t", _LOOSE,
    ),
    Injected(
        "small work_mem", "temporary-files", "SELECT count(*) FROM (SELECT pad FROM t ORDER BY pad, v OFFSET 1) x;\n",
        _filled(20_000), f"{_LOOSE}work_mem=64kB\n", clients=2,
    ),
    Injected(
        "busy neighbour", "noisy-neighbour", _POINT.format(n=1000), _filled(1000), _LOOSE, disturb=_burners,
    ),
    Injected(
        "synchronous standby", "sync-standby", _OWN, _filled(20_000), "autovacuum=off\n", clients=4, disturb=_standby,
    ),
    Injected(
        # Statistics from when all rows had one value; analyzed in the middle of the trial.
        "plan that changes", "plan-changed", "\\set v random(1, 20000)\nSELECT id FROM t WHERE v = :v;\n",
        f"{_ROWS} insert into t select i, 1, 'x' from generate_series(1, 20000) i; create index on t (v); "
        "vacuum analyze t; update t set v = id", f"{_LOOSE}plan_cache_mode=force_generic_plan\n", clients=1,
        disturb=Once("analyze t", 7.5),
    ),
    Injected(
        "index created", "level-change", "\\set v random(1, 20000)\nSELECT id FROM t WHERE v = :v;\n",
        f"{_ROWS} insert into t select i, i, 'x' from generate_series(1, 20000) i; vacuum analyze t", _LOOSE,
        clients=1, says="t_v_idx", disturb=Once("create index on t (v)", 7.5),
    ),
    Injected(
        "no vacuum", "bloat", f"{_UPDATE.format(n=500)}SELECT count(*) FROM t;\n",
        f"{_filled(500)}; create index on t (v)", _LOOSE, clients=4, seconds=16,
    ),
    Injected(
        "checkpoints on a slow disk", "checkpoint-writes", _UPDATE.format(n=200_000), _filled(200_000),
        f"{_DURABLE}autovacuum=off\nfull_page_writes=off\ntrack_wal_io_timing=on\nshared_buffers=256MB\n", clients=8,
        seconds=16, disturb=_slow_checkpoints, place=on_loop, why_not=lambda: no_cgroups() or no_loop(),
    ),
    Injected(
        # Past the page cache, as where the data are many times the memory.
        "data on the disk", "data-io", _POINT.format(n=400_000), _filled(400_000, 300),
        f"{_LOOSE}shared_buffers=8MB\ntrack_io_timing=on\ndebug_io_direct=data\n", clients=2, place=on_loop,
        why_not=no_loop,
    ),
    Injected(
        "tiny wal_buffers", "wal-insert",
        # WAL alone, over and over in the same files: the kernel has no pile of dirty pages to write out in the middle.
        "SELECT count(pg_logical_emit_message(false, 'x', repeat(md5(i::text), 60))) FROM generate_series(1, 20) i;\n",
        "select 1", f"{_LOOSE}wal_buffers=32kB\nmax_wal_size=1GB\nwal_writer_delay=10s\n", clients=8,
    ),
    Injected(
        # Nobody's row, and nobody else's session: a lock of the application's own.
        "advisory lock", "other-waits", f"BEGIN;\nSELECT pg_advisory_xact_lock(1);\n{_UPDATE.format(n=1000)}END;\n",
        _filled(1000), _LOOSE, says="advisory",
    ),
    Injected(
        # Of another table: no lock is in the way.
        "VACUUM FULL of another table", "foreign-command", _OWN,
        f"{_filled(20_000)}; create table big as select i, repeat('x', 400) pad from generate_series(1, 1500000) i",
        f"{_LOOSE}max_wal_size=8GB\n", clients=4, seconds=16, says="VACUUM FULL", disturb=Once("VACUUM FULL big", 6.0),
    ),
    Injected(
        # All the time, so that no stretch of the trial is without it; the script is short of a processor.
        "queries of another session", "foreign-command", _POINT.format(n=1000), _filled(1000), _LOOSE, clients=4,
        says="generate_series", disturb=Repeated("select sum(i * 2) from generate_series(1, 300000) i", 0.0),
    ),
    Injected(
        # No statement of the script reads the other table: the foreign key's check does.
        "foreign key without an index", "missing-index",
        "\\set id random(2, 20000)\nBEGIN;\nDELETE FROM t WHERE id = :id;\nROLLBACK;\n",
        f"{_filled(20_000)}; create table child (id int, parent int references t); insert into child select i, 1 from "
        "generate_series(1, 50000) i", _LOOSE, clients=2, says="child",
    ),
    Injected(
        # In the middle of the trial: one level before, another after.
        "primary key dropped", "level-change", _POINT.format(n=200_000), _filled(200_000), _LOOSE, clients=2,
        seconds=16, says="t_pkey", disturb=Once("alter table t drop constraint t_pkey", 9.0),
    ),
    Injected(
        "setting changed", "level-change", _OWN, _filled(20_000), "autovacuum=off\nfsync=on\nsynchronous_commit=off\n",
        clients=2, seconds=16, says="synchronous_commit",
        disturb=Once("alter system set synchronous_commit = on; select pg_reload_conf()", 9.0),
    ),
    Injected(
        # The script knows nothing of it, and p99 is all that a client sees.
        "sleeping trigger", "other-waits", _OWN, _filled(20_000), _LOOSE, says="PgSleep", disturb=_sleeping_trigger,
    ),
    Injected("frozen backends", "stalls", _POINT.format(n=1000), _filled(1000), _LOOSE, disturb=_frozen),
    Injected(
        "heavy queries", "server-cpu", "SELECT sum(i * i) FROM generate_series(1, 20000) i;\n", "", _LOOSE, clients=4,
    ),
    Injected(
        "one client", "few-clients", "SELECT sum(i * i) FROM generate_series(1, 20000) i;\n", "", _LOOSE, clients=1,
    ),
    Injected(
        # A table of some pages is read by workers, whose start takes longer than the reading.
        "parallel workers for short queries", "parallel-query", "SELECT count(*) FROM t WHERE v = 1;\n", _filled(5_000),
        f"{_LOOSE}min_parallel_table_scan_size=0\nparallel_setup_cost=0\nparallel_tuple_cost=0\n", clients=2,
    ),
    # What limits TPC-C, each where it is the first to.
    Injected(
        # Ten districts for new orders alone.
        "TPC-C: few districts", "row-locks", warehouses=1, mix=(1, 0, 0, 0, 0), says="district", conf=_LOOSE,
        clients=24,
    ),
    Injected(
        # Enough of them that few wait for a warehouse's row meanwhile. What loading them leaves to write must not be
        # written in the trial: by a checkpoint, or by the kernel half a minute later.
        "TPC-C: slow commits", "wal-flush", warehouses=8, says="COMMIT takes",
        conf=f"{_DURABLE}autovacuum=off\ntrack_wal_io_timing=on\nmax_wal_size=8GB\nwal_init_zero=off\n", clients=4,
        place=on_slow_disk,
        disturb=synced, why_not=lambda: slowdisk.why_not() or no_loop(),
    ),
    Injected(
        # Of the five a stock level reads most: two hundred rows of stock, anywhere in it. One client leaves processors
        # free: pages come from the page cache, and of two clients that copy them the processors may be the limit.
        "TPC-C: small shared_buffers", "buffer-misses", warehouses=12, mix=(0, 0, 0, 0, 1), says="stock",
        conf=f"{_LOOSE}shared_buffers=2MB\ntrack_io_timing=on\n", clients=1,
    ),
    Injected(
        # As where the data are many times the memory: each new order changes ten pages of stock, anywhere in it.
        "TPC-C: stock updates", "data-io", warehouses=5, mix=(1, 0, 0, 0, 0), says="stock",
        conf=f"{_LOOSE}shared_buffers=16MB\ntrack_io_timing=on\ndebug_io_direct=data\n", clients=2, place=on_loop,
        why_not=no_loop,
    ),
    Injected("calm: half a load", "", _POINT.format(n=10_000), _filled(10_000), _LOOSE, options=("--rate", "500")),
    Injected("calm: one client", "", _POINT.format(n=10_000), _filled(10_000), _LOOSE, clients=1,
             options=("--rate", "200")),
    Injected(
        "calm: own rows", "", _OWN, _filled(20_000), "synchronous_commit=off\n", clients=2, options=("--rate", "300"),
    ),
)  # fmt: skip


#: Of servers whose load is not pgdyno's.
OBSERVED = (
    Injected(
        "slow application", "idle-in-transaction",
        "\\set id random(1, 1000) + 1000 * :client_id\nBEGIN;\nUPDATE t SET v = v + 1 WHERE id = :id;\n\\sleep 3 ms\n"
        "SELECT v FROM t WHERE id = :id;\nEND;\n", _filled(20_000), "synchronous_commit=off\nautovacuum=off\n",
        says="UPDATE t",
    ),
)  # fmt: skip
#: What takes minutes: for the bench alone.
LONG = (
    Injected(
        # The server's own, spread over their time, on a disk of a cloud's speed: what they write is little, and the
        # first change of each page much.
        "checkpoints each 30 s", "checkpoint-full-pages", _UPDATE.format(n=1_500_000), _filled(1_500_000),
        f"{_DURABLE}autovacuum=off\ntrack_wal_io_timing=on\nwal_compression=off\nshared_buffers=512MB\n"
        "max_wal_size=8GB\ncheckpoint_timeout=30s\n", clients=8, seconds=100, disturb=_slow_writes, place=on_loop,
        why_not=lambda: no_cgroups() or no_loop(),
    ),
    Injected(
        "calm: closed loop, reads", "", _POINT.format(n=10_000), _filled(10_000),
        "autovacuum_naptime=10s\ncheckpoint_timeout=30s\n", clients=2, seconds=150,
    ),
    Injected(
        # Few pages: their whole images are nothing, and there is nothing to write.
        "calm: closed loop, updates", "", _OWN, _filled(20_000),
        "synchronous_commit=off\nautovacuum_naptime=10s\ncheckpoint_timeout=30s\n", clients=2, seconds=150,
    ),
    Injected(
        "calm: half a load for long", "", _OWN, _filled(20_000),
        f"{_DURABLE}autovacuum_naptime=10s\ncheckpoint_timeout=30s\n", clients=2, seconds=150,
        options=("--rate", "200"),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Explained:
    """What pgdyno explain said: the causes in its order, and the findings."""

    causes: list[str]
    findings: list[dict[str, Any]]
    path: Path
    #: Others were at work on the machine, or the hypervisor took its CPUs, beside each try: it has another cause, too.
    is_disturbed: bool = False

    @property
    def alarms(self) -> list[str]:
        """Troubles that it is sure of: a calm run has none. What limits it, a closed loop always has."""
        return [f["cause"] for f in self.findings if f["confidence"] == "high" and f["kind"] != "limit"]


#: Of the processors, the part that others may use, and that the hypervisor may give away, for the cause that was made
#: to be the only one.
_OTHERS, _STEAL = 0.10, 0.03
#: So often the machine is asked for a while without others.
_TRIES = 3
#: Seconds of all tries, at most, after the first one.
_TRIES_S = 80.0


class Others:
    """What processes that are not ours use of the machine, from when this is made: neither this one nor any that it
    has begun and waited for.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._first = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        """Processor seconds of others, and stolen ones."""
        cpu, own = psutil.cpu_times(), os.times()
        busy = cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq
        return busy - (own.user + own.system + own.children_user + own.children_system), cpu.steal

    def _parts(self) -> tuple[float, float]:
        """Their part of the processors, and the hypervisor's."""
        capacity = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        others, steal = ((b - a) / capacity for a, b in zip(self._first, self._now(), strict=True))
        return others, steal

    def were_at_work(self) -> bool:
        """Return True if they may have been what limited the load."""
        others, steal = self._parts()
        return others > _OTHERS or steal > _STEAL

    @property
    def is_stolen(self) -> bool:
        """The hypervisor gave the processors to others."""
        return self._parts()[1] > _STEAL


def explained(i: Injected, runs: Path, tries: int = _TRIES) -> Explained:
    """Make the cause, run the load, and ask why.

    A run beside which others were at work on the machine had another cause as well: it is made again, whatever was
    found, `tries` times in all, as long as that takes less than _TRIES_S seconds.
    """
    began = time.monotonic()
    for n in range(1, tries + 1):
        others = Others()
        found = _explained(i, runs / str(n))
        found = replace(found, is_disturbed=others.were_at_work())
        took = (time.monotonic() - began) / n
        if not found.is_disturbed or (n + 1) * took > _TRIES_S:
            break
    return found


def _explained(i: Injected, runs: Path) -> Explained:
    """Makes the cause, runs the load, and asks why."""
    with ExitStack() as stack:
        place = stack.enter_context(i.place())
        hba = "host all all 127.0.0.1/32 trust\n"
        server = stack.enter_context(Server(hba=hba, conf=i.conf, folder=place))
        for statement in filter(None, map(str.strip, i.setup.split(";"))):
            server.sql(statement)
        file = runs / "cause.toml"
        runs.mkdir(parents=True, exist_ok=True)
        file.write_text(experiment_of(i))
        if i.server_cpus is not None:
            stack.callback(leave, limit_cpus(server, i.server_cpus))
        conninfo = server.conninfo()
        if i.delay_ms or i.holds_back:
            proxy = stack.enter_context(Proxy(server, Fault("delay", 0, i.delay_ms), at_once=not i.holds_back))
            conninfo = server.conninfo(host="127.0.0.1", port=proxy.port, sslmode="disable")
        argv = [PGDYNO, "run", file, "--target", conninfo, "--runs", runs, "--quiet", "--force", *i.options]
        stack.enter_context(i.disturb(server))
        process = subprocess.Popen(
            [*map(str, argv)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment()
        )
        if i.quota is not None:
            limits = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(int(100_000 * i.quota))}
            time.sleep(2.5)
            stack.callback(leave, _cgroup("cpu", limits, [process.pid]))
        _, err = process.communicate(timeout=i.seconds + 150)
        found = sorted(runs.glob("*/manifest.json"))
        assert found, err
        done = subprocess.run(
            [PGDYNO, "explain", found[-1].parent, "--json"], capture_output=True, text=True, check=True,
            env=environment(),
        )  # fmt: skip
        findings = json.loads(done.stdout)["findings"]
        return Explained([f["cause"] for f in findings], findings, found[-1].parent)
