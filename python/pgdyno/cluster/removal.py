"""Removal of folders: of what pgdyno has made, and of nothing else; never through a link.

A folder that this process has made it knows by device and inode: whatever stands in its place by now stays. What a
process before it has made is known by a file of pgdyno's in it, which whoever calls this has read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import time
from dataclasses import dataclass
from pathlib import Path

#: How often a folder is emptied in which something still appears, and how long between.
_PASSES, _PAUSE_S = 10, 0.02


@dataclass(frozen=True)
class Made:
    """A folder that pgdyno has made, as it was then."""

    path: Path
    device: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> Made:
        """Return the folder that exists at `path` now.

        Raise OSError if it cannot be read, is a link, or is not a folder.
        """
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(f"{path} is not a folder")
        return cls(path, status.st_dev, status.st_ino)

    @classmethod
    def new(cls, path: Path, mode: int = 0o700) -> Made:
        """Create a folder.

        Raise OSError if that fails, or if something already exists at `path`.
        """
        path.mkdir(mode=mode)
        return cls.at(path)

    def moved(self, path: Path) -> Made:
        """Rename the folder and return it under its new path."""
        self.path.rename(path)
        return Made(path, self.device, self.inode)

    def is_there(self) -> bool:
        """Return True if the folder still exists at its path."""
        try:
            status = self.path.lstat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == (self.device, self.inode)

    def remove(self, *, last: str = "") -> bool:
        """Remove the folder with its content and return True if it is gone.

        The file `last` is removed after everything else. If something else has replaced the folder, that stays.
        """
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        try:
            status = os.fstat(fd)
            if (status.st_dev, status.st_ino) != (self.device, self.inode):
                return False
            for _ in range(_PASSES):
                if not _emptied(fd, last):
                    return False
                if last:
                    _remove_entry(last, fd)
                try:
                    self.path.rmdir()
                    return True
                except OSError as e:
                    # A file that was written between the last look and this.
                    if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        return False
            return False
        finally:
            os.close(fd)


def _emptied(folder: int, last: str) -> bool:
    """Remove everything in a folder except `last`; return True if nothing else is left.

    A program that is about to end may still write to the folder.
    """
    for _ in range(_PASSES):
        # By its descriptor, not by its path.
        if not (names := set(os.listdir(folder)) - {last}):
            return True
        for name in names:
            _remove_entry(name, folder)
        if set(os.listdir(folder)) - {last}:
            time.sleep(_PAUSE_S)
    return not set(os.listdir(folder)) - {last}


def _remove_entry(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
