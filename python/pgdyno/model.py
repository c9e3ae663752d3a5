"""Core types: trials, their measured values, caveats.

Times are integer nanoseconds, sizes bytes; a name ends in its unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cached_property
from typing import Any

from pgdyno.message import Message, Name, Text, message

#: Percentiles that every table shows, in percent.
PERCENTILES = (50.0, 95.0, 99.0, 99.9)
#: What a latency calls them.
PERCENTILE_NAMES = ("p50_ns", "p95_ns", "p99_ns", "p999_ns")


class Caveat(Enum):
    """Something that limits what a result says. The value is its id in the catalogues, behind `caveat-`."""

    SHORT = "short"
    FEW_REPETITIONS = "few-repetitions"
    CLIENT_BOUND = "client-bound"
    SHARED_MACHINE = "shared-machine"
    BESIDE_ANOTHER = "beside-another"
    OPEN_LOOP = "open-loop"
    REPLAY = "replay"
    NO_WORK = "no-work"
    SKIPPED = "skipped"
    UNFINISHED = "unfinished"
    FAILURES = "failures"
    OUTAGE = "outage"
    UNKNOWN = "unknown"
    WARMUP = "warmup"
    NOT_STEADY = "not-steady"
    NO_ONE_LEVEL = "no-one-level"
    DRIFT = "drift"
    SHRUNK = "shrunk"
    BACKLOG = "backlog"
    VIOLATION = "violation"
    INCONSISTENT = "inconsistent"
    UNCHECKED = "unchecked"
    POOLED = "pooled"
    INTERRUPTED = "interrupted"
    TRIAL_FAILED = "trial-failed"
    UNPREPARED = "unprepared"
    NOT_RECORDED = "not-recorded"
    FITS_IN_MEMORY = "fits-in-memory"

    @property
    def message(self) -> Message:
        """Description of the caveat."""
        return message(f"caveat-{self.value}")

    @property
    def advice(self) -> Message:
        """Advice on what to do about the caveat."""
        return message(f"caveat-{self.value}-remedy")


#: Caveats that make a run end with exit code 1: something went wrong, not merely something to know.
WRONG = {
    Caveat.NO_WORK,
    Caveat.NO_ONE_LEVEL,
    Caveat.SKIPPED,
    Caveat.UNFINISHED,
    Caveat.FAILURES,
    Caveat.OUTAGE,
    Caveat.VIOLATION,
    Caveat.INCONSISTENT,
    Caveat.UNKNOWN,
    Caveat.TRIAL_FAILED,
    Caveat.INTERRUPTED,
}


@dataclass(frozen=True)
class Latency:
    """A distribution of latencies, nanoseconds; from merged histograms, 3 significant digits but for the mean."""

    count: int
    mean_ns: float = 0.0
    stddev_ns: float = 0.0
    max_ns: int = 0
    p50_ns: int = 0
    p95_ns: int = 0
    p99_ns: int = 0
    p999_ns: int = 0
    #: Of figures above by name: half the width of the 95% confidence interval, nanoseconds, by the intervals of this
    #: one trial, autocorrelation respected. Where the intervals are too few to tell, a figure is not here.
    half_widths: dict[str, float] = field(default_factory=dict)

    def percentiles(self) -> tuple[int, int, int, int]:
        """Return the percentiles in the order of PERCENTILES."""
        return self.p50_ns, self.p95_ns, self.p99_ns, self.p999_ns

    def relative_half_width(self, name: str) -> float | None:
        """Return half the width of a figure's 95% confidence interval, as a share of the figure; None if unknown."""
        half, value = self.half_widths.get(name), getattr(self, name)
        return half / value if half is not None and value else None


@dataclass(frozen=True)
class StatementLatency:
    """One statement of a script and how long it took."""

    script: str
    line: int
    text: str
    latency: Latency
    #: What the script calls it: a comment above it, `-- name: place an order`.
    name: str = ""
    #: How often it found or changed no row.
    empty: int = 0
    #: A comment above it says so: `-- may find nothing`.
    may_find_nothing: bool = False
    #: Executions that `empty` counts. `latency` has fewer where the trial was steady only from a later interval on.
    #: 0: as many as `latency`; records of earlier versions have no other number.
    executions: int = 0

    @property
    def does_nothing(self) -> bool:
        """Return True if most executions of the statement found or changed no row, although they should."""
        return not self.may_find_nothing and self.empty > self.executed / 2

    @property
    def executed(self) -> int:
        """Number of executions that `empty` counts."""
        return self.executions or self.latency.count

    @property
    def title(self) -> str:
        """Its name, or the SQL in one line."""
        return self.name or " ".join(self.text.split())


@dataclass(frozen=True)
class ScriptLatency:
    """One of several scripts of a workload, and how long its transactions took."""

    name: str
    latency: Latency


#: Phases whose transactions are in no figure: before the measurement, found to be so, and a duet's changes of side.
UNCOUNTED = ("warmup", "dropped", "transition")
#: A configuration: workload, hot set, clients, and pairs of what else is varied.
Key = tuple[Any, ...]


def spelled(value: Any) -> str:
    """Return a value as configuration files spell it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.12g}" if isinstance(value, float) else str(value) or "''"


@dataclass(frozen=True)
class TrialPlan:
    """One timed run of one workload in one configuration."""

    number: int
    workload: str
    hot_set: float
    clients: int
    repetition: int
    #: What else is varied in its experiment, by axis: target, dataset, version, a setting.
    varied: dict[str, bool | int | float | str] = field(default_factory=dict)
    #: Which start of the server it belongs to. Repetitions are counted over all of them.
    start: int = 1

    @cached_property
    def key(self) -> Key:
        """The configuration; repetitions share it."""
        return (self.workload, self.hot_set, self.clients, *self.varied.items())

    @property
    def label(self) -> str:
        """Other varied parameters as text."""
        return ", ".join(f"{name}={spelled(value)}" for name, value in self.varied.items())

    @cached_property
    def slug(self) -> str:
        """Its folder's name, less the number."""
        more = "".join(f"-{name}{'' if value == '' else spelled(value)}" for name, value in self.varied.items())
        named = re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{self.workload}{more}")[:150]
        return f"{named}-hot{self.hot_set * 100:g}pct-c{self.clients}-r{self.repetition}"

    @cached_property
    def folder(self) -> str:
        """Its folder's name."""
        return f"{self.number:04d}-{self.slug}"


@dataclass(frozen=True)
class Regimes:
    """Throughput that has no one level: it changed once, or nothing was committed for a while."""

    #: Seconds from the beginning of the measurement to the second level; None: the level did not change.
    change_at_s: float | None = None
    #: TPS of the two levels.
    before_tps: float = 0.0
    after_tps: float = 0.0
    #: The longest time in which nothing was committed, and where it began, seconds; 0: none that matters.
    stall_s: float = 0.0
    stall_at_s: float = 0.0


@dataclass(frozen=True)
class TrialSummary:
    """Summary of one trial.

    TPS and QPS count transactions and statements that ended within the measurement. Latencies also include those that
    ended later.
    """

    tps: float
    qps: float
    elapsed_s: float
    scheduled: int
    committed: int
    failed: dict[str, int]
    skipped: int
    unknown: int
    unfinished: int
    lost: int
    reconnects: int
    #: Of the busiest worker's time, the part on a CPU.
    client_cpu_share: float
    connect_s: float
    latency: Latency
    statements: list[StatementLatency]
    #: Where there are several.
    scripts: list[ScriptLatency] = field(default_factory=list)
    #: Seconds at the beginning of the measurement that were still warm-up; TPS, QPS and latencies leave them out.
    warmup_dropped_s: float = 0.0
    #: Whether the rest has no trend; None: too short to tell.
    steady: bool | None = None
    #: The trend over the rest, as a part of its mean.
    drift: float = 0.0
    #: None: one figure describes the throughput, as far as the series tells.
    regimes: Regimes | None = None
    #: Half the width of TPS's 95% confidence interval within this trial, autocorrelation respected.
    tps_half_width: float | None = None
    #: Of the most delayed worker's time, the part that it was ready to run and waited for a CPU; and how late its
    #: timers woke it, 99th percentile.
    client_delay_share: float = 0.0
    #: Of the worker that had least rest, the part of its time that it was on a CPU or waited for one.
    client_busy_share: float = 0.0
    wakeup_p99_ns: int = 0
    #: How the workers waited for their sockets; empty where that was not recorded.
    driver: str = ""
    #: Connections given up because the server broke the protocol; they are among the lost.
    violations: int = 0

    @property
    def failed_total(self) -> int:
        """Failed transactions, all codes together."""
        return sum(self.failed.values())


@dataclass(frozen=True)
class IntervalRow:
    """One row of a trial's time series."""

    index: int
    phase: str
    start_ns: int
    end_ns: int
    scheduled: int
    committed: int
    failed: int
    skipped: int
    unknown: int
    unfinished: int
    retried: int
    statements: int
    lost: int
    reconnects: int
    disconnected: int
    client_cpu_ns: int
    mean_ns: float
    p50_ns: int
    p95_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    lag_p99_ns: int
    failed_by_sqlstate: str
    #: Of all workers: time that they were ready to run and waited for a CPU; how late timers woke them.
    client_run_delay_ns: int = 0
    wakeup_p99_ns: int = 0
    #: Connections given up because the server broke the protocol.
    violations: int = 0
    #: Longest time in which clients waited and none got an answer, that ended in this interval; where it began. 0: not
    #: recorded, or none.
    silent_from_ns: int = 0
    silent_ns: int = 0


class EventKind(StrEnum):
    """Kind of an event in a trial. The first ones are those of the engine, which has the same names."""

    CONNECTION_LOST = "connection_lost"
    PROTOCOL_VIOLATION = "protocol_violation"
    RECONNECTED = "reconnected"
    CONNECT_FAILED = "connect_failed"
    FIRST_ERROR = "first_error"
    ERROR = "error"
    INFO = "info"
    DEBUG = "debug"
    OUTPUT = "output"
    #: Of pgdyno itself: its own session with the server, and what it could not record.
    OWN_CONNECTION_LOST = "connection lost"
    OWN_CONNECTION_BACK = "connection made again"
    NOT_RECORDED = "not_recorded"
    BESIDE_ANOTHER = "beside another"
    PREPARING = "preparing"
    WARM_UP = "warm-up"
    LENGTH = "length"
    SLICE = "slice"
    CHECKING = "checking"
    INCONSISTENT = "inconsistent"
    #: Of the server: its log, its counters, its plans.
    CHECKPOINT_BEGINS = "checkpoint begins"
    CHECKPOINT_ENDS = "checkpoint ends"
    AUTOVACUUM = "autovacuum"
    LOCK_WAIT = "lock wait"
    TEMPORARY_FILE = "temporary file"
    TOO_MANY_CHECKPOINTS = "too many checkpoints"
    CONFIGURATION_RELOADED = "configuration reloaded"
    SERVER_STOPS = "server stops"
    SERVER_PROCESS_DIED = "server process died"
    RECOVERY = "recovery"
    SERVER_RESTARTED = "server restarted"
    COUNTERS_RESET = "counters reset"
    SETTING_CHANGED = "setting changed"
    SCHEMA_CHANGED = "schema changed"
    PLAN_CHANGED = "plan changed"
    FATAL = "fatal"
    PANIC = "panic"


def event_kind(name: str) -> EventKind | str:
    """Return the kind of that name; a name of another version stays as it is."""
    return EventKind(name) if name in _EVENT_KINDS else name


_EVENT_KINDS = {k.value for k in EventKind}


@dataclass(frozen=True)
class Event:
    """Something that happened in a trial: to a client, in the server, to what was recorded."""

    #: Nanoseconds since the load began.
    at_ns: int
    kind: EventKind | str
    text: Text

    @property
    def quoted(self) -> str:
        """Words of a server or another program; empty for a sentence of pgdyno's."""
        return self.text.text if isinstance(self.text, Name) else ""


@dataclass(frozen=True)
class TrialRecord:
    """A trial as it stands in a run directory."""

    plan: TrialPlan
    state: str
    started_at: str
    error: Text | None = None
    summary: TrialSummary | None = None
    caveats: list[Caveat] = field(default_factory=list)
    #: What the server did meanwhile: bytes of WAL, rows, growth, as pgdyno.collect.activity names them. And of TPC-C
    #: what its clients have drawn.
    activity: dict[str, float] = field(default_factory=dict)
    #: Rows that each transaction wrote, if the experiment says so.
    rows_per_transaction: int = 0
    #: The label of the place that it was run at.
    place: str = ""
    #: Nanoseconds since 1970: where the series' times count from; 0: not recorded.
    start_ns: int = 0
    #: What it was run with: the scripts' variables, seed, protocol, rate, place, settings.
    parameters: dict[str, Any] = field(default_factory=dict)
    #: Of one that has just ended: intervals that began before turned out to be warm-up.
    dropped_until_ns: int = 0

    @property
    def state_name(self) -> Text:
        """Name of the state; one of another version as it is."""
        known = {"finished", "failed", "interrupted", "running"}
        return message(f"state-of-trial-{self.state}") if self.state in known else Name(self.state)
