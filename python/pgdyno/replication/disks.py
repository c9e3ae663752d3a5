"""Disks of members' own: a file system in a file, mounted at the member's folder.

Such a disk can be filled without filling the disk of this machine. Only root can use these disks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from pgdyno.errors import LocalError, msg

#: XFS refuses smaller ones.
LEAST_BYTES = 320 << 20
_FILLER = "pgdyno-filler"


def make(folder: Path, size: int) -> None:
    """Create a disk of `size` bytes and mount it at `folder`.

    A disk that exists already is not created again. Raise LocalError if it cannot be created or mounted.
    """
    image = _image(folder)
    if not image.exists():
        program, kind = shutil.which("mkfs.xfs"), "xfs"
        if program is None:
            program, kind = shutil.which("mkfs.ext4"), "ext4"
        if program is None:
            raise LocalError(msg("error-neither-mkfs-xfs-nor-mkfs"), msg("remedy-install-apt-get-install-xfsprogs"))
        part = image.with_suffix(".part")
        try:
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "wb") as f:
                # All that a member has is in it: nobody else's to read.
                os.fchmod(fd, 0o600)
                # Its blocks are there: what gets full is the member's disk, not this machine's.
                os.posix_fallocate(f.fileno(), 0, size)
        except OSError as e:
            part.unlink(missing_ok=True)
            raise LocalError(f"{part}: {e.strerror}", msg("remedy-free-some-space-or-use-4")) from e
        options = ["-q", "-f"] if kind == "xfs" else ["-q", "-F", "-m", "0"]
        _run([program, *options, part])
        part.rename(image)
    mount(folder)
    # ext4's; a member's folder is to be empty.
    with contextlib.suppress(OSError):
        (folder / "lost+found").rmdir()


def mount(folder: Path) -> None:
    """Mounts it, unless it is mounted, or there is none. Raises LocalError."""
    if _image(folder).exists() and not folder.is_mount():
        folder.mkdir(mode=0o755, exist_ok=True)
        kind = subprocess.run(["blkid", "-o", "value", "-s", "TYPE", _image(folder)], capture_output=True, check=False)
        # XFS gives files more than they ask for, and a full disk would not be noticed.
        own = ",allocsize=4k" if kind.stdout.strip() == b"xfs" else ""
        _run(["mount", "-o", f"loop,noatime,nosuid,nodev{own}", _image(folder), folder])
        folder.chmod(0o755)


def unmount(folder: Path) -> None:
    """Unmounts it, when nobody uses it any more. Raises LocalError."""
    for _ in range(50):
        if not folder.is_mount():
            return
        done = subprocess.run(["umount", folder], capture_output=True, text=True, check=False)
        if done.returncode:
            time.sleep(0.1)
    raise LocalError(
        msg("error-cannot-be-unmounted", folder=folder, stderr=done.stderr.strip()),
        msg("remedy-who-there-fuser-vm-shows"),
    )


def remove(folder: Path) -> None:
    """Unmounts and removes it, a half-made one too."""
    _image(folder).with_suffix(".part").unlink(missing_ok=True)
    if _image(folder).exists():
        unmount(folder)
        _image(folder).unlink()


def fill(folder: Path) -> int:
    """Leaves no room; returns the bytes that it took. Raises LocalError where the folder is no disk of its own."""
    if not folder.is_mount():
        raise LocalError(msg("error-no-disk-own", folder=folder), msg("remedy-would-fill-this-machine-s"))
    fd = os.open(folder / _FILLER, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with contextlib.suppress(OSError):
            os.posix_fallocate(fd, 0, os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize * 9 // 10)
        os.lseek(fd, 0, os.SEEK_END)
        # The rest is written: what could be set aside is less than what there is.
        for chunk in (1 << 20, 1 << 16, 4096):
            with contextlib.suppress(OSError):
                while os.write(fd, bytes(chunk)):
                    pass
        with contextlib.suppress(OSError):
            os.fsync(fd)
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def is_filled(folder: Path) -> bool:
    """Return True if `fill` has filled the disk and the disk is still full."""
    return folder.is_mount() and (folder / _FILLER).exists()


def empty(folder: Path) -> None:
    """There is room again."""
    if folder.is_mount():
        (folder / _FILLER).unlink(missing_ok=True)


def _image(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.disk")


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode:
        reason = " ".join(done.stderr.partition("Usage:")[0].split())
        raise LocalError(
            msg("error-failed", name=Path(command[0]).name, reason=reason), msg("remedy-leave-disk-out-or-use")
        )
