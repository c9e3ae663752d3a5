"""A private cluster: made in a temporary folder, reached by a Unix-domain socket, gone when we are done.

The server is our child: it dies when we do (Linux's parent-death signal), and whatever a killed pgdyno left behind is
removed by the next one.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

import psutil

from pgdyno.cluster import binaries
from pgdyno.cluster.account import Account, server_account
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.errors import ClusterError
from pgdyno.interrupt import signals_held

PREFIX = "pgdyno-cluster-"
#: Locked by the pgdyno that the folder belongs to, for as long as it lives.
OWNER = "owner"
#: The role and the database that the cluster begins with.
SUPERUSER = "postgres"
DATABASE = "postgres"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0


class EmbeddedCluster:
    """One server. Use as a context manager; `keep` leaves it on disk, stopped."""

    def __init__(self, settings: list[Setting], *, keep: bool = False, pg_bin: Path | None = None) -> None:
        self.settings = settings
        self.keep = keep
        self._pg_bin = pg_bin
        self._process: subprocess.Popen[bytes] | None = None
        self._account: Account = server_account()
        self.base = Path()
        self.binaries: binaries.Binaries | None = None
        self._owner: TextIO | None = None

    # ------------------------------------------------------------ life

    def __enter__(self) -> EmbeddedCluster:
        sweep()
        try:
            with signals_held():
                self.base = Path(tempfile.mkdtemp(prefix=PREFIX))
                self.base.chmod(0o755)
                # The lock says that we are alive, whatever clocks and process numbers say; it goes with us.
                self._owner = (self.base / OWNER).open("w", encoding="utf-8")
                fcntl.flock(self._owner, fcntl.LOCK_EX)
            for name in ("data", "socket"):
                folder = self.base / name
                folder.mkdir(mode=0o700)
                self._account.own(folder)
            self.binaries = binaries.find(self._account, self.base / "programs", self._pg_bin)
            self._initdb()
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
        """Starts the server and waits until it takes connections."""
        assert self.binaries is not None
        with self.log.open("ab") as log, signals_held():
            self._process = subprocess.Popen(
                [self.binaries.program("postgres"), "-D", self.data],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_environment(),
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
                **self._account.popen(),
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if not self.is_alive():
                raise ClusterError(f"the server did not start: {self.last_words()}")
            if time.monotonic() > deadline:
                raise ClusterError(f"the server did not start within {START_TIMEOUT_S:g} s: {self.last_words()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stops the server: fast shutdown, then immediate, then by force."""
        process, self._process = self._process, None
        if process is None:
            return
        for sig, patience in ((signal.SIGINT, STOP_TIMEOUT_S), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
            if process.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(sig)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)

    def is_alive(self) -> bool:
        """Whether the server's process is there."""
        return self._process is not None and self._process.poll() is None

    def last_words(self, lines: int = 5) -> str:
        """The end of the server's log."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "it left no log"
        return " / ".join(line.strip() for line in text.splitlines()[-lines:]) or "it left an empty log"

    # ------------------------------------------------------------ facts

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.base / "data"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.base / "server.log"

    @property
    def process_id(self) -> int | None:
        """The postmaster's process id."""
        return self._process.pid if self._process else None

    @property
    def target(self) -> Target:
        """How to reach it."""
        return Target(host=str(self.base / "socket"), port=5432, user=SUPERUSER, dbname=DATABASE)

    # ------------------------------------------------------------ inside

    def _initdb(self) -> None:
        assert self.binaries is not None
        done = subprocess.run(
            [
                self.binaries.program("initdb"),
                "--pgdata",
                self.data,
                "--username",
                SUPERUSER,
                "--encoding=UTF8",
                "--locale=C",
                # The role is the operating system's account, nobody else on this machine gets in.
                "--auth=peer",
                "--no-sync",
                "--no-instructions",
            ],
            capture_output=True,
            text=True,
            cwd="/",
            env=_environment(),
            check=False,
            **self._account.popen(),
        )
        if done.returncode != 0:
            reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise ClusterError(f"initdb failed: {reason}", _initdb_remedy(reason))
        users = {self._account.name, _our_name()}
        _write(self.data / "pg_ident.conf", "".join(f"pgdyno {user} {SUPERUSER}\n" for user in sorted(users)))
        _write(self.data / "pg_hba.conf", "local all all peer map=pgdyno\nlocal replication all peer map=pgdyno\n")
        lines = [f"{s.name} = {s.value}  # {s.reason}" for s in self.settings]
        lines.append(f"unix_socket_directories = '{self.base / 'socket'}'")
        _write(self.data / "postgresql.auto.conf", "# Written by pgdyno.\n" + "\n".join(lines) + "\n")

    def _is_ready(self) -> bool:
        # The postmaster writes its state into the eighth line of its pid file.
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"

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


def _write(path: Path, text: str) -> None:
    # The folder belongs to the server's account and we may be root: a link laid there must not lead us elsewhere.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as f:
        f.write(text)


def _our_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _environment() -> dict[str, str]:
    """No PG* variable of the user's may reach the server; messages are in English, because we read them."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return {**env, "LC_ALL": "C", "TZ": "UTC"}


def _die_with_parent() -> None:
    # PR_SET_PDEATHSIG: a fast shutdown when pgdyno dies, however it dies.
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGINT)


def _initdb_remedy(reason: str) -> str:
    if "No space left" in reason:
        return "The temporary folder is full. Set TMPDIR to one with more space."
    if "shared memory" in reason:
        return (
            "Shared memory is short on this system (a container?): allow more, or give the server elsewhere: --target."
        )
    return ""
