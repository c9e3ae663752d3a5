"""What a statement's parameters are of: columns, limits. By sqlglot, which reads PostgreSQL's SQL."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

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
_CATALOG = re.compile(r"\b(pg_(?!sleep|advisory|try_advisory)\w+|information_schema|pgdyno)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Use:
    """What a parameter is compared with, or written into: a column of a table, or "limit"."""

    table: str = ""
    column: str = ""
    #: It is a new row's value.
    inserted: bool = False
    limit: bool = False


def is_control(text: str) -> bool:
    """BEGIN, SET, CREATE and the like."""
    return _CONTROL.match(bare(text)) is not None


def bare(text: str) -> str:
    """The statement from its first word on: drivers and ORMs put comments before it, which PostgreSQL nests."""
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
    """Whether it is about the server rather than about somebody's data."""
    return _CATALOG.search(text) is not None


def is_secret(column: str) -> bool:
    """Whether a column's name says that its values are better not written down."""
    words = {w.lower() for w in _WORDS.findall(column)}
    return _SECRET.search(column) is not None or not words.isdisjoint(_SECRET_WORDS)


def names_secrets(text: str) -> bool:
    """Whether any of its words sounds of a secret: a column, a function that makes or takes one."""
    return any(is_secret(w) or w.lower() in ("crypt", "login", "dblink_connect") for w in re.findall(r"\w+", text))


def has_no_columns(text: str) -> bool:
    """Whether it inserts without saying into which columns."""
    return re.match(r'insert\s+into\s+[\w."]+\s*(?:values|select)\b', bare(text), re.IGNORECASE) is not None


def parsed(text: str) -> exp.Expression | None:
    """The statement, where it can be read."""
    # "$1,$2" is no dollar quote: drivers write no blank behind the comma. What is quoted stays.
    apart = _APART.sub(lambda m: f" {m[0]} " if m[0][0] == "$" else m[0], text)
    try:
        found = sqlglot.parse_one(apart, read="postgres")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    # Of a command it knows the first word alone.
    return found if isinstance(found, exp.Expression) and not isinstance(found, exp.Command) else None


def uses(tree: exp.Expression, columns: Mapping[str, set[str]]) -> dict[int, Use]:
    """By parameter; `columns` are those of each table. Parameters of which nothing is known are left out."""
    names: dict[str, str] = {}
    for t in tree.find_all(exp.Table):
        name = ".".join(p.name for p in (t.args.get("db"), t.this) if p is not None)
        names[t.alias_or_name] = name
    found = {}
    for p in tree.find_all(exp.Parameter):
        number = int(p.name) if p.name.isdigit() else 0
        if number:
            use = _use(p, names, columns)
            if use is not None:
                found[number] = use
    return found


def _use(p: exp.Expression, names: Mapping[str, str], columns: Mapping[str, set[str]]) -> Use | None:
    node: exp.Expression = p
    while isinstance(node.parent, exp.Cast | exp.Paren | exp.Neg | exp.Any):
        node = node.parent
    parent = node.parent
    if isinstance(parent, exp.Limit | exp.Offset):
        return Use(limit=True)
    if (
        isinstance(parent, exp.Tuple)
        and isinstance(parent.parent, exp.Values)
        and isinstance(parent.parent.parent, exp.Insert)
    ):
        insert = parent.parent.parent
        schema = insert.this
        if isinstance(schema, exp.Schema):
            at = next(i for i, e in enumerate(parent.expressions) if e is node)
            if at < len(schema.expressions):
                return Use(_table_name(schema.this), schema.expressions[at].name, inserted=True)
        return None
    if isinstance(parent, exp.Predicate | exp.Between | exp.In | exp.EQ | exp.Binary):
        column = next(parent.find_all(exp.Column), None)
        if column is not None:
            table = names.get(column.table) if column.table else _owner(column.name, names, columns)
            if table:
                return Use(table, column.name)
    return None


def _table_name(t: exp.Expression) -> str:
    return ".".join(x.name for x in (t.args.get("db"), t.this) if x is not None)


def _owner(column: str, names: Mapping[str, str], columns: Mapping[str, set[str]]) -> str | None:
    owners = [t for t in names.values() if column in columns.get(t, set())]
    return owners[0] if owners else (next(iter(names.values())) if len(set(names.values())) == 1 else None)


def tables(tree: exp.Expression) -> set[str]:
    """Their names, with the schema where it is said."""
    return {".".join(p.name for p in (t.args.get("db"), t.this) if p is not None) for t in tree.find_all(exp.Table)}
