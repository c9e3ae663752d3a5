"""After a checkpoint the first change of a page writes the whole page to WAL."""

from __future__ import annotations

from typing import Any

from pgdyno.diagnosis.action import Action, megabytes, seconds_of, size_of
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.difference import whole_pages_share
from pgdyno.diagnosis.finding import CLIENTS_TIME, THROUGHPUT, Confidence, Fact, Finding, Kind, MissingColumnError
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import setting, shortened
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.diagnosis.thresholds import CheckpointFullPages
from pgdyno.message import Name, message
from pgdyno.units import Quantity, Share

_PAGE = 8192
#: CPU time of a whole page, in ns: at most, of the backend and of the checkpointer.
_PAGE_NS = 20e3
#: Waits for a page of the transaction status while a checkpoint writes it.
STATUS = ("LWLock:XactBuffer", "LWLock:CLogBuffer", "IO:SlruFlushSync", "IO:SlruSync", "IO:SlruWrite")
#: Seconds between checkpoints that are proposed, and bytes of WAL at most: pg_wal may grow to that, on disks whose free
#: space is not known.
_APART_S, _MOST_WAL = 1800, 16 << 30


def _pages(row: dict[str, Any]) -> float:
    """Whole pages a transaction."""
    commits = float(row.get("commits_per_s") or 0.0)
    return float(row.get("wal_full_pages_per_s") or 0.0) / commits if commits else 0.0


def _judge(e: Observed) -> Finding | None:
    pages, wal = e.per_transaction("wal_full_pages_per_s"), e.per_transaction("wal_bytes_per_s")
    if not pages or not wal or e.setting("full_page_writes") == "off":
        return None
    checkpoints = checkpoints_of(e)
    whole = whole_pages_share(e) or 0.0
    every = sorted(_pages(row) for r in e.trials for row in r.rows("counters") if row.get("commits_per_s"))
    if not every:
        return None
    calm = every[len(every) // 4]
    burst = {
        (id(r), row["start_ns"]) for r in e.trials for row in r.rows("counters") if _pages(row) > 1.5 * calm + 0.01
    }
    # Where even the calmest times are full of whole pages, there is none to compare with.
    is_calm = calm * _PAGE < CheckpointFullPages.WAL / 2 * wal
    cost = e.throughput_loss(lambda r, start, _: (id(r), start) in burst) if is_calm else None
    seen = cost is not None
    if cost is None and whole > CheckpointFullPages.WAL and checkpoints:
        cost = _without_calm(e, whole, pages, checkpoints)
    if cost is None or cost.mean < CheckpointFullPages.LOSS or whole < CheckpointFullPages.LEAST_WAL:
        return None
    frequent = not seen and _are_frequent(e, checkpoints)
    sure = seen and cost.low > 0 and whole > CheckpointFullPages.WAL
    confidence = Confidence.HIGH if sure else Confidence.MEDIUM if cost.low > 0 else Confidence.LOW
    what = THROUGHPUT if seen else CLIENTS_TIME
    statement, share = e.most_whole_pages
    by = message("full-pages-by", share=Quantity(share, "share"), statement=Name(shortened(statement)))
    each = message("full-pages-each", n=Quantity(checkpoints, "count"))
    return e.finding(
        CAUSE,
        message(
            "full-pages" if seen else "full-pages-frequent" if frequent else "full-pages-waits", share=cost,
            whole=message(f"whole-{what}"),
            wal_share=Quantity(whole, "share"), after=each if checkpoints else message("full-pages-earlier"),
            wal=Quantity(wal, "bytes"), by=by if statement else None,
        ),
        cost, what, confidence,
        message(
            "full-pages-remedy", size=setting(e, "max_wal_size"), timeout=setting(e, "checkpoint_timeout")
        ),
        [Fact("wal-whole", whole, "%"), Fact("wal-per-transaction", wal, "bytes"),
         Fact("checkpoints", checkpoints)],
        actions=[
            *fewer_checkpoints(e, cost),
            # To compress takes CPUs: on full ones it costs more than it saves.
            *([] if e.setting("wal_compression") not in ("", "off") or (e.processors and e.processors.are_full) else [
                Action("compression", removed(e, cost, 0.0, 0.6), "removed", {"wal_compression": "pglz"}),
            ]),
        ],
    )  # fmt: skip


def _without_calm(e: Observed, whole: float, pages: float, checkpoints: float) -> Share | None:
    """Return the time of waits for WAL as far as it is whole pages.

    Where checkpoints follow each other, waits for the status pages that they write, and CPU time, belong to it.
    """
    wal, status = e.waiting("IO:WALSync", "IO:WALWrite", "LWLock:WALWrite", "LWLock:WALInsert"), e.waiting(*STATUS)
    if wal is None or status is None:
        return None
    if not _are_frequent(e, checkpoints):
        return Share(*(x * whole for x in (wal.mean, wal.low, wal.high)))
    cpu = min(e.running.mean if e.running else 0.0, pages * _PAGE_NS / e.latency_ns) if e.latency_ns else 0.0
    mean, low, high = (getattr(wal, n) * whole + getattr(status, n) for n in ("mean", "low", "high"))
    return Share(min(1.0, mean + cpu / 2), low, min(1.0, high + cpu))


def _are_frequent(e: Observed, checkpoints: float) -> bool:
    if checkpoints < CheckpointFullPages.FREQUENT:
        return False
    return sum(r.seconds for r in e.trials) / checkpoints <= CheckpointFullPages.FREQUENT_S


def takes_status(e: Observed) -> bool:
    """Return True if the waits for status pages belong to a finding of this cause."""
    try:
        found = _judge(e)
    except MissingColumnError:
        return False
    return found is not None and found.message.id == "full-pages-frequent"


def fewer_checkpoints(e: Observed, cost: Share) -> list[Action]:
    """Return the action of checkpoints half an hour apart; none if they are that already."""
    now = size_of(e.setting("max_wal_size")) or 1 << 30
    wanted = max(2 * now, 1.5 * _APART_S * (e.mean("counters", "wal_bytes_per_s") or 0.0))
    settings = {"max_wal_size": megabytes(min(wanted, _MOST_WAL))} if now < _MOST_WAL else {}
    if seconds_of(e.setting("checkpoint_timeout")) < _APART_S:
        settings["checkpoint_timeout"] = "30min"
    if not settings:
        return []
    return [Action("recovery", removed(e, cost, 0.2, frees_cpu=True), "removed", settings)]


def checkpoints_of(e: Observed) -> float:
    """Checkpoints that began in the measurement, or just before."""
    logged = len(e.events("checkpoint begins"))
    counted = 0.0
    for r in e.trials:
        for row in r.rows("counters"):
            seconds = (row["end_ns"] - row["start_ns"]) / 1e9
            each = (row.get(f"checkpoints_{kind}_per_s") or 0.0 for kind in ("timed", "requested"))
            counted += seconds * sum(each)
    return max(float(logged), float(round(counted)))


def checkpoint_spans(r: Recorded) -> list[tuple[int, int]]:
    """Return the time spans in which checkpoints wrote.

    The first available source decides: the log, then the observed activity of the checkpointer, then the counters. The
    counters are known only when a checkpoint ends.
    """
    spans, begun = [], None
    for event in r.events:
        if event.kind == "checkpoint begins":
            begun = event.at_ns
        elif event.kind == "checkpoint ends" and event.at_ns:
            spans.append((r.window[0] if begun is None else begun, event.at_ns))
            begun = None
    if begun is not None:
        spans.append((begun, r.window[1]))
    if spans:
        return spans
    working = {
        (row["start_ns"], row["end_ns"]): None
        for row in r.rows("waits")
        if row["kind"] == "checkpointer" and row["wait_type"] != "Activity"
    }
    if working:
        return list(working)
    return [(row["start_ns"], row["end_ns"]) for row in r.rows("counters") if row.get("checkpoint_buffers_per_s")]


CAUSE = Cause("checkpoint-full-pages", Kind.TROUBLE, "full-page images in WAL after checkpoints", _judge)
