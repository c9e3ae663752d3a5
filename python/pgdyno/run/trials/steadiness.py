"""A trial's warm-up that reached into its measurement: found, left out of the figures, and said."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from statistics import median

from pgdyno.analysis import series, steady
from pgdyno.analysis.levels import level_change
from pgdyno.analysis.series import measured, tps_of
from pgdyno.model import IntervalRow, Regimes, TrialSummary

#: Parts of the usual throughput: from which on an interval is full, and below which it is empty.
_FULL, _EMPTY = 0.5, 0.1
#: A time without a commit matters if it is longer than this many latencies, seconds, and part of the measurement.
_LATENCIES, _LEAST_STALL_S, _STALL_PART = 20, 1.0, 0.02
#: A level lasts that long, seconds: what is shorter is jitter.
_LEAST_LEVEL_S = 2.0


@dataclass(frozen=True)
class TrimmedSummary:
    """A summary without the warm-up; its latencies still cover all intervals."""

    summary: TrialSummary
    #: Intervals that begin before this are a warm-up.
    dropped_until_ns: int = 0


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


def known_to(rows: list[IntervalRow], precision: float, *, open_loop: bool) -> float | None:
    """Return half the 95% interval of the throughput (of an open loop: of the latency) as a share of the mean.

    None means that no one figure holds to `precision`: the series has a trend of as much to either side or two levels,
    or it is too short to tell.
    """
    kept = measured(rows)
    judged = _judged(kept, open_loop)
    rest = kept[judged.drop :]
    if not judged.steady or (not open_loop and steady.has_trend(tps_of(rest), 2 * precision)):
        return None
    usual_ns = median(r.mean_ns for r in rest)
    # Of an open loop the throughput is the rate that was asked for: its latency is what is measured.
    estimate = series.mean_of([r.mean_ns for r in rest if r.committed] if open_loop else tps_of(rest))
    if regimes_of(rest, usual_ns, open_loop=open_loop) is not None:
        return None
    if estimate.half_width is None or not estimate.mean > 0:
        return None
    return estimate.half_width / estimate.mean


def without_warmup(
    summary: TrialSummary, rows: list[IntervalRow], *, open_loop: bool = False, may_drop: bool = True
) -> TrimmedSummary:
    """Return the summary with the findings of its time series, without a warm-up at the beginning.

    If the beginning was still warm-up, throughput covers only the time after it. Counts of outcomes still cover the
    whole measurement, so that no failure is left out. For an open loop, latency and backlog are judged,
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
        return TrimmedSummary(found)
    rest = kept[judged.drop :]
    # Of a duet, without the other side's turns between them.
    seconds = sum(r.end_ns - r.start_ns for r in rest) / 1e9
    cut = replace(
        found,
        tps=sum(r.committed for r in rest) / seconds,
        qps=sum(r.statements for r in rest) / seconds,
        elapsed_s=seconds,
        warmup_dropped_s=sum(r.end_ns - r.start_ns for r in head) / 1e9,
    )
    return TrimmedSummary(cut, rest[0].start_ns)
