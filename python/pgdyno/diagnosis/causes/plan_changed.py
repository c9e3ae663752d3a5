"""A statement whose plan is another at the end than at the beginning."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Finding, Kind, Part
from pgdyno.diagnosis.said import percent

#: Of a transaction's time; and of throughput, over a trial.
_SHARE, _DRIFT = 0.05, 0.1


def _judge(e: Evidence) -> Finding | None:
    changed = [row for row in e.whole("plans") if row["plan"] != row["plan_after"]]
    if not changed:
        return None
    worst = max(changed, key=lambda row: e.statement_share(str(row["script"]), int(row["line"])))
    share = e.statement_share(str(worst["script"]), int(worst["line"]))
    if share < _SHARE:
        return None
    summaries = [r.trial.summary for r in e.trials if r.trial.summary]
    moved = max((abs(s.drift) for s in summaries), default=0.0) >= _DRIFT
    return e.finding(
        CAUSE,
        f"A plan changed within the trial, of a statement that takes {percent(share)} of a transaction's time: "
        f"{worst['plan']} before, {worst['plan_after']} after; {str(worst['statement'])[:100]}",
        Part(share, 0.0, share), "a transaction's time",
        Confidence.MEDIUM if moved else Confidence.LOW,
        "ANALYZE before measuring (after = [\"analyze\"]); autovacuum_analyze_scale_factor smaller for growing tables.",
    )  # fmt: skip


CAUSE = Cause("plan-changed", Kind.TROUBLE, "a plan that changed", _judge)
