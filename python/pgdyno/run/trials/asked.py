"""The sources that a server is asked for beside a trial, over one connection, which may be lost and made again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import administration
from pgdyno.collect.sources.base import Source
from pgdyno.collect.sources.counters import Counters
from pgdyno.collect.sources.locks import Locks
from pgdyno.collect.sources.network import Network
from pgdyno.collect.sources.processes import Processes
from pgdyno.collect.sources.progress import Progress
from pgdyno.collect.sources.quota import Quota
from pgdyno.collect.sources.sessions import Blockers, CommandIo, Slots, Snapshots, Standbys, other_sessions
from pgdyno.collect.sources.sizes import Sizes
from pgdyno.collect.sources.waits import Commands, Waits, WaitStatements
from pgdyno.message import Text, message
from pgdyno.run.sites.site import Site

#: How long a question may take while the load runs; and a new connection.
PATIENCE_S, _RENEWED_S = 5.0, 2.0
Connection = psycopg.Connection[tuple[Any, ...]]


class AskedSources:
    """Sources on the server and on its processes that `run.collect` requests.

    See `collection.Asked`.
    """

    def __init__(
        self, site: Site, wanted: Collection[str], note: Callable[[Text], None], *, sees_processes: bool,
        everybody: bool = False,
    ) -> None:  # fmt: skip
        """`sees_processes`: the server's machine is this one. Raises PgdynoError, psycopg.Error.

        With `everybody`, the sessions of all are observed, by a session that cannot write: see `Waits`.
        """
        self._site = site
        self._wanted = wanted
        self._note = note
        self._sees_processes = sees_processes
        self._everybody = everybody
        #: Statements of connections that were lost.
        self._executed_before = 0
        self.conn = administration.connect(site.postgresql, patience_s=PATIENCE_S, read_only=everybody)
        self.sources: list[Source] = []
        self.waits: Waits | None = None
        self._make()

    @property
    def is_lost(self) -> bool:
        """The server is gone, or was for a while."""
        return self.conn.closed

    def renew(self) -> None:
        """See `collection.Asked`."""
        quick = replace(self._site.postgresql, connect_timeout_s=_RENEWED_S)
        conn = administration.connect(quick, patience_s=PATIENCE_S, read_only=self._everybody)
        self._executed_before = self.executed
        self.close()
        self.conn = conn
        self._make()

    @property
    def executed(self) -> int:
        """Statements that were executed so far: the server counts each as a transaction."""
        looks = self.waits.asked if self.waits is not None else 0
        return self._executed_before + int(getattr(self.conn, "executed", 0)) + looks

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(psycopg.Error):
            self.conn.close()

    def _make(self) -> None:
        """All anew: a server that was started again counts from nothing, and its processes are others."""
        conn, application = self.conn, self._site.target.options.get("application_name", "pgdyno")
        if self._everybody:
            application = "pgdyno admin"
        found: list[Source] = []
        if "server" in self._wanted:
            counters = Counters(conn)
            for missing in counters.missing:
                self._note(missing)
            found += [counters, Snapshots(conn, application), Standbys(conn), Slots(conn), Progress(conn)]
            found += [Locks(conn), Sizes(conn)]
        if "machine" in self._wanted:
            found.append(Network(conn))
            if self._sees_processes:
                postmaster = self._postmaster()
                if postmaster is not None:
                    others = None if self._everybody else partial(other_sessions, conn, application)
                    found.append(Processes(postmaster, self._note, others))
                    if (quota := Quota(postmaster)).is_there:
                        found.append(quota)
                else:
                    self._note(message("gap-hidden-processes"))
        self.waits = None
        if "waits" in self._wanted:
            waits = self.waits = Waits(conn, application, everybody=self._everybody)
            found += [
                waits,
                Commands(waits),
                WaitStatements(waits),
                Blockers(conn, application, lambda: waits.is_locked, everybody=self._everybody),
            ]
            if conn.info.server_version >= CommandIo.SINCE and not self._everybody:
                found.append(CommandIo(conn, application, waits.others_were_seen))
        self.sources = found

    def _postmaster(self) -> int | None:
        if self._site.cluster is not None:
            return self._site.cluster.process_id
        with contextlib.suppress(OSError, ValueError, IndexError):
            backend = Path("/proc") / str(self.conn.info.backend_pid)
            if (backend / "cmdline").read_bytes().startswith(b"postgres"):
                return int((backend / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        return None
