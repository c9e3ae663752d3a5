"""PostgreSQL's extensions that are asked: where they are, and, on servers of ours, made for as long as it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

Connection = psycopg.Connection[tuple[Any, ...]]
#: Extensions that count from the server's start on, by a library of this name.
_PRELOADED = {"pg_stat_statements", "pg_wait_sampling"}


@contextmanager
def at_hand(conn: Connection, name: str, *, make: bool) -> Iterator[str]:
    """Yield the quoted name of the extension's schema in this database; empty if the extension is missing.

    If `make` is true, a missing extension is created, provided it is available and its library is preloaded where that
    is necessary. This happens in a transaction that is rolled back, so nothing of it stays. The call may raise
    psycopg.Error.
    """
    if schema := _schema_of(conn, name):
        yield schema
    elif not make or not _can_be_made(conn, name):
        yield ""
    else:
        with conn.transaction(force_rollback=True):
            # A schema of its own: the search path of administrative sessions names none in which it could be made.
            conn.execute("create schema pgdyno_asks")
            conn.execute(f"create extension {name} with schema pgdyno_asks".encode())
            yield _schema_of(conn, name)


def _schema_of(conn: Connection, name: str) -> str:
    row = conn.execute(
        "select quote_ident(nspname) from pg_extension join pg_namespace n on n.oid = extnamespace where extname = %s",
        [name],
    ).fetchone()
    return str(row[0]) if row else ""


def _can_be_made(conn: Connection, name: str) -> bool:
    row = conn.execute(
        "select current_setting('shared_preload_libraries') from pg_available_extensions where name = %s", [name]
    ).fetchone()
    loaded = {x.strip().strip('"') for x in str(row[0]).split(",")} if row else set()
    return row is not None and (name not in _PRELOADED or name in loaded)
