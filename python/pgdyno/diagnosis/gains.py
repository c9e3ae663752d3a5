"""Gains of throughput that actions predict: docs/math.md, Gains of actions."""

from __future__ import annotations

import math

from pgdyno.diagnosis.observed import Observed
from pgdyno.units import Share

#: Shortest transaction, in ns: a round trip on one machine.
_FLOOR_NS = 20e3
#: CPUs that are measured as full may have this part left.
_SLACK = 0.05
#: CPUs that are used whatever the throughput is (collecting, background processes); the least share that is told apart.
_BACKGROUND, _LEAST = 0.15, 0.01


def removed(e: Observed, cost: Share, least: float, most: float = 1.0, *, frees_cpu: bool = False) -> Share:
    """Return the gain of throughput if `least` to `most` of a cost goes.

    In a closed loop, throughput is clients / latency: without the part c of the clients' time it is 1 / (1 - c) times
    as high. Where waits go and the CPU time of a transaction stays (`frees_cpu` is False), the CPUs limit the gain to
    1 / utilization; `utilization` is that of the server and the client, of the CPUs that others leave.
    """
    low, high = _gain(e, cost.low * least), _gain(e, cost.high * most)
    if not frees_cpu and (bound := _free_cpus(e)) is not None:
        low, high = min(low, bound / 2), min(high, bound)
    return _between(low, high)


def more_clients(e: Observed, n: int) -> Share:
    """Return the gain of throughput with `n` clients: at most in proportion, and at most what the CPUs have left."""
    high, bound = n / e.clients - 1, _free_cpus(e)
    return _between(0.0, high if bound is None else min(high, bound))


def _free_cpus(e: Observed) -> float | None:
    """Return the gain with all CPUs busy that others leave; None if the machine cannot be seen."""
    if (p := e.processors) is None:
        return None
    ours = max(_LEAST, (p.server + p.client - _BACKGROUND) / p.cores)
    free = max(0.0, 1 - max(0.0, p.share - ours))
    return max(_SLACK, (1 + _SLACK) * free / ours - 1)


def _between(low: float, high: float) -> Share:
    # Between factors of the throughput, the middle is the geometric one.
    return Share(math.sqrt((1 + low) * (1 + high)) - 1, low, high)


def _gain(e: Observed, share: float) -> float:
    part = min(max(share, 0.0), max(0.0, 1 - _FLOOR_NS / e.latency_ns) if e.latency_ns else 0.0)
    return part / (1 - part)
