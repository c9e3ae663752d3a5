"""How each column of a table is drawn: as the user says, else as the catalog lets on: types, keys, constraints."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.errors import SpecError
from pgdyno.load.find import Connection
from pgdyno.load.own.drawn import Drawn
from pgdyno.search_path import user_path

#: What is drawn of instants where nothing is said: a year.
_FROM, _TO = dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1)
_INTEGERS = {"int2": 2**15 - 1, "int4": 2**31 - 1, "int8": 2**63 - 1}
_INSTANTS = {"timestamp": "timestamp", "timestamptz": "timestamp", "date": "date"}
#: Values of types that have no generator: always the same one.
_CONSTANT = {
    "json": "{}", "jsonb": "{}", "bytea": "\\x00", "inet": "127.0.0.1", "cidr": "127.0.0.0/8", "interval": "1 day",
    "time": "12:00", "timetz": "12:00+00", "tsvector": "", "xml": "<a/>", "point": "(0,0)",
}  # fmt: skip
#: Characters of texts where nothing is said.
_SHORT, _LONG = 8, 24
_COLUMNS = """
select a.attname, t.typname, t.typtype::text, a.attnotnull, a.atttypmod, a.attgenerated <> '', a.attidentity <> '',
  coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), ''), t.typelem <> 0 and t.typlen = -1 and t.typcategory = 'A',
  (select pg_catalog.array_agg(e.enumlabel::text order by e.enumsortorder) from pg_catalog.pg_enum e
   where e.enumtypid = t.oid)
from pg_catalog.pg_attribute a
  join pg_catalog.pg_type b on b.oid = a.atttypid
  join pg_catalog.pg_type t on t.oid = case when b.typtype = 'd' then b.typbasetype else b.oid end
  left join pg_catalog.pg_attrdef d on (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
where a.attrelid = pg_catalog.to_regclass(%s)::pg_catalog.oid and a.attnum > 0 and not a.attisdropped
order by a.attnum"""
_KEYS = """
select c.contype::text,
  array(select a.attname::text from pg_catalog.unnest(c.conkey) with ordinality k(n, o)
        join pg_catalog.pg_attribute a on (a.attrelid, a.attnum) = (c.conrelid, k.n) order by k.o),
  case when c.confrelid <> 0 then c.confrelid::pg_catalog.regclass::pg_catalog.text end,
  array(select a.attname::text from pg_catalog.unnest(c.confkey) with ordinality k(n, o)
        join pg_catalog.pg_attribute a on (a.attrelid, a.attnum) = (c.confrelid, k.n) order by k.o)
from pg_catalog.pg_constraint c
where c.conrelid = pg_catalog.to_regclass(%s)::pg_catalog.oid and c.contype in ('p', 'u', 'f')
union all
select 'u', array(select a.attname::text from pg_catalog.unnest(i.indkey::int2[]) with ordinality k(n, o)
        join pg_catalog.pg_attribute a on (a.attrelid, a.attnum) = (i.indrelid, k.n) order by k.o), null, '{}'
from pg_catalog.pg_index i
where i.indrelid = pg_catalog.to_regclass(%s)::pg_catalog.oid and i.indisunique and not i.indisprimary
  and i.indexprs is null and i.indpred is null"""


@dataclass(frozen=True)
class Wanted:
    """A table that is to be filled, as the user says."""

    name: str
    rows: int
    #: By column, what is said of it: the keys of spec.datasets.Column.
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Filling:
    """A table that is to be filled, each column decided."""

    name: str
    rows: int
    columns: Sequence[Drawn]
    #: Tables that must be full before it.
    after: frozenset[str]


@dataclass(frozen=True)
class _Column:
    name: str
    type: str
    kind: str
    not_null: bool
    modifier: int
    generated: bool
    identity: bool
    default: str
    is_array: bool
    labels: Sequence[str] | None


@dataclass(frozen=True)
class _Keys:
    #: Columns that are unique by themselves; the others of a key, and all of it.
    alone: set[str]
    together: list[list[str]]
    #: By column: the table and the column that it refers to.
    references: dict[str, tuple[str, str]]


def decided(conn: Connection, wanted: Sequence[Wanted]) -> list[Filling]:
    """All tables with all their columns, those that others refer to first. Raises SpecError."""
    rows = {_canonical(conn, w.name): w.rows for w in wanted}
    fillings = [_filling(conn, w, rows) for w in wanted]
    return _in_order(fillings)


def _canonical(conn: Connection, name: str) -> str:
    # Found as the user names it, and named with its schema from then on.
    with user_path(conn):
        row = conn.execute("select pg_catalog.to_regclass(%s)::pg_catalog.oid", [name]).fetchone()
    if row is not None and row[0] is not None:
        row = conn.execute("select %s::pg_catalog.regclass::pg_catalog.text", [row[0]]).fetchone()
    if row is None or row[0] is None:
        raise SpecError(
            f"fill.{name}: there is no such table in the database", "Its files must make it before it is filled."
        )
    return str(row[0])


def _filling(conn: Connection, w: Wanted, rows: Mapping[str, int]) -> Filling:
    name = _canonical(conn, w.name)
    columns = [_Column(*row) for row in conn.execute(_COLUMNS, [name]).fetchall()]
    known = {c.name for c in columns}
    for said in w.columns:
        if said not in known:
            raise SpecError(
                f"fill.{w.name}.columns.{said}: the table has no such column", f"It has {', '.join(known)}."
            )
    keys = _keys(conn, name)
    _refuse_wrong_likes(w)
    drawn: dict[str, Drawn] = {}
    for c in columns:
        where = f"fill.{w.name}.columns.{c.name}"
        if c.name in w.columns:
            drawn[c.name] = _as_said(conn, c, w.columns[c.name], rows, where)
        elif (of_itself := _by_catalog(conn, c, w.rows, keys, rows, where)) is not None:
            drawn[c.name] = of_itself
    for key in keys.together:
        _make_unique(w, key, drawn)
    for column, how in w.columns.items():
        if how.get("like") and how["like"] not in drawn:
            where = f"fill.{w.name}.columns.{column}"
            raise SpecError(f"{where}: like: {how['like']} is not drawn", "Say how, under columns.")
    after = {t for t, _ in keys.references.values()} | {_table_of(s["to"]) for s in w.columns.values() if s.get("to")}
    after = {_canonical(conn, t) for t in after}
    return Filling(name, w.rows, list(drawn.values()), frozenset(after & set(rows) - {name}))


def _refuse_wrong_likes(w: Wanted) -> None:
    """Raises SpecError where columns follow each other in a circle."""
    for name in w.columns:
        seen, at = {name}, str(w.columns[name].get("like") or "")
        while at:
            if at in seen:
                raise SpecError(f"fill.{w.name}.columns.{name}: like leads in a circle ({', '.join(sorted(seen))})")
            seen.add(at)
            at = str(w.columns.get(at, {}).get("like") or "")


def _table_of(reference: str) -> str:
    return reference.rpartition(".")[0]


def _keys(conn: Connection, name: str) -> _Keys:
    found = _Keys(set(), [], {})
    for kind, columns, other, others in conn.execute(_KEYS, [name, name]).fetchall():
        if kind == "f" and len(columns) == 1:
            found.references[columns[0]] = (other, others[0])
        elif kind in ("p", "u") and len(columns) == 1:
            found.alone.add(columns[0])
        elif kind in ("p", "u"):
            found.together.append(list(columns))
    return found


def _as_said(conn: Connection, c: _Column, said: Mapping[str, Any], rows: Mapping[str, int], where: str) -> Drawn:
    kind = said["type"]
    low, high = _bounds(c, said, where)
    if kind == "reference":
        low, high = _range_of(conn, said["to"], rows, where)
    longest = 1_000_000 if kind == "text" else 2**62
    if kind != "number" and max(abs(low), abs(high)) > longest:
        raise SpecError(f"{where}: min and max reach beyond {longest:,}")
    if low > high:
        raise SpecError(f"{where}: min is above max")
    return Drawn(
        c.name,
        kind,
        low,
        high,
        said["distribution"],
        said["skew"],
        tuple(said["values"]),
        tuple(said["weights"]),
        said["nulls"],
        said["like"],
        said["correlation"],
        _decimals(c),
    )


def _bounds(c: _Column, said: Mapping[str, Any], where: str) -> tuple[float, float]:
    kind, low, high = said["type"], said["min"], said["max"]
    if kind in ("timestamp", "date"):
        return _instant(low, _FROM, kind, f"{where}.min"), _instant(high, _TO, kind, f"{where}.max")
    if isinstance(low, str) or isinstance(high, str):
        raise SpecError(f"{where}: min and max of {kind} are numbers")
    if kind == "text":
        long = min(_LONG, _length(c) or _LONG)
        return (min(_SHORT, long) if low is None else low), (long if high is None else high)
    if kind == "integer":
        return (1 if low is None else low), (1_000_000 if high is None else high)
    return (1 if low is None and kind == "serial" else low or 0), (10_000 if high is None else high)


def _instant(value: Any, default: dt.datetime, kind: str, where: str) -> float:
    try:
        at = default if value is None else dt.datetime.fromisoformat(str(value)).replace(tzinfo=None)
    except ValueError as e:
        raise SpecError(f"{where}: {value!r} is no time", 'Write "2024-01-31" or "2024-01-31 12:00:00".') from e
    since = at - _EPOCH
    return float(since.days if kind == "date" else since // dt.timedelta(microseconds=1))


def _length(c: _Column) -> int | None:
    """Of varchar(n) and char(n)."""
    return c.modifier - 4 if c.type in ("varchar", "bpchar") and c.modifier > 4 else None


def _decimals(c: _Column) -> int:
    return (c.modifier - 4) & 0x7FF if c.type == "numeric" and c.modifier >= 4 else 2


def _by_catalog(
    conn: Connection, c: _Column, count: int, keys: _Keys, rows: Mapping[str, int], where: str
) -> Drawn | None:
    """None: the server fills it."""
    in_a_key = c.name in keys.alone or any(c.name in key for key in keys.together)
    if c.generated:
        return None
    if c.name in keys.references:
        low, high = _range_of(conn, ".".join(keys.references[c.name]), rows, where)
        if c.name in keys.alone:
            return Drawn(c.name, "serial", low)
        return Drawn(c.name, "reference", low, high)
    if c.type in _INTEGERS:
        if c.name in keys.alone or c.identity or c.default.startswith("nextval("):
            return Drawn(c.name, "serial")
        if c.default and not in_a_key:
            return None
        return Drawn(c.name, "integer", 1, min(_INTEGERS[c.type], 1000 if c.type == "int2" else max(1, count)))
    if c.default and not in_a_key:
        return None
    return _of_type(c, unique=c.name in keys.alone, where=where)


def _of_type(c: _Column, *, unique: bool, where: str) -> Drawn | None:
    if c.is_array:
        return Drawn(c.name, "choice", values=("{}",))
    if c.type in ("text", "varchar", "bpchar", "citext", "name"):
        long = min(_LONG, _length(c) or (1 if c.type == "bpchar" else _LONG))
        return Drawn(c.name, "text", min(_SHORT, long), long, unique=unique)
    if c.type in ("numeric", "float4", "float8", "money"):
        digits = ((c.modifier - 4) >> 16) & 0xFFFF if c.type == "numeric" and c.modifier >= 4 else 8
        high = 10.0 ** max(0, min(digits, 8) - (_decimals(c) if c.type == "numeric" else 0)) - 1
        return Drawn(c.name, "number", 0, min(10_000.0, high) if high >= 1 else 0.9, decimals=_decimals(c))
    if c.type in _INSTANTS:
        kind = _INSTANTS[c.type]
        return Drawn(c.name, kind, _instant(None, _FROM, kind, where), _instant(None, _TO, kind, where))
    if c.type == "bool":
        return Drawn(c.name, "boolean")
    if c.type == "uuid":
        return Drawn(c.name, "uuid")
    if c.labels:
        return Drawn(c.name, "choice", values=tuple(c.labels))
    if c.type in _CONSTANT and not unique:
        return Drawn(c.name, "choice", values=(_CONSTANT[c.type],))
    if not c.not_null:
        return None
    raise SpecError(
        f"{where}: values of type {c.type} cannot be drawn", "Give the column a default, or let it be null."
    )


def _range_of(conn: Connection, reference: str, rows: Mapping[str, int], where: str) -> tuple[float, float]:
    """The keys that may be referred to: of a table that is filled, from 1 to its rows; else those that are there."""
    table, _, column = reference.rpartition(".")
    name = _canonical(conn, table)
    if name in rows:
        if not rows[name]:
            raise SpecError(f"{where}: it refers to {name}, which has no rows")
        return 1, rows[name]
    quoted = '"' + column.replace('"', '""') + '"'
    row = conn.execute(f"select min({quoted}), max({quoted}) from {name}".encode()).fetchone()
    if row is None or not isinstance(row[0], int):
        raise SpecError(f"{where}: {name}.{column} has no integers to refer to", "Fill that table too, or say how.")
    return row[0], row[1]


def _make_unique(w: Wanted, key: Sequence[str], drawn: dict[str, Drawn]) -> None:
    """A key of several columns: one that counts rows makes it so; of references alone each combination comes once."""
    columns = [drawn[name] for name in key if name in drawn]
    if any(c.type in ("serial", "uuid") or c.unique or c.name in w.columns for c in columns) or not columns:
        return
    own = next((c for c in columns if c.type == "integer"), None)
    if own is not None:
        drawn[own.name] = Drawn(own.name, "serial")
        return
    text = next((c for c in columns if c.type == "text" and c.high >= _SHORT), None)
    if text is not None:
        drawn[text.name] = Drawn(text.name, "text", text.low, text.high, unique=True)
        return
    references = [c for c in columns if c.type == "reference"]
    combinations = math.prod(int(c.high - c.low) + 1 for c in references)
    if combinations < w.rows:
        raise SpecError(
            f"fill.{w.name}: its key ({', '.join(key)}) has {combinations:,} combinations, and {w.rows:,} rows are "
            "asked for",
            "Ask for fewer rows, or fill the tables that it refers to with more.",
        )
    divisor = 1
    for c in references:
        width = int(c.high - c.low) + 1
        # The last one has its whole range, however few of its values each combination of the others meets.
        step = max(1, width // max(1, math.ceil(w.rows / divisor))) if c is references[-1] else 1
        drawn[c.name] = Drawn(c.name, "reference", c.low, c.high, divisor=divisor, step=step)
        divisor *= width


def _in_order(fillings: Sequence[Filling]) -> list[Filling]:
    done: list[Filling] = []
    left = list(fillings)
    while left:
        names = {f.name for f in left}
        ready = [f for f in left if not f.after & names]
        if not ready:
            circle = ", ".join(sorted(names))
            raise SpecError(
                f"fill: {circle} refer to each other in a circle",
                "Leave a foreign key out, and add it in an after file.",
            )
        done += ready
        left = [f for f in left if f not in ready]
    return done
