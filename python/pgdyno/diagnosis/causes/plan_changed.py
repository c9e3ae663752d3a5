"""A statement whose plan is another at the end than at the beginning."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.thresholds import PlanChanged
from pgdyno.message import Name, message
from pgdyno.units import Quantity, Share


def _judge(e: Observed) -> Finding | None:
    changed = [row for row in e.whole("plans") if row["plan"] != row["plan_after"]]
    if not changed:
        return None
    worst = max(changed, key=lambda row: e.statement_share(str(row["script"]), int(row["line"])))
    share = e.statement_share(str(worst["script"]), int(worst["line"]))
    if share < PlanChanged.SHARE:
        return None
    drift = e.movement
    # With the better of the two plans all through, the mean over the trial would lack nothing: half of what throughput
    # moved by, and no more than the statement takes.
    most = min(share, abs(drift))
    fits = abs(drift) >= PlanChanged.DRIFT and share >= abs(drift) / 2
    fits = fits or min(share, abs(drift)) >= PlanChanged.TOGETHER
    return e.finding(
        CAUSE,
        message(
            "plan-changed-rose" if drift > 0 else "plan-changed-fell", share=Quantity(share, "share"),
            before=Name(str(worst["plan"])), after=Name(str(worst["plan_after"])), drift=Quantity(abs(drift), "share"),
            statement=Name(str(worst["statement"])[:100]),
        ),
        Share(most / 2, 0.0, most), THROUGHPUT,
        Confidence.MEDIUM if fits else Confidence.LOW,
        message("plan-changed-remedy"),
        actions=[
            Action("nothing", removed(e, Share(most / 2, 0.0, most), 0.0, frees_cpu=True), "removed", sql=["ANALYZE"])
        ],
    )  # fmt: skip


CAUSE = Cause("plan-changed", Kind.TROUBLE, "a plan that changed", _judge)
