"""A container's limit on the processors."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.said import part, percent

#: Of the limit's periods, in which the server was held back; of the clients' time.
HELD, _SHARE = 0.1, 0.05


def held_back(e: Evidence) -> float:
    """The part of the limit's periods in which the server had to wait; 0 where it has no limit."""
    return e.mean("quota", "held_back") or 0.0


def _judge(e: Evidence) -> Finding | None:
    held, running, p = held_back(e), e.running, e.processors
    if held < HELD or running is None or p is None:
        return None
    # A backend that is held back could run, and has no processor.
    cost = Part(*(x * p.queueing for x in (running.mean, running.low, running.high)))
    if cost.mean < _SHARE:
        return None
    cpus = e.mean("quota", "cpus") or 0.0
    return e.finding(
        CAUSE,
        f"A limit of {cpus:g} processors holds the server back in {percent(held)} of its periods: statements wait for "
        f"one {part(cost)} of the clients' time, while the machine is {percent(p.share)} busy.",
        cost, "the clients' time", Confidence.HIGH if cost.low > 0 else Confidence.MEDIUM,
        "A larger limit, or none: cpu.max of the cgroup (Kubernetes: resources.limits.cpu; systemd: CPUQuota); else "
        "fewer connections at a time, since what all use at once is used up at once.",
        [Fact("processors allowed", cpus), Fact("periods held back", held, "%"),
         Fact("backends' time waiting for a CPU", p.queueing, "%")],
    )  # fmt: skip


CAUSE = Cause("cpu-quota", Kind.TROUBLE, "a limit on the server's processors", _judge)
