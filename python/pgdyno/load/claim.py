"""Claim on a database while a load or a run is at work in it."""

from __future__ import annotations

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.administration import is_pooled
from pgdyno.cluster.target import Target
from pgdyno.errors import RefusedError, TargetError, msg
from pgdyno.format import one_line
from pgdyno.load.dataset import block, literal
from pgdyno.load.find import Connection

#: Of the advisory lock that a running pgdyno holds on its database: "pgdyno" in ASCII.
KEY = 0x7067_6479_6E6F
#: The same lock in pg_locks, held by a session.
_HELD_BY = f"""select from pg_catalog.pg_locks where locktype = 'advisory' and granted and objsubid = 1
  and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
  and (classid, objid) = ({KEY >> 32}::oid, {KEY & 0xFFFF_FFFF}::oid) and pid ="""


class Claim:
    """Claim on a database that keeps other pgdyno processes away while its session lives.

    Without it, two of them would disturb each other's measurements and load over each other's tables. Any role that
    may terminate the session can end the claim. Check it again before any operation that destroys data. Use it as a
    context manager.
    """

    def __init__(self, target: Target, *, force: bool) -> None:
        """Take the claim on the database of `target`.

        Raise RefusedError if another pgdyno is at work there. Without `force`, raise RefusedError also if any other
        session is at work there.
        """
        self.target = target
        self.conn = administration.connect(target)
        #: The process of the session that holds it; None: the server knows no such locks.
        self.holder: int | None = None
        # A lock would stay with a session of the server's that is somebody else's next.
        self.is_pooled = is_pooled(self.conn)
        try:
            self._take()
            _refuse_if_busy(self.conn, target, force)
        except BaseException:
            self.conn.close()
            raise

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self.conn.close()

    def renew(self) -> None:
        """Take the claim again if it was lost.

        Raise RefusedError if another pgdyno holds it by now. Raise TargetError if the server cannot be queried.
        """
        if self.holder is None:
            return
        try:
            if self.conn.execute(f"{_HELD_BY} {self.holder}".encode()).fetchone() is not None:
                return
        except psycopg.Error:
            self.conn.close()
        if self.conn.closed:
            self.conn = administration.connect(self.target)
        self._take()

    def guard(self) -> list[str]:
        """Return SQL that fails if the claim is lost.

        Use it in a transaction that destroys data.
        """
        if self.holder is None:
            return []
        message = "pgdyno's claim on this database is lost: its session was ended"
        return [block(f"if not exists ({_HELD_BY} {self.holder}) then raise {literal(message)}; end if;")]

    def _take(self) -> None:
        if self.is_pooled:
            return
        try:
            row = self.conn.execute(
                "select pg_catalog.pg_try_advisory_lock(%s::bigint), pg_catalog.pg_backend_pid()", [KEY]
            ).fetchone()
        except psycopg.Error as e:
            if self.conn.closed:
                raise TargetError(one_line(e)) from e
            # Not quite PostgreSQL.
            return
        assert row is not None
        if not row[0]:
            raise RefusedError(
                msg("error-another-pgdyno-at-work-2", where=self.target.where), msg("remedy-wait-for-or-use-database")
            )
        self.holder = int(row[1])


def _refuse_if_busy(conn: Connection, target: Target, force: bool) -> None:
    """Raise RefusedError if other sessions are at work in the database, unless `force`.

    A load test would slow them down.
    """
    try:
        row = conn.execute(
            # What other roles do is hidden from a role that is no member of pg_monitor: it may be work that matters.
            """select count(*), string_agg(distinct coalesce(nullif(application_name, ''), usename), ', '),
                      count(*) filter (where backend_type is null)
               from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid() and usesysid is not null
                 and (backend_type is null or backend_type = 'client backend')
                 and coalesce(application_name, '') not like 'pgdyno%%'
                 and (state is null or state <> 'idle' or state_change > now() - interval '1 minute')"""
        ).fetchone()
    except psycopg.Error:
        return
    if row and row[2] and not force:
        raise RefusedError(
            msg("error-may-be-use-there-session", where=target.where, row=row[2], row2=row[1], user=target.user),
            msg("remedy-let-be-seen-grant-pg", user=target.user),
        )
    if row and row[0] and not force:
        raise RefusedError(
            msg("error-use-other-session-s-were", where=target.where, row=row[0], row2=row[1]),
            msg("remedy-load-test-would-slow-them"),
        )
