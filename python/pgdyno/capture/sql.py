"""What a statement's parameters are of: columns, limits. By sqlglot, which reads PostgreSQL's SQL."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

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
#: Quoted names, constants, and what makes it unsure where a constant begins and ends.
_LITERAL = re.compile(
    r"""(?P<name>"[^"]*")|(?P<text>'(?:[^']|'')*')|(?<![\w.$])(?P<number>\d+(?:\.\d+)?)(?![\w.])"""
    r"""|(?P<odd>--|/\*|\$\$|\$[a-z_]\w*\$|\b(?:[ebxn]|u&)['"]|[\\?'"])""",
    re.IGNORECASE,
)
#: What stands for constants while a shape is looked at, before five digits; and shapes that are remembered.
_MARK, _MOST_SHAPES = "90417", 10_000
_TEXTS: dict[tuple[str, ...], str] = {}
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


def _is_position(node: exp.Expression) -> bool:
    """ORDER BY 1, GROUP BY 2."""
    parent = node.parent
    return isinstance(parent, exp.Order | exp.Ordered | exp.Group)


def generalised(text: str) -> tuple[str, list[str]]:
    """A statement with parameters in place of its constants, and these. As it is where it cannot be read.

    Statements of one shape are read once: a log has millions of them, and to read one takes half a millisecond.
    """
    tokens = list(_LITERAL.finditer(text))
    if any(m["odd"] for m in tokens):
        return _generalised(text)
    found = [m[0] for m in tokens if not m["name"]]
    shape = _LITERAL.sub(lambda m: m["name"] or ("'?'" if m["text"] else "?"), text)
    order = _order(shape)
    if order is None or len(order) > len(found):
        return _generalised(text)
    values = [_value(found[i]) for i in order]
    # Constants that stay (a position in ORDER BY, an interval) are part of the statement.
    known = (shape, *(x for i, x in enumerate(found) if i not in order))
    if known not in _TEXTS:
        general, seen = _generalised(text)
        if seen != values:
            return general, seen
        if len(_TEXTS) >= _MOST_SHAPES:
            _TEXTS.clear()
        _TEXTS[known] = general
    return _TEXTS[known], values


def _value(literal: str) -> str:
    return literal[1:-1].replace("''", "'") if literal[0] == "'" else literal


@lru_cache(_MOST_SHAPES)
def _order(shape: str) -> tuple[int, ...] | None:
    """Which of a shape's constants become parameters, in the order of these; None: it cannot be told."""
    marks: list[str] = []

    def mark(m: re.Match[str]) -> str:
        marks.append(f"{_MARK}{len(marks):05}")
        return f"'{marks[-1]}'" if m[0][0] == "'" else marks[-1]

    marked = re.sub(r"""'\?'|(?<![\w.$])\?(?![\w.])""", mark, shape)
    _, values = _generalised(marked)
    if not set(values) <= set(marks) or len(set(values)) < len(values):
        return None
    return tuple(marks.index(v) for v in values)


def _generalised(text: str) -> tuple[str, list[str]]:
    tree = parsed(text)
    if tree is None:
        return text.strip().rstrip(";"), []
    values: list[str] = []
    highest = max((int(p.name) for p in tree.find_all(exp.Parameter) if p.name.isdigit()), default=0)

    def replace(node: exp.Expression) -> exp.Expression:
        if (
            isinstance(node, exp.Literal)
            and not _is_position(node)
            and not isinstance(node.parent, exp.Interval | exp.DataTypeParam | exp.Parameter)
        ):
            values.append(str(node.this))
            return exp.Parameter(this=exp.Literal.number(highest + len(values)))
        return node

    return tree.transform(replace).sql(dialect="postgres"), values
