"""Commits that wait for a standby."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.said import part

_SHARE = 0.05


def _judge(e: Evidence) -> Finding | None:
    cost = e.waiting("IPC:SyncRep")
    if cost is None or cost.mean < _SHARE:
        return None
    lag = max((row["flush_s"] for r in e.trials for row in r.rows("standbys")), default=0.0)
    return e.finding(
        CAUSE,
        f"Commits wait for a standby {part(cost)} of the clients' time.",
        cost, "the clients' time", Confidence.HIGH,
        f"A nearer or faster standby; synchronous_commit = remote_write instead of "
        f"{e.setting('synchronous_commit') or 'on'}; ANY 1 of several (synchronous_standby_names is "
        f"{e.setting('synchronous_standby_names') or 'not known'}).",
        [Fact("longest lag to a standby's disk", lag * 1e9, "ns")],
    )  # fmt: skip


CAUSE = Cause("sync-standby", Kind.LIMIT, "commits that wait for a standby", _judge)
