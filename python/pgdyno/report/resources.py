"""Device and process activity under load, separated by phase, as iostat -x and iotop show it.

Further tables show the totals of statements, locks and the server's files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any

from pgdyno.diagnosis.causes.checkpoint_full_pages import checkpoint_spans
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.judge.groups import Group
from pgdyno.message import Message, Name, Text, message
from pgdyno.report.cells import (
    COUNT,
    MS,
    NUMBER,
    PERCENT,
    SIZE,
    Cell,
    Column,
    Form,
    Table,
    cells,
    column,
    fixed,
    linked,
    significant,
)
from pgdyno.report.names import configuration
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.reading import RunData

#: Configurations; the samples have all.
_MOST = 60
_WHOLE_PERCENT = Form(lambda v: f"{v * 100:.0f}%")
#: As iostat -x calls them, with the columns of the samples that they come from.
_DEVICE_COLUMNS = {
    "r/s": (NUMBER, "reads_per_s"),
    "w/s": (NUMBER, "writes_per_s"),
    "read MB/s": (fixed(1, "bytes/s", 1e6), "read_bytes_per_s"),
    "write MB/s": (fixed(1, "bytes/s", 1e6), "write_bytes_per_s"),
    "rareq": (SIZE, "read_request_bytes"),
    "wareq": (SIZE, "write_request_bytes"),
    "aqu": (fixed(2), "queue"),
    "r_await ms": (MS, "read_await_ns"),
    "w_await ms": (MS, "write_await_ns"),
    "util": (PERCENT, "utilisation"),
}
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
    rows = _while_loading(run.data)
    for g in run.groups[:_MOST]:
        e = run.observed(g.trials)
        names = list(dict.fromkeys(row["device"] for r in e.trials for row in r.rows("devices")))
        for phase, fits in _phases(e):
            for name in names:
                of = _means(e, name, fits)
                if of is None:
                    continue
                reads, writes, *others = _figures(of)
                leading = [linked(reads, g.trials), linked(writes, g.trials)]
                rows.append(cells([configuration(g), phase, name, *leading, *others]))
    return Table(
        "devices",
        message("table-devices"),
        [column("configuration"), column("phase"), column("device"),
         *(Column(n, Name(n), form) for n, (form, _) in _DEVICE_COLUMNS.items())],
        rows,
        [message("note-devices")],
        3,
        ["rareq", "wareq", "aqu"],
    )  # fmt: skip


def _while_loading(data: RunData) -> list[list[Cell]]:
    """Return the table rows of the loading phases, for each place that was loaded."""
    places = data.manifest.places
    rows = []
    for place in places.values():
        where = message("in-brackets", text=Name(place.title or place.target)) if len(places) > 1 else None
        title = message("loading-of", dataset=Name(place.dataset.name), where=where)
        for row in place.dataset.devices:
            known = f"phase-{row['phase']}"
            phase: Text = Message(known) if known in _LOADING else Name(str(row["phase"]))
            seconds = Name(f"{row['seconds']:.1f}")
            rows.append(
                cells([title, message("phase-of", phase=phase, seconds=seconds), str(row["device"]), *_figures(row)])
            )
    return rows


#: Phases of a load.
_LOADING = {
    "phase-generate", "phase-keys", "phase-vacuum", "phase-create", "phase-start", "phase-check", "phase-copy",
    "phase-restore",
}  # fmt: skip


def _figures(of: Mapping[str, Any]) -> list[float | None]:
    """Return the figures that iostat -x shows of a device.

    Requests per second come first, reads and then writes.
    """
    return [of[name] or (None if form is MS else 0.0) for form, name in _DEVICE_COLUMNS.values()]


def _phases(e: Observed) -> list[tuple[Message, Callable[[Recorded, int, int], bool]]]:
    spans = {id(r): checkpoint_spans(r) for r in e.trials}

    def writes(r: Recorded, start: int, end: int) -> bool:
        return any(a < end and b > start for a, b in spans[id(r)])

    if not any(spans.values()):
        return [(message("phase-run"), lambda *_: True)]
    return [(message("phase-no-checkpoint"), lambda *at: not writes(*at)), (message("phase-checkpoint"), writes)]


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
    rows = []
    for g in run.groups[:_MOST]:
        trials = run.observed(g.trials).trials
        first = message("phase-cold") if _begin_cold(run.data, g) else message("phase-warmup")
        for phase, of in ((first, Recorded.before), (message("phase-measured"), Recorded.rows)):
            means = _means_by_kind([of(r, "processes") for r in trials])
            for kind, (count, cpu, waiting, read, written) in sorted(means.items(), key=lambda x: -x[1][1]):
                if cpu < _CPU and read + written < _BYTES:
                    continue
                rows.append(cells([configuration(g), phase, kind, round(count), cpu, waiting, read, written]))
    mb_per_s = fixed(2, "bytes/s", 1e6)
    return Table(
        "processes",
        message("table-processes"),
        [
            column("configuration"), column("phase"), column("process"), column("n", COUNT), column("CPUs", fixed(3)),
            column("waiting", fixed(3), id="waiting-for-cpu"), column("read MB/s", mb_per_s),
            column("write MB/s", mb_per_s),
        ],
        rows,
        [message("note-processes")],
        3,
        ["waiting", "n"],
    )  # fmt: skip


def _begin_cold(data: RunData, g: Group) -> bool:
    """Return True if the server restarts before each trial, which leaves shared buffers empty."""
    place = data.manifest.places.get(g.trials[0].place)
    # Of a server that was running already nothing is restarted.
    is_ours = place is not None and "host" not in place.reached
    return is_ours and bool((data.manifest.run.between or {}).get("restart"))


_PROCESS = ("processes", "cpu", "waiting_for_cpu", "read_bytes_per_s", "write_bytes_per_s")


def _means_by_kind(trials: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[float]]:
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
        for n, name in enumerate(_PROCESS):
            mean[n] += share * row[name]
    return means


def statements(run: RunAnalysis) -> Table:
    """Return the table of the statements with the longest time on the server, by configuration.

    The figures are those of pg_stat_statements.
    """
    rows = []
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
            figures = [each[n] for n in ("ms", "rows", "blocks_hit", "blocks_read", "blocks_dirtied", "wal_bytes")]
            figures += [each["wal_full_pages"], temporary, each.get("jit_ms", 0.0)]
            rows.append(cells([configuration(g), title, linked(of["calls"], g.trials), *figures]))
    three, two = significant(3), significant(2)
    milliseconds = Form(three.write, "s", 1e-3, True)
    return Table(
        "server-statements",
        message("table-server-statements"),
        [
            column("configuration"), column("statement", is_long=True), column("calls", COUNT),
            column("mean ms", milliseconds), column("rows", three), column("hit", three),
            column("read", three, id="blocks-read"), column("dirtied", three), column("WAL B", COUNT),
            column("full pages", two), column("temp", two), column("JIT ms", Form(two.write, "s", 1e-3, True)),
        ],
        rows,
        [message("note-server-statements")],
        2,
        ["dirtied", "full pages", "temp", "JIT ms", "hit"],
    )  # fmt: skip


def locks(run: RunAnalysis) -> Table:
    """Return the table of locks by configuration.

    The locks with the most waiting sessions come first, then those that were held most.
    """
    rows = []
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
            rows.append(cells([configuration(g), kind, mode, relation or None, *(of[name] for name in _LOCKS)]))
    return Table(
        "locks",
        message("table-locks"),
        [
            column("configuration"), column("kind"), column("mode"), column("relation"), column("waiting", fixed(2)),
            column("held", fixed(2)), column("fast path", fixed(2)),
        ],
        rows,
        [message("note-locks")],
        4,
        ["fast path"],
    )  # fmt: skip


#: Of a row of locks.
_LOCKS = ("waiting", "granted", "fast_path")


def growth(run: RunAnalysis) -> Table:
    """Return the table of the disk space of the database and of pg_wal, by configuration."""
    rows = []
    for g in run.groups[:_MOST]:
        e = run.observed(g.trials)
        spans = [of for r in e.trials if len(of := [*r.before("sizes"), *r.rows("sizes")]) > 1]
        if not spans:
            continue
        grown = sum(of[-1]["database_bytes"] - of[0]["database_bytes"] for of in spans)
        seconds = sum(of[-1]["end_ns"] - of[0]["end_ns"] for of in spans) / 1e9
        wal = [row["wal_bytes"] for of in spans for row in of if "wal_bytes" in row]
        database = linked(spans[-1][-1]["database_bytes"], g.trials)
        kept = [min(wal), max(wal)] if wal else [None, None]
        rows.append(cells([configuration(g), database, grown / max(seconds, 1e-9), *kept]))
    return Table(
        "growth",
        message("table-growth"),
        [
            column("configuration"), column("database", SIZE), column("growth MB/s", fixed(2, "bytes/s", 1e6)),
            column("pg_wal min", SIZE), column("pg_wal max", SIZE),
        ],
        rows,
        [message("note-growth")],
        2,
    )  # fmt: skip


def buffers(run: RunAnalysis) -> Table:
    """Return the table of the contents of shared buffers after a trial, by configuration."""
    rows = []
    for g in run.groups[:_MOST]:
        # What they hold does not add up over repetitions: the last one.
        held = run.observed(g.trials[-1:]).whole("buffers")
        all_of_them = sum(row["buffers"] for row in held) or 1.0
        for row in sorted(held, key=lambda row: -row["buffers"])[:_STATEMENTS]:
            pages = row["pages"]
            rows.append(
                cells(
                    [
                        configuration(g), str(row["relation"]), linked(row["buffers"], g.trials[-1:]),
                        row["buffers"] / all_of_them, row["main"] / pages if pages else None, row["dirty"],
                        row["usage"],
                    ]
                )
            )  # fmt: skip
    return Table(
        "buffers",
        message("table-buffers"),
        [
            column("configuration"), column("relation"), column("buffers", COUNT), column("of all", PERCENT),
            column("of the relation", _WHOLE_PERCENT), column("dirty", COUNT), column("usage", fixed(1)),
        ],
        rows,
        [message("note-buffers")],
        2,
        ["usage"],
    )  # fmt: skip
