"""Block devices under the server's files: what `iostat -x` shows. Linux's /sys and /proc/diskstats."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pgdyno.collect.sources.base import Differences, Row, slurp

_SECTOR = 512
_SYS, _MOUNTS = Path("/sys"), Path("/proc/self/mountinfo")
#: Of /proc/diskstats behind the name, as Documentation/admin-guide/iostats.rst has them; times are milliseconds.
_FIELDS = (
    "reads", "reads_merged", "sectors_read", "read_ms", "writes", "writes_merged", "sectors_written", "write_ms",
    "in_flight", "busy_ms", "weighted_ms", "discards", "discards_merged", "sectors_discarded", "discard_ms", "flushes",
    "flush_ms",
)  # fmt: skip


def devices_under(path: Path, sys: Path = _SYS) -> list[str]:
    """Return the names of the block devices under a file; the list is empty if they are unknown.

    They are the device of the file system and the devices below it. These are logical volumes, md, the file of a loop
    device, and the disk of a partition.
    """
    try:
        number = path.stat().st_dev
    except OSError:
        return []
    found: list[str] = []
    _below(sys, f"{os.major(number)}:{os.minor(number)}", found)
    if not found:
        # btrfs and others have numbers of their own: the device is in the table of mounts.
        device = _mounted_on(path)
        if device is not None:
            _below(sys, f"{os.major(device)}:{os.minor(device)}", found)
    return found


def may_be_seen(path: Path) -> bool:
    """Return True if pgdyno has permission to access a file, provided that the file exists."""
    try:
        path.stat()
    except PermissionError:
        return False
    except OSError:
        return True
    return True


def _below(sys: Path, number: str, found: list[str]) -> None:
    here = sys / "dev" / "block" / number
    try:
        name = here.resolve(strict=True).name
    except OSError:
        return
    if name in found:
        return
    found.append(name)
    if (here / "partition").exists():
        _below(sys, (here.resolve().parent / "dev").read_text().strip(), found)
    slaves = here / "slaves"
    for slave in sorted(slaves.iterdir()) if slaves.is_dir() else []:
        _below(sys, (slave / "dev").read_text().strip(), found)
    backing = here / "loop" / "backing_file"
    if backing.exists():
        found += [n for n in devices_under(Path(backing.read_text().strip()), sys) if n not in found]


def _mounted_on(path: Path) -> int | None:
    """Return the number of the device that is mounted at the location of a path, or None."""
    best, source = "", ""
    try:
        text = _MOUNTS.read_text(errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4]
        if (str(path.resolve()) + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
            best, source = point, after.split()[1]
    try:
        return Path(source).stat().st_rdev or None
    except OSError:
        return None


class Devices:
    """One row a device and sample. `device` is its kernel name, `holds` what lies on it."""

    name = "devices"
    period_s = 0.0

    def __init__(self, places: Mapping[str, Path]) -> None:
        """`places`: what is looked at (data, wal, a tablespace), and where it lies."""
        self.holds: dict[str, list[str]] = {}
        #: What lies where we may not look.
        self.hidden: list[str] = []
        for what, path in places.items():
            devices = devices_under(path)
            for device in devices:
                self.holds.setdefault(device, []).append(what)
            if not devices and not may_be_seen(path):
                self.hidden.append(what)
        self._differences = Differences()

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        found: list[Row] = []
        for line in slurp("/proc/diskstats").decode(errors="replace").splitlines():
            _, _, device, *values = line.split()
            if device not in self.holds:
                continue
            now = dict(zip(_FIELDS, map(float, values), strict=False))
            in_flight = now.pop("in_flight", 0.0)
            if (d := self._differences.of(device, now)) is not None:
                found.append({"device": device, "holds": ",".join(self.holds[device]), **rates(d, seconds),
                              "in_flight": in_flight})  # fmt: skip
        return found


def rates(d: Mapping[str, float], seconds: float) -> Row:
    """Compute the figures of iostat from the increases of the counters.

    They are operations and bytes per second, mean bytes of a request, and mean time of a request in ns (with its
    queueing). They also include the requests in the queue and the share of time with at least one request.
    """

    def mean(total: str, count: str, factor: float) -> float:
        return d[total] * factor / d[count] if d.get(count) else 0.0

    return {
        "reads_per_s": d["reads"] / seconds,
        "writes_per_s": d["writes"] / seconds,
        "read_bytes_per_s": d["sectors_read"] * _SECTOR / seconds,
        "write_bytes_per_s": d["sectors_written"] * _SECTOR / seconds,
        "reads_merged_per_s": d["reads_merged"] / seconds,
        "writes_merged_per_s": d["writes_merged"] / seconds,
        "read_request_bytes": mean("sectors_read", "reads", _SECTOR),
        "write_request_bytes": mean("sectors_written", "writes", _SECTOR),
        "read_await_ns": mean("read_ms", "reads", 1e6),
        "write_await_ns": mean("write_ms", "writes", 1e6),
        "flushes_per_s": d.get("flushes", 0.0) / seconds,
        "flush_await_ns": mean("flush_ms", "flushes", 1e6),
        "queue": d["weighted_ms"] / 1000 / seconds,
        "utilisation": min(1.0, d["busy_ms"] / 1000 / seconds),
    }


def places_of(data: Path) -> dict[str, Path]:
    """Return the paths of a cluster's files: data, wal, and each tablespace.

    Tablespaces are included as far as pgdyno may list them.
    """
    places = {"data": data, "wal": data / "pg_wal"}
    try:
        spaces: Sequence[Path] = sorted((data / "pg_tblspc").iterdir())
    except OSError:
        spaces = ()
    return places | {f"tablespace {p.name}": p for p in spaces}
