"""Round trips between client and server."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.said import part

#: The part of the clients' time outside of the server, and of a transaction's on the way; below this a round trip is
#: mostly our own measuring.
_OUTSIDE, _SHARE, _LEAST_NS = 0.25, 0.2, 300_000


def _judge(e: Evidence) -> Finding | None:
    # A busy server answers late: what the way takes is the least that was seen.
    seen = sorted(row["round_trip_ns"] for r in e.trials for row in r.rows("network"))
    outside, rtt = e.outside, seen[0] if seen else 0.0
    summaries = [r.trial.summary for r in e.trials if r.trial.summary]
    if outside is None or outside.mean < _OUTSIDE or rtt < _LEAST_NS or not e.latency_ns or not summaries:
        return None
    trips = max(1.0, sum(s.qps for s in summaries) / max(1e-9, sum(s.tps for s in summaries)))
    if e.pipelines:
        # Statements of a pipeline share a round trip: how many there are is not known.
        return None
    share = min(1.0, rtt * trips / e.latency_ns)
    if share < _SHARE:
        return None
    cost = Part(share, min(share, outside.low), max(share, outside.high))
    return e.finding(
        CAUSE,
        f"The network is the limit: {trips:.3g} round trips of {rtt / 1e6:.3g} ms are {share * 100:.0f}% of a "
        f"transaction's {e.latency_ns / 1e6:.3g} ms, and the server had nothing to do for its clients {part(outside)} "
        "of their time.",
        cost, "a transaction's time", Confidence.HIGH,
        "Fewer round trips: pipelines (\\startpipeline), functions, several rows a statement; a nearer client.",
        [Fact("round trip", rtt, "ns"), Fact("round trips a transaction", trips),
         Fact("server waits for its clients", outside.mean, "%")],
    )  # fmt: skip


CAUSE = Cause("network", Kind.LIMIT, "network round trips", _judge)
