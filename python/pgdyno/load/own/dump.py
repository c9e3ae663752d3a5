"""Dumps: what pg_dump has written, in any of its formats, brought back by pg_restore or psql."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from pgdyno.cluster.target import Target
from pgdyno.errors import LocalError, SpecError, TargetError

#: What formats of pg_dump begin with, besides plain SQL.
_ARCHIVE = b"PGDMP"
_TAR_AT, _TAR = 257, b"ustar"


def checked(path: Path) -> Path:
    """The dump, if there is one. Raises SpecError."""
    if not path.exists() or (path.is_dir() and not (path / "toc.dat").exists()):
        raise SpecError(f"dataset.dump: there is no dump {path}", "pg_dump -Fc or -Fd makes one.")
    return path


def bytes_of(path: Path | None) -> int:
    """Its size."""
    if path is None or not path.exists():
        return 0
    return sum(f.stat().st_size for f in path.iterdir()) if path.is_dir() else path.stat().st_size


def restore(target: Target, path: Path, programs: Callable[[str], Path], *, jobs: int) -> None:
    """Brings it back; owners and privileges stay the server's. Raises TargetError with the first of what went wrong."""
    checked(path)
    plain = path.is_file() and not _is_archive(path)
    program = programs("psql" if plain else "pg_restore")
    if not program.exists():
        raise LocalError(f"there is no {program}, which restores a dump", "Install PostgreSQL's client programs.")
    # A tar archive cannot be read by several.
    several = [] if plain or _is_tar(path) else ["-j", str(jobs)]
    if plain:
        _refuse_commands(path)
    to = ["-d", _without_password(target)]
    if plain:
        argv = [str(program), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-1", "-f", str(path), *to]
    else:
        argv = [str(program), "--no-owner", "--no-privileges", "--exit-on-error", *several, *to, str(path)]
    environment = {**os.environ, **({"PGPASSWORD": target.password} if target.password else {})}
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", env=environment, check=False)
    if done.returncode:
        said = " ".join(done.stderr.split())[:400]
        raise TargetError(f"{program.name} failed: {said}", "Was it made by a newer pg_dump, or for other extensions?")


def _refuse_commands(path: Path) -> None:
    """Of psql's commands a plain dump needs those that guard it and the end of data; others lead elsewhere."""
    with path.open(encoding="utf-8", errors="replace") as f:
        in_data = False
        for number, line in enumerate(f, 1):
            if in_data:
                in_data = line.rstrip("\r\n") != "\\."
            elif line.startswith("\\") and not line.startswith(("\\restrict ", "\\unrestrict ")):
                raise SpecError(f"{path}:{number}:1: {line.split()[0]}: a dump has no such command", "Use pg_dump -Fc.")
            else:
                in_data = line.startswith("COPY ") and line.rstrip().endswith("FROM stdin;")


def _without_password(target: Target) -> str:
    return Target(target.host, target.port, target.user, target.dbname, None, target.options).conninfo


def _head(path: Path) -> bytes:
    with path.open("rb") as f:
        return f.read(512)


def _is_tar(path: Path) -> bool:
    return path.is_file() and _head(path)[_TAR_AT:].startswith(_TAR)


def _is_archive(path: Path) -> bool:
    return _head(path).startswith(_ARCHIVE) or _is_tar(path)
