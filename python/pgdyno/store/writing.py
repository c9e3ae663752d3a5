"""Writing of files, so that an error names its remedy and a kill leaves the old file or the new one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pgdyno import home
from pgdyno.errors import LocalError, msg


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert errors of the operating system to errors that name a remedy."""
    try:
        yield
    except OSError as e:
        remedies = {errno.ENOSPC: "remedy-free-space", errno.ENOENT: "remedy-create-folder"}
        remedy = msg(remedies.get(e.errno or 0, "remedy-check-permissions"))
        raise LocalError(msg("error-cannot-write", path=path, value=e.strerror or e), remedy) from e


def refuse_unwritable(path: Path) -> None:
    """Raise LocalError if a file cannot be written there, before the work that it would hold."""
    folder = path.parent
    with writing(path):
        folder.stat()
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def replace_file(path: Path, text: str) -> None:
    """Write a file whole: after a kill the old one exists, or the new one."""
    with writing(path):
        home.replace_file(path, text)


def now_text() -> str:
    """Return the current time, RFC 3339 UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
