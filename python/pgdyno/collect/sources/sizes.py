"""Size of the database and of the WAL on disk."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, LiteralString

import psycopg

from pgdyno.collect.sources.base import Row

_DATABASE: LiteralString = "select pg_catalog.pg_database_size(pg_catalog.current_database())::float8"
_WAL: LiteralString = "select coalesce(sum(size), 0)::float8, count(*)::float8 from pg_catalog.pg_ls_waldir()"
#: Of the time between two questions, what they may take: each file of the database is looked at.
_SHARE = 0.01
_RARELY_S = 600.0


class Sizes:
    """Size of the database and of pg_wal, one row every 5 s.

    Rows are less frequent for a database with very many files. A row holds `database_bytes`. If the role may list
    pg_wal (pg_monitor), the row also holds `wal_bytes` in `wal_files` of pg_wal.
    """

    name = "sizes"

    def __init__(self, conn: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._conn = conn
        self.period_s = 5.0
        self._sees_wal = False
        with suppress(psycopg.Error):
            conn.execute(_WAL)
            self._sees_wal = True

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        began = time.monotonic()
        (size,) = self._conn.execute(_DATABASE, prepare=True).fetchone() or (0.0,)
        row: Row = {"database_bytes": size}
        if self._sees_wal:
            row["wal_bytes"], row["wal_files"] = self._conn.execute(_WAL, prepare=True).fetchone() or (0.0, 0.0)
        took = time.monotonic() - began
        self.period_s = min(_RARELY_S, max(self.period_s, took / _SHARE))
        return [row]
