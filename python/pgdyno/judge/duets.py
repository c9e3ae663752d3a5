"""Results of duets, from the pairs of their slices and from the trials' own intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pgdyno.analysis import duet
from pgdyno.analysis.compare import MARGIN
from pgdyno.analysis.duet import Difference
from pgdyno.analysis.levels import level_change
from pgdyno.analysis.spread import student_975
from pgdyno.figures import COMPARED, TPS, Figure
from pgdyno.judge.compared import ENOUGH, LEAST_S, Pair, Row
from pgdyno.model import IntervalRow, TrialRecord
from pgdyno.store.reading import RunData

#: Figures that slices, or the trials' own intervals, say something of.
FIGURES = (COMPARED["TPS"], COMPARED["p99"])
#: Transactions of a client that a slice must hold for its count to say how long they take.
_LEAST_IN_A_SLICE = 12


def compared(data: RunData, pairs: Sequence[Pair], *, level: float, margin: float = MARGIN) -> list[Row]:
    """Return one row for each figure of each pair that duets can judge."""
    # Under load at once one side's gain is the other's loss: what the trials say of their p99 is not independent.
    figures = FIGURES[:1] if data.manifest.run.order == "simultaneous" else FIGURES
    return [row for pair in pairs for f in figures if (row := _row(data, pair, f, level, margin)) is not None]


def _row(data: RunData, pair: Pair, figure: Figure, level: float, margin: float) -> Row | None:
    several = len({t.plan.start for t in pair.a.trials}) > 1
    other = {t.plan.repetition: t for t in pair.b.trials}
    units: dict[int, list[Difference]] = {}
    slices = 0
    logs_a, logs_b = [], []
    for a in pair.a.trials:
        b = other.get(a.plan.repetition)
        value_a, value_b = _value(a, figure), _value(b, figure) if b is not None else None
        if b is None or value_a is None or value_b is None:
            continue
        differences = _slice_rows(data, a, b)
        if _is_uneven(differences):
            continue
        found = duet.pair_ratio(differences) if figure is TPS else _trial_rows(a, b, figure, value_a, value_b)
        if found is None:
            continue
        slices += len(differences)
        logs_a.append(math.log(value_a))
        logs_b.append(math.log(value_b))
        units.setdefault(a.plan.start if several else a.plan.repetition, []).append(found)
    if not units:
        return None
    means = [math.exp(math.fsum(logs) / len(logs)) for logs in (logs_a, logs_b)]
    better = bool(figure.higher_is_better)
    c = duet.compared(
        list(units.values()), slices, means[0], means[1], higher_is_better=better, level=level, margin=margin
    )
    if figure is not TPS:
        # A percentile is known of whole trials: its n counts their pairs.
        c = replace(c, n_a=len(logs_a), n_b=len(logs_b))
    turns = 1 if data.manifest.run.order == "simultaneous" else 2
    seconds = max(LEAST_S, turns * c.more * _turn_s(data, pair.a.trials[0])) if c.more else None
    if c.more and several and len(units) < ENOUGH:
        # How far starts lie apart is hardly known: more of them come first.
        a_start = data.manifest.run.seconds_of_a_trial * (len(pair.a.trials) + len(pair.b.trials)) / len(units)
        seconds = max(seconds or 0.0, a_start * (ENOUGH - len(units)))
    together, running = data.manifest.run.order == "simultaneous", not data.manifest.managed
    return Row(pair, figure, c, seconds, from_slices=True, together=together, running=running)


def uneven(data: RunData, pairs: Sequence[Pair]) -> frozenset[int]:
    """Return the numbers of the trials of which one side changed against the other: these have no one ratio."""
    found: set[int] = set()
    for pair in pairs:
        other = {t.plan.repetition: t for t in pair.b.trials}
        for a in pair.a.trials:
            b = other.get(a.plan.repetition)
            if b is not None and _is_uneven(_slice_rows(data, a, b)):
                found |= {a.plan.number, b.plan.number}
    return frozenset(found)


def _is_uneven(differences: Sequence[float]) -> bool:
    return level_change([math.exp(d) for d in differences]) is not None


def _value(t: TrialRecord, figure: Figure) -> float | None:
    """Return a figure of a trial. Levels of throughput that both sides have cancel out, slice by slice."""
    if figure is TPS and t.summary is not None:
        return t.summary.tps or None
    return figure.trial_value(t)


def _measured(data: RunData, t: TrialRecord) -> dict[int, IntervalRow]:
    """Return the slices of a trial by the number of their pair.

    Turns are counted from the start of the run. Two turns make a pair, unless both sides have load in each turn.
    """
    a_pair = 2 if data.manifest.run.order == "simultaneous" else 4
    return {r.index // a_pair: r for r in data.series[t.plan.number] if r.phase == "measure" and r.end_ns > r.start_ns}


def _slice_rows(data: RunData, a: TrialRecord, b: TrialRecord) -> list[float]:
    """Differences of the logarithms of throughput, of each pair of slices that is whole."""
    x, y = _measured(data, a), _measured(data, b)
    for rows in (x, y):
        spans = [(r.end_ns - r.start_ns, r.mean_ns) for r in rows.values() if r.committed]
        if not spans or sum(mean for _, mean in spans) * _LEAST_IN_A_SLICE > sum(length for length, _ in spans):
            # Slices that hold a few transactions of a client count whole ones, whatever these take.
            return []

    def log_tps(r: IntervalRow) -> float:
        # A slice in which nothing was committed is a very slow one.
        return math.log(max(r.committed, 0.5) / (r.end_ns - r.start_ns))

    return [log_tps(y[n]) - log_tps(x[n]) for n in sorted(set(x) & set(y))]


def _trial_rows(a: TrialRecord, b: TrialRecord, figure: Figure, value_a: float, value_b: float) -> Difference | None:
    """Return the difference that follows from the figure's own interval within each trial.

    Return None if a trial has no such interval.
    """
    errors = []
    for t, value in ((a, value_a), (b, value_b)):
        half = t.summary.latency.half_widths.get(figure.column) if t.summary else None
        if half is None:
            return None
        errors.append(half / student_975(30) / value)
    return duet.figure_ratio(value_a, value_b, *errors)


def _turn_s(data: RunData, t: TrialRecord) -> float:
    """Seconds from a turn to the next."""
    starts = [r.start_ns for r in data.series[t.plan.number] if r.phase == "measure"]
    turns = [r.index // 2 for r in data.series[t.plan.number] if r.phase == "measure"]
    return (starts[-1] - starts[0]) / 1e9 / max(1, turns[-1] - turns[0]) if starts else 0.0
