"""Folders that the server's account can reach: pytest's own are closed to others."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reachable() -> Iterator[Path]:
    """A folder, removed at the end."""
    path = Path(tempfile.mkdtemp(prefix="pgdyno-test-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
