"""A private cluster: made in a temporary folder, reached by a Unix-domain socket, gone when we are done.

The server is our child: it dies when we do (Linux's parent-death signal).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from pgdyno.cluster import binaries, clone
from pgdyno.cluster.account import Account, server_account
from pgdyno.cluster.layout import Layout, initdb
from pgdyno.cluster.limits import Limits
from pgdyno.cluster.process import ServerProcess
from pgdyno.cluster.scratch import Scratch
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.interrupt import signals_held


class EmbeddedCluster:
    """One server. Use as a context manager; `keep` leaves it on disk, stopped; `template` may give, for the programs at
    hand, a data directory to begin from.
    """

    def __init__(
        self,
        settings: list[Setting],
        *,
        keep: bool = False,
        pg_bin: Path | None = None,
        template: Callable[[binaries.Binaries], Path | None] = lambda _: None,
        parent: Path | None = None,
        limits: Limits | None = None,
    ) -> None:
        """The data lie in a new folder in `parent` (None: the temporary folder); the server runs within `limits`."""
        self.settings = settings
        self._parent = parent
        self._limits = limits
        self.keep = keep
        self._pg_bin = pg_bin
        self._template = template
        self._server: ServerProcess | None = None
        self.account: Account = server_account()
        self.layout = Layout(Path())
        self.binaries: binaries.Binaries | None = None
        self._scratch: Scratch | None = None

    # ------------------------------------------------------------ life

    def __enter__(self) -> EmbeddedCluster:
        try:
            with signals_held():
                self._scratch = Scratch(self._parent)
                self.layout = Layout(self._scratch.path)
            self.layout.refuse_bad_path()
            self.layout.make_folder(self.layout.socket, self.account)
            self.binaries = binaries.find(self.account, self.base / "programs", self._pg_bin)
            template = self._template(self.binaries)
            if template is not None:
                clone.tree(template, self.data, owner=(self.account.uid, self.account.gid))
            else:
                self.layout.make_folder(self.data, self.account)
                initdb(self.layout, self.binaries, self.account)
            self.layout.configure(self.account, self.settings)
            self.start()
        except BaseException:
            self.keep = False
            with signals_held():
                self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        with signals_held():
            self.stop()
            if not self.keep:
                self._remove()
            elif self._scratch is not None:
                self._scratch.keep()

    def start(self) -> None:
        """Starts the server, unless it runs, and waits until it takes connections."""
        assert self.binaries is not None
        if self.is_alive():
            return
        held = None if self._limits is None else self._limits.hold
        self._server = ServerProcess(self.binaries.program("postgres"), self.data, self.log, self.account, hold=held)
        self._server.start()

    def configure(self, settings: list[Setting]) -> None:
        """Other settings: the server is stopped, and started with them."""
        self.stop()
        self.settings = settings
        self.layout.configure(self.account, settings)
        self.start()

    def stop(self) -> None:
        """Stops the server."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def is_alive(self) -> bool:
        """Whether the server's process is there."""
        return self._server is not None and self._server.is_alive()

    def last_words(self, lines: int = 5) -> str:
        """The end of the server's log."""
        return self._server.last_words(lines) if self._server else ""

    # ------------------------------------------------------------ facts

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

    @property
    def target(self) -> Target:
        """How to reach it."""
        return self.layout.target

    # ------------------------------------------------------------ inside

    def _remove(self) -> None:
        self.stop()
        if self._scratch is not None:
            self._scratch.remove()
