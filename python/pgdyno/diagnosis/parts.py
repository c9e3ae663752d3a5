"""Busy time of the clients in parts that add up to all of it, and what can be ruled out, with a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.diagnosis.causes import data_io, wal_flush, wal_insert
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Wait, is_outside, runs
from pgdyno.diagnosis.thresholds import Ranking
from pgdyno.units import Share

#: Of n sightings none of which shows something, its share is below 3 / n with 95% confidence (rule of three).
_NONE_OF = 3.0
_TEMPORARY = ("IO:BufFileRead", "IO:BufFileWrite", "IO:BufFileTruncate")
_WAL = (*wal_flush.WAITS, *wal_insert.WAITS)


def _named(*waits: str) -> Callable[[Wait], bool]:
    wanted = {w.lower() for w in waits}
    return lambda w: not wanted.isdisjoint((w[1].lower(), f"{w[1]}:{w[2]}".lower()))


#: Parts by id (`part-...` of the catalogues), in the order in which a state is assigned to the first that fits.
_PARTS: tuple[tuple[str, Callable[[Wait], bool]], ...] = (
    ("cpu", runs),
    ("outside", is_outside),
    ("locks", _named("Lock")),
    ("data-io", _named(*data_io.WAITS)),
    ("wal", _named(*_WAL)),
    ("temporary", _named(*_TEMPORARY)),
    ("standby", _named("IPC:SyncRep")),
    ("buffers", _named("BufferPin", "LWLock:BufferContent", "LWLock:BufferMapping")),
    ("lwlocks", _named("LWLock")),
    ("others", lambda _: True),
)


@dataclass(frozen=True)
class Part:
    """Part of the busy time of the clients; `share` with its 95% interval."""

    name: str
    share: Share

    @property
    def is_ruled_out(self) -> bool:
        """Return True if it takes less than a twentieth of the busy time, with 95% confidence."""
        return self.share.high < Ranking.RULED_OUT


def parts(e: Observed) -> list[Part]:
    """Return all parts of the busy time, the largest first; empty if nothing was sampled."""
    sightings = _sightings(e)
    assigned: dict[Wait, str] = {}

    def is_of(name: str) -> Callable[[Wait], bool]:
        def of(wait: Wait) -> bool:
            if wait not in assigned:
                assigned[wait] = next(n for n, fits in _PARTS if fits(wait))
            return assigned[wait] == name

        return of

    found = []
    for name, _ in _PARTS:
        share = e.time_share(is_of(name))
        if share is None:
            return []
        # Where it was hardly seen, the spread of the samples tells less than their number.
        high = max(share.high, share.mean + _NONE_OF / sightings) if sightings else 1.0
        found.append(Part(name, Share(share.mean, share.low, min(1.0, high))))
    return sorted(found, key=lambda p: -p.share.mean)


def _sightings(e: Observed) -> float:
    """Return the number of times that a busy client was seen, at most one for each look.

    Sessions that are seen at one look are not independent.
    """
    looks: dict[tuple[int, int], float] = {}
    busy: dict[tuple[int, int], float] = {}
    for number, r in enumerate(e.trials):
        for row in r.rows("waits"):
            key = (number, row["start_ns"])
            looks[key] = float(row["looks"])
            if row["ours"] and row["state"] != "idle":
                busy[key] = busy.get(key, 0.0) + float(row["processes"])
    return sum(min(1.0, n) * looks[key] for key, n in busy.items())


@dataclass(frozen=True)
class BusyStatement:
    """Statement with its share of the busy time, and the wait in which it was seen most ("" is a CPU)."""

    statement: str
    share: float
    wait: str
    wait_share: float


def statements(e: Observed, most: int = 10) -> list[BusyStatement]:
    """Return the statements that take most of the busy time within the server, as sampled."""
    seen: dict[str, dict[str, float]] = {}
    for row in e.whole("wait_statements"):
        if row["wait_type"] == "Client":
            continue
        wait = f"{row['wait_type']}:{row['wait']}" if row["wait_type"] else ""
        own = seen.setdefault(str(row["statement"]), {})
        length = (row["end_ns"] - row["start_ns"]) / 1e9
        own[wait] = own.get(wait, 0.0) + row["processes"] * length
    whole = sum(sum(own.values()) for own in seen.values())
    if not whole:
        return []
    found = []
    for statement, own in seen.items():
        total = sum(own.values())
        wait = max(own, key=lambda w: own[w])
        found.append(BusyStatement(statement, total / whole, wait, own[wait] / total))
    return sorted(found, key=lambda s: -s.share)[:most]
