"""A private MariaDB for tests: Debian's programs, its own folder, TLS, nothing on the network but loopback."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from pgdyno import _core
from pgdyno.cluster.account import server_account
from pgdyno.mysql.session import Session
from pgdyno.mysql.target import MySqlTarget

from tests.support.server import free_port
from tests.support.waiting import wait_until

_INSTALL, _SERVER = shutil.which("mariadb-install-db"), shutil.which("mariadbd", path="/usr/sbin:/usr/bin")
#: The plugin ed25519 comes with the server.
_PLUGINS = "auth_ed25519"
_START_S, _STOP_S = 60.0, 30.0


def why_not() -> str:
    """Return why there is no MariaDB here; empty: there is."""
    return "" if _INSTALL and _SERVER and shutil.which("openssl") else "needs Debian's mariadb-server, and openssl"


class MariaDb:
    """Use as a context manager: the server runs within, with an empty database `bench`, and is gone behind it."""

    def __init__(self, *options: str) -> None:
        """Take further options of the server, such as --innodb-lock-wait-timeout=1."""
        self._options = options
        self.base = Path(tempfile.mkdtemp(prefix="pgdyno-test-mariadb-"))
        self.base.chmod(0o755)
        self.socket = self.base / "run" / "s"
        self.port = free_port()
        self.certificate = self.base / "server.crt"
        self._account = server_account()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> MariaDb:
        try:
            self._make()
            self.start()
            with self.session(dbname="mysql") as s:
                s.rows("create database bench character set utf8mb4")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.kill()
        shutil.rmtree(self.base, ignore_errors=True)

    def _make(self) -> None:
        for name in ("data", "run"):
            (self.base / name).mkdir()
            self._account.own(self.base / name)
        key = self.base / "server.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", self.certificate,
             "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
            check=True, capture_output=True,
        )  # fmt: skip
        self._account.own(key)
        subprocess.run(
            [str(_INSTALL), "--no-defaults", f"--datadir={self.base}/data", "--auth-root-authentication-method=normal",
             "--skip-test-db", *self._user],
            check=True, capture_output=True,
        )  # fmt: skip

    @property
    def _user(self) -> list[str]:
        return [f"--user={self._account.name}"] if self._account.other else []

    def start(self) -> None:
        """Start the server and wait until it answers."""
        log = (self.base / "log").open("ab")
        argv = [
            str(_SERVER), "--no-defaults", f"--datadir={self.base}/data", f"--socket={self.socket}",
            f"--port={self.port}", "--bind-address=127.0.0.1", f"--pid-file={self.base}/run/pid",
            f"--plugin-load-add={_PLUGINS}", f"--ssl-cert={self.certificate}", f"--ssl-key={self.base}/server.key",
            "--innodb-buffer-pool-size=64M", *self._user, *self._options,
        ]  # fmt: skip
        self._process = subprocess.Popen(argv, stdout=log, stderr=log)
        wait_until(self._answers, _START_S)

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, (self.base / "log").read_text()[-2000:]
        with contextlib.suppress(_core.CoreError):
            _core.MySqlSession(self.target(dbname="mysql").core_config(), 5.0).close()
            return True
        return False

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(_STOP_S)

    def target(self, *, user: str = "root", password: str | None = None, dbname: str = "bench") -> MySqlTarget:
        """Return the database over the socket."""
        return MySqlTarget(str(self.socket), self.port, user, dbname, password)

    def session(self, *, dbname: str = "bench") -> Session:
        """Return a session of administration."""
        return Session(self.target(dbname=dbname))

    @property
    def url(self) -> str:
        """URL of the database over the socket."""
        return f"mysql://root@localhost/bench?socket={self.socket}"
