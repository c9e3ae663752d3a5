"""Random troubles on random workloads, with known truth: what explain finds of causes that no rule was written for.

A seed gives the workload, the server's size, and the trouble with its strength and times. Each trouble has patterns,
written down before any run: the first finding is right if its cause or sentence matches one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from tests.support import causes
from tests.support.causes import Disturb, Injected, beside
from tests.support.server import Server

SECONDS = 20.0
_BIG = "create table big as select i, repeat('x', 400) pad from generate_series(1, {n}) i"


@dataclass(frozen=True)
class Workload:
    """A script on the table t (id, v, pad), of `rows` rows."""

    name: str
    script: str
    rows: int = 100_000
    writes: bool = False
    setup: str = ""


_ID = "\\set id random(1, :rows)\n"
WORKLOADS = (
    Workload("point select", f"{_ID}SELECT v FROM t WHERE id = :id;\n"),
    Workload("updates of own rows", "\\set id random(1, 1000) + 1000 * :client_id\n"
             "UPDATE t SET v = v + 1 WHERE id = :id;\n", writes=True),
    Workload("random updates", f"{_ID}UPDATE t SET v = v + 1 WHERE id = :id;\n", 400_000, writes=True),
    Workload("inserts", "INSERT INTO h VALUES (:client_id, repeat('y', 80));\n", writes=True,
             setup="create table h (a int, b text)"),
    Workload("ranges", f"{_ID}SELECT sum(v) FROM t WHERE id BETWEEN :id AND :id + 200;\n"),
    Workload("read and write", f"{_ID}BEGIN;\nSELECT v FROM t WHERE id = :id;\nUPDATE t SET v = v + 1 WHERE id = :id;\n"
             "INSERT INTO h VALUES (:id, 'x');\nEND;\n", writes=True, setup="create table h (a int, b text)"),
    Workload("aggregates", f"{_ID}SELECT count(*), sum(v) FROM t WHERE id > :id AND id < :id + 20000;\n"),
    Workload("joins", f"{_ID}SELECT count(*) FROM t a JOIN t b ON b.id = a.id + 1 "
             "WHERE a.id BETWEEN :id AND :id + 500;\n"),
)  # fmt: skip


@dataclass(frozen=True)
class Trouble:
    """One of a kind, as it was drawn."""

    name: str
    #: Patterns of the first finding: cause and sentence.
    expected: tuple[str, ...]
    #: What makes it of a calm scenario.
    act: Callable[[Injected], Injected]
    #: Workloads that it disturbs.
    fits: Callable[[Workload], bool] = lambda w: True
    #: What makes the same work without it, where it brings a script of its own; None: nothing does.
    without: Callable[[Injected], Injected] | None = None


@dataclass(frozen=True)
class Drawn:
    """A scenario: without the trouble, and with it."""

    seed: int
    workload: str
    calm: Injected
    trouble: Trouble | None

    @property
    def troubled(self) -> Injected:
        """The scenario with its trouble."""
        return self.trouble.act(self.calm) if self.trouble else self.calm

    @property
    def reference(self) -> Injected | None:
        """The scenario whose throughput tells the loss; None: there is no such one."""
        if self.trouble is not None and self.trouble.without is not None:
            return self.trouble.without(self.calm)
        return self.calm if self.troubled.script == self.calm.script else None

    def is_named(self, finding: dict[str, object]) -> bool:
        """Return True if a finding names the trouble."""
        text = f"{finding['cause']}: {finding['sentence']}"
        return self.trouble is not None and any(re.search(p, text, re.IGNORECASE) for p in self.trouble.expected)


# ---------------------------------------------------------------- what is done beside the load


def _is_loaded(server: Server) -> bool:
    found = "select 1 from pg_stat_activity where application_name = 'pgdyno' and backend_type = 'client backend'"
    return bool(server.sql(found))


def _after(begin_s: float, act: Callable[[Server, threading.Event], None]) -> Disturb:
    """Act `begin_s` seconds after the clients have connected."""

    def run(server: Server, end: threading.Event) -> None:
        while not end.is_set() and not _is_loaded(server):
            end.wait(0.1)
        if not end.wait(begin_s):
            act(server, end)

    return lambda server: beside(run, server)


def _once(begin_s: float, sql: str) -> Disturb:
    def act(server: Server, end: threading.Event) -> None:
        for statement in sql.split(";;"):
            server.sql(statement)

    return _after(begin_s, act)


def _loop(begin_s: float, every_s: float, sql: str, sessions: int = 1) -> Disturb:
    def one(server: Server, end: threading.Event) -> None:
        with psycopg.connect(server.conninfo(), autocommit=True, application_name="cron") as conn:
            n = 0
            while not end.is_set():
                n += 1
                conn.execute(sql.replace(":n", str(n % 90 + 10)).encode())
                end.wait(every_s)

    def act(server: Server, end: threading.Event) -> None:
        threads = [threading.Thread(target=one, args=(server, end), daemon=True) for _ in range(sessions)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    return _after(begin_s, act)


def _open(begin_s: float, for_s: float, *statements: str) -> Disturb:
    def act(server: Server, end: threading.Event) -> None:
        with psycopg.connect(server.conninfo(), application_name="batch") as conn:
            for statement in statements:
                conn.execute(statement.encode())
            end.wait(for_s)
            conn.rollback()

    return _after(begin_s, act)


def _freeze(begin_s: float, for_s: float, times: int) -> Disturb:
    def act(server: Server, end: threading.Event) -> None:
        for _ in range(times):
            pids = [r[0] for r in server.sql("select pid from pg_stat_activity where application_name = 'pgdyno'")]
            for sig, pause in ((signal.SIGSTOP, for_s), (signal.SIGCONT, 2.5)):
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, sig)
                end.wait(pause)

    return _after(begin_s, act)


def _both(one: Disturb, other: Disturb) -> Disturb:
    @contextlib.contextmanager
    def act(server: Server) -> Iterator[None]:
        with one(server), other(server):
            yield

    return act


def _deadlocks(server: Server, end: threading.Event) -> None:
    """Two sessions that lock the same rows in another order, again and again."""

    def one(first: int, second: int) -> None:
        with psycopg.connect(server.conninfo(), autocommit=True, application_name="cron") as conn:
            while not end.is_set():
                with contextlib.suppress(psycopg.errors.DeadlockDetected), conn.transaction():
                    conn.execute(f"update t set v = 0 where id between {first} and {first + 2000}".encode())
                    conn.execute(f"update t set v = 0 where id between {second} and {second + 2000}".encode())

    threads = [threading.Thread(target=one, args=x, daemon=True) for x in ((1, 40_000), (40_000, 1))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def _fsyncs(folder: Path, end: threading.Event) -> None:
    """Another program that writes and syncs all the time, where the data lie."""
    while not end.is_set():
        with (folder / "storm").open("wb") as f:
            f.write(b"x" * (8 << 20))
            f.flush()
            os.fsync(f.fileno())


def _with(
    *, conf: str = "", setup: str = "", disturb: Disturb | None = None, script: str = "", **more: object
) -> Callable[[Injected], Injected]:
    def act(i: Injected) -> Injected:
        made = f"{i.setup}; {setup}" if setup else i.setup
        changed = replace(i, conf=i.conf + conf, setup=made, **more)  # type: ignore[arg-type]
        changed = replace(changed, disturb=_both(i.disturb, disturb)) if disturb else changed
        return replace(changed, script=script) if script else changed

    return act


_NAP = (
    "create function nap() returns trigger language plpgsql as $$ begin "
    "if random() < {p} then perform pg_sleep({s})!; end if!; return new!; end $$"
)


def _add_trigger(begin_s: float, p: float, seconds: float) -> Disturb:
    function = _NAP.format(p=p, s=seconds).replace("!;", ";")
    return _once(begin_s, f"{function};;create trigger nap before update on t for each row execute function nap()")


def troubles(r: random.Random) -> list[Trouble]:
    """Return one of each kind, with the strength and the times that were drawn."""
    begin, n = r.uniform(4, 12), r.randint(600_000, 1_500_000)
    big = _BIG.format(n=n)
    reload = ";;select pg_reload_conf()"

    def writes(w: Workload) -> bool:
        return w.writes

    def updates(w: Workload) -> bool:
        return "UPDATE t" in w.script

    def keyed(w: Workload) -> bool:
        return "WHERE id = :id" in w.script

    scan = "SELECT count(*) FROM t WHERE id < 2000;\nEND;\n"
    hot = f"\\set id random(1, 3)\nBEGIN;\nUPDATE t SET v = v + 1 WHERE id = :id;\n{scan}"
    nap = (
        "create function f(p float) returns int language sql as $$ select case when random() < p then "
        "(select 1 from pg_sleep(0.02)) else 0 end $$"
    )
    child = (
        "create table child (id int, t int references t); insert into child select i, 1 from "
        "generate_series(1, 100000) i"
    )
    delete = "\\set id random(2, :rows)\nBEGIN;\nDELETE FROM t WHERE id = :id;\nROLLBACK;\n"
    by_v = "\\set id random(1, 1000)\nSELECT count(*) FROM t WHERE v = :id;\n"
    saved = (
        "\\set id random(1, 1000) + 1000 * :client_id\nBEGIN;\n"
        + "".join(f"SAVEPOINT s{k};\nUPDATE t SET v = v + 1 WHERE id = :id + {k};\n" for k in range(70))
        + "END;\n"
    )
    shared = (
        "\\set id random(1, 5){own}\nBEGIN;\nSELECT v FROM t WHERE id = :id FOR SHARE;\n"
        "SELECT v FROM t WHERE id = :id + 5 FOR KEY SHARE;\nEND;\n"
    )
    by_b = "\\set id random(1, 1000)\nSELECT count(*) FROM p WHERE b = :id;\n"
    few = "\\set id random(1, 20)\nUPDATE t SET v = v + 1 WHERE id = :id;\n"
    sort = f"{_ID}SELECT count(*) FROM (SELECT pad FROM t WHERE id BETWEEN :id AND :id + 20000 ORDER BY pad, v) x;\n"
    return [
        Trouble("VACUUM FULL of another table", ("vacuum full",),
                _with(setup=big, disturb=_once(begin, "vacuum full big"))),
        Trouble("CREATE INDEX on another table", ("create index",),
                _with(setup=big, disturb=_loop(begin, 0.5, "create index if not exists b_:n on big (pad, i)"))),
        Trouble("ANALYZE in a loop", ("analyze",),
                _with(setup=big, disturb=_loop(begin, r.uniform(0, 0.3), "analyze big"))),
        Trouble("ALTER TABLE in a loop", ("alter table", "lock"),
                _with(disturb=_loop(begin, r.uniform(0, 0.05), "alter table t alter v set statistics :n"))),
        Trouble("DDL in a loop", ("create table", "drop table", r"\bdo\b"),
                _with(disturb=_loop(0, 0, "create table made_:n (a int primary key, b text); drop table made_:n"))),
        Trouble("report of another session", (r"sum\(",),
                _with(disturb=_loop(r.choice((0.0, begin)), 0, "select sum(sqrt(i)) from generate_series(1, 400000) i",
                                    r.randint(1, 3)))),
        Trouble("COPY of another table", ("copy",),
                _with(setup=big, disturb=_loop(begin, 0, "copy big to '/dev/null'", 2))),
        Trouble("bulk insert", ("insert into big",),
                _with(setup=big, disturb=_loop(begin, 0, "insert into big select i, repeat('z', 400) from "
                                               "generate_series(1, 200000) i"))),
        Trouble("LOCK TABLE", ("foreign-lock", "lock table"),
                _with(disturb=_open(begin, r.uniform(2, 6), "lock table t in access exclusive mode")),
                lambda w: " t " in w.script),
        Trouble("ALTER TABLE queued behind a reader", ("foreign-lock", "alter table"),
                _with(disturb=_open(begin, r.uniform(3, 6), "select 1 from t limit 1", "alter table t add z int")),
                lambda w: " t " in w.script),
        Trouble("checkpoints", ("checkpoint",),
                _with(conf="fsync=on\n", disturb=_loop(0, r.uniform(1, 3), "checkpoint")), writes),
        Trouble("primary key dropped", ("t_pkey",),
                _with(disturb=_once(begin, "alter table t drop constraint t_pkey")), keyed),
        Trouble("slow trigger created", (r"trigger t\.nap", "PgSleep"),
                _with(disturb=_add_trigger(begin, r.choice((0.01, 0.1, 1.0)), r.uniform(0.01, 0.03))), updates),
        Trouble("synchronous_commit turned on", ("synchronous_commit",),
                _with(conf="fsync=on\n", disturb=_once(begin, "alter system set synchronous_commit = on" + reload)),
                writes),
        Trouble("statement logging turned on", ("log_min_duration_statement", r"\blog"),
                _with(disturb=_once(begin, "alter system set log_min_duration_statement = 0" + reload))),
        Trouble("indexes created", ("index t_v",),
                _with(disturb=_once(begin, "create index t_v on t (v);;create index t_v2 on t (v, id);;"
                                    "create index t_v3 on t (v, pad)")), updates),
        Trouble("JIT", ("jit",), _with(conf="jit_above_cost=0\njit_inline_above_cost=0\njit_optimize_above_cost=0\n")),
        Trouble("small shared_buffers", ("buffer-misses", "data-io", "shared_buffers"),
                _with(conf="shared_buffers=1MB\n"),
                lambda w: w.rows >= 100_000 and w.name != "inserts"),
        Trouble("small max_wal_size", ("checkpoint", "full-page"),
                _with(conf="fsync=on\nmax_wal_size=32MB\nmin_wal_size=32MB\ncheckpoint_completion_target=0\n"), writes),
        Trouble("small work_mem", ("temporary", "work_mem"),
                _with(conf="work_mem=64kB\n", script=sort), lambda w: w.name == "aggregates",
                _with(conf="work_mem=64MB\n", script=sort)),
        Trouble("few hot rows", ("row-locks", "lock"), _with(script=hot), updates,
                _with(script=hot.replace("random(1, 3)", "random(1, 1000) + 1000 * :client_id"))),
        Trouble("advisory lock", ("advisory",),
                _with(script=f"BEGIN;\nSELECT pg_advisory_xact_lock(1);\n{scan}"),
                without=_with(script=f"BEGIN;\nSELECT 1;\n{scan}")),
        Trouble("function that sleeps", ("PgSleep",),
                _with(setup=nap, script=f"{_ID}SELECT f({r.choice((0.01, 0.1))}), v FROM t WHERE id = :id;\n"),
                without=_with(setup=nap, script=f"{_ID}SELECT f(0), v FROM t WHERE id = :id;\n")),
        Trouble("slow network", ("network", "round trip"), _with(delay_ms=r.choice((1, 3, 10)))),
        Trouble("client held to a part of a CPU", ("client-bound",), _with(quota=r.uniform(0.15, 0.4)), keyed),
        Trouble("CPU limit of the server", ("cpu-quota", "limit"), _with(server_cpus=r.uniform(0.2, 0.8))),
        Trouble("other programs", ("noisy-neighbour", "other program", "other process"),
                _with(disturb=causes._burners)),
        Trouble("frozen backends", ("stopped",), _with(disturb=_freeze(3, r.uniform(0.4, 2.0), r.randint(2, 4)))),
        Trouble("foreign key without an index", ("child",),
                _with(setup=child, script=delete),
                without=_with(setup=f"{child}; create index on child (t)", script=delete)),
        Trouble("no index", ("missing-index", r"\bt\b.*index"), _with(script=by_v),
                without=_with(setup="create index on t (v)", script=by_v)),
        # Without the open transaction the snapshots of others do not reach back: it is the reason of both.
        Trouble("subtransactions", ("subtrans", "slru", "held-snapshot"),
                _with(script=saved, disturb=_open(0, 30, "update t set v = 0 where id = 99999")), updates,
                _with(script=saved)),
        Trouble("sequence", ("nextval", "sequence", "buffercontent"),
                _with(setup="create sequence s", script="SELECT nextval('s');\n"),
                without=_with(setup="create sequence s cache 1000", script="SELECT nextval('s');\n")),
        Trouble("unlogged to logged", ("alter table", "set logged"),
                _with(setup=big.replace("create table", "create unlogged table"),
                      disturb=_once(begin, "alter table big set logged"))),
        Trouble("multixacts", ("multixact",),
                _with(script=shared.replace("{own}", "")), updates,
                _with(script=shared.replace("{own}", " + 1000 * :client_id"))),
        Trouble("many partitions", ("lockmanager", "lock manager", "partition"),
                _with(setup="create table p (a int, b int) partition by range (a); " + "; ".join(
                    f"create table p{k} partition of p for values from ({k}) to ({k + 1})" for k in range(120)),
                      script=by_b),
                without=_with(setup="create table p (a int, b int)", script=by_b)),
        Trouble("TRUNCATE in a loop", ("truncate",),
                _with(setup="create table gone (a int)", disturb=_loop(0, r.uniform(0, 0.02), "truncate gone"))),
        Trouble("REINDEX in a loop", ("reindex",),
                _with(setup=f"{big}; create index b_i on big (i)", disturb=_loop(begin, 0, "reindex index b_i"))),
        Trouble("REFRESH in a loop", ("refresh",),
                _with(setup=f"{big}; create materialized view m as select i % 1000 k, count(*) from big group by 1",
                      disturb=_loop(begin, 0, "refresh materialized view m"))),
        Trouble("large DELETE", ("delete from",), _with(setup=big, disturb=_once(begin, "delete from big"))),
        Trouble("VACUUM in a loop", ("vacuum",),
                _with(disturb=_loop(begin, 0, "vacuum (disable_page_skipping) t"))),
        Trouble("open snapshot", ("held-snapshot", "bloat"),
                _with(script=few, disturb=_open(0, 30, "set transaction isolation level repeatable read",
                                                "select 1 from t limit 1")), updates, _with(script=few)),
        Trouble("deadlocks of others", ("update t", "row-locks", "foreign-lock", "deadlock"),
                _with(disturb=_after(begin, _deadlocks)), updates),
        Trouble("aggressive autovacuum", ("autovacuum",),
                _with(conf="autovacuum=on\nautovacuum_naptime=1\nautovacuum_vacuum_cost_delay=0\n"
                      "autovacuum_vacuum_threshold=1\nautovacuum_vacuum_scale_factor=0\n"), updates),
        Trouble("role without index scans", ("enable_", "missing-index", "sequential scan"),
                _with(setup="alter role postgres set enable_indexscan = off; alter role postgres set "
                      "enable_bitmapscan = off; alter role postgres set enable_indexonlyscan = off"), keyed),
        Trouble("commit_delay", ("commit_delay", "commitdelay", "wal-flush"),
                _with(conf="fsync=on\nsynchronous_commit=on\ncommit_delay=20000\ncommit_siblings=0\n"), writes),
        Trouble("fsyncs of another program", ("wal-flush", "throttled-storage", "other program", "device"),
                _with(conf="fsync=on\nsynchronous_commit=on\n",
                      disturb=_after(begin, lambda server, end: _fsyncs(server.data.parent, end))), writes),
        Trouble("parallel query of another session", ("from big",),
                _with(setup=big, conf="max_parallel_workers_per_gather=4\nmin_parallel_table_scan_size=0\n",
                      disturb=_loop(begin, 0, "select count(*) from big where pad like '%y%'"))),
        Trouble("temporary tables", ("catalog", "pg_attribute", "temporary table", "create temp"),
                _with(script="CREATE TEMP TABLE x (a int, b text);\nDROP TABLE x;\n")),
    ]  # fmt: skip


def _sized(act: Callable[[Injected], Injected], rows: int) -> Callable[[Injected], Injected]:
    def sized(i: Injected) -> Injected:
        made = act(i)
        return replace(made, script=made.script.replace(":rows", str(rows)))

    return sized


def draw_pair(seed: int) -> tuple[Drawn, Drawn, Injected]:
    """Return two troubles of one workload, and the scenario with both.

    At most one of them brings a script of its own.
    """
    first = next(d for d in (draw(seed + n) for n in itertools.count(0, 10_000)) if d.trouble is not None)
    assert first.trouble is not None
    brings = first.troubled.script != first.calm.script
    for n in itertools.count(1):
        other = draw(seed + n * 10_000 + 5_000)
        if other.trouble is None or other.trouble.name == first.trouble.name:
            continue
        workload = next(w for w in WORKLOADS if w.name == first.workload)
        if not other.trouble.fits(workload) or (brings and other.troubled.script != other.calm.script):
            continue
        second = replace(other, workload=first.workload, calm=first.calm)
        return first, second, other.trouble.act(first.trouble.act(first.calm))
    raise AssertionError("there is always another one")


def draw(seed: int) -> Drawn:
    """Return the scenario of a seed; one in ten has no trouble."""
    r = random.Random(seed)
    workload = r.choice(WORKLOADS)
    fitting = [t for t in troubles(r) if t.fits(workload)]
    trouble = r.choice(fitting) if r.random() >= 0.1 else None
    buffers = r.choice((32, 128, 512))
    conf = f"synchronous_commit=off\nautovacuum=off\nmax_wal_size=8GB\nshared_buffers={buffers}MB\ntrack_io_timing=on\n"
    script = workload.script.replace(":rows", str(workload.rows))
    setup = causes._filled(workload.rows)
    calm = Injected(
        f"seed {seed}", "", script, f"{setup}; {workload.setup}" if workload.setup else setup, conf,
        clients=r.choice((2, 4, 8)), seconds=SECONDS, interval_s=1.0,
    )  # fmt: skip
    if trouble is not None:
        without = _sized(trouble.without, workload.rows) if trouble.without else None
        trouble = replace(trouble, act=_sized(trouble.act, workload.rows), without=without)
    return Drawn(seed, workload.name, calm, trouble)
