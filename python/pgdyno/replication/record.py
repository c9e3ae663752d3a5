"""Record of a cluster with standbys on disk: its members, their connections, and the operation in progress."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pgdyno import home
from pgdyno.errors import ReasonError, RefusedError, msg

#: In the cluster's folder.
FILE = "replication.json"
#: Beside it: locked by the pgdyno that is at work.
LOCK = "replication.lock"
_MEMBER = re.compile(r"node[1-9][0-9]{0,2}")
_NETWORK = re.compile(r"[0-9a-f]{6}")


@dataclass
class Record:
    """See the module. `save` replaces the file at once: it is never half written."""

    #: Names of the members: of their folders, their slots, and as standbys are called in synchronous_standby_names.
    members: list[str]
    #: The TCP port of each.
    ports: dict[str, int]
    #: synchronous_standby_names; empty: asynchronous.
    synchronous_standby_names: str
    #: Who is the primary, as far as pgdyno has made it so.
    primary: str
    #: Of the role for replication, and of that for clients.
    replication_password: str = field(repr=False)
    client_password: str = field(repr=False)
    #: Of each member: name, value, reason, first version.
    settings: list[tuple[str, str, str, int]]
    #: Part of the names of its namespaces, and of their addresses; None: the members share this machine's network.
    network: tuple[str, int] | None = None
    #: Members that are whole.
    built: list[str] = field(default_factory=list)
    #: Members that were seen to follow the primary, on its timeline, since it has become that.
    following: list[str] = field(default_factory=list)
    #: The server's programs that the user named, and whether there are to be checksums.
    pg_bin: str | None = None
    checksums: bool | None = None
    #: Settings that a drill has set aside for its own, to be put back.
    set_aside: dict[str, str] | None = None
    #: By name the folder that the members' own are in, and what tells this cluster's from others'.
    tablespaces: dict[str, str] = field(default_factory=dict)
    identity: str = ""
    #: Of the disk that each member has for itself; 0: it lies on this machine's.
    disk_bytes: int = 0
    #: PgBouncer's port, and the password of its console, where there is one.
    pooler: tuple[int, str] | None = field(default=None, repr=False)
    #: WAL is archived, in the cluster's folder `archive`.
    archive: bool = False
    #: What was begun and not ended: the verb, and the member that is to be the primary.
    unfinished: tuple[str, str] | None = None

    def save(self, base: Path) -> None:
        """Write the record; only its owner may read the file."""
        home.replace_file(base / FILE, json.dumps({"format": 1, **asdict(self)}, indent=2) + "\n", mode=0o600)


def load(base: Path) -> Record:
    """Read the record of a cluster from its folder.

    Raise RefusedError if the record does not exist, cannot be read or cannot be trusted.
    """
    try:
        refuse_others_folder(base)
        fd = os.open(base / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, encoding="utf-8") as f:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise ReasonError(msg("why-others-may-write"))
            values: dict[str, Any] = json.load(f)
        if values.pop("format") != 1:
            raise ReasonError(msg("why-another-version"))
        record = Record(**values)
        _check(record)
    except FileNotFoundError:
        raise RefusedError(
            msg("error-holds-no-cluster-standbys-no", base=base, file=FILE),
            msg("remedy-make-one-pgdyno-cluster-create-2", base=base),
        ) from None
    except (OSError, ValueError, TypeError, KeyError) as e:
        raise RefusedError(
            msg("error-cannot-be-read", path=base / FILE, reason=e), msg("remedy-members-whole-clusters")
        ) from e
    record.settings = [tuple(s) for s in record.settings]  # type: ignore[misc]
    record.network = None if record.network is None else (str(record.network[0]), int(record.network[1]))
    record.pooler = None if record.pooler is None else (int(record.pooler[0]), str(record.pooler[1]))
    record.unfinished = None if record.unfinished is None else (record.unfinished[0], record.unfinished[1])
    return record


def refuse_others_folder(base: Path) -> None:
    """Raise RefusedError if other users may write to the folder, or if it is a link.

    The check matters because root works in this folder.
    """
    status = base.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise RefusedError(msg("error-not-folder-our-own-nobody", base=base), msg("remedy-name-another"))


def _check(record: Record) -> None:
    """Raise ReasonError if the record contains names that pgdyno never writes.

    The check matters because pgdyno removes folders by these names.
    """
    members = set(record.members)
    named = {record.primary, *record.built, *record.following, *record.ports}
    if not members or not all(_MEMBER.fullmatch(m) for m in members) or not named <= members:
        raise ReasonError(msg("why-not-written-by-pgdyno", what="members"))
    if not all(isinstance(p, int) and 0 < p < 65536 for p in record.ports.values()):
        raise ReasonError(msg("why-not-written-by-pgdyno", what="ports"))
    if record.network is not None and not (
        _NETWORK.fullmatch(record.network[0]) and isinstance(record.network[1], int) and 0 < record.network[1] < 255
    ):
        raise ReasonError(msg("why-not-written-by-pgdyno", what="network"))
    spaces = [*record.tablespaces, *record.tablespaces.values(), record.identity]
    if not all(isinstance(s, str) for s in spaces) or not re.fullmatch(r"[0-9a-f]{0,16}", record.identity):
        raise ReasonError(msg("why-not-written-by-pgdyno", what="tablespaces"))
    if record.pooler is not None and not (isinstance(record.pooler[0], int) and 0 < record.pooler[0] < 65536):
        raise ReasonError(msg("why-not-written-by-pgdyno", what="pooler"))
    if record.unfinished is not None and record.unfinished[1] not in members:
        raise ReasonError(msg("why-not-written-by-pgdyno", what="unfinished"))


@contextlib.contextmanager
def locked(base: Path) -> Iterator[None]:
    """Within it no other pgdyno changes this cluster. Raises RefusedError where one is at work."""
    # What there is not leaves no lock behind.
    load(base)
    refuse_others_folder(base)
    fd = os.open(base / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError(
                msg("error-another-pgdyno-at-work-on", base=base), msg("remedy-wait-until-ended")
            ) from None
        yield
    finally:
        os.close(fd)


def is_locked(base: Path) -> bool:
    """Return True if a pgdyno process is working on the cluster in `base`."""
    try:
        with locked(base):
            return False
    except RefusedError:
        return True
