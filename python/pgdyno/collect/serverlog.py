"""The server's log as events: checkpoints, autovacuums, lock waits, temporary files, errors, crashes."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.collect.logformat import Reader, Record
from pgdyno.message import Name, Text, message
from pgdyno.model import EventKind
from pgdyno.units import Quantity

#: Of very much the beginning is read.
_MOST_BYTES = 64 << 20
#: Kind of event, and what its message begins with or has in it.
_KINDS = (
    (EventKind.CHECKPOINT_BEGINS, re.compile(r"(?:checkpoint|restartpoint) starting: ?(.*)")),
    (EventKind.CHECKPOINT_ENDS, re.compile(r"(?:checkpoint|restartpoint) complete: (.*)")),
    (
        EventKind.AUTOVACUUM,
        re.compile(r"automatic (?:aggressive )?(?:vacuum|analyze) (?:to prevent .* )?of table (.*)"),
    ),
    (EventKind.LOCK_WAIT, re.compile(r"process \d+ (?:still waiting for|acquired) (.*)")),
    (EventKind.TEMPORARY_FILE, re.compile(r"temporary file: (.*)")),
    (EventKind.TOO_MANY_CHECKPOINTS, re.compile(r"checkpoints are occurring too frequently (.*)")),
    (EventKind.CONFIGURATION_RELOADED, re.compile(r"received SIGHUP, reloading configuration files()")),
    (EventKind.SERVER_STOPS, re.compile(r"received (?:fast|smart|immediate) shutdown request()")),
    (EventKind.SERVER_PROCESS_DIED, re.compile(r".+ \(PID \d+\) was terminated (.*)")),
    (EventKind.RECOVERY, re.compile(r"(database system was (?:not properly shut down|interrupted).*)")),
)  # fmt: skip
_QUOTED = re.compile(r"'[^']*'")
#: Severities that are told whatever they say.
_SEVERE = {"ERROR", "FATAL", "PANIC"}
#: Events of one kind; more say no more.
MOST = 200


@dataclass(frozen=True)
class LogEvent:
    """Something that the server's log tells."""

    #: Nanoseconds since 1970.
    at_ns: int
    kind: EventKind
    text: str


class Log:
    """Messages that a server writes to its log from now on, in whichever files."""

    def __init__(self, path: Path, read: Reader, name: str | None = None) -> None:
        """Start at the current end of a server log.

        `path` is the file that the server writes now. `name` is log_filename, given if other files may follow. Raise
        OSError if the file cannot be read.
        """
        self._path = path
        self._read = read
        with path.open("rb") as f:
            there = os.fstat(f.fileno())
        self._file = (there.st_dev, there.st_ino)
        self._begin = there.st_size
        self._since = time.time()
        # What each %-escape becomes is whatever the date was; logrotate appends a number.
        parts = [re.escape(x) for x in re.split(r"%[#-]?[a-zA-Z]", Path(name or path.name).with_suffix("").name)]
        self._name = re.compile(rf"{'.+'.join(parts)}{re.escape(path.suffix)}(?:[.-]\d+)?")

    def events(self) -> tuple[list[LogEvent], list[Text]]:
        """Return the events in order of time, and messages on log parts that could not be read.

        There are at most MOST events of each kind.
        """
        missing: list[Text] = []
        found: list[LogEvent] = []
        left = _MOST_BYTES
        for path, begin in self._files():
            try:
                with path.open("rb") as f:
                    f.seek(begin)
                    raw = f.read(left + 1)
            except OSError as e:
                missing.append(message("gap-log-file", file=Name(path.name), reason=Name(e.strerror or str(e))))
                continue
            if len(raw) > left:
                missing.append(message("gap-log-long", file=Name(path.name), size=Quantity(_MOST_BYTES, "bytes")))
            found += _events(self._read(raw[:left].decode("utf-8", "replace")))
            left = max(0, left - len(raw))
        if not self._files():
            missing.append(message("gap-log-gone", file=Name(self._path.name)))
        counts: Counter[str] = Counter()
        kept = []
        for event in sorted(found, key=lambda e: e.at_ns):
            counts[event.kind] += 1
            if counts[event.kind] <= MOST:
                kept.append(event)
        return kept, missing

    def _files(self) -> list[tuple[Path, int]]:
        """Return the log files written since the start, each with the position to read from.

        The first file may have a new name by now (logrotate). It may also be shorter than before
        (log_truncate_on_rotation, copytruncate).
        """
        found: list[tuple[float, Path, int]] = []
        try:
            beside = sorted(self._path.parent.iterdir())
        except OSError:
            beside = [self._path]
        for path in beside:
            if path != self._path and not self._name.fullmatch(path.name):
                continue
            try:
                there = path.stat()
            except OSError:
                continue
            is_first = (there.st_dev, there.st_ino) == self._file
            if is_first or (path.is_file() and there.st_mtime >= self._since):
                begin = self._begin if is_first and there.st_size >= self._begin else 0
                found.append((there.st_mtime, path, begin))
        return [(path, begin) for _, path, begin in sorted(found)]


def _events(records: Iterator[Record]) -> Iterator[LogEvent]:
    for record in records:
        kind: EventKind | None = None
        words = record.message
        if record.severity in _SEVERE:
            kind = EventKind(record.severity.lower())
        else:
            for name, pattern in _KINDS:
                if (m := pattern.match(record.message)) is not None:
                    kind, words = name, m[1]
                    break
        if kind is not None:
            # Messages quote values: of somebody's data, or worse.
            words = _QUOTED.sub("'…'", words)[:500] if record.severity in _SEVERE else words[:500]
            yield LogEvent(record.at_ns, kind, words)
