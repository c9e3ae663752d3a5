"""Archived WAL of a cluster: a folder that whoever is the primary copies finished segments to."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from pathlib import Path

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.account import Account
from pgdyno.cluster.removal import Made
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.errors import PgdynoError
from pgdyno.message import Name, Text, message

#: A segment of WAL, or a timeline's history.
_SEGMENT = re.compile(r"[0-9A-F]{24}|[0-9A-F]{8}\.history")
_ARCHIVE, _SNAPSHOTS = "archive", "snapshots"
#: In a snapshot's folder, written last: without it the folder is no snapshot.
SNAPSHOT = "snapshot.json"
#: When, and of which member.
_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-node[0-9]+")
#: How far the archive is behind at most while anything is written.
_TIMEOUT = "60s"


def folder_of(base: Path) -> Path:
    """Return the folder of the WAL archive."""
    return base / _ARCHIVE


def snapshots_of(base: Path) -> Path:
    """Return the folder of the snapshots of standbys."""
    return base / _SNAPSHOTS


def make(folder: Path, account: Account) -> None:
    """Create the archive folder and make the account its owner."""
    if not folder.exists():
        folder.mkdir(mode=0o700)
        account.own(folder)


def settings(folder: Path) -> list[Setting]:
    """Return the settings that archive WAL.

    A segment that the archive already has is either identical or of another origin. In the second case, the server
    reports it and keeps its segment.
    """
    to = f"{_quoted(folder)}/%f"
    part = f"{_quoted(folder)}/.%f.part"
    command = f"if test -f {to}; then cmp -s %p {to}; else cp %p {part} && sync {part} && mv {part} {to}; fi"
    return [
        Setting("archive_mode", "on", "flashback"),
        Setting("archive_command", command, "flashback"),
        Setting("archive_timeout", _TIMEOUT, "flashback-timeout"),
    ]


_FAILING = """
select last_failed_wal, failed_count, last_failed_time::text from pg_catalog.pg_stat_archiver
where last_failed_time > coalesce(last_archived_time, '-infinity')
  and pg_catalog.current_setting('archive_mode') <> 'off'"""


def failing(primary: Target) -> Text | None:
    """Return how the archiver of a primary fails; None: it does not, or cannot be asked."""
    try:
        with administration.connect(primary, patience_s=5.0) as conn:
            row = conn.execute(_FAILING).fetchone()
    except (PgdynoError, psycopg.Error):
        return None
    if row is None:
        return None
    return message("archiver-fails", segment=Name(str(row[0])), n=int(row[1]), at=Name(str(row[2])))


def save(segments: Path, folder: Path, account: Account, before: int, *, was_primary: bool) -> int:
    """Copy segments that the archive lacks from a stopped server; return the number copied.

    Only segments of timelines before `before` are copied. The segments of that timeline itself are archived by its
    primary, and a standby's copy may be incomplete. If the server was the primary, copy all its segments of earlier
    timelines. They replace a shorter copy by a standby that the archive already has. The copies belong to the account,
    as both folders do.
    """
    saved = 0
    with account.rights(), contextlib.suppress(OSError):
        for segment in sorted(segments.iterdir()):
            to = folder / segment.name
            is_older = _SEGMENT.fullmatch(segment.name) and int(segment.name[:8], 16) < before
            if is_older and (was_primary or not to.exists()):
                part = folder / f".{segment.name}.part"
                shutil.copyfile(segment, part)
                part.rename(to)
                saved += 1
    return saved


def restore_command(folders: list[Path]) -> str:
    """Return a command that copies a segment from the first of these folders that has it."""
    return " || ".join(f"cp {_quoted(f)}/%f %p 2>/dev/null" for f in folders)


def remove(base: Path) -> None:
    """Archive and snapshots."""
    for name in (_ARCHIVE, _SNAPSHOTS):
        with contextlib.suppress(OSError):
            Made.at(base / name).remove()


def unfinished_snapshots(base: Path) -> list[Path]:
    """Return the unfinished snapshots of a pgdyno process that was killed.

    They are folders with the name of a snapshot, but without the file that is written last.
    """
    found = snapshots_of(base).glob("*")
    return [
        f
        for f in found
        if _NAME.fullmatch(f.name) and not f.is_symlink() and f.is_dir() and not (f / SNAPSHOT).exists()
    ]


def remove_unfinished_snapshots(base: Path) -> int:
    """Remove unfinished snapshots; return their number."""
    return sum(Made.at(folder).remove() for folder in unfinished_snapshots(base))


def _quoted(folder: Path) -> str:
    """For the shell that the server asks, which takes % for its own."""
    return shlex.quote(str(folder)).replace("%", "%%")
