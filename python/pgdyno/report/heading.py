"""What stands at the top of a report: what was run where, what went wrong, what to bear in mind."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from pgdyno.model import Caveat, RunData

GIB = 1024**3


def error(data: RunData) -> str:
    """Why the run ended early, if it did."""
    m = data.manifest
    if m.get("error") or m.get("ended_at"):
        return str(m.get("error") or "")
    done = sum(t.state == "finished" for t in data.trials)
    return f"it was cut off (killed?): {done} of {m.get('trials', '?')} trials were finished"


def instance(m: dict[str, Any], place: dict[str, Any] | None = None) -> str:
    """As vendors name sizes: cores and memory."""
    if not m.get("same_machine", True):
        return str(m.get("target", {}).get("host", "remote"))[:14]
    h, p = m.get("host", {}), place or {}
    cores = p.get("cpus") or h.get("cores", "?")
    memory = (p.get("memory_bytes") or h.get("memory_bytes", 0)) / GIB
    return f"{cores:g}c {memory:.3g}g" if isinstance(cores, int | float) else f"{cores}c {memory:.0f}g"


def version_of(m: dict[str, Any]) -> str:
    """The server's version."""
    shown = m.get("server", {}).get("settings") or {}
    return str(shown.get("server_version", {}).get("value", m.get("server", {}).get("protocol_version", "?")))


def subtitle(data: RunData) -> str:
    """Server, time, trials."""
    m = data.manifest
    done = sum(t.state == "finished" for t in data.trials)
    trials = m.get("trials", len(data.trials))
    return f"PostgreSQL {version_of(m)}, {m.get('started_at', '')}, {done} of {trials} trials"


def caveats(data: RunData) -> list[tuple[str, str, str]]:
    """Text, remedy, how many trials."""
    counts = Counter(c for t in data.trials for c in t.caveats)
    m = data.manifest
    if m.get("shrunk"):
        counts[Caveat.SHRUNK] = len(data.trials)
    if m.get("same_machine", True):
        counts[Caveat.SHARED_MACHINE] = len(data.trials)
    if 0 < m.get("run", {}).get("repetitions", 3) < 3:
        counts[Caveat.FEW_REPETITIONS] = len(data.trials)
    if m.get("not_recorded"):
        counts[Caveat.NOT_RECORDED] = len(data.trials)
    if _fits_in_memory(m):
        counts[Caveat.FITS_IN_MEMORY] = len(data.trials)
    return [(c.text, c.remedy, f"{n} of {len(data.trials)} trials") for c, n in counts.items()]


def _fits_in_memory(m: dict[str, Any]) -> bool:
    data = sum((m.get("dataset", {}).get("bytes") or {}).values())
    value = ((m.get("server", {}).get("settings") or {}).get("shared_buffers") or {}).get("value", "")
    match = re.fullmatch(r"(\d+)\s*(kB|MB|GB|TB)", value)
    if not match:
        return False
    factor = {"kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}[match[2]]
    return bool(data and data < int(match[1]) * factor)
