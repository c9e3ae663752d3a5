"""Two configurations beside each other, over time and on equal scales: throughput, and what the busiest device did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pgdyno.diagnosis.causes.checkpoint_full_pages import checkpoint_spans
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.judge.compared import Pair
from pgdyno.judge.groups import Group
from pgdyno.message import message
from pgdyno.model import spelled
from pgdyno.plot.model import COLOURS, Axis, Figure, Key, Line, Panel, Span
from pgdyno.plot.scales import scale
from pgdyno.report.charts import Say
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.reading import RunData

_WIDTH, _HEIGHT = 285, 85
#: Points of one side.
_MOST = 400
_DEVICE = (
    (message("axis-written"), lambda row: row["write_bytes_per_s"] / 1e6),
    (message("axis-write-time"), lambda row: row["write_await_ns"] / 1e6),
    (message("axis-read"), lambda row: row["read_bytes_per_s"] / 1e6),
    (message("axis-utilisation"), lambda row: row["utilisation"] * 100),
)
Points = list[tuple[float, float]]


def chart(run: RunAnalysis, pair: Pair, say: Say) -> Figure | None:
    """Return a chart of the longest trial of each side.

    Return None if there is nothing to show besides the throughput.
    """
    sides = {_name(pair, g): _longest(run.data, g) for g in (pair.a, pair.b)}
    if len(sides) < 2 or not all(r.intervals for r in sides.values()):
        return None
    devices = {name: run.observed([r.trial]).busiest_device for name, r in sides.items()}
    if not all(devices.values()):
        return None
    end = max(r.seconds for r in sides.values())
    checkpoint = say(message("event-checkpoint"))
    spans = {name: _checkpoints(r, checkpoint) for name, r in sides.items()}
    panels = _row(say(message("axis-tps")), {name: _throughput(r) for name, r in sides.items()}, spans, end, heads=True)
    for title, of in _DEVICE:
        found = {name: _device_values(r, devices[name], of) for name, r in sides.items()}
        if any(v for points in found.values() for _, v in points):
            panels += _row(say(title), found, spans, end, most=100.0 if title.id == "axis-utilisation" else None)
    keys = [Key(checkpoint, COLOURS[1], shape="span")] if any(spans.values()) else []
    return Figure(panels, 2, keys)


def _name(pair: Pair, g: Group) -> str:
    value = g.varied.get(pair.axis)
    return f"{pair.axis} = {spelled(value)}" if value is not None else g.workload


def _longest(data: RunData, g: Group) -> Recorded:
    return Recorded(data, max(g.trials, key=lambda t: t.summary.elapsed_s if t.summary else 0.0))


def _throughput(r: Recorded) -> Points:
    step = max(1, -(-len(r.intervals) // _MOST))
    found: Points = []
    for i in range(0, len(r.intervals), step):
        part = r.intervals[i : i + step]
        tps = sum(x.committed for x in part) / ((part[-1].end_ns - part[0].start_ns) / 1e9)
        found.append((_second(r, part[-1].end_ns), tps))
    return found


def _device_values(r: Recorded, device: str, of: Callable[[dict[str, Any]], float]) -> Points:
    rows = [row for row in r.rows("devices") if row["device"] == device]
    step = max(1, -(-len(rows) // _MOST))
    parts = [rows[i : i + step] for i in range(0, len(rows), step)]
    return [(_second(r, part[-1]["end_ns"]), sum(map(of, part)) / len(part)) for part in parts]


def _second(r: Recorded, ns: int) -> float:
    return round((ns - r.window[0]) / 1e9, 3)


def _checkpoints(r: Recorded, name: str) -> list[Span]:
    return [
        Span(max(0.0, _second(r, start)), _second(r, end), name, name, COLOURS[1])
        for start, end in checkpoint_spans(r)
        if end > r.window[0]
    ]


def _row(
    title: str,
    sides: dict[str, Points],
    spans: dict[str, list[Span]],
    end: float,
    *,
    heads: bool = False,
    most: float | None = None,
) -> list[Panel]:
    """One figure: a panel for each side, on one scale."""
    every = [v for points in sides.values() for _, v in points]
    bounds = scale(Axis(), every, 0, 1)
    y = Axis(title, domain=(0.0, most or bounds.high), form="si" if heads else "plain")
    x = Axis(domain=(0.0, round(end, 3)), is_time=True)
    return [
        Panel(x, y, _marks(spans[name], points, title), name if heads else "", _WIDTH, _HEIGHT)
        for name, points in sides.items()
    ]


def _marks(spans: Sequence[Span], points: Points, name: str) -> list[Span | Line]:
    return [*spans, Line(points, name, width=1.2)]
