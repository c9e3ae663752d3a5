"""Constants of a statement, found by PostgreSQL's lexical rules and replaced in place.

Nothing else of the text changes, except that comments are removed; planner hints stay.

Source: PostgreSQL 18, 4.1 Lexical Structure.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_TOKEN = re.compile(
    r"""(?P<blank>\s+)
      | (?P<comment>--[^\n]*|/\*)
      | (?P<string>(?:[uU]&|[eEnNbBxX])?')
      | (?P<name>(?:[uU]&)?"(?:[^"]|"")*"?)
      | (?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][\w]*)?\$)
      | (?P<parameter>\$\d+)
      | (?P<number>0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+
          |(?:\d[\d_]*(?:\.(?!\.)[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
      | (?P<word>[A-Za-z_\x80-\U0010ffff][\w$]*)
      | (?P<cast>::)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
#: Words before a string that make it a value of their type.
_TYPES = frozenset(
    ("date", "time", "timestamp", "timestamptz", "timetz", "interval", "numeric", "decimal", "int", "integer", "bigint",
     "smallint", "int2", "int4", "int8", "real", "float4", "float8", "text", "uuid", "json", "jsonb", "inet", "cidr",
     "bytea", "bool", "boolean", "money", "point", "box", "tsquery", "tsvector", "regclass", "oid", "varchar", "name",
     "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange")
)  # fmt: skip
_ZONES = {("with", "time", "zone"): "timestamptz", ("without", "time", "zone"): "timestamp"}
#: Parts of an interval that stand behind it.
_FIELDS = frozenset(("year", "month", "day", "hour", "minute", "second"))
#: Types with numbers in parentheses.
_SIZED = frozenset(("numeric", "decimal", "varchar", "char", "character", "varying", "bit", "timestamp", "time",
                    "timestamptz", "timetz", "interval", "float", "bpchar", "varbit"))  # fmt: skip
#: What ends a list of ORDER BY or GROUP BY.
_ENDS = frozenset(
    ("limit", "offset", "having", "window", "fetch", "for", "union", "intersect", "except", "rows", "range", "order")
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Casts(enum.IntEnum):
    """Ways to write the types of parameters that replace constants.

    A number has a type, but a parameter would take its type from the context. For example, substring(a from $1 for $2)
    is another function than substring(a from 2 for 3). A string has no type, so it needs a cast only if nothing else
    tells its type.
    """

    NONE = 0
    NUMBERS = 1
    ALL = 2


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    #: Of a constant, its value.
    value: str = ""


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None and match.lastgroup is not None
        kind, end, value = match.lastgroup, match.end(), ""
        if kind == "comment" and match[0] == "/*":
            end = _end_of_comment(text, at)
        elif kind == "string":
            end, value = _string(text, at, end)
        elif kind == "dollar":
            close = text.find(match[0], end)
            value = text[end:] if close < 0 else text[end:close]
            end = len(text) if close < 0 else close + len(match[0])
            kind = "string"
        elif kind == "number":
            value = _number(match[0])
        yield _Token(kind, text[at:end], value)
        at = end


def _end_of_comment(text: str, at: int) -> int:
    depth, at = 1, at + 2
    while depth and at < len(text):
        step = {"/*": 1, "*/": -1}.get(text[at : at + 2], 0)
        depth, at = depth + step, at + (2 if step else 1)
    return at


def _string(text: str, begin: int, at: int) -> tuple[int, str]:
    """Return where a string ends, and its value."""
    escapes, out = text[begin] in "eE", []
    while at < len(text):
        c = text[at]
        if escapes and c == "\\":
            out.append(_ESCAPES.get(text[at + 1 : at + 2], text[at + 1 : at + 2]))
            at += 2
        elif c != "'":
            out.append(c)
            at += 1
        elif text[at + 1 : at + 2] == "'":
            out.append("'")
            at += 2
        elif more := re.compile(r"'[ \t]*\n\s*'").match(text, at):
            # Strings that only a line break parts are one.
            at = more.end()
        else:
            return at + 1, _decoded(text[begin], "".join(out))
    return at, "".join(out)


def _decoded(prefix: str, value: str) -> str:
    """Decode a string of code points or of hexadecimal digits."""
    if prefix in "uU":
        return re.sub(
            r"\\\\|\\\+([0-9a-fA-F]{6})|\\([0-9a-fA-F]{4})",
            lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else "\\",
            value,
        )
    if prefix in "xX":
        return "".join(f"{int(c, 16):04b}" for c in value if c in "0123456789abcdefABCDEF")
    return value


def _number(text: str) -> str:
    plain = text.replace("_", "")
    return str(int(plain, 0)) if plain[:2].lower() in ("0x", "0o", "0b") else plain


def split(text: str) -> list[str]:
    """Split a message into its statements, without the comments before them."""
    found: list[list[str]] = [[]]
    for t in _tokens(text):
        if t.kind == "other" and t.text == ";":
            found.append([])
        elif found[-1] or t.kind not in ("blank", "comment"):
            found[-1].append(t.text)
    return [s for s in ("".join(part).strip() for part in found) if s]


def without_comments(text: str) -> str:
    """Return a statement on one line, without its comments."""
    parts = [" " if t.kind in ("blank", "comment") else t.text for t in _tokens(text)]
    return re.sub(r" +", " ", "".join(parts)).strip().rstrip("; ")


def is_hint(comment: str) -> bool:
    """Return whether a comment steers the planner (pg_hint_plan)."""
    return comment.startswith("/*+")


def highest(text: str) -> int:
    """Return the highest parameter number of a statement, or 0 if it has no parameter."""
    return max((int(t.text[1:]) for t in _tokens(text) if t.kind == "parameter"), default=0)


def general(text: str, casts: Casts = Casts.NUMBERS) -> tuple[str, list[str]]:
    """Replace the constants of a statement with parameters; return the text and the constants.

    The constants are in the order of the parameters. The new parameters are numbered after those that the statement
    has. A constant stays if it cannot be a parameter. Examples are a position in ORDER BY, the length of a type and a
    field of EXTRACT.
    """
    tokens = list(_tokens(text.strip().rstrip("; \t\r\n")))
    last = max((int(t.text[1:]) for t in tokens if t.kind == "parameter"), default=0)
    out: list[str] = []
    values: list[str] = []
    #: Tokens without blanks and comments that were seen, and for each open parenthesis whether it is a type's.
    seen: list[_Token] = []
    sized: list[bool] = []
    list_member: list[int] = []
    real = [n for n, t in enumerate(tokens) if t.kind not in ("blank", "comment")]
    following = {a: tokens[b] for a, b in pairwise(real)}
    for n, t in enumerate(tokens):
        if t.kind == "comment":
            if is_hint(t.text):
                out.append(t.text)
            elif out and not out[-1].isspace():
                out.append(" ")
            continue
        if t.kind == "blank":
            if out and not out[-1].isspace():
                out.append(t.text)
            continue
        word = t.text.lower() if t.kind == "word" else ""
        if t.text == "(":
            sized.append(_is_sized(seen))
        elif t.text == ")" and sized:
            sized.pop()
            list_member = [d for d in list_member if d <= len(sized)]
        elif word == "by" and seen and seen[-1].text.lower() in ("order", "group", "partition"):
            list_member.append(len(sized))
        elif word in _ENDS and list_member and list_member[-1] == len(sized):
            list_member.pop()
        if t.kind not in ("string", "number") or _stays(t, seen, following.get(n), sized, list_member):
            out.append(t.text)
        else:
            values.append(t.value)
            put = f"${last + len(values)}"
            type_ = _type_before(t, seen)
            bits = t.kind == "string" and t.text[0] in "bBxX"
            if type_:
                # date '2024-01-01' takes no parameter; a cast does.
                _drop_type(out, len(type_.split()))
                put = f"{put}::{type_}"
            elif bits:
                put = f"{put}::varbit"
            elif casts >= Casts.NUMBERS and t.kind == "number":
                put = f"{put}::{_type_of(t.value)}"
            elif casts >= Casts.ALL and t.kind == "string":
                put = f"{put}::text"
            out.append(put)
        seen.append(t)
    return "".join(out).strip(), values


def _is_sized(seen: list[_Token]) -> bool:
    """Return whether a parenthesis holds the size of a type: ::numeric(10, 2), cast(x as varchar(5))."""
    if len(seen) < 2 or seen[-1].text.lower() not in _SIZED:
        return False
    before = seen[-2].text.lower()
    return before in ("::", "as") or before in _SIZED


def _stays(t: _Token, seen: list[_Token], after: _Token | None, sized: list[bool], list_member: list[int]) -> bool:
    before = seen[-1].text.lower() if seen else ""
    if sized and sized[-1]:
        return True
    if t.kind == "number":
        is_position = list_member and list_member[-1] == len(sized) and before in ("by", ",")
        behind = after.text.lower() if after is not None else ""
        alone = behind in ("", ",", ")", "asc", "desc", "nulls") or behind in _ENDS
        return bool(is_position and alone and t.text.isdigit()) or before in ("first", "next")
    if before in ("escape", "uescape") or (before == "(" and len(seen) > 1 and seen[-2].text.lower() == "extract"):
        return True
    return before == "interval" and after is not None and after.text.lower() in (*_FIELDS, "(")


def _type_before(t: _Token, seen: list[_Token]) -> str:
    """Return the type that the words before a string give it, or an empty string if there is none."""
    if t.kind != "string" or not seen or seen[-1].kind != "word":
        return ""
    words = tuple(x.text.lower() for x in seen[-4:])
    if words[1:] in _ZONES and words[0] in ("timestamp", "time"):
        return f"{words[0]} {' '.join(words[1:])}"
    word = words[-1]
    # A column may be called so: "select date 'x'" is a value, "t.date" and "date = 'x'" are none.
    before = seen[-2].text if len(seen) > 1 else ""
    return word if word in _TYPES and before not in (".", "as", "AS", "::") else ""


def _drop_type(out: list[str], count: int) -> None:
    """Remove the words of a type, and the blanks after them, from the end of the output."""
    while count and out:
        count -= not out.pop().isspace()


def _type_of(number: str) -> str:
    """Return the type that the server gives to a number."""
    if not number.isdigit():
        return "numeric"
    return "integer" if int(number) < 2**31 else "bigint" if int(number) < 2**63 else "numeric"
