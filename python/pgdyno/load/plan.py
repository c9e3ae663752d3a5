"""Size of a dataset, duration of its load, and the check that it fits, before anything is created."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno import _core
from pgdyno.cluster.account import owner_of
from pgdyno.cluster.scratch import Scratch
from pgdyno.errors import LocalError, msg
from pgdyno.interrupt import signals_held
from pgdyno.load.dataset import Dataset
from pgdyno.load.units import pg_size

#: Free space that is left alone: WAL, temporary files, the server's own.
RESERVE = 32 << 20
#: What the probe of a disk writes, as tpcb's scale: half a gigabyte, enough for small caches not to hide the disk,
#: little enough for a second.
PROBE_SCALE = 40
#: Bytes of heap in a unit of scale.
PROBE_BYTES_PER_SCALE = 13_434_880


@dataclass(frozen=True)
class Plan:
    """A dataset as it will be, and a disk."""

    dataset: Dataset
    #: Bytes per second that are written durably.
    disk: float
    #: Folder in which that figure was measured; empty: it was given.
    folder: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of heaps, keys and other indexes."""
        return self.dataset.total_bytes

    @property
    def seconds(self) -> float:
        """Seconds that the disk needs to write the dataset."""
        return self.bytes / self.disk

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        tables = [
            {
                "name": t.name,
                "rows": t.end - t.first,
                "heap_bytes": t.heap_bytes,
                "key_bytes": t.key_bytes,
                "key_level": t.key_level,
                "index_bytes": t.index_bytes,
            }
            for t in self.dataset.tables
        ]
        return {
            "dataset": self.dataset.name,
            "rows": self.dataset.rows,
            "heap_bytes": self.dataset.heap_bytes,
            "key_bytes": self.dataset.key_bytes,
            "index_bytes": self.dataset.index_bytes,
            "disk_bytes_per_s": self.disk,
            "disk_source": f"measured in {self.folder}" if self.folder else "--disk-mbps",
            "seconds_at_disk_speed": self.seconds,
            "tables": tables,
        }


def measure_disk(folder: Path, scale: int = PROBE_SCALE) -> float:
    """Bytes per second that pages are written with to `folder`, synced; the probe's file is gone afterwards.

    Takes a second on a fast disk. Raises LocalError where nothing can be written.
    """
    core = _core.Dataset("tpcb", scale)
    try:
        if shutil.disk_usage(folder).free < 2 * scale * PROBE_BYTES_PER_SCALE + RESERVE:
            raise LocalError(msg("error-too-full-measure-disk", folder=folder), msg("remedy-give-speed-disk-mbps"))
        # Base backups leave out what is called so, where it is a data directory that is measured.
        account = owner_of(folder)
        with contextlib.ExitStack() as stack:
            # Interrupted just when the folder is there, it would be nobody's.
            with signals_held():
                probe = stack.enter_context(Scratch(folder, "pgsql_tmp_pgdyno_probe_", account))
            stack.enter_context(account.rights())
            start = time.monotonic()
            written, _ = core.write(
                [(2, "heap", probe / "probe")], lambda *_: None, threads=max(2, os.cpu_count() or 1)
            )
            return written / (time.monotonic() - start)
    except (OSError, _core.CoreError) as e:
        raise LocalError(
            msg("error-cannot-measure-disk", folder=folder, reason=e), msg("remedy-give-speed-disk-mbps")
        ) from e


def refuse_if_too_small(folder: Path, need: int, what: str) -> None:
    """Raise LocalError if `need` bytes do not fit on the disk of `folder`."""
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(folder).free
        if free < need + RESERVE:
            raise LocalError(
                msg("error-needs-free", what=what, pg_size=pg_size(need), folder=folder, pg_size2=pg_size(free)),
                msg("remedy-free-some-space-use-smaller"),
            )
