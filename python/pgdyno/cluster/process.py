"""A server's process: started, watched, stopped. It dies with us unless it is told to stay."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import psutil

from pgdyno import home
from pgdyno.cluster.account import Account
from pgdyno.errors import ClusterError, msg
from pgdyno.interrupt import signals_held
from pgdyno.message import Name, Text, message

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0


class ServerProcess:
    """`postgres` on a data directory."""

    #: Signals for a fast shutdown and for an immediate one.
    shutdown: ClassVar[signal.Signals] = signal.SIGINT
    immediate: ClassVar[signal.Signals] = signal.SIGQUIT
    #: Signal that it gets when pgdyno dies.
    orphaned: ClassVar[signal.Signals] = signal.SIGINT
    #: Seconds that it may take to start and to stop.
    start_timeout_s: ClassVar[float] = START_TIMEOUT_S
    stop_timeout_s: ClassVar[float] = STOP_TIMEOUT_S

    def __init__(
        self,
        program: Path,
        data: Path,
        log: Path,
        account: Account,
        *,
        options: Sequence[str] = (),
        stays: bool = False,
        patient: bool = False,
        hold: Callable[[int], None] | None = None,
        launch: Sequence[str] = (),
    ) -> None:
        """Set up the process without starting it.

        `hold` receives the process id as soon as it exists, and again when the server accepts connections. `launch`
        holds words to put before the command. They move it to another place and make it run as the account.
        """
        self.program = program
        self.data = data
        self.log = log
        self._account = account
        self._options = list(options)
        self._stays = stays
        self._launch = list(launch)
        self._hold = hold or (lambda _: None)
        #: Somebody's data: it may recover, and write its buffers, for as long as that takes.
        self._patient = patient
        self._process: subprocess.Popen[bytes] | None = None
        #: Where in the log its words begin: before are those of earlier servers.
        self._words_from = 0

    @property
    def process_id(self) -> int | None:
        """The postmaster's process id."""
        return self._process.pid if self._process else None

    def start(self, timeout_s: float | None = None) -> None:
        """Start the server unless it runs, and wait until it accepts connections."""
        if self.is_alive():
            return
        timeout_s = self.start_timeout_s if timeout_s is None else timeout_s
        dies = sys.platform == "linux" and not self._stays
        with home.opened_to_append(self.log) as log, signals_held():
            self._words_from = log.tell()
            self._process = subprocess.Popen(
                [*self._launch, *self._command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment(),
                start_new_session=True,
                preexec_fn=partial(_die_with, os.getpid(), self.orphaned) if dies else None,
                **({} if self._launch else self._account.popen()),
            )
        self._hold(self._process.pid)
        deadline = time.monotonic() + timeout_s
        while not self._is_ready():
            if not self.is_alive():
                raise ClusterError(msg("error-server-did-not-start", last_words=self.last_words()))
            if not self._patient and time.monotonic() > deadline:
                self.stop()
                raise ClusterError(
                    msg("error-server-did-not-start-within", timeout_s=f"{timeout_s:g}", last_words=self.last_words())
                )
            time.sleep(0.005)
        self._hold(self._process.pid)

    def stop(self, *, discard: bool = False) -> None:
        """Stop the server by fast shutdown.

        Unless the process is patient, an immediate shutdown and then a kill follow. If `discard` is true, the data are
        about to be removed, so the server need not write anything.
        """
        process = self._process
        if process is None:
            return
        ways: list[tuple[signal.Signals, float | None]] = [
            (self.shutdown, None if self._patient else self.stop_timeout_s)
        ]
        if discard:
            ways = []
        if discard or not self._patient:
            ways += [(self.immediate, 5.0), (signal.SIGKILL, 5.0)]
        # Interrupted half-way, we would take a server that still runs for one that has ended.
        with signals_held():
            for sig, patience in ways:
                if process.poll() is not None:
                    break
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(sig)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    _wait_for(process, patience)
            self._process = None

    def crash(self) -> None:
        """SIGKILL for the postmaster and all its children, at once."""
        process = self._process
        if process is None:
            return
        with signals_held():
            kill_all(process.pid)
            process.wait()
            self._process = None

    def is_alive(self) -> bool:
        """Return True if the server process exists."""
        return self._process is not None and self._process.poll() is None

    def last_words(self, lines: int = 5) -> Text:
        """Return the last lines of the server's log."""
        return last_words(self.log, lines, self._words_from)

    def _command(self) -> list[str | Path]:
        """Return the command line of the server."""
        return [self.program, "-D", self.data, *(x for option in self._options for x in ("-c", option))]

    def _is_ready(self) -> bool:
        # The postmaster writes its state into the eighth line of its pid file.
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        mine = self._process is not None and lines[:1] == [str(self._process.pid)]
        return mine and len(lines) >= 8 and lines[7].strip() == "ready"


def kill_all(postmaster_id: int) -> None:
    """SIGKILL for a postmaster and all its children, at once; waits until they are gone."""
    with signals_held(), contextlib.suppress(psutil.NoSuchProcess):
        postmaster = psutil.Process(postmaster_id)
        # Stopped, it makes no new children while they are counted.
        postmaster.suspend()
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        deadline = time.monotonic() + 10
        while any(_is_alive(p) for p in family) and time.monotonic() < deadline:
            time.sleep(0.005)
    # A child of ours that nobody waits for keeps its number, and the next postmaster takes it for alive.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(postmaster_id, 0)


def _is_alive(process: psutil.Process) -> bool:
    """One that has ended and was not reaped yet, by whoever is to, is dead."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def last_words(log: Path, lines: int = 5, begin: int = 0) -> Text:
    """Return the last lines of a server's log, from byte `begin` on."""
    try:
        text = log.read_bytes()[begin:].decode("utf-8", "replace")
    except OSError:
        return message("why-no-log")
    words = " / ".join(line.strip() for line in text.splitlines()[-lines:])
    return Name(words) if words else message("why-empty-log")


def carried_out(argv: Sequence[str | Path], account: Account) -> subprocess.CompletedProcess[str]:
    """Run one of the server's programs as the account and wait for its end."""
    return subprocess.run(
        argv, capture_output=True, text=True, cwd="/", env=environment(), check=False, **account.popen()
    )


def environment() -> dict[str, str]:
    """No PG* variable of the user's may reach the server; messages are in English, because we read them."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return {**env, "LC_ALL": "C", "TZ": "UTC"}


def _wait_for(process: subprocess.Popen[bytes], patience_s: float | None) -> None:
    """Wait for a process and return as soon as it ends.

    Popen.wait alone checks only every 50 ms if it has a timeout. Raise subprocess.TimeoutExpired after `patience_s`
    seconds; None means no timeout.
    """
    if patience_s is not None and sys.platform == "linux":
        # Kernels before 5.3 have no descriptors of processes.
        with contextlib.suppress(OSError):
            fd = os.pidfd_open(process.pid)
            try:
                ended = select.poll()
                ended.register(fd, select.POLLIN)
                ended.poll(patience_s * 1000)
            finally:
                os.close(fd)
            patience_s = 0.0
    process.wait(patience_s)


def run_while_we_live(argv: Sequence[str | Path], account: Account) -> subprocess.CompletedProcess[str]:
    """Run a program as the account on files of pgdyno's; it ends when pgdyno ends, however that happens."""
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        preexec_fn=dies_with_us(),
        **account.popen(),
    )


def dies_with_us() -> Callable[[], None] | None:
    """For subprocess's preexec_fn: the program is killed when pgdyno ends, however that ends."""
    return partial(_die_with, os.getpid(), signal.SIGKILL) if sys.platform == "linux" else None


def _die_with(parent: int, how: signal.Signals) -> None:
    # PR_SET_PDEATHSIG: of a server a fast shutdown when pgdyno dies, however it dies.
    ctypes.CDLL(None, use_errno=True).prctl(1, how)
    # It may have died before that.
    if os.getppid() != parent:
        os._exit(1)
