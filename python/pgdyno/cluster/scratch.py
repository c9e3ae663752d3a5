"""Folders of ours in the temporary folder: whoever is killed leaves one behind, and the next one removes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import psutil

from pgdyno.cluster import network
from pgdyno.cluster.account import Account
from pgdyno.cluster.registry import Entry
from pgdyno.cluster.removal import Made
from pgdyno.interrupt import signals_held

PREFIX = "pgdyno-cluster-"
#: In the register of temporary things.
KIND = "scratch"
#: Locked by the pgdyno that the folder belongs to, for as long as it lives.
OWNER = "owner"


class Scratch:
    """Temporary folder that is removed at the end, even if pgdyno is killed.

    In that case the next pgdyno process finds that the owner is dead and removes the folder. Use it as a context
    manager, or call `remove` or `keep`.
    """

    def __init__(self, parent: Path | None = None, prefix: str = PREFIX, account: Account | None = None) -> None:
        """Create the folder in `parent`, or in the temporary folder.

        If `account` is given, it owns the parent. The folder is then created and removed with that account's rights.
        """
        self._rights = account.rights if account is not None else contextlib.nullcontext
        with self._rights():
            sweep(parent, prefix)
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            # Other accounts must get through to what is theirs.
            self.path.chmod(0o755)
            self._made = Made.at(self.path)
            # The lock says that we are alive, whatever clocks and process numbers say; it goes with us. It is taken
            # before the file has its name: others must not find it unlocked.
            young = self.path / f"{OWNER}.young"
            self._owner = young.open("w", encoding="utf-8")
            fcntl.flock(self._owner, fcntl.LOCK_EX)
            young.rename(self.path / OWNER)
        self._entry = Entry(KIND, self._made)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        with signals_held():
            self.remove()

    def remove(self) -> None:
        """Remove the folder, the owner's file last.

        If the removal fails, a later call of `sweep` can remove what is left.
        """
        with self._rights():
            gone = self._made.remove(last=OWNER)
        if gone:
            self._entry.done()
        self._owner.close()

    def keep(self) -> None:
        """Leaves it for good."""
        (self.path / OWNER).unlink(missing_ok=True)
        self._entry.done()
        self._owner.close()


def sweep(parent: Path | None = None, prefix: str = PREFIX) -> None:
    """Remove what killed pgdyno processes left in `parent`; None means the temporary folder.

    Only folders of pgdyno's whose owner is dead are removed.
    """
    for folder in (parent or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            remove_abandoned(Made.at(folder))


def remove_abandoned(owned: Made) -> bool:
    """Remove a folder of pgdyno's whose owner is dead, with its running server and its mounts.

    Return True if the folder is gone, or if pgdyno must not remove it.
    """
    status = owned.path.lstat()
    if not owned.is_there() or status.st_uid != os.geteuid() or not (owned.path / OWNER).exists():
        return True
    try:
        owner = (owned.path / OWNER).open("r+", encoding="utf-8")
    except OSError:
        # Kept for good, or just being created.
        return False
    with owner:
        try:
            # Held until the end: of several processes that find the folder one removes it.
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        for folder in (owned.path, *owned.path.glob("standby*")):
            _kill_server(folder)
        if not network.remove_of(owned.path):
            return False
        _unmount(owned.path)
        return owned.remove(last=OWNER)


def _unmount(folder: Path) -> None:
    """Unmounts a file system that was made for a run."""
    mount = folder / "mount"
    if mount.is_mount():
        # What is below it is ours as well, and gone with it.
        for inside in mount.glob(f"{PREFIX}*"):
            _kill_server(inside)
        subprocess.run(["umount", "-l", str(mount)], capture_output=True, check=False)


def _kill_server(folder: Path) -> None:
    """Stop a server that still runs in `folder`, PostgreSQL or MariaDB."""
    for file, name, how in (
        ("data/postmaster.pid", "postgres", signal.SIGQUIT),
        ("socket/pid", "mariadbd", signal.SIGKILL),
    ):
        with contextlib.suppress(OSError, ValueError, IndexError, psutil.Error):
            process = psutil.Process(int((folder / file).read_text().splitlines()[0]))
            if process.name() == name and str(folder) in " ".join(process.cmdline()):
                process.send_signal(how)
                process.wait(5)
