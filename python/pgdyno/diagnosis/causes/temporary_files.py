"""Sorts and hashes that do not fit into work_mem."""

from __future__ import annotations

from pgdyno.diagnosis.evidence import Evidence
from pgdyno.diagnosis.finding import Cause, Confidence, Fact, Finding, Kind, Part
from pgdyno.diagnosis.said import part
from pgdyno.format import size

#: Bytes a transaction that are worth a word, and of its time.
_BYTES, _SHARE = 100_000, 0.02


def _judge(e: Evidence) -> Finding | None:
    written = e.per_transaction("temp_bytes_per_s")
    if not written or written < _BYTES:
        return None
    waits = e.waiting("IO:BufFileRead", "IO:BufFileWrite", "IO:BufFileTruncate") or Part(0.0, 0.0, 1.0)
    # Waiting is the smaller part: pages are copied, and sorts go over them several times.
    spilling = [row for row in e.whole("plans") if row["temp_blocks"] > 0]
    share = max((_share_of(e, row) for row in spilling), default=0.0)
    cost = Part(max(waits.mean, share), waits.low, max(waits.high, share))
    if cost.mean < _SHARE and not spilling:
        return None
    which = f": {spilling[0]['statement'][:80]}" if spilling else ""
    return e.finding(
        CAUSE,
        f"Temporary files: a transaction writes {size(written)}, by statements that take up to {part(cost)} of the "
        f"clients' time{which}.",
        cost, "the clients' time", Confidence.HIGH if spilling or waits.mean > _SHARE else Confidence.MEDIUM,
        f"work_mem larger (now {e.setting('work_mem') or 'the default'}), for the role or the statement; an index that "
        "gives the order.",
        [Fact("temporary bytes a transaction", written, "bytes"), Fact("waiting for them", waits.mean, "%")],
    )  # fmt: skip


def _share_of(e: Evidence, row: dict[str, object]) -> float:
    return e.statement_share(str(row["script"]), int(float(str(row["line"]))))


CAUSE = Cause("temporary-files", Kind.TROUBLE, "sorts and hashes that spill", _judge)
