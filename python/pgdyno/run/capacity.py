"""The highest rate that a target sustains under a latency objective, searched for with trials of an open loop."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

from pgdyno.analysis.capacity import LEVEL, SUSTAINED, Objective, Probe, Search, seconds_for
from pgdyno.errors import TrialError, UsageError, msg
from pgdyno.figures import BY_NAME
from pgdyno.model import Latency, TrialPlan, TrialRecord
from pgdyno.run.planning.matrix import Configuration
from pgdyno.run.planning.plan import Plan, Planned
from pgdyno.run.recorder import Outcome
from pgdyno.run.session import Session
from pgdyno.run.sites.servers import Servers
from pgdyno.stream.events import TrialsPlanned
from pgdyno.stream.stream import RunStream

#: Of what a closed loop reaches: the first rate that is tried.
_FIRST = 0.5
#: Of the answer: further rates, so that the curve of latency by throughput begins low.
_CURVE = (0.25, 0.5, 0.75)
#: Trials that a search takes about; for the progress only.
_USUAL = 24


def figure_of(latency: Latency, figure: str) -> float:
    """Return a figure of a latency distribution by the name in the objective, in nanoseconds."""
    return float(getattr(latency, BY_NAME[figure].column))


def search(
    plan: Plan,
    objective: Objective,
    stream: RunStream,
    *,
    shortest_s: float | None = None,
) -> tuple[Outcome, Search]:
    """Search for the highest rate that holds the objective.

    `shortest_s` is the minimum length of a trial; None sets no minimum. Raise UsageError if the experiment leaves more
    than one configuration.
    """
    session = _CapacitySession(plan, objective, stream, shortest_s)
    if len(plan.configurations) != 1:
        few = ", ".join(dict.fromkeys(f"{c.workload} c={c.clients} hot {c.hot_set:g}" for c in plan.configurations))
        raise UsageError(
            msg(
                "error-search-needs-one-configuration-experiment",
                n_configurations=len(plan.configurations),
                few=few[:200],
            ),
            msg("remedy-choose-workload-name-clients-n"),
        )
    return session.run(), session.search


class _CapacitySession(Session):
    def __init__(
        self,
        plan: Plan,
        objective: Objective,
        stream: RunStream,
        shortest_s: float | None,
    ) -> None:
        super().__init__(plan, stream)
        self._shortest_s = shortest_s
        self.search = Search(objective, 0.0)
        self._probes: list[Probe] = []

    def varied(self) -> dict[str, list[Any]]:
        """Return the axis of rates without values, because the search finds the rates during the run."""
        return {"rate": []}

    def _run_trials(self, servers: Servers) -> None:
        configuration = self.plan.configurations[0]
        self._at(servers, configuration)
        # The first one warms the caches as well.
        shortest_s = seconds_for(self.search.objective, math.inf, self._shortest_s)
        run = self.experiment.run
        warmup = run.warmup_limit_s if run.warmup_s == "steady" else run.warmup_s
        usual = [self._planned(configuration, n, None, shortest_s).plan for n in range(1, _USUAL + 1)]
        self.stream.emit(TrialsPlanned(usual, warmup + shortest_s))
        closed = self._tried(servers, self._planned(configuration, 1, None, 2 * shortest_s))
        assert closed.summary is not None
        self.search.start = max(1.0, _FIRST * closed.summary.tps)
        while (rate := self.search.next_rate()) is not None:
            self.search.tell(self._probe(servers, rate))
            self._remember(closed.summary.tps)
        # The rest of the curve: what the search had no reason to try.
        found = self.search.threshold
        if found is None:
            return
        for part in _CURVE:
            # They speak for the threshold as the others do.
            self.search.tell(self._probe(servers, part * found.half.rate))
            self._remember(closed.summary.tps)

    def _probe(self, servers: Servers, rate: float) -> Probe:
        # Three digits: a rate is named in the report, and asked for again.
        rate = float(f"{rate:.3g}")
        seconds = seconds_for(self.search.objective, rate, self._shortest_s)
        planned = self._planned(self.plan.configurations[0], len(self._probes) + 2, rate, seconds)
        s = self._tried(servers, planned).summary
        assert s is not None
        latency = figure_of(s.latency, self.search.objective.figure) if s.latency.count else math.inf
        # What was due and not even begun has no latency, and would have had a long one. What is under way at the end
        # was done as well as can be.
        done = s.tps * s.elapsed_s + self.plan.configurations[0].clients
        kept_up = s.skipped + s.unfinished == 0 and (bool(s.warmup_dropped_s) or done >= SUSTAINED * s.scheduled)
        self._probes.append(Probe(rate, s.tps, latency, kept_up))
        return self._probes[-1]

    def _planned(self, configuration: Configuration, number: int, rate: float | None, seconds: float) -> Planned:
        tried = sum(p.rate == rate for p in self._probes) + 1
        c = replace(configuration, rate=rate)
        varied = {"rate": "closed" if rate is None else rate}
        return Planned(TrialPlan(number, c.workload, c.hot_set, c.clients, tried, varied), c, seconds)

    def _tried(self, servers: Servers, planned: Planned) -> TrialRecord:
        record = self._run_trial(servers, planned)
        if record.summary is None or not record.summary.committed:
            raise TrialError(msg("error-no-transaction-was-committed"), msg("remedy-does-workload-run-at-all"))
        return record

    def _remember(self, closed_tps: float) -> None:
        s, found = self.search, self.search.threshold
        self.recorder.update(
            trials=len(self._probes) + 1,
            capacity={
                "objective": str(s.objective),
                "figure": s.objective.figure,
                "below_ns": s.objective.below_ns,
                "rate": found.half.rate if found is not None else 0.0,
                "low": found.half.low if found is not None else None,
                "high": found.half.high if found is not None else None,
                "most": asdict(found.most) if found is not None else None,
                "level": LEVEL,
                "spread": found.spread if found is not None else None,
                "narrow": s.is_narrow,
                "contradiction": s.contradiction,
                "held": max((p.rate for p in self._probes if p.holds(s.objective)), default=0.0),
                "failed": min((p.rate for p in self._probes if not p.holds(s.objective)), default=0.0),
                "closed_tps": closed_tps,
                "probes": [asdict(p) | {"holds": p.holds(s.objective)} for p in self._probes],
            },
        )
