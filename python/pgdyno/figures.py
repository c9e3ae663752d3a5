"""Figures of a trial: names, columns, units, and which way is better.

Reports, comparisons, history, SQL and JSON all take them from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from pgdyno.model import TrialRecord, TrialSummary
from pgdyno.units import Quantity
from pgdyno.units import Unit as Shown

Unit = Literal["1/s", "ns", "s", "count", "part", "bytes", ""]
#: How readers see a figure, by its unit.
_SHOWN: dict[Unit, Shown] = {"ns": "latency", "part": "percent", "bytes": "bytes", "1/s": "count", "count": "count"}


@dataclass(frozen=True)
class Figure:
    """One figure of a trial's summary."""

    #: As people and command lines call it.
    name: str
    #: Where a TrialSummary has it; of what the server counted, where a TrialRecord's activity has it.
    attribute: str
    #: As columns call it; ends in its unit where it has one.
    column: str
    unit: Unit
    #: None: neither way.
    higher_is_better: bool | None = None
    #: It can be compared and followed over time.
    compared: bool = False
    #: Of latencies: the part of all values that lies beyond it.
    beyond: float | None = None
    #: It was counted by the server, or on its machine, and is divided by the transactions of that time.
    per_transaction: bool = False
    #: The same, but it is not divided.
    of_server: bool = False
    #: Where neither side has so much, it is not worth a comparison: the server's own doings are as much.
    least: float = 0.0

    @property
    def is_cost(self) -> bool:
        """Return True if the figure is a cost: the use of a resource."""
        return self.per_transaction or self.of_server

    @property
    def heading(self) -> str:
        """Heading of the figure in tables; it ends in the unit that `cell` leaves out."""
        return f"{self.name} ms" if self.unit == "ns" else self.name

    def quantity(self, value: float) -> Quantity:
        """Return a value with its unit, for readers."""
        return Quantity(value, _SHOWN.get(self.unit, "factor"))

    @property
    def of(self) -> Callable[[TrialSummary], float]:
        """Reads it from a summary."""
        return attrgetter(self.attribute)

    def trial_value(self, trial: TrialRecord) -> float | None:
        """Return the value of the figure in a trial, or None if there is none.

        Values of compared figures are positive: a value that was not measured, or is zero, cannot be compared. The
        throughput and latency of a trial that one figure does not describe cannot be compared either.
        """
        if self.per_transaction:
            counted, transactions = (trial.activity.get(name, 0.0) for name in (self.attribute, _TRANSACTIONS))
            return counted / transactions if counted > 0 and transactions > 0 else None
        if self.of_server:
            return trial.activity.get(self.attribute) or None
        if trial.summary is None or (self.compared and trial.summary.regimes is not None):
            return None
        value = float(self.of(trial.summary))
        return value if value > 0 else None


def is_known(count: int, figure: Figure) -> bool:
    """Return False for a percentile with so few values that none, or a single one, lies beyond it."""
    return figure.beyond is None or count * figure.beyond >= 1 - 1e-9


def _latency(name: str, column: str, beyond: float | None = None, *, compared: bool = True) -> Figure:
    return Figure(name, f"latency.{column}", column, "ns", False, compared, beyond)


FIGURES = (
    Figure("TPS", "tps", "tps", "1/s", True, True),
    Figure("QPS", "qps", "qps", "1/s", True),
    _latency("mean", "mean_ns"),
    _latency("p50", "p50_ns"),
    _latency("p95", "p95_ns", 0.05),
    _latency("p99", "p99_ns", 0.01),
    _latency("p99.9", "p999_ns", 0.001),
    _latency("max", "max_ns", compared=False),
    Figure("elapsed", "elapsed_s", "elapsed_s", "s"),
    Figure("committed", "committed", "committed", "count"),
    Figure("failed", "failed_total", "failed", "count", False),
    Figure("unknown", "unknown", "unknown", "count", False),
    Figure("skipped", "skipped", "skipped", "count", False),
    Figure("unfinished", "unfinished", "unfinished", "count", False),
    Figure("lost connections", "lost", "lost", "count", False),
    Figure("protocol violations", "violations", "violations", "count", False),
    Figure("reconnects", "reconnects", "reconnects", "count"),
    Figure("client CPU", "client_cpu_share", "client_cpu_share", "part"),
    Figure("client run-queue delay", "client_delay_share", "client_delay_share", "part", False),
    Figure("client CPU or waiting", "client_busy_share", "client_busy_share", "part", False),
    Figure("wake-up delay p99", "wakeup_p99_ns", "wakeup_p99_ns", "ns", False),
    Figure("driver", "driver", "driver", ""),
    Figure("steady", "steady", "steady", ""),
    Figure("warm-up left out", "warmup_dropped_s", "warmup_dropped_s", "s"),
)
#: What the server's counters call its transactions.
_TRANSACTIONS = "transactions"
#: What a transaction costs, warm-up included: by the server's counters and its machine's.
COSTS = (
    Figure("WAL/tx", "wal_bytes", "wal_bytes_per_transaction", "bytes", False, True, None, True, least=256.0),
    Figure("reads/tx", "blocks_read", "blocks_read_per_transaction", "count", False, True, None, True, least=1.0),
    Figure("CPU/tx", "server_cpu_ns", "server_cpu_ns_per_transaction", "ns", False, True, None, True),
    # Of all its processes together, shared buffers apart; less than some megabytes nobody asks about.
    Figure("memory", "server_private_bytes", "server_private_bytes", "bytes", False, True, of_server=True, least=64e6),
)
MEMORY = COSTS[-1]
BY_NAME = {f.name: f for f in FIGURES}
TPS, QPS = BY_NAME["TPS"], BY_NAME["QPS"]
#: What tables show of a latency: its mean, and its percentiles.
MEAN, MAX = BY_NAME["mean"], BY_NAME["max"]
PERCENTILES = tuple(BY_NAME[name] for name in ("p50", "p95", "p99", "p99.9"))
#: Those that comparisons and histories know, by name.
COMPARED = {f.name: f for f in (*FIGURES, *COSTS) if f.compared}
