"""Tables, their columns and keys, and what statistics say of them: what parameters are drawn by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from pgdyno.capture import sql
from pgdyno.capture.draws import Distribution
from pgdyno.capture.harm import Functions, Planner, functions
from pgdyno.capture.secrets import holds_none, is_measured
from pgdyno.errors import UsageError, msg
from pgdyno.load.dataset import literal
from pgdyno.load.find import Connection
from pgdyno.search_path import schemas_of, user_path

#: A table is named as statements name it: alone, where it is the first of its name in the user's search path. Such that
#: hold values of their own can be looked into; views call what their owners like.
_COLUMNS = """
select case when n.nspname::text = (
    select n2.nspname::text from pg_catalog.pg_class c2 join pg_catalog.pg_namespace n2 on n2.oid = c2.relnamespace
    where c2.relname = c.relname and n2.nspname::text = any(%(path)s::text[])
    order by pg_catalog.array_position(%(path)s::text[], n2.nspname::text) limit 1)
    then c.relname::text else n.nspname::text || '.' || c.relname::text end,
  c.oid, n.nspname::text, c.relname::text, a.attname::text, pg_catalog.format_type(a.atttypid, null), a.attnum,
  c.relkind in ('r', 'p') and not c.relrowsecurity and a.attgenerated <> 'v'
    and l.lanname in ('internal', 'c'),
  case when c.relkind = 'p' then
    (select coalesce(sum(greatest(p.reltuples, 0)), 0) from pg_catalog.pg_partition_tree(c.oid::pg_catalog.regclass) x
       join pg_catalog.pg_class p on p.oid = x.relid where x.isleaf)
    else greatest(c.reltuples, 0) end::float8,
  greatest(c.relpages, 1)::float8, c.relkind in ('r', 'p') and not c.relrowsecurity
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join pg_catalog.pg_type t on t.oid = a.atttypid
  join pg_catalog.pg_proc o on o.oid = t.typoutput join pg_catalog.pg_language l on l.oid = o.prolang
where c.relkind in ('r', 'p', 'v', 'm') and n.nspname not in ('pg_catalog', 'information_schema')
order by a.attrelid, a.attnum"""
_UNIQUE = """
select i.indrelid, i.indkey::int2[] from pg_catalog.pg_index i
where i.indisunique and i.indpred is null and i.indexprs is null
order by not i.indisprimary, i.indexrelid"""
_REFERENCES = """
select conrelid, conkey, confrelid, confkey from pg_catalog.pg_constraint where contype = 'f' order by oid"""
_STATS = """
select most_common_vals::text::text[], most_common_freqs, histogram_bounds::text::text[], n_distinct, null_frac
from pg_catalog.pg_stats
where schemaname::text = %s and tablename::text = %s and attname::text = %s
order by inherited desc limit 1"""
#: Rows that are looked at where there are no statistics, and how long a look may take, milliseconds.
_SOME, _LOOK_MS = 200, 2_000
#: More numbers than this many times those that are there.
_GAPS = 2.0
INTEGERS = ("smallint", "integer", "bigint")


@dataclass(frozen=True)
class Column:
    """A column, as the catalog has it."""

    name: str
    type: str
    #: Values can be read without calling anything but the server's own functions.
    is_plain: bool


@dataclass
class Table:
    """A table, as the catalog has it."""

    shown: str
    schema: str
    name: str
    #: By the planner's statistics.
    rows: float
    pages: float
    #: Reading it calls nobody's functions: no view, no policies.
    is_plain: bool
    columns: dict[str, Column] = field(default_factory=dict)
    #: Columns of each unique index, the primary key's first.
    unique: list[tuple[str, ...]] = field(default_factory=list)
    #: Foreign keys: columns, the other table, its columns.
    references: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=list)

    def is_unique(self, column: str) -> bool:
        """Return True if a value of the column identifies one row."""
        return (column,) in self.unique

    @property
    def key(self) -> str | None:
        """Its integer key, of which scripts know the first and the last."""
        return next((u[0] for u in self.unique if len(u) == 1 and self.columns[u[0]].type in INTEGERS), None)

    def reference_of(self, column: str) -> tuple[tuple[str, ...], str, tuple[str, ...]] | None:
        """Return the foreign key that a column belongs to.

        Of several, it is the one with the most columns.
        """
        return max((r for r in self.references if column in r[0]), key=lambda r: len(r[0]), default=None)


class Catalog:
    """Tables of a database.

    `with_values` lists the columns with values that may be written, as "column", "table.column", or "all".
    """

    def __init__(self, conn: Connection, with_values: Sequence[str] = ()) -> None:
        self._conn = conn
        self._with_values = frozenset(with_values)
        self._dense: dict[tuple[str, str], bool] = {}
        self._statistics: dict[tuple[str, str], tuple[Any, ...] | None] = {}
        self._rows_there: dict[str, bool] = {}
        self.tables: dict[str, Table] = {}
        self.planner = Planner(conn)
        self._read()
        known = {"all"} | {n for t, of in self.tables.items() for c in of.columns for n in (c, f"{t}.{c}")}
        if unknown := sorted(self._with_values - known):
            raise UsageError(
                msg("error-values-no-table-column", unknown=", ".join(unknown)),
                msg("remedy-write-column-table-column-or"),
            )

    def _read(self) -> None:
        path = {"path": list(schemas_of(self._conn))}
        oids: dict[int, Table] = {}
        numbers: dict[tuple[int, int], str] = {}
        for shown, oid, schema, name, column, type_, number, plain, *sizes in self._conn.execute(_COLUMNS, path):
            table = oids.setdefault(oid, self.tables.setdefault(shown, Table(shown, schema, name, *sizes)))
            table.columns[column] = Column(column, type_, plain)
            numbers[oid, number] = column
        for oid, key in self._conn.execute(_UNIQUE):
            if oid in oids and all((oid, n) in numbers for n in key):
                oids[oid].unique.append(tuple(numbers[oid, n] for n in key))
        for oid, columns, other, others in self._conn.execute(_REFERENCES):
            if oid in oids and other in oids:
                of, to = (tuple(numbers[o, n] for n in c) for o, c in ((oid, columns), (other, others)))
                oids[oid].references.append((of, oids[other].shown, to))

    @property
    def writes_all(self) -> bool:
        """Return True if values of all columns may be written, except secrets."""
        return "all" in self._with_values

    @property
    def names(self) -> dict[str, list[str]]:
        """Column names of each table, in column order."""
        return {t: list(of.columns) for t, of in self.tables.items()}

    def column(self, use: sql.Use | None) -> Column | None:
        """Return the column that a parameter is compared with or written into; None if it is not known."""
        table = self.tables.get(use.table) if use is not None else None
        return table.columns.get(use.column) if use is not None and table is not None else None

    # ------------------------------------------------------------ values

    def _stats(self, table: Table, column: str) -> tuple[Any, ...] | None:
        at = (table.shown, column)
        if at not in self._statistics:
            self._statistics[at] = self._conn.execute(_STATS, [table.schema, table.name, column]).fetchone()
        return self._statistics[at]

    def distribution(self, table: Table, column: str) -> Distribution:
        """Return the distribution of a column's values by ANALYZE, or of some rows if ANALYZE has none."""
        row = self._stats(table, column)
        if row is not None and (row[0] or row[2]):
            return Distribution(row[0] or (), row[1] or (), row[2] or ())
        # By the type's output function: a cast to text may be somebody's.
        look = SQL("select pg_catalog.concat({0}) from {1} where {0} is not null limit {2}").format(
            Identifier(column), Identifier(table.schema, table.name), _SOME
        )
        rows = self._look(look) if table.columns[column].is_plain else []
        return Distribution.of([r[0] for r in rows if r[0] is not None])

    def distinct(self, table: Table, column: str) -> float | None:
        """Return the number of distinct values in a column, as ANALYZE estimates it."""
        if table.is_unique(column):
            return table.rows
        row = self._stats(table, column)
        if row is None or row[3] is None:
            return None
        return float(row[3]) if row[3] > 0 else -float(row[3]) * table.rows

    def has_gaps(self, table: Table, column: str) -> bool:
        """Return True if many numbers between the column's minimum and maximum do not occur, according to ANALYZE."""
        if table.is_unique(column):
            return not self.is_dense(table, column)
        of, distinct = self.distribution(table, column), self.distinct(table, column)
        try:
            known = [int(v) for v in (*of.common, *of.bounds)]
        except ValueError:
            return False
        return bool(known) and distinct is not None and max(known) - min(known) + 1 > _GAPS * max(1.0, distinct)

    def nulls(self, table: Table, column: str) -> float:
        """Return the share of rows with NULL in a column, as ANALYZE estimates it."""
        row = self._stats(table, column)
        return float(row[4] or 0.0) if row is not None else 0.0

    def is_dense(self, table: Table, column: str) -> bool:
        """Return True if nearly every number between the first and the last value of an integer key exists."""
        at = (table.shown, column)
        if at not in self._dense:
            look = SQL("select min({0})::float8, max({0})::float8 from {1}").format(
                Identifier(column), Identifier(table.schema, table.name)
            )
            found = self._look(look) if table.columns[column].is_plain and table.is_unique(column) else []
            first, last = found[0] if found else (None, None)
            self._dense[at] = first is None or last is None or table.rows >= 0.9 * (last - first + 1)
        return self._dense[at]

    def has_rows(self, table: Table) -> bool:
        """Return True if the table has rows to draw values from."""
        if table.shown not in self._rows_there:
            look = SQL("select from {} limit 1").format(Identifier(table.schema, table.name))
            self._rows_there[table.shown] = table.is_plain and bool(self._look(look))
        return self._rows_there[table.shown]

    def between(self, type_: str, low: str, high: str, part: float) -> str:
        """Return the value at the fraction `part` of the way from one bound to another.

        It applies to numbers and times. For other types the result is `low`.
        """
        look = SQL("select ({0}::{2} + ({1}::{2} - {0}::{2}) * {3})::{2}::pg_catalog.text").format(
            Literal(low), Literal(high), SQL(type_), Literal(float(part))
        )
        if type_ in ("integer", "bigint", "smallint"):
            return str(round(int(low) + (int(high) - int(low)) * part))
        if type_ == "date":
            look = SQL("select ({0}::date + (({1}::date - {0}::date) * {2})::integer)::text").format(
                Literal(low), Literal(high), Literal(float(part))
            )
        found = self._look(look)
        return str(found[0][0]) if found and found[0][0] is not None else low

    def apart(self, type_: str, step: str, low: str, high: str) -> str:
        """Return the distance between two bounds as an SQL expression of type `step`.

        An empty string means that there is no such expression.
        """
        look = SQL("select ({0}::{2} - {1}::{2})::{3}::pg_catalog.text").format(
            Literal(high), Literal(low), SQL(type_), SQL(step)
        )
        if type_ == "date" and step == "interval":
            look = SQL("select ({0}::timestamp - {1}::timestamp)::pg_catalog.text").format(Literal(high), Literal(low))
        found = self._look(look)
        value = str(found[0][0]) if found and found[0][0] is not None else ""
        return f"{literal(value)}::{step}" if value else ""

    def around(self, type_: str, value: str) -> list[str]:
        """Return two values of a number or a time: one before `value` and one after it."""
        step = SQL("interval '1 day'" if type_.startswith(("date", "timestamp")) else "1")
        look = SQL("select ({0}::{1} - {2})::{1}::pg_catalog.text, ({0}::{1} + {2})::{1}::pg_catalog.text").format(
            Literal(value), SQL(type_), step
        )
        found = self._look(look)
        return list(found[0]) if found else []

    def _look(self, query: Any) -> list[Any]:
        """Rows of a query that may take two seconds; none where it fails."""
        try:
            with self._conn.transaction():
                self._conn.execute(f"set local statement_timeout = {_LOOK_MS}")
                return self._conn.execute(query).fetchall()
        except (psycopg.Error, ValueError):
            return []

    # ------------------------------------------------------------ secrets

    def is_secret(self, use: sql.Use | None, type_: str) -> bool:
        """Return True if values of the parameter should not be written down.

        Numbers, dates and truth values are not secrets.
        """
        return use is not None and not holds_none(type_) and sql.is_secret(use.column)

    def may_be_written(self, use: sql.Use | None, type_: str) -> bool:
        """Return True if values of the parameter may appear in a script.

        Numbers, times and truth values may. Values of other types may if they are requested, but never if they may be
        secret.
        """
        if self.is_secret(use, type_):
            return False
        if is_measured(type_) and not type_.endswith("[]"):
            return True
        names = {"all"} | ({use.column, f"{use.table}.{use.column}"} if use is not None else set())
        return not names.isdisjoint(self._with_values)

    # ------------------------------------------------------------ statements

    def functions(self, text: str) -> Functions:
        """Somebody's functions that a statement may call."""
        return functions(self._conn, text)

    def types(self, text: str) -> list[str] | str:
        """Return the types of a statement's parameters as the server determines them.

        If the server does not accept the statement, return the reason as a string.
        """
        # The extended protocol takes one statement, and nothing is carried out.
        pgconn = self._conn.pgconn
        with user_path(self._conn):
            result = pgconn.prepare(b"", text.encode())
            if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
                return " ".join(result.get_error_message().split()).removeprefix("ERROR: ")
            described = pgconn.describe_prepared(b"")
        oids = [described.param_type(n) for n in range(described.nparams)]
        rows = self._conn.execute("select pg_catalog.format_type(t, null) from unnest(%s::oid[]) t", [oids]).fetchall()
        return [r[0] for r in rows]
