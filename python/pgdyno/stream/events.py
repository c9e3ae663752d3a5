"""Events of a run, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.message import Text
from pgdyno.model import EventKind, IntervalRow, TrialPlan, TrialRecord

#: Samples of a source: values by column.
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stamp:
    """Place of an event in its run: `seq` counts from 0 without holes, `at_ns` is in nanoseconds since 1970."""

    seq: int
    at_ns: int
    #: Number of the trial; None: of the whole run.
    trial: int | None = None
    #: Who reports it: "session", "engine", "source:waits".
    origin: str = "session"


@dataclass(frozen=True, slots=True)
class Noted:
    """A line for the user."""

    text: Text


@dataclass(frozen=True, slots=True)
class DatasetProgress:
    """Progress of a phase of loading. A total of 0 is unknown."""

    phase: str
    rows: int = 0
    total_rows: int = 0
    done_bytes: int = 0
    total_bytes: int = 0
    #: Server of a cluster; empty: there is one.
    member: str = ""


@dataclass(frozen=True, slots=True)
class CheckStarted:
    """A check of the data begins: `number` counts from 0."""

    what: str
    number: int
    of: int


@dataclass(frozen=True, slots=True)
class DatasetDone:
    """Loading or checking has ended, whether the dataset exists then or not."""


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """Progress of a drill: `done` rounds of `of`, the fault of the present one, and what happens in it."""

    done: int
    of: int
    fault: str
    what: str


@dataclass(frozen=True, slots=True)
class TrialsPlanned:
    """The trials that will run, and the seconds that one takes."""

    trials: Sequence[TrialPlan]
    seconds_each: float


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """A trial begins. `statements` holds the SQL of its scripts, in the order of hlog's tags `statement-N`."""

    plan: TrialPlan
    statements: Sequence[str]


@dataclass(frozen=True, slots=True)
class LoadStarted:
    """All clients are connected; intervals count from here. `start_ns` is in nanoseconds since 1970."""

    start_ns: int


@dataclass(frozen=True, slots=True)
class WarmupInterval:
    """An interval of a load that only looks for a steady throughput; it is not recorded."""

    plan: TrialPlan
    row: IntervalRow


@dataclass(frozen=True, slots=True)
class IntervalClosed:
    """An interval of a trial has ended, with its latencies by hlog's tags."""

    plan: TrialPlan
    row: IntervalRow
    histograms: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SamplesTaken:
    """Samples of a source for the time between two moments, in nanoseconds since 1970."""

    source: str
    start_ns: int
    end_ns: int
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class TotalsRead:
    """Counters of a source for the whole trial."""

    source: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Happened:
    """Something happened `at_ns` nanoseconds after the load began: to a client, in the server, to what is recorded."""

    kind: EventKind | str
    text: Text
    at_ns: int = 0
    client: int | None = None


@dataclass(frozen=True, slots=True)
class TrialFinished:
    """A trial has ended; its record is on disk."""

    record: TrialRecord


@dataclass(frozen=True, slots=True)
class EventsDropped:
    """A subscriber was too slow: it misses `n` events before this one. Only that subscriber receives it."""

    n: int


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run has ended."""

    exit_code: int
    error: Text | None = None


Body = (
    Noted
    | DatasetProgress
    | CheckStarted
    | DatasetDone
    | RoundProgress
    | TrialsPlanned
    | TrialStarted
    | LoadStarted
    | WarmupInterval
    | IntervalClosed
    | SamplesTaken
    | TotalsRead
    | Happened
    | TrialFinished
    | EventsDropped
    | RunFinished
)


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event with its place in the run."""

    stamp: Stamp
    body: Body
