"""Tablespaces of members: each member has a folder of its own for each, on the storage that the user names."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from pgdyno.cluster.account import Account
from pgdyno.cluster.removal import Made
from pgdyno.errors import LocalError, RefusedError, UsageError, msg

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def read(texts: list[str]) -> dict[str, str]:
    """NAME=FOLDER of each. Raises UsageError."""
    found = {}
    for text in texts:
        name, _, folder = text.partition("=")
        if not _NAME.fullmatch(name) or name.startswith("pg_") or not folder or "=" in folder or "'" in folder:
            raise UsageError(
                msg("error-tablespace-not-form-name-folder", text=repr(text)),
                msg("remedy-write-tablespace-fast-mnt-nvme"),
            )
        found[name] = str(Path(folder).absolute())
        if not Path(folder).is_dir():
            raise LocalError(
                msg("error-tablespace-there-no-folder", name=name, folder=folder), msg("remedy-make-or-name-another")
            )
    return found


def folder_of(parent: str, cluster: str, member: str) -> Path:
    """Return the tablespace folder of a member, below the folder that the user has named.

    `cluster` distinguishes the folders of several clusters.
    """
    return Path(parent) / f"pgdyno-{cluster}-{member}"


def make(spaces: Mapping[str, str], cluster: str, member: str, account: Account) -> None:
    """Create the empty tablespace folders of a member.

    Raise RefusedError if a folder exists already or has another owner. Raise LocalError if a folder cannot be created.
    """
    for name, parent in spaces.items():
        home = folder_of(parent, cluster, member)
        try:
            home.mkdir(mode=0o755, exist_ok=True)
            status = home.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise RefusedError(msg("error-not-ours", home=home), msg("remedy-somebody-else-may-write-there"))
            (home / name).mkdir(mode=0o700)
            account.own(home / name)
        except FileExistsError as e:
            raise RefusedError(
                msg("error-there-already", value=home / name), msg("remedy-remove-or-name-another")
            ) from e
        except OSError as e:
            raise LocalError(
                msg("error-cannot-be-made", home=home, strerror=e.strerror), msg("remedy-name-folder-you-may-write")
            ) from e


def create(
    conn: psycopg.Connection[tuple[object, ...]], spaces: Mapping[str, str], cluster: str, member: str, role: str
) -> None:
    """On the primary, for a role. Raises psycopg.Error."""
    words = sql.SQL("create tablespace {} owner {} location {}")
    for name, parent in spaces.items():
        place = sql.Literal(str(folder_of(parent, cluster, member) / name))
        conn.execute(words.format(sql.Identifier(name), sql.Identifier(role), place))


def mapping(spaces: Mapping[str, str], cluster: str, source: str, member: str) -> list[str]:
    """pg_basebackup's words: where the source's are, and the member's are to be."""
    words = []
    for name, parent in spaces.items():
        here, there = (folder_of(parent, cluster, m) / name for m in (source, member))
        words += ["-T", f"{here}={there}"]
    return words


def remove(spaces: Mapping[str, str], cluster: str, member: str) -> None:
    """Remove the tablespace folders of a member with their contents."""
    for name, parent in spaces.items():
        folder = folder_of(parent, cluster, member)
        with contextlib.suppress(OSError):
            Made.at(folder / name).remove()
        with contextlib.suppress(OSError):
            folder.rmdir()
