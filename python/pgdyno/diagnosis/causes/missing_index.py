"""A statement that reads a whole table for a few of its rows."""

from __future__ import annotations

import re

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import TRANSACTION_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Row
from pgdyno.message import Name, message
from pgdyno.units import Quantity, Share

_LAST = re.compile(r'("(?:[^"]|"")*"|[^."]+)$')
#: Rows that are read and thrown away, for each that is wanted; rows of a table; part of a transaction's time.
_THROWN, _ROWS, _SHARE = 100, 5_000, 0.1


def _plain(name: str) -> str:
    """Return a table name without its schema and quotes, as EXPLAIN prints it: public."User" becomes User."""
    match = _LAST.search(name)
    return match[0].strip('"').replace('""', '"') if match else name


def _judge(e: Observed) -> Finding | None:
    found: list[tuple[float, Row, float, float]] = []
    for row in e.whole("plans"):
        if not row["scan_filters"]:
            continue
        table = [t for t in e.whole("tables") if _plain(str(t["table"])) == row["scanned_table"]]
        # Where it was not carried out: what the table's counters say of its scans.
        scans = sum(t["seq_scans"] for t in table)
        thrown = row["rows_thrown_away"] if row["rows_thrown_away"] >= 0 else 0.0
        if row["rows_thrown_away"] < 0 and scans:
            thrown = sum(t["seq_rows_read"] for t in table) / scans
        wanted = max(1.0, row["rows"], row["scanned_rows"] if row["rows"] < 0 else 0.0)
        share = e.statement_share(str(row["script"]), int(row["line"]))
        if thrown >= _ROWS and thrown / wanted >= _THROWN and share >= _SHARE:
            found.append((share, row, thrown, wanted))
    if not found:
        return None
    share, row, thrown, wanted = max(found, key=lambda f: f[0])
    return e.finding(
        CAUSE,
        message(
            "missing-index", rows=Quantity(thrown, "count"), table=Name(str(row["scanned_table"])),
            wanted=Quantity(wanted, "count"), share=Quantity(share, "share"),
            statement=Name(str(row["statement"])[:120]),
        ),
        Share(share, share * 0.9, min(1.0, share)), TRANSACTION_TIME, Confidence.HIGH,
        message("missing-index-remedy", table=Name(str(row["scanned_table"]))),
        [Fact("rows-discarded", thrown), Fact("transaction-share", share, "%")],
    )  # fmt: skip


CAUSE = Cause("missing-index", Kind.TROUBLE, "a sequential scan for a few rows", _judge)
