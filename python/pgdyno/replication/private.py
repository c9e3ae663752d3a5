"""Private server with standbys for the duration of a run.

Each server has a host of its own if namespaces can be created, so that the network between them can be slowed.
Otherwise a standby runs beside the primary and connects by its socket.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from psycopg import sql

from pgdyno.cluster import administration
from pgdyno.cluster import network as networks
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.held import Hold
from pgdyno.cluster.layout import DATABASE, PORT, SUPERUSER, Layout, write
from pgdyno.cluster.network import Links, Network
from pgdyno.cluster.process import ServerProcess
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.errors import ClusterError, LocalError, msg
from pgdyno.interrupt import signals_held
from pgdyno.message import Message, Text
from pgdyno.replication.backup import BaseBackup, bytes_in, pg_basebackup, quoted

_PRIMARY = "primary"
_ROLE = "pgdyno_replication"
#: How long standbys may take until they stream.
_STREAMING_S = 60.0
#: Of the primary, and of sessions: they take effect without a restart.
_RELOADED = {"synchronous_commit", "synchronous_standby_names"}
#: Whom commits wait for; not before anybody is there.
_NAMES = "synchronous_standby_names"


class ReplicatedServer(EmbeddedCluster):
    """Begins as any private server; `attach` adds the standbys, when the data are there."""

    def __init__(
        self,
        settings: list[Setting],
        standbys: int,
        *,
        watch: Callable[[str, int], object] = lambda *_: None,
        **more: Any,
    ) -> None:
        """Initialize the server without its standbys.

        `watch` receives the name of the standby and the number of bytes so far of each base backup. The other
        parameters are those of EmbeddedCluster.
        """
        super().__init__(settings, **more)
        self.names = [f"standby{n + 1}" for n in range(standbys)]
        self._watch = watch
        self._network: Network | None = None
        self._links: Links | None = None
        self._round_trip_s = 0.0
        self._password = secrets.token_urlsafe(18)
        self._standbys: list[_Standby] = []

    # ------------------------------------------------------------ the primary

    def _process(self, hold: Hold | None) -> ServerProcess:
        assert self.binaries is not None
        if self._network is None and networks.is_possible():
            network = Network.for_folder(self.base, [_PRIMARY, *self.names])
            # Noted first: what is half made is removed as well.
            self._network = network
            with signals_held():
                network.up()
        self._write_configuration()
        launch = self._network.launch(_PRIMARY, self.account, dies_by="INT") if self._network else ()
        program = self.binaries.program("postgres")
        return ServerProcess(program, self.data, self.log, self.account, hold=hold, launch=launch)

    def _write_configuration(self) -> None:
        settings = self.settings if self._standbys else [s for s in self.settings if s.name != _NAMES]
        access = []
        if self._network is not None:
            own = Setting("listen_addresses", self._network.address(_PRIMARY), "standby-address")
            settings = [*(s for s in settings if s.name != own.name), own]
            access = [f"host replication {_ROLE} {self._network.address(name)}/32 scram-sha-256" for name in self.names]
        self.layout.configure(self.account, settings, access)

    @property
    def _is_up(self) -> bool:
        return self._server is not None and self._server.is_alive()

    def start(self) -> None:
        """Start the primary and its standbys, and wait until the standbys stream."""
        if not self._is_up:
            super().start()
        for s in self._standbys:
            s.start(self._source(s.name), self.settings)
        if self._standbys:
            self._wait_streaming()

    def stop(self, *, discard: bool = False) -> None:
        """Stop the primary, then its standbys.

        The primary stops first, so that its standbys receive all of its WAL.
        """
        super().stop(discard=discard)
        for s in self._standbys:
            s.server.stop(discard=discard)

    def crash(self) -> None:
        """Kill the primary and stop its standbys."""
        super().crash()
        for s in self._standbys:
            s.server.stop()

    def is_alive(self) -> bool:
        """Return True if all servers are alive."""
        return self._is_up and all(s.server.is_alive() for s in self._standbys)

    def last_words(self, lines: int = 5) -> Text:
        """Return the end of the log of the server that has died."""
        gone = next((s for s in self._standbys if not s.server.is_alive()), None)
        if gone is not None and self._is_up:
            return msg("words-of-member", member=gone.name, words=gone.server.last_words(lines))
        return super().last_words(lines)

    def configure(self, settings: list[Setting]) -> None:
        """Other settings. Those that only say how long commits wait take effect at once; else all are started anew."""
        before, now = ({s.name: s.value for s in x} for x in (self.settings, settings))
        unlike = {n for n in before.keys() | now.keys() if before.get(n) != now.get(n)}
        if not (unlike <= _RELOADED and self.is_alive()):
            super().configure(settings)
            return
        self.settings = settings
        self._reload()

    def _reload(self) -> None:
        """Reload the primary's configuration, and wait until synchronous_standby_names takes effect."""
        self._write_configuration()
        with administration.connect(self.target) as conn:
            conn.execute("select pg_reload_conf()")
        wanted = next((s.value for s in self.settings if s.name == _NAMES), "")
        deadline = time.monotonic() + _STREAMING_S
        # Of who waits none knows which the server asks for; but whether it asks for any.
        ask = "select current_setting(%s), coalesce(bool_or(sync_state <> 'async'), false) from pg_stat_replication"
        while True:
            # Settings of a session are those of when it last looked: a new one has the new ones.
            with administration.connect(self.target) as conn:
                row = conn.execute(ask, [_NAMES]).fetchone()
            if row is not None and row == (wanted, bool(wanted)):
                return
            self._refuse_late(deadline, msg("error-setting-without-effect", setting=f"{_NAMES} = '{wanted}'"))
            time.sleep(0.02)

    # ------------------------------------------------------------ standbys

    @property
    def standbys(self) -> dict[str, Target]:
        """Targets of the attached standbys, by name."""
        return {s.name: s.layout.target for s in self._standbys}

    def attach(self) -> list[BaseBackup]:
        """Take a base backup for each standby, and start the standby from it.

        Return an empty list if the standbys are attached already.
        """
        if self._standbys:
            return []
        if self._network is not None:
            with administration.connect(self.target) as conn:
                conn.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(_ROLE)))
                words = sql.SQL("create role {} login replication password {}")
                verifier = conn.pgconn.encrypt_password(self._password.encode(), _ROLE.encode(), b"scram-sha-256")
                conn.execute(words.format(sql.Identifier(_ROLE), sql.Literal(verifier.decode())))
        made, done = [], []
        for name in self.names:
            standby = _Standby(self, name)
            done.append(standby.make(self._source(name), partial(self._watch, name)))
            made.append(standby)
        self._standbys = made
        self.start()
        self._reload()
        self.set_round_trip(self._round_trip_s)
        return done

    def set_round_trip(self, seconds: float) -> None:
        """Slow each round trip between the primary and each standby by `seconds` from now on.

        Raise LocalError if the links cannot be slowed on this machine.
        """
        self._round_trip_s = seconds
        if not self._standbys:
            return
        if not seconds:
            self._close_links()
            return
        assert self._network is not None
        if self._links is None:
            self._links = Links(self._network)
        for name in self.names:
            self._links.slow(_PRIMARY, name, seconds)

    def _close_links(self) -> None:
        links, self._links = self._links, None
        if links is not None:
            links.close()

    def launch(self, name: str, dies_by: str) -> list[str]:
        """Return the command prefix that runs a program on the host of a standby.

        The prefix is empty if the standby shares this machine's network.
        """
        return [] if self._network is None else self._network.launch(name, self.account, dies_by=dies_by)

    def _source(self, name: str) -> str:
        """Return the connection string by which a standby reaches the primary."""
        if self._network is None:
            facts: dict[str, object] = {"host": self.layout.socket, "port": PORT, "user": SUPERUSER}
        else:
            facts = {
                "host": self._network.address(_PRIMARY), "port": PORT, "user": _ROLE, "sslmode": "disable",
                "passfile": self.base / name / "passfile",
            }  # fmt: skip
        return " ".join(f"{k}={quoted(str(v))}" for k, v in {**facts, "application_name": name}.items())

    def write_passfile(self, name: str) -> None:
        """Write the password file with which a standby authenticates."""
        if self._network is not None:
            path = self.base / name / "passfile"
            write(path, f"{self._network.address(_PRIMARY)}:{PORT}:*:{_ROLE}:{self._password}\n")
            self.account.own(path)

    def _wait_streaming(self) -> None:
        deadline = time.monotonic() + _STREAMING_S
        ask = "select count(*) from pg_stat_replication where state = 'streaming' and application_name = any(%s)"
        with administration.connect(self.target) as conn:
            while conn.execute(ask, [self.names]).fetchone() != (len(self.names),):
                self._refuse_late(deadline, msg("error-standbys-do-not-stream"))
                time.sleep(0.02)

    def _refuse_late(self, deadline: float, what: Message) -> None:
        if not self.is_alive() or time.monotonic() > deadline:
            raise ClusterError(
                msg("error-with-words", what=what, words=self.last_words()), msg("remedy-servers-logs-say-more")
            )

    def _remove(self) -> None:
        self.stop()
        self._close_links()
        if self._network is not None:
            with contextlib.suppress(LocalError):
                self._network.down()
            self._network = None
        super()._remove()


class _Standby:
    """One of them: a folder beside the primary's data."""

    def __init__(self, primary: ReplicatedServer, name: str) -> None:
        self._primary = primary
        self.name = name
        self.layout = Layout(primary.base / name)
        assert primary.binaries is not None
        self._binaries = primary.binaries
        self.server = self._process()

    def _process(self) -> ServerProcess:
        return ServerProcess(
            self._binaries.program("postgres"),
            self.layout.data,
            self.layout.log,
            self._primary.account,
            launch=self._primary.launch(self.name, dies_by="INT"),
        )

    def make(self, source: str, watch: Callable[[int], object]) -> BaseBackup:
        account, began = self._primary.account, time.monotonic()
        self.layout.base.mkdir(mode=0o755)
        for folder in (self.layout.data, self.layout.socket):
            self.layout.make_folder(folder, account)
        self._primary.write_passfile(self.name)
        program = self._binaries.program("pg_basebackup")
        launch = self._primary.launch(self.name, dies_by="KILL")
        conninfo = f"{source} dbname={DATABASE}"
        pg_basebackup(program, self.layout.data, conninfo, self.name, account, watch, launch=launch)
        return BaseBackup(self.name, bytes_in(self.layout.data), time.monotonic() - began)

    def start(self, source: str, settings: Sequence[Setting]) -> None:
        if self.server.is_alive():
            return
        own = [
            Setting("listen_addresses", "", "socket-only"),
            Setting("cluster_name", self.name, "standby-name"),
            Setting("primary_conninfo", source, "primary"),
            Setting("primary_slot_name", self.name, "slot"),
            Setting("wal_retrieve_retry_interval", "200ms", "retrieve"),
        ]
        names = {s.name for s in own} | {_NAMES}
        self.layout.configure(self._primary.account, [*(s for s in settings if s.name not in names), *own])
        self.server.start()
