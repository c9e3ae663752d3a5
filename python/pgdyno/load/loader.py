"""Makes a dataset, by the method that is asked for or fits."""

from __future__ import annotations

from pathlib import Path

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.collect import host
from pgdyno.errors import UsageError, msg
from pgdyno.load import find, populated
from pgdyno.load.claim import Claim
from pgdyno.load.connected import Connected, may_split
from pgdyno.load.dataset import Dataset
from pgdyno.load.direct import Direct, Server
from pgdyno.load.find import Connection, Found
from pgdyno.load.plan import refuse_if_too_small
from pgdyno.load.result import CHECK, Loaded
from pgdyno.load.units import pg_size
from pgdyno.message import Name, Text, message
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream

#: What the heap and the key take besides, while they are loaded by a server: WAL, and the sort of the key.
_COPY_OVERHEAD = 1.2
#: And the maps of visibility and of free space.
_MAPS = 1.001
#: Connections to a server of which we do not know how many cores it has.
_REMOTE_CONNECTIONS = 4


def over_connections(
    conn: Connection,
    target: Target,
    dataset: Dataset,
    *,
    force: bool = False,
    replace: bool = False,
    on_server: bool = False,
    connections: int | None = None,
    connect_timeout_s: float = 10.0,
    claim: Claim | None = None,
    stream: RunStream,
) -> Loaded | None:
    """Load a dataset by the method copy or server; return None if it exists already.

    The `claim` on the database must hold when its tables are replaced.
    """
    found = find.look(conn, target, dataset, force=force, replace=replace)
    if found.holds(dataset):
        return None
    find.refuse_unfit(conn, target)
    tell_subscribers(conn, stream)
    schema = find.schema_for(conn, target)
    _announce(dataset, found, msg("schema-of", schema=schema, place=target.where), stream)
    local = _local_data(conn, target)
    if local is not None:
        refuse_if_too_small(local, round(dataset.total_bytes * _COPY_OVERHEAD), dataset.name)
    if on_server and dataset.kind == "tpcc":
        raise UsageError(msg("error-tpcc-s-rows-made-pgdyno"), msg("remedy-use-method-copy"))
    n = connections or (min(8, host.cores()) if local is not None else _REMOTE_CONNECTIONS)
    split = n > 1 if connections else may_split(conn, dataset, n)
    method = Connected(
        target,
        dataset,
        schema,
        on_server=on_server,
        connections=n,
        split=split,
        connect_timeout_s=connect_timeout_s,
        stream=stream,
    )
    done = method.make(found.tables, claim)
    _check(target, dataset, schema, done, stream)
    return done


def _check(target: Target, dataset: Dataset, schema: str, done: Loaded, stream: RunStream) -> None:
    if dataset.kind == "tpcc" and dataset.check:
        with done.phase(CHECK):
            populated.check(target, dataset, schema, stream)


def into_server(
    server: Server,
    dataset: Dataset,
    *,
    force: bool,
    replace: bool,
    threads: int | None = None,
    stream: RunStream,
) -> Loaded | None:
    """Load a dataset by the method direct; return None if it exists already.

    The server runs before and after the load. Its client connections are cut off.
    """
    target = server.target
    with administration.connect(target) as conn:
        found = find.look(conn, target, dataset, force=force, replace=replace)
        if found.holds(dataset):
            return None
        schema = find.schema_for(conn, target)
    if dataset.tablespace or dataset.index_tablespace:
        stream.emit(Noted(message("progress-tablespaces")))
    else:
        refuse_if_too_small(server.data, round(dataset.total_bytes * _MAPS), dataset.name)
    _announce(dataset, found, msg("schema-of", schema=schema, place=str(server.data)), stream)
    # Some wait for the disk while others fill pages.
    done = Direct(server, dataset, schema, threads or 2 * host.cores(), stream).make(found.tables)
    _check(target, dataset, schema, done, stream)
    return done


def tell_subscribers(conn: Connection, stream: RunStream) -> None:
    """Report, before anything is loaded, who will be sent all of it."""
    for who in find.subscribers(conn):
        stream.emit(Noted(message("progress-subscribers", who=Name(who))))


def _announce(dataset: Dataset, found: Found, where: Text, stream: RunStream) -> None:
    if found.foreign:
        stream.emit(Noted(message("progress-dropping", tables=Name(find.listed(found.foreign)), where=where)))
    if found.ours:
        size = pg_size(sum(t.bytes for t in found.ours))
        what = Name(found.name) if found.name else message("progress-several-kinds")
        tables = Name(find.listed(found.ours))
        stream.emit(Noted(message("progress-replacing", what=what, where=where, tables=tables, size=Name(size))))
    size = pg_size(dataset.total_bytes)
    tables = Name(find.listed_names(dataset.relations))
    stream.emit(Noted(message("progress-creating", tables=tables, where=where, rows=dataset.rows, size=Name(size))))


def _local_data(conn: Connection, target: Target) -> Path | None:
    """Return the data directory if it is on this machine and its server reveals it, else None."""
    if not target.host.startswith("/"):
        return None
    try:
        row = conn.execute("select current_setting('data_directory', true)").fetchone()
    except psycopg.Error:
        return None
    path = Path(row[0]) if row and row[0] else None
    return path if path is not None and path.exists() else None
