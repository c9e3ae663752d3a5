"""All findings of a run, in the order of what matters, and what could not be judged."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes import every_cause
from pgdyno.diagnosis.finding import Confidence, Finding, Kind, MissingColumnError, NotJudged
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import Ranking

_WORTH = {Confidence.HIGH: 1.0, Confidence.MEDIUM: 0.6, Confidence.LOW: 0.25}


@dataclass(frozen=True)
class Diagnosis:
    """The findings of some configurations, and the causes that could not be judged in some of them."""

    findings: list[Finding] = field(default_factory=list)
    not_judged: list[NotJudged] = field(default_factory=list)

    @classmethod
    def merged(cls, diagnoses: Sequence[Diagnosis]) -> Diagnosis:
        """Return one diagnosis of several configurations, in their order.

        A cause that fails in several of them for one reason is named once.
        """
        not_judged = dict.fromkeys(n for d in diagnoses for n in d.not_judged)
        return cls([f for d in diagnoses for f in d.findings], list(not_judged))

    def as_json(self) -> list[dict[str, object]]:
        """For the run's record: findings, then what was not judged."""
        return [*(f.as_json() for f in self.findings), *(n.as_json() for n in self.not_judged)]


def find_causes(observed: Observed) -> Diagnosis:
    """Judge every cause in one configuration: troubles of some size first, then limits, each by what it costs."""
    return _judged(observed, every_cause())


def _judged(evidence: Observed, causes: Sequence[Cause]) -> Diagnosis:
    found = Diagnosis()
    for cause in causes:
        try:
            finding = cause.judge(evidence)
        except MissingColumnError as e:
            found.not_judged.append(NotJudged(cause.name, missing=str(e)))
        # A cause that fails is no reason to have no report, and no reason to keep silent about it.
        except Exception as e:
            found.not_judged.append(NotJudged(cause.name, defect=f"{type(e).__name__}: {e}"))
        else:
            if finding is not None:
                found.findings.append(finding)
    found = Diagnosis(_without_redundant(found.findings, {c.name for c in causes if c.is_generic}), found.not_judged)
    if (largest := _largest(found.findings)) is not None:
        found.findings[found.findings.index(largest)] = replace(largest, is_largest=True)
    found.findings.sort(key=_rank)
    return found


def _without_redundant(findings: Sequence[Finding], generic: Collection[str]) -> list[Finding]:
    """Return the findings without those of `generic` causes that a trouble of a known kind accounts for.

    The trouble is at least as sure. Of several that are left, the one that costs most stays: they are about the same
    throughput.
    """
    troubles = [f for f in findings if f.cause not in generic and f.kind is Kind.TROUBLE]

    def is_accounted_for(f: Finding) -> bool:
        # Costs that are bounds by reasoning have half of the bound as their mean.
        return any(
            t.cost.high >= Ranking.TELLS_WHY * f.cost.mean and _WORTH[t.confidence] >= _WORTH[f.confidence]
            for t in troubles
        )

    left = [f for f in findings if f.cause in generic and not is_accounted_for(f)]
    kept = max(left, key=lambda f: _WORTH[f.confidence] * f.cost.mean, default=None)
    return [f for f in findings if f.cause not in generic or f is kept]


def _largest(findings: Sequence[Finding]) -> Finding | None:
    known = [f for f in findings if math.isfinite(f.cost.mean)]
    sure = [f for f in known if f.confidence is not Confidence.LOW]
    return max(sure or known, key=lambda f: f.cost.mean, default=None)


def _rank(f: Finding) -> tuple[int, float]:
    size = f.cost.mean if math.isfinite(f.cost.mean) else 0.0
    first = f.kind is Kind.TROUBLE and size >= Ranking.AVOIDABLE_FIRST and f.confidence is not Confidence.LOW
    return (0 if first else 1, -size * _WORTH[f.confidence])
