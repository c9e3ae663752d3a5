"""The dataset of a run: which it is, that it is there, and that trials begin alike."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.collect import host
from pgdyno.errors import RefusedError, msg
from pgdyno.load import entangled, find, functions, loader
from pgdyno.load.claim import Claim
from pgdyno.load.dataset import ROWS_PER_SCALE, Dataset
from pgdyno.load.direct import Server
from pgdyno.load.find import Connection
from pgdyno.load.own import dataset as own
from pgdyno.load.own.columns import Wanted
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.own.files import SqlFile
from pgdyno.load.result import Loaded
from pgdyno.message import Name, message
from pgdyno.search_path import user_path
from pgdyno.spec import datasets as spec
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream

#: One of pgdyno's, or somebody's own.
AnyDataset = Dataset | OwnDataset

#: Measured on PostgreSQL 15 and 18: table and key of pgbench_accounts, 8 kB blocks.
BYTES_PER_SCALE = 15_100_000
#: The same, of a warehouse of tpcc, with its indexes.
BYTES_PER_WAREHOUSE = 105_000_000


def auto_scale(cores: int, memory_bytes: int, free_bytes: int) -> int:
    """Return a scale that loads within seconds.

    The scale is 25 per core, and at most 100. Its data take at most a tenth of the memory. Its data and the WAL of
    loading them take at most a fifth of the free disk space.
    """
    by_memory = memory_bytes // 10 // BYTES_PER_SCALE
    # Data, and the WAL of loading it.
    by_disk = free_bytes // 5 // (2 * BYTES_PER_SCALE)
    return int(max(1, min(25 * cores, by_memory, by_disk, 100)))


def chosen(definition: spec.Dataset, *, local_data: Path | None) -> AnyDataset:
    """Return the dataset that an experiment requests.

    If the experiment leaves the size open, choose one that fits.
    """
    if definition.is_own or definition.adopt:
        return _own(definition)
    scale, rows = None if definition.scale == "auto" else definition.scale, definition.rows
    if scale is None and rows is None and definition.kind != "feed":
        free = 1 << 40 if local_data is None else host.free_bytes(local_data)
        fits = auto_scale(host.cores(), host.memory_bytes(), free)
        # For a remote server we do not know its size: 50 at most.
        fits = min(50, fits) if local_data is None else fits
        if definition.kind == "tpcb":
            scale = fits
        elif definition.kind == "tpcc":
            scale = max(1, fits * BYTES_PER_SCALE // BYTES_PER_WAREHOUSE // definition.tables)
        else:
            rows = fits * ROWS_PER_SCALE["tpcb"]
    return loader.dataset_of(
        definition.kind,
        scale=scale,
        rows=rows,
        tables=definition.tables,
        partitions=definition.partitions,
        fillfactor=definition.fillfactor,
        unlogged=definition.unlogged,
        tablespace=definition.tablespace,
        index_tablespace=definition.index_tablespace,
        index=definition.index,
        seed=definition.seed,
        foreign_keys=definition.foreign_keys,
        check=definition.check,
    )


def _own(definition: spec.Dataset) -> OwnDataset:
    fill = {name: f.model_dump() for name, f in definition.fill.items()}
    found = OwnDataset(
        "none" if definition.adopt else definition.kind,
        tuple(Path(f) for f in definition.files),
        tuple(Wanted(name, f["rows"], f["columns"]) for name, f in fill.items()),
        tuple(Path(f) for f in definition.after),
        Path(definition.dump) if definition.dump else None,
        1 if definition.scale == "auto" else definition.scale,
        tuple(definition.setup),
    )
    found.check()
    return found


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


def ensure_own(
    target: Target,
    wanted: OwnDataset,
    *,
    programs: Callable[[str], Path],
    force: bool,
    replace: bool,
    claim: Claim | None,
    stream: RunStream,
) -> dict[str, Any]:
    """Load a user's own dataset unless it exists."""
    with closing(administration.connect(target)) as conn:
        there = own.holds(conn, wanted)
    if there:
        return _found(wanted, target, stream)
    done = own.make(target, wanted, programs=programs, force=force, replace=replace, claim=claim, stream=stream)
    return _facts(wanted, done)


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


def ensure(
    conn: Connection,
    target: Target,
    dataset: Dataset,
    *,
    force: bool,
    replace: bool,
    connect_timeout_s: float,
    claim: Claim | None,
    stream: RunStream,
) -> dict[str, Any]:
    """Load the dataset over connections unless it exists.

    Return what was done, for the manifest.
    """
    found = find.look(conn, target, dataset, force=force, replace=replace)
    if found.holds(dataset):
        functions.renew(conn, dataset, stream)
        return _found(dataset, target, stream)
    done = loader.over_connections(
        conn, target, dataset, found, connect_timeout_s=connect_timeout_s, claim=claim, stream=stream
    )
    return _facts(dataset, done)


def ensure_in(server: Server, dataset: Dataset, *, force: bool, replace: bool, stream: RunStream) -> dict[str, Any]:
    """Load the dataset into a server that pgdyno created, by writing its files, unless it exists.

    Return what was done, for the manifest.
    """
    done = loader.into_server(server, dataset, force=force, replace=replace, stream=stream)
    if done is not None:
        return _facts(dataset, done)
    with closing(administration.connect(server.target)) as conn:
        functions.renew(conn, dataset, stream)
    return _found(dataset, server.target, stream)


def _found(dataset: AnyDataset, target: Target, stream: RunStream) -> dict[str, Any]:
    stream.emit(Noted(message("progress-dataset-found", name=Name(dataset.name), where=target.where)))
    return {"name": dataset.name, "loaded": False}


def _facts(dataset: AnyDataset, done: Loaded) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "loaded": True,
        "method": done.method,
        "rows": done.rows,
        "bytes_sent": done.moved_bytes,
        "phases_s": done.phases_s,
    }


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
