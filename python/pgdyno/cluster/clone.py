"""Copies a folder: by reference where the file system can (XFS, btrfs), byte by byte elsewhere."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from pgdyno import home
from pgdyno.cluster.account import Account

#: ioctl(destination, FICLONE, source): the destination shares the source's blocks until either is written.
_FICLONE = 0x40049409
_NO_REFLINK = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS}
_CHUNK = 8 << 20


@dataclass
class Copied:
    """Result of a copy."""

    files: int = 0
    #: Bytes that both share.
    shared_bytes: int = 0
    #: Bytes that were copied.
    copied_bytes: int = 0


def tree(
    source: Path,
    destination: Path,
    account: Account,
    watch: Callable[[int], object] = lambda _: None,
    owner: tuple[int, int] | None = None,
    *,
    exists: bool = False,
    online: bool = False,
    emptied: Collection[str] = (),
    left_out: Collection[str] = (),
    sync_once: bool = False,
) -> Copied:
    """Copy `source` to `destination` and sync the copy to disk.

    The destination must not exist; if `exists` is true, it must exist and be empty. The copy includes files, folders,
    modes and owners. If pgdyno runs as root, `owner` (uid and gid) replaces the owners of the source.

    `account` owns the source. The source is read with that account's rights, by descriptors, and never through a link.
    No other account may have access to the destination during the copy. `watch` receives the number of bytes copied so
    far. Raise OSError on failure, and also for a symbolic link, because its target would not be copied.

    `online` means that the server runs, so files may vanish during the copy. `emptied` names folders directly in
    `source` whose content is not copied. `left_out` names files directly in `source` that are not copied.

    `sync_once` syncs the whole file system once at the end instead of each file. For a thousand small files this takes
    a fraction of the time, if other processes have not written much.
    """
    copy = _Copy(account, watch, owner, online=online, emptied=emptied, left_out=left_out, sync=not sync_once)
    if not exists:
        destination.mkdir(mode=0o700)
    # It may lie where only we can go (a store of root's). What is opened must be the account's, wherever it leads.
    fd = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    if account.other and os.fstat(fd).st_uid != account.uid:
        os.close(fd)
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(source))
    copy.folder(fd, source, destination, is_top=True)
    if sync_once:
        home.sync_file_system(destination)
    return copy.done


class _Copy:
    def __init__(
        self,
        account: Account,
        watch: Callable[[int], object],
        owner: tuple[int, int] | None,
        *,
        online: bool,
        emptied: Collection[str],
        left_out: Collection[str],
        sync: bool,
    ) -> None:
        self.account = account
        self.online = online
        self.emptied = emptied
        self.left_out = left_out
        self.sync = sync
        self.watch = watch
        self.owner = owner
        self.done = Copied()

    def folder(self, source: int, name: Path, destination: Path, *, is_top: bool = False) -> None:
        """Copy the open folder `source` into an existing empty folder, and close `source`."""
        try:
            status = os.fstat(source)
            with os.scandir(source) as entries:
                found = sorted(entries, key=lambda e: e.name)
            for entry in found:
                path, to = name / entry.name, destination / entry.name
                if is_top and entry.name in self.left_out:
                    continue
                if is_top and entry.name in self.emptied:
                    to.mkdir(mode=0o700)
                    _like(to, status, self.owner)
                    continue
                if entry.is_symlink():
                    raise OSError(errno.ELOOP, "a symbolic link", str(path))
                is_folder = entry.is_dir(follow_symlinks=False)
                if not is_folder and not entry.is_file(follow_symlinks=False):
                    continue
                if self.online and entry.name.startswith("pgsql_tmp"):
                    continue
                try:
                    opened = self._opened(source, entry.name, os.O_DIRECTORY if is_folder else os.O_NONBLOCK)
                except FileNotFoundError:
                    if not self.online:
                        raise
                    continue
                if is_folder:
                    to.mkdir(mode=0o700)
                    self.folder(opened, path, to)
                else:
                    self._file(opened, path, to)
        finally:
            os.close(source)
        _like(destination, status, self.owner)
        if self.sync:
            home.sync(destination)

    def _opened(self, folder: int, name: str, flags: int) -> int:
        # Somebody might lay a link there between the look and the opening, of either kind.
        with self.account.rights():
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | flags, dir_fd=folder)

    def _file(self, source: int, name: Path, destination: Path) -> None:
        with os.fdopen(source, "rb") as read, destination.open("xb") as write:
            status = os.fstat(source)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(name))
            try:
                fcntl.ioctl(write.fileno(), _FICLONE, source)
                self.done.shared_bytes += status.st_size
            except OSError as e:
                if e.errno not in _NO_REFLINK:
                    raise
                shutil.copyfileobj(read, write, _CHUNK)
                write.flush()
                self.done.copied_bytes += status.st_size
            if self.sync:
                os.fsync(write.fileno())
        _like(destination, status, self.owner)
        self.done.files += 1
        self.watch(self.done.shared_bytes + self.done.copied_bytes)


def _like(path: Path, status: os.stat_result, owner: tuple[int, int] | None) -> None:
    path.chmod(status.st_mode & 0o7777)
    if os.geteuid() == 0:
        os.chown(path, *(owner or (status.st_uid, status.st_gid)))
