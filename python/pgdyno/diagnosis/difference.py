"""Why two configurations differ: where the time of a transaction went, and what it used. Formulas: docs/math.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Part

#: A change that is told: of the transaction's time in A; of what it uses.
_SHARE, _USE = 0.05, 0.1
#: So many are told.
_MOST = 3


@dataclass(frozen=True)
class Moved:
    """The time of a transaction in one state, in nanoseconds, in A and in B."""

    state: str
    a_ns: float
    b_ns: float

    @property
    def change_ns(self) -> float:
        """From A to B."""
        return self.b_ns - self.a_ns


@dataclass(frozen=True)
class Used:
    """What a transaction uses, in A and in B."""

    what: str
    unit: str
    a: float
    b: float


#: By name: the part of the clients' time.
_STATES: dict[str, Callable[[Evidence], Part | None]] = {
    "on the processors": lambda e: e.running,
    "network and client": lambda e: e.outside,
}
_USES = (("WAL", "bytes", "wal_bytes_per_s"), ("whole pages in WAL", "", "wal_full_pages_per_s"),
         ("pages missed", "", "blocks_read_per_s"), ("temporary files", "bytes", "temp_bytes_per_s"))  # fmt: skip


def moved(a: Evidence, b: Evidence) -> list[Moved]:
    """States in which a transaction spends more or less time in B than in A, the largest change first: those whose
    intervals (95% each side, as independent) leave no doubt of the direction.
    """
    of = {name: (part(a), part(b)) for name, part in _STATES.items()}
    for name in sorted({*a.waits, *b.waits}):
        of[name] = (a.waiting(name), b.waiting(name))
    found = []
    for name, (one, other) in of.items():
        if one is None or other is None:
            continue
        x, y = one.mean * a.latency_ns, other.mean * b.latency_ns
        error = math.hypot((one.high - one.low) / 2 * a.latency_ns, (other.high - other.low) / 2 * b.latency_ns)
        if abs(y - x) > max(error, _SHARE * a.latency_ns):
            found.append(Moved(name, x, y))
    return sorted(found, key=lambda m: -abs(m.change_ns))[:_MOST]


def used(a: Evidence, b: Evidence) -> list[Used]:
    """What a transaction uses more or less of in B than in A."""
    found = []
    for what, unit, column in _USES:
        x, y = a.per_transaction(column), b.per_transaction(column)
        if x is None or y is None or max(x, y) < 0.01:
            continue
        if abs(y - x) > _USE * max(x, y):
            found.append(Used(what, unit, x, y))
    return found
