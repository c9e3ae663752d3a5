"""HdrHistogram's log format, version 1.3: one line an interval and tag, readable by the standard HDR tools.

Values are nanoseconds. Tags: `transaction` (committed transactions), `script-N`, `statement-N`, `lag`;
of standbys beside a trial `standby-reads-NAME` (latency), `staleness-NAME` (from a commit's answer until it is seen).
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pgdyno._core import Histogram
from pgdyno.model import PERCENTILES, Latency

#: Histograms by tag.
Latencies = Mapping[str, Histogram]

TRANSACTION = "transaction"
LAG = "lag"
#: What the format divides the column Interval_Max by, by convention: nanoseconds become milliseconds.
MAX_VALUE_UNIT = 1_000_000.0


def statement(n: int) -> str:
    """Return the tag of statement `n`; the numbers run over the whole workload."""
    return f"statement-{n}"


def script(n: int) -> str:
    """Return the tag of script `n`."""
    return f"script-{n}"


def standby_reads(name: str) -> str:
    """Return the tag of the reads on a standby beside the trial."""
    return f"standby-reads-{name}"


def staleness(name: str) -> str:
    """Return the tag of a standby's staleness: the age of the data that it shows."""
    return f"staleness-{name}"


def header(start_ns: int) -> str:
    """Return the lines with which a log begins."""
    seconds = start_ns / 1e9
    when = datetime.fromtimestamp(seconds, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    return (
        "#[Histogram log format version 1.3]\n"
        "#[Values are nanoseconds; recorded by pgdyno]\n"
        f"#[StartTime: {seconds:.3f} (seconds since epoch), {when}]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


def start_of(path: Path) -> int | None:
    """Nanoseconds since 1970 that a log says it began at; None where it does not."""
    try:
        with path.open(encoding="utf-8", errors="replace") as log:
            for row in itertools.islice(log, 8):
                if match := re.match(r"#\[StartTime: ([0-9.]+) ", row):
                    return round(float(match[1]) * 1e9)
    except (OSError, ValueError):
        pass
    return None


def line(tag: str, start_ns: int, end_ns: int, h: Histogram) -> str:
    """One interval; its times count from the log's start."""
    data = base64.b64encode(h.encode()).decode()
    length = (end_ns - start_ns) / 1e9
    return f"Tag={tag},{start_ns / 1e9:.6f},{length:.6f},{h.max / MAX_VALUE_UNIT:.3f},{data}\n"


def intervals(path: Path, starts_ns: Iterable[int]) -> Iterator[tuple[int, str, Histogram]]:
    """Yield start, tag and histogram of the intervals that begin at `starts_ns`.

    The log is read line by line, because that of a long trial is large. A torn last line is left out.
    """
    wanted = {f"{s / 1e9:.6f}": s for s in starts_ns}
    try:
        log = path.open(encoding="utf-8", errors="replace")
    except OSError:
        return
    with log:
        for row in log:
            parts = row.rstrip("\n").split(",")
            if not row.startswith("Tag=") or len(parts) != 5 or parts[1] not in wanted:
                continue
            with suppress(ValueError):
                yield wanted[parts[1]], parts[0].removeprefix("Tag="), decoded(parts[4])


class Tail:
    """A log that may still grow, read once and line by line: intervals are taken in their order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def take(self, start_ns: int) -> dict[str, Histogram]:
        """Return the histograms of the interval that begins at `start_ns`, by tag."""
        found: dict[str, Histogram] = {}
        wanted = f"{start_ns / 1e9:.6f}"
        try:
            log = self._path.open("rb")
        except OSError:
            return found
        with log:
            log.seek(self._at)
            for raw in log:
                row = raw.decode("utf-8", "replace")
                parts = row.rstrip("\n").split(",")
                is_whole = row.endswith("\n")
                if row.startswith("Tag=") and len(parts) == 5 and is_whole:
                    with suppress(ValueError):
                        if float(parts[1]) > float(wanted):
                            break
                        if parts[1] == wanted:
                            found[parts[0].removeprefix("Tag=")] = decoded(parts[4])
                if not is_whole:
                    break
                self._at += len(raw)
        return found


def read_merged(path: Path, starts_ns: Iterable[int]) -> dict[str, Histogram]:
    """Return the merged histograms of the intervals that begin at `starts_ns`, by tag."""
    merged: dict[str, Histogram] = {}
    for _, tag, h in intervals(path, starts_ns):
        merged.setdefault(tag, Histogram()).merge(h)
    return merged


def merged_lines(merged: dict[str, Histogram]) -> str:
    """Return one line per tag: the tag, and the histogram as in a log."""
    return "".join(f"{tag},{base64.b64encode(h.encode()).decode()}\n" for tag, h in merged.items())


def encoded_lines(path: Path) -> dict[str, str] | None:
    """Return the output of `merged_lines` by tag, not decoded, or None if the file does not exist."""
    try:
        with path.open("rb", buffering=0) as file:
            text = file.readall().decode("utf-8", "replace")
    except OSError:
        return None
    return {tag: data for tag, _, data in (line.partition(",") for line in text.splitlines())}


def decoded(data: str) -> Histogram:
    """Decode a histogram from the encoded data of a line.

    Raise ValueError if the data are damaged.
    """
    try:
        return Histogram.decode(base64.b64decode(data, validate=True))
    except Exception as e:
        raise ValueError(str(e)) from e


def latency_of(h: Histogram) -> Latency:
    """Return the figures of a histogram."""
    p50, p95, p99, p999 = (h.percentile(p) for p in PERCENTILES)
    return Latency(h.count, h.mean, h.stddev, h.max, p50, p95, p99, p999)
