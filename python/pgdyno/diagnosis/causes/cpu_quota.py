"""A container's limit on the processors."""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import CpuQuota
from pgdyno.message import message
from pgdyno.units import Quantity, Share


def judge(e: Observed) -> Finding | None:
    """Return the finding, or None if the evidence does not support one."""
    held, running, p = e.mean("quota", "held_back") or 0.0, e.running, e.processors
    if held < CpuQuota.PERIODS or running is None or p is None:
        return None
    cpus, throttled = (e.mean("quota", n) or 0.0 for n in ("cpus", "throttled"))
    # While it is held back nobody runs; who could, waits. Each CPU that had something to do is counted.
    away = min(1.0, throttled / max(1.0, min(p.cores, e.clients)), p.queueing)
    cost = Share(*(x * away for x in (running.mean, running.low, running.high)))
    if cost.mean < CpuQuota.SHARE:
        return None
    return e.finding(
        CAUSE,
        message(
            "cpu-quota", allowed=Quantity(cpus, "factor"), periods=Quantity(held, "share"), share=cost,
            busy=Quantity(p.share, "share"),
        ),
        cost, CLIENTS_TIME, Confidence.HIGH if cost.low > 0 and not p.are_full else Confidence.MEDIUM,
        message("cpu-quota-remedy"),
        [Fact("allowed", cpus), Fact("periods", held, "%"),
         Fact("backends-queueing", p.queueing, "%")],
    )  # fmt: skip


CAUSE = Cause("cpu-quota", Kind.TROUBLE, "a limit on the server's processors", judge)
