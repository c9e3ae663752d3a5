"""Dumps: what pg_dump has written, in any of its formats, brought back by pg_restore or psql."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pgdyno.cluster.target import Target
from pgdyno.errors import LocalError, SpecError, TargetError, msg
from pgdyno.format import one_line
from pgdyno.load.own.scan import LineScanner
from pgdyno.message import Message

#: What formats of pg_dump begin with, besides plain SQL.
_ARCHIVE = b"PGDMP"
_TAR_AT, _TAR = 257, b"ustar"
#: Seconds for which pg_dump waits for a lock: those who come after it would wait as long.
_LOCK_WAIT_S = 10
#: As pg_dump writes them, each in a line of its own.
_OWNERS = re.compile(r"ALTER [A-Z ]+ .* OWNER TO .*;|GRANT .*;|REVOKE .*;|ALTER DEFAULT PRIVILEGES .*;")


def checked(path: Path) -> Path:
    """Return the path of the dump.

    Raise SpecError if no dump exists at `path`.
    """
    if not path.exists() or (path.is_dir() and not (path / "toc.dat").exists()):
        raise SpecError(msg("error-dataset-dump-there-no-dump", path=path), msg("remedy-pg-dump-fc-or-fd"))
    return path


def bytes_of(path: Path | None) -> int:
    """Its size."""
    if path is None or not path.exists():
        return 0
    return sum(f.stat().st_size for f in path.iterdir()) if path.is_dir() else path.stat().st_size


def take(target: Target, path: Path, program: Path) -> None:
    """Write a dump of the target's database to `path`, in pg_dump's custom format. It reads, and changes nothing.

    Raise TargetError with what pg_dump says.
    """
    argv = [str(program), "-Fc", "--no-owner", "--no-privileges", "--no-subscriptions", "--no-publications",
            f"--lock-wait-timeout={_LOCK_WAIT_S}s", "-f", str(path), "-d", without_password(target)]  # fmt: skip
    environment = {**os.environ, **({"PGPASSWORD": target.password} if target.password else {})}
    process = subprocess.Popen(
        argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    try:
        _, words = process.communicate()
    except BaseException:
        # Nobody reads it any more: it would hold its snapshot for nothing.
        process.kill()
        process.wait()
        raise
    if process.returncode:
        raise TargetError(msg("error-dump-failed", reason=one_line(words)[:300] or program), "")


def restore(target: Target, path: Path, programs: Callable[[str], Path], *, jobs: int) -> None:
    """Brings it back; owners and privileges stay the server's. Raises TargetError with the first of what went wrong."""
    checked(path)
    plain = is_plain(path)
    program = programs("psql" if plain else "pg_restore")
    if not program.exists():
        raise LocalError(
            msg("error-there-no-which-restores-dump", program=program),
            msg("remedy-install-postgresql-s-client-programs"),
        )
    # A tar archive cannot be read by several.
    several = [] if plain or _is_tar(path) else ["-j", str(jobs)]
    if plain:
        _refuse_commands(path)
    to = ["-d", without_password(target)]
    if plain:
        argv = [str(program), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-1", "-f", "-", *to]
    else:
        argv = [str(program), "--no-owner", "--no-privileges", "--exit-on-error", *several, *to, str(path)]
    environment = {**os.environ, **({"PGPASSWORD": target.password} if target.password else {})}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE if plain else subprocess.DEVNULL, stdout=said, stderr=said, env=environment
        )
        if plain:
            _send(path, process)
        failed = process.wait()
        said.seek(0)
        words = " ".join(said.read(20_000).decode("utf-8", "replace").split())[:400]
    if failed:
        raise TargetError(msg("error-failed-2", name=program.name, words=words), _remedy(words))


def _remedy(text: str) -> Message:
    if match := re.search(r'role "([^"]+)" does not exist', text):
        return msg("remedy-create-owner", role=match[1])
    if "extension" in text:
        return msg("remedy-install-extension")
    return msg("remedy-newer-dump")


def _send(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Send a plain dump to a process, without the statements that name owners and privileges.

    pg_restore leaves the same statements out.
    """
    assert process.stdin is not None
    scanner = LineScanner()
    with suppress(BrokenPipeError), process.stdin as to, path.open("rb") as f:
        for raw in f:
            line = raw.decode("utf-8", "replace")
            if scanner.is_plain and _OWNERS.match(line) and line.rstrip().endswith(";"):
                to.write(b"\n")
            else:
                to.write(raw)
            scanner.feed(line)


def _refuse_commands(path: Path) -> None:
    """Raise SpecError if a plain dump contains psql commands that it does not need.

    A dump needs the commands that guard it and the one that marks the end of data. Other commands lead elsewhere, for
    example to another database.
    """
    scanner = LineScanner()
    with path.open(encoding="utf-8", errors="replace") as f:
        for number, line in enumerate(f, 1):
            if scanner.is_plain and line.startswith("\\") and not line.startswith(("\\restrict ", "\\unrestrict ")):
                word = line.split()[0]
                remedy = (
                    "Leave it out, and CREATE DATABASE with it (pg_dump without -C): the database is that of --target."
                    if word in ("\\c", "\\connect")
                    else "Use pg_dump -Fc."
                )
                raise SpecError(msg("error-1-dump-no-such-command", path=path, number=number, word=word), remedy)
            scanner.feed(line)


def is_plain(path: Path) -> bool:
    """Return True if the dump is plain SQL."""
    return path.is_file() and not _is_archive(path)


def without_password(target: Target) -> str:
    """Return the connection string for a program that has the password in its environment."""
    return Target(target.host, target.port, target.user, target.dbname, None, target.options).conninfo


def _head(path: Path) -> bytes:
    with path.open("rb") as f:
        return f.read(512)


def _is_tar(path: Path) -> bool:
    return path.is_file() and _head(path)[_TAR_AT:].startswith(_TAR)


def _is_archive(path: Path) -> bool:
    return _head(path).startswith(_ARCHIVE) or _is_tar(path)
