"""`pgdyno load`."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

from rich import box

from pgdyno import i18n
from pgdyno.cli import console
from pgdyno.cli.options import language
from pgdyno.cli.requests import LoadRequest
from pgdyno.cli.stopping import stoppable
from pgdyno.cli.tables import Table
from pgdyno.cli.viewers import stream_for
from pgdyno.cluster import datadir
from pgdyno.cluster import target as targets
from pgdyno.cluster.datadir import PrivateServer
from pgdyno.cluster.managed import resolved
from pgdyno.collect import host
from pgdyno.collect.others import AtWork, others_at_work, words_for
from pgdyno.errors import LocalError, UsageError, msg
from pgdyno.load import loader
from pgdyno.load.claim import Claim
from pgdyno.load.dataset import Dataset, kind_named
from pgdyno.load.plan import PROBE_BYTES_PER_SCALE, PROBE_SCALE, Plan, measure_disk
from pgdyno.load.result import CHECK, Loaded, Progress
from pgdyno.load.units import pg_size
from pgdyno.message import Name, Text, message
from pgdyno.report.cells import column
from pgdyno.store.writing import now_text, refuse_unwritable, writing
from pgdyno.stream.events import DatasetProgress, Noted, RunEvent
from pgdyno.stream.stream import RunStream
from pgdyno.units import Quantity

METHODS = ("auto", "copy", "direct", "server")


def main(request: LoadRequest) -> int:
    """Plan or load a dataset, show it, and return the exit code."""
    dataset, r = _dataset(request), request
    if r.method not in METHODS:
        raise UsageError(
            msg("error-method-there-no", method=r.method), msg("remedy-choices", choices=", ".join(METHODS))
        )
    errors = console.errors()
    if r.plan:
        if r.data is not None and not r.data.is_dir():
            raise UsageError(msg("error-no-folder", folder=r.data), msg("remedy-give-folder-holds-pg-version"))
        if r.page is not None:
            raise UsageError(msg("error-page-dry-run"), msg("remedy-leave-out"))
        with stoppable():
            planned = _planned(dataset, r.data, r.disk_mbps)
        _show_plan(planned, r.json_output, i18n.writer(language(r.lang)))
        return 0
    _refuse_unclear(r)
    if r.page is not None:
        refuse_unwritable(r.page)
    stream = stream_for(errors, quiet=r.quiet, lang=language(r.lang))
    speed = _Speed()
    if r.page is not None:
        stream.subscribe(speed)
    with stoppable(), AtWork():
        try:
            if others := others_at_work():
                stream.emit(Noted(words_for(others)))
            if r.data is not None:
                done = _into_files(dataset, r.data, r, stream)
                disk = None if done is None else _disk_of(resolved(r.data), done.moved_bytes)
            else:
                done, disk = _over_connections(dataset, r, stream), None
        finally:
            stream.close()
    if r.page is not None and done is None:
        sys.stderr.write(i18n.text(message("page-nothing-loaded", path=Name(str(r.page))), language(r.lang)) + "\n")
    if r.page is not None and done is not None:
        # Pages need what loading does not: it would be a third of the start.
        from pgdyno.report import load_page

        _write_page(r.page, load_page.written(dataset, done, disk, speed.progress, _place(r), language(r.lang)), r)
    _show(dataset, done, disk, r.json_output, i18n.writer(language(r.lang)))
    return 0


class _Speed:
    """Viewer that keeps the progress of a load."""

    def __init__(self) -> None:
        self.progress: list[Progress] = []
        self._start_ns: int | None = None

    def handle(self, event: RunEvent) -> None:
        """Keep the bytes of a phase."""
        match event.body:
            case DatasetProgress(phase=phase, done_bytes=done_bytes):
                if self._start_ns is None:
                    self._start_ns = event.stamp.at_ns
                at_s = (event.stamp.at_ns - self._start_ns) / 1e9
                self.progress.append(Progress(at_s, phase, done_bytes))

    def close(self) -> None:
        """End; there is nothing to take down."""


def _place(r: LoadRequest) -> Text:
    """Return the server or the folder that was loaded, the machine, and the time."""
    where: Text = (
        targets.resolve(r.target or "", r.connect_timeout).where if r.data is None else Name(str(resolved(r.data)))
    )
    gib = host.memory_bytes() / 2**30
    at = now_text()[:16].replace("T", " ")
    return message("load-page-place", where=where, cores=host.cores(), gib=Quantity(gib, "factor"), at=Name(at))


def _write_page(path: Path, page: str, r: LoadRequest) -> None:
    with writing(path):
        path.write_text(page, encoding="utf-8")
    sys.stderr.write(i18n.text(message("page-written", path=Name(str(path))), language(r.lang)) + "\n")


def _dataset(r: LoadRequest) -> Dataset:
    """Return the dataset that the options describe; raise UsageError where they contradict each other."""
    is_tpcc = r.dataset == "tpcc"
    for option, value in (("--warehouses", r.warehouses), ("--sets", r.sets)):
        if value is not None and not is_tpcc:
            raise UsageError(msg("error-goes-tpcc", option=option), msg("remedy-size-scale", dataset=r.dataset))
    if is_tpcc and r.scale is not None and r.warehouses is not None:
        raise UsageError(msg("error-scale-warehouses-say-same"), msg("remedy-give-one-them"))
    if is_tpcc and r.tables is not None:
        raise UsageError(msg("error-tpcc-tables"), msg("remedy-several-sets-them-sets"))
    scale = r.warehouses if is_tpcc and r.warehouses is not None else r.scale
    return kind_named(r.dataset).plan(replace(r, scale=scale, tables=r.sets if is_tpcc else r.tables))


def _refuse_unclear(r: LoadRequest) -> None:
    """Raise UsageError unless the options name one server, and a method that can load into it."""
    if r.data is None and r.target is None and not targets.named_by_environment():
        raise UsageError(
            msg("error-no-server-no-data-directory"),
            msg("remedy-target-conninfo-or-pghost-for"),
        )
    if r.data is not None and (r.target is not None or r.method in ("copy", "server")):
        raise UsageError(msg("error-data-for-method-direct-target"), msg("remedy-give-one-you-mean-not"))
    if r.data is None and r.method == "direct":
        raise UsageError(
            msg("error-method-direct-writes-files-stopped"),
            msg("remedy-stop-name-data-directory-data"),
        )


def _into_files(dataset: Dataset, data: Path, r: LoadRequest, stream: RunStream) -> Loaded | None:
    path = resolved(data)
    with ExitStack() as stack:
        if path.is_dir():
            stack.enter_context(datadir.claimed(path))
        server = stack.enter_context(
            PrivateServer(
                datadir.examine(path),
                r.user,
                r.dbname,
                pg_bin=r.pg_bin,
                archives=r.ignore_archive,
                tables=len(dataset.relations),
            )
        )
        return loader.into_server(server, dataset, force=r.force, replace=r.replace, threads=r.threads, stream=stream)


def _disk_of(folder: Path, written: int) -> float | None:
    """To compare with. A disk that has become too full for it is no reason to fail."""
    try:
        # A tenth of what was loaded: to compare with, at a price that nobody notices.
        tenth = written // 10 // PROBE_BYTES_PER_SCALE
        return measure_disk(folder, max(5, min(PROBE_SCALE, tenth)))
    except LocalError:
        return None


def _over_connections(dataset: Dataset, r: LoadRequest, stream: RunStream) -> Loaded | None:
    target = targets.resolve(r.target or "", r.connect_timeout)
    stream.emit(Noted(message("progress-target", where=target.where)))
    with Claim(target, force=r.force) as claim:
        return loader.over_connections(
            claim.conn,
            target,
            dataset,
            force=r.force,
            replace=r.replace,
            on_server=r.method == "server",
            connections=r.connections,
            connect_timeout_s=r.connect_timeout,
            claim=claim,
            stream=stream,
        )


# ---------------------------------------------------------------- what the user sees


def _planned(dataset: Dataset, data: Path | None, disk_mbps: float | None) -> Plan:
    if disk_mbps is not None:
        return Plan(dataset, disk_mbps * 1e6)
    folder = resolved(data) if data is not None else Path(tempfile.gettempdir())
    return Plan(dataset, measure_disk(folder), str(folder))


def _show_plan(p: Plan, json_output: bool, say: Callable[[Text], str]) -> None:
    if json_output:
        sys.stdout.write(json.dumps(p.as_json(), indent=2) + "\n")
        return
    out, tables = console.output(), p.dataset.tables
    table = Table(box=box.SIMPLE_HEAD, title=p.dataset.name, title_justify="left")
    table.add_column(say(message("column-table")))
    has_others = any(t.index_bytes for t in tables)
    figures = [column(x) for x in ("rows", "heap", "key", "key level", "indexes")]
    for c in figures if has_others else figures[:-1]:
        table.add_column(say(c.title), justify="right")
    shown = tables if len(tables) <= 12 else [*tables[:3], *tables[-1:]]
    for t in shown:
        if t is tables[-1] and len(shown) < len(tables):
            table.add_row(say(message("load-table-more", n=len(tables) - 4)), "", "", "", "")
        level = str(t.key_level) if t.key_bytes else ""
        table.add_row(
            t.name, f"{t.end - t.first:,}", pg_size(t.heap_bytes), pg_size(t.key_bytes) if t.key_bytes else "", level,
            *([pg_size(t.index_bytes) if t.index_bytes else ""] if has_others else []),
        )  # fmt: skip
    table.add_row(
        say(message("load-all")),
        f"{p.dataset.rows:,}",
        pg_size(p.dataset.heap_bytes),
        pg_size(p.dataset.key_bytes),
        "",
        *([pg_size(p.dataset.index_bytes)] if has_others else []),
        style="bold",
    )
    out.print(table)
    about = None if all(t.even for t in tables) else message("load-about")
    what = message("load-heaps-indexes" if has_others else "load-heaps")
    out.print(say(message("load-bytes", about=about, bytes=p.bytes, what=what)))
    source = message("load-disk-measured", folder=Name(p.folder)) if p.folder else message("load-disk-given")
    speed, time = Quantity(p.disk, "bytes/s"), Quantity(p.seconds, "duration")
    out.print(say(message("load-disk", speed=speed, source=source, time=time)))


def _show(
    dataset: Dataset, done: Loaded | None, disk: float | None, json_output: bool, say: Callable[[Text], str]
) -> None:
    if json_output:
        facts = None if done is None else {**asdict(done), "total_s": done.total_s, "disk_bytes_per_s": disk}
        sys.stdout.write(json.dumps({"dataset": dataset.name, "loaded": facts}, indent=2) + "\n")
        return
    out = console.output()
    if done is None:
        out.print(say(message("load-exists", name=Name(dataset.name))))
        return
    rate = done.dataset_bytes / done.total_s if done.total_s else 0
    phases = ", ".join(f"{name} {s:.2f} s" for name, s in done.phases_s.items() if name != CHECK)
    sentence = message(
        "load-done",
        seconds=Quantity(done.total_s, "fixed", 2),
        phases=Name(phases),
        rows=done.rows,
        size=Name(pg_size(done.dataset_bytes)),
        speed=Quantity(rate, "bytes/s"),
        method=Name(done.method),
    )
    out.print(say(sentence), soft_wrap=True)
    writing = done.phases_s.get("generate", 0.0)
    if disk and writing:
        speed = Quantity(done.moved_bytes / writing, "bytes/s")
        out.print(say(message("load-writing", speed=speed, disk=Quantity(disk, "bytes/s"))), soft_wrap=True)
    if (checking := done.phases_s.get(CHECK)) is not None:
        out.print(say(message("load-checked", seconds=Quantity(checking, "fixed", 2))))
