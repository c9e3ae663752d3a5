"""The highest rate that a target sustains under a latency objective, searched for with trials of an open loop."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

from pgdyno.analysis.capacity import SUSTAINED, Objective, Probe, Search
from pgdyno.errors import TrialError, UsageError
from pgdyno.figures import BY_NAME
from pgdyno.model import Latency, TrialPlan, TrialRecord
from pgdyno.run.listener import Listener
from pgdyno.run.plan import Configuration, Planned
from pgdyno.run.prepared import Prepared
from pgdyno.run.provision import Options
from pgdyno.run.recorder import Outcome
from pgdyno.run.servers import Servers
from pgdyno.run.session import Session

#: Of what a closed loop reaches: the first rate that is tried.
_FIRST = 0.5
#: Of the answer: further rates, so that the curve of latency by throughput begins low.
_CURVE = (0.25, 0.5, 0.75)
#: Trials that a search takes about; for the progress only.
_USUAL = 17


def figure_of(latency: Latency, figure: str) -> float:
    """A figure of a distribution by the objective's name, nanoseconds."""
    return float(getattr(latency, BY_NAME[figure].column))


def search(prepared: Prepared, options: Options, objective: Objective, listener: Listener) -> tuple[Outcome, Search]:
    """Searches. Raises UsageError where the experiment has more than one configuration left."""
    session = _CapacitySession(prepared, options, objective, listener)
    if len(session.configurations) != 1:
        few = ", ".join(dict.fromkeys(f"{c.workload} c={c.clients} hot {c.hot_set:g}" for c in session.configurations))
        raise UsageError(
            f"a search needs one configuration, and the experiment has {len(session.configurations)}: {few[:200]}",
            "Choose: --workload NAME --clients N --hot-set F.",
        )
    return session.run(), session.search


class _CapacitySession(Session):
    def __init__(self, prepared: Prepared, options: Options, objective: Objective, listener: Listener) -> None:
        super().__init__(prepared, options, listener)
        self.search = Search(objective, 0.0)
        self._probes: list[Probe] = []

    def varied(self) -> dict[str, list[Any]]:
        """The rates are found as it goes."""
        return {"rate": []}

    def _run_trials(self, servers: Servers) -> None:
        run, configuration = self.experiment.run, self.configurations[0]
        self._at(servers, configuration)
        warmup = run.warmup_limit_s if run.warmup_s == "steady" else run.warmup_s
        usual = [self._planned(configuration, n, None).plan for n in range(1, _USUAL + 1)]
        self.listener.planned(usual, warmup + run.duration_s)
        closed = self._tried(servers, self._planned(configuration, 1, None))
        assert closed.summary is not None
        self.search.start = max(1.0, _FIRST * closed.summary.tps)
        while (rate := self.search.next_rate()) is not None:
            self.search.tell(self._probe(servers, rate))
            self._remember(closed.summary.tps)
        # The rest of the curve: what the search had no reason to try.
        for part in _CURVE if self.search.good else ():
            self._probe(servers, part * self.search.good)
            self._remember(closed.summary.tps)

    def _probe(self, servers: Servers, rate: float) -> Probe:
        # Three digits: a rate is named in the report, and asked for again.
        rate = float(f"{rate:.3g}")
        s = self._tried(servers, self._planned(self.configurations[0], len(self._probes) + 2, rate)).summary
        assert s is not None
        latency = figure_of(s.latency, self.search.objective.figure) if s.latency.count else math.inf
        # What was due and not even begun has no latency, and would have had a long one. What is under way at the end
        # was done as well as can be.
        done = s.tps * s.elapsed_s + self.configurations[0].clients
        kept_up = s.skipped + s.unfinished == 0 and (bool(s.warmup_dropped_s) or done >= SUSTAINED * s.scheduled)
        self._probes.append(Probe(rate, s.tps, latency, kept_up))
        return self._probes[-1]

    def _planned(self, configuration: Configuration, number: int, rate: float | None) -> Planned:
        tried = sum(p.rate == rate for p in self._probes) + 1
        c = replace(configuration, rate=rate)
        varied = {"rate": "closed" if rate is None else rate}
        return Planned(TrialPlan(number, c.workload, c.hot_set, c.clients, tried, varied), c)

    def _tried(self, servers: Servers, planned: Planned) -> TrialRecord:
        record = self._run_trial(servers, planned)
        if record.summary is None or not record.summary.committed:
            raise TrialError("no transaction was committed", "Does the workload run at all? Try pgdyno run.")
        return record

    def _remember(self, closed_tps: float) -> None:
        s = self.search
        self.recorder.update(
            trials=len(self._probes) + 1,
            capacity={
                "objective": str(s.objective),
                "figure": s.objective.figure,
                "below_ns": s.objective.below_ns,
                "rate": s.good,
                "above": None if math.isinf(s.bad) else s.bad,
                "bracketed": s.is_bracketed,
                "closed_tps": closed_tps,
                "probes": [asdict(p) | {"holds": p.holds(s.objective)} for p in self._probes],
            },
        )
