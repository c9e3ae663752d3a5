"""Dead rows, and updates that leave their page."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Row
from pgdyno.message import Name, message
from pgdyno.units import Quantity, Share

_UPDATES, _HOT, _DEAD, _DRIFT = 1000, 0.5, 0.5, -0.1
#: A table of a few rows always has more dead ones than live ones: so many make some dozens of pages.
_MANY = 5_000


def _judge(e: Observed) -> Finding | None:
    # Of an open loop the drift is one of latency.
    drift = 0.0 if e.is_open_loop else e.movement
    rows = [row for row in e.whole("tables") if row["rows_updated"] >= _UPDATES]
    if not rows or drift > _DRIFT:
        return None

    def fill(row: Row) -> float:
        return float(row["dead_rows"] / max(1.0, row["rows"])) if row["dead_rows"] >= _MANY else 0.0

    # Where none fills: the one with most updates off their pages.
    worst = max(rows, key=lambda row: (fill(row), row["rows_updated"] - row["rows_hot_updated"]))
    hot, dead = worst["rows_hot_updated"] / worst["rows_updated"], fill(worst)
    if dead < _DEAD and hot > _HOT:
        return None
    fills = dead >= _DEAD
    cost = Share(-drift / 2, 0.0, -drift)
    vacuumed = Action(
        "table-space",
        removed(e, cost, 0.0, frees_cpu=True),
        "removed",
        {"autovacuum": "on", "autovacuum_naptime": "10s"},
        [
            f"ALTER TABLE {worst['table']} SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, "
            "autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0)",
            f"VACUUM (FULL, ANALYZE) {worst['table']}",
        ],
    )
    return e.finding(
        CAUSE,
        message(
            "bloat-fills" if fills else "bloat-not-hot", drop=Quantity(-drift, "share"), table=Name(worst["table"]),
            dead=Quantity(dead, "two"), hot=Quantity(hot, "share"),
        ),
        cost, THROUGHPUT, Confidence.MEDIUM if fills else Confidence.LOW,
        message("bloat-remedy"),
        [Fact("dead-rows-per-live", dead), Fact("hot-updates", hot, "%")],
        actions=[vacuumed],
    )  # fmt: skip


CAUSE = Cause("bloat", Kind.TROUBLE, "dead rows, and updates that are not HOT", _judge)
