r"""Files of SQL, as psql takes them: statements, and lines of \copy. They run in a transaction of the caller's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import psycopg

from pgdyno import files
from pgdyno.errors import SpecError, msg, reason
from pgdyno.format import one_line
from pgdyno.load.find import Connection
from pgdyno.load.own.scan import Kind, Part, parts
from pgdyno.message import Message

#: Bytes of a file that are sent together.
_PIECE = 1 << 20
_COPY = re.compile(
    r"""\\copy\s+(?P<table>(?:"[^"]+"|[\w$]+)(?:\.(?:"[^"]+"|[\w$]+))?)\s*(?:\((?P<columns>[^)]*)\))?\s+
        from\s+(?P<file>'(?:[^']|'')*'|\S+)\s*(?P<options>.*?);?\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
#: What begins or ends transactions, makes or removes databases.
_REFUSED = re.compile(
    r"\s*(begin|start\s+transaction|commit|end|rollback|abort|prepare\s+transaction|(?:create|drop)\s+database)\b",
    re.IGNORECASE,
)
#: The same in a part that is not cut: a body of SQL, parentheses. END closes a body.
_WITHIN = re.compile(r";\s*(begin|start\s+transaction|commit|rollback|abort|prepare\s+transaction)\b", re.IGNORECASE)
#: psql's commands that change nothing of what a file makes; and those that lead to another database.
_HARMLESS = frozenset(
    ("\\restrict", "\\unrestrict", "\\set", "\\unset", "\\echo", "\\qecho", "\\warn", "\\pset", "\\timing",
     "\\encoding", "\\x", "\\a", "\\t", "\\errverbose", "\\.")
)  # fmt: skip
_ELSEWHERE = frozenset(("\\c", "\\connect"))
#: What names roles: they may not be there.
_FOR_ROLES = re.compile(
    r"\s*(?:alter\b.*\bowner\s+to\b|grant\b|revoke\b|alter\s+default\s+privileges\b)", re.IGNORECASE | re.DOTALL
)
_EXTENSION = re.compile(r"\s*create\s+extension\s+(?:if\s+not\s+exists\s+)?(\"[^\"]+\"|[\w-]+)", re.IGNORECASE)
#: Told of bytes sent.
Watch = Callable[[int], object]


@dataclass(frozen=True)
class SqlFile:
    """A file that has been read."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> SqlFile:
        r"""Read a file of SQL and check its parts.

        Raise SpecError if the file cannot be read. Raise SpecError, with file, line and column, if it begins or ends
        transactions, creates or drops databases, or leads to another database. Raise SpecError likewise if the file of
        a \copy does not exist.
        """
        try:
            found = cls(path, files.read_text(path))
        except (OSError, ValueError) as e:
            raise SpecError(msg("error-cannot-read", path=path, reason=reason(e))) from e
        for part in found.parts:
            if part.kind is Kind.COMMAND:
                found._checked(part)
            elif match := _REFUSED.match(part.bare) or _WITHIN.search(part.bare):
                word = " ".join(match[1].split()).upper()
                why, remedy = _refusal(word)
                raise SpecError(msg("error-word-reason", at=found.at(part.offset), word=word, reason=why), remedy)
        return found

    @cached_property
    def parts(self) -> list[Part]:
        """Parts of the file."""
        return list(parts(self.text))

    def _checked(self, part: Part) -> None:
        word = part.text.split()[0].rstrip(";")
        if copy := _COPY.match(part.text):
            data = self._data(copy)
            if not data.is_file():
                raise SpecError(msg("error-there-no-file", at=self.at(part.offset), data=data))
        elif word in _ELSEWHERE:
            raise SpecError(
                msg("error-database-target-or-pgdyno-s", at=self.at(part.offset), word=word),
                msg("remedy-leave-out-create-database-drop", word=word),
            )
        elif word not in _HARMLESS:
            includes = word in ("\\i", "\\ir", "\\include")
            raise SpecError(
                msg("error-psql-s-commands-only-copy", at=self.at(part.offset), word=word),
                msg("remedy-name-file-before" if includes else "remedy-write-as-sql"),
            )

    @property
    def data_files(self) -> list[Path]:
        r"""Files that the \copy commands of this file read."""
        return [self._data(m) for p in self.parts if p.kind is Kind.COMMAND and (m := _COPY.match(p.text))]

    def at(self, offset: int) -> str:
        """file:line:column."""
        before = self.text[:offset]
        return f"{self.path}:{before.count(chr(10)) + 1}:{offset - before.rfind(chr(10))}"

    def carry_out(
        self, conn: Connection, watch: Watch = lambda _: None, note: Callable[[str], object] = lambda _: None
    ) -> int:
        """Run all parts of the file; return the number of rows copied.

        Statements that give or grant anything to roles that do not exist are left out, and `note` reports them. Raise
        SpecError if the server refuses a part.
        """
        self._refuse_missing_extensions(conn)
        rows = 0
        for part in self.parts:
            try:
                rows += self._carried_out(conn, part, watch, note)
                if conn.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
                    raise SpecError(
                        msg("error-ended-transaction", at=self.at(part.offset)), msg("remedy-leave-commit-out")
                    )
            except psycopg.Error as e:
                if conn.closed:
                    raise
                offset = part.offset + max(0, int(e.diag.statement_position or 1) - 1) * (part.kind is Kind.STATEMENT)
                words = e.diag.message_primary or one_line(e)
                more = "; ".join(filter(None, (e.diag.message_detail, e.diag.context)))
                raise SpecError(
                    f"{self.at(offset)}: {words}{f' ({more[:200]})' if more else ''}", e.diag.message_hint or ""
                ) from e
        return rows

    def _carried_out(self, conn: Connection, part: Part, watch: Watch, note: Callable[[str], object]) -> int:
        if part.kind is Kind.COMMAND:
            copy = _COPY.match(part.text)
            return 0 if copy is None else copy_file(conn, self._data(copy), copy, watch)
        if part.kind is Kind.COPY:
            cursor = conn.cursor()
            with cursor.copy(part.text.rstrip().rstrip(";").encode()) as to:
                to.write(part.data.encode())
                watch(len(part.data))
            return max(0, cursor.rowcount)
        if not _FOR_ROLES.match(part.bare):
            conn.execute(part.text.encode())
            return 0
        try:
            with conn.transaction():
                conn.execute(part.text.encode())
        except psycopg.errors.UndefinedObject as e:
            if "role" not in (e.diag.message_primary or "") and "ROLE" not in part.bare.upper():
                raise
            note(f"{self.at(part.offset)}: left out: {' '.join(part.text.split())[:100]} ({e.diag.message_primary})")
        return 0

    def _refuse_missing_extensions(self, conn: Connection) -> None:
        wanted = {}
        for part in self.parts:
            if part.kind is Kind.STATEMENT and (match := _EXTENSION.match(part.text)):
                wanted[match[1].strip('"')] = part.offset
        if not wanted:
            return
        rows = conn.execute("select name::pg_catalog.text from pg_catalog.pg_available_extensions").fetchall()
        missing = [name for name in wanted if (name,) not in rows]
        if missing:
            raise SpecError(
                msg("error-server-no-extension", at=self.at(wanted[missing[0]]), missing=", ".join(missing)),
                msg("remedy-install-there-apt-get-install"),
            )

    def _data(self, copy: re.Match[str]) -> Path:
        name = copy["file"]
        name = name[1:-1].replace("''", "'") if name.startswith("'") else name
        return (self.path.parent / name).resolve()


def _refusal(word: str) -> tuple[Message, Message]:
    if word.endswith("DATABASE"):
        return msg("why-database-given"), msg("remedy-leave-out-database", word=word)
    return msg("why-one-transaction"), msg("remedy-leave-out-begin")


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
