"""Results of a benchmark as JSON."""

from __future__ import annotations

from typing import Any

from pgdyno import _core
from pgdyno.pgbench.figures import Figures, client_bound, mean_and_deviation
from pgdyno.pgbench.options import DEFAULT_PERCENTILES, Options


def latency(h: _core.Histogram) -> dict[str, Any]:
    """Return the figures of a distribution, in milliseconds."""
    mean, deviation = mean_and_deviation(h)
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
        "latency": latency(i.latency),
        "lag": latency(i.lag) if i.lag.count else None,
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
            "time": latency(f.connections) if f.connections.count else None,
        },
        "latency": latency(f.latency),
        "lag": latency(f.lag) if f.lag.count else None,
        "client_cpu_share": f.client.cpu_share,
        "client_run_delay_share": f.client.delay_share,
        "client_bound": client_bound(f) or None,
        "scripts": [
            {
                "name": s.description,
                "weight": s.weight,
                "committed": s.committed,
                "failed": s.failed,
                "skipped": s.skipped,
                "retried": s.retried,
                "retries": s.retries,
                "latency": latency(s.latency),
            }
            for s in f.scripts
        ],
        "commands": [
            {
                "script": c.script,
                "text": c.text,
                "failures": c.failures,
                "retries": c.retries,
                "latency": latency(c.latency) if c.latency.count else None,
            }
            for c in f.commands
        ],
        "series": series,
    }
