"""Sessions of an observed server that are idle in transaction: the application is between two statements of its own.

Of a load that pgdyno drives, the network and the client have causes of their own.
"""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import shortened
from pgdyno.diagnosis.thresholds import IdleInTransaction
from pgdyno.message import Name, message
from pgdyno.units import Quantity


def _judge(e: Observed) -> Finding | None:
    if not e.is_observation:
        return None
    cost = e.time_share(lambda what: what[0].startswith("idle in transaction"))
    if cost is None or cost.mean < IdleInTransaction.SHARE:
        return None
    statement, share = e.most_waiting("Client:ClientRead")
    after = message("idle-after", share=Quantity(share, "share"), statement=Name(shortened(statement)))
    return e.finding(
        CAUSE, message("idle-in-transaction", share=cost, after=after if statement else None), cost, CLIENTS_TIME,
        Confidence.HIGH, message("idle-in-transaction-remedy"),
    )  # fmt: skip


CAUSE = Cause("idle-in-transaction", Kind.LIMIT, "an application that is slow within its transactions", _judge)
