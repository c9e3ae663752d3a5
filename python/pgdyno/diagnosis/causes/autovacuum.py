"""Autovacuum at work beside the clients."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.said import part, percent
from pgdyno.format import integer

_LOSS, _WORKING = 0.03, 0.02


def _judge(e: Evidence) -> Finding | None:
    kind = "autovacuum worker"
    working = {(id(r), row["start_ns"]) for r in e.trials for row in r.rows("waits") if row["kind"] == kind}
    if not working:
        return None
    cost = e.lost(lambda r, start, _: (id(r), start) in working, "waits")
    cpu = e.mean("processes", "cpu", kind=kind) or 0.0
    p = e.processors
    taken = cpu / p.cores if p is not None and p.are_full else 0.0
    sure = cost is not None and cost.low > 0 and cost.mean >= _LOSS
    if not sure:
        if taken < 2 * _WORKING:
            return None
        # It works all the time, or its dips are lost in the noise: what it takes of full processors is missing.
        cost = e.taken(taken, lambda _, kinds: kinds.get(kind, 0.0))
    assert cost is not None
    logged = e.events("autovacuum")
    tables = sorted({x.text.split('"')[1] for x in logged if x.text.count('"') > 1})
    named = f" ({', '.join(t.split('.')[-1] for t in tables[:3])})" if tables else ""
    moved = sum(e.mean("processes", n, kind=kind) or 0.0 for n in ("read_bytes_per_s", "write_bytes_per_s"))
    seen = [f"{integer(len(logged))} runs were logged"] if logged else []
    seen += [f"its workers use {percent(cpu)} of a processor and move {moved / 1e6:.3g} MB/s"] if cpu else []
    return e.finding(
        CAUSE,
        f"Autovacuum{named} takes {part(cost)} of the throughput{': ' if seen else ''}{', '.join(seen)}.",
        cost, "the throughput", Confidence.HIGH if sure or taken > 0.1 else Confidence.MEDIUM,
        "autovacuum_vacuum_cost_delay larger or autovacuum_vacuum_cost_limit smaller; autovacuum_naptime and the scale "
        "factors of the table; a lower fillfactor, so that updates stay HOT.",
        [Fact("workers' CPU", cpu, "%"), Fact("bytes read and written", moved, "bytes/s"), Fact("runs", len(logged))],
    )  # fmt: skip


CAUSE = Cause("autovacuum", Kind.TROUBLE, "autovacuum beside the load", _judge)
