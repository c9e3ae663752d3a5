"""The client that drives the load."""

from __future__ import annotations

from pgdyno.analysis.client import ClientHealth
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import ClientBound
from pgdyno.message import message
from pgdyno.units import Quantity


def _judge(e: Observed) -> Finding | None:
    outside = e.outside
    summaries = [r.trial.summary for r in e.trials if r.trial.summary]
    if outside is None or outside.mean < ClientBound.OUTSIDE or e.is_open_loop or e.is_duet or not summaries:
        return None
    healths = [
        ClientHealth(s.client_cpu_share, s.client_delay_share, s.wakeup_p99_ns, s.client_busy_share,
                     shared=e.manifest.same_machine)
        for s in summaries
    ]  # fmt: skip
    cpu, delay = (max(getattr(s, n) for s in summaries) for n in ("client_cpu_share", "client_delay_share"))
    busy = max(s.client_busy_share for s in summaries)
    if not any(h.limits for h in healths) and busy < ClientBound.BUSY:
        return None
    p = e.processors
    # On a machine that both share, a full one starves both.
    both = p is not None and p.are_full and p.server > p.client
    return e.finding(
        CAUSE,
        message(
            "client-shares-cpus" if both else "client-bound", cpu=Quantity(cpu, "share"),
            delay=Quantity(delay, "share"), outside=outside,
        ),
        outside, CLIENTS_TIME, Confidence.LOW if both else Confidence.HIGH,
        message("client-bound-remedy"),
        [Fact("client-cpu", cpu, "%"), Fact("client-delay", delay, "%"),
         Fact("server-idle", outside.mean, "%")],
    )  # fmt: skip


CAUSE = Cause("client-bound", Kind.LIMIT, "the client's processors", _judge)
