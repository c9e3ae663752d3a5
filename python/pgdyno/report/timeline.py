"""One trial over time, on one axis: throughput, latency, what clients waited for, disks, processors; events marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgdyno.diagnosis import dips
from pgdyno.diagnosis.causes.checkpoint_full_pages import checkpoint_spans
from pgdyno.diagnosis.recorded import Recorded, Wait, is_outside, runs
from pgdyno.message import Message, listed, message
from pgdyno.model import IntervalRow
from pgdyno.report.charts import COLOURS, Say, base

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
    "checkpoint": COLOURS[1], "autovacuum": COLOURS[2], "lock wait": COLOURS[5], "plan changed": COLOURS[3],
    "server restarted": COLOURS[5], "configuration reloaded": COLOURS[3], "dip": "#9ca3af", "warm-up": "#d1d5db",
    "error": COLOURS[5], "server process died": COLOURS[5], "too many checkpoints": COLOURS[1],
    "connection lost": COLOURS[5], "setting changed": COLOURS[3],
}  # fmt: skip
#: Panels of the devices: their titles, the lines by what they show, the unit, and how figures are written.
_DISKS = (
    (message("axis-disk-bytes"), {"read": "read_bytes_per_s", "write": "write_bytes_per_s"}, 1e6, "~s"),
    (message("axis-disk-iops"), {"read": "reads_per_s", "write": "writes_per_s", "flush": "flushes_per_s"}, 1.0, "~s"),
    (message("axis-await"), {"read": "read_await_ns", "write": "write_await_ns", "flush": "flush_await_ns"}, 1e6, "~g"),
)
Values = list[dict[str, object]]


def chart(r: Recorded, say: Say) -> dict[str, object] | None:
    """Return a chart of the panels that have data, or None if nothing was collected."""
    zero = r.window[0]
    if not r.intervals or not any(r.rows(s) for s in ("waits", "devices", "machine")):
        return None
    end = (r.window[1] - zero) / 1e9
    begin = min(0.0, (_whole(r)[0].start_ns - zero) / 1e9)
    domain = [round(begin, 3), round(end, 3)]
    x: dict[str, Any] = {"field": "s", "type": "quantitative", "title": None, "scale": {"domain": domain}}
    marks = _Marks(_marks(r, zero, say), say(message("axis-events")), _colours(say))
    panels = [
        _lines(_every_interval(r, zero), say(message("axis-tps")), x, marks, "~s", dots=True),
        _lines(_tail(r, zero), say(message("axis-p99")), x, replace(marks, legend=None), "~g"),
    ]
    if heat := _heat(r, zero):
        panels.append(_cells(heat, x, say))
    if clients := waits(r, zero, say):
        titles = say(message("axis-clients")), say(message("axis-waits"))
        panels.append(_areas(clients, *titles, x))
    for title, columns, unit, form in _DISKS:
        if disks := _disks(r, zero, columns, unit):
            panels.append(_lines(disks, say(title), x, None, form, named=True))
    if cpus := _processors(r, zero, say):
        panels.append(_areas(cpus, say(message("axis-cpus")), say(message("axis-cpus")), x))
    whole = base([], 0, 0)
    for name in ("width", "height", "data"):
        whole.pop(name)
    return {**whole, "vconcat": panels, "resolve": {"scale": {"color": "independent"}}}


def _whole(r: Recorded) -> list[IntervalRow]:
    """Return the intervals of the warm-up and of the measurement."""
    every = r.data.series[r.trial.plan.number]
    return [i for i in every if i.phase in ("warmup", "measure") and i.end_ns > i.start_ns]


def _thin(rows: Sequence[Any]) -> Sequence[Any]:
    step = max(1, -(-len(rows) // _MOST))
    return rows[::step]


def _every_interval(r: Recorded, zero: int) -> Values:
    """Throughput of each interval by itself: what a mean over several would hide is what is looked for."""
    whole = _whole(r)
    step = max(1, -(-len(whole) // _MOST_DOTS))
    found: Values = []
    for n in range(0, len(whole), step):
        # Of very many the lowest and the highest of each stretch: a stall is never left out.
        part = sorted(whole[n : n + step], key=_tps)
        for i in part if len(part) < 3 else (part[0], part[-1]):
            found.append({"s": round((i.end_ns - zero) / 1e9, 3), "v": float(f"{_tps(i):.4g}"), "what": "TPS"})
    return found


def _tps(i: IntervalRow) -> float:
    return i.committed / ((i.end_ns - i.start_ns) / 1e9)


def _tail(r: Recorded, zero: int) -> Values:
    whole = _whole(r)
    step = max(1, -(-len(whole) // _MOST))
    found: Values = []
    for i in range(0, len(whole), step):
        part = whole[i : i + step]
        # Of latency the highest: percentiles are never averaged.
        value = max(x.p99_ns for x in part) / 1e6
        found.append({"s": round((part[-1].end_ns - zero) / 1e9, 3), "v": float(f"{value:.4g}"), "what": "p99"})
    return found


def _heat(r: Recorded, zero: int) -> Values:
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
    return [
        {
            "s": round(column * seconds, 3), "until": round((column + 1) * seconds, 3),
            "low": float(f"{10 ** (row / _PER_DECADE) / 1e6:.4g}"),
            "high": float(f"{10 ** ((row + 1) / _PER_DECADE) / 1e6:.4g}"), "n": n,
        }
        for (column, row), n in sorted(counts.items())
    ]  # fmt: skip


def _cells(values: Values, x: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return a heat map panel."""
    y = {
        "field": "low", "type": "quantitative", "title": say(message("axis-latency")),
        "scale": {"type": "log", "nice": False}, "axis": {"format": "~g", "tickCount": 5},
    }  # fmt: skip
    colour = {"field": "n", "type": "quantitative", "title": say(message("axis-transactions")),
              "scale": {"type": "log", "scheme": "blues"}, "legend": {"format": "~s", "tickCount": 4}}  # fmt: skip
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": values},
        "mark": {"type": "rect", "clip": True},
        "encoding": {
            "x": x,
            "x2": {"field": "until"},
            "y": y,
            "y2": {"field": "high"},
            "color": colour,
            "tooltip": [{"field": f} for f in ("s", "low", "high", "n")],
        },
    }


def waits(r: Recorded, zero: int, say: Say) -> Values:
    """Our clients: running, outside of the server, and the longest waits."""
    totals: dict[str, float] = {}
    samples: dict[int, dict[str, float]] = {}
    for sample in r.client_time:
        at = samples.setdefault(sample.end_ns, {})
        for what, clients in sample.counts.items():
            name = _wait(what, say, idle_on_purpose=r.is_idle_on_purpose)
            totals[name] = totals.get(name, 0.0) + clients
            at[name] = at.get(name, 0.0) + clients
    most = sorted(totals, key=lambda n: -totals[n])[:_WAITS]
    found: Values = []
    for end in _thin(sorted(samples)):
        rest = sum(v for n, v in samples[end].items() if n not in most)
        for name in most:
            found.append(_value(end, zero, samples[end].get(name, 0.0), name))
        if len(totals) > len(most):
            found.append(_value(end, zero, rest, say(message("wait-others"))))
    return found


def _wait(what: Wait, say: Say, *, idle_on_purpose: bool) -> str:
    state, kind, wait = what
    if state == "idle" and idle_on_purpose:
        return say(message("wait-idle"))
    if is_outside(what):
        return say(message("wait-outside"))
    if kind:
        return f"{kind}: {wait}"
    return say(message("wait-running")) if runs(what) else say(message("not-known"))


def _value(end_ns: int, zero: int, value: float, what: str) -> dict[str, object]:
    return {"s": round((end_ns - zero) / 1e9, 3), "v": float(f"{value:.4g}"), "what": what}


def _disks(r: Recorded, zero: int, columns: dict[str, str], unit: float) -> Values:
    """Return the values of each device over time.

    A kind of request that a device never had gets no line.
    """
    found: Values = []
    rows = r.rows("devices")
    names = list(dict.fromkeys(row["device"] for row in rows))
    for name in names:
        for row in _thin([x for x in rows if x["device"] == name]):
            for what, column in columns.items():
                found.append(_value(row["end_ns"], zero, (row.get(column) or 0.0) / unit, f"{name} {what}"))
    busy = {v["what"] for v in found if v["v"]}
    return [v for v in found if v["what"] in busy]


def _processors(r: Recorded, zero: int, say: Say) -> Values:
    found: Values = []
    for row in _thin(r.rows("machine")):
        system = row["cpu_system"] + row["cpu_irq"] + row["cpu_softirq"]
        parts = (
            (message("cpu-user"), row["cpu_user"] + row["cpu_nice"]),
            (message("cpu-system"), system),
            (message("cpu-iowait"), row["cpu_iowait"]),
            (message("cpu-steal"), row["cpu_steal"]),
        )
        for what, value in parts:
            found.append(_value(row["end_ns"], zero, value, say(what)))
    return found


@dataclass(frozen=True)
class _Marks:
    """Spans and moments in a panel, the title of their legend (None: no legend), and a colour for each kind."""

    values: Values
    legend: str | None
    colours: dict[str, str]


def _colours(say: Say) -> dict[str, str]:
    return {say(_event(kind)): colour for kind, colour in _MARKED.items()}


def _event(kind: str) -> Message:
    return message(f"event-{kind.replace(' ', '-')}")


def _marks(r: Recorded, zero: int, say: Say) -> Values:
    """Spans and moments of what happened."""
    found: Values = []
    if _whole(r)[0].start_ns < zero:
        begin = round((_whole(r)[0].start_ns - zero) / 1e9, 3)
        event, words = say(_event("warm-up")), say(message("event-not-counted"))
        found.append({"s": begin, "until": 0.0, "event": event, "words": words})
    checkpoint = say(_event("checkpoint"))
    for start, end in checkpoint_spans(r):
        found.append(_span(start, end, zero, checkpoint, checkpoint))
    for d in dips.dips_of(r):
        why = listed(dips.explained(r, d) or [message("dip-unexplained")])
        found.append(_span(d.start_ns, d.end_ns, zero, say(_event("dip")), say(why)))
    for e in r.events:
        if e.kind in _MARKED and e.kind != "checkpoint" and e.at_ns:
            found.append(_span(e.at_ns, e.at_ns + _MOMENT_NS, zero, say(_event(e.kind)), say(e.text)[:120]))
    return found[:_MOST]


def _span(start_ns: int, end_ns: int, zero: int, kind: str, text: str) -> dict[str, object]:
    start = max(0.0, (start_ns - zero) / 1e9)
    return {"s": round(start, 3), "until": round(max(start, (end_ns - zero) / 1e9), 3), "event": kind, "words": text}


def _lines(
    values: Values,
    title: str,
    x: dict[str, Any],
    marks: _Marks | None,
    form: str,
    *,
    dots: bool = False,
    named: bool = False,
) -> dict[str, Any]:
    """Return a panel of lines over time.

    With `dots`, each value is a dot, and a line joins the dots only if they are few. With `named`, a single line also
    has its name beside it.
    """
    names = list(dict.fromkeys(str(v["what"]) for v in values))
    colour: dict[str, object] = {"value": COLOURS[0]}
    if len(names) > 1 or named:
        colour = {"field": "what", "type": "nominal", "title": None, "sort": names}
    y = {"field": "v", "type": "quantitative", "title": title, "axis": {"format": form, "tickCount": 4}}
    layers: list[dict[str, object]] = []
    if marks is not None and marks.values:
        kinds = [k for k in marks.colours if any(m["event"] == k for m in marks.values)]
        scale = {"domain": kinds, "range": [marks.colours[k] for k in kinds]}
        legend = {} if marks.legend else {"legend": None}
        fill = {"field": "event", "type": "nominal", "title": marks.legend, "scale": scale, **legend}
        tip = [{"field": "event"}, {"field": "words"}, {"field": "s"}]
        layers.append(
            {
                "data": {"values": marks.values},
                "mark": {"type": "rect", "opacity": 0.25},
                "encoding": {"x": x, "x2": {"field": "until"}, "color": fill, "tooltip": tip},
            }
        )
    tip_ = [{"field": f} for f in ("what", "s", "v")]
    layers.append(
        {
            "data": {"values": values},
            "mark": _dots(len(values)) if dots else {"type": "line", "strokeWidth": 1.3, "clip": True},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tip_},
        }
    )
    return {"width": _WIDTH, "height": _HEIGHT, "layer": layers, "resolve": {"scale": {"color": "independent"}}}


def _dots(n: int) -> dict[str, object]:
    if n < _FEW_DOTS:
        return {"type": "line", "strokeWidth": 1.3, "clip": True, "point": {"size": 12}}
    return {"type": "point", "filled": True, "size": 8, "opacity": 0.7, "clip": True}


def _areas(values: Values, title: str, legend: str, x: dict[str, Any]) -> dict[str, Any]:
    names = list(dict.fromkeys(str(v["what"]) for v in values))
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": values},
        "mark": {"type": "area", "clip": True},
        "encoding": {
            "x": x,
            "y": {"field": "v", "type": "quantitative", "title": title, "stack": "zero",
                  "axis": {"tickCount": 4}},
            "color": {"field": "what", "type": "nominal", "title": legend, "sort": names,
                      "scale": {"domain": names, "range": [*COLOURS, "#9ca3af"][: len(names)]}},
            "tooltip": [{"field": f} for f in ("what", "s", "v")],
        },
    }  # fmt: skip
