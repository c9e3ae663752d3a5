"""Servers that run as child processes of pgdyno.

Pgdyno starts, stops and configures such a server. The server ends when pgdyno ends, by Linux's parent-death signal.
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from pgdyno import home
from pgdyno.cluster.account import Account, server_account
from pgdyno.cluster.binaries import Binaries
from pgdyno.cluster.layout import Layout
from pgdyno.cluster.limits import Limits
from pgdyno.cluster.process import ServerProcess
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.message import Name, Text

#: Bytes that are kept of each end of a log that is longer than both.
_HALF_LOG = 16 << 20
#: Is told the server's process id.
Hold = Callable[[int], None]


class HeldServer(ABC):
    """Common base of the servers that run as child processes, of any product; the server runs within `limits`."""

    def __init__(self, layout: Layout, settings: list[Setting], limits: Limits | None) -> None:
        self.layout = layout
        self.settings = settings
        self.account: Account = server_account()
        self._limits = limits
        self._server: ServerProcess | None = None
        #: Bytes of the log that were there before.
        self._log_before: int | None = None

    @abstractmethod
    def _process(self, hold: Hold | None) -> ServerProcess:
        """Return the server's process with the settings, not started yet."""

    def start(self) -> None:
        """Start the server unless it runs, and wait until it accepts connections."""
        if self.is_alive():
            return
        if self._log_before is None:
            self._log_before = self.log.stat().st_size if self.log.exists() else 0
        self._server = self._process(None if self._limits is None else self._limits.hold)
        self._server.start()

    def configure(self, settings: list[Setting]) -> None:
        """Other settings: the server is stopped, and started with them."""
        self.stop()
        self.settings = settings
        self.start()

    def stop(self, *, discard: bool = False) -> None:
        """Stop the server.

        If `discard` is true, its data are about to be removed, so the server need not write them.
        """
        server, self._server = self._server, None
        if server is not None:
            server.stop(discard=discard)

    def crash(self) -> None:
        """Kill the server and all its processes at once, to simulate a crash of the machine.

        Unlike in a real crash, the kernel's memory survives: written data are still present, whether synced or not.
        """
        server, self._server = self._server, None
        if server is not None:
            server.crash()

    def put_aside(self) -> None:
        """Stop the server so that it can be started again later.

        Nothing else may use its data in the meantime.
        """
        self.stop()

    def append_log(self, to: Path) -> None:
        """Append the server's log, from the first start by pgdyno on, to a file.

        If the log is very long, append only its beginning and its end.
        """
        with self.log.open("rb") as source, home.opened_to_append(to) as out:
            first, end = self._log_before or 0, source.seek(0, os.SEEK_END)
            source.seek(first)
            if end - first > 2 * _HALF_LOG:
                out.write(source.read(_HALF_LOG))
                source.seek(end - _HALF_LOG)
                out.write(f"\n[pgdyno: {end - first - 2 * _HALF_LOG:,} bytes left out]\n".encode())
            shutil.copyfileobj(source, out)

    def is_alive(self) -> bool:
        """Return True if the server process exists."""
        return self._server is not None and self._server.is_alive()

    def last_words(self, lines: int = 5) -> Text:
        """Return the last lines of the server's log."""
        return self._server.last_words(lines) if self._server else Name("")

    @property
    def base(self) -> Path:
        """The folder of it all."""
        return self.layout.base

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.layout.data

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.layout.log

    @property
    def process_id(self) -> int | None:
        """The postmaster's process id."""
        return self._server.process_id if self._server else None


class HeldCluster(HeldServer):
    """Common base of PostgreSQL servers that run as child processes."""

    #: Its programs, once they are known.
    binaries: Binaries | None = None

    @property
    def target(self) -> Target:
        """Connection target of the server."""
        return self.layout.target
