"""The client that drives the load."""

from __future__ import annotations

from pgdyno.analysis.client import ClientHealth
from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.said import part, percent

#: The part of the clients' time that is outside of the server.
_OUTSIDE = 0.25


def _judge(e: Evidence) -> Finding | None:
    outside = e.outside
    summaries = [r.trial.summary for r in e.trials if r.trial.summary]
    if outside is None or outside.mean < _OUTSIDE or e.is_open_loop or e.is_duet or not summaries:
        return None
    healths = [
        ClientHealth(s.client_cpu_share, s.client_delay_share, s.wakeup_p99_ns, s.client_busy_share,
                     shared=e.manifest.same_machine)
        for s in summaries
    ]  # fmt: skip
    cpu, delay = (max(getattr(s, n) for s in summaries) for n in ("client_cpu_share", "client_delay_share"))
    busy = max(s.client_busy_share for s in summaries)
    if not any(h.limits for h in healths) and busy < 0.9:
        return None
    p = e.processors
    # On a machine that both share, a full one starves both.
    both = p is not None and p.are_full and p.server > p.client
    who = "pgdyno's client shares the full processors" if both else "pgdyno's client is busy"
    return e.finding(
        CAUSE,
        f"{who}: its busiest thread was on a processor {percent(cpu)} of the time and waited for one "
        f"{percent(delay)}, and the server had nothing to do for its clients {part(outside)} of their time.",
        outside, "the clients' time", Confidence.LOW if both else Confidence.HIGH,
        "A machine of its own for pgdyno; where processors are free, more workers (--workers).",
        [Fact("client's busiest thread on a CPU", cpu, "%"), Fact("waiting for one", delay, "%"),
         Fact("server waits for its clients", outside.mean, "%")],
    )  # fmt: skip


CAUSE = Cause("client-bound", Kind.LIMIT, "the client's processors", _judge)
