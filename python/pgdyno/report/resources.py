"""What devices and processes did while the load ran, as iostat -x and iotop show it, apart by phase."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgdyno.diagnosis.causes.checkpoint_full_pages import in_checkpoint
from pgdyno.diagnosis.evidence import Evidence, Recorded
from pgdyno.format import integer, milliseconds, size
from pgdyno.judge.groups import Group
from pgdyno.report.cells import Cell, Table, linked
from pgdyno.report.findings import title_of
from pgdyno.store.reading import RunData

#: Configurations; the samples have all.
_MOST = 60
_DEVICE_COLUMNS = [
    "configuration", "phase", "device", "r/s", "w/s", "read MB/s", "write MB/s", "rareq", "wareq", "aqu", "r_await ms",
    "w_await ms", "util",
]  # fmt: skip
#: What is worth a row, of a processor and bytes a second.
_CPU, _BYTES = 0.001, 1000.0


def devices(data: RunData, groups: Sequence[Group]) -> Table:
    """By configuration, device and phase (in checkpoints, and otherwise): means over time."""
    cells: list[list[str | Cell]] = []
    for g in groups[:_MOST]:
        e = Evidence(data, g.trials)
        names = list(dict.fromkeys(row["device"] for r in e.trials for row in r.rows("devices")))
        for phase, fits in _phases(e):
            for name in names:
                of = _means(e, name, fits)
                if of is None:
                    continue
                cells.append(
                    [
                        title_of(g), phase, name,
                        linked(integer(of["reads_per_s"]), g.trials), linked(integer(of["writes_per_s"]), g.trials),
                        f"{of['read_bytes_per_s'] / 1e6:,.1f}", f"{of['write_bytes_per_s'] / 1e6:,.1f}",
                        size(of["read_request_bytes"]), size(of["write_request_bytes"]), f"{of['queue']:.2f}",
                        milliseconds(of["read_await_ns"]), milliseconds(of["write_await_ns"]),
                        f"{of['utilisation'] * 100:.1f}%",
                    ]
                )  # fmt: skip
    return Table(
        "devices",
        "Devices",
        _DEVICE_COLUMNS,
        cells,
        "As iostat -x has them, means over the measurement, of the devices under the server's files. Phase: while a "
        "checkpoint wrote (by the server's log, else by its counters), and the rest. Sampled, so without spread.",
        3,
        ["rareq", "wareq", "aqu"],
    )  # fmt: skip


def _phases(e: Evidence) -> list[tuple[str, Callable[[Recorded, int, int], bool]]]:
    spans = {id(r): in_checkpoint(r) for r in e.trials}

    def writes(r: Recorded, start: int, end: int) -> bool:
        return any(a < end and b > start for a, b in spans[id(r)])

    if not any(spans.values()):
        return [("run", lambda *_: True)]
    return [("no checkpoint", lambda *at: not writes(*at)), ("checkpoint", writes)]


def _means(e: Evidence, device: str, fits: Callable[[Recorded, int, int], bool]) -> dict[str, float] | None:
    """Of a device's samples in a phase, by time; of requests' sizes and times, by requests."""
    total: dict[str, float] = {}
    seconds = 0.0
    by = {"read_request_bytes": "reads_per_s", "write_request_bytes": "writes_per_s", "read_await_ns": "reads_per_s",
          "write_await_ns": "writes_per_s"}  # fmt: skip
    weights = dict.fromkeys(by, 0.0)
    for r in e.trials:
        for row in r.rows("devices"):
            if row["device"] != device or not fits(r, row["start_ns"], row["end_ns"]):
                continue
            length = (row["end_ns"] - row["start_ns"]) / 1e9
            seconds += length
            for name, value in row.items():
                if isinstance(value, float):
                    weight = length * (row[by[name]] if name in by else 1.0)
                    total[name] = total.get(name, 0.0) + value * weight
                    if name in by:
                        weights[name] += weight
    if not seconds:
        return None
    return {n: v / ((weights[n] or 1.0) if n in by else seconds) for n, v in total.items()}


def processes(data: RunData, groups: Sequence[Group]) -> Table:
    """By configuration and kind of process: CPU, and what went to and from the disk."""
    cells: list[list[str | Cell]] = []
    for g in groups[:_MOST]:
        e = Evidence(data, g.trials)
        kinds = list(dict.fromkeys(row["kind"] for r in e.trials for row in r.rows("processes")))
        for kind in sorted(kinds, key=lambda k: -(e.mean("processes", "cpu", kind=k) or 0.0)):
            count, cpu, waiting, read, written = (
                e.mean("processes", n, kind=kind) or 0.0
                for n in ("processes", "cpu", "waiting_for_cpu", "read_bytes_per_s", "write_bytes_per_s")
            )
            if cpu < _CPU and read + written < _BYTES:
                continue
            cells.append(
                [title_of(g), kind, integer(round(count)), f"{cpu:.3f}", f"{waiting:.3f}", f"{read / 1e6:,.2f}",
                 f"{written / 1e6:,.2f}"]
            )  # fmt: skip
    return Table(
        "processes",
        "Processes",
        ["configuration", "process", "n", "CPUs", "waiting", "read MB/s", "write MB/s"],
        cells,
        "Means over the measurement. CPUs: processors used; waiting: processes that were ready and had none. Read: "
        "from the block layer; written: given to the kernel, which writes it to the disk then or later.",
        2,
        ["waiting", "n"],
    )
