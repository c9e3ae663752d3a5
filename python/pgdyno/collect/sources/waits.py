"""Activity and waits of the server's processes, and the commands of other sessions, by sampling pg_stat_activity."""

from __future__ import annotations

import select
from collections import Counter
from typing import Any

import psycopg
from psycopg import pq

from pgdyno.collect.sources.base import Row
from pgdyno.collect.sources.sessions import MAINTENANCE, without_literals
from pgdyno.samples import CUT

Connection = psycopg.Connection[tuple[Any, ...]]
#: Sessions whose statements are read at a look, about: others at work, and our clients that wait. Of more,
#: some are read in turn.
_READ = 20
#: Characters that are kept of a statement; one more is read, which tells that there are more.
_TEXT = 200
#: By the function beneath the view: the view joins names that nobody asks for here. Our own clients apart from others.
#: A physical or logical replication stream is no command, and parallel workers belong to their leader. A window
#: function that takes the first 20 would double what a look costs.
_ACTIVITY = r"""
select kind, ours, state, wait_type, wait, other or waits, case when other and is_read then application end,
       case when (other or waits) and is_read then left(query, 201) end, count(*)
from (
  select coalesce(backend_type, '?') as kind, coalesce(application_name, '') as application, query,
         coalesce({ours}, false) as ours,
         coalesce(state, '') as state, coalesce(wait_event_type, '') as wait_type, coalesce(wait_event, '') as wait,
         coalesce(backend_type in ('client backend', 'walsender') and not coalesce({ours}, false)
                  and state <> 'idle' and query !~* '^\s*start_replication', false) as other,
         coalesce({ours} and {waits}, false) as waits,
         pid % $2::int = $3::int as is_read
  from pg_stat_get_activity(null)
  where pid <> pg_backend_pid() and coalesce(application_name, '') <> 'pgdyno admin') a
group by 1, 2, 3, 4, 5, 6, 7, 8"""
#: A run's clients, by their name; of the others it is not asked what they run.
_CLIENTS = {
    "ours": "application_name = $1 and backend_type = 'client backend'",
    "waits": "state = 'active' and wait_event_type <> 'Client'",
}  # fmt: skip
#: An observed server's sessions: those of its database at their work. Maintenance, dumps, and sessions that hold a
#: transaction open without doing anything are what disturbs it. The name is asked for, so that both have parameters.
#: What an application does between two statements is its own time: it is told by the statement before.
_SESSIONS = {
    "ours": "backend_type = 'client backend' and datid = (select oid from pg_database where datname = "
    f"current_database()) and query !~* '{MAINTENANCE}' and application_name not in ($1, 'pg_dump', 'pg_restore') "
    "and not (state like 'idle in transaction%' and state_change < clock_timestamp() - interval '1 s')",
    "waits": "(state = 'active' and wait_event_type is distinct from 'Client' or state like 'idle in transaction%')",
}  # fmt: skip
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

    def __init__(self, conn: Connection, application: str, *, everybody: bool = False) -> None:
        """`application`: what our clients call themselves.

        With `everybody` all sessions of the database are ours, but for maintenance; what they run is read, too.
        """
        self._conn = conn
        self._application = application
        self._query = _ACTIVITY.format(**(_SESSIONS if everybody else _CLIENTS)).encode()
        #: Looks so far: each is a transaction that the server counts.
        self.asked = 0
        self._seen: Counter[tuple[str, bool, str, str, str]] = Counter()
        self._looks = 0
        #: Of other sessions: application, command, state, and wait; and the looks since they were last asked for.
        self._commands: Counter[tuple[str, str, str, str]] = Counter()
        self._command_looks = 0
        self._saw_others = False
        #: Of our clients that wait: wait and statement.
        self._statements: Counter[tuple[str, str, str]] = Counter()
        self._statement_looks = 0
        #: The inverse of the share of sessions whose statements are read at a look, and the turn.
        self._one_in, self._turn = 1, 0
        self._is_prepared = False
        #: Some of our clients waited for a lock when we last looked.
        self.is_locked = False

    def look(self) -> None:
        """Once. May raise psycopg.Error."""
        found = self._answer()
        self.asked += 1
        self._looks += 1
        self._command_looks += 1
        self._statement_looks += 1
        self.is_locked = False
        candidates, one_in = 0, self._one_in
        for n in range(found.ntuples):
            kind, ours, state, what, event, candidate, application, command, count = (
                (found.get_value(n, i) or b"").decode(errors="replace") for i in range(9)
            )
            self._seen[kind, ours == "t", state, what, event] += int(count)
            candidates += int(count) if candidate == "t" else 0
            text = without_literals(command[:_TEXT])
            if command and ours == "t":
                text = f"{text} {CUT}" if len(command) > _TEXT else text
                self._statements[what, event, text] += one_in * int(count)
            elif command:
                wait = f"{what}:{event}" if what else ""
                self._commands[application, text, state, wait] += one_in * int(count)
                self._saw_others = True
            self.is_locked |= ours == "t" and what == "Lock"
        self._one_in = max(1, -(-candidates // _READ))

    def _answer(self) -> pq.abc.PGresult:
        # Ten times a second psycopg's cursors would be most of what collecting costs: libpq is asked directly. Never
        # by a call that waits: the connection may be closed meanwhile, when a server has not answered for too long.
        server = self._conn.pgconn
        self._turn = (self._turn + 1) % self._one_in
        parameters = [self._application.encode(), str(self._one_in).encode(), str(self._turn).encode()]
        if self._conn.prepare_threshold is None:
            # A pooler may give each statement to another session: the safe search path holds for one transaction.
            with self._conn.transaction():
                self._conn.execute("set local search_path to pg_catalog")
                if getattr(self._conn, "is_read_only", False):
                    self._conn.execute("set local transaction_read_only to on")
                    self._conn.execute("set local statement_timeout to 2000")
                server.send_query_params(self._query, parameters)
                return _result(server)
        if not self._is_prepared:
            server.send_prepare(_PREPARED, self._query)
            _result(server)
            self._is_prepared = True
        server.send_query_prepared(_PREPARED, parameters)
        return _result(server)

    def others_were_seen(self) -> bool:
        """Return True if another session was at work since the last call."""
        seen, self._saw_others = self._saw_others, False
        return seen

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        looks, seen = self._looks, self._seen
        self._looks, self._seen = 0, Counter()
        return [
            {"kind": kind, "ours": float(ours), "state": state, "wait_type": what, "wait": event,
             "processes": n / looks, "looks": float(looks)}
            for (kind, ours, state, what, event), n in seen.items()
        ]  # fmt: skip

    def commands(self) -> list[Row]:
        """Return a row for each command of other sessions since the last call, with the mean number of sessions."""
        looks, seen = self._command_looks, self._commands
        self._command_looks, self._commands = 0, Counter()
        return [
            {"application": application, "command": command, "state": state, "wait": wait, "sessions": n / looks}
            for (application, command, state, wait), n in seen.items()
        ]

    def statements(self) -> list[Row]:
        """Return a row for each wait and statement of our clients since the last call, with their mean number."""
        looks, seen = self._statement_looks, self._statements
        self._statement_looks, self._statements = 0, Counter()
        return [
            {"wait_type": what, "wait": event, "statement": statement, "processes": n / looks}
            for (what, event, statement), n in seen.items()
        ]


class WaitStatements:
    """Statements in which our clients wait, one row per sample, wait and statement; 20 sessions are read at a look."""

    name = "wait_statements"
    period_s = 0.0

    def __init__(self, waits: Waits) -> None:
        self._waits = waits

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        return self._waits.statements()


class Commands:
    """Commands of other sessions, one row per sample, command, state and wait.

    A session counts while it runs a command, or is idle within a transaction after it. The looks are those of `waits`.
    """

    name = "commands"
    period_s = 0.0

    def __init__(self, waits: Waits) -> None:
        self._waits = waits

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        return self._waits.commands()


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
