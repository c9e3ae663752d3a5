"""Sums of a trial: from the engine's intervals to rows of the time series, histograms by tag, and figures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pgdyno import _core
from pgdyno.model import IntervalRow, ScriptLatency, StatementLatency, TrialSummary
from pgdyno.store import hlog


def tags_of(i: _core.Interval, sql: list[int]) -> dict[str, _core.Histogram]:
    """Return an interval's histograms by tag of the log.

    `sql` holds the numbers of the commands that are SQL statements.
    """
    tags = {hlog.TRANSACTION: i.latency, hlog.LAG: i.lag}
    tags |= {hlog.statement(n): h for n, h in enumerate(_statement_latencies(i, sql))}
    scripts = i.scripts
    if len(scripts) > 1:
        tags |= {hlog.script(n): h for n, h in enumerate(scripts)}
    return tags


def _statement_latencies(i: _core.Interval, sql: list[int]) -> list[_core.Histogram]:
    """Latencies of the commands that are SQL."""
    latency = i.command_latency
    return [latency[n] for n in sql]


def row_of(i: _core.Interval, phase: str | None = None) -> IntervalRow:
    """Return an interval as a row of the time series."""
    h, failed = i.latency, i.failed
    p50, p95, p99, p999 = (h.percentile(p) for p in (50.0, 95.0, 99.0, 99.9))
    return IntervalRow(
        index=i.index,
        phase=phase or i.phase,
        start_ns=i.start_ns,
        end_ns=i.end_ns,
        scheduled=i.scheduled,
        committed=i.committed,
        failed=sum(failed.values()),
        skipped=i.skipped,
        unknown=i.unknown,
        unfinished=i.unfinished,
        retried=i.retried,
        statements=i.statements,
        lost=i.lost,
        reconnects=i.reconnects,
        disconnected=i.disconnected,
        client_cpu_ns=i.cpu_ns,
        mean_ns=h.mean,
        p50_ns=p50,
        p95_ns=p95,
        p99_ns=p99,
        p999_ns=p999,
        max_ns=h.max,
        lag_p99_ns=i.lag.percentile(99.0),
        failed_by_sqlstate=",".join(f"{code}:{n}" for code, n in sorted(failed.items())),
        client_run_delay_ns=i.run_delay_ns,
        wakeup_p99_ns=i.wakeup_delay.percentile(99.0),
        violations=i.violations,
        silent_from_ns=i.silent_from_ns,
        silent_ns=i.silent_ns,
    )


@dataclass
class Phases:
    """Data from which a trial's summary is computed: its intervals, added up by phase."""

    elapsed_ns: int
    measured: _core.Interval | None
    drain: _core.Interval | None
    #: Before the measurement.
    before: _core.Interval | None
    commands: list[_core.Command]
    #: The names of all scripts; the texts of the trial's own, of which the first has the number `first`.
    scripts: list[str]
    texts: list[str]
    first: int = 0


@dataclass(frozen=True)
class Sums:
    """Figures of a trial, and the histograms that its latencies are drawn from by tag of the log."""

    summary: TrialSummary
    histograms: dict[str, _core.Histogram]


def phases_of(result: _core.RunResult, texts: list[str]) -> Phases:
    """Return the phases of a whole run; `texts` are the texts of its scripts."""
    measured, drain, warmup = (result.phase(name) for name in ("measure", "drain", "warmup"))
    return Phases(result.elapsed_ns, measured, drain, warmup, result.commands, result.scripts, texts)


def add_up(phases: Phases, result: _core.RunResult) -> Sums | None:
    """Return the sums of a trial's phases; None if nothing was measured.

    Throughput covers the measurement. Latencies cover all transactions that began before its end, including those that
    the drain waited for. The result would look too good without the slowest ones.
    """
    measured, drain = phases.measured, phases.drain
    if measured is None or phases.elapsed_ns == 0:
        return None
    elapsed_s = phases.elapsed_ns / 1e9
    sql = [n for n, c in enumerate(phases.commands) if c.is_sql]
    latency, statements, scripts = measured.latency, _statement_latencies(measured, sql), measured.scripts
    counted: list[Any] = [measured]
    if drain is not None:
        counted.append(drain)
        latency.merge(drain.latency)
        for mine, theirs in zip(
            [*statements, *scripts], [*_statement_latencies(drain, sql), *drain.scripts], strict=True
        ):
            mine.merge(theirs)
    failed: dict[str, int] = {}
    for part in counted:
        for code, n in part.failed.items():
            failed[code] = failed.get(code, 0) + n

    def total(name: str) -> int:
        return sum(getattr(part, name) for part in counted)

    # What became due in the warm-up and ended in the measurement is counted with the measurement's ends.
    carried = phases.before.balance if phases.before is not None else 0
    names = phases.scripts
    titles = statement_names(phases)
    may_find_nothing = [bool(found) for found in _comments_above(phases, _NOTHING)]
    empty = [sum(counts) for counts in zip(*(part.command_empty for part in counted), strict=True)]
    summary = TrialSummary(
        tps=measured.committed / elapsed_s,
        qps=measured.statements / elapsed_s,
        elapsed_s=elapsed_s,
        scheduled=total("scheduled") + carried,
        committed=total("committed"),
        failed=failed,
        skipped=total("skipped"),
        unknown=total("unknown"),
        unfinished=total("unfinished"),
        lost=total("lost"),
        reconnects=total("reconnects"),
        client_cpu_share=measured.busiest_cpu_ns / phases.elapsed_ns,
        client_delay_share=measured.most_delayed_ns / phases.elapsed_ns,
        client_busy_share=measured.least_rest_ns / phases.elapsed_ns,
        wakeup_p99_ns=measured.wakeup_delay.percentile(99.0),
        driver=result.driver,
        violations=total("violations"),
        connect_s=result.connect_ns / 1e9,
        latency=hlog.latency_of(latency),
        statements=[
            StatementLatency(
                names[c.script],
                c.line,
                c.sql,
                hlog.latency_of(h),
                titles[n],
                empty[n],
                may_find_nothing[n],
                executions=h.count,
            )
            for n, c, h in zip(sql, (phases.commands[n] for n in sql), statements, strict=True)
        ],
        scripts=[ScriptLatency(names[phases.first + n], hlog.latency_of(h)) for n, h in enumerate(scripts)]
        if len(scripts) > 1
        else [],
    )
    histograms = {hlog.TRANSACTION: latency, **{hlog.statement(n): h for n, h in enumerate(statements)}}
    histograms |= {hlog.script(n): h for n, h in enumerate(scripts)} if len(scripts) > 1 else {}
    return Sums(summary, histograms)


#: Above a statement: how reports call it.
_NAME = re.compile(r"^\s*--\s*name:\s*(.+?)\s*$", re.IGNORECASE)


#: Above a statement: that it finds or changes no row is no mistake.
_NOTHING = re.compile(r"^\s*--\s*(may find nothing)\b", re.IGNORECASE)


def statement_names(phases: Phases) -> list[str]:
    """Return the name of each command from a comment above it, e.g. `-- name: place an order`.

    Most commands have no such comment, and their name is empty.
    """
    return _comments_above(phases, _NAME)


def _comments_above(phases: Phases, pattern: re.Pattern[str]) -> list[str]:
    """Return the text of the comment above each command, or an empty string if there is none."""
    found = []
    comments = [
        {n: m[1] for n, line in enumerate(text.splitlines(), 1) if (m := pattern.match(line))} for text in phases.texts
    ]
    before = (-1, 0)
    for c in phases.commands:
        after = before[1] if before[0] == c.script else 0
        # Several on a line, or in between, are of one statement: the last holds.
        named = [name for line, name in comments[c.script - phases.first].items() if after <= line < c.line]
        found.append(named[-1] if named else "")
        before = (c.script, c.line)
    return found
