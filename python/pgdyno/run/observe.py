"""Observation of a running server at its own work: the collectors of a trial, without a load.

One session, which cannot write and creates nothing. Its record is that of a run with one trial: commits come from the
server's counters, and the latency of a transaction is the time of busy sessions per commit (Little's law).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from pgdyno import __version__
from pgdyno.analysis import series, steady
from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.collect import host, server
from pgdyno.diagnosis.recorded import at_one_load
from pgdyno.errors import (
    EXIT_OK,
    EXIT_SIGINT,
    EXIT_SIGTERM,
    LocalError,
    PgdynoError,
    TargetError,
    TrialError,
    msg,
    reason,
)
from pgdyno.interrupt import Terminated, signals_held, signals_raise
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.message import Text, message
from pgdyno.model import IntervalRow, Latency, TrialPlan, TrialRecord, TrialSummary
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run.planning.matrix import Place
from pgdyno.run.sites.site import Site
from pgdyno.run.trials.collecting import Collecting
from pgdyno.run.trials.steadiness import regimes_of
from pgdyno.spec.experiment import Run
from pgdyno.store import reading, texts
from pgdyno.store.journal import RunRecorder
from pgdyno.store.layout import FINDINGS
from pgdyno.store.rundir import RunDirectory, TrialWriter
from pgdyno.store.writing import now_text
from pgdyno.stream.events import (
    IntervalClosed,
    LoadStarted,
    Row,
    RunEvent,
    RunFinished,
    SamplesTaken,
    TrialFinished,
    TrialsPlanned,
    TrialStarted,
)
from pgdyno.stream.stream import RunStream, TrialStream

#: Name of the run and of its workload.
NAME = "observe"
#: Seconds of an interval, at least, and intervals of an observation.
_LEAST_S, _INTERVALS = 1.0, 60
_STEP_S = 0.2
#: Part of an interval that its samples must cover: they are not taken to the millisecond.
_NEARLY = 0.7
#: Seconds that an observation lasts at least, for its samples to tell anything.
SHORTEST_S = 5.0
#: What pg_stat_activity itself asks.
_PRIVILEGE = "select pg_has_role('pg_read_all_stats', 'usage')"
_SESSIONS = """
select count(*) from pg_stat_activity
where backend_type = 'client backend' and datname = current_database() and application_name <> 'pgdyno admin'"""


@dataclass
class Observation:
    """An observation: its run directory, and what was found."""

    exit_code: int
    path: Path
    error: Text | None = None
    #: None: there is no record that could be read.
    analysis: RunAnalysis | None = None


@dataclass
class _Samples:
    """Counters and waits so far, in order; a subscriber of the stream."""

    counters: list[tuple[int, int, Row]] = field(default_factory=list)
    #: Busy sessions by the start and end of a sample, in ns since 1970.
    busy: list[tuple[int, int, float]] = field(default_factory=list)

    def handle(self, event: RunEvent) -> None:
        """Keep what intervals are made of."""
        body = event.body
        if isinstance(body, SamplesTaken) and body.source == "counters":
            self.counters += [(body.start_ns, body.end_ns, row) for row in body.rows]
        elif isinstance(body, SamplesTaken) and body.source == "waits":
            n = sum(float(row["processes"]) for row in body.rows if row["ours"] and row["state"] != "idle")
            self.busy.append((body.start_ns, body.end_ns, n))


class _Intervals:
    """Intervals from the samples: commits by the server's counters, less those of pgdyno's own session."""

    def __init__(self, samples: _Samples, start_ns: int, length_s: float, executed: Callable[[], int]) -> None:
        self.rows: list[IntervalRow] = []
        self._samples = samples
        self._start_ns = start_ns
        self._length_ns = length_s * 1e9
        self._executed = executed
        self._own = executed()
        self._balance = 0.0
        self._next = 0

    def due(self, *, is_last: bool = False) -> IntervalRow | None:
        """Return the next interval if its samples are there."""
        rows = self._samples.counters[self._next :]
        if not rows:
            return None
        start_ns, end_ns = rows[0][0], rows[-1][1]
        if end_ns - start_ns < self._length_ns * _NEARLY and not is_last:
            return None
        self._next += len(rows)
        seconds = (end_ns - start_ns) / 1e9
        now = self._executed()
        own, self._own = max(0, now - self._own), max(now, self._own)
        counted = sum(_per_s(row, "commits_per_s") * (end - start) / 1e9 for start, end, row in rows)
        failed = sum(_per_s(row, "rollbacks_per_s") * (end - start) / 1e9 for start, end, row in rows)
        # Sessions tell their commits about a second later: what an interval lacks, the next one has.
        self._balance += counted - own
        commits = max(0, round(self._balance))
        self._balance -= commits
        busy_ns = _overlapping(self._samples.busy, start_ns, end_ns) * seconds * 1e9
        found = IntervalRow(
            index=len(self.rows), phase="measure", start_ns=start_ns - self._start_ns, end_ns=end_ns - self._start_ns,
            scheduled=commits + round(failed), committed=commits, failed=round(failed), skipped=0, unknown=0,
            unfinished=0, retried=0, statements=0, lost=0, reconnects=0, disconnected=0, client_cpu_ns=0,
            mean_ns=busy_ns / max(1, commits), p50_ns=0, p95_ns=0, p99_ns=0, p999_ns=0, max_ns=0, lag_p99_ns=0,
            failed_by_sqlstate="",
        )  # fmt: skip
        self.rows.append(found)
        return found


def _per_s(row: Row, name: str) -> float:
    return float(row.get(name) or 0.0)


def _overlapping(busy: list[tuple[int, int, float]], start_ns: int, end_ns: int) -> float:
    """Return the mean number of busy sessions over a time."""
    total = length = 0.0
    for start, end, n in busy:
        if (part := min(end, end_ns) - max(start, start_ns)) > 0:
            total += n * part
            length += part
    return total / length if length else 0.0


class Observer:
    """Observes one server; use it once."""

    def __init__(self, target: Target, seconds: float, runs: Path, stream: RunStream, command: str = "") -> None:
        self._target = target
        self._seconds = seconds
        self._runs = runs
        self._stream = stream
        self._command = command
        self._record = RunRecorder()
        stream.record(self._record)

    def run(self) -> Observation:
        """Observe, and record what was seen. Raise PgdynoError if the server cannot be reached."""
        with signals_raise():
            facts, missing, sessions = self._describe()
            directory = RunDirectory.create(self._runs, NAME, f"# pgdyno {NAME}: there is no experiment.\n")
            self._write_manifest(directory, facts, missing)
            self._record.open(directory.path)
            outcome = Observation(EXIT_OK, directory.path)
            try:
                self._observe(directory, sessions, same_machine=directory.manifest.same_machine, outcome=outcome)
            except PgdynoError as e:
                outcome.exit_code, outcome.error = e.exit_code, e.whole
            except (OSError, psycopg.Error) as e:
                outcome.exit_code, outcome.error = LocalError.exit_code, reason(e)
        with signals_held():
            return self._finish(directory, outcome)

    def _describe(self) -> tuple[dict[str, Any], list[Text], int]:
        with administration.connect(self._target, read_only=True) as conn:
            facts, missing = server.describe(conn)
            if administration.is_pooled(conn):
                facts["pooler"] = "a connection pooler"
                # The server sees the pooler's address.
                facts["same_machine"] = bool(facts.get("same_machine")) and self._target.is_local
            try:
                row = conn.execute(_PRIVILEGE).fetchone()
                if row is not None and not row[0]:
                    missing.append(message("gap-no-pg-monitor"))
                counted = conn.execute(_SESSIONS).fetchone()
            except psycopg.Error as e:
                raise TargetError(msg("error-observe-no-activity", reason=reason(e)), "") from e
        if 0 < int(facts.get("protocol_version") or 0) < 140000:
            missing.append(message("gap-old-server"))
        return facts, missing, int(counted[0]) if counted else 0

    def _write_manifest(self, directory: RunDirectory, facts: dict[str, Any], missing: list[Text]) -> None:
        t = self._target
        same = t.host.startswith(("/", "@")) or bool(facts.get("same_machine"))
        directory.update_manifest(
            pgdyno=__version__,
            name=NAME,
            title="Observation of a running server",
            title_zh="对运行中服务器的观察",
            started_at=now_text(),
            host=host.describe(None),
            target={"host": t.host, "port": t.port, "user": t.user, "dbname": t.dbname},
            same_machine=same,
            managed=False,
            observed=True,
            server=facts,
            not_recorded=[texts.english(x) for x in missing],
            not_recorded_messages=[texts.data_of(x) for x in missing],
            workloads={NAME: "TPS"},
            run={"duration_s": self._seconds, "warmup_s": 0.0, "repetitions": 1, "interval_s": self._interval_s},
            trials=1,
            cores=host.cores(),
            command=self._command,
        )

    @property
    def _interval_s(self) -> float:
        return max(_LEAST_S, self._seconds / _INTERVALS)

    def _observe(self, directory: RunDirectory, sessions: int, *, same_machine: bool, outcome: Observation) -> None:
        plan = TrialPlan(1, NAME, 1.0, max(1, sessions), 1)
        writer = directory.begin_trial(plan, {"place": "", "protocol": ""})
        self._record.add(writer)
        stream = TrialStream(self._stream, plan.number)
        samples = _Samples()
        self._stream.record(samples)
        nothing = OwnDataset("none")
        site = Site(Place("server", "dataset"), self._target, nothing)
        run = Run(duration_s=max(0.1, self._seconds), warmup_s=0.0)
        collecting = Collecting(site, run, stream, [], same_machine=same_machine, everybody=True)
        self._stream.emit(TrialsPlanned([plan], self._seconds))
        stream.emit(TrialStarted(plan, []))
        collecting.begin()
        collecting.settle()
        start_ns = time.time_ns()
        stream.emit(LoadStarted(start_ns))
        intervals = _Intervals(samples, start_ns, self._interval_s, lambda: collecting.executed)
        deadline = time.monotonic() + self._seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                time.sleep(min(_STEP_S, left))
                self._emit(stream, plan, intervals.due())
        except (KeyboardInterrupt, Terminated) as e:
            # What was seen so far is an observation, too.
            outcome.exit_code = EXIT_SIGINT if isinstance(e, KeyboardInterrupt) else EXIT_SIGTERM
            outcome.error = message("error-interrupted")
        with signals_held():
            collecting.stop()
            self._emit(stream, plan, intervals.due(is_last=True))
            collecting.end()
            self._close(stream, writer, plan, intervals.rows)
        if not intervals.rows and outcome.error is None:
            raise TrialError(msg("error-observe-nothing"), msg("remedy-observe-longer"))

    def _emit(self, stream: TrialStream, plan: TrialPlan, row: IntervalRow | None) -> None:
        if row is not None:
            stream.emit(IntervalClosed(plan, row))

    def _close(self, stream: TrialStream, writer: TrialWriter, plan: TrialPlan, rows: list[IntervalRow]) -> None:
        summary = summary_of(rows)
        state = "finished" if summary is not None else "failed"
        stream.close()
        writer.finish(state, summary, [])
        self._stream.emit(TrialFinished(TrialRecord(plan, state, now_text(), None, summary, [])), trial=1)

    def _finish(self, directory: RunDirectory, outcome: Observation) -> Observation:
        with suppress(PgdynoError):
            self._stream.emit(RunFinished(outcome.exit_code, outcome.error))
        self._stream.close()
        self._record.close()
        try:
            directory.update_manifest(
                ended_at=now_text(),
                exit_code=outcome.exit_code,
                error=texts.english(outcome.error),
                error_message=texts.data_of(outcome.error),
            )
            analysis = RunAnalysis(reading.read(directory.path))
            if analysis.groups:
                outcome.analysis = analysis
                found = json.dumps(analysis.diagnosis.as_json(), indent=2) + "\n"
                directory.write_text(FINDINGS, found)
        except (PgdynoError, OSError) as e:
            outcome.error = outcome.error or message("error-no-report", reason=reason(e))
            outcome.exit_code = outcome.exit_code or LocalError.exit_code
        return outcome


def summary_of(rows: list[IntervalRow]) -> TrialSummary | None:
    """Return the summary of an observation, or None without intervals.

    Drift and levels are those of the commits per busy session, because the load differs by itself.
    """
    seconds = sum(r.end_ns - r.start_ns for r in rows) / 1e9
    if not seconds:
        return None
    committed, failed = sum(r.committed for r in rows), sum(r.failed for r in rows)
    latency_ns = sum(r.mean_ns * max(1, r.committed) for r in rows) / max(1, committed)
    tps = [r.committed * 1e9 / (r.end_ns - r.start_ns) for r in rows]
    alike = at_one_load(rows)
    speeds = [r.committed * 1e9 / (r.end_ns - r.start_ns) for r in alike]
    judged = steady.judge(speeds) if len(speeds) > 1 else None
    found = TrialSummary(
        tps=committed / seconds, qps=0.0, elapsed_s=seconds, scheduled=committed + failed, committed=committed,
        failed={}, skipped=0, unknown=0, unfinished=0, lost=0, reconnects=0, client_cpu_share=0.0, connect_s=0.0,
        latency=Latency(committed, latency_ns), statements=[], steady=judged.steady if judged else None,
        drift=judged.drift if judged else 0.0, tps_half_width=series.mean_of(tps).half_width,
    )  # fmt: skip
    return replace(found, regimes=regimes_of(alike, latency_ns))
