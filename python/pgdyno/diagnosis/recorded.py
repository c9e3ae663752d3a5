"""One trial as it was recorded, and where its clients' time went."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgdyno.analysis.series import autocorrelation_time
from pgdyno.analysis.spread import student_975
from pgdyno.diagnosis.finding import MissingColumnError
from pgdyno.diagnosis.thresholds import Samples
from pgdyno.model import Event, IntervalRow, TrialRecord
from pgdyno.samples import OTHER_SESSION
from pgdyno.store.reading import RunData
from pgdyno.units import Share

#: Sources that are sampled together begin within this time.
SAMPLE_NS = 100_000_000
Array = NDArray[np.float64]
#: Start and end, in nanoseconds since the load began.
Stretch = tuple[int, int]
#: A state, kind of wait, and wait, as pg_stat_activity has them.
Wait = tuple[str, str, str]
_RUNNING: Wait = ("active", "", "")
_UNKNOWN: Wait = ("", "", "")
#: Between two statements, while PostgreSQL reports the backend as idle.
_BETWEEN: Wait = ("between statements", "Client", "ClientRead")


def _all(_: Wait) -> bool:
    return True


def runs(what: Wait) -> bool:
    """Return True if a backend runs or waits for a processor: it is active and has no wait event."""
    state, kind, _ = what
    return state in ("active", "fastpath function call") and not kind


def is_outside(what: Wait) -> bool:
    """Return True if the server has nothing to do for the client."""
    state, kind, _ = what
    return kind == "Client" or state == "idle" or (state.startswith("idle in transaction") and not kind)


def _is_busy(what: Wait) -> bool:
    """Return True within a transaction or a statement."""
    return what[0] != "idle"


def _is_idle(what: Wait) -> bool:
    """Return True between transactions, or where it is not this client's turn."""
    return not _is_busy(what)


def _waits_for_client(what: Wait) -> bool:
    """Return True within a transaction, while the server has nothing to do for the client."""
    return _is_busy(what) and is_outside(what)


class Row(dict[str, Any]):
    """A row of a source."""

    def __missing__(self, column: str) -> Any:
        raise MissingColumnError(column)


class Recorded:
    """One trial."""

    def __init__(self, data: RunData, trial: TrialRecord) -> None:
        self.data = data
        self.trial = trial
        self._rows: dict[str, list[Row]] = {}

    @cached_property
    def intervals(self) -> list[IntervalRow]:
        """Intervals of the measurement; of an observed server, at its mean number of busy sessions.

        The load of an observed server differs by itself. Commits per busy session tell how fast the server is.
        """
        return at_one_load(self._measured) if self.is_observation else self._measured

    @cached_property
    def _measured(self) -> list[IntervalRow]:
        return [r for r in self.data.series[self.trial.plan.number] if r.phase == "measure" and r.end_ns > r.start_ns]

    @property
    def is_observation(self) -> bool:
        """The load is not pgdyno's: a server was observed at its own work."""
        return self.data.manifest.observed

    @cached_property
    def window(self) -> tuple[int, int]:
        """The measurement, in nanoseconds since the load began."""
        rows = self._measured
        return (rows[0].start_ns, rows[-1].end_ns) if rows else (0, 0)

    @property
    def committed_in_window(self) -> int:
        """Commits of the measurement, those in a duet's transitions included."""
        first, last = self.window
        return sum(r.committed for r in self.data.series[self.trial.plan.number] if first <= r.start_ns < last)

    @property
    def is_open_loop(self) -> bool:
        """Clients are idle on purpose: transactions come at a rate."""
        return self.trial.parameters.get("rate") is not None

    @cached_property
    def _scripts(self) -> list[str]:
        return [text for _, text, _ in self.data.manifest.scripts.get(self.trial.plan.workload, [])]

    @property
    def thinks(self) -> bool:
        """Clients sleep between or within transactions, as their script says."""
        return any(re.search(r"^\s*\\sleep\b", text, re.MULTILINE) for text in self._scripts)

    def mentions(self, sql: str) -> bool:
        """Return True if a script of the workload has this SQL: what it does itself is not another session's."""
        wanted = re.compile(r"\s+".join(map(re.escape, sql.split())), re.IGNORECASE)
        return any(wanted.search(text) for text in self._scripts)

    @property
    def pipelines(self) -> bool:
        """The script sends statements without waiting for answers."""
        return any("\\startpipeline" in text for text in self._scripts)

    @property
    def is_duet(self) -> bool:
        """The load went to two servers in turn."""
        return self.data.manifest.run.is_duet

    @property
    def is_idle_on_purpose(self) -> bool:
        """Clients wait for the next arrival, think, or it is the other side's turn."""
        return self.is_open_loop or self.thinks or self.is_duet or self.is_observation

    @property
    def rate_changes(self) -> bool:
        """The load follows a profile (--rate=1000..20000/60s): its throughput differs on purpose."""
        return isinstance(self.trial.parameters.get("rate"), str)

    @property
    def seconds(self) -> float:
        """Duration of the measurement in seconds."""
        return (self.window[1] - self.window[0]) / 1e9

    def rows(self, source: str) -> list[Row]:
        """Return the rows of a source for the measurement."""
        if source not in self._rows:
            every = self.data.samples[self.trial.plan.number, source]
            found = [Row(row) for row in every if self._is_within(row)]
            self._rows[source] = found
        return self._rows[source]

    def before(self, source: str) -> list[Row]:
        """Return the rows of a source for the warm-up."""
        rows = self.data.samples[self.trial.plan.number, source]
        return [Row(row) for row in rows if row.get("end_ns") is not None and 0 < row["end_ns"] <= self.window[0]]

    def _is_within(self, row: dict[str, Any]) -> bool:
        start, end, (first, last) = row.get("start_ns"), row.get("end_ns"), self.window
        if start is None or end is None:
            return True
        return bool(end > start and min(end, last) - max(start, first) >= Samples.WITHIN * (end - start))

    @cached_property
    def events(self) -> list[Event]:
        """Events from shortly before the measurement to its end, and events without a time."""
        every = self.data.events[self.trial.plan.number]
        if not every:
            # The window takes reading the intervals, and a run may have ten thousand trials.
            return []
        first, last = self.window
        return [e for e in every if e.at_ns == 0 or first - 2_000_000_000 <= e.at_ns <= last]

    def tps_over(self, times: Sequence[Stretch]) -> Array:
        """Return the throughput over each of `times`, in transactions per second; NaN without intervals there."""
        lengths = {(i.start_ns, i.end_ns): i.committed * 1e9 / (i.end_ns - i.start_ns) for i in self.intervals}
        if not times or not lengths:
            return np.full(len(times), np.nan)
        covered = _integral(times, dict.fromkeys(lengths, 1.0))
        return np.where(covered > 0, _integral(times, lengths) / np.maximum(covered, 1.0), np.nan)

    # ------------------------------------------------------------ the clients' time

    @cached_property
    def client_time(self) -> list[Sampled]:
        """Return the number of clients by state, kind of wait, and wait, for each sample.

        The sentences and the pictures of the clients' time are derived from these numbers.

        PostgreSQL reports "active", without a wait, for a backend that runs or waits for a processor. A backend may
        have just received a statement, without a processor to read it. PostgreSQL still reports that backend as idle.

        The kernel may count more time on processors and in their queues than PostgreSQL reports. The difference is
        then subtracted from the backends that are idle or wait for their client: sample by sample, or, where clients
        are idle on purpose, over the whole trial and from the time within transactions only.
        """
        time, clients = self._told_time, float(self.trial.plan.clients)
        if self.is_duet:
            time = self._with_time_between(time)
        backends = [row for row in self.rows("processes") if row["kind"] == "client backend"]
        # Others than our clients may be among what the kernel tells, if they are not told apart.
        if self.is_observation or (self.are_others_at_work and not self.tells_others_apart) or not backends:
            return time
        if self.is_idle_on_purpose:
            return self._with_hidden_over_all(time, backends)
        own = [min(clients, row["cpu"] + row["waiting_for_cpu"]) for row in backends]
        if not time:
            # What the others wait for is not known.
            return [
                Sampled(self, row["start_ns"], row["end_ns"], {_RUNNING: n, _UNKNOWN: clients - n})
                for row, n in zip(backends, own, strict=True)
            ]
        whole, told, outside = (sum(s.seconds * s.count(of) for s in time) for of in (_all, runs, is_outside))
        mean = sum(own) / len(own) / clients
        # What lies within the noise of ten looks a second is no difference.
        if not outside or mean * whole - told < Samples.HIDDEN * whole:
            return time
        seen = {row["start_ns"] // SAMPLE_NS: n / clients for row, n in zip(backends, own, strict=True)}
        return [s.with_hidden(seen.get(s.start_ns // SAMPLE_NS, mean)) for s in time]

    def _with_time_between(self, time: list[Sampled]) -> list[Sampled]:
        """Return `time` with the clients' own turns whole: idle time within them counts as time between statements.

        A sample cannot tell a client between two statements from one whose turn it is not. The clients' own clocks can:
        the time of their transactions is the number of commits times the mean latency (Little, 1961).
        """
        summary = self.trial.summary
        busy, idle = (sum(s.seconds * s.count(of) for s in time) for of in (_is_busy, _is_idle))
        if summary is None or not idle:
            return time
        share = self.committed_in_window * summary.latency.mean_ns / 1e9 / self.seconds / self.trial.plan.clients
        missing = min(1.0, share) * (busy + idle) - busy
        return [s.moved(min(1.0, missing / idle), _is_idle, _BETWEEN) for s in time] if missing > 0 else time

    def _with_hidden_over_all(self, time: list[Sampled], backends: Sequence[Row]) -> list[Sampled]:
        """Return `time` with what only the kernel counted on processors, for clients that are idle on purpose.

        A sample cannot tell which of the idle clients would be at work. The sums over the trial can: idle backends use
        no processor.
        """
        cpu_s = sum((row["cpu"] + row["waiting_for_cpu"]) * (row["end_ns"] - row["start_ns"]) for row in backends) / 1e9
        sampled_s = sum(row["end_ns"] - row["start_ns"] for row in backends) / 1e9
        told, busy, outside = (sum(s.seconds * s.count(of) for s in time) for of in (runs, _is_busy, _waits_for_client))
        seconds = sum(s.seconds for s in time)
        if not outside or not sampled_s:
            return time
        hidden = cpu_s / sampled_s * seconds - told
        if hidden < Samples.HIDDEN * busy:
            return time
        return [s.moved(min(1.0, hidden / outside), _waits_for_client, _RUNNING) for s in time]

    @cached_property
    def _told_time(self) -> list[Sampled]:
        """Clients' time as pg_stat_activity reports it."""
        found: dict[int, Sampled] = {}
        for row in self.rows("waits"):
            if row["ours"]:
                sample = found.setdefault(row["start_ns"], Sampled(self, row["start_ns"], row["end_ns"], {}))
                what = (row["state"], row["wait_type"], row["wait"])
                sample.counts[what] = sample.counts.get(what, 0.0) + row["processes"]
        return list(found.values())

    @cached_property
    def tells_others_apart(self) -> bool:
        """The CPU use of other sessions is known apart; runs of earlier versions have one sum."""
        return any(row["kind"] == OTHER_SESSION for row in self.rows("processes"))

    @cached_property
    def are_others_at_work(self) -> bool:
        """Client backends that are not ours were seen to do something."""
        return any(
            row["kind"] == "client backend" and not row["ours"] and row["state"] == "active"
            for row in self.rows("waits")
        )


def at_one_load(rows: Sequence[IntervalRow]) -> list[IntervalRow]:
    """Return the intervals with the commits of as many busy sessions as there are on average.

    The mean latency of an interval is the time of busy sessions per commit. Sessions tell their commits about once a
    second, so each interval is averaged with its neighbours. Intervals with hardly a busy session say nothing of the
    server.
    """
    if not rows:
        return []
    lengths = np.array([r.end_ns - r.start_ns for r in rows], dtype=np.float64)
    commits = np.array([r.committed for r in rows], dtype=np.float64)
    busy_ns = np.array([r.mean_ns * max(1, r.committed) for r in rows], dtype=np.float64)
    commits, smooth_ns, around = (_with_neighbours(x) for x in (commits, busy_ns, lengths))
    mean = float(busy_ns.sum() / lengths.sum())
    busy = smooth_ns / around
    return [
        replace(r, committed=round(commits[n] / around[n] * lengths[n] * mean / busy[n]))
        for n, r in enumerate(rows)
        if busy[n] >= max(Samples.QUIET_SESSIONS, mean / 20)
        and busy_ns[n] / lengths[n] >= max(Samples.QUIET_SESSIONS, mean / 20)
    ]


def _with_neighbours(x: Array) -> Array:
    """Return the sum of each value and its neighbours."""
    padded = np.concatenate([[0.0], x, [0.0]])
    return np.asarray(padded[:-2] + padded[1:-1] + padded[2:], dtype=np.float64)


@dataclass(frozen=True)
class Sampled:
    """Our clients at a time: how many were in each state, kind of wait, and wait."""

    recorded: Recorded
    start_ns: int
    end_ns: int
    counts: dict[Wait, float]

    @property
    def seconds(self) -> float:
        """Duration of this state in seconds."""
        return (self.end_ns - self.start_ns) / 1e9

    def count(self, of: Callable[[Wait], bool]) -> float:
        """Clients of some kind."""
        return sum(n for what, n in self.counts.items() if of(what))

    def with_hidden(self, seen: float) -> Sampled:
        """Return a copy in which clients that only the kernel sees running count as running.

        These clients are outside of the server according to PostgreSQL. For the kernel they belong to the share `seen`
        on processors and in their queues.
        """
        outside = self.count(is_outside)
        part = min(1.0, max(0.0, seen * self.count(_all) - self.count(runs)) / outside) if outside else 0.0
        return self.moved(part, is_outside, _RUNNING)

    def moved(self, part: float, of: Callable[[Wait], bool], to: Wait) -> Sampled:
        """Return a copy in which a part of the clients of some kind counts as `to`."""
        counts = {what: n * (1 - part) if of(what) else n for what, n in self.counts.items()}
        counts[to] = counts.get(to, 0.0) + part * self.count(of)
        return replace(self, counts=counts)


def ratio(own: Sequence[float], whole: Sequence[float]) -> Share | None:
    """Return the ratio of two sums over samples with its 95% interval.

    The interval comes from the delta method and accounts for the autocorrelation of neighbouring samples.
    """
    a, b = np.asarray(own, dtype=float), np.asarray(whole, dtype=float)
    if len(a) == 0 or b.sum() <= 0:
        return None
    mean = float(a.sum() / b.sum())
    if len(a) < Samples.FEWEST:
        return Share(mean, 0.0, 1.0)
    errors = (a - mean * b) / b.mean()
    n = max(2.0, len(a) / autocorrelation_time(errors))
    half = student_975(max(1, int(n) - 1)) * float(errors.std(ddof=1)) / math.sqrt(n)
    return Share(mean, max(0.0, mean - half), min(1.0, mean + half))


def mean_over(times: Sequence[Stretch], values: Mapping[Stretch, float], sampled: Iterable[Stretch]) -> Array:
    """Return the mean of a source over each of `times`, weighted by time; NaN where less than half was sampled.

    `values` are those of samples, by their start and end in ns. A sample of `sampled` without a value is 0.
    """
    whole, own = _integral(times, dict.fromkeys(sampled, 1.0)), _integral(times, values)
    lengths = np.array([end - start for start, end in times], dtype=np.float64)
    return np.where(whole >= 0.5 * lengths, own / np.maximum(whole, 1.0), np.nan)


def _integral(times: Sequence[Stretch], sampled: Mapping[Stretch, float]) -> Array:
    """Return the integral, over each of `times`, of what was sampled: constant within a sample, 0 between samples."""
    edges, sums, total = [0.0], [0.0], 0.0
    for (start, end), value in sorted(sampled.items()):
        edges += [float(start), float(end)]
        sums += [total, total := total + value * (end - start)]
    bounds = np.array(times, dtype=np.float64)
    at = np.interp(bounds.ravel(), edges, sums).reshape(bounds.shape)
    return np.asarray(at[:, 1] - at[:, 0], dtype=np.float64)
