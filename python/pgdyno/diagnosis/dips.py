"""Stretches of a trial in which throughput was far below its surroundings, and what happened meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgdyno.analysis.spread import MAD
from pgdyno.diagnosis import foreign
from pgdyno.diagnosis.causes.checkpoint_full_pages import checkpoint_spans
from pgdyno.diagnosis.causes.row_locks import is_foreign
from pgdyno.diagnosis.recorded import Array, Recorded
from pgdyno.diagnosis.thresholds import Dips, Freezes
from pgdyno.message import Message, Name, message
from pgdyno.model import IntervalRow

#: Sources that are sampled together begin within this time.
_SAMPLE_NS = 100_000_000
_BACKEND = "client backend"


@dataclass(frozen=True)
class Dip:
    """A stretch, in nanoseconds since the load began; `loss`: the part of the throughput around it that it lacks.

    `frozen_ns` is the longest time in which no client got an answer, 0 if some did all the time.
    """

    start_ns: int
    end_ns: int
    loss: float
    frozen_ns: int = 0

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.start_ns) / 1e9


def dips_of(r: Recorded) -> list[Dip]:
    """Return the dips in order of time. Of few intervals they are those in which no client got an answer."""
    rows = r.intervals
    are_few = len(rows) < Dips.FEWEST_INTERVALS
    if are_few and not any(x.silent_ns for x in rows):
        return []
    tps = np.array([x.committed / ((x.end_ns - x.start_ns) / 1e9) for x in rows])
    is_frozen = any(x.silent_ns for x in rows) and bool(_silent(rows).any())
    if (
        not is_frozen
        and tps.min() >= (max(Dips.BELOW, Dips.NOTHING) if not _is_long(rows).any() else 1 - Freezes.LACKS) * tps.max()
    ):
        # No interval can be a dip: what lies around it is at most the greatest.
        return []
    half = min(Dips.AROUND_INTERVALS, len(tps)) // 2
    around = np.array([np.median(tps[max(0, i - half) : i + half + 1]) for i in range(len(tps))])
    if not r.rate_changes:
        around = np.maximum(around, np.median(tps))
    spread = MAD * float(np.median(np.abs(tps - around)))
    frozen = _frozen(rows, tps, around, spread)
    low = (tps < np.minimum(Dips.BELOW * around, around - Dips.SIGMAS * spread)) | (tps < Dips.NOTHING * around)
    low = frozen > 0 if are_few else low | (frozen > 0)
    found, i = [], 0
    while i < len(rows):
        if not low[i]:
            i += 1
            continue
        j = i
        while j + 1 < len(rows) and low[j + 1]:
            j += 1
        lacks = float(1 - tps[i : j + 1].sum() / around[i : j + 1].sum()) if around[i : j + 1].sum() > 0 else 1.0
        length, longest = rows[j].end_ns - rows[i].start_ns, int(frozen[i : j + 1].max())
        # In a long interval a short freeze may be less than the noise: what it takes is known.
        lacks = max(0.0 if are_few else lacks, min(1.0, _silence(rows[i : j + 1], frozen[i : j + 1]) / length))
        dip = Dip(rows[i].start_ns, rows[j].end_ns, lacks, longest)
        expected = float(around[i : j + 1].mean()) * dip.seconds
        if (dip.seconds >= Dips.SHORTEST_S or dip.frozen_ns) and expected >= Dips.EXPECTED_COMMITS:
            found.append(dip)
        i = j + 1
    return found


def _is_long(rows: Sequence[IntervalRow]) -> NDArray[np.bool_]:
    """Return, for each interval, if its slowest transaction took many times the usual."""
    usual = float(np.median([x.p50_ns for x in rows]))
    limit = max(Freezes.LATENCIES * usual, Freezes.SHORTEST_S * 1e9)
    return np.array([x.max_ns >= limit for x in rows], dtype=np.bool_)


def _frozen(rows: Sequence[IntervalRow], tps: Array, around: Array, spread: float) -> Array:
    """Return, for each interval, how long no client got an answer, in ns; 0 where some did all the time.

    One slow transaction is slow alone. If all clients were held up as long as the slowest one, the interval lacks what
    they would have committed in that time. A freeze that spans intervals is in each of them.
    """
    lengths = np.array([x.end_ns - x.start_ns for x in rows], dtype=float)
    longest = np.array([x.max_ns for x in rows], dtype=float)
    lacks = np.maximum(0.0, 1 - tps / np.maximum(around, 1e-9))
    is_short_of = (lacks >= Freezes.LACKS) & (tps < around - Freezes.SIGMAS * spread)
    held = lacks * lengths >= Freezes.ALL_CLIENTS * np.minimum(longest, lengths)
    # What several workers record has no silence in common if their longest ones differ: the other way finds it.
    return np.maximum(np.where(_is_long(rows) & is_short_of & held, longest, 0.0), _silent(rows))


def _silence(rows: Sequence[IntervalRow], frozen: Array) -> float:
    """Return the time of all freezes in these intervals, in ns. They may overlap, and begin before."""
    spans = sorted(
        (max(x.silent_from_ns, rows[0].start_ns), min(x.silent_from_ns + x.silent_ns, rows[-1].end_ns))
        for x, longest in zip(rows, frozen, strict=True)
        if longest and x.silent_ns >= Freezes.SHORTEST_S * 1e9
    )
    total, until = 0, 0
    for start, end in spans:
        total += max(0, end - max(start, until))
        until = max(until, end)
    return float(total)


def _silent(rows: Sequence[IntervalRow]) -> Array:
    """Return, for each interval, the longest freeze in it, as the engine has recorded it; 0: none."""
    usual, slow = (float(np.median([getattr(x, name) for x in rows])) for name in ("p50_ns", "p99_ns"))
    # A slow script of several is silence, too, where few clients run it: it is as usual as the fast one.
    limit = max(Freezes.LATENCIES * usual, Freezes.P99 * slow, Freezes.SHORTEST_S * 1e9)
    found = np.zeros(len(rows))
    for x in rows:
        if x.silent_ns >= limit:
            end = x.silent_from_ns + x.silent_ns
            for n, other in enumerate(rows):
                # It lies in this interval, and may have begun in others.
                if other.start_ns < end and other.end_ns > x.silent_from_ns:
                    found[n] = max(found[n], x.silent_ns)
    return found


def period_s(found: Sequence[Dip]) -> float | None:
    """Return the time between dips that follow each other regularly, in seconds; None: they do not, or are too few.

    Their starts lie on a line (least squares over their numbers), none further from it than a tenth of the period. Four
    dips at random times do so in about one of a hundred cases.
    """
    if len(found) < Dips.FEWEST_REGULAR:
        return None
    starts = np.array(sorted(d.start_ns for d in found), dtype=np.float64)
    slope, begin = np.polyfit(np.arange(len(starts)), starts, 1)
    off = np.abs(starts - (begin + slope * np.arange(len(starts)))).max()
    return float(slope) / 1e9 if off <= Dips.REGULAR * slope else None


def explained(r: Recorded, dip: Dip) -> list[Message]:
    """Return the possible causes that overlap a dip; the list is empty if none is known."""
    start, end = dip.start_ns - 200_000_000, dip.end_ns + 200_000_000

    def overlapping(source: str) -> list[dict[str, float | str]]:
        return [row for row in r.rows(source) if row["start_ns"] < end and row["end_ns"] > start]

    found: list[Message] = []
    if any(is_foreign(row) for row in overlapping("blockers")):
        found.append(message("dip-foreign-lock"))
    locked = sum(float(w["processes"]) for w in overlapping("waits") if w["ours"] and w["wait_type"] == "Lock")
    all_of = sum(float(w["processes"]) for w in overlapping("waits") if w["ours"])
    if all_of and locked / all_of > 0.5 and not found:
        found.append(message("dip-row-locks"))
    if any(a < end and b > start for a, b in checkpoint_spans(r)):
        found.append(message("dip-checkpoint"))
    if any(row["kind"] == "autovacuum worker" for row in overlapping("waits")):
        found.append(message("dip-autovacuum"))
    found += [message("dip-command", command=Name(c)) for c in _commands(r, dip)]
    devices = {row["device"] for row in r.rows("devices")}
    busy_ones = (_compared(r, "devices", "utilisation", dip, device=d) for d in devices)
    if any(busy is not None and busy[0] > 0.9 > busy[1] for busy in busy_ones):
        found.append(message("dip-device"))
    if stopped := max(
        (int(row.get("stopped") or 0) for row in overlapping("processes") if row["kind"] == _BACKEND), default=0
    ):
        found.append(message("dip-stopped", n=stopped))
    if (stolen := _compared(r, "machine", "cpu_steal", dip)) is not None and stolen[0] > stolen[1] + 0.1:
        found.append(message("dip-steal"))
    if (taken := _others(r, dip)) is not None and taken[0] > taken[1] + 0.3:
        found.append(message("dip-others"))
    if not found and (wait := _waited_for(r, dip)):
        found.append(message("dip-waits", wait=Name(wait)))
    kinds = (
        "server restarted", "configuration reloaded", "server process died", "recovery", "server stops", "lost",
        "panic", "fatal", "connection lost",
    )  # fmt: skip
    events = dict.fromkeys(e.kind for e in r.events if e.kind in kinds and start <= e.at_ns <= end)
    return [*found, *(message("dip-event", event=Name(kind)) for kind in events)]


def _commands(r: Recorded, dip: Dip) -> list[str]:
    """Return the commands that other sessions ran within a dip for most of it, and much less outside."""
    within: dict[str, float] = {}
    outside: dict[str, float] = {}
    for ran in foreign.commands(r):
        covered = max(0, min(ran.end_ns, dip.end_ns) - max(ran.start_ns, dip.start_ns)) / 1e9
        within[ran.command] = within.get(ran.command, 0.0) + covered * ran.sessions
        rest = (ran.end_ns - ran.start_ns) / 1e9 - covered
        outside[ran.command] = outside.get(ran.command, 0.0) + rest * ran.sessions
    left = max(1e-9, r.seconds - dip.seconds)
    return [
        c for c, seconds in within.items()
        if seconds >= Dips.WAIT * dip.seconds and outside[c] / left < Dips.WAIT * seconds / dip.seconds
    ]  # fmt: skip


def _is_in(row: dict[str, Any], dip: Dip) -> bool:
    """Return True if at least half of a sample lies within a dip.

    Neighbouring samples with less overlap count as usual operation.
    """
    start, end = row["start_ns"], row["end_ns"]
    return bool(2 * (min(end, dip.end_ns) - max(start, dip.start_ns)) >= end - start)


def _waited_for(r: Recorded, dip: Dip) -> str:
    """Return the wait that took half of the clients' time in a dip and much less outside; empty if none."""
    within: dict[str, float] = {}
    outside: dict[str, float] = {}
    for row in r.rows("waits"):
        if row["ours"]:
            into = within if _is_in(row, dip) else outside
            running = row["state"] == "idle" or not row["wait_type"] or row["wait_type"] == "Client"
            name = "" if running else f"{row['wait_type']} {row['wait']}"
            into[name] = into.get(name, 0.0) + float(row["processes"])
    wait = max((n for n in within if n), key=lambda n: within[n], default="")
    if not wait or within[wait] < Dips.WAIT * sum(within.values()):
        return ""
    usual = outside.get(wait, 0.0) / (sum(outside.values()) or 1.0)
    return wait if usual < Dips.WAIT * within[wait] / sum(within.values()) else ""


def _compared(r: Recorded, source: str, column: str, dip: Dip, **where: str) -> tuple[float, float] | None:
    """Return the mean of a column within a dip and outside of it, or None if either has no samples."""
    rows = [row for row in r.rows(source) if all(row.get(k) == v for k, v in where.items())]
    within = [float(row[column]) for row in rows if _is_in(row, dip)]
    outside = [float(row[column]) for row in rows if not _is_in(row, dip)]
    return (float(np.mean(within)), float(np.mean(outside))) if within and outside else None


def _others(r: Recorded, dip: Dip) -> tuple[float, float] | None:
    """Processors that neither PostgreSQL nor pgdyno used, within a time, and outside of it."""
    used = {row["start_ns"] // _SAMPLE_NS: 0.0 for row in r.rows("processes")}
    for row in r.rows("processes"):
        used[row["start_ns"] // _SAMPLE_NS] += row["cpu"]
    within: list[float] = []
    outside: list[float] = []
    for row in r.rows("machine"):
        seen = used.get(row["start_ns"] // _SAMPLE_NS)
        if seen is None:
            continue
        rest = row["cpu_user"] + row["cpu_nice"] + row["cpu_system"] - seen
        (within if _is_in(row, dip) else outside).append(rest)
    return (float(np.mean(within)), float(np.mean(outside))) if within and outside else None
