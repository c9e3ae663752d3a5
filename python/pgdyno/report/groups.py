"""Trials by configuration: what the tables and charts have a row or a line for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pgdyno.analysis.spread import Estimate, estimate
from pgdyno.model import Key, Latency, RunData, TrialRecord, TrialSummary, spelled


@dataclass(frozen=True, eq=False)
class Group:
    """The repetitions of one configuration."""

    trials: list[TrialRecord]
    _known: dict[str, Estimate] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> Key:
        """Where the pooled latencies are found."""
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
    def varied(self) -> dict[str, Any]:
        """What else is varied, by axis."""
        return self.trials[0].plan.varied

    @property
    def variant(self) -> str:
        """The same in words: values alone, where the column says what they are."""
        values = list(self.varied.values())
        return spelled(values[0]) if len(values) == 1 else self.trials[0].plan.label

    def over(self, name: str) -> Estimate:
        """A figure of the summaries, over the repetitions."""
        if name not in self._known:
            self._known[name] = estimate([float(getattr(t.summary, name)) for t in self.trials if t.summary])
        return self._known[name]

    def latency_half_width(self, name: str, statement: int | None = None) -> float | None:
        """Of a latency's 95% confidence interval, as a part of it; of transactions, or of statement number `statement`.
        Over the repetitions, each with its own figure, by Student's t; of a single one from within, as half_width.
        """
        found = [_latency(t.summary, statement) for t in self.trials if t.summary]
        e = estimate([float(getattr(latency, name)) for latency in found])
        half = e.half_width if e.n > 1 else found[0].half_widths.get(name) if found else None
        return half / e.mean if half is not None and e.mean else None

    def half_width(self) -> float | None:
        """Of TPS's 95% confidence interval, as a part of TPS: over the repetitions by Student's t; of a single one from
        within, where the neighbours' resemblance is known.
        """
        tps = self.over("tps")
        if tps.n > 1:
            half = tps.half_width
        else:
            half = self.trials[0].summary.tps_half_width if self.trials[0].summary else None
        return half / tps.mean if half is not None and tps.mean else None


def _latency(summary: TrialSummary, statement: int | None) -> Latency:
    return summary.latency if statement is None else summary.statements[statement].latency


def groups_of(data: RunData) -> list[Group]:
    """Configurations in reading order; only trials that were finished count."""
    found: dict[Key, list[TrialRecord]] = {}
    for t in data.trials:
        if t.summary is not None and t.state == "finished":
            found.setdefault(t.plan.key, []).append(t)
    names = list(data.manifest.get("workloads", {}))
    order = {n: i for i, n in enumerate(names)}
    written = data.manifest.get("varied") or {}

    def rank(axis: str, value: Any) -> int:
        # As the experiment has them: what is compared is compared with the first.
        values = written.get(axis) or []
        return values.index(value) if value in values else len(values)

    def place(key: Key) -> tuple[Any, ...]:
        more = [(rank(axis, value), str(value)) for axis, value in key[3:]]
        return (order.get(key[0], 99), more, key[1], key[2])

    return [Group(found[k]) for k in sorted(found, key=place)]


def variant_column(groups: list[Group]) -> str:
    """The heading of the column that tells variants apart; empty where there is nothing to tell."""
    names = list(groups[0].varied) if groups else []
    if not names:
        return ""
    return names[0] if len(names) == 1 else "variant"
