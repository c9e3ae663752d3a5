"""`pgdyno capture`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from pgdyno.capture import logs, statements
from pgdyno.capture.catalog import Catalog
from pgdyno.capture.statements import Capture
from pgdyno.capture.write import write
from pgdyno.cli import streams
from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import Target
from pgdyno.errors import TargetError, UsageError, msg
from pgdyno.format import one_line
from pgdyno.message import Name, Text


def main(
    conninfo: str | None,
    log: Sequence[Path],
    output: Path,
    seconds: float,
    top: int,
    read_only: bool,
    with_values: Sequence[str] = (),
    times: float = 1.0,
    replay: bool = False,
) -> int:
    """Capture the workload, write its files, and return the exit code."""
    if replay and not log:
        raise UsageError(msg("error-replay-needs-log"), msg("remedy-add-log-file-or-leave"))
    if replay and times != 1:
        raise UsageError(msg("error-replay-runs-log-at-own"), msg("remedy-leave-one-them-out"))
    for path in log:
        # Before the server is asked.
        try:
            path.stat()
        except OSError as e:
            raise UsageError(msg("error-cannot-read", path=path, reason=e.strerror or e)) from e
    target = targets.resolve(conninfo or "")
    try:
        found, source = _captured(target, log, seconds, top, read_only, with_values, replay)
    except psycopg.Error as e:
        reason = one_line(e)
        raise TargetError(msg("error-capture-failed", reason=reason), remedy_for(reason, e.sqlstate)) from e
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    file = write(found, output, source=source, when=when, read_only=read_only, times=times, say=streams.written)
    lines = (
        msg(
            "capture-found",
            scripts=len(found.scripts),
            share=f"{found.covered * 100:.0f}%",
            what=found.of,
            pace=msg("capture-pace", tps=f"{found.pace.tps:,.4g}") if found.pace is not None else "",
            left_out=len(found.left_out),
        ),
        msg("capture-written", file=file, readme=output / "README.md"),
    )
    for line in lines:
        sys.stdout.write(f"{streams.written(line)}\n")
    return 0


def _captured(
    target: Target,
    log: Sequence[Path],
    seconds: float,
    top: int,
    read_only: bool,
    with_values: Sequence[str],
    replay: bool,
) -> tuple[Capture, Text]:
    with closing(administration.connect(target)) as conn:
        conn.execute("set default_transaction_read_only to on")
        with contextlib.suppress(psycopg.Error):
            # What a capture asks is no work of production's. Only superusers may say so.
            conn.execute("set pg_stat_statements.track to none")
        if log:
            catalog = Catalog(conn, with_values)
            row = conn.execute("select pg_catalog.current_setting('log_line_prefix')").fetchone()
            prefix = str(row[0]) if row is not None else ""
            found = logs.read_log(
                log, target.dbname, catalog, top=top, read_only=read_only, prefix=prefix, replay=replay
            )
            source: Text = Name(", ".join(p.name for p in log))
        else:
            found = statements.read_server(conn, seconds=seconds, top=top, read_only=read_only, with_values=with_values)
            source = msg("captured-database", database=target.dbname)
        return found, source
