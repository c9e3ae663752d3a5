"""Connections for administrative SQL: bounded in time, and heedful of signals, whatever the server does."""

from __future__ import annotations

import contextlib
import math
import select
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.waiting import Ready, Wait

from pgdyno.cluster import waiting
from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import LOCK_S, STATEMENT_S, Target, bounded, clean
from pgdyno.errors import TargetError, msg
from pgdyno.format import one_line
from pgdyno.interrupt import Terminated, signals_held
from pgdyno.search_path import SAFE_PATH

_LIMITS = """
select name, setting::bigint from pg_catalog.pg_settings where name in ('lock_timeout', 'statement_timeout')"""


#: Statements that call nothing by an unqualified name, of which some refuse to be in a transaction block.
_UTILITIES = ("begin", "commit", "rollback", "savepoint", "release", "set ", "show ", "vacuum", "analyze", "checkpoint")


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """Connection of psycopg that bounds the time for a response and always reacts to signals.

    The server must respond to each request within `patience_s`, or the connection is closed. A frozen server does not
    enforce its own timeouts. Signals take effect whatever the server does. A server that sends notices without end
    would keep Python in libpq's callbacks, where an exception would be lost.
    """

    patience_s: float | None = None
    #: The search path that the role has in this database, and the schemas of it that exist.
    user_path: str = ""
    user_schemas: tuple[str, ...] = ()
    #: The server that it is connected with, to ask it in another session.
    target: Target | None = None
    #: A pooler is between: what a session is set to would be somebody else's next.
    is_pooled: bool = False
    #: Through a pooler: each transaction is read-only.
    is_read_only: bool = False
    #: Transactions that were begun: those of statements by themselves, too. The server counts them.
    executed: int = 0

    def execute(self, query: Any, params: Any = None, **more: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run a statement; through a pooler each has the safe search path for itself."""
        is_idle = self.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        self.executed += is_idle
        if not self.is_pooled or not is_idle:
            return super().execute(query, params, **more)
        text = query if isinstance(query, str) else bytes(query).decode("utf-8", "replace")
        if text.lstrip().lower().startswith(_UTILITIES):
            return super().execute(query, params, **more)
        with self.transaction():
            super().execute(f"set local search_path to {SAFE_PATH}")
            if self.is_read_only:
                super().execute("set local transaction_read_only to on")
                super().execute("set local statement_timeout to 2000")
            return super().execute(query, params, **more)

    def transaction(self, *arguments: Any, **more: Any) -> Any:
        """Begin a transaction, or a savepoint within one."""
        self.executed += self.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        return super().transaction(*arguments, **more)

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        patience = self.patience_s if timeout is None else timeout
        deadline = None if patience is None else time.monotonic() + patience
        try:
            return _waited(gen, self.pgconn.socket, interval, deadline, self._say_what_it_waits_for)
        except TimeoutError as e:
            self.close()
            raise psycopg.OperationalError("the server does not answer") from e
        except (KeyboardInterrupt, Terminated):
            with contextlib.suppress(psycopg.Error):
                self.cancel_safe(timeout=1.0)
            self.close()
            raise

    def _say_what_it_waits_for(self) -> bool:
        """Tell who listens what holds the statement up; False: nothing that is known yet."""
        return self.target is None or self.is_pooled or waiting.tell(self.target, backend=self.info.backend_pid)


def _waited(gen: PQGen[RV], fd: int, interval_s: float, deadline: float | None, ask: Callable[[], bool]) -> RV:
    """Return the final result of psycopg's generator.

    Raise TimeoutError if the deadline passes. Call `ask` every few seconds until it returns True.
    """
    # Not select: of descriptors there may be more than 1024.
    poll, ready = select.poll(), None
    next_look = time.monotonic() + waiting.PATIENCE_S
    while True:
        with signals_held():
            try:
                # It begins with None.
                state = gen.send(ready)  # type: ignore[arg-type]
            except StopIteration as e:
                result: RV = e.value
                return result
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError
        if time.monotonic() > next_look:
            next_look = math.inf if ask() else time.monotonic() + waiting.PATIENCE_S
        poll.register(fd, (select.POLLIN if state & Wait.R else 0) | (select.POLLOUT if state & Wait.W else 0))
        happened = sum(event for _, event in poll.poll(1000 * interval_s))
        readable = happened & (select.POLLIN | select.POLLERR | select.POLLHUP) and state & Wait.R
        ready = (Ready.R if readable else 0) | (Ready.W if happened & select.POLLOUT else 0)


def is_pooled(conn: psycopg.Connection[tuple[Any, ...]]) -> bool:
    """Return True if a connection pooler or proxy sits between the client and the server.

    Its sign: the process that executes statements is not the one to which the connection was made.
    """
    row = conn.execute("select pg_catalog.pg_backend_pid()").fetchone()
    return row is not None and row[0] != conn.info.backend_pid


def is_plain_table(conn: psycopg.Connection[tuple[Any, ...]], name: str) -> bool | None:
    """Return True if a relation is a plain table without row security; None means that no relation has this name.

    Reading a view as superuser would call functions that the view's owner chose.
    """
    ask = "select relkind = 'r' and not relrowsecurity from pg_catalog.pg_class where oid = pg_catalog.to_regclass(%s)"
    row = conn.execute(ask, [name]).fetchone()
    return None if row is None else bool(row[0])


#: What is known of the answer: who answers something else is no PostgreSQL, and nothing else that it says is believed.
_KNOWN = 20_180_901
_HELLO = f"""
select pg_catalog.current_setting('search_path'), pg_catalog.current_schemas(false), {_KNOWN}, null::pg_catalog.int4"""


def _look_up_safely(conn: _Connection, target: Target) -> None:
    """Replace the user's search path, with statements that look up no name in it.

    Raise TargetError if the responses are not those of a PostgreSQL server.
    """
    try:
        row = conn.execute(_HELLO).fetchone()
        assert row is not None
        path, schemas, known, nothing = row
        if not isinstance(path, str) or not isinstance(schemas, list) or (known, nothing) != (_KNOWN, None):
            raise ValueError(f"{row!r:.100}")
    except (ValueError, TypeError, AssertionError, psycopg.DataError, psycopg.InterfaceError) as e:
        raise TargetError(
            msg("error-answers-what-postgresql-does-not", where=target.where, reason=one_line(e, 200)),
            msg("remedy-postgresql-server-something-between-answers"),
        ) from e
    conn.user_path, conn.user_schemas = path, tuple(schemas)
    if not is_pooled(conn):
        conn.execute(f"set search_path to {SAFE_PATH}")


def connect(
    target: Target, *, patience_s: float | None = STATEMENT_S, read_only: bool = False
) -> psycopg.Connection[tuple[Any, ...]]:
    """Return a connection for administrative SQL; the caller closes it.

    If `read_only` is True, the server refuses every change by it; through a pooler, each of its transactions is so.
    No statement waits for a lock longer than LOCK_S, and none takes longer than `patience_s`. None means no limit, for
    statements whose time depends on the number of rows (indexes).
    """
    try:
        with bounded(target):
            conn = _Connection.connect(
                target.conninfo,
                autocommit=True,
                application_name="pgdyno admin",
                # Without an encoding (SQL_ASCII) psycopg would give bytes for text.
                client_encoding="UTF8",
                connect_timeout=max(2, round(target.connect_timeout_s)),
            )
        try:
            conn.target = target
            conn.patience_s = min(target.connect_timeout_s, math.inf if patience_s is None else patience_s + 1)
            _look_up_safely(conn, target)
            if is_pooled(conn):
                conn.is_pooled = True
                conn.is_read_only = read_only
                # What a session is set to stays with the server's, which is somebody else's next; and what it has
                # prepared the next does not know.
                conn.prepare_threshold = None
                conn.patience_s = None if patience_s is None else patience_s + 1
                return conn
            # Whoever owns the database may have set it off, and then a backslash in a name would end a literal.
            conn.execute("set standard_conforming_strings to on")
            if read_only:
                conn.execute("set default_transaction_read_only to on")
            lock_s = LOCK_S if patience_s is None else min(LOCK_S, patience_s / 2)
            limits = {"lock_timeout": lock_s, "statement_timeout": patience_s}
            # Those that the role has for itself stay where they are shorter; 0 is none.
            set_already = dict(conn.execute(_LIMITS).fetchall())
            for name, seconds in limits.items():
                if seconds is not None and not 0 < set_already.get(name, 0) <= seconds * 1000:
                    conn.execute("select pg_catalog.set_config(%s, %s, false)", [name, f"{round(seconds * 1000)}ms"])
            conn.patience_s = None if patience_s is None else patience_s + 1
        except psycopg.errors.DatabaseError:
            # Not quite PostgreSQL, unless it is gone.
            if conn.closed:
                raise
        except TargetError:
            conn.close()
            raise
        return conn
    except psycopg.Error as e:
        reason = clean(str(e))
        raise TargetError(reason, remedy_for(reason, e.sqlstate)) from e
