"""Confidence intervals of a trial's latencies, from its own intervals in the log of histograms."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pgdyno._core import Histogram
from pgdyno.analysis import steady
from pgdyno.analysis.quantiles import RESOLUTION, mean_half_width, quantile_band
from pgdyno.model import PERCENTILE_NAMES, IntervalRow, Latency, TrialSummary
from pgdyno.store import hlog


def with_half_widths(
    summary: TrialSummary, rows: Sequence[IntervalRow], log: Path, merged: dict[str, Histogram]
) -> TrialSummary:
    """Return the summary with confidence intervals of its latencies.

    `rows` are the intervals behind the summary, and `merged` holds their histograms by tag.
    """
    measured = [r.start_ns for r in rows if r.phase == "measure"]
    waiting = bool(summary.skipped or summary.unfinished)
    # What grows or shrinks throughout would be another figure had the trial been longer: no interval holds it.
    # The drain has only what waited longest.
    latency = [r.mean_ns for r in rows if r.phase == "measure" and r.committed]
    if not measured or waiting or summary.regimes is not None or steady.judge(latency).steady is False:
        return summary
    # What ended after the measurement, or of a duet in the other side's turn, counts with the interval before it.
    place = {r.start_ns: max(0, bisect_right(measured, r.start_ns) - 1) for r in rows}
    wanted = {hlog.TRANSACTION: summary.latency}
    wanted |= {hlog.statement(i): s.latency for i, s in enumerate(summary.statements)}
    wanted |= {hlog.script(i): s.latency for i, s in enumerate(summary.scripts)}
    # Of each tag, a row an interval: count, sum, and the values up to each percentile.
    counted = {tag: np.zeros((len(measured), 2 + len(PERCENTILE_NAMES))) for tag in wanted}
    for start, tag, h in hlog.intervals(log, place):
        if tag in wanted:
            up_to = h.count_up_to([getattr(wanted[tag], name) for name in PERCENTILE_NAMES])
            counted[tag][place[start]] += (h.count, h.mean * h.count, *up_to)
    latencies = {tag: _sure(latency, counted[tag], merged.get(tag)) for tag, latency in wanted.items()}
    return replace(
        summary,
        latency=latencies[hlog.TRANSACTION],
        statements=[replace(s, latency=latencies[hlog.statement(i)]) for i, s in enumerate(summary.statements)],
        scripts=[replace(s, latency=latencies[hlog.script(i)]) for i, s in enumerate(summary.scripts)],
    )


def _sure(latency: Latency, counted: NDArray[np.float64], merged: Histogram | None) -> Latency:
    if merged is None or not merged.count:
        return latency
    counts, sums, *below = counted.T
    half = {"mean_ns": mean_half_width(counts, sums)}
    for name, up_to in zip(PERCENTILE_NAMES, below, strict=True):
        band = quantile_band(counts, up_to)
        if band is not None:
            low, high = (merged.percentile(part * 100) for part in band)
            # Between two equal values lies no more than the histogram's resolution.
            half[name] = max(high - low, RESOLUTION * high) / 2
    return replace(latency, half_widths={name: width for name, width in half.items() if width is not None})
