"""`pgbench -i`: makes the tables of the TPC-B-like workload, step by step."""

from __future__ import annotations

import math
import os
import sys
import time

from pgdyno import _core
from pgdyno.cluster.target import target_of
from pgdyno.errors import EXIT_SIGINT, TargetError
from pgdyno.load.connected import WORTH_SPLITTING, Step, Watch, frozen, pieces, shared
from pgdyno.pgbench.connection import Connection, RefusedError, open_connection
from pgdyno.pgbench.messages import Exit, fail, log, plain
from pgdyno.pgbench.options import Options

#: Rows in one unit of scale.
BRANCHES, TELLERS, ACCOUNTS = 1, 10, 100_000
#: From this scale on, account numbers do not fit into 32 bits.
BIGINT_FROM = 20_000
#: Rows between two lines of progress.
STEP = 100_000
#: How often `--quiet` still speaks.
QUIET_S = 5
_COPY = "copy {} from stdin (format binary{})"
_TABLES = "pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"


def run(o: Options) -> int:
    """Run the steps and return the exit code."""
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
        #: Whether several connections filled a table.
        self.split = False

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
        # What the server refuses, it refuses here, in libpq's words.
        for sql in ("begin", f"truncate table {_TABLES}", "rollback"):
            self.execute(sql)
        if self.o.partition_method == "range" and self.connections() > 1:
            self.generate_partitions()
            return
        data = _core.Dataset("tpcb", self.o.scale)
        small, accounts = data.tables[:2], data.tables[2]
        kind = self.connection.execute("select relkind from pg_class where oid = 'pgbench_accounts'::regclass")
        plain_table = kind.get_value(0, 0) == b"r"
        freeze = ", freeze on" if plain_table and self.connection.pgconn.server_version >= 140000 else ""
        # In one transaction: what it truncates and fills can be frozen, and needs no WAL where wal_level allows that.
        fill: list[Step] = [(_COPY.format(t.name, freeze), i, 0, t.end) for i, t in enumerate(small)]
        begin: list[Step] = ["begin", f"truncate table {_TABLES}", *fill]
        worth_it = freeze and accounts.end >= WORTH_SPLITTING and self.fits(accounts.heap_bytes)
        connections = self.connections() if worth_it else 1
        progress = _Progress(accounts.name, accounts.end, self.o.quiet)
        before = sum(t.end for t in small)

        def watch(rows: int, _: int) -> None:
            progress.show(max(0, rows - before))

        if connections == 1:
            whole = (_COPY.format(accounts.name, freeze), 2, 0, accounts.end)
            self.carry_out(data, [[*begin, whole, "commit"]], 1, watch)
        else:
            self.carry_out(data, [[*begin, "commit"]], 1)
            try:
                ranges = pieces(0, accounts.end, connections)
                jobs = shared(2, accounts, ranges)
                self.carry_out(data, jobs, connections, lambda rows, sent: watch(rows + before, sent))
            except BaseException:
                self.execute(f"truncate table {_TABLES}")
                raise
            self.split = True
        progress.show(accounts.end)
        progress.clear()

    def generate_partitions(self) -> None:
        """Fill range partitions in parallel.

        Each partition is a table of its own, which its own connection can freeze.
        """
        data = _core.Dataset("tpcb", self.o.scale, partitions=self.o.partitions)
        accounts = [t for t in data.tables if t.name.startswith("pgbench_accounts")]
        rows = sum(t.end - t.first for t in accounts)
        progress = _Progress("pgbench_accounts", rows, self.o.quiet)
        jobs = [frozen(number, table) for number, table in enumerate(data.tables) if table.end > table.first]
        try:
            # The small tables come first: what is counted beyond the accounts is theirs.
            self.carry_out(data, jobs, self.connections(), lambda done, _: progress.show(min(done, rows)))
        except BaseException:
            self.execute(f"truncate table {_TABLES}")
            raise
        progress.show(rows)
        progress.clear()

    def connections(self) -> int:
        """Return the number of connections that fill pgbench_accounts.

        Several connections fill only tables that this command created. Otherwise an interruption would lose the
        previous contents of the tables. Foreign keys also prevent truncating the tables one by one.
        """
        before = (self.o.steps or "").replace(" ", "").partition("g")[0]
        host = self.connection.pgconn.host
        if "t" not in before or "f" in before or not host.startswith("/"):
            return 1
        return min(8, os.cpu_count() or 1)

    def fits(self, heap_bytes: int) -> bool:
        """Return True if it pays off to fill one table over several connections.

        VACUUM must follow, because it freezes their rows. The rows of a single connection are frozen from the start.
        VACUUM must also find the pages in memory.
        """
        if "v" not in (self.o.steps or "").replace(" ", "").partition("g")[2]:
            return False
        shown = self.connection.execute("select pg_size_bytes(current_setting('shared_buffers'))")
        return heap_bytes <= int(shown.get_value(0, 0) or 0) // 2

    def carry_out(
        self, data: _core.Dataset, jobs: list[list[Step]], connections: int, watch: Watch = lambda *_: None
    ) -> None:
        try:
            config = _core.ConnConfig(**target_of(self.connection.pgconn).core_arguments())
            data.carry_out(config, jobs, watch, connections=connections)
        except (_core.CoreError, TargetError) as e:
            fail(f"query failed: {e}")

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
            self.execute(f"vacuum {'(freeze, analyze)' if self.split else 'analyze'} pgbench_{table}")

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
    """Progress of a table: one line for every 100,000 rows, or with --quiet every 5 seconds."""

    def __init__(self, table: str, total: int, quiet: bool) -> None:
        self.table, self.total, self.quiet = table, total, quiet
        self.start = time.monotonic()
        self.told_at = self.start
        self.terminal = sys.stderr.isatty()
        self.width = 0
        self.shown = 0

    def show(self, rows: int) -> None:
        """`rows` are there. Steps that were passed since the last call get their lines now."""
        now = time.monotonic()
        if self.quiet:
            if self.total >= 100 and (rows == self.total or now - self.told_at >= QUIET_S) and rows > self.shown:
                self.told_at = now
                self.line(rows, now)
            return
        # pgbench says nothing of tables that are smaller than its step.
        for step in range(self.shown // STEP + 1, rows // STEP + 1):
            self.line(step * STEP, now)

    def line(self, rows: int, now: float) -> None:
        self.shown = rows
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
