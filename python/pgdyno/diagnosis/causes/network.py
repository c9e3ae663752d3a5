"""Round trips between client and server."""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, TRANSACTION_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import Network
from pgdyno.message import message
from pgdyno.model import TrialSummary
from pgdyno.units import Quantity, Share


def _judge(e: Observed) -> Finding | None:
    # A busy server answers late: what the way takes is the least that was seen.
    seen = sorted(row["round_trip_ns"] for r in e.trials for row in r.rows("network"))
    summaries = [r.trial.summary for r in e.trials if r.trial.summary]
    # Statements of a pipeline share a round trip: how many there are is not known.
    if e.outside is None or not seen or not e.latency_ns or not summaries or e.pipelines:
        return None
    trips = max(1.0, sum(s.qps for s in summaries) / max(1e-9, sum(s.tps for s in summaries)))
    return _far(e, e.outside, seen[0], trips) or _held_up(e, e.outside, seen[0], trips, summaries)


def _far(e: Observed, outside: Share, rtt: float, trips: float) -> Finding | None:
    share = min(1.0, rtt * trips / e.latency_ns)
    if outside.mean < Network.OUTSIDE or rtt < Network.TRIP_NS or share < Network.SHARE:
        return None
    cost = Share(share, min(share, outside.low), max(share, outside.high))
    return e.finding(
        CAUSE,
        message(
            "network-far", trip=Quantity(rtt, "ms"), trips=Quantity(trips, "factor"), share=Quantity(share, "share"),
            latency=Quantity(e.latency_ns, "ms"), outside=outside,
        ),
        cost, TRANSACTION_TIME, Confidence.HIGH,
        message("network-far-remedy"),
        [Fact("round-trip", rtt, "ns"), Fact("round-trips", trips),
         Fact("server-idle", outside.mean, "%")],
    )  # fmt: skip


def _held_up(e: Observed, outside: Share, rtt: float, trips: float, summaries: list[TrialSummary]) -> Finding | None:
    """Neither distance nor the client explains what passes between two statements."""
    took = outside.mean * e.latency_ns / trips
    busy = max(s.client_cpu_share + s.client_delay_share for s in summaries)
    if (
        e.is_idle_on_purpose
        or outside.low < Network.DELAYED_OUTSIDE
        or busy > Network.DELAYED_CLIENT_BUSY
        or took < Network.DELAYED_NS + Network.DELAYED_TRIPS * rtt
    ):
        return None
    return e.finding(
        CAUSE,
        message("network-held-up", outside=outside, took=Quantity(took, "ms"), trip=Quantity(rtt, "ms")),
        outside, CLIENTS_TIME, Confidence.MEDIUM,
        message("network-held-up-remedy"),
        [Fact("outside", took, "ns"), Fact("least-round-trip", rtt, "ns"),
         Fact("client-busy", busy, "%")],
    )  # fmt: skip


CAUSE = Cause("network", Kind.LIMIT, "network round trips", _judge)
