"""A statement whose plan is another at the end than at the beginning."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Finding, Kind, Part
from pgdyno.diagnosis.said import percent

#: Of a transaction's time; and of throughput, over a trial.
_SHARE, _DRIFT = 0.05, 0.1
#: Of both, from which on one goes with the other.
_FAR = 0.5


def _judge(e: Evidence) -> Finding | None:
    changed = [row for row in e.whole("plans") if row["plan"] != row["plan_after"]]
    if not changed:
        return None
    worst = max(changed, key=lambda row: e.statement_share(str(row["script"]), int(row["line"])))
    share = e.statement_share(str(worst["script"]), int(worst["line"]))
    if share < _SHARE:
        return None
    summaries = [r.trial.summary for r in e.trials if r.trial.summary]
    drift = sum(s.drift for s in summaries) / len(summaries) if summaries else 0.0
    # With the better of the two plans all through, the mean over the trial would lack nothing: half of what throughput
    # moved by, and no more than the statement takes.
    most = min(share, abs(drift))
    moved = f"throughput {'rose' if drift > 0 else 'fell'} by {percent(abs(drift))} over a trial"
    fits = abs(drift) >= _DRIFT and share >= abs(drift) / 2
    return e.finding(
        CAUSE,
        f"A plan changed within the trial, of a statement that takes {percent(share)} of a transaction's time: "
        f"{worst['plan']} before, {worst['plan_after']} after; {moved}; {str(worst['statement'])[:100]}",
        Part(most / 2, 0.0, most), "the throughput",
        Confidence.MEDIUM if fits or (abs(drift) >= _FAR and share >= _FAR) else Confidence.LOW,
        "ANALYZE before measuring (after = [\"analyze\"]), or a longer warm-up; autovacuum_analyze_scale_factor "
        "smaller for growing tables.",
    )  # fmt: skip


CAUSE = Cause("plan-changed", Kind.TROUBLE, "a plan that changed", _judge)
