"""Other pgdynos at work on this machine: two that load it at a time measure each other."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from pathlib import Path
from types import TracebackType

from pgdyno.message import Message, Name, message

#: Of a socket in the abstract namespace: it needs no file, anybody can see it, and it is gone with its process.
_NAME = "pgdyno-at-work-"
_LISTED = re.compile(rf"@{_NAME}(\d+)$", re.MULTILINE)
_SOCKETS = Path("/proc/net/unix")


class AtWork:
    """Sign that shows other pgdyno processes that this one is at work.

    Use it as a context manager. Only processes in the same network namespace see it, so those in a container do not.
    It works on Linux only.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    def __enter__(self) -> AtWork:
        with contextlib.suppress(OSError):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(f"\0{_NAME}{os.getpid()}")
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._socket is not None:
            self._socket.close()


def others_at_work() -> list[int]:
    """Return the process ids of other pgdyno processes that load this machine now."""
    try:
        listed = _SOCKETS.read_text(errors="replace")
    except OSError:
        return []
    return sorted({int(pid) for pid in _LISTED.findall(listed)} - {os.getpid()})


def words_for(processes: list[int]) -> Message:
    """Return the warning that names these processes."""
    return message("progress-others", processes=Name(", ".join(map(str, processes))))
