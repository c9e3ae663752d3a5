"""A run in the form of sysbench 1.0, for people who have parsers of it: a line an interval, then the summary.

What sysbench has and pgdyno does not record, the fairness of threads, is left out. Lines come when the run is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pgdyno.model import UNCOUNTED, TrialRecord
from pgdyno.report.tpcc import kind_of
from pgdyno.store import hlog
from pgdyno.store.reading import RunData

_KINDS = ("read", "write", "other")


def text(data: RunData) -> str:
    """All finished trials, one after the other; a comment before each names it where there are several."""
    found = [t for t in data.trials if t.summary is not None]
    out = []
    for t in found:
        if len(found) > 1:
            out.append(f"# {t.plan.slug}")
        out += [*_heading(t), *_intervals(data, t), *_summary(data, t), ""]
    return "\n".join(out)


def _heading(t: TrialRecord) -> list[str]:
    """What parsers look for before the first interval."""
    threads = f"Number of threads: {t.plan.clients}"
    return ["Running the test with following options:", threads, "", "", "Threads started!", ""]


def _intervals(data: RunData, t: TrialRecord) -> Iterator[str]:
    assert t.summary is not None
    kinds = {hlog.statement(n): kind_of(s.text) for n, s in enumerate(t.summary.statements)}
    counts = data.counts_over_time(t.plan.number)
    rows = [r for r in data.series[t.plan.number] if r.phase not in UNCOUNTED and r.phase != "drain"]
    zero = rows[0].start_ns if rows else 0
    for r in rows:
        seconds = (r.end_ns - r.start_ns) / 1e9
        if seconds <= 0:
            continue
        by_kind = Counter[str]()
        for tag, n in counts.get(r.start_ns, {}).items():
            by_kind[kinds.get(tag, "")] += n
        read, write, other = (by_kind[k] / seconds for k in _KINDS)
        errors = r.failed + r.retried
        yield (
            f"[ {(r.end_ns - zero) / 1e9:.0f}s ] thds: {t.plan.clients} tps: {r.committed / seconds:4.2f} "
            f"qps: {read + write + other:4.2f} (r/w/o: {read:4.2f}/{write:4.2f}/{other:4.2f}) "
            f"lat (ms,95%): {r.p95_ns / 1e6:4.2f} err/s: {errors / seconds:4.2f} "
            f"reconn/s: {r.reconnects / seconds:4.2f}"
        )


def _summary(data: RunData, t: TrialRecord) -> Iterator[str]:
    assert t.summary is not None
    s, latency = t.summary, t.summary.latency
    of_kind = Counter[str]()
    for statement in s.statements:
        of_kind[kind_of(statement.text)] += statement.latency.count
    total, rows = sum(of_kind.values()), data.series[t.plan.number]
    errors = s.failed_total + sum(r.retried for r in rows if r.phase not in UNCOUNTED)
    buckets = data.buckets[t.plan.number]

    def rate(n: float) -> str:
        return f"({n / s.elapsed_s:.2f} per sec.)"

    yield ""
    yield "SQL statistics:"
    yield "    queries performed:"
    for kind in _KINDS:
        yield f"        {kind + ':':<32} {of_kind[kind]}"
    yield f"        {'total:':<32} {total}"
    for name, n in (
        ("transactions:", latency.count), ("queries:", total), ("ignored errors:", errors),
        ("reconnects:", s.reconnects),
    ):  # fmt: skip
        yield f"    {name:<36} {n:<6} {rate(n)}"
    yield ""
    yield "General statistics:"
    yield f"    {'total time:':<36} {s.elapsed_s:.4f}s"
    yield f"    {'total number of events:':<36} {latency.count}"
    yield ""
    yield "Latency (ms):"
    least = buckets[0][0] if buckets else 0
    for name, value in (
        ("min:", least), ("avg:", latency.mean_ns), ("max:", latency.max_ns), ("95th percentile:", latency.p95_ns),
        ("sum:", latency.mean_ns * latency.count),
    ):  # fmt: skip
        yield f"         {name:<34}{value / 1e6:10.2f}"
