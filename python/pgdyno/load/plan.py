"""How large a dataset will be, how long it will take, and whether it fits: before anything is made."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pgdyno import _core
from pgdyno.errors import LocalError
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
class TablePlan:
    """A table as it will be; bytes as pg_relation_size will say them."""

    name: str
    rows: int
    heap_bytes: int
    key_bytes: int
    #: As bt_metap's level: 0 when the root is a leaf.
    key_level: int


@dataclass(frozen=True)
class Plan:
    """A dataset as it will be."""

    dataset: str
    tables: list[TablePlan]
    #: Bytes per second that are written durably; None: not known.
    disk: float | None
    #: Where that figure comes from.
    disk_source: str

    @property
    def rows(self) -> int:
        """Rows in all."""
        return sum(t.rows for t in self.tables)

    @property
    def heap_bytes(self) -> int:
        """Bytes of all heaps."""
        return sum(t.heap_bytes for t in self.tables)

    @property
    def key_bytes(self) -> int:
        """Bytes of all keys."""
        return sum(t.key_bytes for t in self.tables)

    @property
    def bytes(self) -> int:
        """Bytes of heaps and keys."""
        return self.heap_bytes + self.key_bytes

    @property
    def seconds(self) -> float | None:
        """How long writing them takes the disk."""
        return self.bytes / self.disk if self.disk else None

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "dataset": self.dataset,
            "rows": self.rows,
            "heap_bytes": self.heap_bytes,
            "key_bytes": self.key_bytes,
            "disk_bytes_per_s": self.disk,
            "disk_source": self.disk_source,
            "seconds_at_disk_speed": self.seconds,
            "tables": [asdict(t) for t in self.tables],
        }


def plan(dataset: Dataset, *, disk: float | None = None, source: str = "") -> Plan:
    """The plan of a dataset; `disk` in bytes per second."""
    tables = [TablePlan(t.name, t.end - t.first, t.heap_bytes, t.key_bytes, t.key_level) for t in dataset.tables]
    return Plan(dataset.name, tables, disk, source)


def measure_disk(folder: Path, scale: int = PROBE_SCALE) -> float:
    """Bytes per second that pages are written with to `folder`, synced; the probe's file is gone afterwards.

    Takes a second on a fast disk. Raises LocalError where nothing can be written.
    """
    core = _core.Dataset("tpcb", scale)
    try:
        if shutil.disk_usage(folder).free < 2 * scale * PROBE_BYTES_PER_SCALE + RESERVE:
            raise LocalError(f"{folder} is too full to measure its disk", "Give its speed: --disk-mbps.")
        with tempfile.TemporaryDirectory(prefix="pgsql_tmp_pgdyno_probe_", dir=folder) as probe:
            start = time.monotonic()
            written, _ = core.write(
                [(2, "heap", Path(probe) / "probe")], lambda *_: None, threads=max(2, os.cpu_count() or 1)
            )
            return written / (time.monotonic() - start)
    except (OSError, _core.CoreError) as e:
        raise LocalError(f"cannot measure the disk of {folder}: {e}", "Give its speed: --disk-mbps.") from e


def refuse_if_too_small(folder: Path, need: int, what: str) -> None:
    """Raises LocalError when `need` bytes do not fit on the disk of `folder`."""
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(folder).free
        if free < need + RESERVE:
            raise LocalError(
                f"{what} needs {pg_size(need)} and {folder} has {pg_size(free)} free",
                "Free some space, use a smaller --scale, or another disk.",
            )
