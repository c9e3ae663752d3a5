"""Analysis of the use of a statement's parameters: columns, limits.

The analysis uses sqlglot, which parses PostgreSQL's SQL.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

# It writes the statements that it cannot read, with all their values, to the terminal.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

#: Parameters as pg_stat_statements and the log write them.
PARAMETER = re.compile(r"\$(\d+)\b")
_APART = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|(?<![\w$])\$\d+\b")
#: What is no statement of a workload.
_CONTROL = re.compile(
    r"^\s*(begin|start|commit|end|rollback|abort|set|reset|show|discard|deallocate|prepare|listen|unlisten|savepoint|"
    r"release|vacuum|analyze|create|drop|alter|copy|explain|truncate|grant|revoke|declare|fetch|close|checkpoint|lock|"
    r"comment|reindex|cluster|do|refresh|import|security|reassign|execute|load)\b",
    re.IGNORECASE,
)
#: In names of columns: anywhere, and as whole words.
_SECRET = re.compile(r"passw|passphrase|secret|token|cookie|bearer|credential|api_?key|private_?key", re.IGNORECASE)
_SECRET_WORDS = {
    "pass", "pwd", "hash", "salt", "key", "auth", "private", "credit", "card", "pan", "iban", "ssn", "cvv", "cvc",
    "otp", "pin", "session", "sid", "jwt",
}  # fmt: skip
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_CATALOG = re.compile(r"\b(pg_(?!sleep|advisory|try_advisory|notify\b)\w+|information_schema|pgdyno)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Use:
    """Column of a table with which a parameter is compared, or into which it is written."""

    table: str = ""
    column: str = ""
    #: "equal" to it, one of a "list", a bound that the column lies "above" or "below", "like" it, "contained" in it, a
    #: "member" of it (json -> it), its "new" value in a row that is inserted, what it is "set" to; of no column a
    #: "limit", an "offset", a "unit" of time, a "format", a "zone", an "encoding", a "step" from another; else empty:
    #: it is calculated with.
    how: str = ""
    #: What the column goes through before it is compared: "lower", "upper", "->", "->>".
    through: str = ""
    #: It is subtracted from the time that it is.
    is_age: bool = False
    #: Another value is added to it, or taken away, before it is compared.
    is_moved: bool = False

    @property
    def inserted(self) -> bool:
        """Return True if the parameter is a value of a new row."""
        return self.how == "new"


def is_control(text: str) -> bool:
    """BEGIN, SET, CREATE and the like."""
    return _CONTROL.match(bare(text)) is not None


#: What only steers the session: it is no work.
_SESSION = re.compile(
    r"(?:begin|start\s+transaction|commit|end|rollback|abort|set|reset|show|discard|deallocate|listen|unlisten|savepoint|"
    r"release|prepare)\b",
    re.IGNORECASE,
)


def is_session(text: str) -> bool:
    """BEGIN, SET, SHOW and the like, which ask nothing of the server."""
    return _SESSION.match(bare(text)) is not None


def bare(text: str) -> str:
    """Return a statement from its first word on.

    Drivers and ORMs put comments before it, and PostgreSQL nests comments.
    """
    at = 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if text.startswith("--", at):
            at = text.find("\n", at) + 1 or len(text)
        elif text.startswith("/*", at):
            depth, at = 1, at + 2
            while depth and at < len(text):
                step = {"/*": 1, "*/": -1}.get(text[at : at + 2], 0)
                depth, at = depth + step, at + (2 if step else 1)
        else:
            return text[at:]


def asks_catalog(text: str) -> bool:
    """Return True if a statement is about the server, not about user data."""
    return _CATALOG.search(text) is not None


def is_secret(column: str) -> bool:
    """Return True if a column's name suggests that its values should not be written down."""
    words = {w.lower() for w in _WORDS.findall(column)}
    return _SECRET.search(column) is not None or not words.isdisjoint(_SECRET_WORDS)


def names_secrets(text: str) -> bool:
    """Return True if any word of a statement suggests a secret.

    Such a word is a column, or a function that creates or accepts a secret.
    """
    return any(is_secret(w) or w.lower() in ("crypt", "login", "dblink_connect") for w in re.findall(r"\w+", text))


def has_no_columns(text: str) -> bool:
    """Return True if a statement inserts without a list of columns."""
    return re.match(r'insert\s+into\s+[\w."]+\s*(?:values|select)\b', bare(text), re.IGNORECASE) is not None


#: As pg_stat_statements writes constants of a type, which as parameters would be no SQL.
_TYPED = re.compile(
    r"\b(date|timestamptz|timetz|timestamp(?:\s+with(?:out)?\s+time\s+zone)?|time(?:\s+with(?:out)?\s+time\s+zone)?|"
    r"interval)\s*(\$\d+)(?:\s+(?:year|month|day|hour|minute|second)\b)?",
    re.IGNORECASE,
)
_EXTRACTED = re.compile(r"pg_catalog\.extract\(\$(\d+)")
_ZONE = re.compile(r"[A-Za-z]+(?:/[A-Za-z_+-]+)*(?:[+-]?\d+)?")
_ENCODINGS = frozenset(("hex", "base64", "escape"))
_EXTRACT = re.compile(r"(?<![\w.])extract\s*\(\s*(\$\d+)\s+from\b", re.IGNORECASE)


def acceptable(text: str) -> str:
    """Rewrite a statement of pg_stat_statements so that the server accepts it.

    For example, the server does not accept `date $1`.
    """
    text = _TYPED.sub(lambda m: f"{m[2]}::{m[1]}", text)
    return _EXTRACT.sub(lambda m: f"pg_catalog.extract({m[1]}, ", text)


def may_conflict(text: str) -> bool:
    """Return True if a statement handles a key that already exists."""
    return re.search(r"\bon\s+conflict\b", text, re.IGNORECASE) is not None


def returns_what_it_finds(tree: exp.Expression) -> bool:
    """Return True if a statement returns or changes as many rows as its conditions find."""
    shaped = (exp.AggFunc, exp.Group, exp.Distinct, exp.Limit, exp.Fetch, exp.SetOperation, exp.Subquery, exp.Window)
    return tree.find(*shaped) is None


_WORDS_OF_TIME = frozenset(
    ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
     "century", "millennium", "dow", "doy", "epoch", "isodow", "isoyear", "julian", "timezone", "yyyy", "yy", "mm",
     "dd", "hh24", "hh12", "hh", "mi", "ss", "ms", "us", "mon", "dy", "d", "q", "ww", "iw", "iyyy", "fm", "am", "pm",
     "tz", "t", "th", "fmmonth", "fmday", "ddd", "w", "ddth")
)  # fmt: skip


def extracted(text: str) -> list[int]:
    """Parameters that are units of time, of which a syntax tree says nothing."""
    return [int(n) for n in _EXTRACTED.findall(text)]


def is_word(use: Use | None, value: str) -> bool:
    """Return True if a constant is a predefined word that its place expects, and so not user data."""
    match use.how if use is not None else "":
        case "unit" | "format":
            return is_word_of_time(value)
        case "zone":
            return _ZONE.fullmatch(value) is not None and len(value) < 40
        case "encoding":
            return value.lower() in _ENCODINGS
    return False


def is_word_of_time(text: str) -> bool:
    """Return True if a text is a unit or a format of time, and so not user data."""
    return all(word.lower() in _WORDS_OF_TIME for word in re.findall(r"[^\W_]+", text))


def parsed(text: str) -> exp.Expression | None:
    """Parse a statement; return None if it cannot be parsed."""
    # "$1,$2" is no dollar quote: drivers write no blank behind the comma. What is quoted stays.
    apart = _APART.sub(lambda m: f" {m[0]} " if m[0][0] == "$" else m[0], text)
    try:
        found = sqlglot.parse_one(apart, read="postgres")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    # Of a command it knows the first word alone.
    return found if isinstance(found, exp.Expression) and not isinstance(found, exp.Command) else None


def uses(tree: exp.Expression, columns: Mapping[str, Collection[str]]) -> dict[int, Use]:
    """Return the use of each parameter, by parameter number.

    `columns` holds the columns of each table. Parameters with unknown use are left out.
    """
    names: dict[str, str] = {}
    for t in tree.find_all(exp.Table):
        name = ".".join(p.name for p in (t.args.get("db"), t.this) if p is not None)
        names[t.alias_or_name] = name
    found = {}
    for p in tree.find_all(exp.Parameter):
        number = int(p.name) if p.name.isdigit() else 0
        if number:
            use = _use(p, _names_at(p, names), columns)
            if use is not None:
                found[number] = use
    return found


def _names_at(p: exp.Expression, every: Mapping[str, str]) -> Mapping[str, str]:
    """Return the tables that a parameter's columns may belong to.

    The tables of its own SELECT come first.
    """
    scope = p.find_ancestor(exp.Select)
    own: dict[str, str] = {}
    while scope is not None:
        for t in scope.find_all(exp.Table):
            if t.find_ancestor(exp.Select) is scope and t.alias_or_name in every:
                name = ".".join(x.name for x in (t.args.get("db"), t.this) if x is not None)
                own.setdefault(t.alias_or_name, name)
        scope = scope.find_ancestor(exp.Select)
    return {**own, **{alias: name for alias, name in every.items() if alias not in own}}


def _use(p: exp.Expression, names: Mapping[str, str], columns: Mapping[str, Collection[str]]) -> Use | None:
    node: exp.Expression = p
    is_age = is_moved = False
    while isinstance(
        node.parent,
        exp.Cast | exp.Paren | exp.Neg | exp.Any | exp.Add | exp.Sub | exp.Interval | exp.Lower | exp.Upper,
    ):
        above = node.parent
        if isinstance(above, exp.Sub) and node is above.expression and _is_now(above.this):
            is_age = True
        elif isinstance(above, exp.Add | exp.Sub):
            # $1 + $2 is compared as $1 is, which $2 moves.
            if above.find(exp.Column) is not None:
                break
            if node is above.expression:
                return Use(how="step")
            is_moved = True
        node = above
    parent = node.parent
    if isinstance(parent, exp.Limit | exp.Offset | exp.Fetch):
        return Use(how="offset" if isinstance(parent, exp.Offset) else "limit")
    if isinstance(parent, exp.Tuple):
        return _is_in_tuple(parent, node, names, columns)
    if isinstance(parent, _UNITS) or (isinstance(parent, exp.Anonymous) and str(parent.this).lower() == "date_part"):
        return Use(how="unit")
    if isinstance(parent, exp.ToChar | exp.TimeToStr):
        return Use(how="format")
    if isinstance(parent, exp.AtTimeZone) and node.arg_key == "zone":
        return Use(how="zone")
    if isinstance(parent, exp.Encode | exp.Decode) and node.arg_key == "charset":
        return Use(how="encoding")
    if not isinstance(parent, exp.Predicate | exp.Binary | exp.Between | exp.In):
        return None
    other = parent.this if node is not parent.this else parent.expression
    column = other.find(exp.Column) if isinstance(other, exp.Expression) else None
    if column is None:
        return None
    table = names.get(column.table) if column.table else _owner(column.name, names, columns)
    if not table:
        return None
    return Use(table, column.name, _how(parent, node), _through(other), is_age, is_moved)


#: The time that it is.
_NOW = (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentDatetime, exp.CurrentTime, exp.Localtimestamp)
_CLOCKS = ("clock_timestamp", "statement_timestamp", "transaction_timestamp")
_UNITS = (exp.TimestampTrunc, exp.DateTrunc, exp.Extract)
_CONTAINS = (exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps)
_MEMBER = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)


def _is_now(e: exp.Expression) -> bool:
    return isinstance(e, _NOW) or (isinstance(e, exp.Anonymous) and str(e.this).lower() in _CLOCKS)


def _how(parent: Any, node: Any) -> str:
    if isinstance(parent, exp.EQ | exp.NullSafeEQ):
        if isinstance(parent.parent, exp.Update | exp.OnConflict) and parent.arg_key == "expressions":
            return "set"
        return "list" if isinstance(node, exp.Any) else "equal"
    if isinstance(parent, exp.In):
        return "list"
    if isinstance(parent, exp.Between):
        return "above" if node.arg_key == "low" else "below"
    if isinstance(parent, exp.GT | exp.GTE | exp.LT | exp.LTE):
        return "above" if isinstance(parent, exp.GT | exp.GTE) == (node is parent.expression) else "below"
    if isinstance(parent, exp.Like | exp.ILike):
        return "like"
    if isinstance(parent, _CONTAINS):
        return "contained"
    return "member" if isinstance(parent, _MEMBER) else ""


def _through(other: Any) -> str:
    while isinstance(other, exp.Cast | exp.Paren):
        other = other.this
    named: dict[type, str] = {
        exp.Lower: "lower",
        exp.Upper: "upper",
        exp.JSONExtractScalar: "->>",
        exp.JSONExtract: "->",
    }
    return named.get(type(other), "")


def _is_in_tuple(
    values: exp.Tuple, node: exp.Expression, names: Mapping[str, str], columns: Mapping[str, Collection[str]]
) -> Use | None:
    at = next(i for i, e in enumerate(values.expressions) if e is node)
    above = values.parent
    if isinstance(above, exp.Values) and isinstance(above.parent, exp.Insert):
        schema = above.parent.this
        if isinstance(schema, exp.Schema) and at < len(schema.expressions):
            return Use(_table_name(schema.this), schema.expressions[at].name, "new")
        if isinstance(schema, exp.Table) and at < len(named := list(columns.get(_table_name(schema), ()))):
            return Use(_table_name(schema), named[at], "new")
        return None
    # (a, b) = ($1, $2)
    # A page behind a row: what is drawn is a row's.
    if not isinstance(above, exp.EQ | exp.In | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    other = above.expression if above.this is values else above.this
    listed = other.expressions if isinstance(other, exp.Tuple) else []
    column = listed[at].find(exp.Column) if at < len(listed) else None
    if column is None:
        return None
    table = names.get(column.table) if column.table else _owner(column.name, names, columns)
    return Use(table, column.name, "list" if isinstance(above, exp.In) else "equal") if table else None


def _table_name(t: exp.Expression) -> str:
    return ".".join(x.name for x in (t.args.get("db"), t.this) if x is not None)


def _owner(column: str, names: Mapping[str, str], columns: Mapping[str, Collection[str]]) -> str | None:
    owners = [t for t in names.values() if column in columns.get(t, ())]
    return owners[0] if owners else (next(iter(names.values())) if len(set(names.values())) == 1 else None)


def tables(tree: exp.Expression) -> set[str]:
    """Their names, with the schema if it is given."""
    return {".".join(p.name for p in (t.args.get("db"), t.this) if p is not None) for t in tree.find_all(exp.Table)}
