"""Runs that lie far from others of the same experiment in the same environment, and what is known of the reason."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.figures import TPS
from pgdyno.judge.groups import groups_of
from pgdyno.message import Argument, Message, Name, Text, listed
from pgdyno.model import Caveat, Key
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

#: Fewer runs have no middle that a single one could be far from.
_FEWEST = 5
#: From the median, in standard deviations by the median absolute deviation (times 1.4826, as of a normal
#: distribution), and as a factor: what is nearer is noise.
_DEVIATIONS, _FACTOR = 6.0, 1.1
#: Of a spread that is hardly there: runs are never that much alike.
_LEAST = 0.01
#: What makes a run another one than it was meant to be.
_DISTURBED = (
    Caveat.BESIDE_ANOTHER, Caveat.OUTAGE, Caveat.FAILURES, Caveat.TRIAL_FAILED, Caveat.NO_ONE_LEVEL,
    Caveat.CLIENT_BOUND, Caveat.UNPREPARED, Caveat.NO_WORK,
)  # fmt: skip


@dataclass(frozen=True)
class Loud:
    """A run, and where it lies."""

    run: RunData
    tps: float
    #: Of all runs, and how many there are.
    median: float
    of: int
    #: What happened in it and in none of the others; None: nothing that is recorded.
    reason: Text | None
    #: It is one of the runs that were to be compared, and stays one.
    is_compared: bool = False

    @property
    def message(self) -> Message:
        """Warning of a comparison."""
        tps, median = Quantity(self.tps, "count"), Quantity(self.median, "count")
        args: dict[str, Argument] = {"run": Name(self.run.path), "n": self.of - 1, "tps": tps, "median": median}
        if self.reason is None:
            return Message("apart-unknown", args)
        return Message("apart-compared" if self.is_compared else "apart-other", {**args, "reason": self.reason})


def loud(runs: Sequence[RunData]) -> list[Loud]:
    """Return the runs whose throughput is far from the others', in the configuration where that is clearest."""
    if len(runs) < _FEWEST:
        return []
    by_key: dict[Key, list[tuple[float, RunData]]] = {}
    for data in runs:
        for g in groups_of(data):
            own = [math.log(v) for t in g.trials if (v := TPS.of(t.summary) if t.summary else 0.0) > 0]
            if own:
                by_key.setdefault(g.key, []).append((statistics.fmean(own), data))
    furthest: dict[str, tuple[float, Loud]] = {}
    for values in by_key.values():
        if len(values) < _FEWEST:
            continue
        median = statistics.median(x for x, _ in values)
        spread = max(_LEAST, 1.4826 * statistics.median(abs(x - median) for x, _ in values))
        for x, data in values:
            far = abs(x - median)
            if far > _DEVIATIONS * spread and far > math.log(_FACTOR):
                found = Loud(data, math.exp(x), math.exp(median), len(values), _reason(data, runs))
                if far > furthest.get(data.path, (0.0, found))[0]:
                    furthest[data.path] = (far, found)
    return [found for _, found in furthest.values()]


def _reason(data: RunData, runs: Sequence[RunData]) -> Text | None:
    def caveats(of: RunData) -> set[Caveat]:
        return {c for t in of.trials for c in t.caveats}

    usual = set().union(*(caveats(other) for other in runs if other is not data))
    found = [c.message for c in _DISTURBED if c in caveats(data) - usual]
    return listed(found, "semicolon") if found else None
