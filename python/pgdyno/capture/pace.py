"""How much production does in a second: transactions, and sessions at once."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

#: Sessions of an open loop, as a multiple of those that are busy in the mean; sessions beside these; sessions at most.
_SPARE, _LEAST, _MOST = 4.0, 4, 500


@dataclass(frozen=True)
class Pace:
    """What was carried out in a second, in means over some seconds."""

    #: Transactions; of pg_stat_statements, statements.
    tps: float
    seconds: float
    #: Sessions that were there at once; 0: not known.
    sessions: int = 0
    #: Of them at work, in the mean.
    busy: float = 0.0

    def times(self, factor: float) -> Pace:
        """Multiply what is carried out in a second."""
        return Pace(self.tps * factor, self.seconds, math.ceil(self.sessions * factor), self.busy * factor)

    @property
    def clients(self) -> int:
        """How many carry it out in an open loop."""
        return min(_MOST, max(_LEAST, self.sessions, math.ceil(_SPARE * self.busy) + _LEAST))


def packed(spans: Mapping[str, tuple[float, float]]) -> dict[str, int]:
    """A client for each session; one whose session is over takes another."""
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
    """How many of some spans of time are there at the same time, at most."""
    most = now = 0
    events = [(begin, 0, 1) for begin, _ in spans]
    events += [(end, 1, -1) for _, end in spans]
    for _, _, step in sorted(events):
        now += step
        most = max(most, now)
    return most
