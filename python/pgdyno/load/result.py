"""Result of loading a dataset."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

#: The phase in which TPC-C's tables are checked.
CHECK = "check"


@dataclass
class Loaded:
    """Rows, bytes, and how long each phase took."""

    method: str
    rows: int
    #: Of heaps, keys and other indexes, as computed beforehand.
    dataset_bytes: int
    #: Sent over connections, or written to files.
    moved_bytes: int = 0
    connections: int = 0
    threads: int = 0
    phases_s: dict[str, float] = field(default_factory=dict)

    @property
    def total_s(self) -> float:
        """Seconds of loading. Checks of what was loaded are no part of it."""
        return sum(seconds for phase, seconds in self.phases_s.items() if phase != CHECK)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the time of the block as that of a phase; the same phase may occur several times."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.phases_s[name] = self.phases_s.get(name, 0.0) + time.monotonic() - start


@dataclass(frozen=True)
class Progress:
    """Bytes of a phase that were written, `at_s` seconds after the load began."""

    at_s: float
    phase: str
    done_bytes: int
