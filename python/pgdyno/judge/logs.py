"""Throughput over time as other tools print it: pgbench, sysbench, HammerDB, go-tpc, BenchBase, k6, or plain numbers.

Each format is recognised by its lines, whatever else stands between them.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pgdyno.errors import UsageError, msg

#: A file larger than this is no report of a run, but for logs of transactions.
MOST_BYTES = 2 << 30
#: A run is not longer than this: a time beyond it is damaged.
_LONGEST_S = 100 * 86_400


@dataclass(frozen=True)
class Measured:
    """A series of throughput from a file."""

    path: str
    #: Tool and kind of file.
    format: str
    #: Unit of the values: "TPS", "QPS", "tpmC", ...
    unit: str
    #: Seconds that a value covers.
    period_s: float
    values: tuple[float, ...]
    #: Failed transactions or errors that the file counts; None: it does not.
    failed: int | None = None


def read(path: Path) -> Measured:
    """Read a series. Raise UsageError if the file cannot be read or has no series that pgdyno knows."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(msg("error-judge-too-large", path=path), msg("remedy-judge-aggregate"))
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as e:
        raise UsageError(msg("error-cannot-be-read", path=path, reason=e)) from e
    for parse in _FORMATS:
        if (found := parse(text)) is not None and found.values:
            name, unit, period, values, failed = found.format, found.unit, found.period_s, found.values, found.failed
            return Measured(str(path), name, unit, period, values, failed)
    raise UsageError(msg("error-judge-unknown", path=path), msg("remedy-judge-formats"))


# ---------------------------------------------------------------- the formats

_PROGRESS = re.compile(
    r"^(?:pgbench: )?progress: ([\d.]+) s, ([\d.]+) tps, lat \S+ ms(?: stddev \S+)?(?:, (\d+) failed)?",
    re.MULTILINE,
)


def _pgbench_progress(text: str) -> Measured | None:
    found = _PROGRESS.findall(text)
    times = [float(at) for at, _, _ in found]
    failed = sum(int(n) for _, _, n in found if n) if any(n for _, _, n in found) else None
    return _series("pgbench -P", "TPS", times, [float(tps) for _, tps, _ in found], failed)


_SYSBENCH = re.compile(r"^\[ (\d+)s \] thds: \d+ tps: ([\d.]+) qps: [\d.]+", re.MULTILINE)


def _sysbench(text: str) -> Measured | None:
    found = _SYSBENCH.findall(text)
    times = [float(at) for at, _ in found]
    errors = re.search(r"ignored errors:\s+(\d+)", text)
    return _series("sysbench", "TPS", times, [float(tps) for _, tps in found], int(errors[1]) if errors else None)


def _pgbench_log(text: str) -> Measured | None:
    """Read logs of pgbench: one line a transaction (its fifth column is the time), or one an interval (its first)."""
    lines = text.splitlines()
    if not lines or not re.fullmatch(r"[\d.]+( [\d.]+| skipped| failed| -?\d+)+", lines[0].strip()):
        return None
    first = lines[0].split()
    if len(first) < 6:
        return None
    if len(first[4]) == 10 and first[4].isdigit():
        return _transactions(lines)
    if len(first[0]) != 10 or not first[0].isdigit():
        return None
    rows = [(_number(r[0]), _number(r[1])) for r in map(str.split, lines) if len(r) >= 6]
    known = [(at, n) for at, n in rows if at is not None and n is not None]
    found = _series("pgbench --log --aggregate-interval", "TPS", *_columns(known), None)
    # The last interval is cut off where the run ended.
    return found and replace(found, values=tuple(n / found.period_s for n in found.values[:-1]))


def _columns(rows: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in rows], [y for _, y in rows]


def _transactions(lines: Sequence[str]) -> Measured | None:
    counts: dict[int, int] = {}
    failed = 0
    for line in lines:
        parts = line.split()
        if len(parts) < 6 or not parts[4].isdigit():
            continue
        if parts[2] in ("failed", "skipped"):
            failed += 1
            continue
        second = int(parts[4])
        counts[second] = counts.get(second, 0) + 1
    if len(counts) < 3 or max(counts) - min(counts) > _LONGEST_S:
        return None
    # Of the first and the last second a part is missing.
    values = [float(counts.get(second, 0)) for second in range(min(counts) + 1, max(counts))]
    return Measured("", "pgbench --log", "TPS", 1.0, tuple(values), failed)


def _hammerdb(text: str) -> Measured | None:
    """Read HammerDB's transaction counter: "182238 PostgreSQL tpm", each ten seconds as it counts by default."""
    found = [
        float(n)
        for n in re.findall(r"^\s*(\d+) (?:PostgreSQL|MySQL|MariaDB|Oracle|MSSQLServer|Db2) tpm\b", text, re.MULTILINE)
    ]
    return Measured("", "HammerDB", "tpm", 10.0, tuple(found)) if len(found) > 1 else None


def _go_tpc(text: str) -> Measured | None:
    """Read the lines of new orders of go-tpc, one a block."""
    found = re.findall(
        r"^\[Current\] NEW_ORDER - Takes\(s\): ([\d.]+), Count: (\d+), TPM: ([\d.]+)", text, re.MULTILINE
    )
    if len(found) < 2:
        return None
    periods = [float(s) for s, _, _ in found]
    return Measured("", "go-tpc", "tpmC", statistics.median(periods), tuple(float(tpm) for _, _, tpm in found))


def _k6(text: str) -> Measured | None:
    """Read points of k6 (--out json): its counter of iterations, by second."""
    if not text.startswith('{"') or '"iterations"' not in text:
        return None
    counts: dict[int, float] = {}
    for line in text.splitlines():
        try:
            point = json.loads(line)
            if point.get("type") == "Point" and point.get("metric") == "iterations":
                second = int(datetime.fromisoformat(f"{str(point['data']['time'])[:19]}+00:00").timestamp())
                counts[second] = counts.get(second, 0.0) + float(point["data"]["value"])
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    if len(counts) < 3 or max(counts) - min(counts) > _LONGEST_S:
        return None
    # A second without an iteration has no point. Of the first and the last second a part is missing.
    values = [counts.get(second, 0.0) for second in range(min(counts) + 1, max(counts))]
    return Measured("", "k6 --out json", "iterations/s", 1.0, tuple(values))


#: Columns of throughput of BenchBase, OLTP-Bench and others, in lower case, and their unit.
_THROUGHPUT = re.compile(r"^(throughput \((?:req|requests)/(?:sec|second)\)|requests/sec|throughput|tps|qps|tpm|tpmc)$")
_TIME = re.compile(r"^(time \(seconds\)|time|seconds|elapsed|t)$")


def _table(text: str) -> Measured | None:
    """Read a CSV whose header names a throughput: BenchBase's results and samples, or somebody's own."""
    header, _, rest = text.partition("\n")
    names = [n.strip().strip('"').lower() for n in header.split(",")]
    column = next((i for i, n in enumerate(names) if _THROUGHPUT.match(n)), None)
    if column is None or not rest.strip():
        return None
    when = next((i for i, n in enumerate(names) if _TIME.match(n)), None)
    values, times = [], []
    for row in csv.reader(io.StringIO(rest)):
        if len(row) > column and (value := _number(row[column])) is not None:
            values.append(value)
            times.append(_number(row[when]) if when is not None and len(row) > when else None)
    known = [t for t in times if t is not None]
    unit = {"qps": "QPS", "tpm": "tpm", "tpmc": "tpmC"}.get(names[column], "TPS")
    if len(known) == len(values):
        return _series("CSV", unit, known, values, None)
    return Measured("", "CSV", unit, 1.0, tuple(values))


def _plain(text: str) -> Measured | None:
    """Read numbers, one a line, or all in one line: lines of several are a log of another kind."""
    lines = text.split("\n")
    words = text.split()
    if sum(map(bool, map(str.strip, lines))) not in (1, len(words)):
        return None
    numbers = [_number(w) for w in words]
    if len(words) < 2 or any(n is None for n in numbers):
        return None
    return Measured("", "numbers", "TPS", 1.0, tuple(n for n in numbers if n is not None))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e15 else None


def _series(
    name: str, unit: str, times: Sequence[float], values: Sequence[float], failed: int | None
) -> Measured | None:
    """Return values whose times are known, without those that cover less than the others; None for fewer than two."""
    if len(values) < 2:
        return None
    periods = [b - a for a, b in itertools.pairwise(times)]
    period = statistics.median(periods)
    if period <= 0:
        return None
    whole = [True, *(p > 0.5 * period for p in periods)]
    return Measured("", name, unit, period, tuple(v for v, w in zip(values, whole, strict=True) if w), failed)


_FORMATS: tuple[Callable[[str], Measured | None], ...] = (
    _pgbench_progress, _sysbench, _hammerdb, _go_tpc, _k6, _pgbench_log, _table, _plain,
)  # fmt: skip
