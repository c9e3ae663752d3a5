"""Parallel workers of queries that are too short for them, or on CPUs that other clients need."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import nested, setting, shortened
from pgdyno.diagnosis.thresholds import ParallelQuery
from pgdyno.message import Name, message
from pgdyno.units import Quantity, Share

#: Waits for workers to start and to end; and for those that work.
_OVERHEAD = (
    "IPC:BgworkerStartup", "IPC:BgworkerShutdown", "IPC:ParallelFinish", "IO:DsmAllocate", "IO:DsmFillZeroWrite",
    "LWLock:DynamicSharedMemoryControl", "LWLock:ParallelQueryDSA",
)  # fmt: skip
_GATHER = "IPC:ExecuteGather"
WAITS = (*_OVERHEAD, _GATHER)


def is_pointless(e: Observed) -> bool:
    """Return True if parallel workers take time and cannot raise the throughput.

    Either transactions are short and the start of workers is much of them, or clients have all CPUs busy already.
    """
    whole, starts, p = e.waiting(*WAITS), e.waiting(*_OVERHEAD), e.processors
    if whole is None or starts is None or whole.mean < ParallelQuery.SHARE:
        return False
    is_short = 0 < e.latency_ns < ParallelQuery.SHORT_NS and starts.mean >= ParallelQuery.STARTS * whole.mean
    return is_short or (p is not None and p.are_full and e.clients >= p.cores)


def _judge(e: Observed) -> Finding | None:
    whole, overhead = e.waiting(*WAITS), e.waiting(*_OVERHEAD)
    if whole is None or overhead is None or not is_pointless(e):
        return None
    # A worker that works does what the client's backend would do without it, on the same CPUs.
    cost = Share((overhead.mean + whole.mean) / 2, overhead.low, whole.high)
    statement, share = e.most_waiting(_GATHER)
    waiting = message("other-waits-statement", share=Quantity(share, "share"), statement=Name(shortened(statement)))
    return e.finding(
        CAUSE,
        message(
            "parallel-query", share=whole, time=Quantity(e.latency_ns, "ns"), waiting=waiting if statement else None,
            nested=nested(e),
        ),
        cost, CLIENTS_TIME, Confidence.MEDIUM,
        message("parallel-query-remedy", cost=setting(e, "parallel_setup_cost", "setting-default")),
        [Fact("starts-and-ends", overhead.mean, "%"), Fact("workers-at-work", whole.mean - overhead.mean, "%")],
        actions=[
            Action(
                "one-cpu", removed(e, cost, 0.1, frees_cpu=True), "removed", {"max_parallel_workers_per_gather": "0"}
            )
        ],
    )  # fmt: skip


CAUSE = Cause("parallel-query", Kind.TROUBLE, "parallel workers that do not help", _judge)
