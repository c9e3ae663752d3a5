"""The dataset of a run: which it is, that it is there, and that trials begin alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pgdyno.cluster.target import Target
from pgdyno.collect import host
from pgdyno.errors import RefusedError
from pgdyno.load import find, loader
from pgdyno.load.claim import Claim
from pgdyno.load.dataset import ROWS_PER_SCALE, Dataset
from pgdyno.load.direct import Server
from pgdyno.load.find import Connection
from pgdyno.load.result import Loaded
from pgdyno.run.listener import Listener
from pgdyno.spec import experiment as spec

#: Measured on PostgreSQL 15 and 18: table and key of pgbench_accounts, 8 kB blocks.
BYTES_PER_SCALE = 15_100_000


def auto_scale(cores: int, memory_bytes: int, free_bytes: int) -> int:
    """A scale that loads in seconds: 25 a core, at most a tenth of the memory, a fifth of the free disk, and 100."""
    by_memory = memory_bytes // 10 // BYTES_PER_SCALE
    # Data, and the WAL of loading it.
    by_disk = free_bytes // 5 // (2 * BYTES_PER_SCALE)
    return int(max(1, min(25 * cores, by_memory, by_disk, 100)))


def chosen(definition: spec.Dataset, *, local_data: Path | None) -> Dataset:
    """The dataset that an experiment asks for; where it leaves the size to us, one that fits."""
    scale, rows = None if definition.scale == "auto" else definition.scale, definition.rows
    if scale is None and rows is None and definition.kind != "feed":
        free = 1 << 40 if local_data is None else host.free_bytes(local_data)
        fits = auto_scale(host.cores(), host.memory_bytes(), free)
        # For a remote server we do not know its size: 50 at most.
        fits = min(50, fits) if local_data is None else fits
        if definition.kind == "tpcb":
            scale = fits
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
    )


def ensure(
    conn: Connection,
    target: Target,
    dataset: Dataset,
    *,
    force: bool,
    replace: bool,
    connect_timeout_s: float,
    claim: Claim | None,
    listener: Listener,
) -> dict[str, Any]:
    """Loads the dataset over connections unless it is there. Returns what was done, for the manifest."""
    found = find.look(conn, target, dataset, force=force, replace=replace)
    if found.holds(dataset):
        return _found(dataset, target, listener)
    done = loader.over_connections(
        conn, target, dataset, found, connect_timeout_s=connect_timeout_s, claim=claim, listener=listener
    )
    return _facts(dataset, done)


def ensure_in(server: Server, dataset: Dataset, *, force: bool, replace: bool, listener: Listener) -> dict[str, Any]:
    """The same for a cluster of our own, by writing its files."""
    done = loader.into_server(server, dataset, force=force, replace=replace, listener=listener)
    return _found(dataset, server.target, listener) if done is None else _facts(dataset, done)


def _found(dataset: Dataset, target: Target, listener: Listener) -> dict[str, Any]:
    listener.note(f"dataset {dataset.name}: found in {target.where}")
    return {"name": dataset.name, "loaded": False}


def _facts(dataset: Dataset, done: Loaded) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "loaded": True,
        "method": done.method,
        "rows": done.rows,
        "bytes_sent": done.moved_bytes,
        "phases_s": done.phases_s,
    }


def refresh(conn: Connection, dataset: Dataset) -> None:
    """What pgbench does before a run: the small tables vacuumed, the history emptied, so that trials begin alike. What
    is emptied is the table that pgdyno made or was given, or this fails.
    """
    if dataset.kind == "tpcb":
        for name in ("pgbench_branches", "pgbench_tellers"):
            conn.execute(f"vacuum {name}".encode())
        with conn.transaction():
            conn.execute("lock table pgbench_history in access exclusive mode")
            there = [t for t in find.find(conn, dataset).tables if t.name == "pgbench_history" and t.is_usable]
            if not there:
                raise RefusedError(
                    "pgbench_history is another table by now: it was not emptied",
                    "Who else is at work in this database?",
                )
            conn.execute("truncate pgbench_history")
