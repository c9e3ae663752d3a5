"""`pgdyno storage`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich import box

from pgdyno import i18n
from pgdyno.cli import console
from pgdyno.cli.progress import Steps
from pgdyno.cli.stopping import stoppable
from pgdyno.cli.tables import Table
from pgdyno.collect.others import AtWork, others_at_work, words_for
from pgdyno.errors import UsageError, msg
from pgdyno.load.units import pg_size
from pgdyno.message import Name, Text, message
from pgdyno.storage.probe import probe
from pgdyno.store.probe import Probe, Stream
from pgdyno.units import Quantity

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def bytes_of(text: str | None) -> int | None:
    """Return the bytes of a size in fio's notation: 512m, 10g."""
    if text is None:
        return None
    number, unit = text.strip().lower().removesuffix("b"), 1
    if number[-1:] in _UNITS:
        number, unit = number[:-1], _UNITS[number[-1]]
    if not number.isdigit() or int(number) == 0:
        raise UsageError(msg("error-size-no-size", text=text), msg("remedy-write-size-512m-or-size"))
    return int(number) * unit


def main(
    path: Path,
    *,
    seconds: float,
    size: str | None,
    threads: int | None,
    json_output: bool,
    quiet: bool,
    lang: str = "en",
) -> int:
    """Measures, shows, and returns the exit code."""
    errors = console.errors()
    with stoppable(), AtWork(), Steps(errors, quiet=quiet) as steps:
        if others := others_at_work():
            errors.print(i18n.text(words_for(others), lang), soft_wrap=True)
        found = probe(path, seconds=seconds, size=bytes_of(size), threads=threads, watch=steps.show)
    if json_output:
        sys.stdout.write(json.dumps(asdict(found) | {"caveats": [i18n.text(x) for x in found.limits]}, indent=2) + "\n")
    else:
        _show(found, i18n.writer(lang))
    return 0


def _show(p: Probe, say: Callable[[Text], str]) -> None:
    out = console.output()
    for limit in p.limits:
        out.print(f"! {say(limit)}", markup=False)
    where = {"path": Name(p.path), "file_system": Name(p.file_system), "device": Name(p.device)}
    out.print(say(message("storage-where", **where)), markup=False)
    if p.jobs:
        size, seconds = Name(pg_size(p.file_bytes)), Quantity(p.seconds, "plain")
        out.print(say(message("storage-jobs", fio=Name(p.fio_version), threads=p.threads, size=size, seconds=seconds)))
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column(say(message("storage-latency")), no_wrap=True)
        for name in ("", "IOPS", "MB/s", "p50", "p95", "p99", "p99.9", "max"):
            table.add_column(name, justify="right" if name else "left", no_wrap=True)
        for job in p.jobs:
            name = say(i18n.known(job.title, "job-") or Name(job.title))
            for title, which, stream in ((name, "job-read", job.read), ("", "job-write", job.write)):
                table.add_row(title, say(message(which)), *_figures(stream))
        out.print(table)
    if p.syncs:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column(say(message("storage-syncs")), no_wrap=True)
        for name in ("ops/s", "µs/op"):
            table.add_column(name, justify="right")
        group = ""
        for s in p.syncs:
            if s.group != group:
                group = s.group
                table.add_row(group.removeprefix("Compare "), "", "", style="bold")
            rate = s.operations_per_s
            shown = ("n/a", "") if rate is None else (f"{rate:,.0f}", f"{1e6 / rate:,.0f}" if rate else "")
            table.add_row(f"  {s.method}", *shown)
        out.print(table)


def _figures(s: Stream) -> list[str]:
    times = (s.p50_ns, s.p95_ns, s.p99_ns, s.p999_ns, s.max_ns)
    return [f"{s.iops:,.0f}", f"{s.bytes_per_s / 1e6:,.0f}", *(_ms(t) for t in times)]


def _ms(ns: float) -> str:
    ms = ns / 1e6
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.3f}"
