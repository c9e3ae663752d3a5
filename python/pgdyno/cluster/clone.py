"""Copies a folder: by reference where the file system can (XFS, btrfs), byte by byte elsewhere."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pgdyno import home

#: ioctl(destination, FICLONE, source): the destination shares the source's blocks until either is written.
_FICLONE = 0x40049409
_NO_REFLINK = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS}
_CHUNK = 8 << 20


@dataclass
class Copied:
    """What a copy came to."""

    files: int = 0
    #: Bytes that both share.
    shared_bytes: int = 0
    #: Bytes that were copied.
    copied_bytes: int = 0


def tree(
    source: Path,
    destination: Path,
    watch: Callable[[int], object] = lambda _: None,
    owner: tuple[int, int] | None = None,
    *,
    exists: bool = False,
) -> Copied:
    """Copies `source` to `destination`, which must not exist, or be empty where it `exists`: files,
    folders, modes and owners (or `owner`, as uid and gid, where we are root); syncs all of it.

    `watch` is told of bytes. Raises OSError, also of a symbolic link: what is behind it would not be copied.
    """
    done = Copied()
    if not exists:
        destination.mkdir(mode=0o700)
    _folder(source, destination, done, watch, owner)
    return done


def _folder(
    source: Path, destination: Path, done: Copied, watch: Callable[[int], object], owner: tuple[int, int] | None
) -> None:
    """Into a folder that is there, and empty."""
    status = source.stat()
    with os.scandir(source) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            to = destination / entry.name
            if entry.is_symlink():
                raise OSError(errno.ELOOP, "a symbolic link", entry.path)
            if entry.is_dir():
                to.mkdir(mode=0o700)
                _folder(Path(entry.path), to, done, watch, owner)
            elif entry.is_file():
                _file(Path(entry.path), to, done, owner)
                watch(done.shared_bytes + done.copied_bytes)
    _like(destination, status, owner)
    home.sync(destination)


def _file(source: Path, destination: Path, done: Copied, owner: tuple[int, int] | None) -> None:
    # Somebody might lay a link there between the look and the opening.
    with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb") as read, destination.open("xb") as write:
        status = os.fstat(read.fileno())
        try:
            fcntl.ioctl(write.fileno(), _FICLONE, read.fileno())
            done.shared_bytes += status.st_size
        except OSError as e:
            if e.errno not in _NO_REFLINK:
                raise
            shutil.copyfileobj(read, write, _CHUNK)
            write.flush()
            done.copied_bytes += status.st_size
        os.fsync(write.fileno())
    _like(destination, status, owner)
    done.files += 1


def _like(path: Path, status: os.stat_result, owner: tuple[int, int] | None) -> None:
    path.chmod(status.st_mode & 0o7777)
    if os.geteuid() == 0:
        os.chown(path, *(owner or (status.st_uid, status.st_gid)))
