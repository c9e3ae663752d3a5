"""Device and process activity under load, separated by phase, as iostat -x and iotop show it.

Further tables show the totals of statements, locks and the server's files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any

from pgdyno.diagnosis.causes.checkpoint_full_pages import in_checkpoint
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.format import integer, milliseconds, size
from pgdyno.judge.groups import Group
from pgdyno.report.cells import Cell, Table, linked
from pgdyno.report.findings import title_of
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.reading import RunData

#: Configurations; the samples have all.
_MOST = 60
_DEVICE_COLUMNS = [
    "configuration", "phase", "device", "r/s", "w/s", "read MB/s", "write MB/s", "rareq", "wareq", "aqu", "r_await ms",
    "w_await ms", "util",
]  # fmt: skip
#: Of statements and relations, the first.
_STATEMENTS = 12
#: Of statements that are not the scripts', the part of the time that is worth a row.
_OTHERS = 0.01
#: What is worth a row, of a processor and bytes a second.
_CPU, _BYTES = 0.001, 1000.0


def devices(run: RunAnalysis) -> Table:
    """Return the table of devices: means over time by configuration, device and phase.

    The phases are checkpoints and the time outside checkpoints. The phases of loading come first.
    """
    cells = _while_loading(run.data)
    for g in run.groups[:_MOST]:
        e = run.observed(g.trials)
        names = list(dict.fromkeys(row["device"] for r in e.trials for row in r.rows("devices")))
        for phase, fits in _phases(e):
            for name in names:
                of = _means(e, name, fits)
                if of is None:
                    continue
                reads, writes, *others = _figures(of)
                cells.append([title_of(g), phase, name, linked(reads, g.trials), linked(writes, g.trials), *others])
    return Table(
        "devices",
        "Devices",
        _DEVICE_COLUMNS,
        cells,
        "As iostat -x has them, means over the measurement, of the devices under the server's files. Phase: while a "
        "checkpoint wrote (by the server's log, else by what the checkpointer was seen to do), and the rest. Sampled, "
        "so without spread. While loading, what is left in the page cache is written in a later phase.",
        3,
        ["rareq", "wareq", "aqu"],
    )  # fmt: skip


def _while_loading(data: RunData) -> list[list[str | Cell]]:
    """Return the table rows of the loading phases, for each place that was loaded."""
    places = data.manifest.places
    cells: list[list[str | Cell]] = []
    for place in places.values():
        title = f"loading {place.dataset.name}" + (f" ({place.title or place.target})" if len(places) > 1 else "")
        for row in place.dataset.devices:
            cells.append([title, f"{row['phase']} ({row['seconds']:.1f} s)", str(row["device"]), *_figures(row)])
    return cells


def _figures(of: Mapping[str, Any]) -> list[str]:
    """Return the figures that iostat -x shows of a device.

    Requests per second come first, reads and then writes.
    """
    return [
        integer(of["reads_per_s"]), integer(of["writes_per_s"]),
        f"{of['read_bytes_per_s'] / 1e6:,.1f}", f"{of['write_bytes_per_s'] / 1e6:,.1f}",
        size(of["read_request_bytes"]), size(of["write_request_bytes"]), f"{of['queue']:.2f}",
        milliseconds(of["read_await_ns"]), milliseconds(of["write_await_ns"]), f"{of['utilisation'] * 100:.1f}%",
    ]  # fmt: skip


def _phases(e: Observed) -> list[tuple[str, Callable[[Recorded, int, int], bool]]]:
    spans = {id(r): in_checkpoint(r) for r in e.trials}

    def writes(r: Recorded, start: int, end: int) -> bool:
        return any(a < end and b > start for a, b in spans[id(r)])

    if not any(spans.values()):
        return [("run", lambda *_: True)]
    return [("no checkpoint", lambda *at: not writes(*at)), ("checkpoint", writes)]


def _means(e: Observed, device: str, fits: Callable[[Recorded, int, int], bool]) -> dict[str, float] | None:
    """Return the means of a device's samples in a phase, or None if there are no samples.

    Samples are weighted by their length. Sizes and latencies of requests are weighted by the number of requests.
    """
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


def processes(run: RunAnalysis) -> Table:
    """Return the table of CPU use and disk I/O of the server's processes.

    It has a row for each configuration, kind of process and phase (warm-up, measurement).
    """
    cells: list[list[str | Cell]] = []
    for g in run.groups[:_MOST]:
        trials = run.observed(g.trials).trials
        first = "cold" if _begin_cold(run.data, g) else "warm-up"
        for phase, of in ((first, Recorded.before), ("measured", Recorded.rows)):
            means = _by_kind([of(r, "processes") for r in trials])
            for kind, (count, cpu, waiting, read, written) in sorted(means.items(), key=lambda x: -x[1][1]):
                if cpu < _CPU and read + written < _BYTES:
                    continue
                cells.append(
                    [title_of(g), phase, kind, integer(round(count)), f"{cpu:.3f}", f"{waiting:.3f}",
                     f"{read / 1e6:,.2f}", f"{written / 1e6:,.2f}"]
                )  # fmt: skip
    return Table(
        "processes",
        "Processes",
        ["configuration", "phase", "process", "n", "CPUs", "waiting", "read MB/s", "write MB/s"],
        cells,
        "Means over the warm-up, where caches may be cold, and over the measurement. Cold: the warm-up behind a "
        "restart of the server. CPUs: processors used; waiting: processes that were ready and had none. Read: from "
        "the block layer; written: given to the kernel, which writes it to the disk then or later.",
        3,
        ["waiting", "n"],
    )


def _begin_cold(data: RunData, g: Group) -> bool:
    """Return True if the server restarts before each trial, which leaves shared buffers empty."""
    place = data.manifest.places.get(g.trials[0].place)
    # Of a server that was running already nothing is restarted.
    is_ours = place is not None and "host" not in place.reached
    return is_ours and bool((data.manifest.run.between or {}).get("restart"))


_PROCESS = ("processes", "cpu", "waiting_for_cpu", "read_bytes_per_s", "write_bytes_per_s")


def _by_kind(trials: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[float]]:
    """Return the means over time of the columns in `_PROCESS`, by kind of process.

    The means cover the samples of several trials.
    """
    # Several rows of a time are of several kinds.
    spans = [{(row["start_ns"], row["end_ns"]) for row in rows} for rows in trials]
    seconds = sum(end - start for start, end in chain.from_iterable(spans)) / 1e9
    means: dict[str, list[float]] = {}
    for row in chain.from_iterable(trials):
        mean = means.setdefault(row["kind"], [0.0] * len(_PROCESS))
        share = (row["end_ns"] - row["start_ns"]) / 1e9 / seconds if seconds else 0.0
        for n, column in enumerate(_PROCESS):
            mean[n] += share * row[column]
    return means


def statements(run: RunAnalysis) -> Table:
    """Return the table of the statements with the longest time on the server, by configuration.

    The figures are those of pg_stat_statements.
    """
    cells: list[list[str | Cell]] = []
    for g in run.groups[:_MOST]:
        titles = {(PurePath(s.script).name, s.line): s.title for s in run.data.pooled_statements[g.key]}
        counted: dict[str, dict[str, float]] = {}
        for row in run.observed(g.trials).whole("statements"):
            title = titles.get((row.get("script", ""), int(row.get("line") or 0))) or " ".join(row["statement"].split())
            total = counted.setdefault(title, {})
            for name, value in row.items():
                if isinstance(value, float):
                    total[name] = total.get(name, 0.0) + value
        whole = sum(of["ms"] for of in counted.values())
        # The scripts' own first; of others, who has a part in it.
        shown = [(t, of) for t, of in counted.items() if t in titles.values() or of["ms"] >= _OTHERS * whole]
        for title, of in sorted(shown, key=lambda x: (x[0] not in titles.values(), -x[1]["ms"]))[:_STATEMENTS]:
            calls = of["calls"] or 1.0
            each = {n: of.get(n, 0.0) / calls for n in of}
            temporary = each["temp_blocks_read"] + each["temp_blocks_written"]
            cells.append(
                [
                    title_of(g), title, linked(f"{of['calls']:,.0f}", g.trials), f"{each['ms']:.3g}",
                    *(f"{each[n]:.3g}" for n in ("rows", "blocks_hit", "blocks_read", "blocks_dirtied")),
                    f"{each['wal_bytes']:,.0f}", f"{each['wal_full_pages']:.2g}", f"{temporary:.2g}",
                    f"{each.get('jit_ms', 0.0):.2g}",
                ]
            )  # fmt: skip
    return Table(
        "server-statements",
        "Statements as the server counts them",
        ["configuration", "statement", "calls", "mean ms", "rows", "hit", "read", "dirtied", "WAL B", "full pages",
         "temp", "JIT ms"],
        cells,
        "By pg_stat_statements, so without spread; all but calls are for one call. On private servers counted while "
        "trials warm up, since to count costs some percent of the throughput; of others as they count. Hit, read, "
        "dirtied, temp: blocks. Mean: execution within the server, without planning and network.",
        2,
        ["dirtied", "full pages", "temp", "JIT ms", "hit"],
    )  # fmt: skip


def locks(run: RunAnalysis) -> Table:
    """Return the table of locks by configuration.

    The locks with the most waiting sessions come first, then those that were held most.
    """
    cells: list[list[str | Cell]] = []
    for g in run.groups[:_MOST]:
        trials = [r.rows("locks") for r in run.observed(g.trials).trials]
        looks = sum(len({row["end_ns"] for row in rows}) for rows in trials)
        totals: dict[tuple[str, str, str], dict[str, float]] = {}
        for row in chain.from_iterable(trials):
            total = totals.setdefault((row["kind"], row["mode"], row["relation"]), dict.fromkeys(_LOCKS, 0.0))
            for name in _LOCKS:
                total[name] += row[name] / looks
        for (kind, mode, relation), of in sorted(totals.items(), key=lambda x: (-x[1]["waiting"], -x[1]["granted"]))[
            :_STATEMENTS
        ]:
            cells.append([title_of(g), kind, mode, relation or "–", *(f"{of[name]:.2f}" for name in _LOCKS)])
    return Table(
        "locks",
        "Locks",
        ["configuration", "kind", "mode", "relation", "waiting", "held", "fast path"],
        cells,
        "Sessions at a time, means of looks at pg_locks every two seconds: what takes less than milliseconds is "
        "seldom seen. Fast path: of those held, without the shared lock table.",
        4,
        ["fast path"],
    )


#: Of a row of locks.
_LOCKS = ("waiting", "granted", "fast_path")


def growth(run: RunAnalysis) -> Table:
    """Return the table of the disk space of the database and of pg_wal, by configuration."""
    cells: list[list[str | Cell]] = []
    for g in run.groups[:_MOST]:
        e = run.observed(g.trials)
        spans = [rows for r in e.trials if len(rows := [*r.before("sizes"), *r.rows("sizes")]) > 1]
        if not spans:
            continue
        grown = sum(rows[-1]["database_bytes"] - rows[0]["database_bytes"] for rows in spans)
        seconds = sum(rows[-1]["end_ns"] - rows[0]["end_ns"] for rows in spans) / 1e9
        wal = [row["wal_bytes"] for rows in spans for row in rows if "wal_bytes" in row]
        cells.append(
            [title_of(g), linked(size(spans[-1][-1]["database_bytes"]), g.trials),
             f"{grown / 1e6 / max(seconds, 1e-9):,.2f}", *([size(min(wal)), size(max(wal))] if wal else ["–", "–"])]
        )  # fmt: skip
    return Table(
        "growth",
        "What the server's files take",
        ["configuration", "database", "growth MB/s", "pg_wal min", "pg_wal max"],
        cells,
        "As the server tells every five seconds. Database: at the end of the last trial; growth: over the trials, with "
        "their warm-up. In pg_wal are segments that are kept for the next checkpoints, standbys, slots and the "
        "archive.",
        2,
    )


def buffers(run: RunAnalysis) -> Table:
    """Return the table of the contents of shared buffers after a trial, by configuration."""
    cells: list[list[str | Cell]] = []
    for g in run.groups[:_MOST]:
        # What they hold does not add up over repetitions: the last one.
        rows = run.observed(g.trials[-1:]).whole("buffers")
        all_of_them = sum(row["buffers"] for row in rows) or 1.0
        for row in sorted(rows, key=lambda row: -row["buffers"])[:_STATEMENTS]:
            pages = row["pages"]
            cells.append(
                [title_of(g), str(row["relation"]), linked(f"{row['buffers']:,.0f}", g.trials[-1:]),
                 f"{row['buffers'] / all_of_them * 100:.1f}%", f"{row['main'] / pages * 100:.0f}%" if pages else "–",
                 f"{row['dirty']:,.0f}", f"{row['usage']:.1f}"]
            )  # fmt: skip
    return Table(
        "buffers",
        "What shared buffers hold",
        ["configuration", "relation", "buffers", "of all", "of the relation", "dirty", "usage"],
        cells,
        "By pg_buffercache, after the last trial of each configuration. Usage: how often the clock sweep finds a "
        "buffer used before it may go, 0 to 5, mean.",
        2,
        ["usage"],
    )
