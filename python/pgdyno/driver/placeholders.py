"""Placeholders of a statement in the style of a driver (PEP 249, paramstyle)."""

from __future__ import annotations

import re
from typing import Literal

Style = Literal["qmark", "numeric", "named", "format", "pyformat", "dollar"]
#: Quoted texts and names, comments, and placeholders. Comments nest in PostgreSQL; to the depth of two here.
_DOLLARS = re.compile(
    r"""
    (?P<quoted>
        [eE]'(?:[^'\\]|''|\\.)*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
        | (?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$
        | --[^\n]* | /\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*.*?\*/)*\*/
    )
    | (?<![\w$])\$(?P<number>\d+)
    | (?P<percent>%)
    """,
    re.VERBOSE | re.DOTALL,
)
#: The same of MySQL, whose placeholders are question marks.
_MARKS = re.compile(
    r"""
    (?P<quoted> '(?:[^'\\]|''|\\.)*' | "(?:[^"\\]|""|\\.)*" | `[^`]*` | (?:--\s|\#)[^\n]* | /\*.*?\*/ )
    | (?P<number>\?)
    | (?P<percent>%)
    """,
    re.VERBOSE | re.DOTALL,
)


def converted(sql: str, style: Style, *, are_marks: bool = False) -> tuple[str, list[int]]:
    """Return a statement with its placeholders ($1, $2, ... or question marks) in a style, and the order of values.

    The order has the index of the value for each position: in styles without numbers a value that is used twice stands
    twice.
    """
    parts = _MARKS if are_marks else _DOLLARS
    order: list[int] = []
    found: list[int] = []

    def one(match: re.Match[str]) -> str:
        doubles = style in ("format", "pyformat")
        if match["number"] is None:
            return match[0].replace("%", "%%") if doubles else match[0]
        n = len(found) + 1 if are_marks else int(match["number"])
        found.append(n)
        if style in ("dollar", "numeric", "named"):
            return f"${n}" if style == "dollar" else f":{n}" if style == "numeric" else f":p{n}"
        order.append(n - 1)
        return "?" if style == "qmark" else "%s"

    text = parts.sub(one, sql)
    return text, list(range(max(found, default=0))) if style in ("dollar", "numeric", "named") else order
