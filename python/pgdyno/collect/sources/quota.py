"""A limit on the processors that the server may use: a cgroup's, as containers, Kubernetes and systemd set it. Linux's
cgroups of version 1 and 2.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pgdyno.collect.sources.base import Differences, Row

#: By the version of cgroups: what one counter of time is in seconds, and its name.
_THROTTLED = {1: ("throttled_time", 1e-9), 2: ("throttled_usec", 1e-6)}


class Quota:
    """One row a sample: `cpus` that the server may use, `held_back` the part of the limit's periods (100 ms mostly) in
    which it had used up its share and had to wait, `throttled` how long, in CPUs. Nothing where there is no limit.
    """

    name = "quota"
    period_s = 1.0

    def __init__(self, postmaster: int, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self._differences = Differences()
        self._version, self._folder, self.cpus = _tightest(postmaster, proc, root)

    @property
    def is_there(self) -> bool:
        """There is a limit."""
        return self._folder is not None

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        if self._folder is None:
            return []
        # It may be changed while the server runs.
        self.cpus = _limit(self._folder, self._version) or self.cpus
        counted = dict(line.split()[:2] for line in (self._folder / "cpu.stat").read_text().splitlines() if line)
        name, unit = _THROTTLED[self._version]
        now = {n: float(counted.get(n, 0)) for n in ("nr_periods", "nr_throttled", name)}
        if (d := self._differences.of("cpu", now)) is None:
            return []
        held = min(1.0, d["nr_throttled"] / d["nr_periods"]) if d["nr_periods"] else 0.0
        return [{"cpus": self.cpus, "held_back": held, "throttled": d[name] * unit / seconds}]


def _tightest(pid: int, proc: Path, root: Path) -> tuple[int, Path | None, float]:
    """Of a process' cgroup and those above it, the one with the smallest limit: version, folder and CPUs."""
    found: tuple[int, Path | None, float] = (0, None, 0.0)
    with suppress(OSError):
        for line in (proc / str(pid) / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            version = 2 if not controllers else 1 if "cpu" in controllers.split(",") else 0
            if not version:
                continue
            base = root if version == 2 else root / controllers
            base = base if base.is_dir() else root / "cpu"
            here = base / path.lstrip("/")
            # In a container the path may be the machine's, and what is mounted is its own part of it.
            here = here if here.is_dir() else base
            while True:
                cpus = _limit(here, version)
                if cpus and (found[1] is None or cpus < found[2]):
                    found = (version, here, cpus)
                if here == base:
                    break
                here = here.parent
    return found


def _limit(folder: Path, version: int) -> float:
    """CPUs that a cgroup may use; 0: as many as there are."""
    with suppress(OSError, ValueError):
        if version == 2:
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{n}_us").read_text().strip() for n in ("quota", "period"))
        if quota not in ("max", "-1"):
            return int(quota) / int(period)
    return 0.0
