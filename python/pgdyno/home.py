"""Where the user's own folders are."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """What can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "pgdyno"


def data() -> Path:
    """What is kept."""
    return Path(os.environ.get("XDG_DATA_HOME") or _home() / ".local" / "share") / "pgdyno"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        # An account that the system does not know (containers). A folder in /tmp could be anybody's: there is none.
        return Path("/nonexistent")
