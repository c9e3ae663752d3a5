"""One server of a cluster with standbys, on a host of its own where there is one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from pgdyno.cluster import binaries
from pgdyno.cluster.datadir import PID_FILE
from pgdyno.cluster.managed import ManagedCluster
from pgdyno.cluster.process import START_TIMEOUT_S, ServerProcess, kill_all, last_words
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.errors import ClusterError, msg
from pgdyno.message import Text

#: How long a server may take to stop in order, before it is stopped by force.
_STOP_S = 30.0
#: Programs that are no part of the server, and understand older ones.
_OF_ANY_VERSION = ("pg_basebackup", "pg_isready", "pg_amcheck")
#: How long a process that was killed may keep its number.
_REAPED_S = 5.0


class Member:
    """See the module. `launch`: the words that bring a program to its host; none: it is this machine."""

    def __init__(self, name: str, folder: Path, address: str, port: int, launch: Sequence[str]) -> None:
        self.name = name
        self.address = address
        self.port = port
        self.launch = list(launch)
        self.cluster = ManagedCluster(folder)

    @property
    def launch_bound(self) -> list[str]:
        """Command prefix like `launch`, for a program that ends when pgdyno does, however pgdyno ends."""
        return [*self.launch[:-1], "--pdeathsig=KILL", "--"] if self.launch else []

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.cluster.data

    @property
    def log(self) -> Path:
        """Its log."""
        return self.cluster.layout.log

    @property
    def local(self) -> Target:
        """Target by the member's socket, as superuser; it works even if no network leads to the member."""
        # What the database's owner has set is not heeded: whatever is called is PostgreSQL's own.
        options = {"options": "-c search_path=pg_catalog"}
        return replace(self.cluster.layout.target, port=self.port, connect_timeout_s=5.0, options=options)

    def program(self, name: str) -> Path:
        """Return the path of one of the programs that this member runs.

        Programs that support any server version may be the embedded ones, because fetched programs come without them.
        """
        own = self.cluster.programs() / name
        if own.exists() or name not in _OF_ANY_VERSION:
            return own
        return binaries.find(self.cluster.account, self.cluster.base.parent / "programs", None).program(name)

    @property
    def major(self) -> int:
        """Its major version."""
        return int(self.cluster.version().split(".")[0].split(" ")[0])

    # ------------------------------------------------------------ its configuration

    def configure(self, settings: Sequence[Setting], access: Sequence[str]) -> None:
        """Write all settings of the member and its access rules.

        A running server must be told to reload them.
        """
        own = [
            Setting("port", str(self.port), "member-port"),
            Setting("listen_addresses", self.address, "cluster-network"),
            Setting("cluster_name", self.name, "member-name"),
        ]
        names = {s.name for s in own}
        account = self.cluster.account
        self.cluster.layout.configure(account, [*(s for s in settings if s.name not in names), *own], access)

    @property
    def is_marked_as_standby(self) -> bool:
        """Return True if the server starts as a standby."""
        with self.cluster.account.rights():
            return (self.data / "standby.signal").exists()

    def mark_as_standby(self) -> None:
        """Mark the member so that it starts as a standby."""
        with self.cluster.account.rights():
            (self.data / "standby.signal").touch(mode=0o600)

    @property
    def _rewinding(self) -> Path:
        return self.cluster.base / "rewinding"

    @property
    def is_half_rewound(self) -> bool:
        """Return True if a pg_rewind was begun and not ended.

        Its target must not be used, nor rewound again.
        """
        return self._rewinding.exists()

    def begin_rewinding(self) -> None:
        """Record that pg_rewind has begun."""
        self._rewinding.touch()

    def end_rewinding(self) -> None:
        """Record that pg_rewind has ended, or that the member was rebuilt."""
        self._rewinding.unlink(missing_ok=True)

    # ------------------------------------------------------------ its processes

    @property
    def process_id(self) -> int | None:
        """The postmaster, if it runs."""
        return self.cluster.process_id()

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start the server unless it runs, and wait until it accepts connections.

        A standby must have reached a consistent state before that. The server continues when pgdyno ends.
        """
        if self.process_id is not None:
            return
        self._wait_reaped()
        programs = self.cluster.programs()
        options = [f"unix_socket_directories={self.cluster.layout.socket}"]
        ServerProcess(
            programs / "postgres",
            self.data,
            self.log,
            self.cluster.account,
            options=options,
            stays=True,
            launch=self.launch,
        ).start(timeout_s)

    def _wait_reaped(self) -> None:
        """Wait until the process of a killed postmaster is reaped.

        Such a process keeps its ID until its parent waits for it. Until then the next postmaster takes it for alive.
        """
        with self.cluster.account.rights():
            try:
                pid = int((self.data / PID_FILE).read_text().splitlines()[0])
            except (OSError, ValueError, IndexError):
                return
        deadline = time.monotonic() + _REAPED_S
        while time.monotonic() < deadline and psutil.pid_exists(pid):
            time.sleep(0.02)

    def reload(self) -> None:
        """Lets a server that runs read its configuration."""
        if (pid := self.process_id) is not None:
            os.kill(pid, signal.SIGHUP)

    def stop(self) -> None:
        """Stop the server in an orderly way; force it after a timeout."""
        pid = self.process_id
        if pid is None:
            return
        self.thaw()
        for sig, patience in ((signal.SIGINT, _STOP_S), (signal.SIGQUIT, 5.0)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                if self.process_id != pid:
                    return
                time.sleep(0.01)
        self.kill()

    def kill(self) -> None:
        """SIGKILL for all its processes at once: a crash of the machine, but for the kernel's memory."""
        if (pid := self.process_id) is not None:
            kill_all(pid)

    def freeze(self) -> None:
        """SIGSTOP for all its processes: it keeps its connections and answers nothing."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets them go on."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, sig: signal.Signals) -> None:
        pid = self.process_id
        if pid is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            postmaster = psutil.Process(pid)
            # First the postmaster: stopped, it makes no children meanwhile.
            os.kill(pid, sig)
            for child in postmaster.children(recursive=True):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, sig)

    def last_words(self) -> Text:
        """Return the end of the server's log."""
        return last_words(self.log)

    def refuse_if_unbuilt(self) -> None:
        """Raise ClusterError if the member has no complete data directory."""
        if not (self.data / "PG_VERSION").exists():
            raise ClusterError(
                msg("error-no-data-directory", name=self.name), msg("remedy-build-again-pgdyno-cluster-repair")
            )

    def take_programs_of(self, other: Member) -> None:
        """Record that the member runs the same programs as another member."""
        self.cluster.remember(binaries.Binaries(other.cluster.programs(), other.cluster.version(), "of the primary"))
