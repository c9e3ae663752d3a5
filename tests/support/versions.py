"""Other major versions of PostgreSQL, as `version = "17"` in an experiment gets them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from pgdyno.cluster import versions
from pgdyno.errors import PgdynoError

from tests.support.server import DEBIAN_15

VERSIONS = (13, 14, 16, 17)


@cache
def programs(major: int) -> Path | None:
    """The folder with postgres and initdb of that version; None where there is none and none can be fetched."""
    if major == 15:
        return DEBIAN_15 if (DEBIAN_15 / "postgres").exists() else None
    try:
        return versions.programs(str(major))
    except PgdynoError:
        return None


def folder_of(major: int) -> Path | None:
    """The folder for a test's server: None is the embedded 18. The test is skipped where there is no such version."""
    if major == 18:
        return None
    found = programs(major)
    if found is None:
        pytest.skip(f"PostgreSQL {major} is neither installed nor can be fetched")
    return found
