"""Trials whose throughput had more than one level, and which of them stand against the result of the run."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.judge.compared import Row
from pgdyno.judge.groups import Group
from pgdyno.store.reading import RunData

#: Part of a configuration's trials that a verdict can do without.
_FEW = 0.25


def spoiling(data: RunData, groups: Sequence[Group], rows: Sequence[Row], uneven: frozenset[int]) -> frozenset[int]:
    """Return the numbers of the trials whose changes of level stand against the result.

    `rows` are the comparisons of the run, and `uneven` holds the trials of a duet that changed against their partner. A
    verdict leaves out the trials that have no one level, or of a duet those that are uneven; levels that both sides of
    a duet have cancel out. They stand against the result if they are more than a quarter of a configuration's trials.
    Where nothing is compared, each of them does.
    """
    mixed = frozenset(t.plan.number for g in groups for t in g.mixed)
    if data.manifest.capacity is not None or not (rows or data.manifest.run.is_duet):
        return mixed
    left_out = uneven if data.manifest.run.is_duet else mixed
    found: set[int] = set()
    for g in groups:
        own = {t.plan.number for t in g.trials} & left_out
        if len(own) > _FEW * len(g.trials):
            found |= own
    return frozenset(found)
