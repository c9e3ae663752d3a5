"""Results of a benchmark as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgdyno import _core
from pgdyno.analysis.client import ClientHealth
from pgdyno.pgbench.options import Options

#: A shorter run says nothing about what limits it.
SHORTEST_S = 0.9


def mean_and_deviation(h: _core.Histogram) -> tuple[float, float]:
    """Return the mean and the standard deviation in milliseconds."""
    if not h.count:
        return 0.0, 0.0
    total, squares = h.sums
    mean = total / h.count
    return mean / 1e6, math.sqrt(max(0.0, squares / h.count - mean * mean)) / 1e6


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
    #: What the threads got of this machine.
    client: ClientHealth
    scripts: list[ScriptFigures]
    commands: list[CommandFigures]

    @property
    def failures(self) -> int:
        """Number of failed transactions of any kind."""
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
        cls,
        o: Options,
        scale: int,
        threads: int,
        partition_method: str,
        partitions: int,
        result: _core.RunResult,
        *,
        shared: bool = True,
    ) -> Figures:
        """Return the figures of the engine's measurements, up to the end of its last transaction."""
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
            ClientHealth(
                whole.busiest_cpu_ns / 1e9 / elapsed if elapsed else 0.0,
                whole.most_delayed_ns / 1e9 / elapsed if elapsed else 0.0,
                whole.wakeup_delay.percentile(99.0),
                whole.least_rest_ns / 1e9 / elapsed if elapsed else 0.0,
                shared=shared,
            ),
            scripts, commands,
        )  # fmt: skip


def client_bound(f: Figures) -> str:
    """Return the reason why this machine, not the server, may be the limit; empty without evidence."""
    if f.elapsed_s < SHORTEST_S or not f.client.limits:
        return ""
    more = f"give more threads (-j {f.threads + 1}) or CPUs, or drive from another machine"
    return f"{f.client.evidence}: tps may be limited by the client; {more}"
