"""More clients than the processors can serve at a time."""

from __future__ import annotations

from pgdyno.diagnosis.causes import cpu_quota
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.said import part, percent

#: Clients a core, and the part of the time that backends wait for one.
_A_CORE, _QUEUEING = 8, 0.7


def _judge(e: Evidence) -> Finding | None:
    p, running = e.processors, e.running
    if p is None or running is None or e.clients < _A_CORE * p.cores or p.queueing < _QUEUEING:
        return None
    # At a low rate all come at once now and then, and who waits then waits in an idle machine.
    if e.is_idle_on_purpose and not p.are_full:
        return None
    # Then it is not the machine's processors that they wait for.
    if cpu_quota.judge(e) is not None:
        return None
    # Of the server alone: what the client's threads wait in the same queue is the client's part already.
    cost = Part(*(x * p.queueing for x in (running.mean, running.low, running.high)))
    switches = (e.mean("machine", "context_switches_per_s") or 0.0) / max(1.0, e.tps)
    return e.finding(
        CAUSE,
        f"Too many connections: {e.clients} clients on {p.cores:g} cores waited for a processor {part(cost)} of their "
        f"time; a backend that could run had none {percent(p.queueing)} of the time.",
        cost, "the clients' time", Confidence.HIGH if cost.low > 0.2 else Confidence.MEDIUM,
        "Fewer clients (a pooler in front of the server); pgdyno scaling finds the number that is best.",
        [Fact("clients a core", e.clients / p.cores), Fact("context switches a transaction", switches),
         Fact("backends' time waiting for a CPU", p.queueing, "%")],
    )  # fmt: skip


CAUSE = Cause("connections", Kind.TROUBLE, "more connections than processors", _judge)
