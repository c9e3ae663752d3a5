"""A data directory whose server is stopped: what it is, that it is stopped indeed, and that it stays so."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.cluster import binaries
from pgdyno.cluster.account import Account, owner_of
from pgdyno.cluster.binaries import Binaries
from pgdyno.cluster.process import ServerProcess, environment
from pgdyno.cluster.scratch import Scratch
from pgdyno.cluster.target import Target
from pgdyno.errors import LocalError, RefusedError, msg
from pgdyno.interrupt import signals_held
from pgdyno.message import Name, Text, sentences

#: Versions whose files pgdyno knows how to write, with the number in their control files.
VERSIONS = {14: 1300, 15: 1300, 16: 1300, 17: 1700, 18: 1800}
_SHUT_DOWN = 1
_STATES = {
    0: "starting up",
    1: "shut down",
    2: "shut down in recovery",
    3: "shutting down",
    4: "in crash recovery",
    5: "in archive recovery",
    6: "in production",
}
PID_FILE = "postmaster.pid"
#: Limits that a role may have for its applications are not for us: nobody else is there, and a load takes its time.
_NO_LIMITS = (
    "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0 "
    "-c default_transaction_read_only=off"
)


@dataclass(frozen=True)
class DataDirectory:
    """A data directory and the account that owns it."""

    path: Path
    major: int
    account: Account


def examine(path: Path) -> DataDirectory:
    """Return the data directory at `path`, which must belong to a stopped primary of a known version.

    Raise RefusedError if it does not; the message says what the path is instead.
    """
    path = path.resolve()
    try:
        (path / "PG_VERSION").lstat()
        account = _owner(path)
        with account.rights():
            text = (path / "PG_VERSION").read_text(errors="replace").strip()
    except OSError as e:
        if isinstance(e, FileNotFoundError) and path.is_dir():
            raise RefusedError(msg("error-no-pg-version", path=path), msg("remedy-give-folder-holds-pg-version")) from e
        raise RefusedError(
            msg("error-no-data-directory-we-can", path=path, strerror=e.strerror),
            msg("remedy-give-folder-holds-pg-version"),
        ) from e
    if not text.isdigit() or int(text) not in VERSIONS:
        raise RefusedError(
            msg("error-postgresql-pgdyno-writes-files", path=path, text=text, min=min(VERSIONS), max=max(VERSIONS)),
            msg("remedy-load-over-connection-instead-method"),
        )
    found = DataDirectory(path, int(text), account)
    with account.rights():
        is_standby = (path / "standby.signal").exists() or (path / "recovery.signal").exists()
        kinds = (("pg_replslot", "replication slots"), ("pg_twophase", "prepared transactions"))
        held = [what for folder, what in kinds if any((path / folder).glob("*"))]
    # First what it is: of a standby the control file says something else than of a server that was stopped.
    if is_standby:
        raise RefusedError(msg("error-standby-or-about-be-restored", path=path), msg("remedy-load-through-primary"))
    refuse_if_running(found)
    if held:
        raise RefusedError(
            msg("error-files-written-past-server-would", path=path, held=held[0]),
            msg("remedy-remove-them-first-or-load"),
        )
    return found


def refuse_if_running(directory: DataDirectory) -> None:
    """Raise RefusedError unless the server is stopped and was shut down cleanly."""
    path = directory.path
    try:
        with directory.account.rights():
            lines = (path / PID_FILE).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        pass
    except OSError as e:
        raise LocalError(msg("error-cannot-read", path=path / PID_FILE, reason=e.strerror)) from e
    else:
        raise RefusedError(
            msg("error-server-at-work-or-did", path=path, pid_file=PID_FILE, lines=" ".join(lines[:1])),
            sentences([_other_way(lines), msg("remedy-or-stop-pg-ctl-d", path=path)]),
        )
    version, state = _control(directory)
    if version != VERSIONS[directory.major]:
        raise RefusedError(
            msg(
                "error-global-pg-control-format-not",
                path=path,
                version=version,
                versions=VERSIONS[directory.major],
                major=directory.major,
            ),
            msg("remedy-load-over-connection-instead-method"),
        )
    if state != _SHUT_DOWN:
        raise RefusedError(
            msg("error-was-not-shut-down-order", path=path, get=_STATES.get(state, state)),
            msg("remedy-start-server-once-stop-pg"),
        )


def _other_way(lines: list[str]) -> Text:
    """Return the advice for loading into the running server of a pid file."""
    if len(lines) < 5 or not lines[3].isdigit() or not lines[4]:
        return Name("")
    return msg("remedy-load-as-it-runs", conninfo=f"host={lines[4]} port={lines[3]} dbname=postgres")


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Keep other pgdynos off a data directory. Raise RefusedError where one is at work in it."""
    try:
        with _owner(path).rights():
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except (RefusedError, OSError):
        # What is no data directory, or not ours to work in, is said by `examine`.
        yield
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError(
                msg("error-another-pgdyno-at-work", path=path), msg("remedy-wait-until-ended-server-not")
            ) from None
        yield
    finally:
        os.close(fd)


def shared_memory_of(path: Path) -> int | None:
    """Return the System V shared memory segment of the server that runs in `path`; None if it is not known."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int((path / PID_FILE).read_text().splitlines()[6].split()[1])
    return None


def refuse_if_attached(segment: int | None) -> None:
    """Raise RefusedError while processes of a stopped server still hold its shared memory."""
    if segment is None:
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
            words = line.split()
            if int(words[1]) == segment and int(words[6]) > 0:
                raise RefusedError(
                    msg("error-process-es-stopped-server-still", words=words[6]),
                    msg("remedy-find-end-them-pgrep-postgres"),
                )


@contextlib.contextmanager
def kept_stopped(directory: DataDirectory) -> Iterator[None]:
    """Nobody can start the server meanwhile: a process of ours stands in its pid file.

    The process is the account's own: a server takes a pid file for stale whose process it may not signal. When we die,
    however we die, it removes the file: a dead process that nobody reaps (containers) would keep the server from
    starting.
    """
    refuse_if_running(directory)
    path = directory.path / PID_FILE
    with signals_held():
        stand_in = subprocess.Popen(
            ["sh", "-c", 'read -r _; rm -f -- "$1"', "pgdyno", path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            # Ctrl-C is for us, not for it.
            start_new_session=True,
            **directory.account.popen(),
        )
        try:
            with directory.account.rights():
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except OSError as e:
            _end(stand_in)
            raise RefusedError(
                msg("error-cannot-claim", path=directory.path, name=path.name, strerror=e.strerror),
                msg("remedy-server-been-started-there-just"),
            ) from e
        with os.fdopen(fd, "w") as f:
            f.write(f"{stand_in.pid}\n{directory.path}\n0\n0\n\n\n\nstarting\n")
    try:
        # Whoever started it between the look and the claim would have left its traces by now.
        if _control(directory)[1] != _SHUT_DOWN:
            raise RefusedError(
                msg("error-server-was-started-just-now", path=directory.path), msg("remedy-stop-pg-ctl-stop")
            )
        yield
    finally:
        with signals_held():
            # First the process: later it would remove the file of the server that comes.
            _end(stand_in)
            with directory.account.rights():
                path.unlink(missing_ok=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


class PrivateServer:
    """Server that pgdyno starts on an existing data directory for its own use only.

    The server listens on a socket in a closed folder. It uses none of the user's configuration except the file in the
    directory itself (postgresql.auto.conf). Use it as a context manager, which stops the server at the end.

    Raise RefusedError if the directory's own configuration archives WAL and `archives` is false.
    """

    def __init__(
        self,
        directory: DataDirectory,
        user: str,
        dbname: str,
        *,
        pg_bin: Path | None = None,
        archives: bool = True,
        tables: int = 0,
    ) -> None:
        self.directory = directory
        self._user = user
        self._dbname = dbname
        self._pg_bin = pg_bin
        self._archives = archives
        self._tables = tables
        self._scratch: Scratch | None = None
        self._server: ServerProcess | None = None

    def __enter__(self) -> PrivateServer:
        try:
            with signals_held():
                self._scratch = Scratch()
            base, account = self._scratch.path, self.account
            account.refuse_if_out_of_reach(base)
            named = self._pg_bin or _programs_of(self.directory)
            self.programs = binaries.for_major(account, base / "programs", self.directory.major, named)
            if not self._archives:
                _refuse_an_archive(self.directory, self.programs)
            socket, hba, nothing = base / "socket", base / "hba", base / "nothing"
            socket.mkdir(mode=0o700)
            account.own(socket)
            hba.write_text("local all all trust\n")
            nothing.touch()
            for path in (hba, nothing):
                path.chmod(0o644)
            options = (
                f"config_file={nothing}",
                f"hba_file={hba}",
                f"ident_file={nothing}",
                f"unix_socket_directories={socket}",
                "unix_socket_permissions=0700",
                "port=5432",
                "listen_addresses=",
                "logging_collector=off",
                "log_destination=stderr",
                "autovacuum=off",
                "archive_mode=off",
                "shared_preload_libraries=",
                # Little memory is mapped and unmapped faster.
                "shared_buffers=64MB",
                # At least twice the largest segment that initdb makes.
                "min_wal_size=2GB",
                "max_wal_size=4GB",
                # Nothing is lost that an archive, a standby or a summary still waits for.
                "wal_keep_size=1TB",
                "wal_level=replica",
                "max_wal_senders=0",
                "synchronous_standby_names=",
                "max_logical_replication_workers=0",
                "max_connections=100",
                "superuser_reserved_connections=3",
                # Each table, its key and its TOAST are locked in one transaction: old ones and new ones.
                f"max_locks_per_transaction={256 + self._tables // 10}",
                "maintenance_work_mem=256MB",
                # ANALYZE reads single pages all over the table: measured, twice as fast as with the workers of 18.
                "maintenance_io_concurrency=64",
                *(("io_method=sync",) if self.directory.major >= 18 else ()),
            )
            program, log = self.programs.program("postgres"), base / "server.log"
            self._server = ServerProcess(program, self.directory.path, log, account, options=options, patient=True)
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _remove(self) -> None:
        with signals_held():
            if self._server is not None:
                self._server.stop()
            if self._scratch is not None:
                self._scratch.remove()

    @property
    def target(self) -> Target:
        """Connection target of the server."""
        assert self._scratch is not None
        socket = str(self._scratch.path / "socket")
        return Target(host=socket, port=5432, user=self._user, dbname=self._dbname, options={"options": _NO_LIMITS})

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory.path

    @property
    def account(self) -> Account:
        """Account that owns the files."""
        return self.directory.account

    def start(self) -> None:
        """Start the server."""
        assert self._server is not None
        self._server.start()

    def stop(self) -> None:
        """Stop the server."""
        assert self._server is not None
        self._server.stop()


def _refuse_an_archive(directory: DataDirectory, programs: Binaries) -> None:
    """Raise RefusedError if the server archives WAL, or if its configuration cannot be found.

    The check is limited to what can be known while the server is stopped.
    """
    with directory.account.rights():
        waiting = any((directory.path / "pg_wal" / "archive_status").glob("*.ready"))
    # Debian has the configuration elsewhere; it names the data directory.
    elsewhere = [p.parent for p in Path("/etc/postgresql").glob(f"{directory.major}/*/postgresql.conf")]
    if named := re.search(r'"config_file=([^"]+)"', _last_command(directory)):
        elsewhere.append(Path(named[1]).parent)
    inside = (directory.path / "postgresql.conf").exists()
    read = False
    for folder in [directory.path] if inside else elsewhere:
        shown = [_configured(programs, directory.account, folder, name) for name in ("data_directory", "archive_mode")]
        if shown[0] is not None and Path(shown[0]).resolve() == directory.path:
            read = True
            waiting = waiting or shown[1] in ("on", "always")
    if waiting:
        raise RefusedError(
            msg("error-archives-wal-rows-written-past", path=directory.path),
            msg("remedy-load-over-connection-instead-method-2"),
        )
    if not read:
        raise RefusedError(
            msg("error-configuration-was-not-found-so", path=directory.path),
            msg("remedy-if-does-not-say-ignore"),
        )


def _last_command(directory: DataDirectory) -> str:
    """Return the command of the last server start: program, and options in double quotes."""
    try:
        with directory.account.rights():
            return (directory.path / "postmaster.opts").read_text(errors="replace")
    except OSError:
        return ""


def _programs_of(directory: DataDirectory) -> Path | None:
    """Return the folder of the programs that last started the server, or None if they cannot be used.

    These programs are sure to know the locales of the data directory.
    """
    program = Path(_last_command(directory).split(' "')[0].strip() or "/nonexistent")
    if program.name != "postgres" or not program.exists() or not directory.account.can_run(program):
        return None
    return program.parent


def _configured(programs: Binaries, account: Account, folder: Path, name: str) -> str | None:
    """Return the value of a setting in the configuration in `folder`; None if it cannot be read."""
    done = subprocess.run(
        [programs.program("postgres"), "-D", folder, "-C", name],
        capture_output=True,
        text=True,
        cwd="/",
        env=environment(),
        check=False,
        **account.popen(),
    )
    return done.stdout.strip() if done.returncode == 0 else None


def _control(directory: DataDirectory) -> tuple[int, int]:
    """Return the format version of the control file and the state of the cluster."""
    path = directory.path
    try:
        with directory.account.rights():
            head = (path / "global" / "pg_control").read_bytes()[:20]
        version, _, state = struct.unpack("=8x I I I", head)
    except (OSError, struct.error) as e:
        raise RefusedError(
            msg("error-cannot-read-global-pg-control", path=path, reason=e), msg("remedy-this-data-directory")
        ) from e
    return version, state


def _owner(path: Path) -> Account:
    account = owner_of(path)
    if account.uid == 0:
        raise RefusedError(msg("error-belongs-root-which-no-server", path=path), msg("remedy-give-server-s-own-data"))
    if os.geteuid() not in (0, account.uid):
        raise RefusedError(
            msg("error-belongs-another-account-uid", path=path, uid=account.uid),
            msg("remedy-run-pgdyno-account-or-root"),
        )
    return account
