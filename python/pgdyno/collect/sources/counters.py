"""PostgreSQL's cumulative statistics, of one database and of the whole server, per second."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg

from pgdyno.collect.sources.base import Differences, Row
from pgdyno.format import one_line
from pgdyno.message import Name, Text, message

Connection = psycopg.Connection[tuple[Any, ...]]
#: Name of a column here, and its expression. By group: from which version on, the view, what restricts it.
_Columns = dict[str, LiteralString]

_DATABASE: _Columns = {
    "commits": "xact_commit", "rollbacks": "xact_rollback", "blocks_read": "blks_read", "blocks_hit": "blks_hit",
    "rows_returned": "tup_returned", "rows_fetched": "tup_fetched", "rows_inserted": "tup_inserted",
    "rows_updated": "tup_updated", "rows_deleted": "tup_deleted", "temp_files": "temp_files",
    "temp_bytes": "temp_bytes", "deadlocks": "deadlocks", "conflicts": "conflicts", "read_ms": "blk_read_time",
    "write_ms": "blk_write_time",
}  # fmt: skip
_WAL: _Columns = {
    "wal_records": "wal_records", "wal_full_pages": "wal_fpi", "wal_bytes": "wal_bytes",
    "wal_buffers_full": "wal_buffers_full",
}  # fmt: skip
_WAL_FILES_17: _Columns = {
    "wal_writes": "wal_write", "wal_syncs": "wal_sync", "wal_write_ms": "wal_write_time", "wal_sync_ms": "wal_sync_time"
}  # fmt: skip
_WAL_FILES_18: _Columns = {
    "wal_writes": "sum(writes)", "wal_syncs": "sum(fsyncs)", "wal_write_ms": "sum(write_time)",
    "wal_sync_ms": "sum(fsync_time)",
}  # fmt: skip
_CHECKPOINTER_17: _Columns = {
    "checkpoints_timed": "num_timed", "checkpoints_requested": "num_requested",
    "checkpoint_buffers": "buffers_written", "checkpoint_write_ms": "write_time", "checkpoint_sync_ms": "sync_time",
}  # fmt: skip
_BGWRITER_17: _Columns = {
    "cleaned_buffers": "buffers_clean", "cleaning_stopped": "maxwritten_clean", "allocated_buffers": "buffers_alloc"
}  # fmt: skip
_BGWRITER_16: _Columns = {
    "checkpoints_timed": "checkpoints_timed", "checkpoints_requested": "checkpoints_req",
    "checkpoint_buffers": "buffers_checkpoint", "checkpoint_write_ms": "checkpoint_write_time",
    "checkpoint_sync_ms": "checkpoint_sync_time", "cleaned_buffers": "buffers_clean",
    "cleaning_stopped": "maxwritten_clean", "allocated_buffers": "buffers_alloc", "backend_buffers": "buffers_backend",
    "backend_syncs": "buffers_backend_fsync",
}  # fmt: skip
_RELATIONS_IO: _Columns = {
    "relation_reads": "sum(reads)", "relation_read_ms": "sum(read_time)", "relation_writes": "sum(writes)",
    "relation_extends": "sum(extends)", "relation_syncs": "sum(fsyncs)",
}  # fmt: skip


def _groups(version: int) -> dict[str, tuple[_Columns, LiteralString]]:
    """Return the counters of a server version by view: the columns, and the rest of the query."""
    groups: dict[str, tuple[_Columns, LiteralString]] = {
        "pg_stat_database": (_DATABASE, "from pg_stat_database where datname = current_database()"),
        "pg_stat_wal": (_WAL, "from pg_stat_wal"),
    }
    if version >= 180000:
        # New files are filled and synced in the context init: that is no flush of WAL.
        rest: LiteralString = "from pg_stat_io where object = 'wal' and context = 'normal'"
        groups["pg_stat_io of WAL"] = (_WAL_FILES_18, rest)
    elif version >= 140000:
        groups["pg_stat_wal's times"] = (_WAL_FILES_17, "from pg_stat_wal")
    if version >= 170000:
        groups["pg_stat_checkpointer"] = (_CHECKPOINTER_17, "from pg_stat_checkpointer")
        groups["pg_stat_bgwriter"] = (_BGWRITER_17, "from pg_stat_bgwriter")
    else:
        groups["pg_stat_bgwriter"] = (_BGWRITER_16, "from pg_stat_bgwriter")
    if version >= 160000:
        groups["pg_stat_io"] = (_RELATIONS_IO, "from pg_stat_io where object = 'relation'")
    return groups


class Counters:
    """Cumulative statistics, one row per sample, read by one query.

    Every column is per second, except `connections`. Groups that this server or role does not have are absent;
    `missing` names them with the reason.
    """

    name = "counters"
    #: Backends tell what they have counted once a second.
    period_s = 1.0

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._differences = Differences()
        self.missing: list[Text] = []
        self._names: list[str] = ["connections"]
        parts: list[LiteralString] = ["(select numbackends from pg_stat_database where datname = current_database())"]
        for view, (columns, rest) in _groups(conn.info.server_version).items():
            row = "select row(" + ", ".join(columns.values()) + ") " + rest
            try:
                conn.execute(row.encode())
            except psycopg.Error as e:
                self.missing.append(message("gap-of", what=Name(view), reason=Name(one_line(e))))
                continue
            alias: LiteralString = f"g{len(parts)}"
            shown = ", ".join(f"{expression} as {name}" for name, expression in columns.items())
            parts.append(f"{alias}: select {shown} {rest}")
            self._names += columns
        froms = [f"({text.partition(': ')[2]}) {text.partition(': ')[0]}" for text in parts[1:]]
        listed = ", ".join(f"coalesce({n}, 0)::float8" for n in self._names[1:])
        self._query = f"select {parts[0]}::float8{', ' if listed else ''}{listed}"
        self._query += f" from {', '.join(froms)}" if froms else ""

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        found = self._conn.execute(self._query.encode(), prepare=True).fetchone()
        if found is None:
            return []
        now = dict(zip(self._names, found, strict=True))
        connections = now.pop("connections")
        d = self._differences.of("", now)
        if d is None:
            return []
        row: Row = {"connections": connections}
        for name, amount in d.items():
            row[f"{name}_per_s"] = amount / seconds
        return [row]
