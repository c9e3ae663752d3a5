"""Search path of sessions: the schemas in which they look names up.

Administrative sessions look names up only in the server's own schema. The owner of the database may have put a schema
of theirs before it, and its functions would be called with pgdyno's rights. The user's statements and table names are
looked up in the path that the role has in the database.

Sessions of `cluster.administration` know that path, in their attributes `user_path` and `user_schemas`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg

Connection = psycopg.Connection[tuple[Any, ...]]
SAFE_PATH = "pg_catalog"


def schema_of(conn: Connection) -> str | None:
    """Return the schema where the user's unqualified names are made; None: none of the search path exists."""
    return next(iter(schemas_of(conn)), None)


def schemas_of(conn: Connection) -> tuple[str, ...]:
    """Return the schemas in which the user's unqualified names are looked up, in their order."""
    known: tuple[str, ...] | None = getattr(conn, "user_schemas", None)
    if known is not None:
        return known
    row = conn.execute("select pg_catalog.current_schemas(false)").fetchone()
    return () if row is None else tuple(row[0])


@contextlib.contextmanager
def user_path(conn: Connection) -> Iterator[None]:
    """Look names up as the user does, within the block: for statements that are the user's."""
    path = getattr(conn, "user_path", "")
    if not path or getattr(conn, "is_pooled", False):
        yield
        return
    conn.execute("select pg_catalog.set_config('search_path', %s, false)", [path])
    try:
        yield
    finally:
        # In a transaction that has failed, its end takes the setting back.
        if not conn.closed and conn.info.transaction_status != psycopg.pq.TransactionStatus.INERROR:
            conn.execute(f"set search_path to {SAFE_PATH}")


def use_user_path(conn: Connection) -> None:
    """Look names up as the user does, until the transaction ends."""
    if path := getattr(conn, "user_path", ""):
        conn.execute("select pg_catalog.set_config('search_path', %s, true)", [path])


def qualified(conn: Connection, name: str) -> str:
    """Return a name as SQL takes it, of a table of ours that is made where the user's unqualified names are."""
    schema = schema_of(conn)
    return name if schema is None or "." in name else f"{_quoted(schema)}.{name}"


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def relation_shown(conn: Connection, name: str) -> str:
    """Return a relation's name, qualified as the safe search path has it, as the user would write it."""
    schema = schema_of(conn)
    if schema is None:
        return name
    return name.removeprefix(f"{schema}.").removeprefix(f"{_quoted(schema)}.")


def option_for(schema: str) -> str:
    """Return the connection option (`options`) of a session that looks names up in one schema, behind pg_catalog."""
    # Blanks end an option, unless a backslash stands before them.
    escaped = "".join(f"\\{c}" if c in "\\ " else c for c in _quoted(schema))
    return f"-c search_path={escaped}"
