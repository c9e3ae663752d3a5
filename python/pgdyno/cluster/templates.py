"""Loaded clusters that are kept: a snapshot of a stopped cluster, restored as often as it is needed.

A template is a folder in the store: `data` and `template.json`. It comes into being, and goes, by one rename. The file
says who made the folder, from the first moment to the last: a folder without it is never removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pgdyno import __version__, home
from pgdyno.cluster import clone, datadir
from pgdyno.cluster.account import Account, owner_of
from pgdyno.cluster.binaries import Binaries
from pgdyno.cluster.datadir import DataDirectory
from pgdyno.cluster.registry import FOLDER, Entry
from pgdyno.cluster.removal import Made
from pgdyno.errors import LocalError, RefusedError, msg
from pgdyno.interrupt import signals_held
from pgdyno.message import Message

#: Where templates are, if not elsewhere.
VARIABLE = "PGDYNO_TEMPLATES"
FACTS = "template.json"
_UNFINISHED = ".unfinished-"
_YOUNG_S = 60.0
#: No template's file is longer.
_MOST_FACTS = 1 << 20
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._=,+-]{0,199}$")


@dataclass(frozen=True)
class Template:
    """A template, as its file says."""

    name: str
    #: Names of the datasets in it.
    datasets: list[str]
    version: str
    #: "checksums", and whatever else makes other bytes of the same rows.
    settings: list[str]
    bytes: int
    created: str


def store_folder(named: Path | None = None) -> Path:
    """Return the folder of the store: the one given, PGDYNO_TEMPLATES, or one in the user's data folder."""
    if named is not None:
        return named
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    return home.data() / "templates"


def name_of(datasets: list[str], version: str, settings: list[str]) -> str:
    """Return a name for a template's content: dataset, scale, version, and settings that change bytes."""
    words = [*(d.replace(" ", "-") for d in datasets or ["empty"]), f"pg{version.split(' ')[0]}", *settings]
    return re.sub(r"[^A-Za-z0-9._=,+-]", "_", "-".join(words))


def bytes_by_default(programs: Binaries) -> list[str]:
    """Return the settings, as in a template's name, of a cluster that initdb creates without options."""
    return ["checksums"] if programs.major >= 18 else ["nochecksums"]


class Store:
    """A folder of templates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self) -> list[Template]:
        """All templates, by name."""
        return [t for path in sorted(self.folder.glob(f"*/{FACTS}")) if (t := _read(path)) is not None]

    def find(self, name: str) -> Template | None:
        """Return the template of that name, or None."""
        return next((t for t in self.all() if t.name == name), None)

    def data_of(self, name: str) -> Path:
        """Return the data directory in a template.

        Raise RefusedError if no template has that name.
        """
        if not _NAME.match(name) or _read(self.folder / name / FACTS) is None:
            known = ", ".join(t.name for t in self.all()) or "none"
            raise RefusedError(
                msg("error-there-no-template", name=name, folder=self.folder), msg("remedy-choices", choices=known)
            )
        return self.folder / name / "data"

    def add(
        self,
        source: DataDirectory,
        datasets: list[str],
        version: str,
        settings: list[str],
        *,
        name: str | None = None,
        watch: Callable[[int], object] = lambda _: None,
    ) -> tuple[Template, clone.Copied]:
        """Keep a copy of a stopped cluster.

        No process can start its server during the copy.
        """
        name = self._free_name(name or name_of(datasets, version, settings))

        def fill(folder: Path) -> clone.Copied:
            with source.account.rights():
                _refuse_links(source.path)
            with datadir.kept_stopped(source):
                copied = clone.tree(source.path, folder / "data", source.account, watch)
            (folder / "data" / datadir.PID_FILE).unlink()
            return copied

        return self._finish(name, datasets, version, settings, fill)

    def add_online(
        self,
        conninfo: str,
        programs: Binaries,
        account: Account,
        datasets: list[str],
        version: str,
        settings: list[str],
        *,
        name: str | None = None,
    ) -> tuple[Template, clone.Copied]:
        """Keep a base backup of a running server.

        The backup is consistent, and recovers at its first start.
        """
        name = self._free_name(name or name_of(datasets, version, settings))

        def fill(folder: Path) -> clone.Copied:
            words: list[str | Path] = [
                programs.program("pg_basebackup"),
                "-D",
                folder / "data",
                "-X",
                "stream",
                "-c",
                "fast",
                "-d",
                conninfo,
            ]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise LocalError(msg("error-pg-basebackup-failed", split=" ".join(done.stderr.split())))
            (folder / "data" / "backup_manifest").unlink(missing_ok=True)
            # It was written by us, and is the server's.
            for path in (folder / "data", *(folder / "data").rglob("*")):
                account.own(path)
            return clone.Copied(copied_bytes=_bytes_of(folder / "data"))

        return self._finish(name, datasets, version, settings, fill)

    def restore(
        self, name: str, destination: Path, account: Account, watch: Callable[[int], object] = lambda _: None
    ) -> clone.Copied:
        """Copy a template's data to `destination`, which must not exist, for an account.

        The destination appears whole or not at all.
        """
        source = self.data_of(name)
        part = destination.with_name(f"{destination.name}{_UNFINISHED}{os.getpid()}")
        made: Made | None = None
        try:
            made = Made.new(part)
            entry = Entry(FOLDER, made)
            copied = clone.tree(source, part, owner_of(source), watch, (account.uid, account.gid), exists=True)
            part.rename(destination)
        except OSError as e:
            raise LocalError(
                msg("error-restoring-failed", name=name, strerror=e.strerror, filename=e.filename),
                msg("remedy-there-enough-space-may-you"),
            ) from e
        finally:
            with signals_held():
                if made is not None and made.remove():
                    entry.done()
        return copied

    def drop(self, name: str) -> None:
        """Remove a template: first its name, at once, then its bytes.

        Raise RefusedError if pgdyno did not make the folder of that name, or if the folder holds anything else.
        """
        folder = self.folder / name
        if not _NAME.match(name) or not os.path.lexists(folder):
            self.data_of(name)
        if why := _not_ours(folder, name):
            raise RefusedError(
                msg("error-no-template-pgdyno-made", folder=folder, why=why),
                msg("remedy-nothing-was-removed-remove-hand"),
            )
        try:
            doomed = Made.at(folder).moved(self.folder / f"{_UNFINISHED}{uuid.uuid4().hex}")
            entry = Entry(FOLDER, doomed, last=FACTS)
        except OSError as e:
            raise LocalError(
                msg("error-could-not-be-removed", name=name, strerror=e.strerror), msg("remedy-may-you-write-there")
            ) from e
        if not doomed.remove(last=FACTS):
            raise LocalError(
                msg("error-could-not-be-removed-whole-2", name=name), msg("remedy-remove-hand", path=doomed.path)
            )
        entry.done()

    def _sweep(self) -> None:
        """Remove what killed snapshots and removals left."""
        for path in self.folder.glob(f"{_UNFINISHED}*"):
            with suppress(OSError):
                made = Made.at(path)
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    # A minute's grace for one that is not locked yet, and has nothing in it.
                    is_old = time.time() - os.fstat(fd).st_mtime > _YOUNG_S
                    if not _not_ours(path) if any(path.iterdir()) else is_old:
                        made.remove(last=FACTS)
                finally:
                    os.close(fd)

    def _free_name(self, name: str) -> str:
        if not _NAME.match(name):
            raise RefusedError(msg("error-no-name-for-template", name=name), msg("remedy-use-letters-digits"))
        if (self.folder / name).exists():
            raise RefusedError(
                msg("error-there-template-already", name=name), msg("remedy-pgdyno-cluster-drop-or-name", name=name)
            )
        return name

    def _finish(
        self,
        name: str,
        datasets: list[str],
        version: str,
        settings: list[str],
        fill: Callable[[Path], clone.Copied],
    ) -> tuple[Template, clone.Copied]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            part = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.folder))
            made = Made.at(part)
            # Held for as long as we live: what nobody holds is swept.
            held = os.open(part, os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX)
            facts = _maker(self.folder / name)
            _write(part / FACTS, facts)
            entry = Entry(FOLDER, made, last=FACTS)
        except OSError as e:
            raise LocalError(
                msg("error-cannot-write-store", folder=self.folder, strerror=e.strerror),
                msg("remedy-name-another-store-or", variable=VARIABLE),
            ) from e
        try:
            copied = fill(part)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            template = Template(name, datasets, version, settings, copied.shared_bytes + copied.copied_bytes, now)
            _write(part / FACTS, {**asdict(template), **facts})
            home.sync(part)
            part.rename(self.folder / name)
            home.sync(self.folder)
        except OSError as e:
            raise LocalError(
                msg("error-snapshot-failed", strerror=e.strerror, filename=e.filename),
                msg("remedy-nothing-was-kept-there-enough"),
            ) from e
        finally:
            with signals_held():
                # Where it was renamed, nothing stands at its old name.
                if made.remove(last=FACTS):
                    entry.done()
                os.close(held)
        return template, copied


def _maker(folder: Path) -> dict[str, Any]:
    """Return the facts that mark a folder as made by pgdyno."""
    return {"made": {"by": f"pgdyno {__version__}", "id": uuid.uuid4().hex, "path": str(folder.absolute())}}


def _write(path: Path, facts: dict[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as f:
        f.write(json.dumps(facts, indent=2) + "\n")
        f.flush()
        os.fsync(f.fileno())


def _facts(path: Path) -> dict[str, Any] | None:
    """Return the content of a template's file; None if it cannot be read. Never follow a link."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as f:
            if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
                return None
            found = json.loads(f.read(_MOST_FACTS))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read(path: Path) -> Template | None:
    if path.parent.name.startswith(_UNFINISHED):
        return None
    facts = _facts(path) or {}
    try:
        return Template(**{k: v for k, v in facts.items() if k != "made"})
    except TypeError:
        return None


def _not_ours(folder: Path, name: str | None = None) -> Message | None:
    """Return why pgdyno did not make the folder as the template `name`; None if it did.

    None as `name` accepts any template. Content that does not belong to a template is also a reason.
    """
    if folder.is_symlink() or not folder.is_dir():
        return msg("why-link-or-no-folder")
    facts = _facts(folder / FACTS)
    if facts is None:
        return msg("why-no-readable", file=FACTS)
    made = facts.get("made")
    if made is None:
        # As it was written before folders said who made them.
        ours = _read(folder / FACTS) is not None
    else:
        ours = isinstance(made, dict) and str(made.get("by", "")).startswith("pgdyno ") and bool(made.get("id"))
    if not ours or (name is not None and facts.get("name") != name):
        return msg("why-another-template", file=FACTS)
    if more := sorted({p.name for p in folder.iterdir()} - {"data", FACTS}):
        return msg("why-holds-more", names=", ".join(more[:4]))
    return None


def _refuse_links(data: Path) -> None:
    links = [p for p in (data / "pg_wal", *(data / "pg_tblspc").iterdir()) if p.is_symlink()]
    if links:
        raise RefusedError(
            msg("error-parts-elsewhere-symbolic-links", data=data, links=", ".join(p.name for p in links)),
            msg("remedy-templates-hold-one-folder-load"),
        )


def _bytes_of(folder: Path) -> int:
    return sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file())
