"""Other major versions of PostgreSQL, as `version = "17"` in an experiment gets them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pgdyno.cluster import versions
from pgdyno.errors import PgdynoError

VERSIONS = (13, 14, 16, 17)


@cache
def programs(major: int) -> Path | None:
    """The folder with postgres and initdb of that version; None where there is none and none can be fetched."""
    try:
        return versions.programs(str(major))
    except PgdynoError:
        return None
