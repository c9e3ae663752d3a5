"""All findings of a run, in the order of what matters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgdyno.diagnosis.causes import every_cause
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Finding, Kind
from pgdyno.judge.groups import Group, groups_of
from pgdyno.store.reading import RunData

_WORTH = {Confidence.HIGH: 1.0, Confidence.MEDIUM: 0.6, Confidence.LOW: 0.25}
#: A trouble of this size is said before what every server comes to in the end.
_TROUBLE = 0.05


def of_run(data: RunData, groups: Sequence[Group] | None = None) -> list[Finding]:
    """The findings of each configuration, in the order of its configurations."""
    found = []
    for g in groups_of(data) if groups is None else groups:
        found += of_configuration(data, g)
    return found


def of_configuration(data: RunData, group: Group) -> list[Finding]:
    """The findings of one configuration: troubles of some size first, then limits, each by what it costs."""
    evidence = Evidence(data, group.trials)
    found = [f for cause in every_cause() if (f := _judged(cause, evidence)) is not None]
    return sorted(found, key=_rank)


def _judged(cause: Cause, evidence: Evidence) -> Finding | None:
    """A finding, if any. A column that a server did not have, or a file that is damaged, is no reason to have no report
    at all: the cause cannot be seen then.
    """
    try:
        return cause.judge(evidence)
    except (KeyError, TypeError, ValueError, ArithmeticError, IndexError):
        return None


def _rank(f: Finding) -> tuple[int, float]:
    size = f.cost.mean if math.isfinite(f.cost.mean) else 0.0
    first = f.kind is Kind.TROUBLE and size >= _TROUBLE and f.confidence is not Confidence.LOW
    return (0 if first else 1, -size * _WORTH[f.confidence])
