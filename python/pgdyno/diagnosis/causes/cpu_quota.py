"""A container's limit on the processors."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.said import part, percent

#: Of the limit's periods, in which the server was held back; of the clients' time.
_HELD, _SHARE = 0.1, 0.05


def judge(e: Evidence) -> Finding | None:
    """Return the finding, or None if the evidence does not support one."""
    held, running, p = e.mean("quota", "held_back") or 0.0, e.running, e.processors
    if held < _HELD or running is None or p is None:
        return None
    cpus, throttled = (e.mean("quota", n) or 0.0 for n in ("cpus", "throttled"))
    # While it is held back nobody runs; who could, waits. Each CPU that had something to do is counted.
    away = min(1.0, throttled / max(1.0, min(p.cores, e.clients)), p.queueing)
    cost = Part(*(x * away for x in (running.mean, running.low, running.high)))
    if cost.mean < _SHARE:
        return None
    return e.finding(
        CAUSE,
        f"A limit of {cpus:g} processors holds the server back in {percent(held)} of its periods: statements wait for "
        f"one {part(cost)} of the clients' time, while the machine is {percent(p.share)} busy.",
        cost, "the clients' time", Confidence.HIGH if cost.low > 0 and not p.are_full else Confidence.MEDIUM,
        "A larger limit, or none: cpu.max of the cgroup (Kubernetes: resources.limits.cpu; systemd: CPUQuota); else "
        "fewer connections at a time, since what all use at once is used up at once.",
        [Fact("processors allowed", cpus), Fact("periods held back", held, "%"),
         Fact("backends' time waiting for a CPU", p.queueing, "%")],
    )  # fmt: skip


CAUSE = Cause("cpu-quota", Kind.TROUBLE, "a limit on the server's processors", judge)
