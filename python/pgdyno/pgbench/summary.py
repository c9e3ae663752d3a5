"""Output of pgbench: progress lines, and the summary in pgbench's order and format."""

from __future__ import annotations

from pgdyno import _core
from pgdyno.pgbench.figures import CommandFigures, Figures, ScriptFigures, client_bound, mean_and_deviation
from pgdyno.pgbench.options import Options

SERIALIZATION, DEADLOCK = "40001", "40P01"


def _count(failed: dict[str, int]) -> tuple[int, int, int]:
    """Count serialization failures, deadlocks, and all other failures."""
    serialization, deadlock = failed.get(SERIALIZATION, 0), failed.get(DEADLOCK, 0)
    return serialization, deadlock, sum(failed.values()) - serialization - deadlock


def progress_line(o: Options, i: _core.Interval, start_ns: int) -> str:
    """Return the progress line of one interval."""
    seconds = (i.end_ns - i.start_ns) / 1e9
    when = f"{(start_ns + i.end_ns) / 1e9:.3f} s" if o.progress_timestamp else f"{i.end_ns / 1e9:.1f} s"
    mean, deviation = mean_and_deviation(i.latency)
    line = (
        f"progress: {when}, {i.committed / seconds:.1f} tps, lat {mean:.3f} ms stddev {deviation:.3f}, "
        f"{sum(i.failed.values())} failed"
    )
    if o.rate:
        line += f", lag {i.lag.mean / 1e6:.3f} ms"
        if o.latency_limit_ms:
            line += f", {i.skipped} skipped"
    if o.max_tries != 1:
        line += f", {i.retried} retried, {i.retries} retries"
    return f"{line}\n"


def _share(n: int, of: int) -> str:
    return f"{n} ({100.0 * n / of:.3f}%)"


def _simple_stats(prefix: str, h: _core.Histogram) -> list[str]:
    if not h.count:
        return []
    mean, deviation = mean_and_deviation(h)
    return [f"{prefix} average = {mean:.3f} ms", f"{prefix} stddev = {deviation:.3f} ms"]


def _percentiles(o: Options, prefix: str, h: _core.Histogram) -> list[str]:
    if not h.count:
        return []
    return [f"{prefix} p{p:g} = {h.percentile(p) / 1e6:.3f} ms" for p in o.percentiles]


def _failure_kinds(o: Options, prefix: str, failed: dict[str, int], total: int) -> list[str]:
    serialization, deadlock, other = _count(failed)
    lines = [
        f"{prefix}number of serialization failures: {_share(serialization, total)}",
        f"{prefix}number of deadlock failures: {_share(deadlock, total)}",
    ]
    if o.continue_on_error or o.reconnect:
        lines.append(f"{prefix}number of other failures: {_share(other, total)}")
    return lines


def text(o: Options, f: Figures) -> str:
    """Return the text of the summary."""
    single = o.scripts[0].description if len(o.scripts) == 1 else "multiple scripts"
    lines = [f"transaction type: {single}", f"scaling factor: {f.scale}"]
    if f.partition_method:
        lines += [f"partition method: {f.partition_method}", f"partitions: {f.partitions}"]
    lines += [
        f"query mode: {o.protocol}",
        f"number of clients: {o.clients}",
        f"number of threads: {f.threads}",
    ]
    if o.max_tries:
        lines.append(f"maximum number of tries: {o.max_tries}")
    if o.duration:
        lines += [f"duration: {o.duration} s", f"number of transactions actually processed: {f.committed}"]
    else:
        lines += [
            f"number of transactions per client: {o.transactions}",
            f"number of transactions actually processed: {f.committed}/{o.transactions * o.clients}",
        ]
    if f.total > 0:
        lines += _totals(o, f) + _per_script(o, f)
    return "".join(f"{line}\n" for line in lines)


def _outcomes(o: Options, prefix: str, f: Figures | ScriptFigures) -> list[str]:
    """Return the lines on failed, retried and skipped transactions, of the whole run or of a script."""
    lines = [f"{prefix}number of failed transactions: {_share(sum(f.failed.values()), f.total)}"]
    if o.failures_detailed:
        lines += _failure_kinds(o, prefix, f.failed, f.total)
    if o.max_tries != 1:
        lines += [
            f"{prefix}number of transactions retried: {_share(f.retried, f.total)}",
            f"{prefix}total number of retries: {f.retries}",
        ]
    if o.rate and o.latency_limit_ms:
        lines.append(f"{prefix}number of transactions skipped: {_share(f.skipped, f.total)}")
    return lines


def _totals(o: Options, f: Figures) -> list[str]:
    lines = _outcomes(o, "", f)
    if o.latency_limit_ms:
        share = 100.0 * f.late / f.committed if f.committed else 0.0
        limit = int(o.latency_limit_ms * 1000) / 1000
        lines.append(
            f"number of transactions above the {limit:.1f} ms latency limit: {f.late}/{f.committed} ({share:.3f}%)"
        )
    if o.reconnect:
        lines += [
            f"number of connections lost: {f.lost} ({f.reconnects} made again)",
            f"number of transactions with unknown outcome: {f.unknown}",
        ]
    if o.detailed:
        lines += _simple_stats("latency", f.latency)
    else:
        mean = 1000.0 * f.elapsed_s * o.clients / f.total
        lines.append(f"latency average = {mean:.3f} ms{' (including failures)' if f.failures else ''}")
    lines += _percentiles(o, "latency", f.latency)
    # Not at the end: scripts take the last line for the result.
    bound = client_bound(f)
    if bound:
        lines.append(f"client-bound: {bound}")
    if o.rate:
        lag = f.lag.mean / 1e6
        lines.append(f"rate limit schedule lag: avg {lag:.3f} (max {f.lag.max / 1e6:.3f}) ms")
    if o.connect:
        done = f.committed + f.failures
        average = f.connections.sums[0] / done / 1e6 if done else 0.0
        lines += [
            f"average connection time = {average:.3f} ms",
            f"tps = {f.tps:.6f} (including reconnection times)",
        ]
    else:
        lines += [
            f"initial connection time = {f.connect_s * 1e3:.3f} ms",
            f"tps = {f.tps:.6f} (without initial connection time)",
        ]
    return lines


def _per_script(o: Options, f: Figures) -> list[str]:
    lines = []
    several = len(o.scripts) > 1
    weights = sum(s.weight for s in f.scripts)
    for n, s in enumerate(f.scripts):
        if several:
            lines += [
                f"SQL script {n + 1}: {s.description}",
                f" - weight: {s.weight} (targets {100.0 * s.weight / weights:.1f}% of total)",
                f" - {s.total} transactions ({100.0 * s.total / f.total:.1f}% of total)",
            ]
            if s.total:
                lines += _script_totals(o, f, s)
            lines += _simple_stats(" - latency", s.latency)
            lines += _percentiles(o, " - latency", s.latency)
        if o.per_command:
            lines += _commands(o, [c for c in f.commands if c.script == n], " - " if several else "")
    return lines


def _script_totals(o: Options, f: Figures, s: ScriptFigures) -> list[str]:
    processed = f" - number of transactions actually processed: {s.committed} (tps = {s.committed / f.elapsed_s:.6f})"
    return [processed, *_outcomes(o, " - ", s)]


def _commands(o: Options, commands: list[CommandFigures], prefix: str) -> list[str]:
    columns = "".join(f", p{p:g}" for p in o.percentiles)
    figures = f" (average{columns})" if columns else ""
    what = " and failures" if o.max_tries == 1 else ", failures and retries"
    lines = [f"{prefix}statement latencies in milliseconds{figures}{what}:"]
    for c in commands:
        cells = [f"{mean_and_deviation(c.latency)[0]:11.3f}"]
        cells += [f"{c.latency.percentile(p) / 1e6:11.3f}" for p in o.percentiles]
        errors = f"{c.failures:10d}" if o.max_tries == 1 else f"{c.failures:10d} {c.retries:10d}"
        lines.append(f"   {' '.join(cells)}  {errors} {c.text}")
    return lines
