"""`pgdyno cluster …`."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from rich import box

from pgdyno.cli import console, streams
from pgdyno.cli.stopping import stoppable
from pgdyno.cli.tables import Table
from pgdyno.cli.viewers import stream_for
from pgdyno.cluster import administration, binaries, datadir, templates
from pgdyno.cluster.clone import Copied
from pgdyno.cluster.datadir import PrivateServer
from pgdyno.cluster.layout import DATABASE
from pgdyno.cluster.managed import ManagedCluster, resolved
from pgdyno.cluster.settings import OURS, Setting, counting_statements, sized
from pgdyno.cluster.target import Target
from pgdyno.collect import host
from pgdyno.errors import RefusedError, UsageError, msg
from pgdyno.load.dataset import mark_of
from pgdyno.load.units import pg_size
from pgdyno.message import Message, Text, listed
from pgdyno.stream.events import DatasetDone, DatasetProgress

_out = console.output()


def settings_of(given: list[str], clients: int, pg_bin: Path | None, members: int = 1) -> list[Setting]:
    """Return the settings for this machine, with the given settings NAME=VALUE over them.

    Each of `members` servers has its share of the machine. The settings allow for `clients` clients.
    """
    settings = {s.name: s for s in sized(host.memory_bytes() // members, host.cores(), clients)}
    programs = pg_bin or binaries.wheel_folder()
    settings |= {s.name: s for s in counting_statements(programs)} if programs is not None else {}
    settings |= {s.name: s for s in given_settings(given)}
    return list(settings.values())


def given_settings(given: list[str]) -> list[Setting]:
    """Return the settings that --set gives.

    Raise UsageError if a setting is not valid.
    """
    settings = []
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or not name.replace("_", "").replace(".", "").isalnum() or "\n" in value:
            raise UsageError(msg("error-set-no-setting", word=word), msg("remedy-write-set-shared-buffers-1gb"))
        if name.lower() in OURS:
            raise UsageError(msg("error-set-pgdyno-s-where-server", name=name))
        settings.append(Setting(name, value, "command-line"))
    return settings


def create(folder: Path, clients: int, given: list[str], checksums: bool | None, pg_bin: Path | None) -> int:
    """Initdb with settings for this machine."""
    settings = settings_of(given, clients, pg_bin)
    cluster = ManagedCluster(folder)
    with stoppable():
        cluster.create(settings, pg_bin=pg_bin, checksums=checksums)
    _say(
        msg("cluster-created", base=cluster.base),
        msg("cluster-hint-start", folder=folder),
        msg("cluster-hint-load", folder=folder),
    )
    return 0


def start(folder: Path) -> int:
    """Start the server, print how to connect to it, and return the exit code."""
    cluster = ManagedCluster(folder)
    with stoppable():
        cluster.start()
    _say(msg("cluster-started", to_type=_to_type(cluster.layout.target)))
    return 0


def _to_type(target: Target) -> str:
    """Return a connection string for a shell, with no more quotes than necessary."""
    words = make_conninfo("", host=target.host, port=target.port, user=target.user, dbname=target.dbname)
    return f'"{words}"' if not set(words) & set('"$`\\!') else shlex.quote(words)


def stop(folder: Path) -> int:
    """Stop the server and return the exit code."""
    cluster = ManagedCluster(folder)
    with stoppable():
        cluster.stop()
    _say(msg("cluster-stopped"))
    return 0


def status(folder: Path, json_output: bool) -> int:
    """Show the state of the cluster and return the exit code."""
    cluster = ManagedCluster(folder)
    pid = cluster.process_id()
    names: list[str] = []
    if pid is not None:
        names, _, _ = _contents(cluster.layout.target)
    size = sum(f.stat().st_size for f in cluster.data.rglob("*") if f.is_file())
    facts = {
        "folder": str(cluster.base),
        "version": cluster.version(),
        "programs": str(cluster.programs()),
        "process": pid,
        "target": cluster.layout.target.conninfo,
        "bytes": size,
        # Known while the server runs.
        "datasets": names if pid is not None else None,
        "log": str(cluster.layout.log),
    }
    if json_output:
        sys.stdout.write(json.dumps(facts, indent=2) + "\n")
        return 0
    reach = msg("cluster-runs", pid=pid, target=_to_type(cluster.layout.target))
    holds = msg("cluster-holds", names=", ".join(names)) if names else msg("cluster-holds-none")
    _say(
        msg("cluster-server", facts=facts["version"], base=cluster.base, pg_size=pg_size(size)),
        *([reach, holds] if pid is not None else [msg("cluster-stopped")]),
        msg("cluster-log", log=cluster.layout.log),
    )
    return 0


def destroy(folder: Path) -> int:
    """Remove the cluster and return the exit code."""
    with stoppable():
        ManagedCluster(folder).destroy()
    _say(msg("cluster-removed", folder=folder))
    return 0


def snapshot(folder: Path, name: str | None, store: Path | None, online: bool, pg_bin: Path | None, user: str) -> int:
    """Add a copy of the cluster to the templates and return the exit code."""
    shelf = templates.Store(templates.store_folder(store))
    began = time.monotonic()
    with stoppable():
        cluster = ManagedCluster(folder)
        if cluster.process_id() is not None:
            if not online:
                raise RefusedError(
                    msg("error-server-at-work", folder=folder),
                    msg("remedy-stop-pgdyno-cluster-stop-or", folder=folder),
                )
            programs = binaries.find(cluster.account, cluster.base / "programs", cluster.programs())
            target = cluster.layout.target
            datasets, version, settings = _contents(target)
            # A base backup has no rows of unlogged tables.
            datasets = [d for d in datasets if " unlogged" not in d]
            template, copied = shelf.add_online(
                target.conninfo, programs, cluster.account, datasets, version, settings, name=name
            )
        else:
            directory = datadir.examine(resolved(folder))
            with PrivateServer(directory, user, DATABASE, pg_bin=pg_bin) as server:
                datasets, version, settings = _contents(server.target)
            with _watching("snapshot") as watch:
                template, copied = shelf.add(directory, datasets, version, settings, name=name, watch=watch)
    _say(
        msg(
            "cluster-snapshot",
            name=template.name,
            how=_how(copied),
            value=f"{time.monotonic() - began:.2f}",
            folder=shelf.folder,
        )
    )
    return 0


def restore(name: str, folder: Path, store: Path | None, pg_bin: Path | None) -> int:
    """Create a cluster from a template and return the exit code."""
    shelf = templates.Store(templates.store_folder(store))
    data = shelf.data_of(name)
    cluster = ManagedCluster(folder)
    with stoppable():
        began = time.monotonic()
        cluster.prepare()
        try:
            with _watching("restore-cluster") as watch:
                copied = shelf.restore(name, cluster.data, cluster.account, watch)
            directory = datadir.DataDirectory(data, int((data / "PG_VERSION").read_text()), cluster.account)
            programs = binaries.for_major(cluster.account, cluster.base / "programs", directory.major, pg_bin)
            cluster.take_over(programs)
        except BaseException:
            cluster.abandon()
            raise
    _say(
        msg("cluster-restored", name=name, how=_how(copied), value=f"{time.monotonic() - began:.2f}"),
        msg("cluster-hint-start", folder=folder),
    )
    return 0


def list_(store: Path | None, json_output: bool) -> int:
    """List the templates in the store and return the exit code."""
    shelf = templates.Store(templates.store_folder(store))
    found = shelf.all()
    if json_output:
        sys.stdout.write(json.dumps([asdict(t) for t in found], indent=2) + "\n")
        return 0
    if not found:
        _say(msg("cluster-no-templates", folder=shelf.folder))
        return 0
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("heading-template", "column-server", "column-bytes", "heading-kept-since"):
        right = column == "column-bytes"
        table.add_column(streams.written(Message(column)), justify="right" if right else "left", overflow="fold")
    for t in found:
        table.add_row(t.name, t.version.split(" ")[0], pg_size(t.bytes), t.created[:16].replace("T", " "))
    _out.print(table)
    return 0


def drop(name: str, store: Path | None) -> int:
    """Remove a template and return the exit code."""
    shelf = templates.Store(templates.store_folder(store))
    with stoppable():
        shelf.drop(name)
    _say(msg("cluster-dropped", name=name))
    return 0


# ---------------------------------------------------------------- inside


def _contents(target: Target) -> tuple[list[str], str, list[str]]:
    """Datasets in all databases, version, and settings that make other bytes of the same rows."""
    with administration.connect(target) as conn:
        databases = conn.execute("select datname from pg_database where datallowconn and not datistemplate").fetchall()
        version, checksums = _shown(conn, "server_version"), _shown(conn, "data_checksums")
    names = set()
    for (dbname,) in databases:
        with administration.connect(replace(target, dbname=dbname)) as conn:
            comments = conn.execute(
                "select distinct pg_catalog.obj_description(oid, 'pg_class'::name) from pg_catalog.pg_class "
                "where relkind in ('r', 'p')"
            ).fetchall()
        marks = [m for (comment,) in comments if (m := mark_of(comment)) is not None]
        names |= {m.name for m in marks if not m.state}
    return sorted(names), version, ["checksums"] if checksums == "on" else ["nochecksums"]


def _shown(conn: psycopg.Connection[tuple[object, ...]], name: str) -> str:
    row = conn.execute(f"show {name}".encode()).fetchone()
    return str(row[0]) if row else ""


@contextmanager
def _watching(phase: str) -> Iterator[Callable[[int], object]]:
    stream = stream_for(console.errors(), quiet=False)
    try:
        yield lambda done: stream.emit(DatasetProgress(phase, done_bytes=done))
    finally:
        stream.emit(DatasetDone())
        stream.close()


def _how(copied: Copied) -> Text:
    parts = []
    if copied.shared_bytes:
        parts.append(msg("cluster-shared", size=pg_size(copied.shared_bytes)))
    if copied.copied_bytes:
        parts.append(msg("cluster-copied", size=pg_size(copied.copied_bytes)))
    return listed(parts)


def _say(*lines: Text | str) -> None:
    for line in lines:
        _out.print(line if isinstance(line, str) else streams.written(line), soft_wrap=True)
