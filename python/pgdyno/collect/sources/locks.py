"""Locks that are held and waited for, by kind and mode."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg

from pgdyno.collect.sources.base import Row
from pgdyno.search_path import relation_shown

#: Of this database and of what all share, but for those of pgdyno's own administrative sessions.
_QUERY: LiteralString = """
select l.locktype, l.mode, coalesce(case when l.locktype in ('relation', 'extend', 'page', 'tuple')
                                         then l.relation::regclass::text end, ''),
       count(*) filter (where l.granted)::float8, count(*) filter (where l.fastpath)::float8,
       count(*) filter (where not l.granted)::float8
from pg_locks l
where l.pid <> pg_backend_pid()
  and not exists (select from pg_stat_activity a where a.pid = l.pid and a.application_name = 'pgdyno admin')
  and (l.database is null or l.database = 0
       or l.database = (select oid from pg_database where datname = current_database()))
group by 1, 2, 3
order by count(*) filter (where not l.granted) desc, count(*) desc
limit 50"""


class Locks:
    """Locks: one row for each kind, mode and relation, every two seconds.

    `granted` counts the granted locks, `fast_path` those of them by the fast path, and `waiting` the others. If there
    are more than 50 rows, only the first 50 are kept. Rows with the most waiting locks come first, then the most
    frequent ones.
    """

    name = "locks"
    #: pg_locks holds all partitions of the lock table for the moment of the copy.
    period_s = 2.0

    def __init__(self, conn: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._conn = conn

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        names = ("kind", "mode", "relation", "granted", "fast_path", "waiting")
        found = self._conn.execute(_QUERY, prepare=True).fetchall()
        return [
            dict(zip(names, (kind, mode, relation_shown(self._conn, name), *counts), strict=True))
            for kind, mode, name, *counts in found
        ]
