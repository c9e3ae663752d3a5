"""Values that constraints allow.

Bounds and lists are read from the constraints' expressions, and patterns are followed. Only the server decides whether
values satisfy a constraint.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import psycopg

from pgdyno.load.find import Connection
from pgdyno.load.own.catalog import Column, quoted
from pgdyno.load.own.drawn import Drawn

_EPOCH = dt.datetime(1970, 1, 1)
_CAST = r"(?:::[\w\"]+(?: [\w]+)*(?:\(\d+(?:,\d+)?\))?(?:\[\])?)"
_LITERAL = rf"\(?(?P<value>'(?:[^']|'')*'|\(?-?\d+(?:\.\d+)?\)?){_CAST}*\)?"
_STRING = re.compile(r"'((?:[^']|'')*)'")
_NUMBER = re.compile(r"(?<![\w.'])-?\d+(?:\.\d+)?(?![\w'])")
_LENGTHS = r"(?:char_length|character_length|length|octet_length)"
_OPERATORS = {">=": (0, None), ">": (1, None), "<=": (None, 0), "<": (None, -1), "=": (0, 0)}
#: Values that a pattern is tried with, and how often what may be repeated without end is.
_SOME, _REPEATED = 300, 6


def _compared(column: str, function: str = "") -> re.Pattern[str]:
    name = rf'\(?(?:{re.escape(quoted(column))}|(?<![\w"])"?{re.escape(column)}"?(?![\w"]))\)?{_CAST}*\)?'
    left = rf"{function}\(+{name}" if function else name
    return re.compile(rf"{left}\s*(?P<operator>>=|<=|>|<|=)\s*{_LITERAL}")


def bounds(expression: str, c: Drawn, column: Column) -> tuple[float, float]:
    """Return the interval that an expression leaves for a column, as numbers of the column's kind.

    Return the whole interval if the expression contains no condition that must hold.
    """
    low, high = c.low, c.high
    # Of a disjunction or a negation nothing must hold by itself.
    plain = _STRING.sub("''", expression).replace("IS NOT NULL", "")
    if re.search(r"\b(OR|NOT|CASE|COALESCE)\b", plain):
        return low, high
    step = 10.0**-c.decimals if c.type == "number" else 1.0
    length = c.type == "text"
    for match in _compared(column.name, _LENGTHS if length else "").finditer(expression):
        at = _number(match["value"], "integer" if length else c.type)
        if at is None:
            continue
        above, below = _OPERATORS[match["operator"]]
        if above is not None:
            low = max(low, at + above * step) if c.type != "serial" else max(low, at + above)
            # A bound beyond what would be drawn moves it.
            high = max(high, low + (c.high - c.low)) if low > c.high else high
        if below is not None:
            high = min(high, at + below * step)
            low = min(low, high - (c.high - c.low)) if high < c.low else low
    return low, high


def _number(text: str, kind: str) -> float | None:
    plain = text.strip("()").strip("'")
    try:
        if kind in ("timestamp", "date"):
            at = dt.datetime.fromisoformat(plain)
            at = at.astimezone(dt.UTC).replace(tzinfo=None) if at.tzinfo is not None else at
            since = at - _EPOCH
            return float(since.days if kind == "date" else since // dt.timedelta(microseconds=1))
        return float(plain) if kind in ("integer", "serial", "number") else None
    except ValueError:
        return None


def listed(expression: str, column: str) -> list[str]:
    """Return the values that an expression lists in `column = ANY (...)`.

    The list is `ARRAY[...]` or an array literal. Return its texts, or its numbers if it contains no texts. Return an
    empty list if the expression has no such list.
    """
    name = rf'\(?"?{re.escape(column)}"?\)?{_CAST}*\)?'
    match = re.search(rf"{name}\s*= ANY \(+(?:ARRAY\[(?P<array>[^\]]*)\]|'\{{(?P<text>[^}}]*)\}}')", expression)
    if match is not None and match["array"] is not None:
        inside = match["array"]
        return [x.replace("''", "'") for x in _STRING.findall(inside)] or _NUMBER.findall(inside)
    if match is not None:
        return [x.strip('"') for x in match["text"].split(",")]
    return []


def literals(expression: str) -> list[str]:
    """Strings and numbers that stand in an expression, and what lies next to the numbers."""
    found = [x.replace("''", "'") for x in _STRING.findall(expression)]
    for number in _NUMBER.findall(_STRING.sub("''", expression)):
        value = float(number)
        found += [number, *(f"{value + d:g}" for d in (-1, 1))]
    for pattern in [x for x in found if re.search(r"[\[\]^$\\.*+?{}|]", x)]:
        found += like(pattern)
    for pattern in [x for x in found if "%" in x or "_" in x]:
        found.append(pattern.replace("%", "x").replace("_", "x"))
    return list(dict.fromkeys(found))


def like(pattern: str) -> list[str]:
    """Texts that a regular expression may match, different ones. Of what Python does not know none."""
    try:
        tree = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return []
    rng = random.Random(pattern)
    try:
        return list(dict.fromkeys(_matching(tree, rng) for _ in range(_SOME)))
    except (NotImplementedError, RecursionError):
        return []


def _matching(tree: Any, rng: random.Random) -> str:
    out = []
    for op, argument in tree:
        if op is sre.LITERAL:
            out.append(chr(argument))
        elif op is sre.NOT_LITERAL:
            out.append("a" if argument != ord("a") else "b")
        elif op is sre.ANY:
            out.append(rng.choice("abcdefghij"))
        elif op is sre.IN:
            out.append(_one_of(argument, rng))
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, most, inner = argument
            n = rng.randint(least, min(most, least + _REPEATED) if most is sre.MAXREPEAT or most > least else least)
            out += [_matching(inner, rng) for _ in range(n)]
        elif op is sre.SUBPATTERN:
            out.append(_matching(argument[3], rng))
        elif op is sre.BRANCH:
            out.append(_matching(rng.choice(argument[1]), rng))
        elif op is not sre.AT:
            raise NotImplementedError(str(op))
    return "".join(out)


_CATEGORIES = {
    sre.CATEGORY_DIGIT: "0123456789", sre.CATEGORY_WORD: "abcdefghijklmnopqrstuvwxyz_0123456789",
    sre.CATEGORY_SPACE: " ", sre.CATEGORY_NOT_SPACE: "abcdefghij", sre.CATEGORY_NOT_DIGIT: "abcdefghij",
    sre.CATEGORY_NOT_WORD: "-.!",
}  # fmt: skip


def _one_of(items: Any, rng: random.Random) -> str:
    if items[0][0] is sre.NEGATE:
        excluded = {c for op, a in items[1:] for c in _members(op, a)}
        return rng.choice([c for c in "abcdefghijklmnopqrstuvwxyzABCDEF0123456789-. " if c not in excluded] or ["é"])
    op, argument = rng.choice(items)
    return rng.choice(_members(op, argument))


def _members(op: Any, argument: Any) -> str:
    if op is sre.LITERAL:
        return chr(argument)
    if op is sre.RANGE:
        return "".join(map(chr, range(argument[0], min(argument[1], argument[0] + 500) + 1)))
    return _CATEGORIES.get(argument, "a")


def held(
    conn: Connection, columns: Mapping[str, Column], values: Mapping[str, Sequence[str | None]], expression: str
) -> list[bool]:
    """Return for each row of values whether an expression is true or unknown, which is what a CHECK accepts.

    The value is False for a row whose values do not fit their types.
    """
    names = list(values)
    # Of a hash the type is looked at; a domain refuses all rows over one.
    is_hashed = "satisfies_hash_partition(" in expression
    types = [columns[name].own_type if is_hashed else columns[name].sql_type for name in names]
    casts = ", ".join(f"v{n}::{t} as {quoted(name)}" for n, (name, t) in enumerate(zip(names, types, strict=True)))
    # Percent signs of the expression and of names are their own.
    asked = f"select ({expression}) is not false from (select n, {casts} from".replace("%", "%%")
    arrays = ", ".join("pg_catalog.unnest(%s::pg_catalog.text[])" for _ in names)
    inner = ", ".join(f"v{n}" for n in range(len(names)))
    sql = f"{asked} rows from ({arrays}) with ordinality u({inner}, n)) r order by n"
    rows = [list(values[name]) for name in names]
    try:
        with conn.transaction():
            return [bool(x) for (x,) in conn.execute(sql.encode(), rows).fetchall()]
    except psycopg.Error:
        count = len(rows[0])
        if count <= 1:
            return [False] * count
        half = count // 2
        return [
            x
            for part in (slice(None, half), slice(half, None))
            for x in held(conn, columns, {name: values[name][part] for name in names}, expression)
        ]


def narrowed(c: Drawn, column: Column, expression: str) -> Drawn:
    """Return the column restricted to the values that an expression allows for it alone."""
    values = listed(expression, column.name)
    if values and c.type in ("text", "choice", "integer", "number") and not c.unique:
        return replace(c, type="choice", values=tuple(values), weights=())
    if c.type not in ("integer", "serial", "number", "text", "timestamp", "date"):
        return c
    low, high = bounds(expression, c, column)
    return replace(c, low=low, high=high) if low <= high else c
