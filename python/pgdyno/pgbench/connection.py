"""The connection that sets things up: libpq's own, so that services, passwords and messages are as everywhere."""

from __future__ import annotations

import select
from collections.abc import Callable

from psycopg import pq

from pgdyno.cluster.target import Target, connect, target_of
from pgdyno.errors import TargetError
from pgdyno.pgbench.messages import fail, log, plain
from pgdyno.pgbench.options import Options

#: libpq waits without end unless PGCONNECT_TIMEOUT or connect_timeout say otherwise.
_PATIENCE_S = 86_400.0


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

    @property
    def target(self) -> Target:
        """The same for our own client. Raises TargetError where that cannot do what was asked for."""
        return target_of(self.pgconn)

    def execute(self, sql: str) -> pq.abc.PGresult:
        """The last result of `sql`. Raises RefusedError. Ctrl-C cancels it in the server."""
        self.pgconn.send_query(sql.encode())
        return self._result()

    def copy(self, sql: str, chunks: Callable[[], bytes]) -> None:
        """COPY FROM STDIN; `chunks` gives data until it gives none. Raises RefusedError."""
        self.pgconn.send_query(sql.encode())
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
        except Exception as e:
            raise RefusedError(str(e), "08006") from e
        if failed is not None or last is None:
            raise _refused(failed)
        return last

    def close(self) -> None:
        """Ends the session."""
        self.pgconn.finish()


def _refused(result: pq.abc.PGresult | None) -> RefusedError:
    if result is None:
        return RefusedError("the connection was lost", "08006")
    state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
    return RefusedError(result.error_message.decode("utf-8", "replace").rstrip(), state.decode())


def parameters(o: Options) -> dict[str, str]:
    """Connection parameters that the command line names."""
    given = {"host": o.host, "port": o.port, "user": o.user}
    return {k: v for k, v in given.items() if v is not None}


def open_connection(o: Options, target: str | None = None) -> Connection:
    """Connects as pgbench does: the database's name may be a whole connection string. Raises Exit."""
    try:
        conn = connect(target if target is not None else o.dbname, parameters(o), _PATIENCE_S, "pgbench", _ask)
    except TargetError as e:
        log("error", e.message)
        fail(
            "could not create connection for setup"
            if not o.initialize
            else "could not create connection for initialization"
        )
    return Connection(conn)


def _ask() -> str:
    import getpass

    return getpass.getpass("Password: ")
