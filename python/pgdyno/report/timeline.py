"""One trial over time, on one axis: throughput, latency, what clients waited for, disks, processors; events marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.diagnosis import dips
from pgdyno.diagnosis.causes.checkpoint_full_pages import checkpoint_spans
from pgdyno.diagnosis.recorded import Recorded, Wait, is_outside, runs
from pgdyno.message import Message, listed, message
from pgdyno.model import IntervalRow
from pgdyno.plot.model import COLOURS, GREY, Areas, Axis, Cell, Dots, Figure, Key, Line, Mark, Panel, Span, colours
from pgdyno.report.charts import Say

#: Points of a line.
_MOST = 400
#: Of a cloud of dots; below so many they are joined by a line.
_MOST_DOTS, _FEW_DOTS = 2000, 120
_WIDTH, _HEIGHT = 620, 90
#: Of a heat map.
_COLUMNS, _PER_DECADE = 100, 8
#: Waits that have a colour of their own.
_WAITS = 6
#: Nanoseconds that a moment takes in the picture.
_MOMENT_NS = 20_000_000
#: Events that are marked, and their colours.
_MARKED = {
    "checkpoint": COLOURS[1], "autovacuum": COLOURS[2], "lock wait": COLOURS[3], "plan changed": COLOURS[4],
    "server restarted": COLOURS[3], "configuration reloaded": COLOURS[4], "dip": GREY, "warm-up": "#d1d5db",
    "error": COLOURS[3], "server process died": COLOURS[3], "too many checkpoints": COLOURS[1],
    "connection lost": COLOURS[3], "setting changed": COLOURS[4],
    "schema changed": COLOURS[4],
}  # fmt: skip
#: Panels of the devices: their titles, the lines by what they show, the unit.
_DISKS = (
    (message("axis-disk-bytes"), {"read": "read_bytes_per_s", "write": "write_bytes_per_s"}, 1e6),
    (message("axis-disk-iops"), {"read": "reads_per_s", "write": "writes_per_s", "flush": "flushes_per_s"}, 1.0),
    (message("axis-await"), {"read": "read_await_ns", "write": "write_await_ns", "flush": "flush_await_ns"}, 1e6),
)
Points = list[tuple[float, float]]


def chart(r: Recorded, say: Say) -> Figure | None:
    """Return a chart of the panels that have data, or None if nothing was collected."""
    zero = r.window[0]
    if not r.intervals or not any(r.rows(s) for s in ("waits", "devices", "machine")):
        return None
    end = (r.window[1] - zero) / 1e9
    begin = min(0.0, (_whole(r)[0].start_ns - zero) / 1e9)
    x = Axis(domain=(round(begin, 3), round(end, 3)), is_time=True)
    marks = _marks(r, zero, say)
    events = {m.name: Key(m.name, m.colour, shape="span") for m in marks}
    tps, p99 = say(message("axis-tps")), say(message("axis-p99"))
    panels = [
        _panel(x, Axis(tps, form="si"), [*marks, *_dotted(_every_interval(r, zero), "TPS")], list(events.values())),
    ]
    if any(i.p99_ns for i in r.intervals):
        panels.append(_panel(x, Axis(p99), [*marks, Line(_tail(r, zero), "p99", width=1.3)]))
    if heat := _heat(r, zero, say):
        panels.append(_panel(x, Axis(say(message("axis-latency")), "log"), heat))
    if clients := waits(r, zero, say):
        panels.append(_stacked(clients, say(message("axis-clients")), x, own_colours(say)))
    found = [(title, _disks(r, zero, columns, unit)) for title, columns, unit in _DISKS]
    every = list(dict.fromkeys(name for _, disks in found for name in disks))
    # A device's reads have one colour in all panels.
    palette = dict(zip(every, colours(len(every)), strict=True))
    for title, disks in found:
        if disks:
            lines = [Line(points, name, palette[name], width=1.3) for name, points in disks.items()]
            keys = [Key(line.name, line.colour, shape="line") for line in lines]
            panels.append(_panel(x, Axis(say(title), form="si"), lines, keys))
    if cpus := _processors(r, zero, say):
        panels.append(_stacked(cpus, say(message("axis-cpus")), x))
    return Figure(panels)


def _panel(x: Axis, y: Axis, marks: Sequence[Mark], keys: Sequence[Key] = ()) -> Panel:
    return Panel(x, y, marks, width=_WIDTH, height=_HEIGHT, keys=keys)


def _dotted(points: Points, name: str) -> list[Mark]:
    """Return values each as a dot; a line joins them only if they are few."""
    if len(points) < _FEW_DOTS:
        return [Line(points, name, width=1.3, has_dots=True)]
    return [Dots(points, name, radius=1.4)]


def own_colours(say: Say) -> dict[str, str]:
    """Return the colours of the states that have the same one in every chart."""
    return {say(message("wait-running")): COLOURS[0], say(message("wait-outside")): COLOURS[5]}


def state_colours(names: Sequence[str], own: Mapping[str, str]) -> list[str]:
    """Return a colour for each state: its own, else the next that no other state has."""
    free = iter([c for c in colours(len(COLOURS)) if c not in own.values()])
    return [own[name] if name in own else next(free, GREY) for name in names]


def _stacked(parts: Stacked, title: str, x: Axis, own: Mapping[str, str] | None = None) -> Panel:
    palette = state_colours(parts.names[: len(parts.names) - parts.has_rest], own or {})
    palette += [GREY] if parts.has_rest else []
    keys = [Key(name, colour) for name, colour in zip(parts.names, palette, strict=True)]
    return _panel(x, Axis(title), [Areas(parts.names, parts.rows, palette)], keys)


def _whole(r: Recorded) -> list[IntervalRow]:
    """Return the intervals of the warm-up and of the measurement."""
    every = r.data.series[r.trial.plan.number]
    return [i for i in every if i.phase in ("warmup", "measure") and i.end_ns > i.start_ns]


def _thin(rows: Sequence[Any]) -> Sequence[Any]:
    step = max(1, -(-len(rows) // _MOST))
    return rows[::step]


def _every_interval(r: Recorded, zero: int) -> Points:
    """Throughput of each interval by itself: what a mean over several would hide is what is looked for."""
    whole = _whole(r)
    step = max(1, -(-len(whole) // _MOST_DOTS))
    found: Points = []
    for n in range(0, len(whole), step):
        # Of very many the lowest and the highest of each stretch: a stall is never left out.
        part = sorted(whole[n : n + step], key=_tps)
        for i in part if len(part) < 3 else (part[0], part[-1]):
            found.append((round((i.end_ns - zero) / 1e9, 3), _tps(i)))
    return found


def _tps(i: IntervalRow) -> float:
    return i.committed / ((i.end_ns - i.start_ns) / 1e9)


def _tail(r: Recorded, zero: int) -> Points:
    whole = _whole(r)
    step = max(1, -(-len(whole) // _MOST))
    found: Points = []
    for i in range(0, len(whole), step):
        part = whole[i : i + step]
        # Of latency the highest: percentiles are never averaged.
        found.append((round((part[-1].end_ns - zero) / 1e9, 3), max(x.p99_ns for x in part) / 1e6))
    return found


def _heat(r: Recorded, zero: int, say: Say) -> list[Cell]:
    """Return the numbers of transactions by time and latency.

    Time is divided into columns. Each factor of ten in latency is divided into `_PER_DECADE` rows.
    """
    parts = r.data.over_time[r.trial.plan.number]
    length = max(1, r.window[1] - r.window[0])
    columns = max(1, min(_COLUMNS, len(parts)))
    counts: dict[tuple[int, int], int] = {}
    for start, buckets in parts:
        column = min(columns - 1, round((start - zero) * columns / length))
        for value, n in buckets:
            row = math.floor(math.log10(max(1, value)) * _PER_DECADE)
            counts[column, row] = counts.get((column, row), 0) + n
    seconds = length / 1e9 / columns
    most = math.log(max(counts.values(), default=1) + 1)
    transactions = say(message("axis-transactions"))
    found = []
    for (column, row), n in sorted(counts.items()):
        low, high = 10 ** (row / _PER_DECADE) / 1e6, 10 ** ((row + 1) / _PER_DECADE) / 1e6
        at = column * seconds, (column + 1) * seconds
        words = f"{at[0]:.4g} – {at[1]:.4g} s, {low:.3g} – {high:.3g} ms: {n:,} {transactions}"
        # By the logarithm: a single slow transaction is seen beside thousands of fast ones.
        found.append(Cell(at, (low, high), 0.08 + 0.92 * math.log(n + 1) / most, words))
    return found


@dataclass(frozen=True)
class Stacked:
    """Parts of a whole over time. `has_rest`: the last is all that has no name."""

    names: list[str]
    rows: list[tuple[float, list[float]]]
    has_rest: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows)


def waits(r: Recorded, zero: int, say: Say) -> Stacked:
    """Our clients: running, outside of the server, and the longest waits."""
    totals: dict[str, float] = {}
    samples: dict[int, dict[str, float]] = {}
    for sample in r.client_time:
        at = samples.setdefault(sample.end_ns, {})
        for what, clients in sample.counts.items():
            name = state_name(what, say, idle_on_purpose=r.is_idle_on_purpose)
            totals[name] = totals.get(name, 0.0) + clients
            at[name] = at.get(name, 0.0) + clients
    most = sorted(totals, key=lambda n: -totals[n])[:_WAITS]
    has_rest = len(totals) > len(most)
    rows = []
    for end in _thin(sorted(samples)):
        at = samples[end]
        rest = [sum(v for n, v in at.items() if n not in most)] if has_rest else []
        rows.append((round((end - zero) / 1e9, 3), [*(at.get(name, 0.0) for name in most), *rest]))
    return Stacked([*most, *([say(message("wait-others"))] if has_rest else [])], rows, has_rest)


def state_name(what: Wait, say: Say, *, idle_on_purpose: bool = False) -> str:
    """Return the name of a client's state in charts."""
    state, kind, wait = what
    if state == "idle" and idle_on_purpose:
        return say(message("wait-idle"))
    if is_outside(what):
        return say(message("wait-outside"))
    if kind:
        return f"{kind}: {wait}"
    return say(message("wait-running")) if runs(what) else say(message("not-known"))


def _disks(r: Recorded, zero: int, columns: dict[str, str], unit: float) -> dict[str, Points]:
    """Return the lines of each device by their names.

    A kind of request that a device never had gets no line.
    """
    found: dict[str, Points] = {}
    rows = r.rows("devices")
    for name in dict.fromkeys(row["device"] for row in rows):
        for row in _thin([x for x in rows if x["device"] == name]):
            for what, column in columns.items():
                at = round((row["end_ns"] - zero) / 1e9, 3)
                found.setdefault(f"{name} {what}", []).append((at, (row.get(column) or 0.0) / unit))
    return {name: points for name, points in found.items() if any(y for _, y in points)}


def _processors(r: Recorded, zero: int, say: Say) -> Stacked:
    names = [say(message(x)) for x in ("cpu-user", "cpu-system", "cpu-iowait", "cpu-steal")]
    rows = []
    for row in _thin(r.rows("machine")):
        system = row["cpu_system"] + row["cpu_irq"] + row["cpu_softirq"]
        parts = [row["cpu_user"] + row["cpu_nice"], system, row["cpu_iowait"], row["cpu_steal"]]
        # The kernel's clocks of states are not those of the sample: no more is busy than there is.
        most = min(1.0, row["cores"] / sum(parts)) if sum(parts) else 1.0
        rows.append((round((row["end_ns"] - zero) / 1e9, 3), [part * most for part in parts]))
    return Stacked(names, rows)


def _event(kind: str) -> Message:
    return message(f"event-{kind.replace(' ', '-')}")


def _marks(r: Recorded, zero: int, say: Say) -> list[Span]:
    """Spans and moments of what happened, by kind in the order of the legend."""
    found: dict[str, list[Span]] = {kind: [] for kind in _MARKED}

    def add(kind: str, start_ns: int, end_ns: int, hint: str) -> None:
        start, end = (start_ns - zero) / 1e9, (end_ns - zero) / 1e9
        start = start if kind == "warm-up" else max(0.0, start)
        found[kind].append(Span(round(start, 3), round(max(start, end), 3), say(_event(kind)), hint, _MARKED[kind]))

    if _whole(r)[0].start_ns < zero:
        add("warm-up", _whole(r)[0].start_ns, zero, say(message("event-not-counted")))
    for start, end in checkpoint_spans(r):
        add("checkpoint", start, end, say(_event("checkpoint")))
    for d in dips.dips_of(r):
        add("dip", d.start_ns, d.end_ns, say(listed(dips.explained(r, d) or [message("dip-unexplained")])))
    for e in r.events:
        if e.kind in _MARKED and e.kind != "checkpoint" and e.at_ns:
            add(e.kind, e.at_ns, e.at_ns + _MOMENT_NS, say(e.text)[:120])
    return [span for spans in found.values() for span in spans][:_MOST]
