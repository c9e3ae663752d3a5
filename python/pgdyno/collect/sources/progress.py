"""Progress reports of long commands: vacuum, analyze, index builds, CLUSTER, COPY, base backups."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg

from pgdyno.collect.sources.base import Row
from pgdyno.search_path import relation_shown

Connection = psycopg.Connection[tuple[Any, ...]]
#: Of each view: the command, its phase, how much is done, of how much, and what is counted.
_VIEWS: tuple[LiteralString, ...] = (
    """select 'vacuum', pid, datname, relid, phase, heap_blks_scanned, heap_blks_total, 'blocks'
       from pg_stat_progress_vacuum""",
    """select 'analyze', pid, datname, relid, phase, sample_blks_scanned, sample_blks_total, 'blocks'
       from pg_stat_progress_analyze""",
    """select lower(command), pid, datname, relid, phase, blocks_done, blocks_total, 'blocks'
       from pg_stat_progress_create_index""",
    """select lower(command), pid, datname, relid, phase, heap_blks_scanned, heap_blks_total, 'blocks'
       from pg_stat_progress_cluster""",
    """select lower(command), pid, datname, relid, '', bytes_processed, bytes_total, 'bytes'
       from pg_stat_progress_copy""",
    """select 'base backup', pid, null, null, phase, backup_streamed, coalesce(backup_total, 0), 'bytes'
       from pg_stat_progress_basebackup""",
)


class Progress:
    """Progress of long commands, one row per command and second.

    A row holds `command`, `phase`, `relation`, and `done` of `total` in `unit`. `relation` is a name in this database,
    and an oid otherwise. A `total` of 0 means unknown. `auto` is 1 if autovacuum runs the command.
    """

    name = "progress"
    period_s = 1.0

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        views = _VIEWS if conn.info.server_version >= 140000 else [v for v in _VIEWS if "progress_copy" not in v]
        every = " union all ".join(views)
        columns = "command, pid, datname, relid, phase, done, total, unit"
        self._query = (
            f"select p.command, coalesce(p.phase, ''), "
            "coalesce(case when p.datname = current_database() then p.relid::regclass::text end, p.relid::text, ''), "
            "p.done::float8, p.total::float8, p.unit, (coalesce(a.backend_type, '') = 'autovacuum worker') "
            f"from ({every}) p ({columns}) left join pg_stat_activity a using (pid)"
        )

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        return [
            {"command": command, "phase": phase, "relation": relation_shown(self._conn, relation),
             "done": done or 0.0, "total": total or 0.0, "unit": unit, "auto": float(auto)}
            for command, phase, relation, done, total, unit, auto in self._conn.execute(
                self._query.encode(), prepare=True
            ).fetchall()
        ]  # fmt: skip
