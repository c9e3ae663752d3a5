"""CPU limit of the server: the limit of a cgroup, as containers, Kubernetes and systemd set it.

Linux cgroups of versions 1 and 2 are supported.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.collect.sources.base import Differences, Row

#: By the version of cgroups: the file of the limit; the counter of the time that was taken away, and its unit.
_LIMIT = {1: "cpu.cfs_quota_us", 2: "cpu.max"}
_THROTTLED = {1: ("throttled_time", 1e-9), 2: ("throttled_usec", 1e-6)}


@dataclass(frozen=True)
class _Level:
    """A cgroup that the server is in, or one above."""

    folder: Path
    version: int

    @property
    def cpus(self) -> float:
        """Processors that it may use; 0: as many as there are."""
        with suppress(OSError, ValueError):
            if self.version == 2:
                quota, period = (self.folder / "cpu.max").read_text().split()
            else:
                quota, period = ((self.folder / f"cpu.cfs_{n}_us").read_text().strip() for n in ("quota", "period"))
            if quota not in ("max", "-1"):
                return int(quota) / int(period)
        return 0.0

    def counted(self) -> dict[str, float]:
        """Its counters: periods, those in which it was held back, seconds for which each CPU's part of it was."""
        lines = (self.folder / "cpu.stat").read_text().splitlines()
        found = dict(line.split()[:2] for line in lines if line)
        name, unit = _THROTTLED[self.version]
        periods, held = (float(found.get(n, 0)) for n in ("nr_periods", "nr_throttled"))
        return {"periods": periods, "held": held, "s": float(found.get(name, 0)) * unit}


class Quota:
    """CPU limit that throttled the server most, one row per sample; no row if there is no limit.

    `cpus` is the number of CPUs that the limit allows. `held_back` is the share of its periods (mostly 100 ms) in
    which the server used it up and had to wait. `throttled` is the time of waiting, in CPUs.
    """

    name = "quota"
    period_s = 1.0

    def __init__(self, postmaster: int, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self._differences = Differences()
        self._levels = _levels(postmaster, proc, root)

    @property
    def is_there(self) -> bool:
        """There may be a limit, now or later."""
        return bool(self._levels)

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        found: list[Row] = []
        for level in self._levels:
            if not (cpus := level.cpus) or (d := self._differences.of(level.folder, level.counted())) is None:
                continue
            held = min(1.0, d["held"] / d["periods"]) if d["periods"] else 0.0
            found.append({"cpus": cpus, "held_back": held, "throttled": d["s"] / seconds})
        # Of several that do not hold it back, the tightest.
        return sorted(found, key=lambda row: (-float(row["held_back"]), float(row["cpus"])))[:1]


def _levels(pid: int, proc: Path, root: Path) -> list[_Level]:
    """Return the cgroup of a process and the cgroups above it, if they are visible and may have a limit."""
    found: list[_Level] = []
    with suppress(OSError):
        ours = (proc / "self" / "cgroup").read_text().splitlines()
        for line in (proc / str(pid) / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            version = 2 if not controllers else 1 if "cpu" in controllers.split(",") else 0
            base = root if version == 2 else root / controllers
            base = base if base.is_dir() else root / "cpu"
            here = base / path.lstrip("/")
            if not version or ".." in here.parts:
                # Of another container: its cgroup is not to be seen from ours.
                continue
            if not here.is_dir():
                # In a container the path may be the machine's, and what is mounted is our own part of it.
                if line not in ours:
                    continue
                here = base
            while True:
                if (here / _LIMIT[version]).exists():
                    found.append(_Level(here, version))
                if here == base:
                    break
                here = here.parent
    return found
