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
    found = [f for cause in every_cause() if isinstance(f := _judged(cause, evidence), Finding)]
    return sorted(found, key=_rank)


def not_judged(data: RunData, groups: Sequence[Group]) -> dict[str, str]:
    """The causes that could not be looked for in some configuration, and why."""
    found: dict[str, str] = {}
    for g in groups:
        evidence = Evidence(data, g.trials)
        judged = {cause.name: _judged(cause, evidence) for cause in every_cause()}
        found |= {name: why for name, why in judged.items() if isinstance(why, str)}
    return found


def _judged(cause: Cause, evidence: Evidence) -> Finding | str | None:
    """A finding, if any; in words, why it cannot be known. A column that a server did not have, or a file that is
    damaged, is no reason to have no report at all.
    """
    try:
        return cause.judge(evidence)
    except (KeyError, TypeError, ValueError, ArithmeticError, IndexError) as e:
        return f"{type(e).__name__}: {e}"


def _rank(f: Finding) -> tuple[int, float]:
    size = f.cost.mean if math.isfinite(f.cost.mean) else 0.0
    first = f.kind is Kind.TROUBLE and size >= _TROUBLE and f.confidence is not Confidence.LOW
    return (0 if first else 1, -size * _WORTH[f.confidence])
