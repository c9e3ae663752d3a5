"""Autovacuum at work beside the clients."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action, size_of
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import Autovacuum
from pgdyno.message import Message, Name, message
from pgdyno.units import Quantity

#: PostgreSQL's defaults, which settings that are more eager go back to; and a calmer cost delay.
_DEFAULTS = {
    "autovacuum_vacuum_cost_delay": "2ms", "autovacuum_vacuum_threshold": "50", "autovacuum_naptime": "1min",
    "autovacuum_vacuum_scale_factor": "0.2", "autovacuum_analyze_threshold": "50",
    "autovacuum_analyze_scale_factor": "0.1",
}  # fmt: skip
_CALMER = {"autovacuum_vacuum_cost_delay": "20ms"}
_MAINTENANCE = 64 << 20


def _judge(e: Observed) -> Finding | None:
    kind = "autovacuum worker"
    working = {(id(r), row["start_ns"]) for r in e.trials for row in r.rows("waits") if row["kind"] == kind}
    if not working:
        return None
    cost = e.throughput_loss(lambda r, start, _: (id(r), start) in working, "waits")
    cpu = e.mean("processes", "cpu", kind=kind) or 0.0
    p = e.processors
    taken = cpu / p.cores if p is not None and p.are_full else 0.0
    sure = cost is not None and cost.low > 0 and cost.mean >= Autovacuum.LOSS
    if not sure:
        if taken < 2 * Autovacuum.WORKING:
            return None
        # It works all the time, or its dips are lost in the noise: what it takes of full processors is missing.
        cost = e.cpu_share(taken, lambda _, kinds: kinds.get(kind, 0.0))
    assert cost is not None
    logged = e.events("autovacuum")
    tables = sorted({x.quoted.split('"')[1] for x in logged if x.quoted.count('"') > 1})
    names = Name(", ".join(t.split(".")[-1] for t in tables[:3]))
    moved = sum(e.mean("processes", n, kind=kind) or 0.0 for n in ("read_bytes_per_s", "write_bytes_per_s"))
    figures = {"runs": Quantity(len(logged), "count"), "cpu": Quantity(cpu, "share"), "moved": Quantity(moved, "MB/s")}
    seen = {(True, True): "autovacuum-runs-cpu", (True, False): "autovacuum-runs", (False, True): "autovacuum-cpu"}
    observed = seen.get((bool(logged), bool(cpu)))
    return e.finding(
        CAUSE,
        message(
            "autovacuum", share=cost, tables=message("autovacuum-tables", names=names) if tables else None,
            seen=Message(observed, figures) if observed else None,
        ),
        cost, THROUGHPUT, Confidence.HIGH if sure or taken > 0.1 else Confidence.MEDIUM,
        message("autovacuum-remedy"),
        [Fact("workers-cpu", cpu, "%"), Fact("bytes-moved", moved, "bytes/s"), Fact("runs", len(logged))],
        actions=[Action("dead-rows", removed(e, cost, 0.0, frees_cpu=True), "removed", _calmer(e))],
    )  # fmt: skip


def _calmer(e: Observed) -> dict[str, str]:
    """Return settings with which autovacuum takes less at a time."""
    named = {name: value for name, value in _DEFAULTS.items() if e.setting(name) not in ("", value)}
    if 0 < size_of(e.setting("maintenance_work_mem")) < _MAINTENANCE:
        # With little memory for row ids, indexes are read several times over.
        named["maintenance_work_mem"] = "256MB"
    return named or _CALMER


CAUSE = Cause("autovacuum", Kind.TROUBLE, "autovacuum beside the load", _judge)
