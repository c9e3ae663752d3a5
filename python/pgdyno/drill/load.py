"""The load of a drill: clients who look for whoever is the primary, in a thread of their own."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno import _core, engine
from pgdyno.cluster.target import Target
from pgdyno.message import Name, Text, message

#: Of the series.
INTERVAL_S = 0.1
#: No drill's round takes longer.
_LONGEST_S = 7 * 86_400.0


class _OverError(Exception):
    """The load is to end."""


@dataclass(frozen=True)
class Slice:
    """A tenth of a second of the load."""

    #: Since its start.
    at_s: float
    committed: int
    latency: _core.Histogram


@dataclass
class Load:
    """Begins with `start`, and ends with `stop`."""

    #: Where clients begin, and the addresses and ports of the others, whom they try when it is no primary.
    first: Target
    others: list[tuple[str, int]]
    workload: _core.Workload
    #: Where the ledger's clients write down what they are told.
    records: Path
    clients: int
    answer_timeout_s: float
    connect_timeout_s: float
    #: They look for a primary; through a pooler they take what they get.
    read_write: bool = True
    #: Nanoseconds since 1970.
    started_ns: int = 0
    ended_ns: int = 0
    series: list[Slice] = field(default_factory=list)
    #: Seconds since the start, and what happened to a client.
    events: list[tuple[float, Text]] = field(default_factory=list)
    #: Why it ended before it was asked to.
    error: Text | None = None

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._drive, daemon=True)

    def start(self) -> None:
        """Connect the clients and start the load."""
        self._thread.start()
        self._began.wait(60)

    def stop(self) -> None:
        """End the load and wait until it has ended."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(60)
        if self._thread.is_alive():
            self.error = message("drill-load-hangs")

    def is_on(self) -> bool:
        """Return True if the load still runs."""
        return self._thread.is_alive()

    def _drive(self) -> None:
        try:
            config = _core.ConnConfig(**self.first.core_arguments(), read_write=self.read_write, members=self.others)
            plan = engine.Plan(
                clients=self.clients,
                # Whatever the pooler is: statements without names go through.
                protocol="prepared" if self.read_write else "extended",
                duration_s=_LONGEST_S,
                interval_s=INTERVAL_S,
                drain_timeout_s=0.5,
                connect_timeout_s=self.connect_timeout_s,
                answer_timeout_s=self.answer_timeout_s,
                # What is measured is the cluster's outage, not our patience.
                longest_pause_s=0.1,
                on_error="count",
            )
            result = _core.run([config], self.workload, self, plan)
            if not isinstance(result.raised, _OverError):
                self.error = Name(result.error) if result.error else message("drill-load-over")
        except _core.CoreError as e:
            self.error = Name(str(e))
        finally:
            self.ended_ns = time.time_ns()
            self._began.set()

    def between(self, from_s: float, to_s: float) -> Slice:
        """All that lies between two times since the start, as one."""
        latency, committed = _core.Histogram(), 0
        for s in self.series:
            if from_s <= s.at_s < to_s:
                latency.merge(s.latency)
                committed += s.committed
        return Slice(from_s, committed, latency)

    # ------------------------------------------------------------ the engine's observer

    def started(self, start_ns: int, connect_ns: int) -> None:
        """All are connected."""
        self.started_ns = start_ns
        self._began.set()

    def interval(self, i: _core.Interval) -> None:
        """Record an interval of a tenth of a second."""
        self.series.append(Slice(i.start_ns / 1e9, i.committed, i.latency))
        if self._over.is_set():
            raise _OverError

    def event(self, e: _core.Event) -> None:
        """Something happened to a client."""
        client = message("drill-event-client", number=Name(str(e.client)), event=Name(e.text))
        self.events.append((e.at_ns / 1e9, client))
