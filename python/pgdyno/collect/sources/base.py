"""Common parts of all sources."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from typing import Protocol

#: Of a sample: numbers and names.
Row = dict[str, float | str]


class Source(Protocol):
    """Something that is sampled."""

    #: Of its file in the run directory.
    name: str
    #: Seconds between samples, at least; 0: as often as the collection samples.
    period_s: float

    def rows(self, seconds: float) -> list[Row]:
        """Return the rows for the last `seconds` seconds.

        The first call only sets the starting point. Raise OSError, ValueError (a file has an unexpected format) or
        psycopg.Error if the sample cannot be taken. That sample is then a gap.
        """


class Differences:
    """Counters that only grow, as what they grew by; by key."""

    def __init__(self) -> None:
        self._last: dict[Hashable, Mapping[str, float]] = {}

    def of(self, key: Hashable, now: Mapping[str, float]) -> dict[str, float] | None:
        """Return the increase of the counters of `key` since the last call, or None.

        None means that this is the first call, or that the counters were reset.
        """
        before, self._last[key] = self._last.get(key), now
        if before is None or any(now[n] < before.get(n, 0.0) for n in now):
            return None
        return {n: value - before.get(n, 0.0) for n, value in now.items()}

    def only(self, keys: set[Hashable]) -> None:
        """Forgets all others."""
        self._last = {k: v for k, v in self._last.items() if k in keys}


def slurp(path: str) -> bytes:
    """Read a whole kernel file at once.

    Raise OSError if the file cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Longer ones are read to their end: /proc gives a page at a time.
        found = os.read(fd, 1 << 16)
        while len(found) % 4096 == 0 and (more := os.read(fd, 1 << 16)):
            found += more
        return found
    finally:
        os.close(fd)
