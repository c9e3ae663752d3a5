"""Reasons why two configurations differ: where the time of a transaction went, and which resources it used.

See docs/math.md for the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import Difference
from pgdyno.units import Share, Unit

#: States that are told.
_MOST = 4


@dataclass(frozen=True)
class Moved:
    """The time of a transaction in one state, in nanoseconds, in A and in B."""

    state: str
    a_ns: float
    b_ns: float

    @property
    def change_ns(self) -> float:
        """Change from A to B in ns."""
        return self.b_ns - self.a_ns


@dataclass(frozen=True)
class Used:
    """Resource usage of a transaction in A and in B."""

    what: str
    unit: Unit
    a: float
    b: float


#: By id (`state-...` of the catalogues): the share of the clients' time.
STATES: dict[str, Callable[[Observed], Share | None]] = {
    "cpu": lambda e: e.running,
    "outside": lambda e: e.outside,
}
#: By id (`use-...` of the catalogues): its unit, and what a transaction uses of it. WAL, CPU time and pages read are
#: figures of the table beside it, which counts the warm-up as well.
_USES: dict[str, tuple[Unit, Callable[[Observed], float | None]]] = {
    "whole-pages": ("", lambda e: e.per_transaction("wal_full_pages_per_s")),
    "whole-share": ("%", lambda e: whole_pages_share(e) if _writes_wal(e) else None),
    "pages-missed": ("", lambda e: e.per_transaction("blocks_read_per_s")),
    "device-read": ("bytes", lambda e: _device_use(e, "read_bytes_per_s")),
    "device-written": ("bytes", lambda e: _device_use(e, "write_bytes_per_s")),
    "device-requests": ("", lambda e: _device_use(e, "reads_per_s", "writes_per_s")),
    "temporary": ("bytes", lambda e: e.per_transaction("temp_bytes_per_s")),
}
_PAGE = 8192


def _writes_wal(e: Observed) -> bool:
    return (e.per_transaction("wal_bytes_per_s") or 0.0) >= Difference.BYTES


def whole_pages_share(e: Observed) -> float | None:
    """Return the share of the WAL that is full-page images, or None if it is unknown.

    The share ignores compression, so it is an upper bound.
    """
    pages, wal = e.per_transaction("wal_full_pages_per_s"), e.per_transaction("wal_bytes_per_s")
    return min(1.0, pages * _PAGE / wal) if pages is not None and wal else None


def _device_use(e: Observed, *columns: str) -> float | None:
    """Return the sum of columns of the busiest device, per transaction.

    None means that the device is not visible, or that both sides of a duet may use it. Writes of other programs to this
    device count as well.
    """
    if not e.tps or not e.busiest_device or e.is_duet:
        return None
    return sum(e.device(c) for c in columns) / e.tps


def moved(a: Observed, b: Observed) -> list[Moved]:
    """Return the states in which a transaction spends more or less time in B than in A, largest change first.

    Only states whose intervals leave no doubt about the direction are included. The intervals are 95% on each side,
    and the sides count as independent.
    """
    of = {name: (part(a), part(b)) for name, part in STATES.items()}
    for name in sorted({*a.waits, *b.waits}):
        of[name] = (a.waiting(name), b.waiting(name))
    found = []
    for name, (one, other) in of.items():
        if one is None or other is None:
            continue
        x, y = one.mean * a.latency_ns, other.mean * b.latency_ns
        error = math.hypot((one.high - one.low) / 2 * a.latency_ns, (other.high - other.low) / 2 * b.latency_ns)
        if abs(y - x) > max(error, Difference.SHARE * a.latency_ns):
            found.append(Moved(name, x, y))
    return sorted(found, key=lambda m: -abs(m.change_ns))[:_MOST]


def used(a: Observed, b: Observed) -> list[Used]:
    """Return the resources of which a transaction uses more or less in B than in A."""
    found = []
    for what, (unit, of) in _USES.items():
        x, y = of(a), of(b)
        if x is None or y is None or max(x, y) < (Difference.BYTES if unit == "bytes" else 0.01):
            continue
        if abs(y - x) > Difference.USE * max(x, y):
            found.append(Used(what, unit, x, y))
    return found
