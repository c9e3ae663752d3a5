"""Beside a trial on a primary: reads on its standbys, and how old what they show is, by a heartbeat."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from pgdyno import _core, engine
from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.errors import PgdynoError, reason
from pgdyno.message import Name, Text, message
from pgdyno.model import EventKind
from pgdyno.run.trials.workers import workers_for_clients
from pgdyno.store import hlog
from pgdyno.stream.events import Happened
from pgdyno.stream.stream import TrialStream
from pgdyno.units import Quantity

TABLE = "public.pgdyno_heartbeat"
#: Between two beats; of a long trial no more than so many.
_BEAT_S, _MOST_BEATS = 0.02, 100_000
#: Between two looks at a standby.
_LOOK_S = 0.001
#: How long threads may take to end: a server may be gone.
_END_S = 5.0
_PATIENCE_S = 5.0
#: Of the readers' series: what they have counted is taken with the trial's own intervals.
_INTERVAL_S = 0.1
_LONGEST_S = 10_000_000.0
#: A standby that is so far behind at a trial's end is told.
_NOTABLE_S = 1.0


@dataclass(frozen=True)
class Reads:
    """Read workload on standbys while the main workload runs on the primary."""

    workload: _core.Workload
    #: Over all standbys.
    clients: int
    rate: float | None
    seed: int


@dataclass
class _Counts:
    """Histograms recorded since the last call of `take`."""

    reads: _core.Histogram = field(default_factory=_core.Histogram)
    staleness: _core.Histogram = field(default_factory=_core.Histogram)


class _OverError(Exception):
    """The readers are to end."""


class BesideStandbys:
    """`begin` it before the load, `take` with each of its intervals, `end` it after."""

    def __init__(
        self,
        primary: Target,
        standbys: Mapping[str, Target],
        reads: Reads | None,
        duration_s: float,
        stream: TrialStream,
    ) -> None:
        """`stream` is the trial's, which receives gaps."""
        self._primary = primary
        self._standbys = standbys
        self._reads = reads
        self._beat_s = max(_BEAT_S, duration_s / _MOST_BEATS)
        self._stream = stream
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._counts = {name: _Counts() for name in standbys}
        #: Beats are numbered from here: a standby may still show those of another trial.
        self._first = time.time_ns()
        #: When each beat was committed, by its number.
        self._beats: dict[int, float] = {}
        self._threads: list[threading.Thread] = []

    def _note(self, text: Text) -> None:
        self._stream.emit(Happened(EventKind.NOT_RECORDED, text), origin="standbys")

    def begin(self) -> None:
        """Connect to the servers and start the heartbeat and the reads."""
        try:
            with administration.connect(self._primary, patience_s=_PATIENCE_S) as conn:
                conn.execute(f"create table if not exists {TABLE} (beat bigint not null)".encode())
                conn.execute(f"truncate only {TABLE}".encode())
                conn.execute(f"insert into {TABLE} values (%s)".encode(), [self._first])
        except (PgdynoError, psycopg.Error) as e:
            self._note(message("gap-staleness", reason=reason(e)))
            return
        self._thread(self._beat)
        for name, target in self._standbys.items():
            self._thread(self._look, name, target)
        if self._reads is not None:
            share, more = divmod(self._reads.clients, len(self._standbys))
            for n, (name, target) in enumerate(self._standbys.items()):
                if clients := share + (n < more):
                    self._thread(self._read, name, target, clients)

    def take(self) -> dict[str, _core.Histogram]:
        """Return the histograms recorded since the last call, by tag of the log."""
        with self._lock:
            counts, self._counts = self._counts, {name: _Counts() for name in self._standbys}
        found = {hlog.staleness(name): c.staleness for name, c in counts.items()}
        return found | {hlog.standby_reads(name): c.reads for name, c in counts.items()}

    def end(self) -> None:
        """Stop all activity on the standbys; it may be called again."""
        self._over.set()
        deadline = time.monotonic() + _END_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._threads = []

    def _thread(self, run: Callable[..., None], *arguments: Any) -> None:
        def carefully() -> None:
            try:
                run(*arguments)
            except (PgdynoError, psycopg.Error, _core.CoreError) as e:
                if not self._over.is_set():
                    self._note(message("gap-beside-standbys", reason=reason(e)))

        thread = threading.Thread(target=carefully, name="pgdyno-standbys", daemon=True)
        self._threads.append(thread)
        thread.start()

    # ------------------------------------------------------------ the heartbeat

    def _beat(self) -> None:
        with administration.connect(self._primary, patience_s=_PATIENCE_S) as conn:
            # It waits for no standby: what is measured is when they show it. And it is flushed at once: what is not is
            # not sent.
            conn.execute("set synchronous_commit = local")
            due, beat = time.monotonic(), self._first
            while not self._over.is_set():
                beat += 1
                conn.execute(f"update {TABLE} set beat = %s".encode(), [beat], prepare=True)
                self._beats[beat] = time.monotonic()
                due = max(due + self._beat_s, time.monotonic())
                self._over.wait(due - time.monotonic())

    def _look(self, name: str, target: Target) -> None:
        """Record the staleness of each beat on a standby.

        The staleness of a beat counts from its commit until the standby shows this beat or a later one. If the standby
        stands still for a while, all beats that arrived meanwhile were late.
        """
        shown = self._first
        #: Beats that were seen before the primary has answered.
        early: list[tuple[int, float]] = []
        with administration.connect(target, patience_s=_PATIENCE_S) as conn:
            while not self._over.is_set():
                beat, when = self._shown(conn), time.monotonic()
                early += [(n, when) for n in range(shown + 1, beat + 1)]
                shown = max(shown, beat)
                early = self._recorded(name, early)
                self._over.wait(_LOOK_S)
        # Of what it has not shown by now no figure knows.
        if waiting := [committed for n, committed in list(self._beats.items()) if n > shown]:
            behind = time.monotonic() - min(waiting)
            if behind > _NOTABLE_S:
                self._note(message("gap-standby-behind", name=Name(name), time=Quantity(behind, "seconds")))

    def _shown(self, conn: psycopg.Connection[tuple[Any, ...]]) -> int:
        """Return the last beat that a standby has.

        A standby that is behind may have no beat of this trial.
        """
        try:
            row = conn.execute(f"select max(beat) from {TABLE}".encode(), prepare=True).fetchone()
        except (psycopg.errors.UndefinedTable, psycopg.errors.QueryCanceled, psycopg.errors.SerializationFailure):
            # Not there yet; or the query was in the way of replay, and is asked again.
            return self._first
        return int(row[0]) if row is not None and row[0] is not None else self._first

    def _recorded(self, name: str, seen: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """Count the beats that were seen, and return those whose commit is not confirmed yet."""
        left = []
        with self._lock:
            for n, when in seen:
                if (committed := self._beats.get(n)) is None:
                    left.append((n, when))
                else:
                    self._counts[name].staleness.record(max(1, round((when - committed) * 1e9)))
        return left

    # ------------------------------------------------------------ reads

    def _read(self, name: str, target: Target, clients: int) -> None:
        reads = self._reads
        assert reads is not None
        rate = None if reads.rate is None else engine.Rate.of(reads.rate * clients / reads.clients)
        plan = engine.Plan(
            clients=clients,
            workers=workers_for_clients(clients, 1),
            protocol="prepared",
            duration_s=_LONGEST_S,
            interval_s=_INTERVAL_S,
            drain_timeout_s=0.5,
            rate=rate,
            seed=reads.seed,
            on_error="count",
        )
        result = _core.run([_core.ConnConfig(**target.core_arguments())], reads.workload, _Readers(self, name), plan)
        if not isinstance(result.raised, _OverError):
            self._note(message("gap-standby-reads", name=Name(name), reason=Name(str(result.error or result.raised))))

    def take_reads(self, name: str, latency: _core.Histogram) -> None:
        """Add the latencies of an interval of the readers that has ended."""
        with self._lock:
            self._counts[name].reads.merge(latency)
        if self._over.is_set():
            raise _OverError


class _Readers:
    """Observer that receives the engine's events for the readers."""

    def __init__(self, owner: BesideStandbys, name: str) -> None:
        self._beside = owner
        self._name = name

    def started(self, start_ns: int, connect_ns: int) -> None:
        """All are connected."""

    def interval(self, i: _core.Interval) -> None:
        """Record an interval, a fraction of a second, that has ended."""
        self._beside.take_reads(self._name, i.latency)

    def event(self, e: _core.Event) -> None:
        """Something happened to a reader: what it did not read is not counted."""
