"""What an experiment says along an axis: each value beside the first, everything else equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.compare import FEWEST, Comparison, Verdict, compare, corrected
from pgdyno.figures import COMPARED, higher_is_better
from pgdyno.model import TrialRecord, spelled
from pgdyno.report.cells import Cell, Table, linked
from pgdyno.report.groups import Group
from pgdyno.store.reading import RunData

#: A comparison of p99 needs as many transactions as stand behind it.
_METRICS = ("TPS", "p99")
#: More are not read; `pgdyno compare` and the page's CSV have what was measured.
_MOST = 60


def table(data: RunData, groups: Sequence[Group]) -> Table:
    """Pairs of configurations that differ in one axis only: its first value and each other one."""
    pairs = _pairs(groups)
    m = data.manifest
    interleaved = m.run.order != "written" and not m.batched
    found: list[tuple[Group, Group, str, str, bool, Comparison]] = []
    for a, b, axis in pairs[:_MOST]:
        for metric in _METRICS:
            higher = higher_is_better(metric)
            x, y, paired = _matched(a.trials, b.trials, metric, interleaved=interleaved)
            if x and y:
                c = compare(x, y, paired=paired, higher_is_better=higher)
                found.append((a, b, axis, metric, higher, c))
    final = corrected([f[-1] for f in found], higher_is_better=[f[4] for f in found])
    cells: list[list[str | Cell]] = []
    places = [_parts(b, axis) for _, b, axis, *_ in found]
    # What all have says nothing.
    common = set.intersection(*map(set, places)) if len(places) > 1 else set()
    for (a, b, axis, metric, _, _), c, where in zip(found, final, places, strict=True):
        cells.append(
            [
                " ".join(part for part in where if part not in common) or where[0],
                f"{axis}: {spelled(b.varied[axis])} by {spelled(a.varied[axis])}",
                metric,
                linked(f"{c.ratio:.3f}", [*a.trials, *b.trials]),
                interval(c),
                str(min(c.n_a, c.n_b)),
                c.verdict.value,
                needed(c),
            ]
        )
    more = f" Only the first {_MOST} of {len(pairs)} pairs are shown." if len(pairs) > _MOST else ""
    return Table(
        "comparisons",
        "Compared along an axis",
        ["configuration", "compared", "figure", "ratio", "99% interval", "n", "verdict", "needed"],
        cells,
        "Ratio of geometric means over n repetitions, each with its own interval by Student's t; a verdict is given at "
        "1%, corrected for the number of comparisons (Holm). No difference shown: one of 5% would have been seen. "
        "Needed: repetitions of each that would tell, nine times in ten, with so many comparisons." + more,
        3,
        ["n", "needed"],
    )


def _parts(g: Group, axis: str) -> list[str]:
    """A configuration in words, without what is compared."""
    others = [f"{k}={spelled(v)}" for k, v in g.varied.items() if k != axis]
    return [g.workload, f"c={g.clients}", *([f"{g.hot_set * 100:g}%"] if g.hot_set != 1 else []), *others]


def interval(c: Comparison) -> str:
    """The interval of the ratio, where it says anything."""
    if not c.low > 0.1 or not c.high < 10:
        return "–"
    return f"{c.low:.3f} to {c.high:.3f}"


def needed(c: Comparison) -> str:
    """Repetitions that would tell; a dash where there is a verdict."""
    if c.verdict is not Verdict.UNCLEAR or min(c.n_a, c.n_b) < 2:
        return "–"
    return str(c.needed) if c.needed else "> 500"


def _pairs(groups: Sequence[Group]) -> list[tuple[Group, Group, str]]:
    first: dict[Any, Group] = {}
    pairs = []
    for g in groups:
        for axis in g.varied:
            rest = tuple((k, v) for k, v in g.varied.items() if k != axis)
            key = (axis, g.workload, g.hot_set, g.clients, rest)
            if key in first:
                pairs.append((first[key], g, axis))
            else:
                first[key] = g
    return pairs


def _matched(
    a: list[TrialRecord], b: list[TrialRecord], metric: str, *, interleaved: bool
) -> tuple[list[float], list[float], bool]:
    """Figures of both sides, and whether they are pairs: repetitions of the same number, run one after the other. One
    that the other side does not have is then left out.
    """

    def figures(trials: list[TrialRecord]) -> dict[int, float]:
        return {t.plan.repetition: value(t, metric) for t in trials if t.summary and value(t, metric) > 0}

    x, y = figures(a), figures(b)
    common = sorted(set(x) & set(y))
    if interleaved and len(common) >= min(len(x), len(y), FEWEST):
        return [x[r] for r in common], [y[r] for r in common], bool(common)
    return list(x.values()), list(y.values()), False


def value(t: TrialRecord, metric: str) -> float:
    """A figure of a trial, by its name in figures.COMPARED."""
    assert t.summary is not None
    return float(COMPARED[metric].of(t.summary))
