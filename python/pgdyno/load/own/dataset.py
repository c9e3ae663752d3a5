"""A dataset of somebody's own: what it is made of, whether it is there, and the making of it.

It is made in a database where nothing else is: what somebody's files do cannot be foreseen, and what pgdyno did not
make it must not touch.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import Target
from pgdyno.collect import host
from pgdyno.errors import LocalError, RefusedError, TargetError, msg
from pgdyno.format import one_line
from pgdyno.interrupt import signals_held
from pgdyno.load.claim import Claim
from pgdyno.load.dataset import KINDS, MARK, Mark, literal, mark_of
from pgdyno.load.find import Connection, listed, refuse_unfit, subscribers
from pgdyno.load.own import dump
from pgdyno.load.own.columns import Wanted, decided
from pgdyno.load.own.drawn import Filling
from pgdyno.load.own.files import SqlFile
from pgdyno.load.result import Loaded
from pgdyno.load.standing import Table
from pgdyno.load.units import pg_size
from pgdyno.message import Name, message
from pgdyno.search_path import user_path
from pgdyno.spec import datasets as spec
from pgdyno.stream.events import DatasetDone, DatasetProgress, Noted
from pgdyno.stream.stream import RunStream

_UNFINISHED = "not complete"
#: Of columns that are the same in all rows.
_SHOWN = 8
#: Of how rows are drawn: another one draws other rows.
_DRAWING = 2
#: Bytes of a row that is drawn, about, with its keys; for plans.
_A_ROW = 120
#: User tables.
_TABLES = """
select c.oid, pg_catalog.quote_ident(n.nspname::text) || '.' || pg_catalog.quote_ident(c.relname::text),
  c.relkind::text, coalesce(pg_catalog.pg_total_relation_size(c.oid::pg_catalog.regclass), 0),
  pg_catalog.obj_description(c.oid, 'pg_class'::name)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'f') and n.nspname not in ('pg_catalog', 'information_schema')
  and n.nspname not like 'pg\\_%'
  and not exists (
    select from pg_catalog.pg_depend d
    where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid and d.deptype = 'e')
order by c.relkind = 'p', c.oid"""
#: What files make besides tables: types, functions, views, sequences of their own, schemas.
_OTHERS = """
with made as (
  select 'pg_catalog.pg_type'::pg_catalog.regclass as class, t.oid from pg_catalog.pg_type t
    left join pg_catalog.pg_class c on c.oid = t.typrelid
    where t.typtype in ('e', 'd', 'r', 'c') and coalesce(c.relkind, 'c') = 'c' and t.typnamespace <> 11
  union all select 'pg_catalog.pg_proc'::pg_catalog.regclass, oid from pg_catalog.pg_proc where pronamespace <> 11
  union all select 'pg_catalog.pg_namespace'::pg_catalog.regclass, oid from pg_catalog.pg_namespace
    where nspname not like 'pg\\_%'
  union all select 'pg_catalog.pg_class'::pg_catalog.regclass, oid from pg_catalog.pg_class
    where relkind in ('v', 'm', 'S') and relnamespace <> 11)
select m.class::pg_catalog.oid, m.oid, i.type, i.identity, pg_catalog.obj_description(m.oid, m.class::pg_catalog.name)
from made m, pg_catalog.pg_identify_object(m.class::pg_catalog.oid, m.oid, 0) i
where i.schema is distinct from 'information_schema' and i.identity not in ('public', 'information_schema')
  and not exists (select from pg_catalog.pg_depend d where (d.classid, d.objid) = (m.class::pg_catalog.oid, m.oid)
                  and d.deptype in ('e', 'a', 'i'))
order by m.class::pg_catalog.oid, m.oid"""


@dataclass(frozen=True)
class OwnDataset:
    """Dataset of the user's own.

    `kind` is sql, dump or none. `size` multiplies the number of drawn rows. `adopted` is the scale of existing pgbench
    tables that are used, whichever program created them.
    """

    kind: str
    files: Sequence[Path] = ()
    wanted: Sequence[Wanted] = ()
    after: Sequence[Path] = ()
    dump: Path | None = None
    size: int = 1
    #: What is executed when the tables exist; a change of it is another dataset.
    setup: Sequence[str] = ()
    adopted: int = 0
    tables_wanted: int = field(default=1, init=False)

    @cached_property
    def name(self) -> str:
        """Kind, where it comes from, and a digest of all that it is made from."""
        if self.kind == "none":
            return f"pgbench's tables as they are, scale={self.adopted}" if self.adopted else "as it is"
        parts = [p.name for p in (*self.files, *([self.dump] if self.dump else []))]
        scale = f" scale={self.size}" if self.size != 1 else ""
        return f"{self.kind} {' '.join(parts)}{scale} #{self._digest()}".replace("  ", " ")

    def _digest(self) -> str:
        seen = hashlib.sha256(repr((self.wanted, self.setup, self.size, _DRAWING)).encode())
        for path in (*self.files, *self.after):
            text = SqlFile.read(path)
            seen.update(text.text.encode())
            for data in text.data_files:
                seen.update(repr((data.name, data.stat().st_size, data.stat().st_mtime_ns)).encode())
        if self.dump is not None:
            status = dump.checked(self.dump).stat()
            seen.update(repr((status.st_size, status.st_mtime_ns)).encode())
        return seen.hexdigest()[:10]

    @property
    def rows(self) -> int:
        """Rows that are drawn; what files bring is not known beforehand."""
        return sum(w.rows for w in self.wanted) * self.size + self.adopted * KINDS["tpcb"].rows_per_scale

    @property
    def rows_of_key(self) -> int:
        """Same value as `rows`; it is not known which rows a workload touches until the tables exist."""
        return self.rows

    @property
    def heap_bytes(self) -> int:
        """An estimate."""
        given = [data for path in self.files for data in SqlFile.read(path).data_files if data.is_file()]
        drawn = 0 if self.adopted else self.rows * _A_ROW
        return drawn + sum(data.stat().st_size for data in given) + dump.bytes_of(self.dump)

    @property
    def key_bytes(self) -> int:
        """Always 0, because the estimate of `heap_bytes` already includes the keys."""
        return 0

    @property
    def total_bytes(self) -> int:
        """Same value as `heap_bytes`."""
        return self.heap_bytes

    @property
    def relations(self) -> list[str]:
        """Not known beforehand."""
        return []

    @classmethod
    def planned(cls, definition: spec.Dataset) -> OwnDataset:
        """Return the dataset that an experiment describes; read its files. Raise SpecError if one cannot be used."""
        dataset = cls(
            "none" if definition.adopt else definition.kind,
            tuple(Path(f) for f in definition.files),
            tuple(Wanted(name, f.rows, f.model_dump()["columns"]) for name, f in definition.fill.items()),
            tuple(Path(f) for f in definition.after),
            Path(definition.dump) if definition.dump else None,
            1 if definition.scale == "auto" else definition.scale,
            tuple(definition.setup),
        )
        dataset.check()
        return dataset

    def check(self) -> None:
        """Read all files of the dataset.

        Raise SpecError if a file cannot be used.
        """
        _ = self.name


def tables(conn: Connection) -> dict[int, Table]:
    """Return all user tables of the database by OID, with schema-qualified names.

    Tables that pgdyno created for datasets of users' own have a mark.
    """
    found = {}
    for oid, name, kind, size, comment in conn.execute(_TABLES).fetchall():
        found[oid] = Table(oid, name, kind, name, size, size > 0, _mark_of(comment, name, oid))
    return found


def own_tables(conn: Connection) -> list[Table]:
    """Tables that pgdyno has made for own datasets."""
    return [t for t in tables(conn).values() if t.mark is not None]


def _mark_of(comment: str | None, name: str, oid: int) -> Mark | None:
    mark = mark_of((comment or "").rsplit("\n", 1)[-1])
    return mark if mark is not None and mark.is_of(name, oid) and mark.name.split(" ")[0] in ("sql", "dump") else None


@dataclass(frozen=True)
class _Other:
    """Something besides a table: what it is and its name, as SQL takes them; and what its comment says."""

    kind: str
    name: str
    comment: str
    oid: int

    @property
    def is_ours(self) -> bool:
        """Return True if pgdyno created the object."""
        return _mark_of(self.comment, self.name, self.oid) is not None


def _others(conn: Connection) -> dict[tuple[int, int], _Other]:
    rows = conn.execute(_OTHERS).fetchall()
    return {(cls, oid): _Other(kind, name, comment or "", oid) for cls, oid, kind, name, comment in rows}


def holds(conn: Connection, data: OwnDataset) -> bool:
    """Return True if the dataset exists and is complete."""
    if data.kind == "none":
        return True
    ours = own_tables(conn)
    return bool(ours) and all(t.mark is not None and (t.mark.name, t.mark.state) == (data.name, "") for t in ours)


def refuse_another(conn: Connection, target: Target, data: OwnDataset, *, force: bool, replace: bool) -> None:
    """Raise RefusedError if the database holds anything that the load must not replace.

    Raise it for objects that pgdyno did not create, unless `force`. Raise it also for another complete dataset of the
    user's own that pgdyno loaded, unless `replace`.
    """
    # Where it is there already nothing is made: what `after`, `setup` or a dump made besides tables is no obstacle.
    if holds(conn, data):
        return
    every = tables(conn)
    ours = [t for t in every.values() if t.mark is not None]
    foreign = [t.sql for t in every.values() if t.mark is None]
    foreign += [f"{o.kind} {o.name}" for o in _others(conn).values() if not o.is_ours]
    if foreign and not force:
        more = f" and {len(foreign) - 5} more" if len(foreign) > 5 else ""
        raise RefusedError(
            msg("error-holds-what-pgdyno-did-not", where=target.where, foreign=", ".join(foreign[:5]), more=more),
            msg("remedy-createdb-bench-then-dbname-bench"),
        )
    other = [t for t in ours if t.mark is not None and t.mark.name != data.name and not t.mark.state]
    if other and not replace:
        assert other[0].mark is not None
        raise RefusedError(
            msg(
                "error-holds-another-dataset-pgdyno-s-3",
                where=target.where,
                name=other[0].mark.name,
                listed=listed(other),
                pg_size=pg_size(sum(t.bytes for t in other)),
            ),
            msg("remedy-replace-drops-loads-or-use", name=data.name),
        )


def make(
    target: Target,
    data: OwnDataset,
    *,
    programs: Callable[[str], Path],
    force: bool,
    replace: bool,
    claim: Claim | None,
    stream: RunStream,
) -> Loaded:
    """Load the dataset.

    `programs` finds pg_restore and psql. Raise RefusedError, SpecError or TargetError if the load fails. The created
    tables are then gone, or they are marked as not complete and the next load replaces them.
    """
    done = Loaded(data.kind, 0, data.heap_bytes, connections=min(4, host.cores()))
    with closing(administration.connect(target, patience_s=None)) as conn:
        refuse_unfit(conn, target)
        refuse_another(conn, target, data, force=force, replace=replace)
        for who in subscribers(conn):
            stream.emit(Noted(message("progress-subscribers", who=Name(who))))
        stream.emit(Noted(message("progress-loading", name=Name(data.name), where=target.where)))
        try:
            if data.kind == "dump":
                oids = _restored(conn, target, data, programs, claim, done, stream)
            else:
                oids = _made_by_files(target, data, claim, done, stream)
                done.rows += _filled(conn, target, data, done, stream)
            with done.phase("vacuum"):
                stream.emit(DatasetProgress("vacuum", 0, 0, 0, 0))
                for oid in oids:
                    name = _name_of(conn, oid)
                    if name:
                        conn.execute(f"vacuum (analyze) {name}".encode())
            with conn.transaction():
                _mark(conn, data, oids, "")
        except psycopg.Error as e:
            reason = one_line(e)
            raise TargetError(msg("error-loading-failed-2", reason=reason), remedy_for(reason, e.sqlstate)) from e
        finally:
            stream.emit(DatasetDone())
    return done


def _made_by_files(target: Target, data: OwnDataset, claim: Claim | None, done: Loaded, stream: RunStream) -> list[int]:
    sources = [SqlFile.read(path) for path in data.files]
    total = sum(f.stat().st_size for s in sources for f in s.data_files)
    # A session of its own: what the files set (a search path, a role) ends with it.
    with done.phase("create"), closing(administration.connect(target, patience_s=None)) as conn, conn.transaction():
        # What others make meanwhile is not ours.
        conn.execute("set transaction isolation level repeatable read")
        for statement in claim.guard() if claim is not None else []:
            conn.execute(statement.encode())
        _drop_ours(conn, stream)
        before, others = tables(conn), _others(conn)

        def watch(n: int) -> None:
            done.moved_bytes += n
            stream.emit(DatasetProgress("copy", 0, 0, done.moved_bytes, total))

        with user_path(conn):
            for source in sources:
                done.rows += source.carry_out(conn, watch, stream.note)
        # Whatever the files have set.
        conn.execute("set local search_path to pg_catalog; reset role")
        oids = [oid for oid in tables(conn) if oid not in before]
        _mark(conn, data, oids, _UNFINISHED)
        for key, other in _others(conn).items():
            if key not in others:
                _comment(conn, other.kind, other.name, other.comment, f"{MARK} {data.name} [{other.name} {key[1]}]")
    return oids


def _drop_ours(conn: Connection, stream: RunStream) -> None:
    """Drop the objects that pgdyno created for a dataset of the user's own.

    Objects that have come to depend on them are not dropped. Raise RefusedError if such objects exist.
    """
    ours = own_tables(conn)
    left = [f"drop {o.kind} if exists {o.name}" for o in _others(conn).values() if o.is_ours]
    if ours:
        size = Name(pg_size(sum(t.bytes for t in ours)))
        stream.emit(Noted(message("progress-dropping-ours", tables=Name(listed(ours)), size=size)))
        plain = [t.sql for t in ours if t.kind != "f"]
        left += [f"drop table if exists {', '.join(plain)}"] if plain else []
        left += [f"drop foreign table if exists {t.sql}" for t in ours if t.kind == "f"]
    # One needs the other: what can go goes, until nothing is left.
    while left:
        refused: list[str] = []
        why: psycopg.Error | None = None
        for statement in left:
            try:
                with conn.transaction():
                    conn.execute(statement.encode())
            except psycopg.errors.DependentObjectsStillExist as e:
                refused.append(statement)
                why = e
        if why is not None and len(refused) == len(left):
            raise RefusedError(
                msg("error-what-pgdyno-made-cannot-be", why=one_line(why)[:300]), msg("remedy-drop-what-needs-first")
            ) from why
        left = refused


def _filled(conn: Connection, target: Target, data: OwnDataset, done: Loaded, stream: RunStream) -> int:
    """Draw the rows, run the files that come after them, and return the number of rows."""
    if not data.wanted and not data.after:
        return 0
    # It imports what takes long, and most runs have nothing to draw.
    from pgdyno.load.own import fill
    from pgdyno.load.own.draw import Drawer

    fillings: list[Filling] = decided(conn, [replace(w, rows=w.rows * data.size) for w in data.wanted])
    ours = {t.oid for t in own_tables(conn)}
    for f in fillings:
        row = conn.execute("select pg_catalog.to_regclass(%s)::pg_catalog.oid::int8", [f.name]).fetchone()
        if row is None or row[0] not in ours:
            raise RefusedError(msg("error-fill-pgdyno-did-not-make", name=f.name), msg("remedy-make-files"))
    for note in (n for f in fillings for n in f.notes):
        stream.emit(Noted(note))
    constants = [f"{f.name.rpartition('.')[2]}.{c}" for f in fillings for c in f.constants]
    if constants:
        more = message("progress-and-more", n=len(constants) - _SHOWN) if len(constants) > _SHOWN else None
        stream.emit(Noted(message("progress-defaults", columns=Name(", ".join(constants[:_SHOWN])), more=more)))
    total, rows = sum(f.rows for f in fillings), 0
    drawer = Drawer(fillings)
    with done.phase("generate"), ThreadPoolExecutor(done.connections) as pool:
        for f in fillings:
            for n, sent in fill.filled(target, f, drawer, done.connections, pool):
                rows += n
                done.moved_bytes += sent
                stream.emit(DatasetProgress("generate", rows, total, done.moved_bytes, 0))
        fill.set_sequences(conn, fillings)
    with done.phase("keys"), conn.transaction():
        stream.emit(DatasetProgress("keys", 0, 0, 0, 0))
        with user_path(conn):
            for path in data.after:
                SqlFile.read(path).carry_out(conn, note=stream.note)
    return rows


def _restored(
    conn: Connection,
    target: Target,
    data: OwnDataset,
    programs: Callable[[str], Path],
    claim: Claim | None,
    done: Loaded,
    stream: RunStream,
) -> list[int]:
    assert data.dump is not None
    with conn.transaction():
        for statement in claim.guard() if claim is not None else []:
            conn.execute(statement.encode())
        _drop_ours(conn, stream)
    before = tables(conn)
    if before:
        raise RefusedError(
            msg(
                "error-tables-already-dump-restored-into",
                where=target.where,
                values=listed(list(before.values()))[:200],
            ),
            msg("remedy-createdb-bench-then-dbname-bench-2"),
        )
    with done.phase("create"):
        stream.emit(DatasetProgress("restore", 0, 0, 0, 0))
        try:
            dump.restore(target, data.dump, programs, jobs=done.connections)
        except BaseException as e:
            # What there is by now has come from the dump: the database was empty. Also after Ctrl-C.
            with signals_held(), conn.transaction():
                _mark(conn, data, list(tables(conn)), _UNFINISHED)
            if isinstance(e, OSError | subprocess.SubprocessError):
                raise LocalError(msg("error-pg-restore-could-not-be", reason=e)) from e
            raise
    oids = list(tables(conn))
    with conn.transaction():
        _mark(conn, data, oids, _UNFINISHED)
    done.moved_bytes = dump.bytes_of(data.dump)
    return oids


def _name_of(conn: Connection, oid: int) -> str | None:
    row = conn.execute(
        """select oid::pg_catalog.regclass::pg_catalog.text from pg_catalog.pg_class
           where oid = %s and relkind in ('r', 'p')""",
        [oid],
    ).fetchone()
    return None if row is None else str(row[0])


def _mark(conn: Connection, data: OwnDataset, oids: Sequence[int], state: str) -> None:
    """Add a line to the comment of each table that marks it as pgdyno's.

    Other text of the comment stays.
    """
    there = tables(conn)
    for oid in oids:
        if oid not in there:
            continue
        table = there[oid]
        row = conn.execute("select pg_catalog.obj_description(%s::pg_catalog.oid, 'pg_class'::name)", [oid]).fetchone()
        mark = f"{MARK} {data.name} [{table.name} {oid}]" + (f" ({state})" if state else "")
        kind = "foreign table" if table.kind == "f" else "table"
        _comment(conn, kind, table.sql, str((row or [""])[0] or ""), mark)


def _comment(conn: Connection, kind: str, name: str, comment: str, mark: str) -> None:
    lines = [line for line in comment.splitlines() if not line.startswith(f"{MARK} ")]
    conn.execute(f"comment on {kind} {name} is {literal(chr(10).join([*lines, mark]))}".encode())
