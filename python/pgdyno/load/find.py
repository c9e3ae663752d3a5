"""Detect whether the dataset exists, and whether pgdyno created the tables in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import Target
from pgdyno.errors import RefusedError, TargetError, msg
from pgdyno.format import one_line
from pgdyno.load import entangled
from pgdyno.load.dataset import MARK, Dataset, mark_of, quoted
from pgdyno.load.doubts import doubts
from pgdyno.load.standing import Table
from pgdyno.load.units import pg_size
from pgdyno.message import Name, Text
from pgdyno.search_path import schema_of

Connection = psycopg.Connection[tuple[Any, ...]]

#: Whoever may create functions in a schema of the path could lay one that fits better than the server's own: each is
#: named with its schema, and has arguments of exactly its types.
_TABLES = """
with here as (select oid from pg_catalog.pg_namespace where nspname = %s::pg_catalog.text),
named as (
  select c.oid from pg_catalog.pg_class c join here on c.relnamespace = here.oid
    left join pg_catalog.pg_description d
      on d.objoid = c.oid and d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objsubid = 0
  where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    and (c.relname::text = any(%s::text[]) or d.description like %s::text)),
whole as (  -- Who drops a partitioned table drops what is attached to it.
  select oid from named
  union select t.relid::pg_catalog.oid from named n join pg_catalog.pg_class c on c.oid = n.oid and c.relkind = 'p',
    pg_catalog.pg_partition_tree(c.oid::pg_catalog.regclass) t)
select c.oid, c.relname, c.relkind::text,
  pg_catalog.quote_ident(n.nspname::text) || '.' || pg_catalog.quote_ident(c.relname::text),
  c.relnamespace = here.oid,
  coalesce(pg_catalog.pg_total_relation_size(c.oid::pg_catalog.regclass), 0),
  c.relkind = 'p' or pg_catalog.pg_relation_size(c.oid::pg_catalog.regclass) > 0,
  pg_catalog.obj_description(c.oid, 'pg_class'::name)
from whole join pg_catalog.pg_class c using (oid) join pg_catalog.pg_namespace n on n.oid = c.relnamespace, here
order by c.relkind = 'p', c.oid"""


@dataclass(frozen=True)
class Found:
    """Tables that the database has under the names of a dataset."""

    #: Tables that pgdyno did not make.
    foreign: list[Table]
    #: Tables that it made.
    ours: list[Table]
    #: What the marks say that there is; None when there is none, or when they disagree.
    name: str | None
    #: Whether all tables are there, and loaded.
    complete: bool

    def holds(self, dataset: Dataset) -> bool:
        """Return True if the tables are this dataset, and it is complete."""
        return self.complete and self.name == dataset.name

    @property
    def tables(self) -> list[Table]:
        """All that go where the dataset is made anew."""
        return [*self.foreign, *self.ours]


def find(conn: Connection, dataset: Dataset) -> Found:
    """Find the dataset's tables in the schema where they would be created.

    Tables that belong to the same kind of dataset at another size are found too.
    """
    rows = conn.execute(_TABLES, [schema_of(conn), dataset.relations, f"{MARK} {dataset.kind} %"]).fetchall()
    wanted = set(dataset.relations)
    tables, foreign, ours = [], [], []
    for oid, name, kind, sql, is_here, size, has_rows, comment in rows:
        table = Table(oid, name, kind, sql, size, has_rows, mark_of(comment), is_here)
        if is_here and table.is_ours:
            ours.append(table)
        elif not is_here or name in wanted or table.mark is None:
            foreign.append(table)
        else:
            # A table of ours that somebody has renamed: theirs now, and not in our way.
            continue
        tables.append(table)
    names = {t.mark.name for t in tables if t.mark is not None and t.is_usable}
    # After a crash unlogged tables are empty.
    filled = {t.name for t in dataset.tables if t.end > t.first}
    ready = all(
        t.mark is not None and t.is_usable and not t.mark.state and (t.has_rows or t.name not in filled) for t in tables
    )
    complete = ready and len(names) == 1 and {t.name for t in tables} == wanted
    return Found(foreign, ours, names.pop() if len(names) == 1 else None, complete)


def look(conn: Connection, target: Target, dataset: Dataset, *, force: bool, replace: bool) -> Found:
    """Find the dataset's tables as `find` does, and raise RefusedError if they must not be replaced.

    Raise RefusedError if objects that pgdyno did not create are tied to its tables. Raise RefusedError if other tables
    stand in the dataset's place. For tables that pgdyno did not create, `force` prevents this error. For a pgdyno
    dataset of another size, `replace` prevents it.
    """
    try:
        found = find(conn, dataset)
        entangled.refuse(conn, target, [t.oid for t in found.ours])
    except psycopg.Error as e:
        reason = one_line(e)
        raise TargetError(
            msg("error-cannot-look-for-tables", where=target.where, reason=reason), remedy_for(reason, e.sqlstate)
        ) from e
    if found.holds(dataset):
        return found
    # Marks of old name no table; what they say is all there is to go by, and whoever says --replace knows it.
    of_old = all(t.mark is not None and not t.mark.table for t in found.foreign)
    if found.foreign and not force and not (of_old and replace):
        marked = all(t.mark is not None for t in found.foreign)
        if of_old:
            raise RefusedError(
                msg(
                    "error-holds-another-dataset-pgdyno-s-2",
                    where=target.where,
                    name=found.name,
                    listed=listed(found.foreign),
                    pg_size=pg_size(sum(t.bytes for t in found.foreign)),
                ),
                msg("remedy-replace-drops-loads-or-use", name=dataset.name),
            )
        raise RefusedError(
            msg(
                "error-exists-with-other-marks" if marked else "error-exists-not-ours",
                where=target.where,
                tables=listed(found.foreign),
            ),
            msg("remedy-use-database-own-createdb-bench-2"),
        )
    finished = [t for t in found.ours if t.mark is not None and not t.mark.state and t.mark.name != dataset.name]
    if finished and not replace:
        raise RefusedError(
            msg(
                "error-holds-another-dataset-pgdyno-s",
                where=target.where,
                value=Name(found.name) if found.name else msg("progress-several-kinds"),
                listed=listed(found.ours),
                pg_size=pg_size(sum(t.bytes for t in found.ours)),
            ),
            msg("remedy-replace-drops-loads-or-use", name=dataset.name),
        )
    if not replace and not force:
        try:
            doubtful = next(doubts(conn, found.ours), None)
        except psycopg.Error as e:
            reason = one_line(e)
            raise TargetError(
                msg("error-cannot-read-tables", where=target.where, reason=reason), remedy_for(reason, e.sqlstate)
            ) from e
        if doubtful is not None:
            table, why = doubtful
            raise RefusedError(
                msg("error-pgdyno-s-mark-mark-may", where=target.where, shown=table.shown, why=why),
                msg("remedy-look-at-replace-drops-loads", listed=listed(found.ours), name=dataset.name),
            )
    return found


def listed(tables: Sequence[Table]) -> str:
    """Return the names of tables in the format of `listed_names`."""
    return listed_names([t.shown for t in tables])


def listed_names(names: Sequence[str]) -> str:
    """Every one of the names; those that differ in a number at the end as "feed0 to feed9 (10 tables)"."""
    runs: list[tuple[str, list[int]]] = []
    for name in sorted(names, key=_numbered):
        stem, number = _numbered(name)
        if runs and number >= 0 and runs[-1][0] == stem and runs[-1][1][-1] == number - 1:
            runs[-1][1].append(number)
        else:
            runs.append((stem, [number]))
    words = []
    for stem, numbers in runs:
        first, last = (stem if n < 0 else f"{stem}{n}" for n in (numbers[0], numbers[-1]))
        words.append(f"{first} to {last} ({len(numbers)} tables)" if len(numbers) > 2 else
                     ", ".join(dict.fromkeys([first, last])))  # fmt: skip
    return ", ".join(words)


def _numbered(name: str) -> tuple[str, int]:
    """Split a name into its stem and the number at its end; the number is -1 if the name has none."""
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    # What begins with 0 would not be spelled the same again.
    return (stem, int(digits)) if digits and (digits == "0" or digits[0] != "0") else (name, -1)


def refuse_unfit(conn: Connection, target: Target) -> None:
    """Raise RefusedError where nothing can be loaded, or should be: a standby, a template of databases."""
    row = conn.execute(
        "select datistemplate from pg_catalog.pg_database where datname = pg_catalog.current_database()"
    ).fetchone()
    if row and row[0]:
        raise RefusedError(
            msg("error-template-what-loaded-there-every", where=target.where),
            msg("remedy-use-database-own-createdb-bench-3"),
        )
    row = conn.execute("select pg_catalog.pg_is_in_recovery()").fetchone()
    if row and row[0]:
        raise RefusedError(
            msg("error-standby-nothing-can-be-loaded", where=target.where), msg("remedy-load-through-primary-first-or")
        )


def reads_only(conn: Connection, target: Target) -> Text | None:
    """Return why nothing can be written to a server, or None."""
    row = conn.execute(
        "select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on'"
    ).fetchone()
    standby, read_only = row or (False, False)
    if standby:
        return msg("target-is-standby", where=target.where)
    return msg("target-is-read-only", where=target.where) if read_only else None


def subscribers(conn: Connection) -> list[str]:
    """Return who gets a copy of every table that is made here: publications of all tables, logical slots."""
    rows = conn.execute(
        """select 'the publication ' || pg_catalog.quote_ident(pubname) || ' of all tables'
           from pg_catalog.pg_publication where puballtables
           union all
           select 'the logical replication slot ' || pg_catalog.quote_ident(slot_name)
           from pg_catalog.pg_replication_slots where database = pg_catalog.current_database() order by 1"""
    ).fetchall()
    return [str(row[0]) for row in rows]


def schema_sql(conn: Connection) -> str:
    """Return the schema for the user's tables as an SQL identifier.

    Call this only if the tables are known to exist.
    """
    return quoted(schema_of(conn) or "public")


def schema_for(conn: Connection, target: Target) -> str:
    """Return the schema where tables would be created.

    Raise TargetError if no schema of the search path exists.
    """
    schema = schema_of(conn)
    if schema is None:
        raise TargetError(
            msg("error-no-schema-search-path-exists", where=target.where), msg("remedy-create-one-create-schema-or")
        )
    return schema
