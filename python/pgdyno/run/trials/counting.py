"""Lets a private server count statements and functions while a trial warms up, and not while it is measured.

To count each statement costs 3 to 4% of the throughput of point selects (decision 0029), and a measurement is not to
pay that. What a statement does in its warm-up, by the call, is what it does later but for what the cache learns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, LiteralString

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.errors import PgdynoError

#: Of the warm-up, the part in which is counted, and the most and the least of it.
PART, _MOST_S, LEAST_S = 0.8, 5.0, 0.1
_TICK_S = 0.01
#: What the log's times lack: they are of milliseconds.
_LOG_NS = 2_000_000


class Counting:
    """`begin` it before the clients connect, `end` it after the trial, whatever has happened to the server."""

    def __init__(self, target: Target, warmup_s: float, start_ns: Callable[[], int]) -> None:
        """`start_ns`: when the load began (nanoseconds since 1970), 0 before."""
        self._target = target
        self._seconds = min(PART * warmup_s, _MOST_S)
        self._start_ns = start_ns
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pgdyno-counting", daemon=True)
        self._counts = False
        #: When the server was told to read its configuration for it, in nanoseconds since 1970.
        self.reloads: list[int] = []

    def begin(self) -> None:
        """Sessions that begin from now on are counted. Raises psycopg.Error, PgdynoError."""
        with administration.connect(self._target, patience_s=5) as conn:
            self._counts = True
            self._tell(
                conn, "alter system set pg_stat_statements.track = 'all'", "alter system set track_functions = 'all'"
            )
        self._thread.start()

    def end(self) -> None:
        """Nothing is counted any more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)
        self._off()

    def _run(self) -> None:
        while not self._start_ns() and not self._stop.wait(_TICK_S):
            pass
        self._stop.wait(max(0.0, self._start_ns() / 1e9 + self._seconds - time.time()))
        self._off()

    def _off(self) -> None:
        if not self._counts:
            return
        try:
            with administration.connect(self._target, patience_s=5) as conn:
                self._tell(
                    conn, "alter system set pg_stat_statements.track = 'none'", "alter system reset track_functions"
                )
            self._counts = False
        except (psycopg.Error, PgdynoError):
            # The server is gone, and what it was told with it: it is a private one.
            return

    def _tell(self, conn: psycopg.Connection[tuple[Any, ...]], *what: LiteralString) -> None:
        for statement in what:
            conn.execute(statement)
        self.reloads.append(time.time_ns())
        conn.execute("select pg_reload_conf()")

    def own_reloads(self, at_ns: Sequence[int]) -> set[int]:
        """Return the times of configuration reloads that this object caused.

        Each is the first reload after a request, however busy the server was.
        """
        own: set[int] = set()
        for told in self.reloads:
            later = (at for at in sorted(at_ns) if at >= told - _LOG_NS and at not in own)
            own.update([next(later, -1)])
        return own - {-1}
