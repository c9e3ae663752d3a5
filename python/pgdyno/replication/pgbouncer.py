"""PgBouncer before a cluster: clients have one address, whoever is the primary."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg

from pgdyno import home
from pgdyno.cluster.account import Account
from pgdyno.cluster.layout import write
from pgdyno.cluster.process import environment, last_words
from pgdyno.cluster.removal import Made
from pgdyno.errors import ClusterError, LocalError, msg
from pgdyno.format import one_line

#: The role that speaks to its console.
_ADMIN = "pgdyno_pooler"
_START_S = 20.0
#: How long transactions may take to end before a switchover.
_PAUSE_S = 30.0
#: The first version that knows prepared statements when it pools by transaction.
_PREPARES = (1, 21)
#: Sessions of the server's, and clients, at most.
_POOL, _CLIENTS = 40, 2000


def find() -> Path:
    """Return the path of the pgbouncer program.

    Raise LocalError if it is not found.
    """
    # Debian's is where only root looks.
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise LocalError(msg("error-pgbouncer-was-not-found"), msg("remedy-install-apt-get-install-pgbouncer"))
    return Path(found)


def version(program: Path) -> str:
    """1.18.0, or empty."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, env=environment()).stdout
    match = re.search(r"PgBouncer ([\d.]+)", said)
    return match[1] if match else ""


def prepares(of: str) -> bool:
    """Return True if a PgBouncer version supports prepared statements with transaction pooling."""
    return tuple(int(x) for x in of.split(".")[:2] if x) >= _PREPARES


class PgBouncer:
    """One process, by transaction, in a folder of the cluster's; it goes on when pgdyno ends."""

    def __init__(self, folder: Path, address: str, port: int, account: Account, role: str, passwords: tuple[str, str]):
        """`role`: the clients'; `passwords`: theirs, and that of the console."""
        self.folder = folder
        self.address = address
        self.port = port
        self._account = account
        self._role = role
        self._passwords = passwords

    @property
    def _configuration(self) -> Path:
        return self.folder / "pgbouncer.ini"

    @property
    def _log(self) -> Path:
        # Not in its folder, which is its account's: root opens it.
        return self.folder.with_name("pooler.log")

    @property
    def process_id(self) -> int | None:
        """The process, if it runs."""
        for process in psutil.process_iter(["name", "cmdline", "uids"]):
            is_its = process.info["uids"] is not None and process.info["uids"].real == self._account.uid
            words = process.info["cmdline"] or []
            if is_its and process.info["name"] == "pgbouncer" and str(self._configuration) in words:
                return int(process.pid)
        return None

    def start(self, host: str, port: int) -> None:
        """Start PgBouncer in front of a server unless it runs.

        Raise LocalError if the program is not found. Raise ClusterError if PgBouncer does not start.
        """
        program = find()
        if not self.folder.exists():
            self.folder.mkdir(mode=0o700)
            self._account.own(self.folder)
        self._configure(host, port, version(program))
        if self.process_id is not None:
            self._console("reload")
            # Of a switchover that was killed.
            self._console("resume")
            return
        with home.opened_to_append(self._log) as out:
            subprocess.Popen(
                [program, self._configuration],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
                env=environment(),
                start_new_session=True,
                **self._account.popen(),
            )
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self._console("show version")
                return
            except ClusterError as e:
                if time.monotonic() > deadline:
                    raise ClusterError(msg("error-pgbouncer-does-not-start", last_words=last_words(self._log))) from e
                time.sleep(0.02)

    def _configure(self, host: str, port: int, of: str) -> None:
        clients, console = self._passwords
        lines = [
            "[databases]",
            f"* = host={host} port={port}",
            "[pgbouncer]",
            f"listen_addr = {self.address}",
            f"listen_port = {self.port}",
            "unix_socket_dir =",
            "auth_type = scram-sha-256",
            f"auth_file = {self.folder / 'users.txt'}",
            f"admin_users = {_ADMIN}",
            "pool_mode = transaction",
            f"default_pool_size = {_POOL}",
            f"max_client_conn = {_CLIENTS}",
            "logfile =",
            "pidfile =",
            # A server that is gone is tried again soon: its successor is known soon.
            "server_login_retry = 0.2",
            "server_connect_timeout = 1",
            "ignore_startup_parameters = options,extra_float_digits",
            *(["max_prepared_statements = 200"] if prepares(of) else []),
        ]
        users = f'"{self._role}" "{clients}"\n"{_ADMIN}" "{console}"\n'
        with self._account.rights():
            write(self.folder / "users.txt", users)
            write(self._configuration, "\n".join(lines) + "\n")

    def stop(self) -> None:
        """Stop PgBouncer if it runs."""
        if (pid := self.process_id) is None:
            return
        # SIGTERM waits for clients from 1.23 on.
        for sig in (signal.SIGQUIT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                if self.process_id is None:
                    return
                time.sleep(0.02)
        raise ClusterError(msg("error-pgbouncer-process-does-not-end", pid=pid))

    def remove(self) -> None:
        """Stop PgBouncer and remove its folder."""
        self.stop()
        with contextlib.suppress(OSError):
            Made.at(self.folder).remove()
        self._log.unlink(missing_ok=True)

    def lead_to(self, host: str, port: int) -> None:
        """Point PgBouncer to another server from now on.

        Connections to the old server end with their transactions.
        """
        if self.process_id is not None:
            self._configure(host, port, version(find()))
            self._console("reload")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Within it clients wait, and no transaction is under way: they see a pause, not an error."""
        if self.process_id is None:
            yield
            return
        try:
            # One that was given up would go on, and nobody be served.
            self._console("pause", _PAUSE_S)
            yield
        finally:
            self._console("resume")

    def _console(self, command: str, patience_s: float = 5.0) -> None:
        """Execute a command on the console of PgBouncer.

        Raise ClusterError if the command fails or exceeds the timeout.
        """
        try:
            self._ask(command, patience_s)
        except psycopg.Error as e:
            raise ClusterError(msg("error-pooler", reason=one_line(e)), msg("remedy-log", log=self._log)) from e

    def _ask(self, command: str, patience_s: float) -> None:
        conninfo = psycopg.conninfo.make_conninfo(
            host=self.address, port=self.port, user=_ADMIN, password=self._passwords[1], dbname="pgbouncer",
            connect_timeout=2, sslmode="disable", require_auth="scram-sha-256",
        )  # fmt: skip
        # Its console speaks the simple protocol alone, and in few words.
        conn = psycopg.pq.PGconn.connect(conninfo.encode())
        try:
            if conn.status != psycopg.pq.ConnStatus.OK:
                raise psycopg.OperationalError(conn.error_message.decode(errors="replace").strip())
            conn.send_query(command.encode())
            deadline = time.monotonic() + patience_s
            while True:
                conn.consume_input()
                if not conn.is_busy():
                    result = conn.get_result()
                    if result is None:
                        return
                    if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
                        # Twice paused is paused, and nobody waits.
                        message = result.error_message.decode(errors="replace").strip()
                        if "already" not in message and "not paused" not in message:
                            raise psycopg.OperationalError(f"pgbouncer: {command}: {message}")
                    continue
                if time.monotonic() > deadline:
                    raise psycopg.OperationalError(f"pgbouncer: {command} takes longer than {patience_s:g} s")
                time.sleep(0.002)
        finally:
            conn.finish()
