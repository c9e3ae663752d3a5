"""Lines of a TOML file by key, for mistakes that are found after it was read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

#: Path of a key: names of tables and keys; an item of an array by its number, from "0".
Path = tuple[str, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_INLINE_SPACE = re.compile(r"[ \t]*")
#: Strings of all four kinds, the longer ones first.
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' r"'''.*?'{3,5}|" r'"(?:[^"\\\n]|\\.)*"|' r"'[^'\n]*'",
    re.DOTALL,
)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


def lines(text: str) -> dict[Path, int]:
    """Return the line of each key and of each item of an array. `text` must be valid TOML.

    A table has the line of its header. A key that is given in several parts has the line of the first.
    """
    found: dict[Path, int] = {}
    for path, at in _Reader(text):
        found.setdefault(path, text.count("\n", 0, at) + 1)
    return found


class _Reader:
    """Reads the structure of a TOML text; values other than arrays and inline tables are passed over."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def __iter__(self) -> Iterator[tuple[Path, int]]:
        """Yield each key with its place in the text."""
        table: Path = ()
        items: Counter[Path] = Counter()
        while self._skip(_SPACE) < len(self.text):
            start = self.at
            if self.text.startswith("[", start):
                is_item = self.text.startswith("[[", start)
                self.at += 2 if is_item else 1
                named = self._numbered(self._key(), items)
                if is_item:
                    base = named
                    items[base] += 1
                    named = (*base, str(items[base] - 1))
                    yield base, start
                table = named
                self.at = self.text.index("]", self.at) + (2 if is_item else 1)
                yield from ((table[:n], start) for n in range(1, len(table) + 1))
            else:
                yield from self._pair(table)

    @staticmethod
    def _numbered(key: Path, items: Counter[Path]) -> Path:
        """Return a header's path with the number of the last item of each array of tables in it."""
        path: Path = ()
        for n, name in enumerate(key, 1):
            path = (*path, name)
            if items[path] and n < len(key):
                path = (*path, str(items[path] - 1))
        return path

    def _pair(self, table: Path) -> Iterator[tuple[Path, int]]:
        start = self.at
        path = (*table, *self._key())
        yield from ((path[:n], start) for n in range(len(table) + 1, len(path) + 1))
        self.at = self.text.index("=", self.at) + 1
        self._skip(_INLINE_SPACE)
        yield from self._value(path)

    def _key(self) -> Path:
        """Read a key with its dots."""
        names = []
        while True:
            self._skip(_INLINE_SPACE)
            if match := _STRING.match(self.text, self.at):
                names.append(_unquoted(match[0]))
            elif match := _BARE.match(self.text, self.at):
                names.append(match[0])
            else:
                raise ValueError(f"no key at {self.at}")
            self.at = match.end()
            if not self.text.startswith(".", self._skip(_INLINE_SPACE)):
                return tuple(names)
            self.at += 1

    def _value(self, path: Path) -> Iterator[tuple[Path, int]]:
        match self.text[self.at]:
            case "[":
                yield from self._array(path)
            case "{":
                yield from self._inline_table(path)
            case '"' | "'":
                string = _STRING.match(self.text, self.at)
                assert string is not None, "the text is valid"
                self.at = string.end()
            case _:
                while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                    self.at += 1

    def _array(self, path: Path) -> Iterator[tuple[Path, int]]:
        self.at += 1
        number = 0
        while self.text[self._skip(_SPACE)] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            item = (*path, str(number))
            number += 1
            yield item, self.at
            yield from self._value(item)
        self.at += 1

    def _inline_table(self, path: Path) -> Iterator[tuple[Path, int]]:
        self.at += 1
        while self.text[self._skip(_SPACE)] != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            yield from self._pair(path)
        self.at += 1

    def _skip(self, what: re.Pattern[str]) -> int:
        match = what.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at


def _unquoted(text: str) -> str:
    if text.startswith("'"):
        return text[1:-1]

    def escaped(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if code[0] in "uUx" else _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)", escaped, text[1:-1])
