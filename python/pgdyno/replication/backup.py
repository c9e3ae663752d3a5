"""Base backups of a running server: pg_basebackup, with a slot that it makes."""

from __future__ import annotations

import contextlib
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.cluster.account import Account
from pgdyno.cluster.process import dies_with_us, environment
from pgdyno.errors import ClusterError, LocalError, msg


@dataclass(frozen=True)
class BaseBackup:
    """One standby's base backup."""

    member: str
    #: Of its data directory.
    bytes: int
    seconds: float

    @property
    def bytes_per_s(self) -> float:
        """Speed of the base backup in bytes per second."""
        return self.bytes / self.seconds


def pg_basebackup(
    program: Path,
    data: Path,
    conninfo: str,
    slot: str,
    account: Account,
    watch: Callable[[int], object],
    *,
    launch: Sequence[str] = (),
    more: Sequence[str] = (),
) -> None:
    """Take a base backup into the empty folder `data`.

    `watch` receives the number of bytes so far. `launch` is the command prefix that runs the program on a host under
    the account. `more` contains further arguments. Raise LocalError if no space is left, and ClusterError if
    pg_basebackup fails for another reason.
    """
    words: list[str | Path] = [
        *launch, program, "-D", data, "-d", conninfo, "-X", "stream", "-C", "-S", slot, "-c", "fast", "-R", "--no-sync",
        "--no-password", *more,
    ]  # fmt: skip
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        env=environment(),
        preexec_fn=None if launch else dies_with_us(),
        **({} if launch else account.popen()),
    )
    try:
        while True:
            try:
                _, said = process.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                watch(bytes_in(data))
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode != 0:
        reason = " ".join(said.split())
        kind = LocalError if "No space left" in reason else ClusterError
        raise kind(msg("error-base-backup-failed", slot=slot, reason=reason))


def quoted(value: str) -> str:
    """Quote a value for a connection string."""
    plain = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{plain}'"


def bytes_in(folder: Path) -> int:
    """Return the total bytes of all files below a folder."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total
