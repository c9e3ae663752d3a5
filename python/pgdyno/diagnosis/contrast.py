"""Contrast of slow stretches with the rest of a trial: every recorded series, ranked by how well it separates them.

A series counts as evidence only if it rises in the slow stretches. What falls with the throughput is its effect: fewer
commits, less WAL. See docs/math.md, Contrast, for the test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from pgdyno.analysis.series import autocorrelation_time
from pgdyno.diagnosis import foreign
from pgdyno.diagnosis.phrases import shortened
from pgdyno.diagnosis.recorded import Array, Recorded, Row, Stretch, mean_over
from pgdyno.diagnosis.thresholds import Contrast
from pgdyno.message import Message, Name, Text, listed, message
from pgdyno.units import Quantity, Unit

#: Processes that ended within a sample, of whatever kind.
_ENDED = "ended"
#: Parts of the evidence that a sentence names.
MOST = 3


@dataclass(frozen=True)
class Series:
    """A recorded series over the samples of a trial; NaN where it was not sampled."""

    #: `series-...` of the catalogues.
    id: str
    #: Wait, command, kind of process or device that it is about.
    about: str
    unit: Unit
    values: Array
    #: Rises below this are none.
    least: float = 0.0


@dataclass(frozen=True)
class Separator:
    """A series that is higher in the slow stretches than in the others: means of both, and the test's probability."""

    series: Series
    slow: float
    usual: float
    p: float

    @property
    def message(self) -> Message:
        """The observation."""
        if self.series.id == "command":
            return message("contrast-command", command=Name(self.series.about))
        return message(
            "contrast-rise",
            series=message(f"series-{self.series.id}", about=Name(self.series.about)),
            slow=Quantity(self.slow, self.series.unit), usual=Quantity(self.usual, self.series.unit),
        )  # fmt: skip


def separators(r: Recorded, slow: Sequence[Stretch]) -> list[Separator]:
    """Return the series that rise in the slow stretches of a trial, best first; the list is empty if none is sure.

    Stretches are in nanoseconds since the load began. The error over all series is held by Benjamini and Hochberg.
    """
    times = _grid(r)
    if not times:
        return []
    parts = np.array([_covered(time, slow) / (time[1] - time[0]) for time in times])
    inside, outside = parts >= Contrast.WITHIN, parts <= 1 - Contrast.WITHIN
    if min(inside.sum(), outside.sum()) < Contrast.FEWEST:
        return []
    tested = [s for x in every_series(r, times) if (s := _tested(x, inside, outside)) is not None]
    tested.sort(key=lambda s: s.p)
    last = max(
        (n for n, s in enumerate(tested, 1) if s.p <= Contrast.FALSE_DISCOVERIES * n / len(tested)),
        default=0,
    )
    return sorted((s for s in tested[:last] if _rises(s)), key=_rank)


def observations(found: Sequence[Separator]) -> list[Message]:
    """Return the sentences about separators: the first ones, each kind of series once, but for commands."""
    seen: set[str] = set()
    out: list[Message] = []
    for s in found:
        if s.series.id == "command" or s.series.id not in seen:
            seen.add(s.series.id)
            out.append(s.message)
    return out[:MOST]


def sentence(evidence: Sequence[Text]) -> Message:
    """Return the sentence that names the first parts of the evidence, or says that there is none."""
    return message("contrast-seen", evidence=listed(evidence[:MOST], "semicolon")) if evidence else _NOTHING


_NOTHING = message("contrast-nothing")
#: What other sessions do comes first: it is no effect of slow clients. Then what the clients wait for.
_ORDER = ("command", "idle-in-transaction", "stopped", "wait", "server-process", "others-cpu")


def _rank(s: Separator) -> tuple[int, float]:
    if s.series.id in _ORDER:
        return _ORDER.index(s.series.id), -(s.slow - s.usual)
    return len(_ORDER), -(s.slow / s.usual if s.usual > 0 else math.inf)


def _rises(s: Separator) -> bool:
    return s.slow - s.usual >= max(s.series.least, Contrast.RISE * abs(s.usual))


def _covered(time: Stretch, stretches: Sequence[Stretch]) -> int:
    return sum(max(0, min(time[1], end) - max(time[0], start)) for start, end in stretches)


def _tested(series: Series, inside: NDArray[np.bool_], outside: NDArray[np.bool_]) -> Separator | None:
    """Welch's t test, one-sided, with the residuals' autocorrelation time; None: too few samples, or no change."""
    known = np.isfinite(series.values)
    a, b = series.values[inside & known], series.values[outside & known]
    if min(len(a), len(b)) < Contrast.FEWEST:
        return None
    slow, usual = float(a.mean()), float(b.mean())
    if slow == usual:
        return None
    residuals = np.where(inside, series.values - slow, series.values - usual)[known & (inside | outside)]
    alike = max(autocorrelation_time(residuals), _time_of_neighbours(residuals))
    # A level that does not vary at all, as none of a command, is known as well as one sample in all says.
    floor = (abs(slow - usual) / 2) ** 2 / (len(a) + len(b))
    parts = [max(float(x.var(ddof=1)), floor) / max(1.0, len(x) / alike) for x in (a, b)]
    degrees = sum(parts) ** 2 / sum(
        v**2 / max(1.0, len(x) / alike - 1) for v, x in zip(parts, (a, b), strict=True)
    )  # fmt: skip
    p = float(scipy.special.stdtr(max(1.0, degrees), -(slow - usual) / math.sqrt(sum(parts))))
    return Separator(series, slow, usual, p)


def _time_of_neighbours(residuals: Array) -> float:
    """Return how many samples carry as much information as one, from the correlation of neighbours alone.

    Few samples whose means were taken away look less alike than they are: by about (2 + 5 rho) / n with two means
    (after Marriott and Pope 1954, who have (1 + 3 rho) / n with one). The estimate is corrected for it.
    """
    n, squares = len(residuals), float(residuals @ residuals)
    if n < 8 or squares <= 0:
        return 1.0
    alike = float(residuals[1:] @ residuals[:-1]) / squares
    alike = min(Contrast.MOST_ALIKE, max(0.0, (n * alike + 2) / (n - 5)))
    return (1 + alike) / (1 - alike)


# ---------------------------------------------------------------- the series


def _grid(r: Recorded) -> list[Stretch]:
    """Return the times of the samples: those of the source that was sampled most often."""
    names = ("waits", "machine", "counters")
    return max((sorted({(row["start_ns"], row["end_ns"]) for row in r.rows(name)}) for name in names), key=_size)


def _size(times: Sequence[Stretch]) -> int:
    return len(times)


def every_series(r: Recorded, times: Sequence[Stretch]) -> Iterator[Series]:
    """Yield the series of a trial over the samples `times`."""
    yield from _commands(r, times)
    clients = float(r.trial.plan.clients)
    waits = [row for row in r.rows("waits") if row["ours"] and row["wait_type"] not in ("", "Client")]
    waits = [row for row in waits if row["state"] != "idle"]
    for name, rows in _by(waits, lambda row: f"{row['wait_type']} {row['wait']}").items():
        found = _over(times, rows, lambda row: row["processes"] / clients, r.rows("waits"))
        yield Series("wait", name, "share", found, Contrast.SHARE)
    others = [row for row in r.rows("waits") if not row["ours"] and row["kind"] != "client backend"]
    others = [row for row in others if row["wait_type"] != "Activity"]
    for name, rows in _by(others, lambda row: str(row["kind"])).items():
        yield Series(
            "server-process", name, "two", _over(times, rows, lambda row: row["processes"], r.rows("waits")), 0.1
        )
    for kind, rows in _by(r.rows("processes"), lambda row: str(row["kind"])).items():
        if kind == _ENDED:
            continue
        every = r.rows("processes")
        yield Series("process-cpu", kind, "two", _over(times, rows, lambda row: row["cpu"], every), 0.1)
        if any(row.get("stopped") for row in rows):
            held = _over(times, rows, lambda row: float(row.get("stopped") or 0.0), every)
            yield Series("stopped", kind, "two", held, 0.1)
        for id, column in (("process-read", "read_bytes_per_s"), ("process-write", "write_bytes_per_s")):
            if any(row.get(column) is not None for row in rows):
                values = _over(times, rows, lambda row, column=column: float(row.get(column) or 0.0), every)  # type: ignore[misc]
                yield Series(id, kind, "bytes/s", values, 1e6)
    yield from _columns(r, times)


def _commands(r: Recorded, times: Sequence[Stretch]) -> Iterator[Series]:
    looks = r.rows("waits")
    sampled = {(row["start_ns"], row["end_ns"]) for row in looks}
    added: dict[str, dict[Stretch, float]] = {}
    for ran in foreign.commands(r):
        own, key = added.setdefault(ran.command, {}), (ran.start_ns, ran.end_ns)
        own[key] = own.get(key, 0.0) + ran.sessions
    for command, sessions in added.items():
        yield Series("command", command, "two", mean_over(times, sessions, sampled), 0.1)
    idle = [row for row in r.rows("commands") if row["state"].startswith("idle in transaction")]
    for command, rows in _by(idle, lambda row: shortened(str(row["command"]))).items():
        yield Series("idle-in-transaction", command, "two", _over(times, rows, lambda row: row["sessions"], looks), 0.1)


#: Source, column, id, unit, and the smallest rise, of series that have one row a sample, or one a device.
_NAMED: tuple[tuple[str, str, str, Unit, float], ...] = (
    ("machine", "cpu_steal", "steal", "two", 0.1),
    ("machine", "pressure_memory_full", "memory-pressure", "share", Contrast.SHARE),
    ("devices", "read_bytes_per_s", "device-read", "bytes/s", 1e6),
    ("devices", "write_bytes_per_s", "device-write", "bytes/s", 1e6),
    ("devices", "read_await_ns", "device-read-await", "ns", 1e5),
    ("devices", "write_await_ns", "device-write-await", "ns", 1e5),
    ("devices", "flush_await_ns", "device-flush-await", "ns", 1e5),
    ("counters", "blocks_read_per_s", "blocks-read", "/s", 10.0),
    ("counters", "rows_returned_per_s", "rows-read", "/s", 1000.0),
    ("counters", "temp_bytes_per_s", "temporary", "bytes/s", 1e6),
    ("counters", "wal_bytes_per_s", "wal", "bytes/s", 1e6),
    ("counters", "wal_full_pages_per_s", "full-pages", "/s", 10.0),
    ("counters", "checkpoint_buffers_per_s", "checkpoint-buffers", "/s", 10.0),
    ("counters", "backend_buffers_per_s", "backend-buffers", "/s", 10.0),
    ("counters", "relation_extends_per_s", "extends", "/s", 10.0),
    ("counters", "rollbacks_per_s", "rollbacks", "/s", 1.0),
    ("counters", "deadlocks_per_s", "deadlocks", "/s", 0.1),
    ("counters", "connections", "connections", "two", 1.0),
    ("network", "round_trip_ns", "round-trip", "ns", 1e5),
    ("quota", "throttled", "throttled", "share", Contrast.SHARE),
    ("snapshots", "oldest_transactions", "snapshot-age", "count", 1000.0),
    ("standbys", "replay_bytes", "standby-lag", "bytes", 1e6),
)  # fmt: skip


def _columns(r: Recorded, times: Sequence[Stretch]) -> Iterator[Series]:
    for source, column, id, unit, least in _NAMED:
        rows = [row for row in r.rows(source) if row.get(column) is not None]
        for about, part in _by(rows, lambda row: str(row.get("device") or row.get("standby") or "")).items():
            values = _over(times, part, lambda row, column=column: float(row[column]), part)  # type: ignore[misc]
            yield Series(id, about, unit, values, least)
    if (others := _others_cpu(r, times)) is not None:
        yield Series("others-cpu", "", "two", others, 0.1)


def _others_cpu(r: Recorded, times: Sequence[Stretch]) -> Array | None:
    """Processors that neither PostgreSQL nor pgdyno used, over the samples."""
    if not r.rows("machine") or not r.rows("processes"):
        return None
    columns = ("cpu_user", "cpu_nice", "cpu_system")
    whole = _over(times, r.rows("machine"), lambda row: sum(row[c] for c in columns), r.rows("machine"))
    return np.maximum(0.0, whole - _over(times, r.rows("processes"), lambda row: row["cpu"], r.rows("processes")))


def _by(rows: Sequence[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _over(times: Sequence[Stretch], rows: Sequence[Row], value: Callable[[Row], float], every: Sequence[Row]) -> Array:
    """Return the mean of a source over each of `times`; rows of one sample are added.

    `every` are the rows that tell when the source was sampled: a sample of those without a row here is 0.
    """
    added: dict[Stretch, float] = {}
    for row in rows:
        key = (row["start_ns"], row["end_ns"])
        added[key] = added.get(key, 0.0) + value(row)
    return mean_over(times, added, {(row["start_ns"], row["end_ns"]) for row in every})
