"""Register of temporary things.

Each thing has an entry as long as it exists. So the next command of any kind finds what a killed pgdyno process left,
wherever it lies.

An entry is a file in the user's own state folder, locked by the pgdyno process to which the thing belongs. Some
accounts have no such folder (no home). Then only the next call that works in the same place finds what is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pgdyno import home
from pgdyno.cluster.removal import Made

#: Of things that are removed as they are, with nothing to be ended or unmounted first.
FOLDER = "folder"
#: What pgdyno calls such folders.
_NAMES = re.compile(r"^pgsql_tmp_pgdyno|\.unfinished-")


@dataclass(frozen=True)
class Leftover:
    """Leftover of a killed pgdyno process: its kind, and the folder as it was created."""

    kind: str
    owned: Made
    #: The folder was there before; what was made is in it.
    existed: bool
    #: The file that is removed last.
    last: str


class Entry:
    """A temporary thing of ours, written down until it is `done`."""

    def __init__(self, kind: str, owned: Made, *, existed: bool = False, last: str = "") -> None:
        self._file: TextIO | None = None
        facts = {"kind": kind, "path": str(owned.path.absolute()), "device": owned.device, "inode": owned.inode}
        facts |= {"existed": existed, "last": last, "machine": os.uname().nodename}
        with contextlib.suppress(OSError):
            folder = _folder()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # It gets its name when it is locked and whole: others must not find it before.
            self._path, young = folder / f"{uuid.uuid4().hex}.json", folder / f"{uuid.uuid4().hex}.young"
            file = young.open("x", encoding="utf-8")
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.write(json.dumps(facts))
                file.flush()
                young.rename(self._path)
            except OSError:
                young.unlink(missing_ok=True)
                file.close()
                raise
            self._file = file

    def done(self) -> None:
        """Delete the entry, because the thing is gone or is to stay."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            self._file.close()
            self._file = None


def sweep(remove: Callable[[Leftover], bool]) -> None:
    """Call `remove` for each thing whose pgdyno process is dead.

    `remove` returns True if the thing is gone; otherwise the entry stays in the register. Entries that another account
    could have written are ignored, because root would remove what they name.
    """
    with contextlib.suppress(OSError):
        if not _is_ours_alone(_folder().lstat()):
            return
        for path in sorted([*_folder().glob("*.json"), *_folder().glob("*.young")]):
            with contextlib.suppress(OSError, ValueError):
                fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                with os.fdopen(fd, "r+", encoding="utf-8") as file:
                    status = os.fstat(fd)
                    if not stat.S_ISREG(status.st_mode) or not _is_ours_alone(status):
                        continue
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    leftover = _read(file) if path.suffix == ".json" else None
                    if leftover is None or not leftover.owned.is_there() or remove(leftover):
                        path.unlink(missing_ok=True)


def is_empty() -> bool:
    """Return True if there are no entries.

    This is the common case, in which no further check is necessary.
    """
    try:
        return not any(os.scandir(_folder()))
    except OSError:
        return True


def _folder() -> Path:
    return home.state() / "temporary"


def _is_ours_alone(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _read(file: TextIO) -> Leftover | None:
    """None where it is no entry. Raises ValueError where it is of another machine, which shares this home."""
    try:
        facts = json.load(file)
        path, last, kind = str(facts["path"]), str(facts["last"]), str(facts["kind"])
        owned = Made(Path(path), int(facts["device"]), int(facts["inode"]))
        elsewhere = facts["machine"] != os.uname().nodename
        if "\0" in path + last or (kind == FOLDER and not _NAMES.search(owned.path.name)):
            return None
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    if elsewhere:
        raise ValueError("of another machine")
    return Leftover(kind, owned, bool(facts["existed"]), last)
