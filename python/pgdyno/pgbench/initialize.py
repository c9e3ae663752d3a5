"""`pgbench -i`: makes the tables of the TPC-B-like workload, step by step."""

from __future__ import annotations

import math
import sys
import time

from pgdyno import _core
from pgdyno.errors import EXIT_SIGINT
from pgdyno.pgbench.connection import Connection, RefusedError, open_connection
from pgdyno.pgbench.messages import Exit, fail, log, plain
from pgdyno.pgbench.options import Options

#: Rows in one unit of scale.
BRANCHES, TELLERS, ACCOUNTS = 1, 10, 100_000
#: From this scale on, account numbers do not fit into 32 bits.
BIGINT_FROM = 20_000
#: Rows that are handed to libpq at a time.
CHUNK = 10_000
#: How often `--quiet` still speaks.
QUIET_S = 5
_TABLES = "pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"


def run(o: Options) -> int:
    """Carries out the steps; returns the exit code."""
    connection = open_connection(o)
    try:
        return _Initializer(o, connection).run()
    except KeyboardInterrupt:
        log("error", "interrupted; the step that was under way is rolled back")
        raise Exit(EXIT_SIGINT) from None
    finally:
        connection.close()


class _Initializer:
    def __init__(self, o: Options, connection: Connection) -> None:
        self.o = o
        self.connection = connection

    def run(self) -> int:
        steps = {
            "d": ("drop tables", self.drop),
            "t": ("create tables", self.create),
            "g": ("client-side generate", self.generate),
            "G": ("server-side generate", self.generate_in_server),
            "v": ("vacuum", self.vacuum),
            "p": ("primary keys", self.primary_keys),
            "f": ("foreign keys", self.foreign_keys),
        }
        total, parts = 0.0, []
        for letter in (self.o.steps or "").replace(" ", ""):
            name, step = steps[letter]
            start = time.monotonic()
            step()
            elapsed = time.monotonic() - start
            total += elapsed
            parts.append(f"{name} {elapsed:.2f} s")
        plain(f"done in {total:.2f} s ({', '.join(parts)}).\n")
        return 0

    def execute(self, sql: str) -> None:
        try:
            self.connection.execute(sql)
        except RefusedError as e:
            fail(f"query failed: {e}", detail=f"Query was: {sql}")

    def drop(self) -> None:
        plain("dropping old tables...\n")
        # All in one command, so that foreign keys between them do not matter.
        self.execute(f"drop table if exists {_TABLES}")

    def create(self) -> None:
        plain("creating tables...\n")
        o = self.o
        aid = "bigint" if o.scale >= BIGINT_FROM else "   int"
        unlogged = " unlogged" if o.unlogged and not o.partition_method else ""
        space = f" tablespace {_quoted(o.tablespace)}" if o.tablespace else ""
        fill = f" with (fillfactor={o.fillfactor})"
        by = f" partition by {o.partition_method} (aid)" if o.partition_method else fill
        for table, columns, storage in (
            ("pgbench_history", f"tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22)", ""),
            ("pgbench_tellers", "tid int not null,bid int,tbalance int,filler char(84)", fill),
            ("pgbench_accounts", f"aid {aid} not null,bid int,abalance int,filler char(84)", by),
            ("pgbench_branches", "bid int not null,bbalance int,filler char(88)", fill),
        ):
            self.execute(f"create{unlogged} table {table}({columns}){storage}{space}")
        if o.partition_method:
            self.create_partitions()

    def create_partitions(self) -> None:
        o = self.o
        plain(f"creating {o.partitions} partitions...\n")
        unlogged = " unlogged" if o.unlogged else ""
        size = math.ceil(ACCOUNTS * o.scale / o.partitions)
        for p in range(1, o.partitions + 1):
            if o.partition_method == "range":
                # Open at both ends: any key has a partition.
                low = "minvalue" if p == 1 else str((p - 1) * size + 1)
                high = "maxvalue" if p == o.partitions else str(p * size + 1)
                bounds = f"from ({low}) to ({high})"
            else:
                bounds = f"with (modulus {o.partitions}, remainder {p - 1})"
            self.execute(
                f"create{unlogged} table pgbench_accounts_{p}\n  partition of pgbench_accounts\n  for values {bounds}"
                f" with (fillfactor={o.fillfactor})"
            )

    def generate(self) -> None:
        plain("generating data (client-side)...\n")
        # In one transaction: what it truncates and fills can be frozen, and needs no WAL where wal_level allows that.
        self.execute("begin")
        self.execute(f"truncate table {_TABLES}")
        for number, (table, rows) in enumerate(
            (("pgbench_branches", BRANCHES), ("pgbench_tellers", TELLERS), ("pgbench_accounts", ACCOUNTS))
        ):
            self.fill(number, table, rows * self.o.scale)
        self.execute("commit")

    def fill(self, number: int, table: str, total: int) -> None:
        kind = self.connection.execute(f"select relkind from pg_catalog.pg_class where oid = '{table}'::regclass")
        freeze = (
            ", freeze on" if kind.get_value(0, 0) == b"r" and self.connection.pgconn.server_version >= 140000 else ""
        )
        progress = _Progress(table, total, self.o.quiet)
        sent = 0

        def chunk() -> bytes:
            nonlocal sent
            if sent >= total:
                return b""
            first, sent = sent, min(sent + CHUNK, total)
            data = _core.tpcb_rows(number, self.o.scale, first, sent)
            progress.show(sent)
            return data

        try:
            self.connection.copy(f"copy {table} from stdin (format binary{freeze})", chunk)
        except RefusedError as e:
            fail(f"query failed: {e}", detail=f"Query was: copy {table} from stdin")
        progress.clear()

    def generate_in_server(self) -> None:
        plain("generating data (server-side)...\n")
        s = self.o.scale
        self.execute("begin")
        self.execute(f"truncate table {_TABLES}")
        self.execute(
            f"insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, {BRANCHES * s}) as bid"
        )
        self.execute(
            "insert into pgbench_tellers(tid,bid,tbalance) "
            f"select tid, (tid - 1) / {TELLERS} + 1, 0 from generate_series(1, {TELLERS * s}) as tid"
        )
        self.execute(
            "insert into pgbench_accounts(aid,bid,abalance,filler) "
            f"select aid, (aid - 1) / {ACCOUNTS} + 1, 0, '' from generate_series(1, {ACCOUNTS * s}) as aid"
        )
        self.execute("commit")

    def vacuum(self) -> None:
        plain("vacuuming...\n")
        for table in ("branches", "tellers", "accounts", "history"):
            self.execute(f"vacuum analyze pgbench_{table}")

    def primary_keys(self) -> None:
        plain("creating primary keys...\n")
        space = f" using index tablespace {_quoted(self.o.index_tablespace)}" if self.o.index_tablespace else ""
        for table, key in (("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")):
            self.execute(f"alter table pgbench_{table} add primary key ({key}){space}")

    def foreign_keys(self) -> None:
        plain("creating foreign keys...\n")
        for table, key, other in (
            ("tellers", "bid", "branches"),
            ("accounts", "bid", "branches"),
            ("history", "bid", "branches"),
            ("history", "tid", "tellers"),
            ("history", "aid", "accounts"),
        ):
            self.execute(
                f"alter table pgbench_{table} add constraint pgbench_{table}_{key}_fkey foreign key ({key}) "
                f"references pgbench_{other}"
            )


class _Progress:
    """How far a table is: a line for every 100,000 rows, or with --quiet every 5 seconds."""

    def __init__(self, table: str, total: int, quiet: bool) -> None:
        self.table, self.total, self.quiet = table, total, quiet
        self.start = time.monotonic()
        self.told_at = self.start
        self.terminal = sys.stderr.isatty()
        self.width = 0

    def show(self, rows: int) -> None:
        now = time.monotonic()
        due = rows == self.total or now - self.told_at >= QUIET_S if self.quiet else rows % 100_000 == 0
        # pgbench says nothing of tables that are smaller than its step.
        if not due or (rows % 100 if self.quiet else rows < 100_000):
            return
        self.told_at = now
        elapsed = now - self.start
        left = (self.total - rows) * elapsed / rows
        text = (
            f"{rows} of {self.total} tuples ({rows * 100 // self.total}%) of {self.table} done "
            f"(elapsed {elapsed:.2f} s, remaining {left:.2f} s)"
        )
        end = "\r" if self.terminal else "\n"
        plain(f"{text:<{self.width}}{end}")
        self.width = len(text)

    def clear(self) -> None:
        if self.width and self.terminal:
            plain(f"{'':<{self.width}}\r")


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
