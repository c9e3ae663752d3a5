"""What the hostile calls share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that the server's account can reach."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
