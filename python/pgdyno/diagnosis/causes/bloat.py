"""Dead rows, and updates that leave their page."""

from __future__ import annotations

from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Row
from pgdyno.diagnosis.thresholds import Bloat
from pgdyno.message import Argument, Name, message
from pgdyno.samples import CATALOG
from pgdyno.units import Quantity, Share

_AUTOVACUUM = {"autovacuum": "on", "autovacuum_naptime": "10s"}


def _judge(e: Observed) -> Finding | None:
    # Of an open loop the drift is one of latency.
    drift = 0.0 if e.is_open_loop else e.movement
    transactions = sum(r.trial.summary.committed for r in e.trials if r.trial.summary)

    def is_used(row: Row) -> bool:
        # What others delete from a table that no transaction looks at costs the clients nothing.
        scans = row.get("index_scans")
        return scans is None or row["seq_scans"] + scans >= Bloat.SCANS * transactions

    # Each update and each delete leaves a dead row.
    rows = [
        row for row in e.whole("tables") if row["rows_updated"] + row["rows_deleted"] >= Bloat.CHANGES and is_used(row)
    ]
    if not rows or drift > Bloat.DRIFT:
        return None

    def fill(row: Row) -> float:
        return float(row["dead_rows"] / max(1.0, row["rows"])) if row["dead_rows"] >= Bloat.DEAD_ROWS else 0.0

    # Where none fills: the one with most updates off their pages.
    worst = max(rows, key=lambda row: (fill(row), row["rows_updated"] - row["rows_hot_updated"]))
    updates, dead = worst["rows_updated"], fill(worst)
    # Of a table from which rows are deleted updates say nothing.
    hot = worst["rows_hot_updated"] / updates if updates >= Bloat.CHANGES else 1.0
    if dead < Bloat.DEAD and hot > Bloat.HOT:
        return None
    fills, is_catalog = dead >= Bloat.DEAD, str(worst["table"]).startswith(CATALOG)
    if is_catalog and not fills:
        return None
    cost = Share(-drift / 2, 0.0, -drift)
    gain, table = removed(e, cost, 0.0, frees_cpu=True), str(worst["table"])
    facts: dict[str, Argument] = {
        "drop": Quantity(-drift, "share"),
        "table": Name(table),
        "dead": Quantity(dead, "two"),
    }
    if is_catalog or updates < Bloat.CHANGES:
        sentence = message("bloat-dead", **facts)
    else:
        sentence = message("bloat-fills" if fills else "bloat-not-hot", **facts, hot=Quantity(hot, "share"))
    return e.finding(
        CAUSE, sentence, cost, THROUGHPUT, Confidence.MEDIUM if fills else Confidence.LOW,
        message("bloat-catalog-remedy" if is_catalog else "bloat-remedy"),
        [Fact("dead-rows-per-live", dead), *([Fact("hot-updates", hot, "%")] if updates >= Bloat.CHANGES else [])],
        actions=[Action("table-space", gain, "removed", _AUTOVACUUM, [] if is_catalog else _statements(table))],
    )  # fmt: skip


def _statements(table: str) -> list[str]:
    return [
        f"ALTER TABLE {table} SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, "
        "autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0)",
        f"VACUUM (FULL, ANALYZE) {table}",
    ]


CAUSE = Cause("bloat", Kind.TROUBLE, "dead rows, and updates that are not HOT", _judge)
