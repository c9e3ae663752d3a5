"""A schema looked at: how many rows its tables may have, how their columns are drawn, what a workload may read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from pgdyno.errors import SpecError, msg
from pgdyno.load.find import Connection
from pgdyno.load.own import catalog, statistics
from pgdyno.load.own.catalog import TableFacts
from pgdyno.load.own.columns import Wanted, decided
from pgdyno.load.own.decide import UndrawableError
from pgdyno.load.own.drawn import Drawn, Filling
from pgdyno.load.own.statistics import Shape
from pgdyno.message import Message, Text
from pgdyno.search_path import relation_shown
from pgdyno.spec.datasets import Column

#: Rows of a table by how many tables lie between it and those that refer to none.
_ROWS = (1_000, 10_000, 50_000)
#: Of a table that others refer to and that has a short key: a list of countries, of states.
_LISTED = 50
#: Of a live database, rows of its largest table.
MOST = 1_000_000
#: Tables whose rows scripts read.
_READ = 8
_TABLES = """
select c.oid, pg_catalog.pg_relation_size(c.oid::pg_catalog.regclass) > 0 or exists (
    select from pg_catalog.pg_partition_tree(c.oid::pg_catalog.regclass) t
    where t.isleaf and pg_catalog.pg_relation_size(t.relid) > 0)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition and n.nspname not in ('pg_catalog', 'information_schema')
  and n.nspname not like 'pg\\_%'
  and not exists (select from pg_catalog.pg_depend d
                  where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid and d.deptype = 'e')
order by c.oid"""


@dataclass(frozen=True)
class OutlinedTable:
    """A table: its rows, how it is filled, and a script that reads it."""

    name: str
    rows: int
    #: By column, in words.
    columns: Sequence[Text] = ()
    notes: Sequence[Text] = ()
    constants: Sequence[str] = ()
    script: str = ""
    #: By column, what statistics say of it: keys of spec.datasets.Column.
    requested: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Outline:
    """Tables that are filled, those that have rows already, and why some stay empty."""

    filled: Sequence[OutlinedTable]
    there: Sequence[OutlinedTable]
    empty: Mapping[str, Text] = field(default_factory=dict)


def outlined(
    conn: Connection,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Mapping[str, Shape]] = MappingProxyType({}),
) -> Outline:
    """Return the outline of a database in which a schema has been created.

    `sizes` and `shapes` are the rows and the columns of the tables in the database of origin, by table name.
    """
    facts, there = {}, []
    for oid, has_rows in conn.execute(_TABLES).fetchall():
        read = catalog.read(conn, oid)
        if has_rows:
            there.append(read)
        else:
            facts[oid] = read
    rows = _proportional(facts, sizes) if sizes else {oid: _rows_of(oid, facts) for oid in facts}
    empty: dict[str, Text] = {}
    names = {oid: t.name for oid, t in facts.items()}
    requested = {t.name: statistics.said_of(t, shapes.get(t.name, {}), rows[oid], names) for oid, t in facts.items()}
    fillings = _fitting(conn, facts, rows, requested, empty)
    shown = {f.oid: relation_shown(conn, f.name) for f in [*facts.values(), *there]}
    by_name = {f.name: f for f in facts.values()}
    filled = []
    for f in fillings:
        t = by_name[f.name]
        script = _script(shown[t.oid], t) if f.rows else ""
        words = [_description(c, f) for c in f.columns if c.name not in requested[f.name]]
        filled.append(OutlinedTable(shown[t.oid], f.rows, words, f.notes, f.constants, script, requested[f.name]))
    found = [OutlinedTable(shown[t.oid], 0, script=_script(shown[t.oid], t, gaps=True)) for t in there]
    return Outline(_with_scripts(filled), found, empty)


def _with_scripts(tables: Sequence[OutlinedTable]) -> list[OutlinedTable]:
    """Keep the scripts of the largest tables only."""
    read = sorted((t for t in tables if t.script), key=lambda t: -t.rows)[:_READ]
    return [t if t in read else replace(t, script="") for t in tables]


def _rows_of(oid: int, facts: Mapping[int, TableFacts]) -> int:
    depth = _depth(oid, facts, frozenset())
    t = facts[oid]
    key = t.keys[0].columns if t.keys else ()
    types = [t.columns[c].type for c in key if c is not None]
    short = types in (["int2"], ["bpchar"], ["varchar"], ["char"])
    return _LISTED if depth == 0 and short else _ROWS[min(depth, len(_ROWS) - 1)]


def _depth(oid: int, facts: Mapping[int, TableFacts], seen: frozenset[int]) -> int:
    parents = {r.table for r in facts[oid].references if r.table in facts and r.table != oid} - seen
    return max((1 + _depth(p, facts, seen | {oid}) for p in parents), default=0)


def _proportional(facts: Mapping[int, TableFacts], sizes: Mapping[str, int]) -> dict[int, int]:
    known = {oid: sizes.get(t.name, 0) for oid, t in facts.items()}
    part = min(1.0, MOST / max(1, *known.values()))
    return {oid: math.ceil(n * part) for oid, n in known.items()}


def _fitting(
    conn: Connection,
    facts: Mapping[int, TableFacts],
    rows: dict[int, int],
    requested: dict[str, dict[str, dict[str, Any]]],
    empty: dict[str, Text],
) -> list[Filling]:
    """Decide how tables are filled, with as many rows as possible.

    Tables that cannot be filled stay empty; `empty` receives the reason.
    """
    names = {t.name: oid for oid, t in facts.items()}
    # Each turn makes a table smaller, or leaves one out.
    for _ in range(4 * len(facts) + 1):
        wanted = [
            Wanted(t.name, rows[oid], _whole(requested[t.name])) for oid, t in facts.items() if t.name not in empty
        ]
        try:
            return decided(conn, wanted)
        except UndrawableError as e:
            if dropped := [p.table for p in e.problems if requested[p.table]]:
                # Rather a table by its catalog than none.
                requested |= {table: {} for table in dropped}
                continue
            for p in e.problems:
                oid = names[p.table]
                if p.most is not None and 0 < p.most < rows[oid]:
                    rows[oid] = p.most
                else:
                    empty.setdefault(p.table, p.what)
        except SpecError:
            if not any(requested.values()):
                raise
            requested |= {name: {} for name in requested}
    return []


def _whole(requested: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, object]]:
    """Return the column rules with all keys that an experiment has."""
    return {name: Column(**how).model_dump() for name, how in requested.items()}


def _script(shown: str, t: TableFacts, *, gaps: bool = False) -> str:
    """Return a script that reads a row by its key, which may have gaps (`gaps`).

    The script is empty if the table has no key that a script can draw.
    """
    for k in t.keys:
        column = k.columns[0] if len(k.columns) == 1 else None
        if column is None or k.predicate or not k.is_unique:
            continue
        name, type_ = (
            catalog.quoted(column) if not column.isidentifier() or column != column.lower() else column,
            t.columns[column].type,
        )
        if type_ in ("int2", "int4", "int8"):
            plain = shown.rpartition(".")[2].strip('"')
            if plain.replace("_", "a").isalnum():
                draw = f"\\set key random(:{plain}_first, :{plain}_last)\n"
                how = f">= :key ORDER BY {name} LIMIT 1" if gaps else "= :key"
                return f"{draw}SELECT * FROM {shown} WHERE {name} {how};"
        if type_ in ("uuid", "text", "varchar"):
            some = "gen_random_uuid()" if type_ == "uuid" else "md5(random()::text)"
            return f"SELECT * FROM {shown} WHERE {name} >= (SELECT {some}) ORDER BY {name} LIMIT 1;"
    return ""


def _description(c: Drawn, f: Filling) -> Text:
    """Describe the values of a column."""
    return msg("outline-column", column=c.name, values=_kind(c, f))


def _kind(c: Drawn, f: Filling) -> Message | str:
    if c.nulls == 1.0:
        return "NULL"
    match c.type:
        case "picked":
            p = next(p for p in f.picks if p.name == c.pick)
            row = msg("outline-earlier-row") if p.before else p.parent or msg("outline-existing-row")
            return msg("outline-from-row", column=c.column, row=row)
        case "serial":
            return f"{int(c.low):,}, {int(c.low) + 1:,}, ..."
        case "choice":
            some = ", ".join(str(v) for v in c.values[:4])
            return msg("outline-choice", n=len(c.values), some=some + (", ..." if len(c.values) > 4 else ""))
        case "text":
            return msg("outline-unique-texts" if c.unique else "outline-texts", low=int(c.low), high=int(c.high))
        case "integer" | "number":
            return msg("outline-range", low=f"{c.low:,g}", high=f"{c.high:,g}")
        case "spelled":
            return msg("outline-values", spelling=c.spelling)
        case _:
            return c.type
