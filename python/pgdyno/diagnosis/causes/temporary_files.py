"""Sorts and hashes that do not fit into work_mem."""

from __future__ import annotations

import math

from pgdyno.diagnosis.action import Action, megabytes, size_of
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import setting
from pgdyno.diagnosis.thresholds import TemporaryFiles
from pgdyno.message import Name, message
from pgdyno.units import Quantity, Share

#: Bytes of memory for each byte of a temporary file.
_IN_MEMORY = 3


def _judge(e: Observed) -> Finding | None:
    written = e.per_transaction("temp_bytes_per_s")
    if not written or written < TemporaryFiles.BYTES:
        return None
    waits = e.waiting("IO:BufFileRead", "IO:BufFileWrite", "IO:BufFileTruncate") or Share(0.0, 0.0, 1.0)
    # Waiting is the smaller part: pages are copied, and sorts go over them several times.
    spilling = [row for row in e.whole("plans") if row["temp_blocks"] > 0]
    share = max((_share_of(e, row) for row in spilling), default=0.0)
    cost = Share(max(waits.mean, share), waits.low, max(waits.high, share))
    if cost.mean < TemporaryFiles.SHARE and not spilling:
        return None
    statement = Name(str(spilling[0]["statement"])[:80] if spilling else "")
    return e.finding(
        CAUSE,
        message(
            "temporary-files", written=Quantity(written, "bytes"), share=cost,
            statement=message("temporary-files-statement", statement=statement) if spilling else None,
        ),
        cost, CLIENTS_TIME, Confidence.HIGH if spilling or waits.mean > TemporaryFiles.SHARE else Confidence.MEDIUM,
        message("temporary-files-remedy", work_mem=setting(e, "work_mem", "setting-default")),
        [Fact("temporary", written, "bytes"), Fact("temporary-wait", waits.mean, "%")],
        actions=_actions(e, cost, written),
    )  # fmt: skip


def _actions(e: Observed, cost: Share, written: float) -> list[Action]:
    now = size_of(e.setting("work_mem")) or 4 << 20
    # In memory a row takes more than in a file. All clients may need it at once.
    wanted = max(4 * now, 2 ** math.ceil(math.log2(_IN_MEMORY * written)))
    wanted = min(wanted, max(now, e.memory_bytes / 4 / e.clients)) if e.memory_bytes else wanted
    if wanted < 2 * now:
        return []
    gain = removed(e, cost, 0.0, 0.7, frees_cpu=True)
    return [Action("memory-each", gain, "removed", {"work_mem": megabytes(wanted)})]


def _share_of(e: Observed, row: dict[str, object]) -> float:
    return e.statement_share(str(row["script"]), int(float(str(row["line"]))))


CAUSE = Cause("temporary-files", Kind.TROUBLE, "sorts and hashes that spill", _judge)
