"""Duet of two trials at once.

Both servers are up and all clients are connected. The load goes to one side at a time, in short slices, so that any
disturbance of the machine affects both sides alike.

Source: Bulej and others, "Duet benchmarking: improving measurement accuracy in the cloud" (2020). There both sides run
at the same time, on cores of their own. That is the order "simultaneous", in which each slice of one side runs beside
a slice of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

from pgdyno import _core, engine
from pgdyno.errors import ClusterError, PgdynoError, SpecError, msg
from pgdyno.interrupt import signals_held
from pgdyno.message import Name, message
from pgdyno.model import EventKind, TrialRecord
from pgdyno.run.planning.turns import order_of, slice_of, transition_of, turns_for
from pgdyno.run.planning.workloads import tpcc_workload
from pgdyno.run.trials.sums import Phases, add_up, row_of, tags_of
from pgdyno.run.trials.trial import (
    ENGINE,
    PreparedTrial,
    close,
    drawn,
    raised_by,
    run_when_ready,
    translated,
    until_steady,
)
from pgdyno.run.trials.workers import workers_for_clients
from pgdyno.store.writing import now_text
from pgdyno.stream.events import Happened, IntervalClosed, LoadStarted
from pgdyno.units import Quantity

#: Transactions of a client that a slice holds at least, and a transition: with few, a slice counts whole ones only,
#: and hardly differs whatever they take; one that outlives the transition runs beside the other side's.
_IN_A_SLICE, _IN_A_TRANSITION = 20, 3
#: Seconds in which is found out how long a transaction takes.
_PROBE_S = 0.5


@dataclass
class _Side:
    """Activity of one side's clients in a duet."""

    trial: PreparedTrial
    #: Its scripts and commands within the workload: from the first to behind the last.
    scripts: tuple[int, int]
    commands: tuple[int, int]
    all_commands: list[_core.Command]
    elapsed_ns: int = 0
    by_phase: dict[str, _core.Interval] = field(default_factory=dict)

    @property
    def sql(self) -> list[int]:
        """Indexes of the side's commands that are statements, counted from its first command."""
        return [n for n, c in enumerate(self.all_commands[slice(*self.commands)]) if c.is_sql]

    @property
    def statements(self) -> list[str]:
        """Their SQL."""
        return [c.sql for c in self.all_commands[slice(*self.commands)] if c.is_sql]

    def take(self, i: _core.Interval, *, own: bool) -> None:
        """Add an interval of this side's own turn, or of the other side's.

        In the other side's turn, only the transactions that this side had begun come to their end.
        """
        mine = i.of_scripts(self.scripts, self.commands)
        phase = i.phase if own or i.phase in ("warmup", "drain") else "drain"
        if phase == "drain" and not (mine.scheduled or mine.committed or mine.failed or mine.unknown):
            return
        if phase == "measure":
            self.elapsed_ns += i.end_ns - i.start_ns
        before = self.by_phase.get(phase)
        self.by_phase[phase] = mine if before is None else before.merged(mine)
        row, tags = row_of(mine, phase), tags_of(mine, self.sql)
        self.trial.context.stream.emit(IntervalClosed(self.trial.plan, row, tags), origin=ENGINE)

    def phases(self, scripts: list[str]) -> Phases:
        """For its summary; `scripts` are the workload's."""
        early = [p for p in (self.by_phase.get(name) for name in ("warmup", "transition")) if p is not None]
        before = early[0].merged(early[1]) if len(early) > 1 else early[0] if early else None
        # What a transition has begun may end in the measurement, and is counted there.
        measured, drain = self.by_phase.get("measure"), self.by_phase.get("drain")
        commands = list(self.all_commands[slice(*self.commands)])
        texts = [text for _, text, _ in self.trial.scripts]
        return Phases(self.elapsed_ns, measured, drain, before, commands, scripts, texts, self.scripts[0])


class _Observer:
    """Gives each side its part of what the engine tells."""

    def __init__(self, sides: tuple[_Side, _Side], order: list[int], *, together: bool) -> None:
        self._sides = sides
        self._order = order
        self._together = together

    def started(self, start_ns: int, connect_ns: int) -> None:
        for side in self._sides:
            side.trial.context.stream.emit(LoadStarted(start_ns), origin=ENGINE)

    def interval(self, i: _core.Interval) -> None:
        turn = self._order[i.turn % len(self._order)]
        for n, side in enumerate(self._sides):
            side.take(i, own=self._together or n == turn)
        for side in self._sides:
            context = side.trial.context
            context.on_interval()
            if (died := context.cluster_died()) is not None:
                raise ClusterError(died, msg("remedy-server-log"))

    def event(self, e: _core.Event) -> None:
        happened = Happened(EventKind(e.kind), Name(e.text), e.at_ns, e.client // 2)
        self._sides[e.client % 2].trial.context.stream.emit(happened, origin=ENGINE)


class _Nobody:
    """Looks on and does nothing."""

    def started(self, start_ns: int, connect_ns: int) -> None: ...
    def interval(self, i: _core.Interval) -> None: ...
    def event(self, e: _core.Event) -> None: ...


def _typical_latency_s(t: PreparedTrial, plan: engine.Plan) -> float:
    """Measure the latency of a transaction on one side alone, in seconds, before the measurement begins.

    The latency is needed because a slice must hold many transactions.
    """
    own = replace(plan, clients=t.plan.clients, duration_s=_PROBE_S, interval_s=_PROBE_S, seed=t.seed)
    result = run_when_ready([t.context], t.workload, _Nobody(), own)
    if result.raised is not None:
        raise result.raised
    parts = [p for p in (result.phase("measure"), result.phase("drain")) if p is not None and p.latency.count]
    count = sum(p.latency.count for p in parts)
    return sum(p.latency.mean * p.latency.count for p in parts) / count / 1e9 if count else 0.0


def run_duet(trials: tuple[PreparedTrial, PreparedTrial]) -> tuple[list[TrialRecord], BaseException | None]:
    """Run two trials in alternating slices.

    Return their records and the exception that ended them early, or None. The records are on disk by then.
    """
    a, b = trials
    run, plan = a.context.run, a.plan
    started_at = now_text()
    raised: BaseException | None = None
    result: _core.RunResult | None = None
    workload, sides = _together(trials)
    engine_plan = engine.Plan(
        clients=2 * plan.clients,
        workers=run.workers or workers_for_clients(2 * plan.clients, a.context.cores),
        protocol=run.protocol,
        interval_s=run.interval_s,
        seed=a.seed,
        connect_timeout_s=run.connect_timeout_s,
        max_tries=a.context.run.max_tries,
        driver=cast("engine.Driver", run.driver),
    )
    try:
        warmup_s = 0.0 if run.warmup_s == "steady" else run.warmup_s
        if run.warmup_s == "steady":
            for t in trials:
                own = replace(engine_plan, clients=plan.clients, interval_s=run.interval_s, seed=t.seed)
                warmup_s = until_steady(t.context, t.plan, t.workload, own)
        typical_s = max(_typical_latency_s(t, engine_plan) for t in trials)
        slice_s = max(run.slice_s or slice_of(run.duration_s), min(_IN_A_SLICE * typical_s, run.duration_s))
        transition_s = max(transition_of(slice_s), _IN_A_TRANSITION * typical_s)
        if slice_s > (run.slice_s or 0.0):
            for t in trials:
                why = message(
                    "event-slice-longer", slice=Quantity(slice_s, "seconds"), typical=Quantity(typical_s * 1e9, "ns")
                )
                t.context.stream.emit(Happened(EventKind.SLICE, why))
        together = run.order == "simultaneous"
        warming, measuring = (turns_for(s, slice_s, together=together) for s in (warmup_s, run.duration_s))
        order = [0] if together else order_of(warming + measuring, a.seed)
        period_s = slice_s + transition_s
        engine_plan = replace(
            engine_plan,
            interval_s=slice_s,
            duet=engine.Duet(order, transition_s, together=together),
            warmup_s=warming * period_s,
            duration_s=measuring * period_s,
        )
        result = run_when_ready(
            [a.context, b.context], workload, _Observer(sides, order, together=together), engine_plan
        )
        raised = raised_by(result)
    except (_core.CoreError, PgdynoError) as e:
        raised = translated(e)
    except BaseException as e:
        raised = e
    did: list[dict[str, float]] = [{}, {}]
    if result is not None:
        try:
            # Signals are heeded: a server may be slow to answer, or never do.
            did = [t.steps.after_load() | drawn(workload, n) for n, t in enumerate(trials)]
        except BaseException as e:
            raised = raised or e
    # What was measured is whole, whatever stops the run now.
    with signals_held():
        records = [
            _closed(side, result, started_at, raised, activity) for side, activity in zip(sides, did, strict=True)
        ]
    return records, raised


def _closed(
    side: _Side,
    result: _core.RunResult | None,
    started_at: str,
    raised: BaseException | None,
    activity: dict[str, float],
) -> TrialRecord:
    t = side.trial
    sums = None if result is None else add_up(side.phases(result.scripts), result)
    record, _ = close(t.context, t.plan, t.writer, started_at, sums, raised, activity)
    return record


def _together(trials: tuple[PreparedTrial, PreparedTrial]) -> tuple[_core.Workload, tuple[_Side, _Side]]:
    """One workload of both sides' scripts, and which of them are whose."""
    a, b = trials
    # Compiled by themselves first: a mistake is said of its own side.
    counts = [len(t.workload.commands) for t in trials]
    if a.tpcc is not None and b.tpcc is not None:
        workload = tpcc_workload([(a.tpcc, a.variables), (b.tpcc, b.variables)])
    elif a.tpcc is None and b.tpcc is None:
        workload = _core.Workload({**b.variables, **a.variables}, dialect=a.context.target.dialect)
        # A sample is of each side's own data; both sides have one of each name, as one workload has them.
        for sample in (*b.samples, *a.samples):
            workload.add_sample(sample)
        for name, text, weight in a.scripts:
            workload.add(name, text, weight)
        workload.other_side(b.variables, b.samples, dialect=b.context.target.dialect)
        for name, text, weight in b.scripts:
            workload.add(name, text, weight)
    else:
        raise SpecError(msg("error-duet-two-sides-scripts-or"), msg("remedy-use-order-interleaved"))
    n, m = len(a.scripts), counts[0]
    every: list[Any] = workload.commands
    one = _Side(a, (0, n), (0, m), every)
    other = _Side(b, (n, n + len(b.scripts)), (m, m + counts[1]), every)
    return workload, (one, other)
