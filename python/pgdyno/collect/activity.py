"""Activity of a server between two moments: WAL, checkpoints, rows, growth.

The counters are read before and after each trial.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg

from pgdyno.errors import PgdynoError
from pgdyno.format import one_line
from pgdyno.message import Name, Text, message

Connection = psycopg.Connection[tuple[Any, ...]]

_WAL: LiteralString = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
_CHECKPOINTS: dict[int, LiteralString] = {
    170000: "select num_timed, num_requested from pg_stat_checkpointer",
    0: "select checkpoints_timed, checkpoints_req from pg_stat_bgwriter",
}
_TABLES: LiteralString = """
    select coalesce(sum(n_tup_ins), 0), coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_hot_upd), 0),
           coalesce(sum(n_tup_del), 0), coalesce(sum(pg_catalog.pg_table_size(relid::regclass)), 0),
           coalesce(sum(pg_catalog.pg_indexes_size(relid::regclass)), 0)
    from pg_stat_user_tables"""
_TABLE_NAMES = ("rows_inserted", "rows_updated", "rows_hot_updated", "rows_deleted", "table_bytes", "index_bytes")
_DATABASE: LiteralString = """
    select xact_commit, blks_read, temp_bytes from pg_stat_database where datname = current_database()"""
#: Sizes stand as they were at the end, too; of the rest only the difference says anything.
_SIZES = ("table_bytes", "index_bytes")
#: Sessions of a trial tell what they did when they end, which is soon after.
_SETTLED_S = 2.0


def snapshot(conn: Connection, record: Sequence[str]) -> tuple[dict[str, float], list[Text]]:
    """Counters as they stand, and what could not be read, with the reason."""
    checkpoints = next(q for version, q in _CHECKPOINTS.items() if conn.info.server_version >= version)
    queries: dict[str, tuple[LiteralString, Sequence[str]]] = {
        "wal": (_WAL, ("wal_bytes",)),
        "checkpoints": (checkpoints, ("checkpoints_timed", "checkpoints_requested")),
        "tables": (_TABLES, _TABLE_NAMES),
        "database": (_DATABASE, ("transactions", "blocks_read", "temp_bytes")),
    }
    found: dict[str, float] = {}
    missing: list[Text] = []
    for name, (query, columns) in queries.items():
        if name not in record:
            continue
        try:
            row = conn.execute(query).fetchone()
        except psycopg.Error as e:
            missing.append(message("gap-of", what=Name(name), reason=Name(one_line(e))))
            continue
        if row is not None:
            found |= {n: float(v) for n, v in zip(columns, row, strict=True) if v is not None}
    return found, missing


def between(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return the activity between two snapshots: differences of the counters, and the sizes at the end."""
    both = [name for name in after if name in before]
    grown = {f"{n}_growth" if n in _SIZES else n: after[n] - before[n] for n in both}
    return {**grown, **{n: after[n] for n in both if n in _SIZES}}


def wait_until_settled(conn: Connection) -> None:
    """Until the sessions of a trial have ended and told what they did; at most a moment."""
    deadline = time.monotonic() + _SETTLED_S
    try:
        while time.monotonic() < deadline:
            row = conn.execute(
                """select count(*) from pg_stat_activity where application_name = 'pgdyno' and pid <> pg_backend_pid()
                   and datname = current_database()"""
            ).fetchone()
            if not row or not row[0]:
                return
            time.sleep(0.02)
    except (psycopg.Error, PgdynoError):
        return
