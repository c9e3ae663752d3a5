"""A private cluster: made in a temporary folder, reached by a Unix-domain socket, gone when we are done.

The server is our child: it dies when we do (Linux's parent-death signal), and whatever a killed pgdyno left behind is
removed by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import tempfile
from pathlib import Path
from types import TracebackType
from typing import TextIO

import psutil

from pgdyno.cluster import binaries
from pgdyno.cluster.account import Account, server_account
from pgdyno.cluster.layout import Layout, initdb
from pgdyno.cluster.process import ServerProcess
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.interrupt import signals_held

PREFIX = "pgdyno-cluster-"
#: Locked by the pgdyno that the folder belongs to, for as long as it lives.
OWNER = "owner"


class EmbeddedCluster:
    """One server. Use as a context manager; `keep` leaves it on disk, stopped."""

    def __init__(self, settings: list[Setting], *, keep: bool = False, pg_bin: Path | None = None) -> None:
        self.settings = settings
        self.keep = keep
        self._pg_bin = pg_bin
        self._server: ServerProcess | None = None
        self.account: Account = server_account()
        self.layout = Layout(Path())
        self.binaries: binaries.Binaries | None = None
        self._owner: TextIO | None = None

    # ------------------------------------------------------------ life

    def __enter__(self) -> EmbeddedCluster:
        sweep()
        try:
            with signals_held():
                self.layout = Layout(Path(tempfile.mkdtemp(prefix=PREFIX)))
                self.base.chmod(0o755)
                # The lock says that we are alive, whatever clocks and process numbers say; it goes with us.
                self._owner = (self.base / OWNER).open("w", encoding="utf-8")
                fcntl.flock(self._owner, fcntl.LOCK_EX)
            self.layout.make_folders(self.account)
            self.binaries = binaries.find(self.account, self.base / "programs", self._pg_bin)
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
            else:
                (self.base / OWNER).unlink(missing_ok=True)

    def start(self) -> None:
        """Starts the server, unless it runs, and waits until it takes connections."""
        assert self.binaries is not None
        if self.is_alive():
            return
        self._server = ServerProcess(self.binaries.program("postgres"), self.data, self.log, self.account)
        self._server.start()

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
        if self.base.name.startswith(PREFIX):
            _remove_tree(self.base)
        if self._owner is not None:
            self._owner.close()


def sweep() -> None:
    """Removes what killed pgdynos left in the temporary folder: only folders of ours whose owner is dead."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and _is_abandoned(folder):
                _kill_postmaster(folder)
                _remove_tree(folder)


def _is_abandoned(folder: Path) -> bool:
    """Whether nobody holds the owner's lock. Without an owner file (--keep, or just being made): hands off."""
    try:
        with (folder / OWNER).open("r+", encoding="utf-8") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_tree(folder: Path) -> None:
    """Removes a cluster's folder, the owner file last: what is left of a removal that failed can be swept later."""
    for child in folder.iterdir():
        if child.name == OWNER:
            continue
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            child.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _kill_postmaster(folder: Path) -> None:
    """Ends a server that still runs in `folder`."""
    with contextlib.suppress(OSError, ValueError, IndexError, psutil.Error):
        process = psutil.Process(int((folder / "data" / "postmaster.pid").read_text().splitlines()[0]))
        if process.name() == "postgres" and str(folder) in " ".join(process.cmdline()):
            process.send_signal(signal.SIGQUIT)
            process.wait(5)
