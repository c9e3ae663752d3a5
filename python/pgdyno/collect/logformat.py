"""The forms of a server's log, each read as records: lines that begin with log_line_prefix, csvlog, jsonlog."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from pgdyno.errors import ReasonError, msg

#: A text of the log, as its records in their order; what is of another form is passed over.
Reader = Callable[[str], Iterator["Record"]]
_SEVERITY = r"(DEBUG[1-5]?|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|STATEMENT|DETAIL|HINT|CONTEXT|QUERY|LOCATION)"
#: What %m, %t and %s make; the zone's name is a number where it has none.
_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})? [A-Za-z0-9+:-]+"
_EPOCH = r"\d{9,11}\.\d{3}"
_ESCAPE = re.compile(r"%(-?\d*)([a-zA-Z%])")
#: Of a record of csvlog, where these stand (the same in all versions).
_CSV_TIME, _CSV_SEVERITY, _CSV_MESSAGE = 0, 11, 13


@dataclass(frozen=True)
class Record:
    """One message."""

    #: Nanoseconds since 1970.
    at_ns: int
    severity: str
    message: str


def read_lines(prefix: str, zone: str) -> Reader:
    """Return the reader for a log with this log_line_prefix and log_timezone.

    Raise ReasonError if such a log cannot be read.
    """
    escapes = [m[2] for m in _ESCAPE.finditer(prefix)]
    times = [e for e in escapes if e in "mts"]
    wanted = next((e for e in "mtn" if e in escapes), None)
    if wanted is None:
        raise ReasonError(msg("why-prefix-without-time", prefix=prefix))
    clock: Callable[[str], int | None] = _since_1970
    pattern = rf".*?(?<!\d)({_EPOCH})(?!\d).*?\b{_SEVERITY}:  (.*)"
    if wanted != "n":
        # The time when the session began may stand before it.
        before = f".*?{_TIME}" * times.index(wanted) + ".*?"
        pattern = rf"{before}({_TIME})(?![\w:]).*?\b{_SEVERITY}:  (.*)"
        clock = _clock(zone)
    line = re.compile(pattern)

    def read(text: str) -> Iterator[Record]:
        for match in map(line.match, text.splitlines()):
            # Without one it goes on from the line above, or is of another form.
            if match is not None and (at_ns := clock(match[1])) is not None:
                yield Record(at_ns, match[2], match[3])

    return read


def read_csv(zone: str) -> Reader:
    """Return the reader for csvlog.

    Raise ValueError if such a log cannot be read.
    """
    clock = _clock(zone)

    def read(text: str) -> Iterator[Record]:
        rows = csv.reader(io.StringIO(text.replace("\0", "")))
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error:
                # A field of more than 128 KiB: a statement.
                continue
            if len(row) > _CSV_MESSAGE and (at_ns := clock(row[_CSV_TIME])) is not None:
                yield Record(at_ns, row[_CSV_SEVERITY], row[_CSV_MESSAGE])

    return read


def read_json(zone: str) -> Reader:
    """Return the reader for jsonlog.

    Raise ValueError if such a log cannot be read.
    """
    clock = _clock(zone)

    def read(text: str) -> Iterator[Record]:
        for line in text.splitlines():
            try:
                d = json.loads(line)
                at_ns = clock(str(d["timestamp"]))
                record = Record(at_ns or 0, str(d["error_severity"]), str(d.get("message", "")))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
            if at_ns is not None:
                yield record

    return read


def _since_1970(text: str) -> int:
    seconds, _, ms = text.partition(".")
    return (int(seconds) * 1000 + int(ms)) * 1_000_000


def _clock(zone: str) -> Callable[[str], int | None]:
    """Return a function that reads a time such as "2026-01-02 03:04:05.678 CET".

    The function returns nanoseconds since 1970, or None if the text is not a time.
    """
    try:
        here = ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as e:
        raise ReasonError(msg("why-unknown-zone", zone=zone)) from e

    def read(text: str) -> int | None:
        stamp, _, name = text.rpartition(" ")
        try:
            at = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S.%f" if "." in stamp else "%Y-%m-%d %H:%M:%S")
        except ValueError:
            return None
        first, second = (at.replace(tzinfo=here, fold=fold) for fold in (0, 1))
        # In the hour that comes twice a year its name tells which one it is.
        which = second if second.tzname() == name != first.tzname() else first
        return round(which.timestamp() * 1000) * 1_000_000

    return read
