"""Ctrl-C and SIGTERM as exceptions, so that everything is wound up on the way out."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM (or SIGHUP) arrived."""


@contextmanager
def signals_raise() -> Iterator[None]:
    """Within it SIGTERM and SIGHUP raise Terminated, as SIGINT raises KeyboardInterrupt.

    Only the first counts: an impatient second Ctrl-C must not break the taking down of a cluster.
    """
    seen = False

    def on_signal(number: int, _: FrameType | None) -> None:
        nonlocal seen
        if seen:
            return
        seen = True
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, on_signal) for n in numbers}
    try:
        yield
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
