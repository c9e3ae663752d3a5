"""Who runs the server: PostgreSQL refuses to run as root, so root lends it an unprivileged account."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.errors import ClusterError

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

    @property
    def ids(self) -> tuple[int, int] | None:
        """User and group that files must be handed to; None when they are ours as they are."""
        return (self.uid, self.gid) if self.other else None

    def can_run(self, program: Path) -> bool:
        """Whether the account can reach and run a program."""
        try:
            done = subprocess.run([program, "--version"], capture_output=True, timeout=20, check=False, **self.popen())
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0


def server_account() -> Account:
    """The account for our servers: ours, unless we are root."""
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
        f"no unprivileged account to run PostgreSQL as: {configured or ' and '.join(CANDIDATES)} cannot be used",
        f"Create one and name it: {VARIABLE}=NAME. PostgreSQL refuses to run as root.",
    )


def _entry(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
