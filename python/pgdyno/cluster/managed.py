"""A cluster of ours that stays: a folder that the user names, started and stopped by us, restored from templates."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import psutil

from pgdyno import home
from pgdyno.cluster import binaries
from pgdyno.cluster.account import Account, server_account
from pgdyno.cluster.datadir import PID_FILE
from pgdyno.cluster.layout import Layout, initdb
from pgdyno.cluster.process import ServerProcess, carried_out
from pgdyno.cluster.registry import Entry
from pgdyno.cluster.removal import Made
from pgdyno.cluster.settings import Setting
from pgdyno.errors import LocalError, RefusedError, msg
from pgdyno.interrupt import signals_held

#: In the register of temporary things, while a cluster is being made.
KIND = "cluster"
#: What the cluster was made with.
FACTS = "cluster.json"
#: There, and locked, while a cluster is being made: whoever is killed leaves it unlocked.
_UNFINISHED = "cluster.json.unfinished"


class ManagedCluster:
    """A cluster's folder."""

    def __init__(self, base: Path) -> None:
        self.base = base.absolute()
        self.layout = Layout(self.base)
        self.account: Account = server_account()
        self._made: Made | None = None
        self._unfinished: TextIO | None = None
        self._entry: Entry | None = None

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.layout.data

    def create(
        self,
        settings: Sequence[Setting],
        *,
        pg_bin: Path | None = None,
        checksums: bool | None = None,
        stage: Path | None = None,
    ) -> None:
        """Create the cluster with initdb, in a folder that does not exist yet or is empty.

        If the creation fails, everything created so far is removed. `stage` is the folder for copies of programs that
        the account cannot reach. None means a folder in the cluster's folder.
        """
        self.prepare()
        try:
            self.layout.make_folder(self.data, self.account)
            programs = binaries.find(self.account, stage or self.base / "programs", pg_bin)
            initdb(self.layout, programs, self.account, checksums=checksums)
            self.layout.configure(self.account, list(settings))
            refuse_bad_settings(self.layout, programs, self.account)
            self.remember(programs)
        except BaseException:
            self.abandon()
            raise

    def prepare(self) -> None:
        """Create the cluster's folder and the socket's folder; the caller adds `data`."""
        self.layout.refuse_bad_path()
        existed = self.base.exists()
        try:
            self.base.mkdir(mode=0o755, parents=True, exist_ok=True)
            if (self.base / _UNFINISHED).exists():
                self.sweep()
            if any(self.base.iterdir()):
                raise RefusedError(msg("error-not-empty", base=self.base), msg("remedy-name-folder-does-not-exist"))
            self._made = None if existed else Made.at(self.base)
            self._unfinished = (self.base / _UNFINISHED).open("x", encoding="utf-8")
            fcntl.flock(self._unfinished, fcntl.LOCK_EX)
            self._entry = Entry(KIND, Made.at(self.base), existed=existed)
            # The server's account must get through.
            self.base.chmod(self.base.stat().st_mode | 0o111)
            self.account.refuse_if_out_of_reach(self.base)
            self.layout.make_folder(self.layout.socket, self.account)
        except LocalError:
            self.abandon()
            raise
        except OSError as e:
            raise LocalError(
                msg("error-cannot-make", base=self.base, strerror=e.strerror), msg("remedy-name-folder-you-may-write")
            ) from e

    def abandon(self) -> None:
        """Remove a cluster whose creation could not be finished."""
        with signals_held():
            self._remove_parts()
            if self._unfinished is not None:
                self._unfinished.close()
            if self._made is not None:
                self._made.remove()
            if self._entry is not None:
                self._entry.done()

    def sweep(self) -> None:
        """Remove what a pgdyno process left if it was killed while it created this cluster."""
        fd = os.open(self.base / _UNFINISHED, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError(
                msg("error-another-pgdyno-makes-cluster", base=self.base), msg("remedy-wait-until-ended")
            ) from None
        finally:
            os.close(fd)
        if (self.base / FACTS).exists():
            # It was finished but for this file, and may have been used since.
            (self.base / _UNFINISHED).unlink()
        else:
            self._remove_parts()

    def _remove_parts(self) -> None:
        """Remove the parts of a cluster; other content of the folder stays, because it belongs to somebody else."""
        parts = [self.data, self.layout.socket, self.base / "programs", *self.base.glob("data.unfinished-*")]
        for part in parts:
            if part.is_dir() and not part.is_symlink():
                Made.at(part).remove()
        # Last: without it nobody would know whose the rest is.
        for file in (self.layout.log, self.base / FACTS, self.base / _UNFINISHED):
            file.unlink(missing_ok=True)

    def remember(self, programs: binaries.Binaries) -> None:
        """Record which programs the cluster belongs to."""
        facts = {"programs": str(programs.folder), "version": programs.version}
        home.replace_file(self.base / FACTS, json.dumps(facts, indent=2) + "\n")
        if self._unfinished is not None:
            (self.base / _UNFINISHED).unlink(missing_ok=True)
            self._unfinished.close()
        if self._entry is not None:
            self._entry.done()

    def programs(self) -> Path:
        """Return the folder of the programs with which the cluster was created."""
        try:
            return Path(json.loads((self.base / FACTS).read_text())["programs"])
        except (OSError, ValueError, KeyError) as e:
            raise RefusedError(
                msg("error-no-cluster-pgdyno-s-no", base=self.base, facts=FACTS),
                msg("remedy-make-one-pgdyno-cluster-create"),
            ) from e

    def process_id(self) -> int | None:
        """Return the process id of the server, or None if it does not run.

        The pid file must name the process, and the process must be a postgres that works in the cluster's data
        directory. Raise LocalError if pgdyno lacks the permission to look. Raise RefusedError if pgdyno itself holds
        the directory.
        """
        try:
            lines = self._pid_file().splitlines()
            process = psutil.Process(int(lines[0]))
            is_its = process.uids().real == self.account.uid and Path(process.cwd()) == self.data.resolve()
            if process.name() == "postgres" and is_its:
                return int(process.pid)
            if "pgdyno" in process.cmdline() and str(self.data / PID_FILE) in process.cmdline():
                raise RefusedError(msg("error-pgdyno-at-work-run-load", base=self.base), msg("remedy-wait-until-ended"))
        except (FileNotFoundError, ValueError, IndexError, psutil.NoSuchProcess):
            pass
        except (OSError, psutil.AccessDenied) as e:
            raise LocalError(
                msg("error-cannot-see-whether-server-runs", base=self.base, reason=e),
                msg("remedy-use-account-cluster-belongs"),
            ) from e
        return None

    def _pid_file(self) -> str:
        """Return the content of the pid file, read with the account's rights.

        Below the account's folder any name may be a link or a pipe. Raise OSError if the file cannot be read.
        """
        with self.account.rights():
            fd = os.open(self.data / PID_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                return os.read(fd, 4096).decode("utf-8", "replace") if stat.S_ISREG(os.fstat(fd).st_mode) else ""
            finally:
                os.close(fd)

    def version(self) -> str:
        """Return the version of the programs that created the cluster."""
        self.programs()
        return str(json.loads((self.base / FACTS).read_text()).get("version") or "?")

    def start(self) -> None:
        """Start the server; it keeps running when pgdyno ends."""
        program = self.programs() / "postgres"
        if self.process_id() is not None:
            return
        # The socket's folder may be another than when the settings were written.
        options = [f"unix_socket_directories={self.layout.socket}"]
        ServerProcess(
            program, self.data, self.layout.log, self.account, options=options, stays=True, patient=True
        ).start()

    def stop(self) -> None:
        """Stop the server cleanly, if it runs, and wait as long as writing its buffers takes."""
        self.programs()
        pid = self.process_id()
        if pid is None:
            return
        os.kill(pid, signal.SIGINT)
        while self.process_id() == pid:
            time.sleep(0.01)

    def destroy(self) -> None:
        """Stop the server and remove the parts of the cluster; other content of the folder stays."""
        self.stop()
        self._remove_parts()
        with contextlib.suppress(OSError):
            self.base.rmdir()

    def take_over(self, programs: binaries.Binaries) -> None:
        """After the data came from a template: where the socket is, who gets in."""
        self.layout.move_in(self.account)
        self.remember(programs)


def remove_abandoned(owned: Made, *, existed: bool) -> bool:
    """Remove the parts of a cluster that a killed pgdyno had begun to create.

    Also remove the folder, unless it existed before.
    """
    if (owned.path / _UNFINISHED).exists():
        ManagedCluster(owned.path).sweep()
    if not existed and not any(owned.path.iterdir()):
        owned.path.rmdir()
    return True


def refuse_bad_settings(layout: Layout, programs: binaries.Binaries, account: Account) -> None:
    """Raise RefusedError if the server does not accept its settings."""
    done = carried_out([programs.program("postgres"), "-D", layout.data, "-C", "data_directory"], account)
    if done.returncode != 0:
        lines = [x.partition(" LOG: ")[2] or x.partition(" FATAL: ")[2] or x for x in done.stderr.splitlines()]
        raise RefusedError(msg("error-server-does-not-take-settings", lines=" / ".join(x.strip() for x in lines)), "")


def resolved(path: Path) -> Path:
    """Return the data directory for a folder: a cluster of pgdyno's, or a data directory itself."""
    inside = path / "data"
    return inside if (inside / "PG_VERSION").exists() and not (path / "PG_VERSION").exists() else path
