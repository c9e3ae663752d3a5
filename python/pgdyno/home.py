"""The user's own folders and files: where they are, whose they are, and that they are on the disk."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import BinaryIO


def cache() -> Path:
    """What can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "pgdyno"


def data() -> Path:
    """What is kept."""
    return Path(os.environ.get("XDG_DATA_HOME") or _home() / ".local" / "share") / "pgdyno"


def state() -> Path:
    """What pgdyno notes for itself."""
    return Path(os.environ.get("XDG_STATE_HOME") or _home() / ".local" / "state") / "pgdyno"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        # An account that the system does not know (containers). A folder in /tmp could be anybody's: there is none.
        return Path("/nonexistent")


def opened_to_append(path: Path) -> BinaryIO:
    """A file of ours alone, to append to: a server's log holds what its users have typed. Never through a link."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW, mode=0o600)

    return open(path, "ab", opener=opener)


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
