"""A cluster of ours on disk: a folder with `data`, `socket` and `server.log`; how it is made."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from pathlib import Path

from pgdyno.cluster.account import Account
from pgdyno.cluster.binaries import Binaries
from pgdyno.cluster.process import carried_out
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.errors import ClusterError, LocalError, RefusedError, msg
from pgdyno.message import Name, Text

#: The role and the database that a cluster begins with.
SUPERUSER = "postgres"
DATABASE = "postgres"
PORT = 5432
#: sockaddr_un's sun_path on Linux, less its end.
_SOCKET_PATH_MAX = 107


class Layout:
    """Paths in a cluster's folder."""

    def __init__(self, base: Path) -> None:
        self.base = base

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.base / "data"

    @property
    def socket(self) -> Path:
        """The folder of the server's socket."""
        return self.base / "socket"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.base / "server.log"

    @property
    def target(self) -> Target:
        """Connection target of the server."""
        return Target(host=str(self.socket), port=PORT, user=SUPERUSER, dbname=DATABASE)

    def make_folder(self, folder: Path, account: Account) -> None:
        """Create one of the cluster's folders, owned by the account."""
        folder.mkdir(mode=0o700)
        account.own(folder)

    def configure(self, account: Account, settings: list[Setting], access: Sequence[str] = ()) -> None:
        """Write the access rules and the settings.

        `access` holds lines of pg_hba.conf that admit clients other than pgdyno.
        """
        self._let_in(account, access)
        with account.rights():
            major = int((self.data / "PG_VERSION").read_text().split(".")[0])
        self._settings(account, [s.line for s in settings if s.since <= major])

    def move_in(self, account: Account) -> None:
        """Write the access rules and adapt the settings of data from another place.

        The settings stay, except the socket's folder and those that could disturb the original server. These are port,
        listen_addresses, archive_mode and max_logical_replication_workers.
        """
        self._let_in(account)
        conf, auto = self.data / "postgresql.conf", self.data / "postgresql.auto.conf"
        with account.rights():
            has_conf = conf.exists()
            lines = auto.read_text().splitlines() if auto.exists() else []
        if not has_conf:
            # Debian's is in /etc.
            self._write(account, conf, "")
        # A copy is not the original: it does not listen for it, archive for it, or subscribe for it.
        ours = {
            "port": str(PORT),
            "listen_addresses": "''",
            "archive_mode": "off",
            "max_logical_replication_workers": "0",
        }
        kept = [x for x in lines if x.split("=")[0].strip() not in {*ours, "unix_socket_directories"} and x[:1] != "#"]
        self._settings(account, kept + [f"{name} = {value}" for name, value in ours.items()])

    def _let_in(self, account: Account, others: Sequence[str] = ()) -> None:
        users = {account.name, our_name()}
        idents = "".join(f"pgdyno {user} {SUPERUSER}\n" for user in sorted(users))
        self._write(account, self.data / "pg_ident.conf", idents)
        access = ["local all all peer map=pgdyno", "local replication all peer map=pgdyno", *others]
        self._write(account, self.data / "pg_hba.conf", "\n".join(access) + "\n")

    def _settings(self, account: Account, lines: list[str]) -> None:
        folder = str(self.socket).replace("'", "''")
        text = "\n".join(["# Written by pgdyno.", *lines, f"unix_socket_directories = '{folder}'"])
        self._write(account, self.data / "postgresql.auto.conf", text + "\n")

    def _write(self, account: Account, path: Path, text: str) -> None:
        with account.rights():
            write(path, text)

    def refuse_bad_path(self) -> None:
        """Raise RefusedError if no server could have its socket in this folder."""
        path = str(self.socket)
        if len(f"{path}/.s.PGSQL.{PORT}".encode()) > _SOCKET_PATH_MAX:
            raise RefusedError(
                msg("error-too-long-name-socket-s", base=self.base, socket_path_max=_SOCKET_PATH_MAX),
                msg("remedy-use-shorter-one-private-servers"),
            )
        if any(c in path for c in ",\n\r") or path.startswith("@"):
            raise RefusedError(
                msg("error-comma-or-line-break", base=f"{self.base!s:.100}"), msg("remedy-use-name-without")
            )


def initdb(layout: Layout, binaries: Binaries, account: Account, *, checksums: bool | None = None) -> None:
    """Create a cluster with initdb.

    If `checksums` is None, the default of the version applies.
    """
    options = {None: [], True: ["--data-checksums"], False: ["--no-data-checksums"]}[checksums]
    if checksums is False and binaries.major < 18:
        # Before 18 there was no such option, and none needed.
        options = []
    done = carried_out(
        [
            binaries.program("initdb"),
            "--pgdata",
            layout.data,
            "--username",
            SUPERUSER,
            "--encoding=UTF8",
            "--locale=C",
            # The role is the operating system's account, nobody else on this machine gets in.
            "--auth=peer",
            "--no-sync",
            "--no-instructions",
            *options,
        ],
        account,
    )
    if done.returncode != 0:
        reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        kind = LocalError if "No space left" in reason else ClusterError
        raise kind(msg("error-initdb-failed", reason=reason), _remedy(reason, layout.base.parent))


def write(path: Path, text: str) -> None:
    """Write a file of the server."""
    # The folder belongs to the server's account and we may be root: a link laid there must not lead us elsewhere.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as f:
        f.write(text)


def our_name() -> str:
    """Return the name of the account that runs pgdyno."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _remedy(reason: str, where: Path) -> Text:
    if "No space left" in reason:
        return msg("remedy-file-system-full", where=where)
    if "shared memory" in reason:
        return msg("remedy-little-shared-memory")
    return Name("")
