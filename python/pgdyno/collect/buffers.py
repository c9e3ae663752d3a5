"""Content of shared buffers, by pg_buffercache."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg

from pgdyno.collect import extensions
from pgdyno.search_path import relation_shown

Connection = psycopg.Connection[tuple[Any, ...]]
Row = dict[str, float | str]
#: Relations that have a row of their own.
_MOST = 100
_OTHERS = "others"
#: Sizes are asked once a relation, of those that are held. File numbers are unique within a tablespace.
_HELD: LiteralString = """
with held as materialized (
  select reldatabase, reltablespace, relfilenode, count(*)::float8 as buffers,
         (count(*) filter (where relforknumber = 0))::float8 as main, coalesce(sum(isdirty::int), 0)::float8 as dirty,
         coalesce(sum(usagecount), 0)::float8 as usage
  from {schema}.pg_buffercache group by 1, 2, 3)
select coalesce(c.oid::regclass::text,
                case when h.reldatabase is null then 'unused' when h.reldatabase in (0, d.oid) then 'catalogs'
                     else 'other databases' end),
       h.buffers, h.main, h.dirty, h.usage,
       coalesce(pg_relation_size(c.oid::regclass) / current_setting('block_size')::int, 0)::float8
from held h
cross join (select oid, dattablespace from pg_database where datname = current_database()) d
left join pg_class c
  on h.reldatabase = d.oid and h.relfilenode = pg_relation_filenode(c.oid::regclass)
  and h.reltablespace = coalesce(nullif(c.reltablespace, 0), d.dattablespace)
  and c.oid >= 16384 and c.relkind in ('r', 'i', 't', 'm', 'S')"""


def read(conn: Connection, *, is_ours: bool) -> list[Row]:
    """Return one row for each relation in shared buffers.

    `buffers` counts the buffers that hold the relation; `main` and `dirty` count those of its main fork and the dirty
    ones. `usage` is their mean usage count (0 to 5). `pages` is the size of the relation's main fork.

    The relations with the fewest buffers share one row. Unused buffers, catalogs and other databases also have one row
    each.

    The query looks at each buffer's header. For 100 GB that takes seconds, and it ends at the session's
    statement_timeout. Return an empty list if pg_buffercache is not available. Raise psycopg.Error if the role may not
    read it.
    """
    with extensions.at_hand(conn, "pg_buffercache", make=is_ours) as schema:
        if not schema:
            return []
        with conn.transaction():
            # A row a buffer is no reason for a temporary file.
            conn.execute("set local work_mem = '512MB'")
            found = conn.execute(_HELD.replace("{schema}", schema).encode()).fetchall()
    totals: dict[str, list[float]] = {}
    for qualified, *figures in sorted(found, key=lambda row: -row[1]):
        name = relation_shown(conn, qualified)
        own = totals.setdefault(name if len(totals) < _MOST or name in totals else _OTHERS, [0.0] * 5)
        for n, value in enumerate(figures):
            own[n] += value
    return [
        {"relation": name, "buffers": held, "main": main, "dirty": dirty, "usage": usage / held, "pages": pages}
        for name, (held, main, dirty, usage, pages) in totals.items()
    ]
