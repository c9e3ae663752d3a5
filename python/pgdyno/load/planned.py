"""Planned datasets: as an experiment defines them, or as they fit the machine."""

from __future__ import annotations

from pathlib import Path

from pgdyno.collect import host
from pgdyno.load.dataset import KINDS, Dataset, kind_named
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.spec import datasets as spec

#: Rows of pgbench_accounts, about, that load within seconds; in units of tpcb's scale.
_SCALE_PER_CORE, _MOST_SCALE, _MOST_REMOTE_SCALE = 25, 100, 50
#: One of pgdyno's, or somebody's own.
AnyDataset = Dataset | OwnDataset


def auto_scale(cores: int, memory_bytes: int, free_bytes: int) -> int:
    """Return a scale that loads within seconds.

    The scale is 25 per core, and at most 100. Its data take at most a tenth of the memory. Its data and the WAL of
    loading them take at most a fifth of the free disk space.
    """
    by_memory = memory_bytes // 10 // KINDS["tpcb"].unit_bytes
    # Data, and the WAL of loading it.
    by_disk = free_bytes // 5 // (2 * KINDS["tpcb"].unit_bytes)
    return int(max(1, min(_SCALE_PER_CORE * cores, by_memory, by_disk, _MOST_SCALE)))


def plan_dataset(definition: spec.Dataset, *, folder: Path | None) -> AnyDataset:
    """Return the dataset that an experiment describes.

    If it leaves the size open, the data fit the machine and the file system of `folder`. None means a remote server,
    whose size is not known.
    """
    if definition.is_own or definition.adopt:
        return OwnDataset.planned(definition)
    free = 1 << 40 if folder is None else host.free_bytes(folder)
    scale = auto_scale(host.cores(), host.memory_bytes(), free)
    scale = min(_MOST_REMOTE_SCALE, scale) if folder is None else scale
    return kind_named(definition.kind).plan(definition, scale * KINDS["tpcb"].unit_bytes)
