"""Waits for conditions instead of times."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any


def wait_until(
    holds: Callable[[], object],
    patience_s: float = 60.0,
    *,
    process: subprocess.Popen[Any] | None = None,
    every_s: float = 0.02,
    why: Callable[[], str] = lambda: "waited in vain",
) -> None:
    """Wait until a condition holds. Raise AssertionError if it does not in time, or if the process ends first."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert process is None or process.poll() is None, f"ended with {process.returncode if process else None}"
        assert time.monotonic() < deadline, why()
        time.sleep(every_s)
