"""Removes what pgdynos that were killed have left, of every kind."""

from __future__ import annotations

import contextlib
from pathlib import Path

from pgdyno.cluster import managed, registry, scratch
from pgdyno.cluster.account import owner_of
from pgdyno.cluster.registry import Leftover
from pgdyno.errors import PgdynoError


def sweep() -> list[Path]:
    """Remove the leftovers of killed pgdyno processes and return the folders removed.

    What cannot be removed now stays in the register for the next call.
    """
    gone: list[Path] = []

    def remove(left: Leftover) -> bool:
        with contextlib.suppress(OSError, PgdynoError), owner_of(left.owned.path).rights():
            if not _remove(left):
                return False
            if not left.owned.is_there():
                gone.append(left.owned.path)
            return True
        return False

    registry.sweep(remove)
    return gone


def _remove(left: Leftover) -> bool:
    if left.kind == scratch.KIND:
        return scratch.remove_abandoned(left.owned)
    if left.kind == managed.KIND:
        return managed.remove_abandoned(left.owned, existed=left.existed)
    return left.kind == registry.FOLDER and left.owned.remove(last=left.last)
