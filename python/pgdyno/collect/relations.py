"""Size of tables and indexes: bytes, B-tree levels, and the pages that a search by key reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import psycopg

from pgdyno.collect import extensions
from pgdyno.search_path import qualified

Connection = psycopg.Connection[tuple[Any, ...]]
#: Many tables alike say no more than some.
MOST = 50


def describe(conn: Connection, tables: Sequence[str], *, is_ours: bool) -> list[dict[str, Any]]:
    """Return one row for each table and each of its indexes.

    A row holds the name, the kind, the method, the rows (as the planner estimates) and the bytes. For a B-tree it also
    holds the level by bt_metap, if pageinspect exists, and the buffers that one search touches, by EXPLAIN. On servers
    of pgdyno (`is_ours`) pageinspect is created and rolled back.
    """
    found = []
    for table in tables[:MOST]:
        named = qualified(conn, table)
        try:
            rows = conn.execute(
                """select c.relname, c.relkind, coalesce(am.amname, ''), greatest(c.reltuples, 0)::bigint,
                          case when c.relkind in ('r', 'p') then pg_catalog.pg_table_size(c.oid::regclass)
                            else pg_catalog.pg_relation_size(c.oid::regclass) end,
                          c.oid::int8
                   from pg_class c left join pg_am am on am.oid = c.relam
                   where c.oid = to_regclass(%s)
                      or c.oid in (select indexrelid from pg_index where indrelid = to_regclass(%s))
                   order by c.relkind desc, 1""",
                [named, named],
            ).fetchall()
        except psycopg.Error:
            continue
        for name, kind, method, count, size, oid in rows:
            facts: dict[str, Any] = {"name": name, "table": table, "kind": "table" if kind in ("r", "p") else "index"}
            facts |= {"method": method, "rows": int(count), "bytes": int(size)}
            if method == "btree" and size:
                facts["level"] = _level(conn, int(oid), is_ours=is_ours)
                facts["buffers"] = _buffers(conn, int(oid))
            found.append(facts)
    return found


def _level(conn: Connection, index: int, *, is_ours: bool) -> int | None:
    """Return the level of an index's root, or None if pageinspect is missing or pgdyno may not use it.

    A tree of one page has level 0.
    """
    try:
        with conn.transaction(force_rollback=True), extensions.at_hand(conn, "pageinspect", make=is_ours) as schema:
            if not schema:
                return None
            name = conn.execute("select %s::oid::regclass::text", [index]).fetchone()
            row = name and conn.execute(f"select level from {schema}.bt_metap(%s::text)".encode(), name).fetchone()
    except psycopg.Error:
        return None
    return None if not row else int(row[0])


def _buffers(conn: Connection, index: int) -> int | None:
    """Buffers that a search for one key touches, in the index and the table."""
    try:
        row = conn.execute(
            """select format('%%I.%%I', n.nspname, t.relname), a.attname
               from pg_index i join pg_class t on t.oid = i.indrelid join pg_namespace n on n.oid = t.relnamespace
                 join pg_attribute a on a.attrelid = t.oid and a.attnum = i.indkey[0]
               where i.indexrelid = %s and i.indisunique and i.indnkeyatts = 1""",
            [index],
        ).fetchone()
        if row is None:
            return None
        table, column = row
        name = '"' + str(column).replace('"', '""') + '"'
        with conn.transaction(force_rollback=True):
            conn.execute("set transaction read only; set local enable_seqscan = off; set local enable_bitmapscan = off")
            key = conn.execute(f"select max({name}) / 2 + 1 from {table}".encode()).fetchone()
            if key is None or key[0] is None:
                return None
            explain = f"explain (analyze, buffers, format json) select * from {table} where {name} = {int(key[0])}"
            plan = conn.execute(explain.encode()).fetchone()
    except (psycopg.Error, ValueError, TypeError):
        return None
    if plan is None:
        return None
    node = (json.loads(plan[0]) if isinstance(plan[0], str) else plan[0])[0]["Plan"]
    return int(node.get("Shared Hit Blocks", 0)) + int(node.get("Shared Read Blocks", 0))
