"""Two configurations beside each other, over time and on equal scales: throughput, and what the busiest device did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pgdyno.diagnosis.causes.checkpoint_full_pages import checkpoint_spans
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.judge.compared import Pair
from pgdyno.judge.groups import Group
from pgdyno.message import message
from pgdyno.model import spelled
from pgdyno.report.charts import COLOURS, Say, base
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
Values = list[dict[str, object]]


def chart(run: RunAnalysis, pair: Pair, say: Say) -> dict[str, object] | None:
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
    checkpoints = [c for name, r in sides.items() for c in _checkpoints(name, r)]
    throughput = [v for name, r in sides.items() for v in _throughput(name, r)]
    panels = [_panel(list(sides), say(message("axis-tps")), throughput, checkpoints, end, heads=True)]
    for title, of in _DEVICE:
        found = [v for name, r in sides.items() for v in _device_values(name, r, devices[name], of)]
        if any(v["v"] for v in found):
            most = 100 if title.id == "axis-utilisation" else None
            panels.append(_panel(list(sides), say(title), found, checkpoints, end, most=most))
    whole = base([], 0, 0)
    for unused in ("width", "height", "data"):
        whole.pop(unused)
    return {**whole, "vconcat": panels}


def _name(pair: Pair, g: Group) -> str:
    value = g.varied.get(pair.axis)
    return f"{pair.axis} = {spelled(value)}" if value is not None else g.workload


def _longest(data: RunData, g: Group) -> Recorded:
    return Recorded(data, max(g.trials, key=lambda t: t.summary.elapsed_s if t.summary else 0.0))


def _throughput(name: str, r: Recorded) -> Values:
    step = max(1, -(-len(r.intervals) // _MOST))
    found: Values = []
    for i in range(0, len(r.intervals), step):
        part = r.intervals[i : i + step]
        tps = sum(x.committed for x in part) / ((part[-1].end_ns - part[0].start_ns) / 1e9)
        found.append(_value(name, r, part[-1].end_ns, tps))
    return found


def _device_values(name: str, r: Recorded, device: str, of: Callable[[dict[str, Any]], float]) -> Values:
    rows = [row for row in r.rows("devices") if row["device"] == device]
    step = max(1, -(-len(rows) // _MOST))
    parts = [rows[i : i + step] for i in range(0, len(rows), step)]
    return [_value(name, r, part[-1]["end_ns"], sum(map(of, part)) / len(part)) for part in parts]


def _value(side: str, r: Recorded, end_ns: int, value: float) -> dict[str, object]:
    return {"side": side, "s": round((end_ns - r.window[0]) / 1e9, 3), "v": float(f"{value:.4g}")}


def _checkpoints(name: str, r: Recorded) -> Values:
    zero = r.window[0]
    return [
        {"side": name, "from": round(max(0.0, (start - zero) / 1e9), 3), "until": round((end - zero) / 1e9, 3)}
        for start, end in checkpoint_spans(r)
        if end > zero
    ]


def _panel(
    sides: list[str],
    title: str,
    values: Values,
    marks: Values,
    end: float,
    *,
    heads: bool = False,
    most: float | None = None,
) -> dict[str, object]:
    """One figure: a column for each side, on one scale."""
    scale = {"domain": [0, round(end, 3)]}
    x = {"field": "s", "type": "quantitative", "title": None, "scale": scale, "axis": {"tickCount": 5}}
    axis = {"format": "~s" if heads else "~g", "tickCount": 4}
    y: dict[str, object] = {"field": "v", "type": "quantitative", "title": title, "axis": axis}
    if most is not None:
        y["scale"] = {"domain": [0, most]}
    column = {"field": "side", "type": "nominal", "sort": sides, "title": None}
    layers: list[dict[str, object]] = [
        {
            "transform": [{"filter": "isValid(datum.until)"}],
            "mark": {"type": "rect", "opacity": 0.25, "color": COLOURS[1], "clip": True},
            "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "until"}},
        },
        {
            "transform": [{"filter": "isValid(datum.v)"}],
            "mark": {"type": "line", "strokeWidth": 1.2, "clip": True, "color": COLOURS[0]},
            "encoding": {"x": x, "y": y, "tooltip": [{"field": f} for f in ("side", "s", "v")]},
        },
    ]
    return {
        "data": {"values": [*values, *marks]},
        "facet": {"column": {**column, "header": {} if heads else {"labels": False}}},
        "spec": {"width": _WIDTH, "height": _HEIGHT, "layer": layers},
    }
