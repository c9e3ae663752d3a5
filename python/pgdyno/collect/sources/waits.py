"""Activity and waits of the server's processes, by sampling pg_stat_activity."""

from __future__ import annotations

import select
from collections import Counter
from typing import Any

import psycopg
from psycopg import pq

from pgdyno.collect.sources.base import Row

Connection = psycopg.Connection[tuple[Any, ...]]
#: By the function beneath the view: the view joins names that nobody asks for here. Our own clients apart from others.
_ACTIVITY = b"""
select coalesce(backend_type, '?'), coalesce(application_name = $1 and backend_type = 'client backend', false),
       coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''), count(*)
from pg_stat_get_activity(null)
where pid <> pg_backend_pid() and coalesce(application_name, '') <> 'pgdyno admin'
group by 1, 2, 3, 4, 5"""
_PREPARED = b"pgdyno_waits"
#: An answer is waited for in pieces: a connection that was closed meanwhile is seen.
_STEP_MS = 500


class Waits:
    """Wait events of the server's processes, one row per sample and kind.

    `look` polls often; a row holds the average number of processes in that state. A process that is active and waits
    for nothing runs, or waits for a CPU. PostgreSQL does not report waits for a CPU.
    """

    name = "waits"
    period_s = 0.0

    def __init__(self, conn: Connection, application: str) -> None:
        """`application`: what our clients call themselves."""
        self._conn = conn
        self._application = application
        self._seen: Counter[tuple[str, bool, str, str, str]] = Counter()
        self._looks = 0
        self._is_prepared = False
        #: Some of our clients waited for a lock when we last looked.
        self.is_locked = False

    def look(self) -> None:
        """Once. May raise psycopg.Error."""
        found = self._answer()
        self._looks += 1
        self.is_locked = False
        for n in range(found.ntuples):
            kind, ours, state, what, event, count = ((found.get_value(n, i) or b"").decode() for i in range(6))
            self._seen[kind, ours == "t", state, what, event] += int(count)
            self.is_locked |= ours == "t" and what == "Lock"

    def _answer(self) -> pq.abc.PGresult:
        # Ten times a second psycopg's cursors would be most of what collecting costs: libpq is asked directly. Never
        # by a call that waits: the connection may be closed meanwhile, when a server has not answered for too long.
        server, parameters = self._conn.pgconn, [self._application.encode()]
        if self._conn.prepare_threshold is None:
            # A pooler may give each statement to another session.
            server.send_query_params(_ACTIVITY, parameters)
            return _result(server)
        if not self._is_prepared:
            server.send_prepare(_PREPARED, _ACTIVITY)
            _result(server)
            self._is_prepared = True
        server.send_query_prepared(_PREPARED, parameters)
        return _result(server)

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        looks, seen = self._looks, self._seen
        self._looks, self._seen = 0, Counter()
        return [
            {"kind": kind, "ours": float(ours), "state": state, "wait_type": what, "wait": event,
             "processes": n / looks, "looks": float(looks)}
            for (kind, ours, state, what, event), n in seen.items()
        ]  # fmt: skip


def _result(server: pq.abc.PGconn) -> pq.abc.PGresult:
    while server.flush():
        _wait(server, select.POLLOUT)
    found = None
    while True:
        while server.is_busy():
            _wait(server, select.POLLIN)
            server.consume_input()
        result = server.get_result()
        if result is None:
            break
        found = result
    if found is None or found.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        words = b"" if found is None else found.error_message
        raise psycopg.OperationalError(words.decode(errors="replace").strip() or "the server is gone")
    return found


def _wait(server: pq.abc.PGconn, what: int) -> None:
    # Not select(): among thousands of connections its descriptors are too large for that.
    poll = select.poll()
    poll.register(server.socket, what)
    poll.poll(_STEP_MS)
