"""A server as small as an instance: a control group with limits on processors and memory. Only root may."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from pgdyno.errors import RefusedError, msg

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000


class Limits:
    """A control group of ours. Use as a context manager; processes are moved in by `hold`."""

    def __init__(self, cpus: float | None, memory_bytes: int | None) -> None:
        self._cpus = cpus
        self._memory = memory_bytes
        self._folders: list[Path] = []

    def __enter__(self) -> Limits:
        try:
            self._make()
        except OSError as e:
            self._remove()
            raise RefusedError(
                msg("error-no-control-group-could-be", strerror=e.strerror, filename=e.filename),
                msg("remedy-run-root-where-control-groups"),
            ) from e
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def hold(self, process_id: int) -> None:
        """Move a process and its children into the control group.

        Processes that they fork later start in the group.
        """
        for _ in range(2):
            # Twice: a child may have been forked while we moved its parent.
            members = [process_id]
            with contextlib.suppress(psutil.NoSuchProcess):
                members += [p.pid for p in psutil.Process(process_id).children(recursive=True)]
            for pid in members:
                for folder in self._folders:
                    # Gone meanwhile, both is possible.
                    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                        (folder / "cgroup.procs").write_text(str(pid))

    # ------------------------------------------------------------ inside

    def _make(self) -> None:
        name = f"pgdyno-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        if (_ROOT / "cgroup.controllers").exists():
            self._folders.append(_ROOT / name)
            (_ROOT / name).mkdir()
            for file, value in self._version_2():
                (_ROOT / name / file).write_text(value)
            return
        for controller, file, value in self._version_1():
            folder = _ROOT / controller / name
            if folder not in self._folders:
                folder.mkdir()
                self._folders.append(folder)
            (folder / file).write_text(value)

    def _version_2(self) -> Iterator[tuple[str, str]]:
        if self._cpus is not None:
            yield "cpu.max", f"{round(self._cpus * _PERIOD_US)} {_PERIOD_US}"
        if self._memory is not None:
            yield "memory.max", str(self._memory)

    def _version_1(self) -> Iterator[tuple[str, str, str]]:
        if self._cpus is not None:
            yield "cpu", "cpu.cfs_period_us", str(_PERIOD_US)
            yield "cpu", "cpu.cfs_quota_us", str(round(self._cpus * _PERIOD_US))
        if self._memory is not None:
            yield "memory", "memory.limit_in_bytes", str(self._memory)

    def _remove(self) -> None:
        for folder in self._folders:
            # It can be removed when its last process has ended.
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.02)
        self._folders = []


def sweep() -> None:
    """Remove the control groups of killed pgdyno processes.

    A group is removed if it contains no process and the process that created it no longer exists.
    """
    if os.geteuid() != 0:
        return
    for folder in [*_ROOT.glob("pgdyno-*"), *_ROOT.glob("*/pgdyno-*")]:
        with contextlib.suppress(OSError, ValueError, IndexError):
            # One that is alive may be about to put its server in.
            if not psutil.pid_exists(int(folder.name.split("-")[1])):
                folder.rmdir()
