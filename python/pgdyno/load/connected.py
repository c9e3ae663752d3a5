"""The methods copy and server: any server that can be connected to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

import psycopg

from pgdyno import _core
from pgdyno.cluster import administration, waiting
from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import Target
from pgdyno.errors import LocalError, PgdynoError, TargetError, msg
from pgdyno.load import drop as dropping
from pgdyno.load.claim import Claim
from pgdyno.load.dataset import Dataset, quoted
from pgdyno.load.drop import BATCH
from pgdyno.load.find import Connection, find
from pgdyno.load.result import Loaded
from pgdyno.load.standing import Table
from pgdyno.load.statistics import HandedOver
from pgdyno.message import Message, Text, sentences
from pgdyno.stream.events import DatasetDone, DatasetProgress
from pgdyno.stream.stream import RunStream

Step = str | tuple[str, int, int, int]
Watch = Callable[[int, int], object]
#: Ranges that each connection gets of a table that several fill: those that are behind take fewer.
RANGES = 8
#: The state of tables that are being loaded, as their marks say it.
_UNFINISHED = "not complete"
#: What a load that failed has left.
_UNCHANGED = Message("left-unchanged")
_GONE = Message("left-nothing")
_PARTLY = Message("left-some-gone")
_KEPT = Message("left-marked")
#: Parts of a table after which VACUUM freezes what is there, beside the connections that go on.
_FREEZE_AT = (0.5, 0.75)
#: Rows from which on a table is worth several connections.
WORTH_SPLITTING = 500_000
#: For a session that builds indexes: as many workers as the server has, within reason, and memory to sort in.
FOR_INDEXES = (
    "select set_config('max_parallel_maintenance_workers', "
    "least(current_setting('max_parallel_workers')::int, 8)::text, false)",
    "select set_config('maintenance_work_mem', "
    "greatest(pg_size_bytes(current_setting('maintenance_work_mem')), 512 * 1024 * 1024)::text || 'B', false)",
)


class Connected:
    """Makes a dataset over connections, in phases: create, generate, keys, vacuum."""

    def __init__(
        self,
        target: Target,
        dataset: Dataset,
        schema: str,
        *,
        on_server: bool,
        connections: int,
        split: bool,
        connect_timeout_s: float,
        stream: RunStream,
    ) -> None:
        self.target = target
        self.dataset = dataset
        self.on_server = on_server
        self.connections = connections
        self.split = split
        self.stream = stream
        self._timeout = connect_timeout_s
        self._config = _core.ConnConfig(**target.core_arguments())
        # What is made and dropped lies in this schema, whatever else the search path names.
        # And a backslash in a name is a backslash, whatever the database's owner has set.
        self._begin = ["set standard_conforming_strings to on", f"set search_path to {quoted(schema)}"]

    def make(self, drop: Sequence[Table], claim: Claim | None = None) -> Loaded:
        """Create, fill, index and vacuum all tables of the dataset.

        The tables in `drop` are dropped first, provided that the `claim` on the database holds. If the load cannot be
        finished, the tables that it created are dropped again.
        """
        data = self.dataset
        done = Loaded(
            "server" if self.on_server else "copy",
            data.rows,
            data.total_bytes,
            connections=self.connections,
        )
        made, dropping_many = False, False
        try:
            with done.phase("create"):
                self._tell("create")
                create = data.create_marked(_UNFINISHED)
                guard = claim.guard() if claim is not None else []
                if len(create) <= 2 * BATCH and len(drop) <= BATCH:
                    self.carry_out([["begin", *guard, *dropping.statements(drop), *create, "commit"]])
                    made = True
                else:
                    # One after the other, over one connection: a partition needs its parent.
                    made, dropping_many = True, bool(drop)
                    drops = [["begin", *guard, *batch, "commit"] for batch in dropping.batches(drop)]
                    self.carry_out([[s for batch in drops for s in batch]] if drops else [])
                    dropping_many = False
                    self.carry_out([[s for batch in _batches(create, 2 * BATCH) for s in batch]])
            with done.phase("generate"):
                _, done.moved_bytes = self.carry_out(self.fill(), self._progress("generate", data.rows))
            with done.phase("keys"):
                self._tell("keys")
                self.carry_out([[*FOR_INDEXES, s] for s in [*data.primary_keys(), *data.indexes()]])
                self.carry_out([[*data.parent_keys(), *data.parent_indexes(), *data.finish()]])
            with done.phase("vacuum"):
                self._tell("vacuum")
                self.vacuum()
        except BaseException as e:
            left = _KEPT if made and self._remove() else _GONE if made else _UNCHANGED
            left = _PARTLY if dropping_many else left
            if isinstance(e, _core.CoreError):
                raise load_error(str(e), e.sqlstate, self.target, left) from e
            raise
        finally:
            self.stream.emit(DatasetDone())
        return done

    def vacuum(self, statistics: Mapping[str, HandedOver] | None = None) -> None:
        """Run VACUUM and ANALYZE, and mark the dataset as ready.

        For a table with `statistics`, install these instead of running ANALYZE. Only after this step may a run find
        and use the dataset. Without statistics, the results of the run would differ.
        """
        data = self.dataset
        known = statistics or {}

        def steps(t: _core.Table) -> list[Step]:
            if t.name in known:
                return [known[t.name].rows, f"vacuum (freeze) {t.name}", known[t.name].rest]
            # ANALYZE of a partitioned table does its partitions as well.
            return [f"vacuum ({'freeze' if t.partition else 'freeze, analyze'}) {t.name}"]

        # The largest first: so no connection is left with one at the end.
        self.carry_out([steps(t) for t in sorted(data.tables, key=lambda t: -t.heap_bytes)])
        self.carry_out([[f"analyze {parent}"] for parent in data.parents])
        self.carry_out(_batches(data.marks()))

    def fill(self) -> list[list[Step]]:
        """Return the jobs that fill the tables."""
        jobs: list[list[Step]] = []
        for number, table in enumerate(self.dataset.tables):
            rows = table.end - table.first
            if rows == 0:
                continue
            split = self.split and rows >= WORTH_SPLITTING
            ranges = pieces(table.first, table.end, self.connections) if split else [(table.first, table.end)]
            if self.on_server:
                for first, end in ranges:
                    query = table.query.replace("{first}", str(first)).replace("{last}", str(end - 1))
                    # Columns at the end that the query leaves out stay NULL.
                    jobs.append([f"insert into {table.name} {query}"])
            elif not split:
                jobs.append(frozen(number, table, self.dataset.refuse_another(table.name, _UNFINISHED)))
            else:
                jobs += shared(number, table, ranges)
        return jobs

    def carry_out(self, jobs: Sequence[Sequence[Step]], watch: Watch = lambda *_: None) -> tuple[int, int]:
        """Execute jobs over our connections."""
        if not jobs:
            return 0, 0
        try:
            with waiting.watched(self.target):
                return self.dataset.core.carry_out(
                    self._config,
                    [[*self._begin, *job] for job in jobs],
                    watch,
                    connections=self.connections,
                    connect_timeout_s=self._timeout,
                )
        except _core.ConnectError as e:
            raise TargetError(msg("error-loading-failed-2", reason=e), remedy_for(str(e), e.sqlstate)) from e

    def _tell(self, phase: str) -> None:
        self.stream.emit(DatasetProgress(phase, 0, 0, 0, 0))

    def _progress(self, phase: str, total: int) -> Watch:
        return lambda rows, sent: self.stream.emit(
            DatasetProgress(phase, rows, 0 if self.on_server else total, sent, 0)
        )

    def _remove(self) -> bool:
        """Drop the tables of a load that could not be finished; return True if that failed.

        Drop only tables that carry the mark of a load in progress. They got it in the transaction that created them.
        Another session may have created a table of the same name meanwhile, which may be the reason for the failure.
        """
        with suppress(PgdynoError, psycopg.Error), administration.connect(self.target) as conn:
            for statement in self._begin:
                conn.execute(statement.encode())
            for batch in dropping.batches(self._unfinished(conn)):
                with conn.transaction():
                    for statement in batch:
                        conn.execute(statement.encode())
            return bool(self._unfinished(conn))
        return True

    def _unfinished(self, conn: Connection) -> list[Table]:
        """Return the tables of the dataset that a load in progress has created."""
        tables = find(conn, self.dataset).ours
        return [t for t in tables if t.mark and (t.mark.name, t.mark.state) == (self.dataset.name, _UNFINISHED)]


def _batches(statements: Sequence[str], size: int = 500) -> list[list[Step]]:
    """Split statements into transactions."""
    return [["begin", *statements[i : i + size], "commit"] for i in range(0, len(statements), size)]


def pieces(first: int, end: int, connections: int) -> list[tuple[int, int]]:
    """Split the rows from `first` to before `end` into ranges that several connections take in turn."""
    n = connections * RANGES
    bounds = [first + (end - first) * i // n for i in range(n + 1)]
    return list(pairwise(bounds))


def frozen(number: int, table: _core.Table, *guard: str) -> list[Step]:
    """Return the steps that fill a whole table in the transaction that truncates it.

    The rows are frozen from the start. With wal_level minimal, the server writes no WAL for them. `guard` is SQL that
    fails if the table must not be truncated.
    """
    copy = f"copy {table.name} from stdin (format binary, freeze on)"
    lock = f"lock table only {table.name} in access exclusive mode"
    return ["begin", lock, *guard, f"truncate only {table.name}", (copy, number, table.first, table.end), "commit"]


def shared(number: int, table: _core.Table, ranges: Sequence[tuple[int, int]]) -> list[list[Step]]:
    """Return the jobs by which several connections fill one table.

    COPY does not freeze these rows, so VACUUM follows closely. VACUUM is work for one connection. It costs no time
    while the other connections still load.
    """
    copy = f"copy {table.name} from stdin (format binary)"
    jobs: list[list[Step]] = [[(copy, number, first, end)] for first, end in ranges]
    for part in sorted(_FREEZE_AT, reverse=True):
        jobs.insert(round(len(ranges) * part), [f"vacuum (freeze, truncate off) {table.name}"])
    return jobs


def may_split(conn: Connection, dataset: Dataset, connections: int) -> bool:
    """Return True if several connections should fill one table.

    Its rows are then not frozen, and VACUUM writes its pages again. That pays off while the pages are in memory.
    """
    if connections < 2 or sum(t.end - t.first >= WORTH_SPLITTING for t in dataset.tables) >= connections:
        return False
    try:
        row = conn.execute("select pg_size_bytes(current_setting('shared_buffers'))").fetchone()
    except psycopg.Error:
        return False
    largest = max((t.heap_bytes for t in dataset.tables), default=0)
    return row is not None and largest <= int(row[0]) // 2


def load_error(message: str, sqlstate: str | None, target: Target, left: Text) -> PgdynoError:
    """Return the error of a failed load, with what it has `left`, and what to do about it."""
    if sqlstate == "53100":
        return LocalError(
            msg("error-loading-failed-server-s-disk", message=message),
            msg("remedy-free-some-space-or-use-2", left=left),
        )
    if sqlstate == "42501":
        return TargetError(
            msg("error-loading-failed", message=message),
            msg("remedy-let-create-tables-grant-create", user=target.user),
        )
    return TargetError(msg("error-loading-failed", message=message), sentences([left, remedy_for(message, sqlstate)]))
