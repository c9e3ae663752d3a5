"""Catalog of a folder: the runs in it, each with what came of it, without its trials being read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pgdyno.errors import (
    EXIT_OK,
    EXIT_SIGINT,
    EXIT_SIGTERM,
    EXIT_WITH_CAVEATS,
    PgdynoError,
    UsageError,
    msg,
)
from pgdyno.message import Text
from pgdyno.store import manifest, texts
from pgdyno.store.manifest import Manifest
from pgdyno.store.rundir import is_under_way

#: States of a run.
RUNNING, FINISHED, INTERRUPTED, FAILED, KILLED = STATES = ("running", "finished", "interrupted", "failed", "killed")


@dataclass(frozen=True)
class CatalogEntry:
    """A run in a folder."""

    path: Path
    manifest: Manifest
    state: str
    #: Trials that have begun.
    trials_begun: int

    @property
    def verdict(self) -> Text | None:
        """First sentence of its answer; None: it has none, or an earlier version has written it."""
        return texts.restored(self.manifest.verdict, self.manifest.verdict_message)


def entries(folder: Path) -> tuple[list[CatalogEntry], list[PgdynoError]]:
    """Return the runs in a folder, the newest first, and an error for each manifest that cannot be read.

    Raise UsageError if there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(msg("error-no-folder", folder=folder), msg("remedy-runs-runs-default"))
    found: list[CatalogEntry] = []
    unreadable: list[PgdynoError] = []
    for path in folder.iterdir():
        try:
            # Somebody else's folder may be closed to us; another program's manifest.json is no run.
            if (path / manifest.FILE).is_file() and (e := entry(path)).manifest.started_at:
                found.append(e)
        except PgdynoError as x:
            unreadable.append(x)
        except OSError as x:
            unreadable.append(UsageError(msg("error-cannot-be-read", path=path, reason=x.strerror or x)))
    found.sort(key=lambda e: (e.manifest.started_at, e.path.name), reverse=True)
    return found, unreadable


def entry(path: Path) -> CatalogEntry:
    """Return a run. Raise UsageError if its manifest cannot be read."""
    m = manifest.read(path, brief=True)
    return CatalogEntry(path, m, _state(path, m), _count_trials(path))


def running(folder: Path) -> list[Path]:
    """Return the runs in a folder that are under way, the newest first."""
    paths = [p for p in folder.glob(f"*/{manifest.FILE}") if is_under_way(p.parent)]
    return [p.parent for p in sorted(paths, key=lambda p: p.parent.name, reverse=True)]


def _state(path: Path, m: Manifest) -> str:
    if is_under_way(path):
        return RUNNING
    if m.ended_at is None:
        return KILLED
    if m.exit_code in (EXIT_SIGINT, EXIT_SIGTERM):
        return INTERRUPTED
    return FINISHED if m.exit_code in (None, EXIT_OK, EXIT_WITH_CAVEATS) and not m.error else FAILED


def _count_trials(path: Path) -> int:
    try:
        with os.scandir(path / "trials") as found:
            return sum(1 for x in found if x.is_dir())
    except OSError:
        return 0
