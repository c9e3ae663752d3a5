"""Facts that a server tells of itself: version, system variables, sizes of tables, counters."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pgdyno.errors import TargetError
from pgdyno.message import Name, Text, message
from pgdyno.mysql.session import Session, literal

#: System variables that decide what a figure means. The first group is what a commit promises.
PROMISES = ("innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_doublewrite", "log_bin", "transaction_isolation")
_VARIABLES = (
    *PROMISES,
    "autocommit",
    "binlog_format",
    "character_set_server",
    "innodb_buffer_pool_size",
    "innodb_flush_method",
    "innodb_io_capacity",
    "innodb_log_buffer_size",
    "innodb_log_file_size",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "max_allowed_packet",
    "max_connections",
    "query_cache_type",
    "sql_mode",
    "thread_handling",
    "time_zone",
    "tx_isolation",
    "version",
)
#: Counters by what `record` names, with the status variables that they are the sums of.
_COUNTERS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "wal": {"wal_bytes": ("Innodb_os_log_written",)},
    "tables": {
        "rows_inserted": ("Innodb_rows_inserted",),
        "rows_updated": ("Innodb_rows_updated",),
        "rows_deleted": ("Innodb_rows_deleted",),
    },
    "database": {"transactions": ("Com_commit",), "blocks_read": ("Innodb_pages_read",)},
}


def describe(session: Session) -> tuple[dict[str, Any], list[Text]]:
    """Return the server facts for a manifest, and a message with the reason for each unreadable fact."""
    facts: dict[str, Any] = {}
    missing: list[Text] = []

    def take(name: str, sql: str) -> list[Sequence[str | None]]:
        try:
            return session.rows(sql)
        except TargetError as e:
            missing.append(message("gap-of", what=Name(name), reason=e.cause))
            return []

    if row := take("version", "select concat(@@version_comment, ' ', @@version), @@hostname, @@version"):
        comment, host, number = row[0]
        product = "MariaDB" if "mariadb" in f"{comment} {number}".lower() else "MySQL"
        facts |= {"version": f"{product} {number}", "product": product}
        # A tunnel or a container has an address of this machine, and another name.
        facts["same_machine"] = session.target.host.startswith("/") or host == socket.gethostname()
    names = ", ".join(literal(n) for n in _VARIABLES)
    rows = take("settings", f"show global variables where variable_name in ({names})")
    facts["settings"] = {str(n): {"value": v or "", "source": "server"} for n, v in rows}
    database = literal(session.target.dbname)
    _ask_anew(session)
    size = take(
        "database_bytes",
        "select coalesce(sum(data_length + index_length), 0) from information_schema.tables"
        f" where table_schema = {database}",
    )
    if size and size[0][0] is not None:
        facts["database_bytes"] = int(float(size[0][0]))
    return facts, missing


def sizes(session: Session) -> dict[str, int]:
    """Return the bytes of the database's tables with their indexes, as the server estimates them. Raise TargetError."""
    _ask_anew(session)
    rows = session.rows(
        "select table_name, coalesce(data_length, 0) + coalesce(index_length, 0) from information_schema.tables"
        f" where table_schema = {literal(session.target.dbname)} and table_type = 'BASE TABLE'"
    )
    return {str(name): int(value or 0) for name, value in rows}


def _ask_anew(session: Session) -> None:
    """Make sizes those of now: MySQL keeps them for a day. MariaDB has no such variable."""
    with suppress(TargetError):
        session.rows("set session information_schema_stats_expiry = 0")


def counters(session: Session, record: Sequence[str]) -> dict[str, float]:
    """Return the server's counters as they stand, under the names that PostgreSQL's have. Raise TargetError."""
    found = {str(name): value for name, value in session.rows("show global status")}
    result: dict[str, float] = {}
    for group in record:
        for name, parts in _COUNTERS.get(group, {}).items():
            values = [found[p] for p in parts if found.get(p)]
            if values:
                result[name] = float(sum(float(v or 0) for v in values))
    return result
