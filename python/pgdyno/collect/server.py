"""The server: version, settings, sizes. What cannot be read is named, not guessed."""

from __future__ import annotations

import re
from typing import Any, LiteralString

import psycopg

from pgdyno.conninfo import looks_secret
from pgdyno.format import one_line
from pgdyno.message import Name, Text, message
from pgdyno.search_path import qualified

#: Settings that decide what a figure means; recorded also where they have their default.
KEY_SETTINGS = (
    "autovacuum",
    "block_size",
    "checkpoint_timeout",
    "data_checksums",
    "effective_cache_size",
    "fsync",
    "full_page_writes",
    "huge_pages",
    "io_method",
    "max_connections",
    "max_wal_size",
    "server_version",
    "shared_buffers",
    "synchronous_commit",
    "synchronous_standby_names",
    "wal_level",
    "wal_sync_method",
)

#: Names of settings whose values hold passwords, commands, files and addresses, or what is somebody's own.
_PRIVATE = (
    "conninfo|_command|pass|secret|token|_key|_file|_dir|ssl|krb|ldap|authent|"
    "^port$|listen_addresses|unix_socket|bonjour|recovery_target|slot_name|[.]"
)
_QUERIES: dict[str, LiteralString] = {
    "version": "select version()",
    # By name: the words of category are translated.
    "settings": r"""select name, current_setting(name, true), source from pg_settings
                    where name = any(%s) or (source not in ('default', 'client', 'session') and context <> 'internal'
                      -- Where passwords, commands, files and addresses may stand is not ours to write down.
                      and name !~ %s)
                    order by name""",
    "in_recovery": "select pg_is_in_recovery()",
    # Null over a Unix-domain socket; equal addresses over TCP.
    "same_machine": "select coalesce(inet_server_addr() = inet_client_addr(), true)",
    "database_bytes": "select pg_catalog.pg_database_size(pg_catalog.current_database())",
}


def is_private(name: str, value: str) -> bool:
    """Return True if a setting's value must not be written down."""
    return re.search(_PRIVATE, name) is not None or looks_secret(value)


def describe(conn: psycopg.Connection[tuple[Any, ...]]) -> tuple[dict[str, Any], list[Text]]:
    """Return the server facts for a manifest, and a message with the reason for each unreadable fact.

    This works with any server that speaks the protocol: each query may fail on its own.
    """
    facts: dict[str, Any] = {"protocol_version": conn.info.server_version}
    missing: list[Text] = []
    for name, query in _QUERIES.items():
        try:
            rows = conn.execute(query, [list(KEY_SETTINGS), _PRIVATE] if "%s" in query else None).fetchall()
        except psycopg.Error as e:
            missing.append(message("gap-of", what=Name(name), reason=Name(one_line(e))))
            continue
        if name == "settings":
            facts[name] = {n: {"value": v, "source": source} for n, v, source in rows if not looks_secret(str(v))}
        else:
            facts[name] = rows[0][0] if rows else None
    return facts, missing


def relation_sizes(conn: psycopg.Connection[tuple[Any, ...]], tables: list[str]) -> dict[str, int]:
    """Bytes of tables with their indexes; a table that cannot be read is left out."""
    sizes = {}
    for table in tables:
        try:
            row = conn.execute(
                "select pg_catalog.pg_total_relation_size(pg_catalog.to_regclass(%s::text))", [qualified(conn, table)]
            ).fetchone()
        except psycopg.Error:
            continue
        if row and row[0] is not None:
            sizes[table] = int(row[0])
    return sizes
