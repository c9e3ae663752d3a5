"""The server's processors."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import nested, shortened, slowest
from pgdyno.diagnosis.thresholds import ServerCpu
from pgdyno.message import Name, message
from pgdyno.units import Quantity, Share


def _judge(e: Observed) -> Finding | None:
    running, p = e.running, e.processors
    if running is None:
        return None
    if p is None:
        if running.mean < ServerCpu.UNSEEN:
            return None
        return e.finding(
            CAUSE,
            message("server-cpu-unseen", share=running, nested=nested(e)),
            running, CLIENTS_TIME, Confidence.MEDIUM,
            message("server-cpu-unseen-remedy"),
        )  # fmt: skip
    # The server of a duet's other side may be among the others.
    others_cpu = 0.0 if e.is_duet and not e.sees_all_sides else p.others
    if not p.are_full or running.mean < ServerCpu.SEEN or p.server < p.client + others_cpu:
        return None
    mine = message("server-cpu-client", client=Quantity(p.client / p.cores, "share"))
    others = max(0.0, p.share - (p.server + p.client) / p.cores)
    statement, of_running = e.most_waiting(":") if e.is_observation else ("", 0.0)
    most = message("server-cpu-statement", share=Quantity(of_running, "share"), statement=Name(shortened(statement)))
    rest = message("server-cpu-others", others=Quantity(others, "share")) if others >= ServerCpu.OTHERS else None
    return e.finding(
        CAUSE,
        message(
            "server-cpu", busy=Quantity(p.share, "share"), server=Quantity(p.server / p.cores, "share"), share=running,
            turns=message("server-cpu-turns") if e.sees_all_sides else None,
            client=mine if p.client > 0.05 * p.cores else None, others=rest, nested=nested(e),
            most=most if statement else slowest(e),
        ),
        running, CLIENTS_TIME, Confidence.HIGH if p.share > 0.9 and not e.is_duet else Confidence.MEDIUM,
        message("server-cpu-remedy"),
        [Fact("cpus-busy", p.share, "%"), Fact("postgresql", p.server / p.cores, "%"),
         Fact("pgdyno", p.client / p.cores, "%"), Fact("backends-queueing", p.queueing, "%")],
        actions=_actions(e, running),
    )  # fmt: skip


def _actions(e: Observed, running: Share) -> list[Action]:
    if e.protocol in ("", "prepared"):
        return []
    # Parsing and planning: most of a short statement, and little of a long one.
    gain = removed(e, running, 0.02, 0.8, frees_cpu=True)
    return [Action("nothing", gain, "planning", protocol="prepared")]


CAUSE = Cause("server-cpu", Kind.LIMIT, "the server's processors", _judge)
