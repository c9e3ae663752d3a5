"""Lines of a terminal with Chinese text, whose characters take two columns each."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

#: No line begins with one of these.
_CLOSING = "，。；：、）？！》"
#: A Chinese character with what must stay behind it, or a word of others.
_PIECE = re.compile(rf"[\u2e80-\uffef][{_CLOSING}]*|[^\s\u2e80-\uffef]+[{_CLOSING}]*|\s+")


def width(text: str) -> int:
    """Return the columns that a text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wrapped(text: str, columns: int) -> list[str]:
    """Return a text in lines of at most `columns` columns. A longer word has a line of its own."""
    lines, line, used = [], "", 0
    for piece in _PIECE.findall(" ".join(text.split())):
        taken = width(piece)
        if used + taken > columns and line.strip():
            lines.append(line.rstrip())
            line, used = "", 0
            if piece.isspace():
                continue
        line, used = line + piece, used + taken
    return [*lines, line.rstrip()] if line.strip() else lines


def columns(rows: Sequence[tuple[str, str]], whole: int, *, longest_name: int) -> Iterator[str]:
    """Return the lines of names with their texts, in two columns. A longer name has a line of its own."""
    left = min(max((width(name) for name, _ in rows), default=0), longest_name) + 2
    for name, text in rows:
        lines = wrapped(text, max(whole - left, 10))
        if width(name) > left - 2:
            yield name
        elif lines:
            yield name + " " * (left - width(name)) + lines.pop(0)
        else:
            yield name
        yield from (" " * left + line for line in lines)
