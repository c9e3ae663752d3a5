"""Folders and files of the user: where they are, and safe writing."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def cache() -> Path:
    """Return the folder for files that pgdyno can create again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "pgdyno"


def data() -> Path:
    """Return the folder for files that are kept."""
    return Path(os.environ.get("XDG_DATA_HOME") or _home() / ".local" / "share") / "pgdyno"


def state() -> Path:
    """Return the folder for pgdyno's own notes."""
    return Path(os.environ.get("XDG_STATE_HOME") or _home() / ".local" / "state") / "pgdyno"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        # An account that the system does not know (containers). A folder in /tmp could be anybody's: there is none.
        return Path("/nonexistent")


def opened_to_append(path: Path) -> BinaryIO:
    """Open a private file to append to.

    Only its owner may read it, because a server's log holds what its users have typed. A symbolic link is never
    followed.
    """

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW, mode=0o600)

    return open(path, "ab", opener=opener)


@contextlib.contextmanager
def replacement(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` if the block succeeds.

    If the block fails, no file remains. The name of the new file cannot be guessed. In a folder that another user
    created, a link of that name could lead anywhere.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(fd, "wb") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_file(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Write a file whole: after a kill the old one exists, or the new one. Raise OSError."""
    with replacement(path, mode=mode) as f:
        f.write(text.encode("utf-8", "surrogateescape"))


def sync(folder: Path) -> None:
    """Brings a folder's entries to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file_system(path: Path) -> None:
    """Brings to the disk whatever the file system that a folder is on has still in memory. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):
        # Not Linux: all of them.
        os.sync()
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if libc.syncfs(fd) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    finally:
        os.close(fd)
