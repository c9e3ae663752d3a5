"""Commands of other sessions: VACUUM FULL, CREATE INDEX, COPY, a base backup, a report, or a loop of ANALYZE."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from pgdyno.diagnosis import foreign
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CPUS, THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.foreign import Ran
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Array, Recorded, Stretch, mean_over, ratio, runs
from pgdyno.diagnosis.thresholds import ForeignCommand
from pgdyno.message import Message, Name, counted, listed, message
from pgdyno.samples import OTHER_SESSION
from pgdyno.units import Quantity, Share

#: Commands that are tried one by one: those that ran longest.
_TRIED = 8
#: Other commands that are named.
_NAMED = 2
#: Bytes that are named.
_MOVED = 1 << 20


def _judge(e: Observed) -> Finding | None:
    seconds: dict[str, float] = {}
    for r in e.trials:
        for ran in foreign.commands(r):
            seconds[ran.command] = seconds.get(ran.command, 0.0) + ran.sessions * (ran.end_ns - ran.start_ns) / 1e9
    if not seconds:
        return None
    return _contrasted(e, seconds) or _concurrent(e, seconds)


def _contrasted(e: Observed, seconds: dict[str, float]) -> Finding | None:
    """Judge by throughput with and without: of the commands that cost something, named by the one that costs most."""
    longest = sorted(seconds, key=lambda x: -seconds[x])[:_TRIED]
    of = {command: found for command in longest if (found := _loss(e, {command})) is not None and found.low > 0}
    # Those that cost something, together; or, of many short ones of which none shows alone, all.
    cost = _loss(e, set(of) or set(seconds))
    if cost is None or cost.low <= 0 or cost.mean < ForeignCommand.LOSS:
        return None
    command = max(of, key=lambda c: of[c].mean, default=longest[0])
    others = [c for c in (of or longest) if c != command]
    return e.finding(
        CAUSE,
        message("foreign-command", command=Name(command), others=_others(others, len(of or seconds) - 1), share=cost,
                seconds=Quantity(seconds[command], "seconds"), moved=_moved(e, command)),
        cost, THROUGHPUT, Confidence.HIGH, message("foreign-command-remedy"), _facts(seconds, command),
    )  # fmt: skip


def _loss(e: Observed, names: Collection[str]) -> Share | None:
    source = "waits" if e.has("commands") and e.has("waits") else "counters"
    parts: dict[int, dict[Stretch, float]] = {}
    for r in e.trials:
        times = sorted({(row["start_ns"], row["end_ns"]) for row in r.rows(source)})
        active = np.minimum(1.0, _sessions(r, times, lambda ran: ran.sessions, names))
        parts[id(r)] = dict(zip(times, map(float, active), strict=True))
    return e.throughput_loss(lambda r, start, end: parts[id(r)][start, end], source)


def _sessions(
    r: Recorded, times: Sequence[Stretch], value: Callable[[Ran], float], names: Collection[str] | None = None
) -> Array:
    """Return the mean number of other sessions over each of `times`, with one of these commands or with any."""
    added: dict[Stretch, float] = {}
    for ran in foreign.commands(r):
        if names is None or ran.command in names:
            key = (ran.start_ns, ran.end_ns)
            added[key] = added.get(key, 0.0) + value(ran)
    if not times:
        return np.zeros(0)
    return np.nan_to_num(mean_over(times, added, times))


def _concurrent(e: Observed, seconds: dict[str, float]) -> Finding | None:
    """Judge by the CPUs that it takes: a command that runs for long may leave too little to compare with."""
    p = e.processors
    if p is None or not p.are_full or not e.has("commands"):
        return None
    own: list[float] = []
    whole: list[float] = []
    every = ran_s = 0.0
    for r in e.trials:
        times = [(s.start_ns, s.end_ns) for s in r.client_time]
        seen, running = _sessions(r, times, lambda ran: ran.sessions), _sessions(r, times, lambda ran: ran.running)
        counted = _cpu_of_others(r, times) if r.tells_others_apart else None
        if counted is not None and not counted[seen > 0].any():
            # Not that of a base backup's WAL sender, nor of workers alone.
            counted = None
        for n, s in enumerate(r.client_time):
            every += s.seconds
            if seen[n] > 0:
                ran_s += s.seconds
                if counted is not None:
                    own.append(float(counted[n]))
                    whole.append(p.cores)
                else:
                    # A session uses one CPU at most; where there are more sessions than CPUs they share them.
                    own.append(float(running[n]))
                    whole.append(max(p.cores, float(running[n]) + s.count(runs)))
    used = ratio(own, whole)
    if used is None:
        return None
    # What it takes while it runs, and the part of the time in which it does.
    cost = Share(*(ran_s / every * x for x in (used.mean, used.low, used.high)))
    least = ForeignCommand.LOSS if any(r.tells_others_apart for r in e.trials) else ForeignCommand.SESSIONS
    if cost.mean < least or cost.low <= 0:
        return None
    command, *others = sorted(seconds, key=lambda x: -seconds[x])
    return e.finding(
        CAUSE,
        message(
            "foreign-command-concurrent", command=Name(command), others=_others(others, len(seconds) - 1), share=cost,
            seconds=Quantity(seconds[command], "seconds"), moved=_moved(e, command),
        ),
        cost, CPUS, Confidence.MEDIUM, message("foreign-command-remedy"), _facts(seconds, command),
    )  # fmt: skip


def _cpu_of_others(r: Recorded, times: Sequence[Stretch]) -> Array:
    """Return the CPUs that other sessions used over each of `times`."""
    rows = r.rows("processes")
    used = {(row["start_ns"], row["end_ns"]): row["cpu"] for row in rows if row["kind"] == OTHER_SESSION}
    return np.nan_to_num(mean_over(times, used, {(row["start_ns"], row["end_ns"]) for row in rows}))


def _others(commands: Sequence[str], n: int) -> Message | None:
    """Return the other commands, of which there are `n`: the first ones by name."""
    if not n:
        return None
    named: list[Message | Name] = [Name(c) for c in commands[:_NAMED]]
    rest = n - len(named)
    if rest:
        named.append(counted("foreign-command-others", rest))
    return message("foreign-command-also", commands=listed(named, "list"))


def _moved(e: Observed, command: str) -> Message | None:
    found = foreign.moved(e.trials, command)
    if found is None or max(x or 0.0 for x in (found.read, found.written, found.wal)) < _MOVED:
        return None

    def part(id: str, moved: float | None) -> Message | None:
        return message(id, bytes=Quantity(moved, "bytes")) if moved is not None and moved >= _MOVED else None

    return message(
        "foreign-command-moved", read=part("foreign-command-read", found.read),
        written=part("foreign-command-written", found.written), wal=part("foreign-command-wal", found.wal),
    )  # fmt: skip


def _facts(seconds: dict[str, float], command: str) -> list[Fact]:
    return [Fact("seen-s", seconds[command] * 1e9, "ns"), Fact("commands", len(seconds))]


CAUSE = Cause("foreign-command", Kind.TROUBLE, "commands of other sessions", _judge)
