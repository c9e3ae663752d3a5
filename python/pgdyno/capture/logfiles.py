"""Statements in a server's log files: csvlog, jsonlog, or stderr with its log_line_prefix.

Files may be compressed and in any language that PostgreSQL supports.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TextIO

from pgdyno.capture import languages
from pgdyno.errors import ReasonError, UsageError, msg, reason
from pgdyno.message import Argument, Name, Text, message

_PARAMETERS = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')")
#: Of csvlog's columns.
_CSV = {"timestamp": 0, "dbname": 2, "session_id": 5, "message": 13, "detail": 14, "application_name": 22}
_LONGEST = 64 << 20
_SOME_DAY = datetime(2000, 1, 1)
#: Lines of a log on stderr that a prefix is tried with.
_TRIED = 400
#: Prefixes that are common, after the server's own: PostgreSQL's default, Debian's, pgBadger's.
_PREFIXES = (
    "%m [%p] ", "%m [%p] %q%u@%d ", "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ", "%t [%p]: [%l-1] db=%d,user=%u ",
    "%t [%p]: ", "%t ", "",
)  # fmt: skip
_ESCAPES = {
    "a": r"(?P<application_name>.*?)", "u": r"\S*?", "d": r"(?P<dbname>\S*?)", "r": r"\S*?", "h": r"\S*?",
    "b": r"[\w ]*?",
    "p": r"(?P<pid>\d+)", "P": r"\d*", "t": r"(?P<timestamp>[\d-]+ [\d:]+ \S+?)",
    "m": r"(?P<timestamp>[\d-]+ [\d:.]+ \S+?)", "n": r"(?P<timestamp>[\d.]+)",
    "i": r"[\w ]*?", "e": r"\w{5}", "c": r"(?P<session>[0-9a-f]+\.[0-9a-f]+)", "l": r"\d+", "s": r"[\d-]+ [\d:]+ \S+?",
    "v": r"[\d/]*", "x": r"\d+", "Q": r"-?\d+", "L": r"\S*", "%": "%",
}  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """A statement that was executed, with its parameters by number."""

    session: str
    text: str
    parameters: dict[int, str | None]
    #: When it was over, seconds from some day; how long it took, milliseconds. None: the log does not say.
    at: float | None = field(default=None, compare=False)
    ms: float | None = field(default=None, compare=False)


class Reader:
    """Reads logs, one after the other, and counts what it leaves out."""

    def __init__(self, paths: Sequence[Path], database: str, prefix: str) -> None:
        self._paths, self._database, self._prefix = paths, database, prefix
        self._others: Counter[str] = Counter()
        self._entries = self._fetches = self._cut = 0
        self._without_database = False
        self._found = False

    def notes(self) -> list[Text]:
        """Return the notes on the log that a reader of the capture needs."""
        out: list[Text] = []
        if self._fetches:
            out.append(message("capture-fetches", n=self._fetches))
        if self._cut:
            out.append(message("capture-cut-off", n=self._cut))
        if self._without_database:
            out.append(message("capture-log-without-database"))
        if not self._found:
            others = ", ".join(name for name, _ in self._others.most_common(5) if name)
            known: dict[str, Argument] = {"n": self._entries, "database": Name(self._database)}
            if others:
                out.append(message("capture-log-of-others", **known, others=Name(others)))
            else:
                out.append(message("capture-log-without-statements", **known))
        return out

    def statements(self) -> Iterator[Statement]:
        """All statements of the database, in order. Raises UsageError with file and line."""
        for path in self._paths:
            try:
                with _opened(path) as f:
                    name = path.name.removesuffix(".gz")
                    if name.endswith(".json"):
                        yield from self._read_json(path, f)
                    elif name.endswith(".csv"):
                        yield from self._read_csv(path, f)
                    else:
                        yield from self._read_stderr(path, f)
            except (OSError, EOFError) as e:
                raise UsageError(msg("error-cannot-read", path=path, reason=reason(e))) from e

    def _read_csv(self, path: Path, lines: TextIO) -> Iterator[Statement]:
        csv.field_size_limit(_LONGEST)
        short = 0
        for number, row in enumerate(csv.reader(lines), 1):
            if short:
                raise UsageError(
                    msg("error-entry-too-few-columns-not", path=path, short=short),
                    msg("remedy-log-destination-csvlog-or-jsonlog"),
                )
            if len(row) < 23:
                # The last one may be under way.
                short = number
                continue
            yield from self._statement({name: row[at] for name, at in _CSV.items()})
        if short == 1:
            raise UsageError(msg("error-entry-1-too-few-columns", path=path))
        self._cut += short > 0

    def _read_json(self, path: Path, lines: TextIO) -> Iterator[Statement]:
        wrong: UsageError | None = None
        for number, line in enumerate(lines, 1):
            if wrong is not None:
                raise wrong
            try:
                facts = json.loads(line)
                if not isinstance(facts, dict):
                    raise ReasonError(msg("why-not-object"))
            except (ValueError, RecursionError) as e:
                wrong = UsageError(msg("error-not-jsonlog-postgresql-s", path=path, number=number, reason=e))
                if number == 1:
                    raise wrong from e
                continue
            yield from self._statement({name: str(facts.get(name) or "") for name in _CSV})
        self._cut += wrong is not None

    # ------------------------------------------------------------ stderr

    def _read_stderr(self, path: Path, lines: TextIO) -> Iterator[Statement]:
        head = [line for _, line in zip(range(_TRIED), lines, strict=False)]
        pattern = self._pattern(head)
        if pattern is None:
            raise UsageError(
                msg("error-no-line-begins-log-line", path=path, prefix=repr(self._prefix)),
                msg("remedy-csvlog-csv-jsonlog-json-none"),
            )
        facts: dict[str, str] = {}
        for line in (x for part in (head, lines) for x in part):
            match = pattern.match(line.rstrip("\r\n"))
            if match is None:
                # A line of an entry of several begins with a tab.
                field = "detail" if facts.get("detail") else "message"
                if facts:
                    facts[field] += "\n" + line.rstrip("\r\n").removeprefix("\t")
                continue
            if match["level"] not in languages.IS_ENTRY:
                if facts and "$1 = " in match["message"]:
                    facts["detail"] = match["message"]
                elif facts:
                    # What else belongs to an entry (its context) is none of its message.
                    facts["detail"] = facts.get("detail") or " "
                continue
            if facts:
                yield from self._statement(facts)
            found = match.groupdict()
            facts = {
                "dbname": found.get("dbname") or self._unnamed(),
                "session_id": found.get("session") or found.get("pid") or "",
                "application_name": found.get("application_name") or "",
                "timestamp": found.get("timestamp") or "",
                "message": match["message"],
                "detail": "",
            }
        if facts:
            yield from self._statement(facts)

    def _unnamed(self) -> str:
        self._without_database = True
        return self._database

    def _pattern(self, lines: Sequence[str]) -> re.Pattern[str] | None:
        """Return the pattern of the prefix that most lines begin with.

        Of two equally common prefixes, the earlier one wins.
        """
        best, most = None, 0
        for prefix in dict.fromkeys((self._prefix, *_PREFIXES)):
            pattern = re.compile(_read_prefix(prefix) + languages.LEVEL.pattern, re.DOTALL)
            fitting = sum(pattern.match(line) is not None for line in lines)
            if fitting > most:
                best, most = pattern, fitting
        return best

    # ------------------------------------------------------------ any

    def _statement(self, facts: dict[str, str]) -> Iterator[Statement]:
        self._entries += 1
        if facts["dbname"] != self._database:
            self._others[facts["dbname"]] += 1
            return
        match = languages.MESSAGE.match(facts["message"]) or languages.PLAN.match(facts["message"])
        if match is None or facts["application_name"] == "pgdyno admin":
            return
        if match.groupdict().get("fetch"):
            self._fetches += 1
            return
        self._found = True
        given = {
            int(n): None if v == "NULL" else v[1:-1].replace("''", "'") for n, v in _PARAMETERS.findall(facts["detail"])
        }
        yield Statement(facts["session_id"], match["text"], given, _seconds(facts["timestamp"]), _ms(match["ms"]))


def _seconds(text: str) -> float | None:
    """Return a log time in seconds, by a clock without time zones.

    Only the difference between two such times is used. None means that the time cannot be read.
    """
    try:
        # %n of log_line_prefix is in seconds.
        return float(text)
    except ValueError:
        pass
    with contextlib.suppress(ValueError):
        return (datetime.fromisoformat(" ".join(text.split()[:2])) - _SOME_DAY).total_seconds()
    return None


def _ms(text: str | None) -> float | None:
    """Parse a duration; its decimal point is a comma in some languages."""
    with contextlib.suppress(ValueError):
        return float(text.replace(",", ".")) if text else None
    return None


def _opened(path: Path) -> TextIO:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", errors="replace", newline="")
    return path.open(encoding="utf-8", errors="replace", newline="")


def _read_prefix(prefix: str) -> str:
    """Convert a log_line_prefix into a regular expression.

    A number between % and the letter pads the value.
    """
    out, used = [], set()
    for text, _, letter in re.findall(r"([^%]+)|%(-?\d*)(.)", prefix):
        if text:
            out.append(re.escape(text))
        elif letter == "q":
            # Processes that are no sessions end here.
            out.append("(?:")
            used.add("(")
        else:
            pattern = _ESCAPES.get(letter, r"\S*?")
            name = re.match(r"\(\?P<(\w+)>", pattern)
            if name is not None and name[1] in used:
                pattern = pattern.replace(name[0], "(?:")
            elif name is not None:
                used.add(name[1])
            out.append(rf"\s*{pattern}\s*" if _ else pattern)
    return "^" + "".join(out) + (")?" if "(" in used else "")
