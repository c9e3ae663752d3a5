"""Trials by configuration: what the tables and charts have a row or a line for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.analysis.spread import Estimate, estimate
from pgdyno.model import Key, TrialRecord, spelled
from pgdyno.store.reading import RunData


@dataclass(frozen=True, eq=False)
class Group:
    """The repetitions of one configuration."""

    trials: list[TrialRecord]
    #: The run has several hot sets, so that all of the rows is one of them.
    has_hot_sets: bool = False
    _known: dict[str, Estimate] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> Key:
        """Key by which the pooled latencies are found."""
        return self.trials[0].plan.key

    @property
    def workload(self) -> str:
        """Its name."""
        return self.trials[0].plan.workload

    @property
    def hot_set(self) -> float:
        """Part of the rows."""
        return self.trials[0].plan.hot_set

    @property
    def clients(self) -> int:
        """Connections."""
        return self.trials[0].plan.clients

    @property
    def varied(self) -> Mapping[str, object]:
        """Values of the other varied parameters, by axis."""
        return self.trials[0].plan.varied

    @property
    def variant(self) -> str:
        """Other varied parameters as text.

        The text is the value alone if there is only one axis, because the column then names that axis.
        """
        values = list(self.varied.values())
        return spelled(values[0]) if len(values) == 1 else self.trials[0].plan.label

    @property
    def mixed(self) -> list[TrialRecord]:
        """The trials that one figure does not describe."""
        return [t for t in self.trials if t.summary and t.summary.regimes is not None]

    def over(self, name: str) -> Estimate:
        """Return a figure of the summaries over the starts of the server.

        Each start counts with the mean of its repetitions. A single start counts with its repetitions as units.
        Verdicts use the same units.
        """
        if name not in self._known:
            starts: dict[int, list[float]] = {}
            for t in self.trials:
                if t.summary:
                    starts.setdefault(t.plan.start, []).append(float(getattr(t.summary, name)))
            each = list(starts.values()) or [[]]
            self._known[name] = estimate([math.fsum(of) / len(of) for of in each] if len(each) > 1 else each[0])
        return self._known[name]

    def half_width(self, name: str = "tps") -> float | None:
        """Return half the width of the 95% confidence interval of TPS or QPS, as a share of the mean.

        The interval is that of the mean over the units, by Student's t. For a single repetition it comes from within
        the repetition, if the autocorrelation of neighbours is known.
        """
        e = self.over(name)
        if e.n > 1:
            return e.half_width / e.mean if e.half_width is not None and e.mean else None
        # QPS is TPS times the statements of a transaction.
        summary = self.trials[0].summary
        half = summary.tps_half_width if summary else None
        return half / summary.tps if half is not None and summary and summary.tps else None


def fastest(groups: Sequence[Group]) -> list[Group]:
    """Return the configuration with the best throughput for each workload and each value of the other varied axes."""
    best: dict[tuple[object, ...], Group] = {}
    for g in groups:
        key = (g.workload, *g.varied.items())
        if key not in best or g.over("tps").mean > best[key].over("tps").mean:
            best[key] = g
    return list(best.values())


def nearest(groups: Sequence[Group], rate: float | None) -> list[Group]:
    """Return the configuration whose rate is nearest to `rate`, by its logarithm; without a rate, the closed loop."""

    def distance(g: Group) -> float:
        own = g.varied.get("rate")
        return abs(math.log(own / rate)) if isinstance(own, int | float) and rate else math.inf

    return [min(groups, key=distance)] if groups else []


def groups_of(data: RunData) -> list[Group]:
    """Return the configurations in reading order; only finished trials count."""
    found: dict[Key, list[TrialRecord]] = {}
    for t in data.trials:
        if t.summary is not None and t.state == "finished":
            found.setdefault(t.plan.key, []).append(t)
    names = list(data.manifest.workloads)
    order = {n: i for i, n in enumerate(names)}
    written = data.manifest.varied

    def rank(axis: str, value: Any) -> int:
        # As the experiment has them: what is compared is compared with the first.
        values = written.get(axis) or []
        return values.index(value) if value in values else len(values)

    def place(key: Key) -> tuple[Any, ...]:
        more = [(rank(axis, value), *_sort_key(value)) for axis, value in key[3:]]
        return (order.get(key[0], 99), more, key[1], key[2])

    several = len({t.plan.hot_set for t in data.trials}) > 1
    return [Group(found[k], several) for k in sorted(found, key=place)]


def _sort_key(value: object) -> tuple[float, str]:
    """Return a sort key: numbers by size, before everything else by its text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (float(value), "") if is_number else (math.inf, str(value))  # type: ignore[arg-type]


def variant_column(groups: list[Group]) -> str:
    """Return the heading of the column that distinguishes variants; empty if there are no variants."""
    # Matrices that are carried out together may vary different axes.
    names = list(dict.fromkeys(name for g in groups for name in g.varied))
    if not names:
        return ""
    return names[0] if len(names) == 1 else "variant"
