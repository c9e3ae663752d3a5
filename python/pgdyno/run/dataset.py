"""Makes the dataset what it should be, or finds it already so; never touches tables that are not pgdyno's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from pgdyno import _core
from pgdyno.cluster.target import Target
from pgdyno.collect import host
from pgdyno.errors import LocalError, PgdynoError, RefusedError, TargetError
from pgdyno.run.listener import Listener

TABLES = ("pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history")
ACCOUNTS_PER_SCALE = 100_000
#: Measured on PostgreSQL 15 and 18: table and key of pgbench_accounts, 8 kB blocks.
BYTES_PER_SCALE = 15_100_000
_MARK = re.compile(r"^pgdyno dataset tpcb scale=(\d+)( \(not vacuumed yet\))?$")
#: Of the advisory lock that a running pgdyno holds on its database: "pgdyno" in ASCII.
_CLAIM = 0x7067_6479_6E6F


def auto_scale(cores: int, memory_bytes: int, free_bytes: int) -> int:
    """A scale that loads in seconds: 25 a core, at most a tenth of the memory, a fifth of the free disk, and 100."""
    by_memory = memory_bytes // 10 // BYTES_PER_SCALE
    # Data, and the WAL of loading it.
    by_disk = free_bytes // 5 // (2 * BYTES_PER_SCALE)
    return int(max(1, min(25 * cores, by_memory, by_disk, 100)))


@dataclass(frozen=True)
class Found:
    """What stands in the database under the names of the dataset."""

    #: Tables that exist and do not carry pgdyno's mark.
    foreign: list[str]
    #: The scale that the mark says; None when no table is ours.
    scale: int | None
    #: Whether all tables are there.
    complete: bool


def find(conn: psycopg.Connection[tuple[Any, ...]]) -> Found:
    """Looks for the dataset's tables in the schema where they would be made."""
    foreign, scales, ready = [], [], True
    for table in TABLES:
        row = conn.execute(
            """select t is not null, obj_description(t, 'pg_class')
               from to_regclass(quote_ident(current_schema()) || '.' || quote_ident(%s)) t""",
            [table],
        ).fetchone()
        if not row or not row[0]:
            continue
        match = _MARK.search(row[1] or "")
        if match:
            scales.append(int(match[1]))
            ready = ready and match[2] is None
        else:
            foreign.append(table)
    same = len(set(scales)) == 1
    return Found(foreign, scales[0] if scales else None, ready and same and len(scales) == len(TABLES))


def claim(conn: psycopg.Connection[tuple[Any, ...]], target: Target) -> None:
    """Keeps other pgdynos off this database for as long as `conn` is open: they would measure into each other."""
    try:
        row = conn.execute("select pg_try_advisory_lock(%s)", [_CLAIM]).fetchone()
    except psycopg.Error:
        # Not quite PostgreSQL.
        return
    if row and not row[0]:
        raise RefusedError(f"another pgdyno is at work in {target.where}", "Wait for it, or use a database of its own.")


def refuse_if_busy(conn: psycopg.Connection[tuple[Any, ...]], target: Target, force: bool) -> None:
    """A load test would slow down whoever else is at work in this database."""
    try:
        row = conn.execute(
            """select count(*), string_agg(distinct coalesce(nullif(application_name, ''), usename), ', ')
               from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
                 and coalesce(application_name, '') not like 'pgdyno%%'
                 and (state <> 'idle' or state_change > now() - interval '1 minute')"""
        ).fetchone()
    except psycopg.Error:
        return
    if row and row[0] and not force:
        raise RefusedError(
            f"{target.where} is in use: {row[0]} other session(s) were active within the last minute ({row[1]})",
            "A load test would slow them down. Use a database of its own, or --force if that is what you want.",
        )


def ensure(
    conn: psycopg.Connection[tuple[Any, ...]],
    target: Target,
    scale: int,
    *,
    force: bool,
    connect_timeout_s: float,
    listener: Listener,
) -> dict[str, Any]:
    """Loads `tpcb` at `scale` unless it is there. Returns what was done, for the manifest."""
    try:
        found = find(conn)
    except psycopg.Error as e:
        raise TargetError(f"cannot look for tables in {target.where}: {' '.join(str(e).split())}") from e
    if found.foreign and not force:
        raise RefusedError(
            f"{target.where} already has {', '.join(found.foreign)}, which pgdyno did not make",
            "Use a database of its own (createdb bench, then dbname=bench). --force drops and remakes them.",
        )
    if found.complete and found.scale == scale and not found.foreign:
        listener.note(f"dataset tpcb, scale {scale}: found in {target.where}")
        return {"scale": scale, "loaded": False}
    _refuse_a_standby(conn, target)
    row = conn.execute("select current_schema()").fetchone()
    where = f'schema "{row[0] if row else None}" of {target.where}'
    replaces = bool(found.foreign) or found.scale is not None
    if found.foreign:
        listener.note(f"dropping {', '.join(found.foreign)} in {where} (--force)")
    elif found.scale is not None:
        listener.note(f"replacing pgdyno's dataset tpcb of scale {found.scale} in {where}")
    size = scale * BYTES_PER_SCALE
    listener.note(
        f"creating {', '.join(TABLES)} in {where}: {scale * ACCOUNTS_PER_SCALE:,} accounts, {size / 1e6:,.0f} MB"
    )
    config = _core.ConnConfig(**target.core_arguments())
    try:
        rows, sent, phases = _core.load_tpcb(
            config, scale, listener.loading, replace=replaces, connect_timeout_s=connect_timeout_s
        )
    except _core.CoreError as e:
        raise load_error(str(e), target) from e
    finally:
        listener.loaded()
    return {
        "scale": scale,
        "loaded": True,
        "rows": rows,
        "bytes_sent": sent,
        "phases_s": {name: ns / 1e9 for name, ns in phases},
    }


def _refuse_a_standby(conn: psycopg.Connection[tuple[Any, ...]], target: Target) -> None:
    row = conn.execute("select pg_is_in_recovery()").fetchone()
    if row and row[0]:
        raise RefusedError(
            f"{target.where} is a standby: nothing can be loaded there", "Load through its primary first, or name that."
        )


def refresh(conn: psycopg.Connection[tuple[Any, ...]]) -> None:
    """What pgbench does before a run: the small tables vacuumed, the history emptied, so that trials begin alike."""
    for statement in ("vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"):
        conn.execute(statement)


def load_error(message: str, target: Target) -> PgdynoError:
    """A failed load, with what to do about it. The server has rolled it back."""
    if "53100" in message or "No space left" in message:
        return LocalError(
            f"loading failed, the server's disk is full: {message}",
            "Nothing was kept. Free some space, or use a smaller --scale.",
        )
    if "must be owner" in message:
        return TargetError(f"loading failed: {message}", "Connect as their owner, or use another database.")
    if "42501" in message:
        return TargetError(
            f"loading failed: {message}",
            f'Let "{target.user}" create tables: GRANT CREATE ON SCHEMA public TO "{target.user}", '
            "or use a database that it owns.",
        )
    return TargetError(f"loading failed: {message}", "Nothing was kept: the load is one transaction.")


def scale_for(wish: str | int, *, local_data: Path | None) -> int:
    """The scale to load: the user's, or one that fits. For a remote server we do not know its size: 50 at most."""
    if wish != "auto":
        return int(wish)
    if local_data is None:
        return min(50, auto_scale(host.cores(), host.memory_bytes(), 1 << 40))
    return auto_scale(host.cores(), host.memory_bytes(), host.free_bytes(local_data))
