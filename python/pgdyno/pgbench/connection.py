"""The connection that sets things up: libpq's own, so that services, passwords and messages are as everywhere."""

from __future__ import annotations

import getpass
import os
import select
import sys
from collections.abc import Callable

from pgdyno import libpq
from pgdyno.cluster.target import connect
from pgdyno.errors import TargetError
from pgdyno.format import printable
from pgdyno.pgbench.messages import fail, log, plain
from pgdyno.pgbench.options import Options


class RefusedError(Exception):
    """The server has refused a command: its words, and the SQLSTATE."""

    def __init__(self, message: str, sqlstate: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class Connection:
    """A session that runs one command after the other."""

    def __init__(self, conn: libpq.Connection) -> None:
        self.pgconn = conn
        conn.notices(_notice)
        conn.do_not_block()

    @property
    def dbname(self) -> str:
        """The database."""
        return self.pgconn.db

    def execute(self, sql: str) -> libpq.Result:
        """Execute `sql` and return its last result.

        Raise RefusedError if the command fails. Ctrl-C cancels it in the server.
        """
        self._send(sql)
        return self._result()

    def _send(self, sql: str) -> None:
        try:
            self.pgconn.send_query(sql)
        except libpq.LibpqError as e:
            raise RefusedError(str(e), "08006") from e

    def copy(self, sql: str, chunks: Callable[[], bytes]) -> None:
        """COPY FROM STDIN; `chunks` gives data until it gives none. Raises RefusedError."""
        self._send(sql)
        try:
            # Not ended yet: the result says that the server is ready for data.
            self._wait_for_input()
            result = self.pgconn.get_result()
            if result is None or result.status != libpq.COPY_IN:
                raise _refused(result)
            while data := chunks():
                while not self.pgconn.put_copy_data(data):
                    select.select([], [self.pgconn.socket], [])
                self._flush()
            while not self.pgconn.put_copy_end():
                select.select([], [self.pgconn.socket], [])
        except libpq.LibpqError as e:
            raise RefusedError(str(e), "08006") from e
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

    def _result(self) -> libpq.Result:
        last, failed = None, None
        try:
            while True:
                self._wait_for_input()
                result = self.pgconn.get_result()
                if result is None:
                    break
                last = result
                if result.status in (libpq.FATAL_ERROR, libpq.NONFATAL_ERROR):
                    failed = failed or result
        except KeyboardInterrupt:
            self.pgconn.cancel()
            raise
        except libpq.LibpqError as e:
            raise RefusedError(str(e), "08006") from e
        if failed is not None or last is None:
            raise _refused(failed)
        return last

    def close(self) -> None:
        """Close the session."""
        self.pgconn.finish()


def _notice(text: str) -> None:
    """Print a notice as pgbench does, but without characters that control a terminal."""
    plain(printable(text))


def _refused(result: libpq.Result | None) -> RefusedError:
    if result is None:
        return RefusedError("the connection was lost", "08006")
    return RefusedError(result.error_message.rstrip(), result.sqlstate)


def parameters(o: Options) -> dict[str, str]:
    """Return the connection parameters that the command line specifies."""
    given = {"host": o.host, "port": o.port, "user": o.user}
    return {k: v for k, v in given.items() if v}


def database(o: Options) -> str:
    """Return the database name, or a whole connection string.

    The order of the sources is pgbench's own, which ignores -U.
    """
    return o.dbname or os.environ.get("PGDATABASE") or os.environ.get("PGUSER") or getpass.getuser()


def open_connection(o: Options, target: str | None = None) -> Connection:
    """Open a connection as pgbench does.

    The database name may be a whole connection string. Raise Exit if the connection fails.
    """
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
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        # Without a terminal as libpq's programs: from standard input, echoed or not. Python would warn of that. Where
        # nobody is there to answer the server says what it thinks of an empty one.
        plain("Password: ")
        return sys.stdin.readline().rstrip("\r\n")
    try:
        return getpass.getpass("Password: ")
    except EOFError:
        return ""
