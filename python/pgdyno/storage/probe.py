"""A storage probe: pg_test_fsync and fio in a folder of ours, which is gone afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pgdyno.cluster import binaries
from pgdyno.cluster.account import owner_of
from pgdyno.cluster.scratch import Scratch
from pgdyno.collect import host
from pgdyno.errors import LocalError, msg
from pgdyno.interrupt import signals_held
from pgdyno.storage import fio, sync
from pgdyno.store.probe import Probe, ProbeCaveat

#: As much as the published probes used; less where the disk is small.
_LARGEST = 10 << 30
_SMALLEST = 64 << 20


def probe(
    path: Path,
    *,
    seconds: float,
    size: int | None = None,
    threads: int | None = None,
    watch: Callable[[str, float, float], object] = lambda *_: None,
) -> Probe:
    """Measures the storage of the folder `path`. `watch` is told what runs, seconds planned so far and in all.

    Raises LocalError when the folder cannot be used or is too full.
    """
    # Its programs work elsewhere.
    path = path.absolute()
    if not path.is_dir():
        raise LocalError(msg("error-not-folder", path=path), msg("remedy-name-folder-on-storage-be"))
    free = host.free_bytes(path)
    wanted = size or min(_LARGEST, free // 4)
    if wanted < _SMALLEST or wanted > free * 9 // 10:
        raise LocalError(
            msg(
                "error-gb-free-too-little-for",
                path=path,
                value=f"{free / 1000000000.0:.1f}",
                value2=f"{wanted / 1000000000.0:.1f}",
            ),
            msg("remedy-free-some-space-or-set"),
        )
    where = host.file_system(path)
    n = threads or min(64, 16 * host.cores())
    caveats: list[ProbeCaveat | str] = []
    if wanted < 2 * host.memory_bytes():
        caveats.append(ProbeCaveat("small"))
    if seconds < 30:
        caveats.append(ProbeCaveat("short"))
    fio_program, fsync_program = shutil.which("fio"), _pg_test_fsync()
    per_sync = max(1, round(seconds / 10))
    total = (len(fio.JOBS) * (seconds + fio.RAMP_S) if fio_program else 0) + (17 * per_sync if fsync_program else 0)
    jobs, syncs = [], []
    try:
        # In another account's folder with its rights: any name there may be a link, laid at any moment.
        account = owner_of(path)
        if fsync_program is not None and not account.can_run(fsync_program):
            caveats.append(ProbeCaveat("not-runnable", {"account": account.name, "program": str(fsync_program)}))
            fsync_program = None
        with ExitStack() as stack:
            # Interrupted just when the folder is there, it would be nobody's.
            with signals_held():
                folder = stack.enter_context(Scratch(path, "pgdyno-storage-", account))
            passed = 0.0
            if fsync_program is not None:
                watch("pg_test_fsync", passed, total)
                syncs = sync.run(fsync_program, folder, account, per_sync)
                passed += 17 * per_sync
            elif _pg_test_fsync() is None:
                caveats.append(ProbeCaveat("no-fsync"))
            if fio_program is not None:
                jobs = fio.run(
                    fio_program,
                    folder,
                    account,
                    size=wanted,
                    threads=n,
                    seconds=seconds,
                    watch=lambda title, k: watch(title, passed + k * (seconds + fio.RAMP_S), total),
                )
            else:
                caveats.append(ProbeCaveat("no-fio"))
    except OSError as e:
        raise LocalError(
            msg("error-cannot-measure", path=path, strerror=e.strerror), msg("remedy-name-folder-you-may-write")
        ) from e
    return Probe(
        path=str(path),
        file_system=where["type"],
        device=where["device"],
        file_bytes=wanted,
        threads=n,
        seconds=seconds,
        fio_version=fio.version(fio_program) if fio_program else "",
        jobs=jobs,
        syncs=syncs,
        caveats=caveats,
    )


def _pg_test_fsync() -> Path | None:
    folder = binaries.wheel_folder()
    if folder is not None and (folder / "pg_test_fsync").exists():
        return folder / "pg_test_fsync"
    found = shutil.which("pg_test_fsync")
    return Path(found) if found else None
