"""Commits that wait for a standby."""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import setting
from pgdyno.diagnosis.thresholds import SyncStandby
from pgdyno.message import Name, message


def _judge(e: Observed) -> Finding | None:
    cost = e.waiting("IPC:SyncRep")
    if cost is None or cost.mean < SyncStandby.SHARE:
        return None
    lag = max((row["flush_s"] for r in e.trials for row in r.rows("standbys")), default=0.0)
    return e.finding(
        CAUSE,
        message("sync-standby", share=cost),
        cost, CLIENTS_TIME, Confidence.HIGH,
        message(
            "sync-standby-remedy", commit=Name(e.setting("synchronous_commit") or "on"),
            names=setting(e, "synchronous_standby_names"),
        ),
        [Fact("lag", lag * 1e9, "ns")],
    )  # fmt: skip


CAUSE = Cause("sync-standby", Kind.LIMIT, "commits that wait for a standby", _judge)
