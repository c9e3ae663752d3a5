"""`pgdyno export`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from pgdyno.cli import streams
from pgdyno.errors import UsageError, msg
from pgdyno.store import export, query, reading
from pgdyno.store.writing import writing


def main(run: Path | None, form: str | None, grafana: bool, output: Path | None) -> int:
    """Write the series of a run, or the dashboard, and return the exit code."""
    if grafana == (form is not None):
        raise UsageError(msg("error-say-what-export"), msg("remedy-prometheus-openmetrics-or-influx-run"))
    if grafana:
        _write([export.dashboard()], output)
        return 0
    if run is None:
        raise UsageError(msg("error-which-run"), msg("remedy-pgdyno-export-openmetrics-run-directory"))
    assert form is not None
    data = reading.read(run)
    _write(export.lines(data, form), output)
    for name, why in data.unreadable:
        streams.say(streams.written(msg("not-read", what=msg("error-file-reason", path=name, reason=why))))
    return 0


def _write(lines: Iterable[str], output: Path | None) -> None:
    if output is None:
        for line in lines:
            sys.stdout.write(line)
        return
    query.refuse_a_run_directory(output)
    with writing(output), output.open("w", encoding="utf-8") as f:
        f.writelines(lines)
