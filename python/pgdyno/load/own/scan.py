r"""Text of SQL as psql cuts it: statements, lines of its own commands, and rows behind COPY ... FROM stdin."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

_TAG = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][\w]*)?\$")
#: Where something may begin that is not plain.
_STOP = re.compile(r"--|/\*|['\"$;()]|\w+|\n")
_FROM_STDIN = re.compile(r"\s*copy\b.*\bfrom\s+stdin\b", re.IGNORECASE | re.DOTALL)
_FUNCTION = re.compile(r"\s*create\s+(?:or\s+replace\s+)?(?:function|procedure)\b", re.IGNORECASE)


_ATOMIC = re.compile(r"\s+atomic\b", re.IGNORECASE)


class Kind(enum.Enum):
    """Kind of a part of a file."""

    STATEMENT = "statement"
    COMMAND = "command"
    #: A COPY ... FROM stdin; its rows are in `data`.
    COPY = "copy"


@dataclass(frozen=True)
class Part:
    """A part, and where it begins in the text."""

    kind: Kind
    text: str
    offset: int
    data: str = ""
    #: The statement without what is quoted and without comments, of the same length.
    bare: str = ""


def end_of_quoted(text: str, at: int) -> int:
    """Behind what is quoted, or a comment, from `at` on; `at` itself where nothing is."""
    c, two = text[at], text[at : at + 2]
    if two == "--":
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if two == "/*":
        # Comments nest.
        depth, n = 1, at + 2
        while n < len(text) and depth:
            pair = text[n : n + 2]
            depth += (pair == "/*") - (pair == "*/")
            n += 2 if pair in ("/*", "*/") else 1
        return n
    if c in "'\"":
        escapes = c == "'" and at > 0 and text[at - 1] in "eE" and (at < 2 or not _is_word(text[at - 2]))
        n = at + 1
        while n < len(text):
            if escapes and text[n] == "\\":
                n += 2
            elif text[n] == c:
                if text[n + 1 : n + 2] != c:
                    return n + 1
                n += 2
            else:
                n += 1
        return len(text)
    if c == "$" and (at == 0 or not _is_word(text[at - 1])) and (tag := _TAG.match(text, at)):
        end = text.find(tag[0], tag.end())
        return len(text) if end < 0 else end + len(tag[0])
    return at


def _is_word(c: str) -> bool:
    return c.isalnum() or c in "_$"


def blanked(text: str) -> str:
    """Blanks in its place; line breaks stay."""
    return re.sub(r"[^\n]", " ", text)


def parts(text: str) -> Iterator[Part]:
    """All of a text, in its order."""
    at = 0
    while at < len(text):
        part, at = _next(text, at)
        if part is not None:
            yield part


def _next(text: str, at: int) -> tuple[Part | None, int]:
    """Return the part that begins at `at`, or None, and the position where the next part begins."""
    bare: list[str] = []
    begin, parentheses, blocks, is_function = at, 0, 0, False
    while at < len(text):
        match = _STOP.search(text, at)
        here = len(text) if match is None else match.start()
        if "\\" in text[at:here] and not "".join(bare).strip() and not text[at:here].split("\\", 1)[0].strip():
            return _command(text, at + text[at:here].index("\\"))
        bare.append(text[at:here])
        at = here
        if match is None:
            break
        word = match[0]
        end = end_of_quoted(text, at)
        if end > at:
            bare.append(blanked(text[at:end]))
            at = end
            continue
        at = match.end()
        bare.append(word)
        if word in "()":
            parentheses += 1 if word == "(" else -1
        elif word == ";":
            if parentheses <= 0 and blocks <= 0:
                return _ended(text, begin, at, "".join(bare))
        elif word[0].isalpha():
            # A body of SQL (BEGIN ATOMIC) has semicolons of its own.
            lower = word.lower()
            if lower in ("function", "procedure"):
                is_function = is_function or _FUNCTION.match("".join(bare)) is not None
            elif is_function and blocks == 0 and lower == "begin" and _ATOMIC.match(text, at):
                blocks = 1
            elif blocks and lower in ("case", "end"):
                blocks += 1 if lower == "case" else -1
    return _ended(text, begin, len(text), "".join(bare))


def _ended(text: str, begin: int, end: int, bare: str) -> tuple[Part | None, int]:
    if not bare.strip(" \t\r\n;\ufeff"):
        return None, end
    start = begin + len(bare) - len(bare.lstrip())
    found = Part(Kind.STATEMENT, text[start:end], start, bare=bare.lstrip())
    if not _FROM_STDIN.match(bare):
        return found, end
    first = text.find("\n", end)
    first = len(text) if first < 0 else first + 1
    match = re.compile(r"^\\\.\r?$", re.MULTILINE).search(text, first)
    last, after = (len(text), len(text)) if match is None else (match.start(), match.end())
    return Part(Kind.COPY, found.text, start, text[first:last].replace("\r\n", "\n"), found.bare), after


def _command(text: str, at: int) -> tuple[Part, int]:
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return Part(Kind.COMMAND, text[at:end].rstrip("\r"), at), end


class LineScanner:
    """Scanner that detects whether a line of a long text begins outside of quotes and is no row of a COPY.

    Feed the lines in their order.
    """

    def __init__(self) -> None:
        #: What is open: "" for nothing.
        self._open = ""
        self._in_rows = False
        self._statement = ""

    @property
    def is_plain(self) -> bool:
        """Return True if the next line begins outside of quotes, and is no row of a COPY."""
        return not self._open and not self._in_rows

    def feed(self, line: str) -> None:
        """Process the next line, including its line end."""
        if self._in_rows:
            self._in_rows = line.rstrip("\r\n") != "\\."
            return
        at = 0
        while at < len(line):
            at = self._within(line, at) if self._open else self._outside(line, at)
        if not self._open and self._statement.rstrip().endswith(";"):
            self._in_rows = _FROM_STDIN.match(self._statement) is not None
            self._statement = ""

    def _outside(self, line: str, at: int) -> int:
        match = re.compile(r"--|/\*|['\"]|\$(?:[A-Za-z_]\w*)?\$").search(line, at)
        # Of a statement its beginning and its end are looked at.
        self._statement = (self._statement + line[at : len(line) if match is None else match.start()])[-4000:]
        if match is None or match[0] == "--":
            return len(line)
        word = match[0]
        escapes = word == "'" and re.search(r"(?<![\w$])[eE]$", line[: match.start()]) is not None
        self._open = "E'" if escapes else word
        return match.end()

    def _within(self, line: str, at: int) -> int:
        if self._open == "E'":
            match = re.compile(r"(?:[^'\\]|\\.|'')*'(?!')", re.DOTALL).match(line, at)
        elif self._open in ("'", '"'):
            q = self._open
            match = re.compile(rf"(?:[^{q}]|{q}{q})*{q}(?!{q})", re.DOTALL).match(line, at)
        else:
            end = re.escape("*/" if self._open == "/*" else self._open)
            match = re.compile(rf".*?{end}", re.DOTALL).match(line, at)
        if match is None:
            return len(line)
        self._open = ""
        return match.end()
