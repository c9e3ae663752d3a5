"""Time series of runs for other tools: Prometheus' text format, OpenMetrics, InfluxDB's line protocol.

Base units: seconds, bytes, counts. Times are absolute. Each interval is a sample at its end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pgdyno.errors import UsageError, msg
from pgdyno.model import IntervalRow, TrialRecord, spelled
from pgdyno.store.reading import RunData

FORMATS = ("prometheus", "openmetrics", "influx")
_QUANTILES = (("0.5", "p50_ns"), ("0.95", "p95_ns"), ("0.99", "p99_ns"), ("0.999", "p999_ns"))


@dataclass(frozen=True)
class Metric:
    """Exported gauge: its name, its help text, and its samples for an interval.

    Each sample consists of additional labels and a value.
    """

    name: str
    help: str
    of: Callable[[IntervalRow], list[tuple[dict[str, str], float]]]


def _rate(name: str) -> Callable[[IntervalRow], list[tuple[dict[str, str], float]]]:
    return lambda r: [({}, getattr(r, name) * 1e9 / (r.end_ns - r.start_ns))]


def _count(name: str) -> Callable[[IntervalRow], list[tuple[dict[str, str], float]]]:
    return lambda r: [({}, float(getattr(r, name)))]


def _seconds(name: str) -> Callable[[IntervalRow], list[tuple[dict[str, str], float]]]:
    # Of an interval in which nothing was committed there is no latency.
    return lambda r: [({}, getattr(r, name) / 1e9)] if r.committed else []


METRICS = (
    Metric("pgdyno_tps", "Committed transactions per second.", _rate("committed")),
    Metric("pgdyno_qps", "Statements of committed transactions per second.", _rate("statements")),
    Metric(
        "pgdyno_latency_seconds",
        "Latency of transactions, by quantile.",
        lambda r: [({"quantile": q}, getattr(r, name) / 1e9) for q, name in _QUANTILES] if r.committed else [],
    ),
    Metric("pgdyno_latency_mean_seconds", "Mean latency of transactions.", _seconds("mean_ns")),
    Metric("pgdyno_latency_max_seconds", "The longest transaction.", _seconds("max_ns")),
    Metric("pgdyno_failed", "Transactions that failed, of the interval.", _count("failed")),
    Metric("pgdyno_skipped", "Transactions of an open loop that were due and never begun.", _count("skipped")),
    Metric("pgdyno_unknown", "Transactions whose fate is unknown.", _count("unknown")),
    Metric("pgdyno_retried", "Transactions that were retried.", _count("retried")),
    Metric("pgdyno_disconnected", "Connections that were out at the end of the interval.", _count("disconnected")),
    Metric(
        "pgdyno_client_cpu",
        "Processors that the client used.",
        lambda r: [({}, r.client_cpu_ns / (r.end_ns - r.start_ns))],
    ),
)


def lines(data: RunData, form: str) -> Iterator[str]:
    """Return the lines of a run in one of FORMATS.

    Raise UsageError if the format does not exist, or no trial has a known start time.
    """
    if form not in FORMATS:
        raise UsageError(msg("error-there-no-format", form=form), msg("remedy-choices", choices=", ".join(FORMATS)))
    trials = [t for t in data.trials if t.start_ns]
    if not trials:
        raise UsageError(msg("error-no-trial-whose-time-known", path=data.path), msg("remedy-older-version-pgdyno"))
    return _influx(data, trials) if form == "influx" else _exposition(data, trials, openmetrics=form == "openmetrics")


def dashboard() -> str:
    """Return a Grafana dashboard, as JSON, for the data of the first two formats."""
    return (resources.files("pgdyno") / "dashboards" / "grafana.json").read_text(encoding="utf-8")


def _labels(data: RunData, t: TrialRecord) -> dict[str, str]:
    p = t.plan
    labels = {
        "run": data.path.rstrip("/").rpartition("/")[2],
        "experiment": data.manifest.name,
        "trial": str(p.number),
        "workload": p.workload,
        "clients": str(p.clients),
        "hot_set": f"{p.hot_set:g}",
        "repetition": str(p.repetition),
    }
    return labels | {f"axis_{_name(axis)}": spelled(value) for axis, value in p.varied.items()}


def _name(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in text)


def _rows(data: RunData, t: TrialRecord) -> list[IntervalRow]:
    return [r for r in data.series[t.plan.number] if r.end_ns > r.start_ns]


def _exposition(data: RunData, trials: list[TrialRecord], *, openmetrics: bool) -> Iterator[str]:
    # A metric's samples stand together, and of each series in the order of time.
    for m in METRICS:
        yield f"# HELP {m.name} {m.help}\n"
        yield f"# TYPE {m.name} gauge\n"
        for t in trials:
            common = _labels(data, t)
            series: dict[str, list[str]] = {}
            for r in _rows(data, t):
                at_ns = t.start_ns + r.end_ns
                stamp = f"{at_ns / 1e9:.3f}" if openmetrics else str(at_ns // 1_000_000)
                for more, value in m.of(r):
                    labels = _shown({**common, "phase": r.phase, **more})
                    series.setdefault(labels, []).append(f"{m.name}{labels} {_number(value)} {stamp}\n")
            for samples in series.values():
                yield from samples
    if openmetrics:
        yield "# EOF\n"


def _shown(labels: dict[str, str]) -> str:
    # JSON escapes backslash, quotation mark and line break as the formats do; other characters stay.
    return "{" + ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items()) + "}"


def _number(value: float) -> str:
    return f"{value:.9g}" if math.isfinite(value) else "NaN"


def _influx(data: RunData, trials: list[TrialRecord]) -> Iterator[str]:
    for t in trials:
        for r in _rows(data, t):
            tags = ",".join(f"{k}={_tag(v)}" for k, v in {**_labels(data, t), "phase": r.phase}.items() if v)
            fields: dict[str, Any] = {}
            for m in METRICS:
                for more, value in m.of(r):
                    name = m.name.removeprefix("pgdyno_")
                    fields[f"{name}_p{more['quantile'][2:].ljust(2, '0')}" if more else name] = value
            shown = ",".join(f"{k}={_number(v)}" for k, v in fields.items() if math.isfinite(v))
            yield f"pgdyno,{tags} {shown} {t.start_ns + r.end_ns}\n"


def _tag(text: str) -> str:
    for c in ("\\", ",", "=", " "):
        text = text.replace(c, f"\\{c}")
    return text.replace("\n", " ")
