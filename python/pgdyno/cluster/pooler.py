"""Poolers of connections (PgBouncer and its like) between client and server: seen by what a session is answered."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from dataclasses import dataclass, replace

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.administration import is_pooled
from pgdyno.cluster.target import Target
from pgdyno.errors import TargetError

#: Sessions that are opened at most to get hold of one that another has used.
_MOST = 20
_PATIENCE_S = 3.0


@dataclass(frozen=True)
class Pooler:
    """Connection pooler between client and server."""

    #: A server's session is given to another client when a transaction has ended.
    by_transaction: bool
    #: Prepared statements are known whichever of the server's sessions a transaction gets.
    prepares: bool

    @property
    def description(self) -> str:
        """Description of the pooler in words."""
        if not self.by_transaction:
            return "a pooler, by session"
        return f"a pooler, by transaction, {'with' if self.prepares else 'without'} prepared statements"


def find(target: Target) -> Pooler | None:
    """Return the pooler between client and server, or None if no pooler is found.

    Only a pooler that hands out sessions of the server can be detected. A proxy that only forwards bytes cannot be
    seen. Raise TargetError if the connection fails.
    """
    with ExitStack() as stack:
        # Where there is no session left it waits, and is not waited for long.
        target = replace(target, connect_timeout_s=min(target.connect_timeout_s, _PATIENCE_S))
        first = stack.enter_context(contextlib.closing(administration.connect(target, patience_s=_PATIENCE_S)))
        if not is_pooled(first):
            return None
        name, statement = b"pgdyno_pooled", b"select pg_catalog.pg_backend_pid()"
        first.pgconn.prepare(name, statement)
        used = _process(first)
        try:
            for _ in range(_MOST):
                # Whoever is in a transaction keeps its session.
                other = stack.enter_context(contextlib.closing(administration.connect(target, patience_s=_PATIENCE_S)))
                other.execute("begin")
                if _process(other) == used:
                    break
            else:
                return Pooler(by_transaction=False, prepares=True)
        except (psycopg.Error, TargetError):
            # No more sessions than there are clients: what one has is its own.
            return Pooler(by_transaction=False, prepares=True)
        # It has the session of the first one, in which that name is taken: unless the pooler knows whose it is.
        other.execute("savepoint pgdyno")
        found = other.pgconn.prepare(name, statement)
        prepares = found.status == psycopg.pq.ExecStatus.COMMAND_OK
        other.execute("rollback to pgdyno")
        if not prepares:
            other.execute(b"deallocate " + name)
        other.execute("commit")
        return Pooler(by_transaction=True, prepares=prepares)


def _process(conn: psycopg.Connection[tuple[object, ...]]) -> object:
    row = conn.execute("select pg_catalog.pg_backend_pid()").fetchone()
    return row[0] if row else None
