"""Trials in which the machine was not the same as in the others, by the canaries beside them."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from pgdyno.analysis.spread import MAD
from pgdyno.store.reading import RunData

#: Figures, and the factor from which on they are another machine's: a CPU's speed hardly varies, a disk's does.
FIGURES = {"cpu_ns": 1.10, "sync_ns": 2.0, "loopback_ns": 2.0}
#: Robust deviations of the trials that are usual.
_SIGMAS = 5.0
#: Trials of which the usual spread is known.
_FEWEST = 4
#: Trials whose canaries are read, about.
_MOST = 400


@dataclass(frozen=True)
class HostChange:
    """Figure of the canaries that differs in some trials. `ratio` is the largest one to the median of the trials."""

    figure: str
    trials: list[int]
    ratio: float


def host_changes(data: RunData) -> list[HostChange]:
    """Return what changed of the machine between the trials of a run, or within one; empty if nothing did."""
    found = []
    for figure, factor in FIGURES.items():
        values = _values(data, figure)
        if len(values) < 2:
            continue
        middle = statistics.median(math.log(v) for _, v in values)
        off = [abs(math.log(v) - middle) for _, v in values]
        spread = MAD * statistics.median(off) if len(values) >= _FEWEST else 0.0
        limit = max(math.log(factor), _SIGMAS * spread)
        changed = [(n, math.log(v) - middle) for (n, v), o in zip(values, off, strict=True) if o > limit]
        if changed:
            largest = max(changed, key=lambda x: abs(x[1]))[1]
            found.append(HostChange(figure, sorted({n for n, _ in changed}), math.exp(largest)))
    return found


def _values(data: RunData, figure: str) -> list[tuple[int, float]]:
    """Return the figures of all moments with their trials."""
    found = []
    # Of very many trials some tell enough: each has a file of its own.
    for t in data.trials[:: max(1, len(data.trials) // _MOST)]:
        rows = data.samples[t.plan.number, "canary"]
        found += [(t.plan.number, float(row[figure])) for row in rows if float(row[figure]) > 0]
    return found
