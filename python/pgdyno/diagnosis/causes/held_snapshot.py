"""A snapshot that another session holds: dead rows cannot be removed."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.said import percent
from pgdyno.format import integer, span

_OLD, _DEAD = 5.0, 1_000


def _judge(e: Evidence) -> Finding | None:
    oldest = max((row["oldest_seconds"] for r in e.trials for row in r.rows("snapshots")), default=0.0)
    age = max((row["oldest_transactions"] for r in e.trials for row in r.rows("snapshots")), default=0.0)
    dead = max((row["dead_rows"] for row in e.whole("tables")), default=0.0)
    length = max((r.seconds for r in e.trials), default=0.0)
    if oldest < max(_OLD, length / 2) or dead < _DEAD or age < _DEAD:
        return None
    summaries = [r.trial.summary for r in e.trials if r.trial.summary]
    drift = -sum(s.drift for s in summaries) / len(summaries) if summaries else 0.0
    loss = max(0.0, drift / 2)
    return e.finding(
        CAUSE,
        f"Another session's transaction has been open for {span(oldest)} and {integer(age)} others: up to "
        f"{integer(dead)} dead rows cannot be removed; throughput fell by {percent(max(0.0, drift))} over a trial.",
        Part(loss, 0.0, max(0.0, drift)), "the throughput",
        Confidence.HIGH if drift > 0.1 else Confidence.MEDIUM,
        "End that transaction (a prepared one: ROLLBACK PREPARED); idle_in_transaction_session_timeout; "
        "hot_standby_feedback and replication slots hold dead rows, too.",
        [Fact("age", oldest * 1e9, "ns"), Fact("transactions since", age), Fact("dead rows", dead)],
    )  # fmt: skip


CAUSE = Cause("held-snapshot", Kind.TROUBLE, "a snapshot held by another session", _judge)
