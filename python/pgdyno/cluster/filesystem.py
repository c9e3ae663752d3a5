"""A file system for the length of a run: in a file, mounted through a loop device. Only root may."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from pgdyno.cluster.scratch import Scratch
from pgdyno.errors import LocalError, RefusedError, msg

_PACKAGES = {"xfs": "xfsprogs", "btrfs": "btrfs-progs", "ext4": "e2fsprogs"}


class LoopFileSystem:
    """Made, mounted, unmounted, removed. Use as a context manager."""

    def __init__(self, kind: str, size: int, *, mkfs: list[str], mount: str, parent: Path | None = None) -> None:
        self._kind = kind
        self._size = size
        self._mkfs = mkfs
        self._mount = mount
        self._parent = parent
        self._scratch: Scratch | None = None
        self._mounted = False

    @property
    def path(self) -> Path:
        """Mount point of the file system."""
        assert self._scratch is not None
        return self._scratch.path / "mount"

    def __enter__(self) -> LoopFileSystem:
        if os.geteuid() != 0:
            raise RefusedError(
                msg("error-file-system-type-can-be", kind=self._kind),
                msg("remedy-run-root-or-make-two"),
            )
        program = shutil.which(f"mkfs.{self._kind}")
        if program is None:
            raise LocalError(
                msg("error-mkfs-was-not-found", kind=self._kind),
                msg("remedy-install-apt-get-install", packages=_PACKAGES[self._kind]),
            )
        self._scratch = Scratch(self._parent)
        try:
            image = self._scratch.path / "image"
            fd = os.open(image, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "wb") as f:
                # As on a disk that is as large as it says: no block is found missing in the middle of a run.
                os.posix_fallocate(f.fileno(), 0, self._size)
            self.path.mkdir(mode=0o755)
            force = ["-F"] if self._kind == "ext4" else ["-f"]
            # In a folder where a name without a path is nobody's.
            _run([program, "-q", *force, *self._mkfs, str(image)], self.path)
            options = ",".join(filter(None, ["loop", "nosuid", "nodev", self._mount]))
            _run(["mount", "-t", self._kind, "-o", options, str(image), str(self.path)], self._scratch.path)
            self._mounted = True
            self.path.chmod(0o755)
        except OSError as e:
            self._remove()
            raise LocalError(
                msg("error-cannot-make-file-system-gb", value=f"{self._size / 1000000000.0:.1f}", strerror=e.strerror),
                msg("remedy-free-some-space-or-use"),
            ) from e
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _remove(self) -> None:
        if self._mounted:
            for _ in range(50):
                done = subprocess.run(["umount", str(self.path)], capture_output=True, check=False)
                if done.returncode == 0:
                    self._mounted = False
                    break
                time.sleep(0.1)
            else:
                # Somebody looks into it: it goes when they have gone.
                subprocess.run(["umount", "-l", str(self.path)], capture_output=True, check=False)
        if self._scratch is not None:
            with contextlib.suppress(OSError):
                self._scratch.remove()


def _run(argv: list[str], folder: Path) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        # Some print all of their help after it.
        reason = " ".join(done.stderr.partition("Usage:")[0].split())
        raise LocalError(
            msg("error-failed", name=Path(argv[0]).name, reason=reason), msg("remedy-what-kernel-here-can-mount")
        )
