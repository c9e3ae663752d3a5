"""More clients than the processors can serve at a time."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes import cpu_quota
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import Connections
from pgdyno.message import message
from pgdyno.units import Quantity, Share

#: Clients a core that are proposed; seconds of CPU that a context switch costs at most, with its cache misses.
_PROPOSED, _SWITCH_S = 4, 5e-6


def _judge(e: Observed) -> Finding | None:
    p, running = e.processors, e.running
    if p is None or running is None or e.clients < Connections.PER_CPU * p.cores or p.queueing < Connections.QUEUEING:
        return None
    # At a low rate all come at once now and then, and who waits then waits in an idle machine.
    if e.is_idle_on_purpose and not p.are_full:
        return None
    # Then it is not the machine's processors that they wait for.
    if cpu_quota.judge(e) is not None:
        return None
    # Of the server alone: what the client's threads wait in the same queue is the client's part already.
    cost = Share(*(x * p.queueing for x in (running.mean, running.low, running.high)))
    switches = (e.mean("machine", "context_switches_per_s") or 0.0) / max(1.0, e.tps)
    return e.finding(
        CAUSE,
        message(
            "connections", clients=e.clients, cores=Quantity(p.cores, "factor"), share=cost,
            queueing=Quantity(p.queueing, "share"),
        ),
        cost, CLIENTS_TIME, Confidence.HIGH if cost.low > 0.2 else Confidence.MEDIUM,
        message("connections-remedy"),
        [Fact("clients-per-core", e.clients / p.cores), Fact("context-switches", switches),
         Fact("backends-queueing", p.queueing, "%")],
        actions=_actions(e, p.cores),
    )  # fmt: skip


def _actions(e: Observed, cores: float) -> list[Action]:
    # Where CPUs are full, the queue costs latency, and the switches throughput.
    part = min(0.5, (e.mean("machine", "context_switches_per_s") or 0.0) * _SWITCH_S / cores)
    gain = removed(e, Share(part / 2, 0.0, part), 0.0, frees_cpu=True)
    return [Action("pooler", gain, "switches", clients=max(1, round(_PROPOSED * cores)))]


CAUSE = Cause("connections", Kind.TROUBLE, "more connections than processors", _judge)
