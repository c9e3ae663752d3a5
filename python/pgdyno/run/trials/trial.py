"""One trial: the engine runs, the store writes, the summary is drawn."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

from pgdyno import _core, engine
from pgdyno.analysis import steady
from pgdyno.analysis.client import ClientHealth
from pgdyno.cluster.remedies import remedy_for
from pgdyno.dbms import Database
from pgdyno.driver.named import is_python
from pgdyno.errors import ClusterError, LocalError, PgdynoError, SpecError, TargetError, TrialError, msg
from pgdyno.interrupt import signals_held
from pgdyno.message import Name, Text, listed, message
from pgdyno.model import (
    Caveat,
    EventKind,
    IntervalRow,
    TrialPlan,
    TrialRecord,
    TrialSummary,
)
from pgdyno.run.planning.workloads import message_of
from pgdyno.run.trials.steadiness import TrimmedSummary, without_warmup
from pgdyno.run.trials.steps import TrialSteps
from pgdyno.run.trials.sums import Sums, add_up, phases_of, row_of, tags_of
from pgdyno.run.trials.through import Through, is_limit, through
from pgdyno.run.trials.until_steady import LongEnoughError, UntilSteady
from pgdyno.run.trials.workers import workers_for_clients
from pgdyno.spec.experiment import Run, Tpcc
from pgdyno.store.layout import LOG
from pgdyno.store.rundir import TrialWriter
from pgdyno.store.summary import summarize
from pgdyno.store.writing import now_text
from pgdyno.stream.events import Happened, IntervalClosed, LoadStarted, Noted, WarmupInterval
from pgdyno.stream.stream import TrialStream
from pgdyno.units import Quantity

#: Seconds below which a measurement is short.
_SHORT_S = 10.0
#: A server that is being restarted: it shuts down, has crashed, or recovers.
_RESTARTING = ("57P01", "57P02", "57P03")


@dataclass(frozen=True)
class TrialContext:
    """Context that all trials of a run share."""

    target: Database
    run: Run
    cores: int
    #: Says why the server that we manage is gone, if it is.
    cluster_died: Callable[[], Text | None]
    stream: TrialStream
    #: The server runs on this machine.
    shared: bool
    #: What is known before the trial begins; what is seen meanwhile is added.
    caveats: list[Caveat] = field(default_factory=list)
    #: Called with each interval.
    on_interval: Callable[[], None] = lambda: None
    #: What was measured beside the trial since the last interval, by the log's tag.
    extra_histograms: Callable[[], dict[str, _core.Histogram]] = dict
    #: Ends what is collected beside the trial; may be called again.
    stop_collecting: Callable[[], None] = lambda: None
    #: A statement that mostly finds or changes no row fails the trial.
    expect_rows: bool = False
    #: Its transactions have times of their own: nothing is steady, and the throughput is production's.
    is_replay: bool = False
    #: The server has been through a whole period of its checkpoints since the trial began, or has none that matters.
    has_cycle: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class PreparedTrial:
    """A trial that is about to be run."""

    context: TrialContext
    plan: TrialPlan
    scripts: list[tuple[str, str, int]]
    variables: dict[str, str]
    seed: int
    writer: TrialWriter
    steps: TrialSteps
    #: What the clients run.
    workload: _core.Workload
    #: TPC-C in place of the scripts, which then only show it.
    tpcc: Tpcc | None = None
    #: What the scripts pick from.
    samples: Sequence[engine.Sample] = ()


#: Origin of the events of the native engine.
ENGINE = "engine"


class RunObserver(Protocol):
    """Interface through which the engine informs an observer."""

    def started(self, start_ns: int, connect_ns: int) -> None:
        """All clients are connected."""

    def interval(self, i: _core.Interval) -> None:
        """Handle an interval that has ended on all workers."""

    def event(self, e: _core.Event) -> None:
        """Something happened."""


class _Observer:
    """Writes what the engine tells as it tells it."""

    def __init__(
        self, context: TrialContext, plan: TrialPlan, workload: _core.Workload, until: UntilSteady | None = None
    ) -> None:
        self._context = context
        self._plan = plan
        self._sql = [n for n, c in enumerate(workload.commands) if c.is_sql]
        self._until = until

    def started(self, start_ns: int, connect_ns: int) -> None:
        self._context.stream.emit(LoadStarted(start_ns), origin=ENGINE)

    def interval(self, i: _core.Interval) -> None:
        row, tags = row_of(i), tags_of(i, self._sql)
        tags |= self._context.extra_histograms()
        self._context.stream.emit(IntervalClosed(self._plan, row, tags), origin=ENGINE)
        self._context.on_interval()
        died = self._context.cluster_died()
        if died is not None:
            raise ClusterError(died, msg("remedy-server-log"))
        if self._until is not None:
            self._until.add(row)

    def event(self, e: _core.Event) -> None:
        self._context.stream.emit(Happened(EventKind(e.kind), Name(e.text), e.at_ns, e.client), origin=ENGINE)


def run_trial(trial: PreparedTrial) -> tuple[TrialRecord, BaseException | None]:
    """Run one trial and return its record, and the exception that ended it early or None.

    The record is on disk when the function returns.
    """
    context, plan, writer, run = trial.context, trial.plan, trial.writer, trial.context.run
    workload = trial.workload
    started_at = now_text()
    engine_plan = engine.Plan(
        clients=plan.clients,
        workers=run.workers or workers_for_clients(plan.clients, context.cores),
        protocol=run.protocol,
        duration_s=run.longest_s,
        interval_s=run.interval_s,
        rate=None if run.rate is None else engine.Rate.of(run.rate),
        seed=trial.seed,
        connect_timeout_s=run.connect_timeout_s,
        driver="auto" if is_python(run.driver) else cast("engine.Driver", run.driver),
        max_tries=run.max_tries,
    )
    raised: BaseException | None = None
    usage: dict[str, float] = {}
    try:
        until = UntilSteady(run, context.has_cycle) if run.duration_limit_s is not None else None
        observer = _Observer(context, plan, workload, until)
        with through(run, context.target, plan.clients, context.cores) as driver:
            if driver is not None:
                driver.begin()
            warmup_s = run.warmup_s
            if warmup_s == "steady":
                warmup_s = until_steady(context, plan, workload, engine_plan, driver)
            engine_plan = replace(engine_plan, warmup_s=warmup_s)
            result = run_when_ready([context], workload, observer, engine_plan, driver)
            usage = driver.usage() if driver is not None else {}
    except (_core.CoreError, PgdynoError) as e:
        raised = translated(e)
    except BaseException as e:
        raised = e
    else:
        did, stopped = {}, None
        try:
            if until is not None and raised_by(result) is None:
                context.stream.emit(Happened(EventKind.LENGTH, until.result))
                context.stream.stream.emit(Noted(until.result))
            # Signals are heeded: the server may be slow to answer, or never do.
            did = trial.steps.after_load() | drawn(workload, 0) | usage
        except BaseException as e:
            stopped = e
        # What was measured is whole, whatever stops the run now.
        with signals_held():
            sums = add_up(phases_of(result, [text for _, text, _ in trial.scripts]), result)
            record, raised = close(context, plan, writer, started_at, sums, raised_by(result), did)
            return record, raised or stopped
    return _ended(context, plan, writer, started_at, None, raised, {})


def drawn(workload: _core.Workload, side: int) -> dict[str, float]:
    """Return the counts of the random inputs of a side's TPC-C clients, including the warm-up.

    The standard defines ranges for them.
    """
    sides = workload.drawn
    return {f"tpcc_{name}": float(n) for name, n in sides[side].items()} if sides else {}


def run_when_ready(
    contexts: Sequence[TrialContext],
    workload: _core.Workload,
    observer: RunObserver,
    plan: engine.Plan,
    driver: Through | None = None,
) -> _core.RunResult:
    """Run the workload, through the workers of a driver if there is one.

    A server that is just restarting is waited for, as long as a connection may take.
    """
    deadline = time.monotonic() + contexts[0].run.connect_timeout_s
    while True:
        try:
            if driver is None:
                return _core.run([c.target.core_config() for c in contexts], workload, observer, plan)
            result = _core.run(driver.workers.configs, workload, observer, plan)
            driver.add(result)
            return result
        except _core.ConnectError as e:
            transient = e.sqlstate in _RESTARTING or e.errno == errno.ECONNREFUSED
            died = any(c.cluster_died() is not None for c in contexts)
            if not transient or time.monotonic() > deadline or died:
                raise
            time.sleep(0.2)


class _SteadyError(Exception):
    """Ends a warm-up: it has done its work."""


class _WarmUp:
    """Looks on until the throughput has no trend any more."""

    def __init__(self, context: TrialContext, plan: TrialPlan) -> None:
        self._context = context
        self._plan = plan
        self._tps: list[float] = []
        self.steady = False

    def started(self, start_ns: int, connect_ns: int) -> None:
        """Nothing to do."""

    def interval(self, i: _core.Interval) -> None:
        if i.end_ns <= i.start_ns or i.phase == "drain":
            return
        row = row_of(i)
        self._context.stream.emit(WarmupInterval(self._plan, row), origin=ENGINE)
        self._tps.append(row.committed / ((row.end_ns - row.start_ns) / 1e9))
        if (died := self._context.cluster_died()) is not None:
            raise ClusterError(died, msg("remedy-server-log"))
        if steady.has_settled(self._tps):
            self.steady = True
            raise _SteadyError

    def event(self, e: _core.Event) -> None:
        """Nothing to do."""


def until_steady(
    context: TrialContext,
    plan: TrialPlan,
    workload: _core.Workload,
    engine_plan: engine.Plan,
    driver: Through | None = None,
) -> float:
    """Run the workload until it is steady, or for as long as the experiment allows.

    Return the seconds of warm-up that the trial itself still needs, because its sessions are new.
    """
    run = context.run
    watcher = _WarmUp(context, plan)
    began = time.monotonic()
    result = run_when_ready([context], workload, watcher, replace(engine_plan, duration_s=run.warmup_limit_s), driver)
    if result.raised is not None and not isinstance(result.raised, _SteadyError):
        raise result.raised
    if result.error is not None:
        raise TrialError(result.error, remedy_for(result.error, result.error_sqlstate))
    spent = time.monotonic() - began
    words = message("event-steady" if watcher.steady else "event-not-steady", time=Quantity(spent, "seconds"))
    context.stream.emit(Happened(EventKind.WARM_UP, words))
    return min(1.0, run.interval_s)


def raised_by(result: _core.RunResult) -> BaseException | None:
    """Return the exception that ended a run early, or None."""
    raised = None if isinstance(result.raised, LongEnoughError) else result.raised
    if raised is not None or result.error is None:
        return raised
    if result.error_in_script:
        return SpecError(result.error)
    return TrialError(result.error, remedy_for(result.error, result.error_sqlstate))


def close(
    context: TrialContext,
    plan: TrialPlan,
    writer: TrialWriter,
    started_at: str,
    sums: Sums | None,
    raised: BaseException | None,
    activity: dict[str, float],
) -> tuple[TrialRecord, BaseException | None]:
    """Close a trial and return its record, which is on disk, and `raised`.

    A trial that committed nothing has failed, even if no error ended the run. A trial whose statements found no rows
    has also failed if the experiment expects rows.
    """
    nothing: Text | None = None
    if sums is not None and raised is None:
        if not sums.summary.committed:
            nothing = _why_nothing(sums.summary, writer.rows)
        elif context.expect_rows and (idle := next((s for s in sums.summary.statements if s.does_nothing), None)):
            nothing = message("error-expect-rows", statement=Name(idle.title[:80]), n=idle.empty)
    return _ended(context, plan, writer, started_at, sums, raised, activity, nothing)


def _why_nothing(summary: TrialSummary, rows: list[IntervalRow]) -> Text:
    """Return why a trial has committed no transaction."""
    if summary.failed:
        counts = [message("error-code-times", code=Name(code), n=n) for code, n in sorted(summary.failed.items())]
        return message("error-nothing-failed", codes=listed(counts, "list"))
    if any(r.disconnected or r.lost for r in rows):
        return message("error-nothing-connections")
    return message("error-nothing-due" if not summary.scheduled else "error-nothing-ended")


def _ended(
    context: TrialContext,
    plan: TrialPlan,
    writer: TrialWriter,
    started_at: str,
    sums: Sums | None,
    raised: BaseException | None,
    activity: dict[str, float],
    nothing: Text | None = None,
) -> tuple[TrialRecord, BaseException | None]:
    """Close the trial on disk and return its record and `raised`.

    `nothing` is the reason why the trial has failed although no error ended the run.
    """
    context.stop_collecting()
    summary, until, merged = None, 0, None
    if sums is not None:
        trimmed = TrimmedSummary(sums.summary)
        if not context.is_replay:
            is_open = context.run.rate is not None
            trimmed = without_warmup(sums.summary, writer.rows, open_loop=is_open, may_drop=not context.run.is_duet)
        until = trimmed.dropped_until_ns
        found = summarize(writer.folder / LOG, writer.rows, trimmed.summary, sums.histograms, dropped_until_ns=until)
        summary, merged = found.summary, found.merged
    failed = nothing is not None or isinstance(raised, Exception)
    state = "failed" if failed else "finished" if raised is None else "interrupted"
    lost = any(r.lost or (r.disconnected and r.phase == "measure") for r in writer.rows)
    caveats = [*_caveats(context.run, summary, state, activity, lost=lost, shared=context.shared), *context.caveats]
    caveats += [Caveat.REPLAY] if context.is_replay and summary is not None else []
    error = nothing
    if error is None and isinstance(raised, Exception):
        error = raised.whole if isinstance(raised, PgdynoError) else Name(str(raised))
    context.stream.close()
    writer.finish(state, summary, caveats, error, activity, dropped_until_ns=until, merged=merged)
    record = TrialRecord(plan, state, started_at, error, summary, caveats, activity, dropped_until_ns=until)
    return record, raised


def abandon(trial: PreparedTrial, reason: BaseException) -> TrialRecord:
    """Close a trial whose load never began because of `reason`.

    Nothing is collected any more. The record states that the trial failed or was interrupted.
    """
    with signals_held():
        record, _ = _ended(trial.context, trial.plan, trial.writer, now_text(), None, reason, {})
    return record


def translated(e: _core.CoreError | PgdynoError) -> PgdynoError:
    """Convert an error of the engine to pgdyno's own exception hierarchy."""
    if isinstance(e, PgdynoError):
        return e
    text = message_of(e)
    if isinstance(e, _core.ScriptError):
        return SpecError(text)
    if isinstance(e, _core.ConnectError):
        return TargetError(text, remedy_for(text, e.sqlstate))
    return LocalError(text) if e.kind in ("limit", "system") else TrialError(text)


def _caveats(
    run: Run, summary: TrialSummary | None, state: str, activity: dict[str, float], *, lost: bool, shared: bool
) -> list[Caveat]:
    found = []
    if state == "failed":
        found.append(Caveat.TRIAL_FAILED)
    if state == "interrupted":
        found.append(Caveat.INTERRUPTED)
    if summary is None:
        return found
    if run.duration_s < _SHORT_S and (run.duration_limit_s is None or summary.elapsed_s < _SHORT_S):
        found.append(Caveat.SHORT)
    health = ClientHealth(
        summary.client_cpu_share,
        summary.client_delay_share,
        summary.wakeup_p99_ns,
        summary.client_busy_share,
        shared=shared,
    )
    if health.limits or is_limit(activity):
        found.append(Caveat.CLIENT_BOUND)
    if run.rate is not None and not summary.skipped:
        found.append(Caveat.OPEN_LOOP)
    if any(s.does_nothing for s in summary.statements):
        found.append(Caveat.NO_WORK)
    if summary.skipped:
        found.append(Caveat.SKIPPED)
    if summary.warmup_dropped_s:
        found.append(Caveat.WARMUP)
    if summary.regimes is not None:
        found.append(Caveat.NO_ONE_LEVEL)
    elif summary.steady is False:
        found.append(Caveat.BACKLOG if run.rate is not None and summary.drift > 0 else Caveat.NOT_STEADY)
    if summary.unfinished:
        found.append(Caveat.UNFINISHED)
    if summary.failed:
        found.append(Caveat.FAILURES)
    if lost:
        found.append(Caveat.OUTAGE)
    if summary.violations:
        found.append(Caveat.VIOLATION)
    if summary.unknown:
        found.append(Caveat.UNKNOWN)
    return found
