r"""Files of SQL, as psql takes them: statements, and lines of \copy. Carried out in a transaction of the caller's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgdyno import files
from pgdyno.errors import SpecError
from pgdyno.format import one_line
from pgdyno.load.find import Connection

#: Bytes of a file that are sent together.
_PIECE = 1 << 20
_COPY = re.compile(
    r"""\\copy\s+(?P<table>(?:"[^"]+"|[\w$]+)(?:\.(?:"[^"]+"|[\w$]+))?)\s*(?:\((?P<columns>[^)]*)\))?\s+
        from\s+(?P<file>'(?:[^']|'')*'|\S+)\s*(?P<options>.*?);?\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
#: What begins or ends transactions, at the beginning of a statement.
_TRANSACTION = re.compile(
    r"(?:^|;)\s*(begin(?!\s+atomic)|start\s+transaction|commit|end|rollback|abort|prepare\s+transaction)\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"\$(?:[A-Za-z_]\w*)?\$")
_ATOMIC = re.compile(r"\bbegin\s+atomic\b", re.IGNORECASE)
#: Told of bytes sent.
Watch = Callable[[int], object]


@dataclass(frozen=True)
class _Part:
    r"""Statements, or one \copy; where it begins in the file."""

    text: str
    offset: int
    copy: re.Match[str] | None = None


@dataclass(frozen=True)
class SqlFile:
    """A file that has been read."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> SqlFile:
        r"""Raises SpecError with file, line and column: of a file that cannot be read, one that begins or ends
        transactions, an unknown backslash command, a \copy whose file is not there.
        """
        try:
            found = cls(path, files.read_text(path))
        except (OSError, ValueError) as e:
            raise SpecError(f"cannot read {path}: {getattr(e, 'strerror', None) or e}") from e
        for part in found._parts():
            if part.copy is not None:
                data = found._data(part.copy)
                if not data.is_file():
                    raise SpecError(f"{found.at(part.offset)}: there is no file {data}")
        text = blank(found.text)
        # END closes a body of SQL as well.
        matches = [m for m in _TRANSACTION.finditer(text) if m[1].lower() != "end" or not _ATOMIC.search(text)]
        for match in matches:
            raise SpecError(
                f"{found.at(match.start(1))}: {match[1].upper()}: a file is carried out in one transaction, as a whole",
                "Leave BEGIN and COMMIT out.",
            )
        return found

    @property
    def data_files(self) -> list[Path]:
        r"""What its \copy read."""
        return [self._data(p.copy) for p in self._parts() if p.copy is not None]

    def at(self, offset: int) -> str:
        """file:line:column."""
        before = self.text[:offset]
        return f"{self.path}:{before.count(chr(10)) + 1}:{offset - before.rfind(chr(10))}"

    def carry_out(self, conn: Connection, watch: Watch = lambda _: None) -> int:
        """Runs it all; returns rows copied. Raises SpecError where the server refuses a part."""
        rows = 0
        for part in self._parts():
            try:
                if part.copy is None:
                    conn.execute(part.text.encode())
                else:
                    rows += copy_file(conn, self._data(part.copy), part.copy, watch)
                if conn.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
                    raise SpecError(f"{self.at(part.offset)}: it has ended the transaction", "Leave COMMIT out.")
            except psycopg.Error as e:
                if conn.closed:
                    raise
                offset = part.offset + max(0, int(e.diag.statement_position or 1) - 1) * (part.copy is None)
                reason = e.diag.message_primary or one_line(e)
                more = "; ".join(filter(None, (e.diag.message_detail, e.diag.context)))
                raise SpecError(
                    f"{self.at(offset)}: {reason}{f' ({more[:200]})' if more else ''}", e.diag.message_hint or ""
                ) from e
        return rows

    def _data(self, copy: re.Match[str]) -> Path:
        name = copy["file"]
        name = name[1:-1].replace("''", "'") if name.startswith("'") else name
        return (self.path.parent / name).resolve()

    def _parts(self) -> Iterator[_Part]:
        start = offset = 0
        text = blank(self.text)
        for line in self.text.splitlines(keepends=True):
            command = text[offset : offset + len(line)].lstrip()
            if command.startswith("\\"):
                yield from self._statements(text, start, offset)
                match = _COPY.match(line.strip())
                if match is None:
                    word = line.split()[0]
                    raise SpecError(
                        f"{self.at(offset)}: {word}: of psql's commands only \\copy TABLE FROM FILE is known here",
                        "Write it as SQL.",
                    )
                yield _Part(line, offset, match)
                start = offset + len(line)
            offset += len(line)
        yield from self._statements(text, start, len(self.text))

    def _statements(self, text: str, start: int, end: int) -> Iterator[_Part]:
        """One after the other, so that a mistake has its line; of a file with bodies of SQL (BEGIN ATOMIC), in which a
        semicolon ends nothing, all together. `text` is the file without what is quoted.
        """
        ends, depth, whole = [], 0, _ATOMIC.search(text) is not None
        for n in range(start, end):
            depth += (text[n] == "(") - (text[n] == ")")
            if text[n] == ";" and depth <= 0 and not whole:
                ends.append(n + 1)
        for stop in [*ends, end]:
            if text[start:stop].strip(" \t\r\n;"):
                first = start + len(text[start:stop]) - len(text[start:stop].lstrip())
                yield _Part(self.text[first:stop], first)
            start = stop


def blank(text: str) -> str:
    """SQL with blanks in place of strings, quoted names, bodies of functions and comments; line breaks stay."""
    out, at = [], 0
    while at < len(text):
        end = _end_of_quoted(text, at)
        if end > at:
            out.append(re.sub(r"[^\n]", " ", text[at:end]))
        else:
            out.append(text[at])
            end = at + 1
        at = end
    return "".join(out)


def _end_of_quoted(text: str, at: int) -> int:
    """Behind what is quoted from `at` on; `at` itself where nothing is."""
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


def copy_file(conn: Connection, path: Path, copy: re.Match[str], watch: Watch) -> int:
    """One file into its table: CSV and text as they are, Parquet as CSV. Returns the rows."""
    columns = copy["columns"]
    if path.suffix.lower() == ".parquet":
        # Arrow takes long to import.
        from pgdyno.store import tabular

        names, _, pieces = tabular.parquet(path)
        columns = columns or ", ".join('"' + n.replace('"', '""') + '"' for n in names)
        sql = f"copy {copy['table']} ({columns}) from stdin (format csv)"
        contents: Iterator[bytes] = (text for _, text in pieces)
    else:
        sql = f"copy {copy['table']} {f'({columns})' if columns else ''} from stdin {copy['options']}"
        contents = _pieces(path)
    cursor = conn.cursor()
    with cursor.copy(sql.encode()) as to:
        for piece in contents:
            to.write(piece)
            watch(len(piece))
    return max(0, cursor.rowcount)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as f:
        while piece := f.read(_PIECE):
            yield piece
