"""Is the dataset there already? And whose are the tables that stand in its place?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from pgdyno.cluster.target import Target
from pgdyno.errors import RefusedError, TargetError
from pgdyno.load.dataset import MARK, Dataset, mark_of

#: Of the advisory lock that a running pgdyno holds on its database: "pgdyno" in ASCII.
_CLAIM = 0x7067_6479_6E6F
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Found:
    """What stands in the database under the names of a dataset."""

    #: Tables that exist and do not carry pgdyno's mark.
    foreign: list[str]
    #: Tables that do.
    ours: list[str]
    #: What their marks say; None when no table is ours, or when they disagree.
    name: str | None
    #: Whether all tables are there, and loaded.
    complete: bool


def find(conn: Connection, dataset: Dataset) -> Found:
    """Looks for the dataset's tables in the schema where they would be made; also for those of its kind that another
    size had.
    """
    rows = conn.execute(
        """select c.relname, d.description, c.relkind = 'p' or pg_relation_size(c.oid) > 0
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
             left join pg_description d on d.objoid = c.oid and d.classoid = 'pg_class'::regclass and d.objsubid = 0
           where n.nspname = current_schema() and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
             and (c.relname = any(%s) or d.description like %s)""",
        [dataset.relations, f"{MARK} {dataset.kind} %"],
    ).fetchall()
    marks = {name: mark_of(comment) for name, comment, _ in rows}
    # After a crash unlogged tables are empty.
    filled = {t.name for t in dataset.tables if t.end > t.first}
    emptied = any(name in filled and not there for name, _, there in rows)
    ours = [name for name, mark in marks.items() if mark]
    names = {m.name for m in marks.values() if m}
    ready = not emptied and all(m is not None and m.ready for m in marks.values())
    complete = ready and len(names) == 1 and set(marks) == set(dataset.relations)
    foreign = [n for n in dataset.relations if n in marks and marks[n] is None]
    return Found(foreign, ours, names.pop() if len(names) == 1 else None, complete)


def look(conn: Connection, target: Target, dataset: Dataset, *, force: bool) -> Found:
    """As `find`, and raises RefusedError when somebody else's tables are there and `force` is not."""
    try:
        found = find(conn, dataset)
    except psycopg.Error as e:
        raise TargetError(f"cannot look for tables in {target.where}: {' '.join(str(e).split())}") from e
    if found.foreign and not force:
        some = ", ".join(found.foreign[:4]) + (" …" if len(found.foreign) > 4 else "")
        raise RefusedError(
            f"{target.where} already has {some}, which pgdyno did not make",
            "Use a database of its own (createdb bench, then dbname=bench). --force drops and remakes them.",
        )
    return found


def claim(conn: Connection, target: Target) -> None:
    """Keeps other pgdynos off this database for as long as `conn` is open: they would measure into each other."""
    try:
        row = conn.execute("select pg_try_advisory_lock(%s)", [_CLAIM]).fetchone()
    except psycopg.Error:
        # Not quite PostgreSQL.
        return
    if row and not row[0]:
        raise RefusedError(f"another pgdyno is at work in {target.where}", "Wait for it, or use a database of its own.")


def refuse_if_busy(conn: Connection, target: Target, force: bool) -> None:
    """A load test would slow down whoever else is at work in this database."""
    try:
        row = conn.execute(
            # What other roles do is hidden from a role that is no member of pg_monitor: it may be work that matters.
            """select count(*), string_agg(distinct coalesce(nullif(application_name, ''), usename), ', '),
                      count(*) filter (where backend_type is null)
               from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid() and usesysid is not null
                 and (backend_type is null or backend_type = 'client backend')
                 and coalesce(application_name, '') not like 'pgdyno%%'
                 and (state is null or state <> 'idle' or state_change > now() - interval '1 minute')"""
        ).fetchone()
    except psycopg.Error:
        return
    if row and row[2] and not force:
        raise RefusedError(
            f"{target.where} may be in use: there are {row[2]} session(s) of other roles ({row[1]}), and what they do "
            f'is hidden from "{target.user}"',
            f'Let it be seen: GRANT pg_monitor TO "{target.user}". Or use a database of its own, or --force.',
        )
    if row and row[0] and not force:
        raise RefusedError(
            f"{target.where} is in use: {row[0]} other session(s) were active within the last minute ({row[1]})",
            "A load test would slow them down. Use a database of its own, or --force if that is what you want.",
        )


def refuse_a_standby(conn: Connection, target: Target) -> None:
    """Nothing can be loaded there."""
    row = conn.execute("select pg_is_in_recovery()").fetchone()
    if row and row[0]:
        raise RefusedError(
            f"{target.where} is a standby: nothing can be loaded there", "Load through its primary first, or name that."
        )


def schema_of(conn: Connection, target: Target) -> str:
    """The schema where tables would be made."""
    row = conn.execute("select current_schema()").fetchone()
    if not row or row[0] is None:
        raise TargetError(
            f"no schema in the search path of {target.where} exists", "Create one: CREATE SCHEMA, or set search_path."
        )
    return str(row[0])
