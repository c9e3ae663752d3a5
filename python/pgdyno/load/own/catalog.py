"""Catalog facts about a table to be filled: columns, keys, references, checks, partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import psycopg

from pgdyno.errors import SpecError, msg
from pgdyno.load.find import Connection
from pgdyno.search_path import user_path

_COLUMNS = """
with recursive of_type(attnum, type, modifier, depth, domains, not_null) as (
  select a.attnum, a.atttypid, a.atttypmod, 0, '{}'::pg_catalog.oid[], a.attnotnull
  from pg_catalog.pg_attribute a where a.attrelid = %(oid)s and a.attnum > 0 and not a.attisdropped
  union all
  select d.attnum, t.typbasetype, case when d.modifier >= 0 then d.modifier else t.typtypmod end, d.depth + 1,
    d.domains || t.oid, d.not_null or t.typnotnull
  from of_type d join pg_catalog.pg_type t on t.oid = d.type and t.typtype = 'd')
select a.attname::text, t.typname::text, e.typname::text, b.modifier, b.not_null, a.attgenerated <> '',
  a.attidentity <> '', coalesce(pg_catalog.pg_get_expr(x.adbin, x.adrelid), ''),
  (select pg_catalog.array_agg(l.enumlabel::text order by l.enumsortorder) from pg_catalog.pg_enum l
   where l.enumtypid = t.oid),
  (select s.typname::text from pg_catalog.pg_range r join pg_catalog.pg_type s on s.oid = r.rngsubtype
   where t.oid in (r.rngtypid, r.rngmultitypid)),
  t.typtype = 'm', pg_catalog.format_type(b.type, b.modifier), pg_catalog.format_type(a.atttypid, a.atttypmod),
  (select pg_catalog.array_agg(pg_catalog.pg_get_constraintdef(c.oid)) from pg_catalog.pg_constraint c
   where c.contypid = any(b.domains) and c.contype = 'c')
from pg_catalog.pg_attribute a
  join (select distinct on (attnum) * from of_type order by attnum, depth desc) b on b.attnum = a.attnum
  join pg_catalog.pg_type t on t.oid = b.type
  left join pg_catalog.pg_type e on e.oid = t.typelem and t.typcategory = 'A'
  left join pg_catalog.pg_attrdef x on (x.adrelid, x.adnum) = (a.attrelid, a.attnum)
where a.attrelid = %(oid)s
order by a.attnum"""
#: Unique indexes: those of constraints are among them. What is no column is an expression. WITHOUT OVERLAPS excludes.
_KEYS = """
select c.relname::text,
  array(select pg_catalog.pg_get_indexdef(i.indexrelid, n, false)
        from pg_catalog.generate_series(1, i.indnkeyatts) n order by n),
  array(select a.attname::text from pg_catalog.generate_series(0, i.indnkeyatts - 1) n
          left join pg_catalog.pg_attribute a on (a.attrelid, a.attnum) = (i.indrelid, i.indkey[n])
            and i.indkey[n] <> 0 order by n),
  coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), ''),
  i.indisunique and not i.indisexclusion,
  coalesce((select array(select o.oprname::text from pg_catalog.unnest(k.conexclop) with ordinality u(o, n)
              join pg_catalog.pg_operator o on o.oid = u.o order by n)
     from pg_catalog.pg_constraint k where k.conindid = i.indexrelid and k.contype in ('x', 'p', 'u')
       and k.conexclop is not null limit 1), '{}')
from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
where i.indrelid = %(oid)s and (i.indisunique or i.indisexclusion)
order by not i.indisprimary, i.indexrelid"""
#: Of the table and of its partitions, which may have foreign keys of their own.
_REFERENCES = """
select distinct on (2, 3, 4)
  array(select a.attname::text from pg_catalog.unnest(c.conkey) with ordinality k(n, o)
        join pg_catalog.pg_attribute a on (a.attrelid, a.attnum) = (c.conrelid, k.n) order by k.o),
  coalesce(pg_catalog.pg_partition_root(c.confrelid)::pg_catalog.oid, c.confrelid),
  array(select a.attname::text from pg_catalog.unnest(c.conkey) with ordinality k(n, o)
        join pg_catalog.pg_attribute a on (a.attrelid, a.attnum) = (c.conrelid, k.n) order by k.o)::text,
  array(select a.attname::text from pg_catalog.unnest(c.confkey) with ordinality k(n, o)
        join pg_catalog.pg_attribute a on (a.attrelid, a.attnum) = (c.confrelid, k.n) order by k.o),
  coalesce((pg_catalog.to_jsonb(c) ->> 'conperiod')::bool, false)
from pg_catalog.pg_constraint c
where c.contype = 'f' and c.conrelid in (
  select %(oid)s union all select t.relid::pg_catalog.oid from pg_catalog.pg_partition_tree(%(oid)s) t)
order by 2, 3, 4"""
_CHECKS = """
select c.conname::text, pg_catalog.pg_get_constraintdef(c.oid),
  array(select a.attname::text from pg_catalog.unnest(c.conkey) k(n)
        join pg_catalog.pg_attribute a on (a.attrelid, a.attnum) = (c.conrelid, k.n))
from pg_catalog.pg_constraint c where c.conrelid = %(oid)s and c.contype = 'c' and c.convalidated"""
#: Of its leaves what holds for their rows; a default one takes what no other takes.
_LEAVES = """
select t.relid::pg_catalog.oid, pg_catalog.pg_get_partition_constraintdef(t.relid::pg_catalog.oid),
  pg_catalog.pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'
from pg_catalog.pg_partition_tree(%(oid)s) t join pg_catalog.pg_class c on c.oid = t.relid
where t.isleaf and t.level > 0 order by 1"""
_PARTITIONED_BY = """
select distinct a.attname::text
from pg_catalog.pg_partition_tree(%(oid)s) t join pg_catalog.pg_partitioned_table p on p.partrelid = t.relid
  cross join pg_catalog.unnest(p.partattrs::int2[]) k(n)
  join pg_catalog.pg_attribute a on (a.attrelid, a.attnum) = (p.partrelid, k.n)"""


@dataclass(frozen=True)
class Column:
    """A column, domains looked through: `type` is the base type, `element` that of an array."""

    name: str
    type: str
    element: str | None
    modifier: int
    not_null: bool
    generated: bool
    identity: bool
    default: str
    labels: Sequence[str] | None
    #: Of a range or multirange, what it ranges over.
    subtype: str | None
    is_multirange: bool
    #: The base type, as SQL casts to it.
    sql_type: str
    #: The same with its domain.
    own_type: str
    domain_checks: Sequence[str] | None


@dataclass(frozen=True)
class Key:
    """A unique index, or an exclusion constraint with its operators; of an expression the column is None."""

    name: str
    parts: Sequence[str]
    columns: Sequence[str | None]
    predicate: str
    is_unique: bool
    operators: Sequence[str]


@dataclass(frozen=True)
class Reference:
    """A foreign key."""

    columns: tuple[str, ...]
    table: int
    others: tuple[str, ...]
    is_temporal: bool = False


@dataclass(frozen=True)
class Check:
    """A CHECK constraint, of the table or of a column's domain, as an expression over its columns."""

    name: str
    expression: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Leaf:
    """A partition without partitions: what holds of its rows."""

    expression: str
    is_default: bool


@dataclass(frozen=True)
class TableFacts:
    """A table."""

    oid: int
    #: As SQL takes it, with its schema.
    name: str
    columns: Mapping[str, Column]
    keys: Sequence[Key]
    references: Sequence[Reference]
    checks: Sequence[Check]
    leaves: Sequence[Leaf]
    partitioned_by: Sequence[str]

    @cached_property
    def short(self) -> str:
        """Without its schema."""
        return self.name.rpartition(".")[2]


def quoted(name: str) -> str:
    """Return a column name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def found(conn: Connection, name: str, where: str) -> int:
    """Return the oid of a table, as SQL names it or as it is spelled in the catalog. Raise SpecError."""
    schema, _, last = name.rpartition(".")
    tries = [name, quoted(name)]
    if schema:
        tries.append(f"{quoted(schema)}.{quoted(last)}")
    with user_path(conn):
        for text in tries:
            try:
                with conn.transaction():
                    row = conn.execute("select pg_catalog.to_regclass(%s)::pg_catalog.oid", [text]).fetchone()
            except psycopg.Error:
                continue
            if row is not None and row[0] is not None:
                return int(row[0])
    raise SpecError(msg("error-there-no-such-table-database", where=where), msg("remedy-files-must-make-before-filled"))


def read(conn: Connection, oid: int) -> TableFacts:
    """Read the catalog's facts about the table with this OID."""

    def rows(sql: str) -> list[tuple[object, ...]]:
        return conn.execute(sql.encode(), {"oid": oid}).fetchall()

    columns = {c.name: c for c in (Column(*row) for row in rows(_COLUMNS))}  # type: ignore[arg-type]
    checks = [Check(name, _bare(text), tuple(over)) for name, text, over in rows(_CHECKS)]  # type: ignore[arg-type]
    for c in columns.values():
        for text in c.domain_checks or []:
            checks.append(Check(f"{c.name}'s domain", _domain_base(_bare(text), c.name), (c.name,)))
    references = [
        Reference(tuple(own), table, tuple(others), temporal)  # type: ignore[arg-type]
        for own, table, _, others, temporal in rows(_REFERENCES)
    ]
    return TableFacts(
        oid,
        str(rows("select %(oid)s::pg_catalog.regclass::pg_catalog.text")[0][0]),
        columns,
        [Key(*row) for row in rows(_KEYS)],  # type: ignore[arg-type]
        references,
        [c for c in checks if c.columns],
        [Leaf(str(text), bool(default)) for _, text, default in rows(_LEAVES) if text],
        [str(name) for (name,) in rows(_PARTITIONED_BY)],
    )


def _bare(definition: object) -> str:
    """Return the expression within a definition such as "CHECK (...) NO INHERIT"."""
    text = str(definition).removeprefix("CHECK ").strip()
    for end in (" NOT VALID", " NO INHERIT", " NOT ENFORCED"):
        text = text.removesuffix(end)
    return text


def _domain_base(expression: str, column: str) -> str:
    """Replace VALUE in a domain's expression by the column, outside of literals."""
    pieces = expression.split("'")
    pieces[::2] = [_word(piece, column) for piece in pieces[::2]]
    return "'".join(pieces)


def _word(text: str, column: str) -> str:
    return re.sub(r"\bVALUE\b", lambda _: quoted(column), text)
