"""Production load per second: transactions, concurrent sessions, and think time of their clients."""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.capture.draws import Distribution, integers

#: Sessions of an open loop, as a multiple of those that are busy in the mean; sessions beside these; sessions at most.
_SPARE, _LEAST, _MOST = 4.0, 4, 500
#: A shorter mean is the network's and the client library's, which the run has of its own; milliseconds.
_THOUGHT_MS = 1.0
#: Of the distribution of think times.
_PARTS = 10


@dataclass(frozen=True)
class Pace:
    """Load per second, as means over some seconds."""

    #: Transactions; of pg_stat_statements, statements.
    tps: float
    seconds: float
    #: Sessions that were there at once; 0: not known.
    sessions: int = 0
    #: Of them at work, in the mean.
    busy: float = 0.0

    def times(self, factor: float) -> Pace:
        """Multiply the executions per second."""
        return Pace(self.tps * factor, self.seconds, math.ceil(self.sessions * factor), self.busy * factor)

    @property
    def clients(self) -> int:
        """Number of clients that execute this load in an open loop."""
        return min(_MOST, max(_LEAST, self.sessions, math.ceil(_SPARE * self.busy) + _LEAST))


def packed(spans: Mapping[str, tuple[float, float]]) -> dict[str, int]:
    """Assign a client to each session; a client takes another session when its own is over."""
    free: list[tuple[float, int]] = []
    clients: dict[str, int] = {}
    made = 0
    for session, (begin, end) in sorted(spans.items(), key=lambda x: x[1]):
        if free and free[0][0] <= begin:
            client = heapq.heappop(free)[1]
        else:
            client, made = made, made + 1
        clients[session] = client
        heapq.heappush(free, (end, client))
    return clients


def at_once(spans: Collection[tuple[float, float]]) -> int:
    """Return the largest number of time spans that overlap."""
    most = now = 0
    events = [(begin, 0, 1) for begin, _ in spans]
    events += [(end, 1, -1) for _, end in spans]
    for _, _, step in sorted(events):
        now += step
        most = max(most, now)
    return most


def think_time(name: str, idle_ms: Sequence[float | None]) -> tuple[str, ...]:
    """Return script lines that draw the think time of clients within transactions, in microseconds.

    They draw the time to sleep. There are none if the time is short or not known.
    """
    known = [ms for ms in idle_ms if ms is not None]
    # A clock of milliseconds makes some of them negative; the mean stays right.
    if not known or statistics.fmean(known) < _THOUGHT_MS:
        return ()
    us = sorted(max(0, round(ms * 1e3)) for ms in known)
    parts = min(_PARTS, len(us) - 1) if us[0] < us[-1] else 0
    bounds = [str(us[i * (len(us) - 1) // max(1, parts)]) for i in range(parts + 1)]
    return integers(name, Distribution(bounds=bounds)).lines
