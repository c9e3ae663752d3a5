"""Waits for conditions instead of times."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], bool], patience_s: float = 60.0) -> None:
    """Raises AssertionError where it does not hold in time."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
