"""Operating system accounts that run the server.

PostgreSQL refuses to run as root, so root runs it under an unprivileged account.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno import _core
from pgdyno.errors import ClusterError, LocalError, msg
from pgdyno.interrupt import signals_held

#: Accounts that exist on most systems and may do nothing; the first that exists is used.
CANDIDATES = ("postgres", "nobody")
#: Names another one.
VARIABLE = "PGDYNO_OS_USER"


@dataclass(frozen=True)
class Account:
    """An operating system account."""

    name: str
    uid: int
    gid: int
    #: Whether it is another than ours, so that files must be handed over to it.
    other: bool

    def popen(self) -> dict[str, Any]:
        """Arguments that make subprocess run a program as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.other else {}

    def own(self, path: Path) -> None:
        """Hands a file or folder over; a link itself, not what it leads to."""
        if self.other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    @contextmanager
    def rights(self) -> Iterator[None]:
        """Run the block with the account's file access rights instead of root's, in this thread.

        The thread opens, creates and removes files with these rights. The reason is that below a folder of the account
        any name may be a link, created at any moment. Programs are not started inside the block.
        """
        before = None
        try:
            if self.other:
                with signals_held():
                    before = _core.thread_rights(self.uid, self.gid, [])
            yield
        finally:
            if before is not None:
                with signals_held():
                    _core.thread_rights(*before)

    def refuse_if_out_of_reach(self, folder: Path) -> None:
        """Raise LocalError if the account cannot reach a folder in which its server is to work."""
        try:
            with self.rights():
                (folder / ".").stat()
        except OSError as e:
            raise LocalError(
                msg("error-account-which-runs-server-cannot", name=self.name, folder=folder, strerror=e.strerror),
                msg("remedy-name-folder-can-get-tmpdir", variable=VARIABLE),
            ) from e

    def can_run(self, program: Path) -> bool:
        """Return True if the account can reach and run a program."""
        try:
            done = subprocess.run([program, "--version"], capture_output=True, timeout=20, check=False, **self.popen())
        except BlockingIOError as e:
            raise ClusterError(
                msg("error-account-cannot-start-process-many", name=self.name),
                msg("remedy-raise-ulimit-u-container-pids"),
            ) from e
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0


def owner_of(folder: Path) -> Account:
    """Return the account that owns a folder; root works in the folder under this account.

    Raise OSError if the status of the folder cannot be read.
    """
    status = folder.stat()
    ours = os.geteuid()
    other = ours == 0 and status.st_uid != 0
    try:
        # Not the folder's: that may be root's group.
        group = pwd.getpwuid(status.st_uid).pw_gid
    except KeyError:
        group = status.st_gid or status.st_uid
    return Account(_entry(status.st_uid), status.st_uid, group if other else os.getegid(), other=other)


def server_account() -> Account:
    """Return the account that runs pgdyno's servers: the current account, unless that is root."""
    if os.geteuid() != 0:
        entry = _entry(os.geteuid())
        return Account(entry, os.geteuid(), os.getegid(), other=False)
    configured = os.environ.get(VARIABLE)
    for name in (configured,) if configured else CANDIDATES:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        if found.pw_uid == 0:
            break
        return Account(found.pw_name, found.pw_uid, found.pw_gid, other=True)
    raise ClusterError(
        msg("error-no-unprivileged-account-run-postgresql", value=configured or " and ".join(CANDIDATES)),
        msg("remedy-create-one-name-name-postgresql", variable=VARIABLE),
    )


def _entry(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
