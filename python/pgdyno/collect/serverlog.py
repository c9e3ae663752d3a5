"""The server's log as events: checkpoints, autovacuums, lock waits, temporary files, errors, crashes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

#: What log_line_prefix = '%m [%p] ' makes; a UTC zone, which is what our servers have.
_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) (?:UTC|GMT) \[(\d+)\] (?:.*?)([A-Z]+):  (.*)")
#: Of very much the beginning is read.
_MOST_BYTES = 64 << 20
#: Kind of event, and what its message begins with or has in it.
_KINDS = (
    ("checkpoint begins", re.compile(r"(?:checkpoint|restartpoint) starting: ?(.*)")),
    ("checkpoint ends", re.compile(r"(?:checkpoint|restartpoint) complete: (.*)")),
    ("autovacuum", re.compile(r"automatic (?:aggressive )?(?:vacuum|analyze) (?:to prevent .* )?of table (.*)")),
    ("lock wait", re.compile(r"process \d+ (?:still waiting for|acquired) (.*)")),
    ("temporary file", re.compile(r"temporary file: (.*)")),
    ("too many checkpoints", re.compile(r"checkpoints are occurring too frequently (.*)")),
    ("configuration reloaded", re.compile(r"received SIGHUP, reloading configuration files()")),
    ("server stops", re.compile(r"received (?:fast|smart|immediate) shutdown request()")),
    ("server process died", re.compile(r"(?:server process|.* process) \(PID \d+\) was terminated (.*)")),
    ("recovery", re.compile(r"(database system was (?:not properly shut down|interrupted).*)")),
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
    kind: str
    text: str


def size(log: Path) -> int:
    """Bytes that it has now; 0 where it cannot be read."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def events(log: Path, begin: int) -> list[LogEvent]:
    """What stands in a log from byte `begin` on; of each kind at most MOST. Empty where it cannot be read."""
    try:
        with log.open("rb") as f:
            f.seek(begin)
            text = f.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    counts: dict[str, int] = {}
    found = []
    for event in _events(text):
        counts[event.kind] = counts.get(event.kind, 0) + 1
        if counts[event.kind] <= MOST:
            found.append(event)
    return found


def _events(text: str) -> Iterator[LogEvent]:
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            # What goes on from the line above, or is of another form.
            continue
        at, _, severity, message = match.groups()
        kind, words = "", message
        if severity in _SEVERE:
            kind = severity.lower()
        else:
            for name, pattern in _KINDS:
                if (m := pattern.match(message)) is not None:
                    kind, words = name, m[1]
                    break
        if kind:
            when = datetime.strptime(at, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC)
            # Messages quote values: of somebody's data, or worse.
            words = _QUOTED.sub("'…'", words)[:500] if severity in _SEVERE else words[:500]
            yield LogEvent(int(when.timestamp() * 1000) * 1_000_000, kind, words)
