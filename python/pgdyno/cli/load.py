"""`pgdyno load`."""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from pgdyno.cli import console
from pgdyno.cli.progress import stream_for
from pgdyno.cli.stopping import stoppable
from pgdyno.cluster import datadir
from pgdyno.cluster import target as targets
from pgdyno.cluster.datadir import PrivateServer
from pgdyno.cluster.managed import resolved
from pgdyno.collect.others import AtWork, others_at_work, words_for
from pgdyno.errors import LocalError, UsageError
from pgdyno.load import find, loader
from pgdyno.load.claim import Claim
from pgdyno.load.dataset import Dataset
from pgdyno.load.plan import PROBE_BYTES_PER_SCALE, PROBE_SCALE, Plan, measure_disk
from pgdyno.load.result import CHECK, Loaded
from pgdyno.load.units import pg_size
from pgdyno.stream.events import Noted

METHODS = ("auto", "copy", "direct", "server")


def main(
    dataset: Dataset,
    *,
    method: str,
    target: str | None,
    data: Path | None,
    user: str,
    dbname: str,
    connections: int | None,
    threads: int | None,
    plan_only: bool,
    disk_mbps: float | None,
    pg_bin: Path | None,
    force: bool,
    replace: bool,
    ignore_archive: bool,
    connect_timeout_s: float,
    json_output: bool,
    quiet: bool,
) -> int:
    """Plans or loads, shows, and returns the exit code."""
    if method not in METHODS:
        raise UsageError(f'--method: there is no "{method}"', f"There are {', '.join(METHODS)}.")
    errors = console.errors()
    if plan_only:
        with stoppable():
            planned = _planned(dataset, data, disk_mbps)
        _show_plan(planned, json_output)
        return 0
    if data is None and target is None and not targets.named_by_environment():
        raise UsageError(
            "load where?",
            "--target CONNINFO (or PGHOST) for a running server, --data FOLDER for a stopped one. --plan only says how "
            "large it will be.",
        )
    if data is not None and (target is not None or method in ("copy", "server")):
        raise UsageError(
            "--data is for --method direct, --target for copy and server", "Give the one that you mean, not both."
        )
    if data is None and method == "direct":
        raise UsageError(
            "--method direct writes the files of a stopped server",
            "Stop it, and name its data directory: --data FOLDER.",
        )
    stream = stream_for(errors, quiet=quiet)
    with stoppable(), AtWork():
        try:
            if others := others_at_work():
                stream.emit(Noted(words_for(others)))
            if data is not None:
                done = _into_files(dataset, data, user, dbname, threads, pg_bin, force, replace, ignore_archive, stream)
                disk = None if done is None else _disk_of(resolved(data), done.moved_bytes)
            else:
                done = _over_connections(
                    dataset, target or "", method == "server", connections, connect_timeout_s, force, replace, stream
                )
                disk = None
        finally:
            stream.close()
    _show(dataset, done, disk, json_output)
    return 0


def _into_files(
    dataset: Dataset,
    data: Path,
    user: str,
    dbname: str,
    threads: int | None,
    pg_bin: Path | None,
    force: bool,
    replace: bool,
    ignore_archive: bool,
    stream: Any,
) -> Loaded | None:
    path = resolved(data)
    with ExitStack() as stack:
        if path.is_dir():
            stack.enter_context(datadir.claimed(path))
        directory = datadir.examine(path)
        server = stack.enter_context(
            PrivateServer(
                directory, user, dbname, pg_bin=pg_bin, archives=ignore_archive, tables=len(dataset.relations)
            )
        )
        return loader.into_server(server, dataset, force=force, replace=replace, threads=threads, stream=stream)


def _disk_of(folder: Path, written: int) -> float | None:
    """To compare with. A disk that has become too full for it is no reason to fail."""
    try:
        # A tenth of what was loaded: to compare with, at a price that nobody notices.
        tenth = written // 10 // PROBE_BYTES_PER_SCALE
        return measure_disk(folder, max(5, min(PROBE_SCALE, tenth)))
    except LocalError:
        return None


def _over_connections(
    dataset: Dataset,
    conninfo: str,
    on_server: bool,
    connections: int | None,
    connect_timeout_s: float,
    force: bool,
    replace: bool,
    stream: Any,
) -> Loaded | None:
    target = targets.resolve(conninfo, connect_timeout_s)
    stream.emit(Noted(f"target: {target.where}"))
    with Claim(target, force=force) as claim:
        found = find.look(claim.conn, target, dataset, force=force, replace=replace)
        if found.holds(dataset):
            return None
        return loader.over_connections(
            claim.conn,
            target,
            dataset,
            found,
            on_server=on_server,
            connections=connections,
            connect_timeout_s=connect_timeout_s,
            claim=claim,
            stream=stream,
        )


# ---------------------------------------------------------------- what the user sees


def _planned(dataset: Dataset, data: Path | None, disk_mbps: float | None) -> Plan:
    if disk_mbps is not None:
        return Plan(dataset, disk_mbps * 1e6, "--disk-mbps")
    folder = resolved(data) if data is not None else Path(tempfile.gettempdir())
    return Plan(dataset, measure_disk(folder), f"measured in {folder}")


def _show_plan(p: Plan, json_output: bool) -> None:
    if json_output:
        sys.stdout.write(json.dumps(p.as_json(), indent=2) + "\n")
        return
    out, tables = console.output(), p.dataset.tables
    table = Table(box=box.SIMPLE_HEAD, title=p.dataset.name, title_justify="left")
    table.add_column("table")
    has_others = any(t.index_bytes for t in tables)
    for name in ("rows", "heap", "key", "key level", *(["indexes"] if has_others else [])):
        table.add_column(name, justify="right")
    shown = tables if len(tables) <= 12 else [*tables[:3], *tables[-1:]]
    for t in shown:
        if t is tables[-1] and len(shown) < len(tables):
            table.add_row(f"… {len(tables) - 4} more", "", "", "", "")
        level = str(t.key_level) if t.key_bytes else ""
        table.add_row(
            t.name, f"{t.end - t.first:,}", pg_size(t.heap_bytes), pg_size(t.key_bytes) if t.key_bytes else "", level,
            *([pg_size(t.index_bytes) if t.index_bytes else ""] if has_others else []),
        )  # fmt: skip
    table.add_row(
        "all",
        f"{p.dataset.rows:,}",
        pg_size(p.dataset.heap_bytes),
        pg_size(p.dataset.key_bytes),
        "",
        *([pg_size(p.dataset.index_bytes)] if has_others else []),
        style="bold",
    )
    out.print(table)
    about = "" if all(t.even for t in tables) else "About "
    what = "heaps, keys and other indexes" if has_others else "heaps and keys"
    out.print(f"{about}{p.bytes:,} bytes in {what}; WAL and the map of free space come on top.")
    out.print(f"At {p.disk / 1e6:,.0f} MB/s ({p.disk_source}) the disk takes {duration(p.seconds)}.")


def _show(dataset: Dataset, done: Loaded | None, disk: float | None, json_output: bool) -> None:
    if json_output:
        facts = None if done is None else {**asdict(done), "total_s": done.total_s, "disk_bytes_per_s": disk}
        sys.stdout.write(json.dumps({"dataset": dataset.name, "loaded": facts}, indent=2) + "\n")
        return
    out = console.output()
    if done is None:
        out.print(f"{dataset.name}: it is there already; nothing was done.")
        return
    rate = done.dataset_bytes / done.total_s if done.total_s else 0
    phases = ", ".join(f"{name} {s:.2f} s" for name, s in done.phases_s.items() if name != CHECK)
    out.print(
        f"done in {done.total_s:.2f} s ({phases}): {done.rows:,} rows, {pg_size(done.dataset_bytes)}, "
        f"{rate / 1e6:,.0f} MB/s by {done.method}",
        soft_wrap=True,
    )
    writing = done.phases_s.get("generate", 0.0)
    if disk and writing:
        out.print(
            f"writing alone: {done.moved_bytes / writing / 1e6:,.0f} MB/s, synced; its disk takes "
            f"{disk / 1e6:,.0f} MB/s by the same writer, measured just now",
            soft_wrap=True,
        )
    if (checking := done.phases_s.get(CHECK)) is not None:
        out.print(f"checked in {checking:.2f} s: population (clause 4.3) and consistency (clause 3.3.2) are right")


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"
