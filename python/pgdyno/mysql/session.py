"""Sessions of administration, and the claim on a database."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from pgdyno import _core
from pgdyno.errors import RefusedError, TargetError, msg
from pgdyno.message import Name, Text, listed
from pgdyno.mysql.target import MySqlTarget

#: Remedies by SQLSTATE, or by M and the number of the error where the state says nothing.
_REMEDIES = {
    "28000": "mysql-account",
    "08004": "clients",
}

Row = Sequence[str | None]
#: Seconds that a question may take that a server answers at once, and a statement that reads or writes tables.
PATIENCE_S, LONG_S = 60.0, 86_400.0
#: Seconds after which a session that sleeps is not at work, and for which our own may take to end.
_IDLE_S, _ENDED_S = 60, 2.0


class Session:
    """A session that does one thing after the other. Use it as a context manager."""

    def __init__(self, target: MySqlTarget, *, program: str = "pgdyno", patience_s: float = PATIENCE_S) -> None:
        """Connect. Raise TargetError with the server's reason and a remedy.

        A statement that takes longer than `patience_s` is cancelled, and the session is over.
        """
        self.target = target
        self.patience_s = patience_s
        try:
            self._session = _core.MySqlSession(target.core_config(program), target.connect_timeout_s)
        except _core.CoreError as e:
            raise _translated(target, e) from e

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def rows(self, sql: str) -> list[Row]:
        """Return the rows of a query, values as text. Raise TargetError."""
        try:
            _, rows = self._session.query(sql, self.patience_s)
        except _core.CoreError as e:
            raise _translated(self.target, e) from e
        return list(rows)

    def value(self, sql: str) -> str | None:
        """Return the first value of a query, or None if there is none. Raise TargetError."""
        rows = self.rows(sql)
        return rows[0][0] if rows else None


def read_only(target: MySqlTarget) -> MySqlTarget:
    """Return a target whose sessions cannot write. Raise TargetError."""
    names = ("transaction_read_only", "tx_read_only")
    with Session(target) as session:
        # MariaDB has the first name since 11.1 alone.
        found = session.rows(f"show variables where variable_name in ({', '.join(map(literal, names))})")
    return replace(target, settings={**target.settings, str(found[0][0]): "1"})


def literal(text: str) -> str:
    """Return a text as a literal of SQL, also where backslashes escape."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


class MySqlClaim:
    """Claim on a database that keeps other pgdyno processes away while its session lives: a named lock."""

    #: No pooler stands between: the lock would be somebody else's next.
    is_pooled = False

    def __init__(self, target: MySqlTarget, *, force: bool) -> None:
        """Take the claim. Raise RefusedError if another pgdyno, or without `force` any other session, is at work."""
        self.target = target
        self.conn = Session(target, program="pgdyno claim")
        try:
            self._take()
            if not force:
                self._refuse_if_busy()
        except BaseException:
            self.conn.close()
            raise

    def __enter__(self) -> MySqlClaim:
        return self

    def __exit__(self, *_: object) -> None:
        self.conn.close()

    def renew(self) -> None:
        """Take the claim again if its session was lost. Raise RefusedError or TargetError."""
        try:
            self.conn.rows("select 1")
        except TargetError:
            self.conn = Session(self.target, program="pgdyno claim")
            self._take()

    def _take(self) -> None:
        name = literal(f"pgdyno {self.target.dbname}"[:64])
        # The lock of a pgdyno that has just ended is there until the server has seen it go.
        if self.conn.value(f"select get_lock({name}, {math.ceil(_ENDED_S)})") != "1":
            raise RefusedError(
                msg("error-another-pgdyno-at-work-2", where=self.target.where), msg("remedy-wait-for-or-use-database")
            )

    def _refuse_if_busy(self) -> None:
        rights = self.conn.value(
            "select count(*) from information_schema.user_privileges where privilege_type in ('PROCESS', 'SUPER')"
        )
        if rights == "0":
            raise RefusedError(
                msg("error-mysql-sessions-hidden", where=self.target.where, user=self.target.user),
                msg("remedy-mysql-process", user=self.target.user),
            )
        database = literal(self.target.dbname)
        sessions = (
            "select count(*), group_concat(distinct user) from information_schema.processlist p"
            f" where db = {database} and command not in ('Daemon', 'Binlog Dump') and id <> connection_id()"
            f" and (command <> 'Sleep' or time < {_IDLE_S}"
            " or id in (select trx_mysql_thread_id from information_schema.innodb_trx))"
        )
        deadline = time.monotonic() + _ENDED_S
        rows = self.conn.rows(sessions)
        # Sessions of ours that have just said goodbye are there for a moment.
        while rows and rows[0][0] not in (None, "0") and time.monotonic() < deadline:
            time.sleep(0.05)
            rows = self.conn.rows(sessions)
        if rows and rows[0][0] not in (None, "0"):
            raise RefusedError(
                msg("error-use-other-session-s-were", where=self.target.where, row=rows[0][0], row2=rows[0][1]),
                msg("remedy-load-test-would-slow-them"),
            )


def _translated(target: MySqlTarget, e: _core.CoreError) -> TargetError:
    """Return the error of a server in pgdyno's own words, with a remedy where one is known."""
    # At the beginning of a session that is a database that is not there, or not ours to use.
    found = "mysql-rights" if e.kind == "connect" and e.sqlstate == "42000" else _REMEDIES.get(e.sqlstate or "")
    remedy: Text = msg(f"remedy-server-{found}") if found else listed([])
    return TargetError(msg("error-mysql", where=target.where, reason=Name(str(e.args[0]))), remedy)
