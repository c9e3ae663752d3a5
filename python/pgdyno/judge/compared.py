"""Configurations side by side: a row for each figure of each pair, by one model for each figure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pgdyno.analysis.compare import MARGIN, Comparison, Figures, compare, level_for
from pgdyno.errors import UsageError, msg
from pgdyno.figures import COMPARED, Figure
from pgdyno.judge.groups import Group
from pgdyno.model import TrialRecord


@dataclass(frozen=True)
class Pair:
    """Two configurations to be compared: B beside A."""

    a: Group
    b: Group
    #: What both are, and what differs.
    label: str
    difference: str = ""
    #: Of a comparison along an axis: its name, and its values in A and B.
    axis: str = ""


@dataclass(frozen=True)
class Row:
    """A figure of a pair."""

    pair: Pair
    figure: Figure
    comparison: Comparison
    #: Of measuring, that would tell; None: there is a verdict, or it cannot be said.
    seconds: float | None = None
    #: It stands on pairs of slices of a duet.
    from_slices: bool = False
    #: Both sides were under load at once; and the servers ran already.
    together: bool = False
    running: bool = False


#: Units that say how far units lie apart.
ENOUGH = 5
#: Seconds: to ask for less would be more exact than it can be.
LEAST_S = 10.0


def named(figures: Sequence[str]) -> list[Figure]:
    """Figures by their names. Raises UsageError for one that is none."""
    for name in figures:
        if name not in COMPARED:
            raise UsageError(
                msg("error-there-no-figure", name=name), msg("remedy-choices", choices=", ".join(COMPARED))
            )
    return [COMPARED[name] for name in figures]


def starts(trials: Sequence[TrialRecord]) -> int:
    """Return the number of server starts on which the trials ran."""
    return len({t.plan.start for t in trials})


def figures_of(trials: Sequence[TrialRecord], figure: Figure, *, per_start: bool) -> dict[int, float]:
    """Return the value of a figure by unit.

    With `per_start` a unit is a start of the server (or a run), otherwise a repetition. Several values of a unit are
    combined into their geometric mean.
    """
    found: dict[int, list[float]] = {}
    for t in trials:
        value = figure.trial_value(t)
        if value is not None:
            found.setdefault(t.plan.start if per_start else t.plan.repetition, []).append(math.log(value))
    return {unit: math.exp(statistics.fmean(logs)) for unit, logs in found.items()}


def compared(
    pairs: Sequence[Pair],
    figures: Sequence[Figure],
    *,
    blocked: bool,
    seconds: float,
    margin: float = MARGIN,
    per_start: bool = False,
    also: Sequence[Group] = (),
    shared: float = 0.0,
    level: float | None = None,
) -> list[Row]:
    """Compare the figures of pairs; return rows by pair, then by figure.

    A figure that one side does not have has no row. `seconds` is the duration of a trial. `also` holds other groups,
    which only show the spread between units. `shared` has the same meaning as for analysis.compare. `level` is that of
    each interval; None: 95% for all rows together.

    With `per_start` the units are starts of the server. The common part of repetitions says nothing about the next
    start.
    """
    found = _with_figures(pairs, figures)
    level = level_for(sum(len(of) for of in found.values())) if level is None else level
    rows: dict[tuple[int, str], Row] = {}
    for figure in figures:
        of = found[figure.name]
        known: dict[Hashable, Figures] = {}
        names: list[tuple[Hashable, Hashable]] = []
        for n in of:
            pair = pairs[n]
            # By identity: two runs have configurations of the same name.
            for g in (pair.a, pair.b):
                known[id(g)] = figures_of(g.trials, figure, per_start=per_start)
            names.append((id(pair.a), id(pair.b)))
        others: dict[Hashable, list[Figures]] = {
            id(p.a): [figures_of(g.trials, figure, per_start=per_start) for g in also if g.key == p.a.key]
            for p in pairs
        }
        better = bool(figure.higher_is_better)
        comparisons = compare(
            known, names, blocked=blocked, higher_is_better=better, level=level, margin=margin, also=others,
            shared=shared,
        )  # fmt: skip
        for n, c in zip(of, comparisons, strict=True):
            rows[n, figure.name] = Row(pairs[n], figure, c, _seconds(pairs[n], known[id(pairs[n].a)], c, seconds))
    return [rows[n, f.name] for n in range(len(pairs)) for f in figures if (n, f.name) in rows]


def _with_figures(pairs: Sequence[Pair], figures: Sequence[Figure]) -> dict[str, list[int]]:
    """Return, by figure, the numbers of the pairs that are worth a comparison.

    Both sides of such a pair have the figure. On at least one side the figure is large enough to matter.
    """

    def mean(g: Group, figure: Figure) -> float:
        known = [v for t in g.trials if (v := figure.trial_value(t)) is not None]
        return statistics.fmean(known) if known else 0.0

    def worth(p: Pair, figure: Figure) -> bool:
        a, b = mean(p.a, figure), mean(p.b, figure)
        # A mean of those that are not nothing would be too high.
        nothing = figure.is_cost and any(figure.trial_value(t) is None for t in [*p.a.trials, *p.b.trials])
        return min(a, b) > 0 and max(a, b) >= figure.least and not nothing

    return {f.name: [n for n, p in enumerate(pairs) if worth(p, f)] for f in figures}


def _seconds(pair: Pair, units: Figures, c: Comparison, seconds: float) -> float | None:
    if not c.more:
        return None
    trials = len(pair.a.trials) / max(1, len(units))
    return max(LEAST_S, 2 * units_more(c) * trials * seconds)


def units_more(c: Comparison) -> int:
    """Return the number of further units of each side that are worth measuring.

    The spread of fewer than ENOUGH units is hardly known. A number derived from that spread would be noise.
    """
    n = min(c.n_a, c.n_b)
    return ENOUGH - n if n < ENOUGH else c.more or 0
