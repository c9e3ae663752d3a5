"""The machine: processor, memory, kernel, file system."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import psutil


def cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Memory of the machine, or of the cgroup that we are in where that is less."""
    total = int(psutil.virtual_memory().total)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = int(Path(path).read_text())
        except (OSError, ValueError):
            continue
        total = min(total, limit)
    return total


def free_bytes(path: Path) -> int:
    """Free space where `path` is, for an unprivileged user."""
    return int(psutil.disk_usage(str(path)).free)


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def file_system(path: Path) -> dict[str, str]:
    """Return the file system of `path`: mount, type, device, options; empty values if it is not known."""
    best = {"mount": "", "type": "", "device": "", "options": ""}
    for p in psutil.disk_partitions(all=True):
        if (str(path) + "/").startswith(p.mountpoint.rstrip("/") + "/") and len(p.mountpoint) >= len(best["mount"]):
            best = {"mount": p.mountpoint, "type": p.fstype, "device": p.device, "options": p.opts}
    return best


def describe(storage: Path | None = None) -> dict[str, Any]:
    """Return the facts about the machine for a manifest.

    `storage` is the path of the data, if they are on this machine.
    """
    facts: dict[str, Any] = {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_bytes": memory_bytes(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    if storage is not None:
        facts["storage"] = file_system(storage)
    return facts
