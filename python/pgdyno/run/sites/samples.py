r"""Rows that scripts draw from with `\pick`: samples of tables, taken before the first trial."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from pgdyno.engine import Sample
from pgdyno.errors import RefusedError, SpecError, msg
from pgdyno.format import one_line
from pgdyno.load.find import Connection
from pgdyno.search_path import user_path
from pgdyno.spec.experiment import SampleOf
from pgdyno.spec.values import variable_of

#: Pages of a table that are read for a sample, and how long that may take, milliseconds.
_PAGES, _PATIENCE_MS = 2_000, 120_000
#: The table by the name that the user's search path has; pages of all partitions. Values of such columns can be read
#: without calling anybody's functions: of views, policies, types, and generated columns that are worked out when read.
_TABLE = """
select n.nspname::text, c.relname::text, c.relkind in ('r', 'p', 'm') and not c.relrowsecurity,
  (select coalesce(sum(pg_catalog.pg_relation_size(t.relid)), 0) / pg_catalog.current_setting('block_size')::int8
   from pg_catalog.pg_partition_tree(c.oid::pg_catalog.regclass) t
     join pg_catalog.pg_class p on p.oid = t.relid where t.isleaf)::float8,
  pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::float8,
  array(select a.attname::text from pg_catalog.pg_attribute a
          join pg_catalog.pg_type t on t.oid = a.atttypid join pg_catalog.pg_proc o on o.oid = t.typoutput
          join pg_catalog.pg_language l on l.oid = o.prolang
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated <> 'v'
          and l.lanname in ('internal', 'c') order by a.attnum)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = %s"""


def take(conn: Connection, samples: Mapping[str, SampleOf], seed: int) -> list[Sample]:
    """Read samples of tables.

    A random part of the pages of each table is read, and up to the requested number of rows from these pages. The same
    data and the same seed give the same rows. Raise SpecError if a table or a column does not exist, cannot be read or
    has no rows. Raise RefusedError if the table is a view or has row security.
    """
    return [_taken(conn, name, s, seed) for name, s in samples.items()]


def _taken(conn: Connection, name: str, s: SampleOf, seed: int) -> Sample:
    if s.table is None:
        return Sample(name, [variable_of(c) for c in s.columns], [list(row) for row in s.values], s.scheduled)
    with user_path(conn):
        row = conn.execute("select pg_catalog.to_regclass(%s)::oid", [s.table]).fetchone()
    found = conn.execute(_TABLE, [row[0]]).fetchone() if row is not None and row[0] is not None else None
    if found is None:
        raise SpecError(
            msg("error-samples-there-no-table", name=name, table=s.table), msg("remedy-write-sql-does-schema-table")
        )
    schema, table, is_plain, in_leaves, own, columns = found
    if not is_plain:
        raise RefusedError(
            msg("error-samples-view-or-row-security", name=name, table=s.table),
            msg("remedy-name-table-without"),
        )
    if unknown := [c for c in s.columns if c not in columns]:
        raise SpecError(
            msg("error-samples-no-column-can-be", name=name, table=s.table, unknown=", ".join(unknown)),
            msg("remedy-it-has", names=", ".join(columns)),
        )
    pages = max(in_leaves, own)
    part = 100.0 if pages <= _PAGES else 100.0 * _PAGES / pages
    # By the types' output functions: a cast to text may be somebody's.
    shown = "case when {0} is not null then pg_catalog.concat({0}) end"
    values = SQL(", ").join(SQL(shown).format(Identifier(c)) for c in s.columns)
    there = SQL(" and ").join(SQL("{} is not null").format(Identifier(c)) for c in s.columns)
    texts = SQL("select {} from {} tablesample system ({}) repeatable ({}) where {} ").format(
        values, Identifier(schema, table), Literal(part), Literal(seed % 2**31), SQL("true") if s.nulls else there
    ) + SQL("order by pg_catalog.hashtextextended(ctid::pg_catalog.text, {}), tableoid limit {}").format(
        Literal(seed), Literal(s.rows)
    )
    try:
        with conn.transaction():
            conn.execute(f"set local statement_timeout = {_PATIENCE_MS}")
            rows = conn.execute(texts).fetchall()
    except psycopg.Error as e:
        raise SpecError(msg("error-samples-cannot-be-read", name=name, table=s.table, reason=one_line(e)[:200])) from e
    if not rows:
        raise SpecError(msg("error-samples-no-rows-pick-from", name=name, table=s.table), msg("remedy-load-data-first"))
    return Sample(name, [variable_of(c) for c in s.columns], [list(r) for r in rows])
