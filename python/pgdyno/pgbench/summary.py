"""What a benchmark came to: progress lines, the summary in pgbench's order and format, and all of it as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pgdyno import _core
from pgdyno.pgbench.options import DEFAULT_PERCENTILES, Options

SERIALIZATION, DEADLOCK = "40001", "40P01"
#: Share of a thread's time on the CPU above which the client counts as the bottleneck.
CLIENT_BOUND = 0.9


def _count(failed: dict[str, int]) -> tuple[int, int, int]:
    """Serialization failures, deadlocks, and all others."""
    serialization, deadlock = failed.get(SERIALIZATION, 0), failed.get(DEADLOCK, 0)
    return serialization, deadlock, sum(failed.values()) - serialization - deadlock


def _mean_and_deviation(h: _core.Histogram) -> tuple[float, float]:
    """In milliseconds."""
    if not h.count:
        return 0.0, 0.0
    total, squares = h.sums
    mean = total / h.count
    return mean / 1e6, math.sqrt(max(0.0, squares / h.count - mean * mean)) / 1e6


def progress_line(o: Options, i: _core.Interval, start_ns: int) -> str:
    """The line of one interval."""
    seconds = (i.end_ns - i.start_ns) / 1e9
    when = f"{(start_ns + i.end_ns) / 1e9:.3f} s" if o.progress_timestamp else f"{i.end_ns / 1e9:.1f} s"
    mean, deviation = _mean_and_deviation(i.latency)
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


@dataclass
class ScriptFigures:
    """One script's share."""

    description: str
    weight: int
    committed: int
    failed: dict[str, int]
    skipped: int
    retried: int
    retries: int
    latency: _core.Histogram

    @property
    def total(self) -> int:
        """Transactions of any end."""
        return self.committed + self.skipped + sum(self.failed.values())


@dataclass
class CommandFigures:
    """One command."""

    text: str
    script: int
    latency: _core.Histogram
    failures: int
    retries: int


@dataclass
class Figures:
    """All figures of a run."""

    scale: int
    threads: int
    partition_method: str
    partitions: int
    elapsed_s: float
    connect_s: float
    committed: int
    failed: dict[str, int]
    skipped: int
    retried: int
    retries: int
    late: int
    aborted: int
    lost: int
    reconnects: int
    unknown: int
    latency: _core.Histogram
    lag: _core.Histogram
    connections: _core.Histogram
    #: Share of a CPU that the busiest thread used.
    busiest: float
    scripts: list[ScriptFigures]
    commands: list[CommandFigures]

    @property
    def failures(self) -> int:
        """Of any kind."""
        return sum(self.failed.values())

    @property
    def total(self) -> int:
        """Transactions of any end."""
        return self.committed + self.skipped + self.failures

    @property
    def tps(self) -> float:
        """Committed transactions per second."""
        return self.committed / self.elapsed_s if self.elapsed_s else 0.0

    @classmethod
    def of(
        cls, o: Options, scale: int, threads: int, partition_method: str, partitions: int, result: _core.RunResult
    ) -> Figures:
        """The figures of what the engine measured, to the end of its last transaction."""
        parts = [p for p in (result.phase("measure"), result.phase("drain")) if p is not None]
        if not parts:
            raise ValueError("the run ended before it began")
        whole = parts[0].merged(parts[1]) if len(parts) > 1 else parts[0]
        errors = {n: (failures, retries) for n, failures, retries in whole.command_errors}
        scripts = [
            ScriptFigures(s.description, s.weight, committed, failed, skipped, retried, retries, h)
            for s, (committed, failed, skipped, retried, retries), h in zip(
                o.scripts, whole.by_script, whole.scripts, strict=True
            )
        ]
        commands = [
            CommandFigures(c.text, c.script, h, *errors.get(n, (0, 0)))
            for n, (c, h) in enumerate(zip(result.commands, whole.command_latency, strict=True))
        ]
        elapsed = max(p.end_ns for p in parts) / 1e9
        return cls(
            scale, threads, partition_method, partitions, elapsed, result.connect_ns / 1e9, whole.committed,
            whole.failed, whole.skipped, whole.retried, whole.retries, whole.late, whole.aborted, whole.lost,
            whole.reconnects, whole.unknown, whole.latency, whole.lag, whole.connect,
            whole.busiest_cpu_ns / 1e9 / elapsed if elapsed else 0.0, scripts, commands,
        )  # fmt: skip


def _share(n: int, of: int) -> str:
    return f"{n} ({100.0 * n / of:.3f}%)"


def _simple_stats(prefix: str, h: _core.Histogram) -> list[str]:
    if not h.count:
        return []
    mean, deviation = _mean_and_deviation(h)
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
    """The summary."""
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
        lines += _totals(o, f) + _by_script(o, f)
    return "".join(f"{line}\n" for line in lines)


def _totals(o: Options, f: Figures) -> list[str]:
    lines = [f"number of failed transactions: {_share(f.failures, f.total)}"]
    if o.failures_detailed:
        lines += _failure_kinds(o, "", f.failed, f.total)
    if o.max_tries != 1:
        lines += [
            f"number of transactions retried: {_share(f.retried, f.total)}",
            f"total number of retries: {f.retries}",
        ]
    if o.rate and o.latency_limit_ms:
        lines.append(f"number of transactions skipped: {_share(f.skipped, f.total)}")
    if o.latency_limit_ms:
        share = 100.0 * f.late / f.committed if f.committed else 0.0
        limit = int(o.latency_limit_ms * 1000) / 1000
        lines.append(
            f"number of transactions above the {limit:.1f} ms latency limit: {f.late}/{f.committed} ({share:.3f}%)"
        )
    if f.lost or f.unknown:
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
    bound = client_bound(o, f)
    if bound:
        lines.append(f"client-bound: {bound}")
    return lines


def client_bound(o: Options, f: Figures) -> str:
    """Why this machine, not the server, may be what limits; empty when it does not."""
    more = f"give more threads (-j {f.threads + 1}) or CPUs, or drive from another machine"
    if f.busiest > CLIENT_BOUND:
        return f"the busiest thread used {100 * f.busiest:.0f}% of a CPU: tps may be limited by the client; {more}"
    if o.rate and f.latency.count:
        # Begun late although the connections were free most of the time: the thread was not there in time.
        lag, service = f.lag.mean, max(0.0, f.latency.mean - f.lag.mean)
        used = f.tps * service / 1e9 / o.clients
        if lag > 1e6 and lag > 2 * service and used < 0.5:
            free = f"clients were free {100 * (1 - used):.0f}% of the time"
            return f"transactions began {lag / 1e6:.1f} ms late while {free}; {more}"
    return ""


def _by_script(o: Options, f: Figures) -> list[str]:
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
    lines = [
        f" - number of transactions actually processed: {s.committed} (tps = {s.committed / f.elapsed_s:.6f})",
        f" - number of failed transactions: {_share(sum(s.failed.values()), s.total)}",
    ]
    if o.failures_detailed:
        lines += _failure_kinds(o, " - ", s.failed, s.total)
    if o.max_tries != 1:
        lines += [
            f" - number of transactions retried: {_share(s.retried, s.total)}",
            f" - total number of retries: {s.retries}",
        ]
    if o.rate and o.latency_limit_ms:
        lines.append(f" - number of transactions skipped: {_share(s.skipped, s.total)}")
    return lines


def _commands(o: Options, commands: list[CommandFigures], prefix: str) -> list[str]:
    columns = "".join(f", p{p:g}" for p in o.percentiles)
    figures = f" (average{columns})" if columns else ""
    what = " and failures" if o.max_tries == 1 else ", failures and retries"
    lines = [f"{prefix}statement latencies in milliseconds{figures}{what}:"]
    for c in commands:
        cells = [f"{_mean_and_deviation(c.latency)[0]:11.3f}"]
        cells += [f"{c.latency.percentile(p) / 1e6:11.3f}" for p in o.percentiles]
        errors = f"{c.failures:10d}" if o.max_tries == 1 else f"{c.failures:10d} {c.retries:10d}"
        lines.append(f"   {' '.join(cells)}  {errors} {c.text}")
    return lines


def latency_document(h: _core.Histogram) -> dict[str, Any]:
    """A distribution, in milliseconds."""
    mean, deviation = _mean_and_deviation(h)
    return {
        "count": h.count,
        "mean_ms": mean,
        "stddev_ms": deviation,
        "min_ms": h.min / 1e6,
        "max_ms": h.max / 1e6,
        "percentiles_ms": {f"{p:g}": h.percentile(p) / 1e6 for p in (*DEFAULT_PERCENTILES, 99.99)},
    }


def series_row(i: _core.Interval) -> dict[str, Any]:
    """One interval of the time series."""
    seconds = (i.end_ns - i.start_ns) / 1e9
    return {
        "start_s": i.start_ns / 1e9,
        "end_s": i.end_ns / 1e9,
        "tps": i.committed / seconds,
        "committed": i.committed,
        "failed": i.failed,
        "skipped": i.skipped,
        "retried": i.retried,
        "retries": i.retries,
        "lost": i.lost,
        "latency": latency_document(i.latency),
        "lag": latency_document(i.lag) if i.lag.count else None,
        "client_cpu_share": i.busiest_cpu_ns / 1e9 / seconds,
    }


def document(
    o: Options, f: Figures, series: list[dict[str, Any]], targets: list[str], complete: bool
) -> dict[str, Any]:
    """Everything, for machines; `complete`: the run went to its end, with all its clients."""
    return {
        "targets": targets,
        "options": {
            "scripts": [{"name": s.description, "weight": s.weight} for s in o.scripts],
            "protocol": o.protocol,
            "clients": o.clients,
            "threads": f.threads,
            "duration_s": o.duration or None,
            "transactions_per_client": o.transactions or None,
            "rate": None
            if not o.rate
            else {
                "from_tps": o.rate[0],
                "to_tps": o.rate[1],
                "ramp_s": o.rate[2],
                "arrivals": "constant" if o.constant_arrivals else "poisson",
            },
            "latency_limit_ms": o.latency_limit_ms or None,
            "max_tries": o.max_tries,
            "connect": o.connect,
            "random_seed": o.seed,
            "scale": f.scale,
            "variables": o.variables,
        },
        "elapsed_s": f.elapsed_s,
        "initial_connection_ms": None if o.connect else f.connect_s * 1e3,
        "tps": f.tps,
        "transactions": {
            "committed": f.committed,
            "failed": f.failed,
            "skipped": f.skipped,
            "retried": f.retried,
            "retries": f.retries,
            "above_latency_limit": f.late,
            "unknown_outcome": f.unknown,
        },
        "complete": complete,
        "clients_aborted": f.aborted,
        "connections": {
            "lost": f.lost,
            "made_again": f.reconnects,
            "time": latency_document(f.connections) if f.connections.count else None,
        },
        "latency": latency_document(f.latency),
        "lag": latency_document(f.lag) if f.lag.count else None,
        "client_cpu_share": f.busiest,
        "client_bound": client_bound(o, f) or None,
        "scripts": [
            {
                "name": s.description,
                "weight": s.weight,
                "committed": s.committed,
                "failed": s.failed,
                "skipped": s.skipped,
                "retried": s.retried,
                "retries": s.retries,
                "latency": latency_document(s.latency),
            }
            for s in f.scripts
        ],
        "commands": [
            {
                "script": c.script,
                "text": c.text,
                "failures": c.failures,
                "retries": c.retries,
                "latency": latency_document(c.latency) if c.latency.count else None,
            }
            for c in f.commands
        ],
        "series": series,
    }
