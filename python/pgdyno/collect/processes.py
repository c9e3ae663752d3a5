"""Resource usage of the processes of a server on this machine."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
#: In /proc/PID/stat behind the command: utime, stime, and the same of children that have ended and were waited for.
_TIMES = slice(11, 15)
_NS_A_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def cpu_ns(postmaster: int) -> int | None:
    """Return the CPU time in ns that a server has used since its start, or None if it cannot be read.

    The sum covers the postmaster, its children, and the children that have ended. It grows in steps of a clock tick,
    usually 10 ms.
    """
    try:
        ticks = sum(_ticks(postmaster))
        children = (_PROC / str(postmaster) / "task" / str(postmaster) / "children").read_text().split()
    except (OSError, ValueError):
        return None
    for child in children:
        try:
            ticks += sum(_ticks(int(child)))
        except (OSError, ValueError):
            # It has ended meanwhile: what it used is the postmaster's from now on.
            continue
    return ticks * _NS_A_TICK


def private_bytes(postmaster: int) -> int | None:
    """Return the private memory of the server's processes now, in bytes, or None if it cannot be read.

    The sum covers the postmaster and its children, without shared buffers.
    """
    try:
        children = (_PROC / str(postmaster) / "task" / str(postmaster) / "children").read_text().split()
        total = _anonymous(postmaster)
    except (OSError, ValueError):
        return None
    for child in children:
        try:
            total += _anonymous(int(child))
        except (OSError, ValueError):
            continue
    return total


def _anonymous(process: int) -> int:
    for line in (_PROC / str(process) / "status").read_text(errors="replace").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def _ticks(process: int) -> list[int]:
    text = (_PROC / str(process) / "stat").read_text(errors="replace")
    # The command may have blanks and parentheses in it.
    return [int(x) for x in text.rpartition(")")[2].split()[_TIMES]]
