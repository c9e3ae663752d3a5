"""`--shrink K`: an experiment made for a large machine, made small enough for a laptop; with the changes."""

from __future__ import annotations

from typing import Any

from pgdyno.spec.values import size_bytes
from pgdyno.store.manifest import Change

#: What is left at least: of an instance and of a file system; seconds measured, seconds of warm-up, clients a core,
#: tables.
SMALLEST_CPUS, SMALLEST_MEMORY_MB, SMALLEST_FILE_SYSTEM_MB = 0.25, 512, 6144
SHORTEST_S, SHORTEST_WARMUP_S, FEWEST_CLIENTS, FEWEST_TABLES = 2.0, 0.5, 4, 4


def shrink(data: dict[str, Any], k: float, cores: int, memory_bytes: int) -> list[Change]:
    """Divide rows, tables, durations and clients of an experiment by `k`; return the changes.

    `data` is the experiment as a dictionary, which is changed and not yet valid.

    The values do not fall below those that still give a meaningful result: 2 s of measurement, 4 clients per core, 4
    tables, one unit of scale.
    """
    changes: list[Change] = []

    def divide(where: dict[str, Any], key: str, least: float, what: str, of: str = "") -> None:
        value = where.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= least:
            return
        new = max(least, value / k)
        where[key] = max(1, round(new)) if isinstance(value, int) else round(new, 3)
        if where[key] != value:
            changes.append(Change(what=what, of=of, before=f"{value:,}", after=f"{where[key]:,}"))

    for name, dataset in [("dataset", data["dataset"]), *data["datasets"].items()]:
        if dataset is not None:
            divide(dataset, "tables", FEWEST_TABLES, "tables", name)
            divide(dataset, "scale", 1, "scale", name)
            divide(dataset, "rows", 1000, "rows", name)
            for table, fill in dataset["fill"].items():
                divide(fill, "rows", 1000, "rows", f"{name}.{table}")
    _fit_targets(data["targets"], k, cores, memory_bytes, changes)
    run = data["run"]
    divide(run, "duration_s", SHORTEST_S, "duration")
    divide(run, "duration_limit_s", run["duration_s"], "duration-limit")
    divide(run, "warmup_s", SHORTEST_WARMUP_S, "warmup")
    if run["warmup_s"] == "steady":
        divide(run, "warmup_limit_s", 10.0, "warmup-limit")
    divide(run["between"], "pause_s", 0.1, "pause")
    if run["interval_s"] > run["duration_s"] / 8:
        run["interval_s"] = max(0.05, round(run["duration_s"] / 8, 2))
        changes.append(Change(what="interval", after=f"{run['interval_s']:g}"))
    if data["storage"] is not None:
        divide(data["storage"], "seconds", 1.0, "probe")
        # What is measured briefly is measured in a small file.
        data["storage"]["size"] = data["storage"]["size"] and "256MB"
    for axes in data["axes"] if isinstance(data["axes"], list) else [data["axes"]]:
        for axis, least in (("clients", FEWEST_CLIENTS * cores), ("scale", 1)):
            values = axes[axis]
            if isinstance(values, list) and values:
                new = [v if v <= least else max(least, round(v / k)) for v in values]
                axes[axis] = list(dict.fromkeys(new))
                if axes[axis] != values:
                    changes.append(Change(what="axis", of=axis, before=_list(values), after=_list(axes[axis])))
    return list(dict.fromkeys(changes))


def _fit_targets(targets: dict[str, Any], k: float, cores: int, memory_bytes: int, changes: list[Change]) -> None:
    """Instances become parts of this machine, the largest of them the whole of it; file systems shrink as rows do."""
    sized = [t for t in targets.values() if t["cpus"] or t["memory"]]
    most_cpus = max((t["cpus"] or 0 for t in sized), default=0)
    most_memory = max((size_bytes(t["memory"]) for t in sized if t["memory"]), default=0)
    for name, t in targets.items():
        if t["cpus"] and most_cpus > cores:
            was, t["cpus"] = t["cpus"], max(SMALLEST_CPUS, round(t["cpus"] * cores / most_cpus, 2))
            changes.append(Change(what="cpus", of=name, before=f"{was:g}", after=f"{t['cpus']:g}"))
        # The client, and the page cache of others, need some as well.
        if t["memory"] and most_memory > memory_bytes // 2:
            share = size_bytes(t["memory"]) * (memory_bytes // 2) // most_memory
            was, t["memory"] = t["memory"], f"{max(SMALLEST_MEMORY_MB, share >> 20)}MB"
            changes.append(Change(what="memory", of=name, before=str(was), after=t["memory"]))
        if t["file_system"]:
            was = t["file_system"]["size"]
            small = max(SMALLEST_FILE_SYSTEM_MB, round(size_bytes(was) / k) >> 20)
            if small < size_bytes(was) >> 20:
                t["file_system"]["size"] = f"{small}MB"
                changes.append(Change(what="file-system", of=name, before=str(was), after=f"{small}MB"))


def _list(values: list[Any]) -> str:
    return ", ".join(f"{v:,}" for v in values)
