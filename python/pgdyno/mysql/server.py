"""A private MariaDB server: made in a temporary folder, reached by a Unix-domain socket, gone at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from pgdyno.cluster.held import HeldServer, Hold
from pgdyno.cluster.layout import Layout, our_name
from pgdyno.cluster.limits import Limits
from pgdyno.cluster.process import ServerProcess, carried_out
from pgdyno.cluster.scratch import Scratch
from pgdyno.cluster.settings import Setting
from pgdyno.errors import ClusterError, LocalError, msg
from pgdyno.interrupt import signals_held
from pgdyno.mysql.session import Session
from pgdyno.mysql.target import MySqlTarget

DATABASE = "pgdyno"
#: Where distributions install the server.
_PATH = "/usr/sbin:/usr/bin:/usr/libexec:/usr/local/sbin:/usr/local/bin"


class MariaDbProcess(ServerProcess):
    """`mariadbd` on a data directory."""

    shutdown: ClassVar[signal.Signals] = signal.SIGTERM
    #: It has no immediate shutdown.
    immediate: ClassVar[signal.Signals] = signal.SIGKILL
    #: A clean shutdown writes the buffer pool, for minutes, and nobody needs these data any more.
    orphaned: ClassVar[signal.Signals] = signal.SIGKILL
    start_timeout_s: ClassVar[float] = 600.0
    stop_timeout_s: ClassVar[float] = 600.0

    def _command(self) -> list[str | Path]:
        # Of an option that is given twice the last counts.
        return [self.program, "--no-defaults", *self._options, f"--datadir={self.data}"]

    def _is_ready(self) -> bool:
        # It listens when its storage engines are up.
        path = next(x.partition("=")[2] for x in self._options if x.startswith("--socket="))
        with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
            s.connect(path)
            return True
        return False


class PrivateMariaDb(HeldServer):
    """Private MariaDB server in a new folder. Use it as a context manager; `keep` leaves the stopped server on disk."""

    def __init__(
        self, settings: list[Setting], *, keep: bool = False, parent: Path | None = None, limits: Limits | None = None
    ) -> None:
        """Set up a server in a new folder in `parent`; None means the temporary folder."""
        super().__init__(Layout(Path()), settings, limits)
        self.keep = keep
        self.program, self._install = programs()
        self._parent = parent
        self._scratch: Scratch | None = None

    def __enter__(self) -> PrivateMariaDb:
        try:
            with signals_held():
                self._scratch = Scratch(self._parent)
                self.layout = Layout(self._scratch.path)
            self.layout.refuse_bad_path()
            self.account.refuse_if_out_of_reach(self.base)
            self.layout.make_folder(self.data, self.account)
            self.layout.make_folder(self.layout.socket, self.account)
            self._make()
            self.start()
            with Session(self._server_target("mysql")) as session:
                session.rows(f"create database {DATABASE} character set utf8mb4")
        except BaseException:
            self.keep = False
            with signals_held():
                self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        with signals_held():
            self.stop(discard=not self.keep)
            if not self.keep:
                self._remove()
            elif self._scratch is not None:
                self._scratch.keep()

    @property
    def target(self) -> MySqlTarget:
        """Connection target of the server's database."""
        return self._server_target(DATABASE)

    def _server_target(self, dbname: str) -> MySqlTarget:
        return MySqlTarget(host=str(self._socket), port=0, user=our_name(), dbname=dbname)

    @property
    def _socket(self) -> Path:
        return self.layout.socket / "s"

    def _make(self) -> None:
        # Its account is the operating system's, nobody else on this machine gets in.
        done = carried_out(
            [
                self._install,
                "--no-defaults",
                f"--datadir={self.data}",
                "--auth-root-authentication-method=socket",
                f"--auth-root-socket-user={our_name()}",
                "--skip-test-db",
            ],
            self.account,
        )
        if done.returncode != 0:
            reason = " ".join((done.stderr or done.stdout).split())[-300:]
            kind = LocalError if "No space left" in reason else ClusterError
            raise kind(msg("error-mariadb-install-failed", reason=reason))

    def _process(self, hold: Hold | None) -> ServerProcess:
        options = [
            *(f"--{s.name}={s.value}" for s in self.settings),
            f"--socket={self._socket}",
            f"--pid-file={self.layout.socket / 'pid'}",
            "--skip-networking=1",
        ]
        return MariaDbProcess(self.program, self.data, self.log, self.account, options=options, hold=hold)

    def _remove(self) -> None:
        self.stop(discard=True)
        if self._scratch is not None:
            self._scratch.remove()


def programs() -> tuple[Path, Path]:
    """Return the paths of mariadbd and mariadb-install-db. Raise LocalError if MariaDB is not installed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), _PATH])
    server = shutil.which("mariadbd", path=path)
    install = shutil.which("mariadb-install-db", path=path)
    if server is None or install is None:
        raise LocalError(msg("error-mariadb-not-installed"), msg("remedy-install-mariadb"))
    return Path(server), Path(install)
