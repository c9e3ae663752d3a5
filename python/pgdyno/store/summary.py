"""Summary of a trial from its log of histograms, in one reading: sums by tag, and confidence intervals.

The log is read line by line, so that the memory that is needed does not grow with the length of the trial.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pgdyno._core import Histogram
from pgdyno.analysis import steady
from pgdyno.analysis.quantiles import RESOLUTION, mean_half_width, quantile_band
from pgdyno.model import PERCENTILE_NAMES, UNCOUNTED, IntervalRow, Latency, TrialSummary
from pgdyno.store import hlog


@dataclass(frozen=True)
class Summarized:
    """Summary of a trial, and the histograms by tag that it is drawn from."""

    summary: TrialSummary
    merged: dict[str, Histogram]


def summarize(
    log: Path,
    rows: Sequence[IntervalRow],
    summary: TrialSummary,
    whole: Mapping[str, Histogram],
    *,
    dropped_until_ns: int = 0,
) -> Summarized:
    """Read a trial's log once; return the summary with latencies of what counts, and their confidence intervals.

    `rows` are all intervals of the trial. Those that begin before `dropped_until_ns` are a warm-up, which the latencies
    of `summary` still cover. `whole` holds the engine's sums over the measurement and the drain by tag, the warm-up
    included. A log that is damaged changes the sums of a warm-up only, and leaves confidence intervals out.
    """
    counted = [r for r in rows if r.phase not in UNCOUNTED]
    head = {r.start_ns for r in counted if r.start_ns < dropped_until_ns}
    kept = [r for r in counted if r.start_ns >= dropped_until_ns]
    merged: dict[str, Histogram] = {}
    rest = dict(whole)
    below: _Below | None = None
    for start, tag, h in hlog.intervals(log, [r.start_ns for r in counted]):
        if start in head:
            if tag in rest:
                # The engine's sum is left as it is.
                rest[tag] = rest[tag].without(h)
            continue
        merged.setdefault(tag, Histogram()).merge(h)
        if below is None:
            # The warm-up is at the beginning of the log: from here on the final percentiles are known.
            below = _Below(kept, {tag: hlog.latency_of(h) for tag, h in rest.items()}, summary)
        below.add(start, tag, h)

    def latency(tag: str, before: Latency) -> Latency:
        found = merged.get(tag)
        if found is None or not found.count:
            return before
        after = hlog.latency_of(found) if head else before
        return after if below is None else below.bounded(tag, after, found)

    return Summarized(
        replace(
            summary,
            latency=latency(hlog.TRANSACTION, summary.latency),
            statements=[
                replace(s, latency=latency(hlog.statement(i), s.latency)) for i, s in enumerate(summary.statements)
            ],
            scripts=[replace(s, latency=latency(hlog.script(i), s.latency)) for i, s in enumerate(summary.scripts)],
        ),
        merged,
    )


class _Below:
    """Numbers of values below the percentiles of a trial, by tag and interval."""

    def __init__(self, rows: Sequence[IntervalRow], latencies: Mapping[str, Latency], summary: TrialSummary) -> None:
        measured = [r.start_ns for r in rows if r.phase == "measure"]
        # What ended after the measurement, or of a duet in the other side's turn, counts with the interval before it.
        self._place = {r.start_ns: max(0, bisect_right(measured, r.start_ns) - 1) for r in rows}
        wanted = latencies if _is_bounded(rows, summary) else {}
        self._values = {tag: [getattr(x, name) for name in PERCENTILE_NAMES] for tag, x in wanted.items()}
        # Of each tag, a row an interval: count, sum, and the values up to each percentile.
        self._counts = {tag: np.zeros((len(measured), 2 + len(PERCENTILE_NAMES))) for tag in self._values}

    def add(self, start_ns: int, tag: str, h: Histogram) -> None:
        """Count the values of an interval."""
        if tag in self._values:
            self._counts[tag][self._place[start_ns]] += (h.count, h.mean * h.count, *h.count_up_to(self._values[tag]))

    def bounded(self, tag: str, latency: Latency, merged: Histogram) -> Latency:
        """Return the latency with the half-widths that can be told."""
        if tag not in self._counts:
            return latency
        return replace(latency, half_widths=_half_widths(self._counts[tag], merged))


def _is_bounded(rows: Sequence[IntervalRow], summary: TrialSummary) -> bool:
    """Return True if an interval may hold the latencies of these intervals.

    What grows or shrinks throughout would be another figure had the trial been longer, and what still waited at the end
    has no latency. The drain has only what waited longest, and says nothing of a trend.
    """
    if summary.skipped or summary.unfinished or summary.regimes is not None:
        return False
    means = [r.mean_ns for r in rows if r.phase == "measure" and r.committed]
    return any(r.phase == "measure" for r in rows) and steady.judge(means).steady is not False


def _half_widths(counts_by_interval: NDArray[np.float64], merged: Histogram) -> dict[str, float]:
    counts, sums, *below = counts_by_interval.T
    half = {"mean_ns": mean_half_width(counts, sums)}
    for name, up_to in zip(PERCENTILE_NAMES, below, strict=True):
        band = quantile_band(counts, up_to)
        if band is not None:
            low, high = (merged.percentile(part * 100) for part in band)
            # Between two equal values lies no more than the histogram's resolution.
            half[name] = max(high - low, RESOLUTION * high) / 2
    return {name: width for name, width in half.items() if width is not None}
