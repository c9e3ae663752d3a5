"""The machine: CPU time by state, run queue, memory, dirty pages, pressure, network, soft interrupts. Linux's /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pgdyno.collect.sources.base import Differences, Row, slurp

#: In the order of /proc/stat; guest times are in user and nice already.
_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_TICKS = os.sysconf("SC_CLK_TCK")
_MEMORY = {
    b"MemAvailable": "memory_available_bytes", b"Cached": "page_cache_bytes", b"Dirty": "dirty_bytes",
    b"Writeback": "writeback_bytes",
}  # fmt: skip
_PRESSURE = (("cpu", b"some"), ("io", b"some"), ("io", b"full"), ("memory", b"some"))


class Machine:
    """One row a sample: `cpu_*` in CPUs (of `cores`), `pressure_*` as parts of the time, the rest as named."""

    name = "machine"
    period_s = 0.0

    def __init__(self) -> None:
        self._differences = Differences()

    @staticmethod
    def is_there() -> bool:
        """Return True if this machine provides these figures."""
        return Path("/proc/stat").exists()

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        row: Row = {}
        cpus: dict[str, list[float]] = {}
        for line in slurp("/proc/stat").splitlines():
            name, *values = line.split()
            if name.startswith(b"cpu"):
                cpus[name.decode()] = [float(v) for v in values[: len(_STATES)]]
            elif name in (b"procs_running", b"procs_blocked"):
                row["running" if name == b"procs_running" else "blocked"] = float(values[0])
            elif name == b"ctxt":
                d = self._differences.of("ctxt", {"n": float(values[0])})
                row["context_switches_per_s"] = d["n"] / seconds if d else 0.0
        d = self._differences.of("cpu", dict(zip(_STATES, cpus.pop("cpu"), strict=True)))
        row["cores"] = float(len(cpus))
        for state in _STATES:
            row[f"cpu_{state}"] = d[state] / _TICKS / seconds if d else 0.0
        busiest = 0.0
        for name_, values_ in cpus.items():
            one = self._differences.of(name_, dict(zip(_STATES, values_, strict=True)))
            total = sum(one.values()) if one else 0.0
            if one and total > 0:
                busiest = max(busiest, 1 - (one["idle"] + one["iowait"]) / total)
        row["busiest_core"] = busiest
        for line in slurp("/proc/meminfo").splitlines():
            key, _, value = line.partition(b":")
            if key in _MEMORY:
                row[_MEMORY[key]] = float(value.split()[0]) * 1024
        row |= self._pressure(seconds)
        row |= self._network(seconds)
        return [row] if d else []

    def _pressure(self, seconds: float) -> Row:
        """Parts of the time in which some (or all) tasks that had something to do waited for a resource."""
        found: Row = {}
        for resource, kind in _PRESSURE:
            name = f"pressure_{resource}_{kind.decode()}"
            found[name] = 0.0
            with suppress(OSError, ValueError, IndexError):
                for line in slurp(f"/proc/pressure/{resource}").splitlines():
                    if line.startswith(kind + b" "):
                        d = self._differences.of(name, {"us": float(line.rsplit(b"=", 1)[1])})
                        found[name] = d["us"] / 1e6 / seconds if d else 0.0
        return found

    def _network(self, seconds: float) -> Row:
        """Bytes of all interfaces but loopback."""
        total = {"received": 0.0, "sent": 0.0}
        with suppress(OSError):
            for line in slurp("/proc/net/dev").splitlines()[2:]:
                name, _, values = line.partition(b":")
                if name.strip() != b"lo":
                    parts = values.split()
                    total["received"] += float(parts[0])
                    total["sent"] += float(parts[8])
        d = self._differences.of("network", total) or {"received": 0.0, "sent": 0.0}
        return {f"network_{n}_bytes_per_s": v / seconds for n, v in d.items()}


class Cores:
    """One row a core and sample: the parts of its time."""

    name = "cores"
    period_s = 1.0

    def __init__(self) -> None:
        self._differences = Differences()

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        found: list[Row] = []
        for line in slurp("/proc/stat").splitlines():
            name, *values = line.split()
            if not name.startswith(b"cpu") or name == b"cpu":
                continue
            d = self._differences.of(name, dict(zip(_STATES, map(float, values[: len(_STATES)]), strict=True)))
            total = sum(d.values()) if d else 0.0
            if d and total > 0:
                found.append({"core": float(name[3:]), **{state: d[state] / total for state in _STATES}})
        return found


class SoftInterrupts:
    """Soft interrupts: one row per kind (`NET_RX`, `BLOCK`, `TIMER`, `SCHED` ...) and sample.

    A row holds the number per second on all cores together, and on the core with the most. It shows a single core that
    serves all of a network card.
    """

    name = "softirqs"
    period_s = 1.0

    def __init__(self) -> None:
        self._differences = Differences()

    @staticmethod
    def is_there() -> bool:
        """Return True if this machine counts soft interrupts."""
        return os.access("/proc/softirqs", os.R_OK)

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        found: list[Row] = []
        _, *lines = slurp("/proc/softirqs").splitlines()
        for line in lines:
            name, _, values = line.partition(b":")
            kind = name.strip().decode()
            d = self._differences.of(kind, {str(core): float(v) for core, v in enumerate(values.split())})
            if d and any(d.values()):
                each = [v / seconds for v in d.values()]
                found.append({"kind": kind, "per_s": sum(each), "busiest_core_per_s": max(each)})
        return found
