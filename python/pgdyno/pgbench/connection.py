"""The connection that sets things up: libpq's own, so that services, passwords and messages are as everywhere."""

from __future__ import annotations

import getpass
import os
import select
from collections.abc import Callable

import psycopg
from psycopg import pq

from pgdyno.cluster.target import connect
from pgdyno.errors import TargetError
from pgdyno.pgbench.messages import fail, log, plain
from pgdyno.pgbench.options import Options


class RefusedError(Exception):
    """The server has refused a command: its words, and the SQLSTATE."""

    def __init__(self, message: str, sqlstate: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class Connection:
    """A session that carries out one command after the other."""

    def __init__(self, conn: pq.abc.PGconn) -> None:
        self.pgconn = conn
        conn.notice_handler = lambda result: plain(result.error_message.decode("utf-8", "replace"))
        conn.nonblocking = 1

    @property
    def dbname(self) -> str:
        """The database."""
        return self.pgconn.db.decode()

    def execute(self, sql: str) -> pq.abc.PGresult:
        """The last result of `sql`. Raises RefusedError. Ctrl-C cancels it in the server."""
        self._send(sql)
        return self._result()

    def _send(self, sql: str) -> None:
        try:
            self.pgconn.send_query(sql.encode())
        except psycopg.Error as e:
            raise RefusedError(_said(e), "08006") from e

    def copy(self, sql: str, chunks: Callable[[], bytes]) -> None:
        """COPY FROM STDIN; `chunks` gives data until it gives none. Raises RefusedError."""
        self._send(sql)
        try:
            # Not ended yet: the result says that the server is ready for data.
            self._wait_for_input()
            result = self.pgconn.get_result()
            if result is None or result.status != pq.ExecStatus.COPY_IN:
                raise _refused(result)
            while data := chunks():
                while self.pgconn.put_copy_data(data) == 0:
                    select.select([], [self.pgconn.socket], [])
                self._flush()
            while self.pgconn.put_copy_end() == 0:
                select.select([], [self.pgconn.socket], [])
        except psycopg.Error as e:
            raise RefusedError(_said(e), "08006") from e
        except KeyboardInterrupt:
            self.pgconn.put_copy_end(b"canceled by user")
            self._flush()
            raise
        self._result()

    def _flush(self) -> None:
        while self.pgconn.flush():
            # A server that has failed may speak before it reads on.
            readable, _, _ = select.select([self.pgconn.socket], [self.pgconn.socket], [])
            if readable:
                self.pgconn.consume_input()

    def _wait_for_input(self) -> None:
        self._flush()
        while self.pgconn.is_busy():
            select.select([self.pgconn.socket], [], [])
            self.pgconn.consume_input()

    def _result(self) -> pq.abc.PGresult:
        last, failed = None, None
        try:
            while True:
                self._wait_for_input()
                result = self.pgconn.get_result()
                if result is None:
                    break
                last = result
                if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.NONFATAL_ERROR):
                    failed = failed or result
        except KeyboardInterrupt:
            self.pgconn.get_cancel().cancel()
            raise
        except psycopg.Error as e:
            raise RefusedError(_said(e), "08006") from e
        if failed is not None or last is None:
            raise _refused(failed)
        return last

    def close(self) -> None:
        """Ends the session."""
        self.pgconn.finish()


def _said(e: psycopg.Error) -> str:
    """What libpq says, without the name of the function that psycopg puts in front."""
    return (
        str(e).split(": ", 1)[-1].strip() if str(e).startswith(("sending", "consuming", "flushing")) else str(e).strip()
    )


def _refused(result: pq.abc.PGresult | None) -> RefusedError:
    if result is None:
        return RefusedError("the connection was lost", "08006")
    state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
    return RefusedError(result.error_message.decode("utf-8", "replace").rstrip(), state.decode())


def parameters(o: Options) -> dict[str, str]:
    """Connection parameters that the command line names."""
    given = {"host": o.host, "port": o.port, "user": o.user}
    return {k: v for k, v in given.items() if v}


def database(o: Options) -> str:
    """The database, or a whole connection string: pgbench's own order, which does not ask -U."""
    return o.dbname or os.environ.get("PGDATABASE") or os.environ.get("PGUSER") or getpass.getuser()


def open_connection(o: Options, target: str | None = None) -> Connection:
    """Connects as pgbench does: the database's name may be a whole connection string. Raises Exit."""
    try:
        conn = connect(target or database(o), parameters(o), "pgbench", _ask)
    except TargetError as e:
        log("error", e.message)
        fail(
            "could not create connection for setup"
            if not o.initialize
            else "could not create connection for initialization"
        )
    return Connection(conn)


def _ask() -> str:
    try:
        return getpass.getpass("Password: ")
    except EOFError:
        # Nobody is there to ask; the server says what it thinks of an empty one.
        return ""
