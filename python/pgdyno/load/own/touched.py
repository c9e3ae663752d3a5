"""The tables that a workload touches, with what its scripts may ask of them: rows, and the range of their keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from pgdyno.load.find import Connection
from pgdyno.search_path import relation_shown, schemas_of

_NAME = re.compile(r'"[^"]+"|[A-Za-z_][\w$]*')
_TABLES = """
select c.oid, c.oid::pg_catalog.regclass::pg_catalog.text, c.relname::text,
  (select coalesce(sum(greatest(p.reltuples, 0)), 0)::int8
   from pg_catalog.pg_partition_tree(c.oid::pg_catalog.regclass) t
     join pg_catalog.pg_class p on p.oid = t.relid where t.isleaf),
  greatest(c.reltuples, 0)::int8,
  (select pg_catalog.quote_ident(a.attname::text) from pg_catalog.pg_index i
     join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
   where i.indrelid = c.oid and i.indisunique and i.indnkeyatts = 1 and i.indpred is null and i.indkey[0] > 0
     and a.atttypid in (20, 21, 23) order by not i.indisprimary limit 1)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition
  and n.nspname not in ('pg_catalog', 'information_schema') and c.relname::text = any(%s::text[])
order by pg_catalog.array_position(%s::pg_catalog.text[], n.nspname::pg_catalog.text), 2"""
#: What scripts may ask of a table.
_ASKED = re.compile(r":([A-Za-z_]\w*?)_(rows|first|last)\b")


#: Variables that come from elsewhere begin like this: `\\pick SAMPLE PREFIX`, `\\gset PREFIX`.
_PREFIX = re.compile(r"\\(?:pick[ \t]+\S+|gset|aset)[ \t]+(\w+)")


def requested_properties(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the variables of tables that scripts use, as pairs: table, and rows, first or last."""
    found: dict[tuple[str, str], None] = {}
    for text in texts:
        prefixes = tuple(_PREFIX.findall(text))
        found |= dict.fromkeys(m for m in _ASKED.findall(text) if not "_".join(m).startswith(prefixes or ("\0",)))
    return list(found)


@dataclass(frozen=True)
class Touched:
    """A table: about how many rows it has, and the range of its integer key, if it has one."""

    name: str
    rows: int
    first: int | None = None
    last: int | None = None


def touched(conn: Connection, scripts: Sequence[str]) -> list[Touched]:
    """Return the tables that the scripts name, or whose rows or keys the scripts use.

    Rows are the planner's estimate; keys are exact.
    """
    words = {w.strip('"') if w.startswith('"') else w.lower() for text in scripts for w in _NAME.findall(text)}
    words |= {table for table, _ in requested_properties(scripts)}
    found = []
    for _, name, _, in_leaves, own, key in conn.execute(_TABLES, [sorted(words), list(schemas_of(conn))]).fetchall():
        first = last = None
        if key is not None:
            try:
                row = conn.execute(f"select min({key}), max({key}) from {name}".encode()).fetchone()
            except psycopg.Error:
                row = None
            first, last = row if row is not None else (None, None)
        found.append(Touched(relation_shown(conn, name), max(in_leaves, own), first, last))
    return found


def variables(tables: Sequence[Touched], hot_set: float) -> dict[str, str]:
    """For scripts, of each table: NAME_rows, and of its key NAME_first and NAME_last, which ends with the hot set."""
    out = {}
    for t in tables:
        name = t.name.rpartition(".")[2].strip('"')
        if f"{name}_rows" in out:
            # Of two of a name, the one that the search path finds.
            continue
        out[f"{name}_rows"] = str(t.rows)
        if t.first is not None and t.last is not None:
            out[f"{name}_first"] = str(t.first)
            out[f"{name}_last"] = str(t.first + max(1, round((t.last - t.first + 1) * hot_set)) - 1)
    return out
