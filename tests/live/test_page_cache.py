"""Files written past the page cache, and through it where the disk is slow: the same bytes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.causes import no_cgroups
from tests.support.cli import environment

LIMIT_BPS = 200 << 20
WRITE = """
import sys
from pathlib import Path
from pgdyno.load.dataset import Dataset
if len(sys.argv) > 3:
    Path(sys.argv[3]).write_text("0")
data = Dataset("tpcb", 25)
accounts = next(n for n, t in enumerate(data.tables) if t.name == "pgbench_accounts")
data.core.write([(accounts, "heap", sys.argv[1])], lambda *_: None, threads=4, cache_if_slow=bool(int(sys.argv[2])))
"""


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Path]:
    """Whoever writes its number to this file finds the disk slow."""
    if why := no_cgroups():
        pytest.skip(why)
    if shutil.which("fincore") is None:
        pytest.skip("needs fincore (util-linux)")
    folder = Path(f"/sys/fs/cgroup/blkio/pgdyno-cache-{os.getpid()}")
    folder.mkdir()
    number = tmp_path.stat().st_dev
    try:
        try:
            (folder / "blkio.throttle.write_bps_device").write_text(
                f"{os.major(number)}:{os.minor(number)} {LIMIT_BPS}"
            )
        except OSError:
            pytest.skip("the temporary folder is on no device that can be throttled")
        yield folder / "cgroup.procs"
    finally:
        folder.rmdir()


def written(path: Path, *, cache: bool, procs: Path | None = None) -> tuple[str, int]:
    """The file's digest, and how much of it was in memory before it was read."""
    words = [sys.executable, "-c", WRITE, path, str(int(cache)), *([procs] if procs else [])]
    subprocess.run(words, check=True, env=environment())
    found = subprocess.run(["fincore", "-b", "-n", "-o", "RES", path], capture_output=True, text=True, check=True)
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest(), int(found.stdout)


@pytest.mark.slow
def test_on_a_slow_disk_tables_stay_in_memory(limited: Path, tmp_path: Path) -> None:
    digest, _ = written(tmp_path / "as it is", cache=False)
    for cache in (False, True):
        path = tmp_path / f"slow{cache}"
        same, resident = written(path, cache=cache, procs=limited)
        # The first 128 MB say that the disk is slow.
        size = path.stat().st_size
        assert same == digest and (resident > size - (160 << 20) if cache else resident < 16 << 20), resident
