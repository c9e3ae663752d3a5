"""The analysis of a run: groups, findings and comparisons, each computed once and given to every renderer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar, cast

from pgdyno.analysis.compare import MARGIN, Verdict
from pgdyno.diagnosis import explain
from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.explain import Diagnosis
from pgdyno.diagnosis.observed import Observed
from pgdyno.figures import TPS
from pgdyno.judge.axes import AxisComparisons, along_axes
from pgdyno.judge.groups import Group, fastest, groups_of, nearest
from pgdyno.judge.regimes import spoiling
from pgdyno.message import Message, message
from pgdyno.model import TrialRecord, spelled
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

T = TypeVar("T")
#: Workload, hot set, clients, and the varied settings as they are spelled.
Values = tuple[str, float, int, frozenset[tuple[str, str]]]

#: Configurations of a run that are all judged for a report; of more, the second number is judged.
MOST_DIAGNOSED = 300
SAMPLE_DIAGNOSED = 100


class RunAnalysis:
    """Everything that is computed from the record of a run.

    `margin` is the smallest relevant difference of a comparison, as a share.
    """

    def __init__(self, data: RunData, *, margin: float = MARGIN) -> None:
        self.data = data
        self.margin = margin
        self._observed: dict[tuple[int, ...], Observed] = {}
        self._once: dict[str, Any] = {}

    @cached_property
    def groups(self) -> list[Group]:
        """Configurations with finished trials, in reading order."""
        return groups_of(self.data)

    @cached_property
    def fastest(self) -> list[Group]:
        """The fastest configuration of each workload and each value of the other varied axes.

        Of a capacity search: the trials at the rate nearest to the one that was found.
        """
        capacity = self.data.manifest.capacity
        return fastest(self.groups) if capacity is None else nearest(self.groups, capacity.rate)

    @cached_property
    def diagnosed(self) -> list[Group]:
        """Configurations that are judged: all, or of more than `MOST_DIAGNOSED` a sample of `SAMPLE_DIAGNOSED`.

        The sample is the fastest of each workload and variant, and others spread evenly. Judging one reads all samples
        of its trials.
        """
        if len(self.groups) <= MOST_DIAGNOSED:
            return self.groups
        chosen = {id(g) for g in _spread(self.fastest, SAMPLE_DIAGNOSED)}
        others = [g for g in self.groups if id(g) not in chosen]
        chosen |= {id(g) for g in _spread(others, SAMPLE_DIAGNOSED - len(chosen))}
        return [g for g in self.groups if id(g) in chosen]

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Findings of the configurations that are judged, and the causes that could not be judged."""
        found = [self.diagnosis_of(g) for g in self.diagnosed]
        return Diagnosis.merged(found)

    @cached_property
    def comparisons(self) -> AxisComparisons:
        """Pairs of configurations that differ in one axis; none of a capacity search, whose rates have a curve."""
        if self.data.manifest.capacity is not None:
            return AxisComparisons()
        return along_axes(self.data, self.groups, self.margin)

    @cached_property
    def spoiling(self) -> frozenset[int]:
        """Numbers of the trials whose changes of level stand against the result."""
        return spoiling(self.data, self.groups, self.comparisons.rows, self.comparisons.uneven)

    def diagnosis_of(self, group: Group) -> Diagnosis:
        """Return the findings of one configuration."""
        numbers = ",".join(str(t.plan.number) for t in group.trials)
        return self.once(f"diagnosis.{numbers}", lambda: self._diagnosed(group))

    def _diagnosed(self, group: Group) -> Diagnosis:
        """Return the findings of a configuration, with the measured gain of actions that the run has tried."""
        found = explain.find_causes(self.observed(group.trials))
        findings = [
            replace(f, actions=[replace(a, measured=self._measured(a, group)) for a in f.actions])
            for f in found.findings
        ]
        return replace(found, findings=findings)

    @cached_property
    def _with_values(self) -> dict[Values, Group]:
        return {_values(g, g.clients, g.varied): g for g in self.groups}

    def _is_open(self, a: Group, b: Group) -> bool:
        """Return True if the run does not tell which of two configurations is faster.

        A verdict on them decides; without one, intervals that overlap.
        """
        for row in self.comparisons.rows:
            if row.figure is TPS and {row.pair.a.key, row.pair.b.key} == {a.key, b.key}:
                return row.comparison.verdict not in (Verdict.FASTER, Verdict.SLOWER)
        half_a, half_b = a.half_width(), b.half_width()
        if half_a is None or half_b is None:
            return False
        x, y = a.over("tps").mean, b.over("tps").mean
        return abs(x - y) <= half_a * x + half_b * y

    def _measured(self, action: Action, group: Group) -> Message | None:
        """Return the throughput of the configuration to which an action leads, beside that of `group`.

        None means that the run has no such configuration.
        """
        if action.sql or action.protocol is not None or not action.settings.keys() <= group.varied.keys():
            return None
        clients = group.clients if action.clients is None else action.clients
        there = self._with_values.get(_values(group, clients, {**group.varied, **action.settings}))
        if there is None or there is group or there.mixed or group.mixed:
            return None
        now, then = (_throughput(g) for g in (group, there))
        overlap = message("action-intervals-overlap") if self._is_open(group, there) else None
        return message("action-measured-tps", now=now, then=then, overlap=overlap)

    def observed(self, trials: Sequence[TrialRecord]) -> Observed:
        """Return what was sampled in some trials of one configuration."""
        key = tuple(t.plan.number for t in trials)
        if key not in self._observed:
            self._observed[key] = Observed(self.data, trials)
        return self._observed[key]

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Return the value of a name, which is computed when it is asked for first."""
        if name not in self._once:
            self._once[name] = compute()
        return cast(T, self._once[name])


def _values(group: Group, clients: int, varied: Mapping[str, object]) -> Values:
    """Return what identifies a configuration by its values as they are spelled."""
    return (group.workload, group.hot_set, clients, frozenset((k, spelled(v)) for k, v in varied.items()))


def _throughput(group: Group) -> Message:
    """Return the throughput of a configuration with its half-width, if that is known."""
    tps, half = Quantity(group.over("tps").mean, "count"), group.half_width()
    if half is None:
        return message("speed-tps", n=tps)
    return message("speed-tps-sure", n=tps, half=Quantity(half, "half-width"))


def _spread(groups: Sequence[Group], most: int) -> list[Group]:
    """Return at most `most` of the groups, in even steps."""
    if len(groups) <= most:
        return list(groups)
    return [groups[n * len(groups) // most] for n in range(most)]
