"""`pgdyno watch`: the progress of a run that another process on this machine has started."""

from __future__ import annotations

import time
from pathlib import Path

from pgdyno import i18n
from pgdyno.cli import console
from pgdyno.cli.viewers import viewer_for
from pgdyno.errors import EXIT_OK, EXIT_WITH_CAVEATS, UsageError, msg
from pgdyno.message import Name, Text, message
from pgdyno.store import catalog, manifest
from pgdyno.store.replay import replay
from pgdyno.store.rundir import is_under_way

#: Longest wait for the report of a run that has ended, and seconds between two looks.
_REPORT_S, _POLL_S = 60.0, 0.1
#: Files of a report.
_REPORTS = ("report.html", "report.md")


def main(run: Path | None, runs: Path, lang: str) -> int:
    """Show a run until it ends; return the exit code."""
    path = run if run is not None else _only_one(runs)
    title = manifest.read(path).title
    out = console.errors()
    out.print(
        i18n.text(message("watch-run", run=Name(str(path)), title=Name(title)), lang), markup=False, soft_wrap=True
    )
    viewer = viewer_for(out, lang)
    try:
        for event in replay(path, follow=True, brief=True):
            viewer.handle(event)
    finally:
        viewer.close()
    entry = catalog.entry(path)
    patience = time.monotonic() + _REPORT_S
    while entry.verdict is None and is_under_way(path) and time.monotonic() < patience:
        # Its report is being written.
        time.sleep(_POLL_S)
        entry = catalog.entry(path)
    lines: list[Text | None] = [entry.verdict, entry.manifest.error_text]
    if entry.state == catalog.KILLED:
        # Nobody holds the lock of the run, and nothing says that it has ended.
        lines.append(message("watch-died", run=Name(str(path))))
    if any((path / name).exists() for name in _REPORTS):
        lines.append(message("watch-report", run=Name(str(path))))
    console.output().print("\n".join(i18n.text(x, lang) for x in lines if x is not None), markup=False, soft_wrap=True)
    return EXIT_WITH_CAVEATS if entry.state == catalog.KILLED else entry.manifest.exit_code or EXIT_OK


def _only_one(runs: Path) -> Path:
    """Return the run under way in a folder. Raise UsageError if there is none, or more than one."""
    if not runs.is_dir():
        raise UsageError(msg("error-no-folder", folder=runs), msg("remedy-watch-none"))
    found = catalog.running(runs)
    if not found:
        raise UsageError(msg("error-watch-none", folder=runs), msg("remedy-watch-none"))
    if len(found) > 1:
        names = ", ".join(str(p) for p in found)
        raise UsageError(msg("error-watch-several", folder=runs), msg("remedy-watch-several", runs=names))
    return found[0]
