"""A trial's warm-up that reached into its measurement: found, left out of the figures, and said."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno._core import Histogram
from pgdyno.analysis import series, steady
from pgdyno.model import IntervalRow, StatementLatency, TrialSummary
from pgdyno.store import hlog
from pgdyno.store.reading import latency_of

#: A last interval that is shorter than this part of the others tells of itself more than of the server.
_WHOLE = 0.5


def measured(rows: list[IntervalRow]) -> list[IntervalRow]:
    """The intervals of the measurement, without a stump at its end."""
    found = [r for r in rows if r.phase == "measure" and r.end_ns > r.start_ns]
    longest = max((r.end_ns - r.start_ns for r in found), default=0)
    return [r for r in found if r.end_ns - r.start_ns > _WHOLE * longest]


def tps_of(rows: list[IntervalRow]) -> list[float]:
    """Transactions per second, of each interval."""
    return [r.committed / ((r.end_ns - r.start_ns) / 1e9) for r in rows]


@dataclass(frozen=True)
class Kept:
    """A summary, and what it stands on where a warm-up was left out."""

    summary: TrialSummary
    dropped_until_ns: int = 0
    #: Histograms by tag, without the warm-up; None: nothing was left out.
    merged: dict[str, Histogram] | None = None


def backlog_of(rows: list[IntervalRow]) -> list[int]:
    """What was due and not done at the end of each interval; of transactions that became due within `rows`."""
    ended = (r.committed + r.failed + r.skipped + r.unknown + r.unfinished for r in rows)
    return list(itertools.accumulate(r.scheduled - n for r, n in zip(rows, ended, strict=True)))


def _judged(kept: list[IntervalRow], open_loop: bool) -> steady.Steadiness:
    if not open_loop:
        return steady.judge(tps_of(kept))
    backlog = backlog_of(kept)
    # An interval in which nothing was due says nothing; one in which nothing ended, as in a stall, counts as long as it
    # is.
    counted = [n for n, r in enumerate(kept) if r.committed or backlog[n] > 0]
    latency = [kept[n].mean_ns if kept[n].committed else float(kept[n].end_ns - kept[n].start_ns) for n in counted]
    arrived = [float(kept[n].scheduled) for n in counted]
    judged = steady.judge_open_loop(latency, arrived, [float(backlog[n]) for n in counted])
    return steady.Steadiness(counted[judged.drop] if judged.drop else 0, judged.steady, judged.drift)


def without_warmup(summary: TrialSummary, rows: list[IntervalRow], log: Path, *, open_loop: bool = False) -> Kept:
    """The summary with what its series says of itself; where the beginning was still warm-up, throughput and latencies
    are those of the rest. Counts of outcomes stay those of the whole measurement: nothing that failed is left out. Of
    an open loop latency and backlog are judged: its throughput is what was asked for.
    """
    kept = measured(rows)
    tps = tps_of(kept)
    judged = _judged(kept, open_loop)
    head = kept[: judged.drop]
    if any(r.failed or r.lost or r.unknown or r.skipped for r in head):
        # What went wrong is no warm-up: it stays, and the interval is of all that the figure is of.
        judged = steady.Steadiness(0, judged.steady, judged.drift)
        head = []
    estimate = series.mean_of(tps[judged.drop :])
    # What rises or falls throughout would be another figure had the trial been longer: no interval holds it.
    half = None if judged.steady is False else estimate.half_width
    found = replace(summary, steady=judged.steady, drift=judged.drift, tps_half_width=half)
    if not head:
        return Kept(found)
    rest = kept[judged.drop :]
    seconds = (rest[-1].end_ns - rest[0].start_ns) / 1e9
    starts = {r.start_ns for r in rows if r.start_ns >= rest[0].start_ns and r.phase != "warmup"}
    merged = hlog.read_merged(log, starts)
    latency = merged.get(hlog.TRANSACTION)
    statements = [
        StatementLatency(s.script, s.line, s.text, latency_of(h) if (h := merged.get(hlog.statement(i))) else s.latency)
        for i, s in enumerate(summary.statements)
    ]
    cut = replace(
        found,
        tps=sum(r.committed for r in rest) / seconds,
        qps=sum(r.statements for r in rest) / seconds,
        elapsed_s=seconds,
        latency=latency_of(latency) if latency else summary.latency,
        statements=statements,
        warmup_dropped_s=(rest[0].start_ns - kept[0].start_ns) / 1e9,
    )
    return Kept(cut, rest[0].start_ns, merged)
