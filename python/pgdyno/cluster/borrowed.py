"""A cluster that stays, for the length of a run: started as our child with the run's settings, and stopped again.

Settings are given on the server's command line, over the cluster's own: nothing in its folder is changed by them.
"""

from __future__ import annotations

from pathlib import Path

from pgdyno.cluster import binaries
from pgdyno.cluster.layout import Layout
from pgdyno.cluster.limits import Limits
from pgdyno.cluster.managed import ManagedCluster
from pgdyno.cluster.process import ServerProcess
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.errors import RefusedError
from pgdyno.interrupt import signals_held


class BorrowedCluster:
    """One server of `pgdyno cluster`. Use as a context manager; it must be stopped, so that nobody else is using it."""

    def __init__(self, base: Path, settings: list[Setting], limits: Limits | None = None) -> None:
        self._cluster = ManagedCluster(base)
        self.settings = settings
        self.account = self._cluster.account
        self._limits = limits
        self._server: ServerProcess | None = None
        folder = self._cluster.programs()
        self.binaries = binaries.find(self.account, base / "programs", folder)

    def __enter__(self) -> BorrowedCluster:
        if self._cluster.process_id() is not None:
            raise RefusedError(
                f"a server runs in {self.base}, and somebody may be using it",
                f"Stop it: pgdyno cluster stop {self.base}. Or name it as it runs: conninfo instead of cluster.",
            )
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        with signals_held():
            self.stop()

    def start(self) -> None:
        """Starts the server, unless it runs, and waits until it takes connections."""
        if self.is_alive():
            return
        # The socket's folder may be another than when the settings were written.
        options = [f"unix_socket_directories={self.layout.socket}", *(f"{s.name}={s.value}" for s in self.settings)]
        held = None if self._limits is None else self._limits.hold
        program = self.binaries.program("postgres")
        self._server = ServerProcess(
            program, self.data, self.log, self.account, options=options, patient=True, hold=held
        )
        self._server.start()

    def configure(self, settings: list[Setting]) -> None:
        """Other settings: the server is stopped, and started with them."""
        self.stop()
        self.settings = settings
        self.start()

    def stop(self) -> None:
        """Stops the server, in order."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def is_alive(self) -> bool:
        """Whether the server's process is there."""
        return self._server is not None and self._server.is_alive()

    def last_words(self, lines: int = 5) -> str:
        """The end of the server's log."""
        return self._server.last_words(lines) if self._server else ""

    @property
    def layout(self) -> Layout:
        """Where things are."""
        return self._cluster.layout

    @property
    def base(self) -> Path:
        """The folder of it all."""
        return self._cluster.base

    @property
    def data(self) -> Path:
        """The data directory."""
        return self._cluster.data

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.layout.log

    @property
    def process_id(self) -> int | None:
        """The postmaster's process id."""
        return self._server.process_id if self._server else None

    @property
    def target(self) -> Target:
        """How to reach it."""
        return self.layout.target
