"""Too few clients: each runs one statement at a time, and CPUs stay idle."""

from __future__ import annotations

import math

from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import more_clients
from pgdyno.diagnosis.observed import Observed, Processors
from pgdyno.diagnosis.phrases import nested, slowest
from pgdyno.diagnosis.thresholds import FewClients
from pgdyno.message import message
from pgdyno.model import Caveat
from pgdyno.units import Quantity

#: Clients that are proposed, as a multiple of those that there were.
_MOST = 4


def _judge(e: Observed) -> Finding | None:
    running, p = e.running, e.processors
    if running is None or p is None or not e.is_limited or e.is_idle_on_purpose:
        return None
    # Backends that wait for a CPU while others are idle may not use those: they are bound to some.
    if (
        p.are_full
        or p.queueing > FewClients.QUEUEING
        or 1 - p.share < FewClients.IDLE
        or running.mean < FewClients.SHARE
        or p.server < p.client + p.others
    ):
        return None
    # A client without a free CPU of its own is no reason to add others, and a limit of the server's CPUs leaves some
    # of the machine's idle.
    if any(Caveat.CLIENT_BOUND in r.trial.caveats for r in e.trials) or e.has("quota"):
        return None
    return e.finding(
        CAUSE,
        message(
            "few-clients", clients=e.clients, idle=Quantity(1 - p.share, "share"), share=running, nested=nested(e),
            most=slowest(e),
        ),
        running, CLIENTS_TIME, Confidence.MEDIUM,
        message("few-clients-remedy"),
        [Fact("cpus-busy", p.share, "%"), Fact("postgresql", p.server / p.cores, "%"),
         Fact("pgdyno", p.client / p.cores, "%")],
        actions=[_more(e, p)],
    )  # fmt: skip


def _more(e: Observed, p: Processors) -> Action:
    n = min(_MOST * e.clients, max(e.clients + 1, math.ceil(e.clients / p.share)))
    return Action("latency", more_clients(e, n), "idle-cpus", clients=n)


CAUSE = Cause("few-clients", Kind.LIMIT, "more CPUs than the clients use", _judge)
