"""What the benches share: programs measured from outside, in turn, and medians of rounds."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "target" / "release"


class Sample(NamedTuple):
    """One round of one program."""

    tps: float
    user_us: float
    system_us: float

    @property
    def total_us(self) -> float:
        """CPU per transaction."""
        return self.user_us + self.system_us


def measure(argv: Sequence[object]) -> Sample:
    """Run a program whose output reports its number of transactions."""
    words = [str(a) for a in argv]
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_DUP2, write, 2)]
    pid = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
    os.close(write)
    with os.fdopen(read) as f:
        out = f.read()
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(words)}\n{out}")
    if processed := re.search(r"actually processed: (\d+)", out):
        n = int(processed[1])
        tps = float(re.search(r"tps = ([\d.]+)", out)[1])  # type: ignore[index]
    else:
        count, seconds = out.split()[:2]
        n = int(count)
        tps = n / float(seconds)
    return Sample(tps, usage.ru_utime / n * 1e6, usage.ru_stime / n * 1e6)


def peak_kib(argv: Sequence[object]) -> int:
    """Run a program and return its peak resident memory in KiB.

    The figure of wait4 would count this Python before the exec.
    """
    process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        if found := re.search(r"VmHWM:\s+(\d+) kB", status):
            peak = int(found[1])
        time.sleep(0.01)
    _, err = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{argv}\n{err.decode()}")
    return peak


def median(samples: Sequence[Sample], name: str) -> float:
    """Return the median of a figure."""
    return float(statistics.median(getattr(s, name) for s in samples))


def ratio(a: Sequence[Sample], b: Sequence[Sample], name: str) -> float:
    """Return the median of the ratios of the rounds."""
    return float(statistics.median(getattr(x, name) / getattr(y, name) for x, y in zip(a, b, strict=True)))
