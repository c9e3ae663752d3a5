"""Data that a server has: whether they are the dataset of a run, and how they are made as at the beginning."""

from __future__ import annotations

from pathlib import Path

from pgdyno.cluster.target import Target
from pgdyno.errors import RefusedError, msg
from pgdyno.load import entangled, find
from pgdyno.load.dataset import Dataset
from pgdyno.load.find import Connection
from pgdyno.load.own import dataset as own
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.own.files import SqlFile
from pgdyno.load.planned import AnyDataset
from pgdyno.search_path import user_path


def look(conn: Connection, target: Target, wanted: AnyDataset, *, force: bool, replace: bool) -> None:
    """Raise RefusedError where other tables stand in the dataset's place, or where nothing should be loaded."""
    if not is_there(conn, wanted):
        find.refuse_unfit(conn, target)
    if isinstance(wanted, OwnDataset):
        own.refuse_another(conn, target, wanted, force=force, replace=replace)
        if wanted.kind != "none":
            entangled.refuse(conn, target, [t.oid for t in own.own_tables(conn)])
    else:
        find.look(conn, target, wanted, force=force, replace=replace)


def is_there(conn: Connection, wanted: AnyDataset) -> bool:
    """Return True if the dataset exists and is complete."""
    return own.holds(conn, wanted) if isinstance(wanted, OwnDataset) else find.find(conn, wanted).holds(wanted)


def empty_tables(conn: Connection, wanted: AnyDataset) -> list[str]:
    """Return the names, in SQL notation, of the dataset's tables that have no rows.

    Only tables that pgdyno has created for the dataset count.
    """
    tables = own.own_tables(conn) if isinstance(wanted, OwnDataset) else find.find(conn, wanted).ours
    names = [t.sql if t.kind == "p" else f"only {t.sql}" for t in tables if t.kind != "f"]
    return [n for n in names if conn.execute(f"select from {n} limit 1".encode()).fetchone() is None]


def carry_out(conn: Connection, file: str) -> None:
    """Execute an SQL file as a whole or not at all."""
    with user_path(conn), conn.transaction():
        SqlFile.read(Path(file)).carry_out(conn)


def refresh(conn: Connection, target: Target, dataset: AnyDataset) -> None:
    """Prepare the tables as pgbench does before a run: vacuum the small ones and empty the history.

    Trials then begin alike. Raise RefusedError if the history is not the table that pgdyno created or was given.
    """
    if isinstance(dataset, Dataset) and dataset.kind == "tpcb":
        find.schema_for(conn, target)
        schema = find.schema_sql(conn)
        for name in ("pgbench_branches", "pgbench_tellers"):
            conn.execute(f"vacuum {schema}.{name}".encode())
        with conn.transaction():
            conn.execute(f"lock table only {schema}.pgbench_history in access exclusive mode".encode())
            there = find.find(conn, dataset)
            if not any(t.name == "pgbench_history" and t.is_usable for t in there.tables):
                raise RefusedError(
                    msg("error-pgbench-history-another-table-now"),
                    msg("remedy-who-else-at-work-this"),
                )
            # Since the run began somebody may have tied something to our tables.
            entangled.refuse(conn, target, [t.oid for t in there.ours])
            conn.execute(f"truncate only {schema}.pgbench_history".encode())
