"""The server's processors."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.said import part, percent

#: The part of the clients' time that makes it worth a word; without sight of the machine, and with.
_UNSEEN, _SEEN = 0.6, 0.15


def _judge(e: Evidence) -> Finding | None:
    running, p = e.running, e.processors
    if running is None:
        return None
    if p is None:
        if running.mean < _UNSEEN:
            return None
        return e.finding(
            CAUSE,
            f"Statements ran, or waited for a processor, {part(running)} of the clients' time; the server's machine "
            "cannot be seen, so it is not known which.",
            running, "the clients' time", Confidence.MEDIUM,
            "Look at the CPU of the server's machine; more or faster cores, or fewer rows touched per statement.",
        )  # fmt: skip
    if not p.are_full or running.mean < _SEEN or p.server < p.client + p.others:
        return None
    mine = f", pgdyno's client {percent(p.client / p.cores)}" if p.client > 0.05 * p.cores else ""
    return e.finding(
        CAUSE,
        f"The processors are {percent(p.share)} busy (PostgreSQL {percent(p.server / p.cores)}{mine}): statements ran "
        f"or waited for one {part(running)} of the clients' time.",
        running, "the clients' time", Confidence.HIGH if p.share > 0.9 else Confidence.MEDIUM,
        "More or faster cores; a client on a machine of its own; prepared statements; fewer round trips.",
        [Fact("processors busy", p.share, "%"), Fact("by PostgreSQL", p.server / p.cores, "%"),
         Fact("by pgdyno", p.client / p.cores, "%"), Fact("backends' time waiting for a CPU", p.queueing, "%")],
    )  # fmt: skip


CAUSE = Cause("server-cpu", Kind.LIMIT, "the server's processors", _judge)
