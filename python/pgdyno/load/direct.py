"""The method direct: writes the files of a stopped cluster.

The tables are made by the server itself, empty, in a schema of our own; while the server is stopped their files are
written beside its own, synced, and put in their place; then one transaction moves the tables to where they belong. So
the server never sees half a page, and nobody half a table: what is killed on the way leaves a server that starts, a
schema `pgdyno_loading` that nobody uses, and perhaps a folder `pgsql_tmp_pgdyno`, which the next load removes.
"""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psycopg

from pgdyno import _core, home
from pgdyno.cluster import administration, datadir
from pgdyno.cluster.account import Account
from pgdyno.cluster.registry import FOLDER, Entry
from pgdyno.cluster.removal import Made
from pgdyno.cluster.target import Target
from pgdyno.collect import host
from pgdyno.errors import LocalError, PgdynoError, RefusedError, TargetError, msg
from pgdyno.format import one_line
from pgdyno.interrupt import signals_held
from pgdyno.load import drop as dropping
from pgdyno.load import statistics
from pgdyno.load.connected import FOR_INDEXES, Connected
from pgdyno.load.dataset import Dataset, literal, quoted
from pgdyno.load.find import Connection
from pgdyno.load.result import Loaded
from pgdyno.load.standing import Table
from pgdyno.message import Message, Text, message
from pgdyno.stream.events import DatasetDone, DatasetProgress, Noted
from pgdyno.stream.stream import RunStream

#: Where the tables are until they are whole.
SCHEMA = "pgdyno_loading"
_SCHEMA_COMMENT = "pgdyno: tables that are being loaded; drop this schema if no pgdyno is at work"
#: Where files are written, in the data directory or in a tablespace. Base backups and pg_rewind leave out what is
#: called so, if a killed load has left it there.
STAGING = "pgsql_tmp_pgdyno"
_PAGE = 8192
#: Where so many rows stand is found within a second or two, so that nobody need interrupt it.
_PLACED_SOON = 50_000_000


class Server(Protocol):
    """A server of which we have the data directory."""

    @property
    def target(self) -> Target: ...
    @property
    def data(self) -> Path: ...
    @property
    def account(self) -> Account: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


@dataclass(frozen=True)
class _File:
    """A file to be written: of a table (by number), which part, and its path in the data directory."""

    table: int
    part: str
    path: str

    @property
    def staging(self) -> str:
        """The folder it is written in, on the same file system."""
        words = Path(self.path).parts
        return str(Path(*words[:2], STAGING)) if words[0] == "pg_tblspc" else STAGING


class Direct:
    """Makes a dataset in a server that runs at the beginning and at the end."""

    def __init__(self, server: Server, dataset: Dataset, schema: str, threads: int, stream: RunStream) -> None:
        self.server = server
        self.dataset = dataset
        self.schema = schema
        self.threads = threads
        self.stream = stream
        #: Folders in which files are written, as they were made; and files with where they belong.
        self._folders: dict[Path, Made] = {}
        self._entries: list[Entry] = []
        self._written: list[tuple[Path, Path]] = []
        #: Indexes on texts can be written as well: the database compares them as bytes.
        self._bytewise = False
        #: The server's default_statistics_target, where it takes statistics of ours; 0: ANALYZE finds them.
        self._statistics_target = 0

    def make(self, drop: list[Table]) -> Loaded:
        """Load the dataset by writing the server's files.

        The tables in `drop` are replaced at the end. The error of a failed load states what is left.
        """
        data = self.dataset
        moved = False
        done = Loaded("direct", data.rows, data.total_bytes, threads=self.threads)
        directory = datadir.DataDirectory(self.server.data, self._major(), self.server.account)
        # For what needs neither the server nor the disk, while others wait for them.
        processors = min(self.threads, host.cores())
        aside = ThreadPoolExecutor(min(processors, statistics.TOGETHER))
        try:
            with done.phase("create"):
                self._tell("create")
                # One is left for the server.
                beside = max(1, processors - 1)
                placing = aside.submit(data.core.place, beside) if data.rows <= _PLACED_SOON else None
                self._clean()
                files, checksums = self._create(drop)
                segment = datadir.shared_memory_of(self.server.data)
                self.server.stop()
                datadir.refuse_if_attached(segment)
            with datadir.kept_stopped(directory), done.phase("generate"):
                if placing is not None:
                    placing.result()
                found = {t: aside.submit(self._statistics, t) for t in self._tables_with_statistics()}
                self._write(files, checksums, done)
                # Waited for before the server is started: processes are not forked beside threads. What could not be
                # sampled, ANALYZE finds.
                known = {data.tables[t].name: f.result() for t, f in found.items() if f.exception() is None}
                with signals_held():
                    self._put_in_place()
            with done.phase("start"):
                self._tell("start")
                self.server.start()
            with done.phase("vacuum"):
                self._tell("vacuum")
                with self._connection() as conn:
                    self._move(conn, drop)
                moved = True
                self._vacuum(known)
        except BaseException as e:
            with signals_held():
                aside.shutdown(cancel_futures=True)
                kept = Message("left-not-analyzed") if moved else self._undo()
            if isinstance(e, _core.CoreError | psycopg.Error | OSError):
                raise _explained(e, kept) from e
            if isinstance(e, PgdynoError) and moved:
                raise type(e)(e.cause, kept) from e
            raise
        finally:
            aside.shutdown()
            self.stream.emit(DatasetDone())
        return done

    # ------------------------------------------------------------ steps

    def _create(self, drop: list[Table]) -> tuple[list[_File], bool]:
        """Create the empty tables; return the files to write, and whether pages have checksums."""
        with self._connection() as conn:
            shown = {
                name: conn.execute(f"show {name}".encode()).fetchone()
                for name in ("block_size", "segment_size", "data_checksums", "default_statistics_target")
            }
            sizes = {name: row[0] for name, row in shown.items() if row}
            if (sizes["block_size"], sizes["segment_size"]) != (str(_PAGE), "1GB"):
                raise RefusedError(
                    msg(
                        "error-pages-bytes-segments-pgdyno-writes",
                        sizes=sizes["block_size"],
                        sizes2=sizes["segment_size"],
                        page=_PAGE,
                    ),
                    msg("remedy-load-over-connection-instead-method"),
                )
            self._bytewise = _compares_bytes(conn)
            target = int(sizes["default_statistics_target"])
            if self._bytewise and self._major() >= statistics.SINCE and target <= statistics.TARGET_MAX:
                self._statistics_target = target
            data = self.dataset
            # All or nothing: a schema without its comment would be taken for somebody else's.
            with conn.transaction():
                conn.execute(f"create schema {SCHEMA}".encode())
                conn.execute(f"comment on schema {SCHEMA} is {literal(_SCHEMA_COMMENT)}".encode())
                conn.execute(f"set search_path to {SCHEMA}".encode())
                keys = [*data.primary_keys(), *data.parent_keys(), *data.indexes(written=True, texts=self._bytewise)]
                statements = [*data.create(), *data.marks("not complete"), *keys]
                for statement in statements:
                    conn.execute(statement.encode())
            # What the end will do is tried now, on empty tables: an index of the same name, a view on what is replaced.
            with conn.transaction(force_rollback=True):
                self._move(conn, drop)
            conn.execute(f"set search_path to {SCHEMA}".encode())
            files = [f for number in range(len(data.tables)) for f in self._files_of(conn, number)]
            # The server's own shutdown would write it as well; but so the files of the tables are on disk by now.
            conn.execute("checkpoint")
            return files, sizes["data_checksums"] == "on"

    def _files_of(self, conn: Connection, number: int) -> list[_File]:
        table = self.dataset.tables[number]
        if table.end == table.first:
            # What the server made is what an empty table has.
            return []
        row = conn.execute(
            """select pg_relation_filepath(c.oid), pg_relation_filepath(i.indexrelid)
               from pg_class c left join pg_index i on i.indrelid = c.oid and i.indisprimary
               where c.oid = %s::regclass""",
            [table.name],
        ).fetchone()
        assert row is not None
        heap, key = row
        found = [_File(number, "heap", heap), _File(number, "visibility", f"{heap}_vm")]
        if table.key:
            found.append(_File(number, "key", key))
        for n, (name, _, texts) in enumerate(table.indexes):
            if not texts or self._bytewise:
                row = conn.execute("select pg_relation_filepath(%s::regclass)", [name]).fetchone()
                assert row is not None
                found.append(_File(number, f"index {n}", row[0]))
        return found

    def _write(self, files: list[_File], checksums: bool, done: Loaded) -> None:
        """Write all files and sync them.

        Heaps, keys and other indexes are written in one pass, so that the disk never waits.
        """
        total = self.dataset.total_bytes

        def watch(written: int, rows: int) -> None:
            self.stream.emit(DatasetProgress("generate", rows, self.dataset.rows, written, total))

        parts = [(f.table, f.part, self.server.data / f.staging / Path(f.path).name) for f in files]
        for folder in {self.server.data / f.staging for f in files} - self._folders.keys():
            with self.server.account.rights():
                # It must be ours: in what we did not make somebody may have laid links.
                self._folders[folder] = Made.new(folder)
            self._entries.append(Entry(FOLDER, self._folders[folder]))
        # The threads that write are started within, and have them as well.
        with self.server.account.rights():
            mode = (self.server.data / "PG_VERSION").stat().st_mode & 0o666
            written, paths = self.dataset.core.write(
                parts,
                watch,
                threads=self.threads,
                checksums=checksums,
                mode=mode,
            )
        done.moved_bytes += written
        homes = {Path(f.path).name: (self.server.data / f.path).parent for f in files}
        self._written += [(path, homes[path.name.split(".")[0]] / path.name) for path in paths]

    def _put_in_place(self) -> None:
        """Rename all files to the paths where the server expects them.

        First segments go last: a table without its first segment is empty. The others go in ascending order. A process
        that unlinks the table finds each segment through the one before it.
        """
        with self.server.account.rights():
            for path, place in sorted(self._written, key=lambda x: not x[0].suffix):
                path.rename(place)
            for folder in {place.parent for _, place in self._written}:
                home.sync(folder)
            for folder in self._folders:
                folder.rmdir()
                home.sync(folder.parent)
        self._forget()

    def _move(self, conn: Connection, drop: list[Table]) -> None:
        """Move the tables to their final schema in one transaction."""
        data = self.dataset
        where = quoted(self.schema)
        with conn.transaction():
            conn.execute(f"set local search_path to {SCHEMA}".encode())
            left = data.indexes(written=False, texts=self._bytewise)
            for statement in [*(FOR_INDEXES if data.kind == "tpcc" else ()), *left, *data.parent_indexes()]:
                conn.execute(statement.encode())
            conn.execute(f"set local search_path to {where}".encode())
            for statement in dropping.statements(drop):
                conn.execute(statement.encode())
            for name in data.relations:
                conn.execute(f"alter table {SCHEMA}.{quoted(name)} set schema {where}".encode())
            for statement in [*data.finish(), *data.marks("not vacuumed yet")]:
                conn.execute(statement.encode())
            conn.execute(f"drop schema {SCHEMA}".encode())

    def _tables_with_statistics(self) -> list[int]:
        """Return the numbers of the tables whose statistics pgdyno hands over to the server.

        Partitioned tables are left to ANALYZE, which finds the statistics of the whole table together with those of
        its partitions.
        """
        if not self._statistics_target:
            return []

        def fits(t: _core.Table) -> bool:
            return max(t.heap_bytes, t.key_bytes, t.index_bytes) < statistics.BYTES_MAX

        return [n for n, t in enumerate(self.dataset.tables) if t.end > t.first and not t.partition and fits(t)]

    def _statistics(self, number: int) -> statistics.HandedOver:
        """Return the statistics of a table."""
        table = self.dataset.tables[number]
        columns = self.dataset.core.statistics(number, self._statistics_target)
        return statistics.handed_over(self.schema, table.name, table.end - table.first, columns)

    def _vacuum(self, known: dict[str, statistics.HandedOver]) -> None:
        data = self.dataset
        vacuum = Connected(
            self.server.target,
            data,
            self.schema,
            on_server=False,
            connections=min(self.threads, 8),
            split=False,
            connect_timeout_s=30.0,
            stream=self.stream,
        )
        vacuum.vacuum(known)
        vacuum.carry_out([["checkpoint"]])

    # ------------------------------------------------------------ what killed loads left

    def _clean(self, *, tell: bool = True) -> None:
        """Remove everything that a killed load has left."""
        # With our own rights: what a pgdyno of old has left may be root's. It is removed by its descriptor.
        for folder in self._staging_folders():
            # A link is not ours; what it leads to stays.
            if folder.is_symlink():
                folder.unlink()
            elif folder.is_dir():
                Made.at(folder).remove()
        with self._connection() as conn:
            row = conn.execute(
                "select pg_catalog.obj_description(oid, 'pg_namespace'::name) from pg_catalog.pg_namespace "
                "where nspname = %s",
                [SCHEMA],
            ).fetchone()
            if row is None:
                return
            if row[0] != _SCHEMA_COMMENT:
                raise RefusedError(
                    msg("error-there-schema-pgdyno-did-not", schema=SCHEMA), msg("remedy-rename-or-drop")
                )
            if tell:
                self.stream.emit(Noted(message("progress-removing-left")))
            conn.execute(f"drop schema {SCHEMA} cascade".encode())

    def _staging_folders(self) -> list[Path]:
        data = self.server.data
        return [*data.glob(f"{STAGING}*"), *data.glob(f"pg_tblspc/*/{STAGING}*")]

    def _undo(self) -> Text:
        """After a failure: the server runs again, and nothing of ours is in it. Says what is so."""
        with self.server.account.rights():
            gone = [made.remove() for made in self._folders.values()]
        if all(gone):
            self._forget()
        try:
            self.server.start()
            self._clean(tell=False)
        except (PgdynoError, psycopg.Error) as e:
            return msg("left-schema", schema=SCHEMA, reason=one_line(e))
        return Message("left-nothing")

    # ------------------------------------------------------------ inside

    def _forget(self) -> None:
        for entry in self._entries:
            entry.done()

    def _major(self) -> int:
        with self.server.account.rights():
            text = (self.server.data / "PG_VERSION").read_text(errors="replace").strip()
        if not text.isdigit() or int(text) not in datadir.VERSIONS:
            raise RefusedError(
                msg(
                    "error-cluster-postgresql-pgdyno-writes-files",
                    text=text,
                    min=min(datadir.VERSIONS),
                    max=max(datadir.VERSIONS),
                ),
                msg("remedy-load-over-connection-instead-method"),
            )
        return int(text)

    def _connection(self) -> Connection:
        # It also makes indexes.
        return administration.connect(self.server.target, patience_s=None)

    def _tell(self, phase: str) -> None:
        self.stream.emit(DatasetProgress(phase, 0, 0, 0, 0))


def _compares_bytes(conn: Connection) -> bool:
    """Return True if the database sorts texts by their bytes, whatever the version of the collation library."""
    row = conn.execute(
        "select pg_catalog.to_jsonb(d) operator(pg_catalog.->>) 'datlocprovider', datcollate "
        "from pg_catalog.pg_database d where datname operator(pg_catalog.=) pg_catalog.current_database()"
    ).fetchone()
    assert row is not None
    provider, collation = row
    # All of the server's own locales (17 and later) have the order of code points. Before 15 only the C library.
    return provider == "b" or (provider in ("c", None) and collation in ("C", "POSIX"))


def _explained(error: Exception, kept: Text) -> PgdynoError:
    message = one_line(error)
    if getattr(error, "errno", None) == errno.ENOSPC or getattr(error, "sqlstate", None) == "53100":
        return LocalError(
            msg("error-loading-failed-disk-full", message=message), msg("remedy-free-some-space-or-use-3", kept=kept)
        )
    if getattr(error, "errno", None) is not None:
        return LocalError(msg("error-loading-failed", message=message), kept)
    return TargetError(msg("error-loading-failed", message=message), kept)
