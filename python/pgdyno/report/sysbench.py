"""A run in the form of sysbench 1.0, for people who have parsers of it: a line an interval, then the summary.

What sysbench has and pgdyno does not record, the fairness of threads, is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pgdyno.model import UNCOUNTED, IntervalRow, TrialRecord
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
            out.append(title(t.plan.slug))
        out += [*heading(t.plan.clients), *_intervals(data, t)]
        rows, buckets = data.series[t.plan.number], data.buckets[t.plan.number]
        retried = sum(r.retried for r in rows if r.phase not in UNCOUNTED)
        out += [*summary(t, buckets[0][0] if buckets else 0, retried), ""]
    return "\n".join(out)


def title(slug: str) -> str:
    """Return the comment line that names a trial."""
    return f"# {slug}"


def heading(clients: int) -> list[str]:
    """Return the lines that parsers expect before the first interval."""
    threads = f"Number of threads: {clients}"
    return ["Running the test with following options:", threads, "", "", "Threads started!", ""]


def has_line(row: IntervalRow) -> bool:
    """Return True if an interval belongs to the measurement."""
    return row.phase not in UNCOUNTED and row.phase != "drain"


def kinds_of(statements: Sequence[str]) -> dict[str, str]:
    """Return the kind of each statement, by tag of hlog: "read", "write" or "other"."""
    return {hlog.statement(n): kind_of(sql) for n, sql in enumerate(statements)}


def interval(clients: int, row: IntervalRow, zero_ns: int, counts: Mapping[str, int], kinds: Mapping[str, str]) -> str:
    """Return the output line of an interval of any length.

    `counts` holds the number of recorded values of each tag.
    """
    seconds = (row.end_ns - row.start_ns) / 1e9
    by_kind = Counter[str]()
    for tag, n in counts.items():
        by_kind[kinds.get(tag, "")] += n
    read, write, other = (by_kind[k] / seconds for k in _KINDS)
    errors = row.failed + row.retried
    return (
        f"[ {(row.end_ns - zero_ns) / 1e9:.0f}s ] thds: {clients} tps: {row.committed / seconds:4.2f} "
        f"qps: {read + write + other:4.2f} (r/w/o: {read:4.2f}/{write:4.2f}/{other:4.2f}) "
        f"lat (ms,95%): {row.p95_ns / 1e6:4.2f} err/s: {errors / seconds:4.2f} "
        f"reconn/s: {row.reconnects / seconds:4.2f}"
    )


def _intervals(data: RunData, t: TrialRecord) -> Iterator[str]:
    assert t.summary is not None
    kinds = kinds_of([s.text for s in t.summary.statements])
    counts = data.counts_over_time(t.plan.number)
    rows = [r for r in data.series[t.plan.number] if has_line(r)]
    for r in rows:
        if r.end_ns > r.start_ns:
            yield interval(t.plan.clients, r, rows[0].start_ns, counts.get(r.start_ns, {}), kinds)


def summary(t: TrialRecord, least_ns: int, retried: int) -> Iterator[str]:
    """Yield the lines after the intervals of a finished trial.

    `least_ns` is the latency of its shortest transaction.
    """
    assert t.summary is not None
    s, latency = t.summary, t.summary.latency
    of_kind = Counter[str]()
    for statement in s.statements:
        of_kind[kind_of(statement.text)] += statement.latency.count
    total = sum(of_kind.values())

    def rate(n: float) -> str:
        return f"({n / s.elapsed_s:.2f} per sec.)"

    yield ""
    yield "SQL statistics:"
    yield "    queries performed:"
    for kind in _KINDS:
        yield f"        {kind + ':':<32} {of_kind[kind]}"
    yield f"        {'total:':<32} {total}"
    for name, n in (
        ("transactions:", latency.count), ("queries:", total), ("ignored errors:", s.failed_total + retried),
        ("reconnects:", s.reconnects),
    ):  # fmt: skip
        yield f"    {name:<36} {n:<6} {rate(n)}"
    yield ""
    yield "General statistics:"
    yield f"    {'total time:':<36} {s.elapsed_s:.4f}s"
    yield f"    {'total number of events:':<36} {latency.count}"
    yield ""
    yield "Latency (ms):"
    for name, value in (
        ("min:", least_ns), ("avg:", latency.mean_ns), ("max:", latency.max_ns), ("95th percentile:", latency.p95_ns),
        ("sum:", latency.mean_ns * latency.count),
    ):  # fmt: skip
        yield f"         {name:<34}{value / 1e6:10.2f}"
