"""`pgdyno runs`: the runs in a folder."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text as Line

from pgdyno import i18n
from pgdyno.cli import console
from pgdyno.cli.tables import Table
from pgdyno.errors import UsageError, msg
from pgdyno.message import Name, counted, message
from pgdyno.store import catalog
from pgdyno.store.catalog import CatalogEntry

#: What runs are sorted by.
ORDERS = ("date", "experiment", "state")


@dataclass(frozen=True, kw_only=True)
class RunsRequest:
    """Which runs of a folder are listed, and how."""

    folder: Path
    experiment: str | None
    tags: list[str]
    state: str | None
    server: str | None
    sort: str
    lang: str
    json_output: bool


def main(r: RunsRequest) -> int:
    """List the runs and return the exit code."""
    for value, known in ((r.state, catalog.STATES), (r.sort, ORDERS)):
        if value is not None and value not in known:
            raise UsageError(msg("error-no-choice", value=value), msg("remedy-choices", choices=", ".join(known)))
    every, unreadable = catalog.entries(r.folder)
    found = [e for e in every if _is_wanted(e, r)]
    if r.sort == "experiment":
        found.sort(key=lambda e: e.manifest.name)
    elif r.sort == "state":
        found.sort(key=lambda e: catalog.STATES.index(e.state))
    if r.json_output:
        sys.stdout.write(json.dumps([_to_json(e) for e in found], indent=2) + "\n")
    elif found:
        _show(found, r.lang)
    else:
        what = "runs-none-match" if every else "error-there-no-run"
        sys.stdout.write(i18n.text(message(what, folder=Name(str(r.folder))), r.lang) + "\n")
    for x in unreadable:
        console.errors().print(f"pgdyno: {i18n.text(x.cause, r.lang)}", markup=False, soft_wrap=True)
    return 0


def _is_wanted(e: CatalogEntry, r: RunsRequest) -> bool:
    return (
        (r.experiment is None or e.manifest.name == r.experiment)
        and set(r.tags) <= set(e.manifest.tags)
        and (r.state is None or e.state == r.state)
        and (r.server is None or r.server.lower() in _server(e).lower())
    )


def _server(e: CatalogEntry) -> str:
    """Return the version of the server and, of one that pgdyno did not start, its address."""
    parts = [e.manifest.server.version or "", "" if e.manifest.managed else (e.manifest.target.host or "")]
    return " ".join(filter(None, parts))


def _show(found: list[CatalogEntry], lang: str) -> None:
    say = i18n.writer(lang)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(say(message("column-run")), no_wrap=True)
    table.add_column(say(message("column-state")), no_wrap=True)
    table.add_column(say(message("column-trials")), no_wrap=True)
    table.add_column(say(message("column-verdict")))
    for e in found:
        m = e.manifest
        named = [*(f"#{tag}" for tag in m.tags), *([m.remark] if m.remark else [])]
        verdict = [" ".join(named)] if named else []
        verdict += [say(e.verdict)] if e.verdict is not None else []
        if m.error_text is not None:
            verdict.append(say(m.error_text))
        trials = f"{e.trials_begun}/{m.trials}" if m.trials and m.trials != e.trials_begun else f"{e.trials_begun}"
        row = (e.path.name, say(message(f"state-of-run-{e.state}")), trials, "\n".join(verdict) or "–")
        # As it is: neither markup nor emoji.
        table.add_row(*map(Line, row))
    out = console.output()
    out.print(table, markup=False)
    out.print(say(counted("n-runs", len(found))), markup=False)


def _to_json(e: CatalogEntry) -> dict[str, Any]:
    m = e.manifest
    return {
        "path": str(e.path),
        "experiment": m.name,
        "started_at": m.started_at,
        "ended_at": m.ended_at,
        "state": e.state,
        "exit_code": m.exit_code,
        "trials_begun": e.trials_begun,
        "trials_planned": m.trials,
        "tags": m.tags,
        "note": m.remark,
        "server": _server(e),
        "verdict": None if e.verdict is None else i18n.text(e.verdict),
        "error": m.error or None,
    }
