"""A trial's warm-up that reached into its measurement: found, left out of the figures, and said."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from pgdyno._core import Histogram
from pgdyno.analysis import series, steady
from pgdyno.analysis.levels import level_change
from pgdyno.analysis.series import measured, tps_of
from pgdyno.model import UNCOUNTED, IntervalRow, Latency, Regimes, TrialSummary
from pgdyno.store import hlog
from pgdyno.store.reading import latency_of

#: Parts of the usual throughput: from which on an interval is full, and below which it is empty.
_FULL, _EMPTY = 0.5, 0.1
#: A time without a commit matters if it is longer than this many latencies, seconds, and part of the measurement.
_LATENCIES, _LEAST_STALL_S, _STALL_PART = 20, 1.0, 0.02
#: A level lasts that long, seconds: what is shorter is jitter.
_LEAST_LEVEL_S = 2.0


@dataclass(frozen=True)
class Kept:
    """A summary, and what it stands on where a warm-up was left out."""

    summary: TrialSummary
    dropped_until_ns: int = 0
    #: Histograms by tag, without the warm-up; None: nothing was left out.
    merged: dict[str, Histogram] | None = None


def backlog_of(rows: list[IntervalRow]) -> list[int]:
    """Return the backlog at the end of each interval: transactions due and not done.

    Only transactions that became due within `rows` are counted.
    """
    ended = (r.committed + r.failed + r.skipped + r.unknown + r.unfinished for r in rows)
    return list(itertools.accumulate(r.scheduled - n for r, n in zip(rows, ended, strict=True)))


def _judged(kept: list[IntervalRow], open_loop: bool) -> steady.Steadiness:
    if not open_loop:
        tps = tps_of(kept)
        judged = steady.judge(tps)
        change = level_change(tps)
        falls = change is not None and change.after < change.before
        if judged.drop and (falls or _stalls(tps[: judged.drop], median(tps[judged.drop :]))):
            return steady.Steadiness(0, judged.steady, judged.drift)
        return judged
    backlog = backlog_of(kept)
    # An interval in which nothing was due says nothing; one in which nothing ended, as in a stall, counts as long as it
    # is.
    counted = [n for n, r in enumerate(kept) if r.committed or backlog[n] > 0]
    latency = [kept[n].mean_ns if kept[n].committed else float(kept[n].end_ns - kept[n].start_ns) for n in counted]
    arrived = [float(kept[n].scheduled) for n in counted]
    judged = steady.judge_open_loop(latency, arrived, [float(backlog[n]) for n in counted])
    return steady.Steadiness(counted[judged.drop] if judged.drop else 0, judged.steady, judged.drift)


def _stalls(head: list[float], usual: float) -> bool:
    """Return True if throughput collapses after intervals at the usual level.

    Such a beginning is no warm-up, because throughput does not fall during a warm-up.
    """
    full = next((n for n, tps in enumerate(head) if tps > _FULL * usual), len(head))
    return any(tps < _EMPTY * usual for tps in head[full:])


def regimes_of(kept: list[IntervalRow], latency_ns: float, *, open_loop: bool = False) -> Regimes | None:
    """Return what keeps one figure from describing the throughput of these intervals; None: nothing that is seen.

    `latency_ns`: what a transaction usually takes.
    """
    if not kept:
        return None
    zero = kept[0].start_ns
    change = level_change(tps_of(kept))
    # Of an open loop nothing is committed where nothing is due.
    backlog = backlog_of(kept) if open_loop else [1] * len(kept)
    stalled_ns = stalled_at = 0
    for idle, of in itertools.groupby(range(len(kept)), lambda n: not kept[n].committed and backlog[n] > 0):
        rows = [kept[n] for n in of]
        if idle and (length := sum(r.end_ns - r.start_ns for r in rows)) > stalled_ns:
            stalled_ns, stalled_at = length, rows[0].start_ns - zero
    seconds = sum(r.end_ns - r.start_ns for r in kept) / 1e9
    if stalled_ns <= max(_LATENCIES * latency_ns, _LEAST_STALL_S * 1e9 - 1, _STALL_PART * seconds * 1e9):
        stalled_ns = stalled_at = 0
    if change is None or (stalled_ns and not min(change.before, change.after)):
        return Regimes(stall_s=stalled_ns / 1e9, stall_at_s=stalled_at / 1e9) if stalled_ns else None
    at_s = sum(r.end_ns - r.start_ns for r in kept[: change.index]) / 1e9
    if min(at_s, seconds - at_s) < _LEAST_LEVEL_S:
        return None
    return Regimes(at_s, change.before, change.after, stalled_ns / 1e9, stalled_at / 1e9)


def without_warmup(
    summary: TrialSummary, rows: list[IntervalRow], log: Path, *, open_loop: bool = False, may_drop: bool = True
) -> Kept:
    """Return the summary with the findings of its time series, without a warm-up at the beginning.

    If the beginning was still warm-up, throughput and latencies cover only the time after it. Counts of outcomes still
    cover the whole measurement, so that no failure is left out. For an open loop, latency and backlog are judged,
    because its throughput is the requested rate.
    """
    kept = measured(rows)
    tps = tps_of(kept)
    judged = _judged(kept, open_loop)
    head = kept[: judged.drop]
    if any(r.failed or r.lost or r.unknown or r.skipped for r in head):
        # What went wrong is no warm-up: it stays, and the interval is of all that the figure is of.
        judged = steady.Steadiness(0, judged.steady, judged.drift)
        head = []
    if not may_drop:
        # Of a duet: what is left out of one side would be missing in the other's pairs.
        judged = steady.Steadiness(0, judged.steady, judged.drift)
        head = []
    estimate = series.mean_of(tps[judged.drop :])
    # What rises or falls throughout would be another figure had the trial been longer: no interval holds it.
    half = None if judged.steady is False else estimate.half_width
    regimes = regimes_of(kept[judged.drop :], summary.latency.p50_ns, open_loop=open_loop)
    half = None if regimes is not None else half
    found = replace(summary, steady=judged.steady, drift=judged.drift, regimes=regimes, tps_half_width=half)
    if not head:
        return Kept(found)
    rest = kept[judged.drop :]
    # Of a duet, without the other side's turns between them.
    seconds = sum(r.end_ns - r.start_ns for r in rest) / 1e9
    starts = {r.start_ns for r in rows if r.start_ns >= rest[0].start_ns and r.phase not in UNCOUNTED}
    merged = hlog.read_merged(log, starts)
    latency = merged.get(hlog.TRANSACTION)

    def rest_of(tag: str, latency: Latency) -> Latency:
        return latency_of(h) if (h := merged.get(tag)) else latency

    cut = replace(
        found,
        tps=sum(r.committed for r in rest) / seconds,
        qps=sum(r.statements for r in rest) / seconds,
        elapsed_s=seconds,
        latency=latency_of(latency) if latency else summary.latency,
        statements=[
            replace(s, latency=rest_of(hlog.statement(i), s.latency)) for i, s in enumerate(summary.statements)
        ],
        scripts=[replace(s, latency=rest_of(hlog.script(i), s.latency)) for i, s in enumerate(summary.scripts)],
        warmup_dropped_s=sum(r.end_ns - r.start_ns for r in head) / 1e9,
    )
    return Kept(cut, rest[0].start_ns, merged)
