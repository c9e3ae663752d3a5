"""Comparisons along an axis of a run: each value with the first, everything else equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.analysis.compare import MARGIN, level_for
from pgdyno.figures import COMPARED, COSTS
from pgdyno.judge import duets
from pgdyno.judge.compared import Pair, Row, compared, starts
from pgdyno.judge.groups import Group
from pgdyno.model import spelled
from pgdyno.store.reading import RunData

#: A comparison of p99 needs as many transactions as stand behind it.
FIGURES = (COMPARED["TPS"], COMPARED["p99"], *COSTS)
#: More are not read; the page's CSV has what was measured.
_MOST = 60


@dataclass(frozen=True)
class AxisComparisons:
    """Rows, and how many pairs there were beyond those that have one."""

    rows: list[Row] = field(default_factory=list)
    left_out: int = 0
    #: Of duets: both sides were under load at once.
    together: bool = False
    #: The servers ran already: they are not started anew.
    running: bool = False
    #: Of duets: numbers of trials that changed against their partner, and are in no verdict.
    uneven: frozenset[int] = frozenset()
    #: Pairs that were looked at; one without a common figure has no row.
    pairs: list[Pair] = field(default_factory=list)


def along_axes(data: RunData, groups: Sequence[Group], margin: float = MARGIN) -> AxisComparisons:
    """Compare pairs of configurations that differ in one axis only: its first value and each other one."""
    every = _pairs(groups)
    pairs, left_out = every[:_MOST], max(0, len(every) - _MOST)
    m = data.manifest
    per_start = starts([t for g in groups for t in g.trials]) > 1
    seconds = m.run.seconds_of_a_trial
    if not m.run.is_duet:
        blocked = m.run.order != "written" and not m.batched
        rows = compared(pairs, FIGURES, blocked=blocked, seconds=seconds, margin=margin, per_start=per_start)
        return AxisComparisons(rows, left_out, pairs=pairs)
    from_slices = duets.compared(data, pairs, level=level_for(len(pairs) * len(FIGURES)), margin=margin)
    known = {(id(r.pair), r.figure.name) for r in from_slices}
    rest = compared(pairs, FIGURES, blocked=True, seconds=seconds, margin=margin, per_start=per_start)
    rows = [*from_slices, *(r for r in rest if (id(r.pair), r.figure.name) not in known)]
    order = {id(p): n for n, p in enumerate(pairs)}
    rows.sort(key=lambda r: (order[id(r.pair)], FIGURES.index(r.figure)))
    together, running = m.run.order == "simultaneous", not m.managed
    return AxisComparisons(rows, left_out, together, running, duets.uneven(data, pairs), pairs)


def _pairs(groups: Sequence[Group]) -> list[Pair]:
    first: dict[Any, Group] = {}
    pairs = []
    for g in groups:
        for axis in g.varied:
            rest = tuple((k, v) for k, v in g.varied.items() if k != axis)
            key = (axis, g.workload, g.hot_set, g.clients, rest)
            if key in first:
                a = first[key]
                difference = f"{axis}: {spelled(g.varied[axis])} vs {spelled(a.varied[axis])}"
                pairs.append(Pair(a, g, "", difference, axis))
            else:
                first[key] = g
    labels = [_parts(p.b, p.axis) for p in pairs]
    # What all have says nothing.
    common = set.intersection(*map(set, labels)) if len(labels) > 1 else set()
    return [
        Pair(p.a, p.b, " ".join(part for part in where if part not in common) or where[0], p.difference, p.axis)
        for p, where in zip(pairs, labels, strict=True)
    ]


def _parts(g: Group, axis: str) -> list[str]:
    """Return the parts of a configuration in words, without the compared axis."""
    others = [f"{k}={spelled(v)}" for k, v in g.varied.items() if k != axis]
    return [g.workload, f"c={g.clients}", *([f"{g.hot_set * 100:g}%"] if g.hot_set != 1 else []), *others]
