"""From pg_stat_statements: the statements that take a server's time, with their parameters drawn as the tables'
statistics say.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from pgdyno.capture import draws, sql
from pgdyno.capture.draws import Distribution, Draw
from pgdyno.errors import RefusedError
from pgdyno.format import one_line
from pgdyno.load.find import Connection
from pgdyno.statements import writes

_STATEMENTS = """
select s.queryid, s.query, sum(s.calls)::int8, sum(s.total_exec_time)::float8
from pg_stat_statements s join pg_catalog.pg_database d on d.oid = s.dbid
where d.datname = pg_catalog.current_database() and s.query is not null
group by 1, 2"""
_COLUMNS = """
select case when pg_catalog.pg_table_is_visible(c.oid) then c.relname else n.nspname || '.' || c.relname end,
  a.attname, pg_catalog.format_type(a.atttypid, null),
  exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisunique and i.indnkeyatts = 1
          and i.indkey[0] = a.attnum)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relkind in ('r', 'p', 'v', 'm') and n.nspname not in ('pg_catalog', 'information_schema')"""
_STATS = """
select most_common_vals::text::text[], most_common_freqs, histogram_bounds::text::text[], n_distinct
from pg_catalog.pg_stats
where tablename = %s and attname = %s and schemaname = coalesce(%s, (
  select n.nspname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.oid = pg_catalog.to_regclass(%s)::pg_catalog.oid))
order by inherited limit 1"""
_INTEGERS = ("smallint", "integer", "bigint")
#: A parameter that nothing is known of.
_UNKNOWN = "random(1, 1000)"
_LIMIT = 10


@dataclass(frozen=True)
class Captured:
    """A script: its name, its text, how often it was carried out, and what it could not keep."""

    name: str
    text: str
    calls: int
    remarks: Sequence[str] = ()


@dataclass
class Capture:
    """What came of it."""

    scripts: list[Captured] = field(default_factory=list)
    #: Statements that are not among them: why, the text, calls.
    left_out: list[tuple[str, str, int]] = field(default_factory=list)
    #: Part of the time that the server spent in statements that the scripts stand for.
    covered: float = 0.0


@dataclass(frozen=True)
class Column:
    """A column, as the catalog has it."""

    type: str
    is_unique: bool


class Catalog:
    """Tables' columns, and what their statistics say."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self.columns: dict[str, dict[str, Column]] = {}
        for table, column, type_, unique in conn.execute(_COLUMNS).fetchall():
            self.columns.setdefault(table, {})[column] = Column(type_, unique)

    @property
    def names(self) -> dict[str, set[str]]:
        """By table the names of its columns."""
        return {t: set(c) for t, c in self.columns.items()}

    def distribution(self, table: str, column: str) -> Distribution:
        """Of its values: by ANALYZE; where that says nothing, of some rows."""
        schema, _, name = table.rpartition(".")
        quoted_table = ".".join('"' + x.replace('"', '""') + '"' for x in (schema, name) if x)
        row = self._conn.execute(_STATS, [name, column, schema or None, quoted_table]).fetchone()
        if row is not None and (row[0] or row[2]):
            return Distribution(row[0] or (), row[1] or (), row[2] or ())
        try:
            quoted = '"' + column.replace('"', '""') + '"'
            rows = self._conn.execute(f"select {quoted}::text from {quoted_table} limit 200".encode()).fetchall()
        except psycopg.Error:
            return Distribution()
        return Distribution.of([r[0] for r in rows if r[0] is not None])

    def types(self, text: str) -> list[str] | str:
        """Of a statement's parameters, as the server sees them; or why it does not take it."""
        # The extended protocol takes one statement, and nothing is carried out.
        pgconn = self._conn.pgconn
        result = pgconn.prepare(b"", text.encode())
        if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
            return " ".join(result.get_error_message().split()).removeprefix("ERROR: ")
        described = pgconn.describe_prepared(b"")
        oids = [described.param_type(n) for n in range(described.nparams)]
        rows = self._conn.execute("select pg_catalog.format_type(t, null) from unnest(%s::oid[]) t", [oids]).fetchall()
        return [r[0] for r in rows]


def of_server(conn: Connection, *, seconds: float, top: int, read_only: bool) -> Capture:
    """What a server has carried out since its statistics were reset, or within so many seconds from now."""
    before = _counts(conn)
    if seconds:
        time.sleep(seconds)
        now = _counts(conn)
        nothing = ("", 0, 0.0)
        counts = {k: (q, n - before.get(k, nothing)[1], t - before.get(k, nothing)[2]) for k, (q, n, t) in now.items()}
    else:
        counts = before
    found = sorted((c for c in counts.values() if c[1] > 0), key=lambda c: -c[2])
    whole = sum(t for _, _, t in found) or 1.0
    out, catalog = Capture(), Catalog(conn)
    for text, calls, spent in found:
        why = _not_ours(text, read_only) or ("" if len(out.scripts) < top else f"beyond the first {top} (--top)")
        script = why or script_of(text, catalog, calls, len(out.scripts) + 1)
        if isinstance(script, str):
            out.left_out.append((script, shown(text), calls))
            continue
        out.scripts.append(script)
        out.covered += spent / whole
    return out


def _counts(conn: Connection) -> dict[Any, tuple[str, int, float]]:
    try:
        rows = conn.execute(_STATEMENTS).fetchall()
    except psycopg.Error as e:
        raise RefusedError(
            f"pg_stat_statements cannot be read: {one_line(e)[:200]}",
            "CREATE EXTENSION pg_stat_statements (it must be in shared_preload_libraries); or capture a log: --log.",
        ) from e
    return {(i, q): (q, n, t) for i, q, n, t in rows}


def _not_ours(text: str, read_only: bool) -> str:
    if sql.is_control(text):
        return "it controls transactions, settings or the schema"
    if sql.asks_catalog(text):
        return "it asks the catalog"
    if text == "<insufficient privilege>":
        return "its text is hidden: GRANT pg_read_all_stats"
    if read_only and writes(text):
        return "it writes (--read-only)"
    return ""


def script_of(text: str, catalog: Catalog, calls: int, number: int) -> Captured | str:
    """A script for one statement; or why there is none."""
    text = text.strip().rstrip(";")
    types = catalog.types(text)
    if isinstance(types, str):
        return f"the server does not take its general form: {types}"
    tree = sql.parsed(text)
    uses = sql.uses(tree, catalog.names) if tree is not None else {}
    remarks: list[str] = [] if tree is not None else ["it could not be read: parameters are drawn by type alone"]
    drawn = {n: draw_for(f"p{n}", uses.get(n), type_, catalog) for n, type_ in enumerate(types, 1)}
    remarks += [f"${n}: {d.remark}" for n, d in drawn.items() if d.remark]
    return Captured(name_of(text, tree, number), _text(text, drawn), calls, remarks)


def _text(text: str, drawn: Mapping[int, Draw]) -> str:
    lines = [line for d in drawn.values() for line in d.lines]
    return "\n".join([*lines, f"{with_draws(text, drawn)};"]) + "\n"


def with_draws(text: str, drawn: Mapping[int, Draw]) -> str:
    """A statement with what is drawn in place of its parameters, and without what pg_stat_statements remarks."""
    plain = text.replace("/*, ... */", "")

    def put(m: re.Match[str]) -> str:
        if int(m[1]) not in drawn:
            return m[0]
        expression = drawn[int(m[1])].expression
        # A slice's colon beside a variable's would be a cast.
        beside = plain[m.start() - 1 : m.start()] == ":" or plain[m.end() : m.end() + 1] == ":"
        return f" ({expression}) " if beside and plain[m.end() : m.end() + 2] != "::" else expression

    return sql.PARAMETER.sub(put, plain)


def shown(text: str) -> str:
    """A statement for the reader: of what may hold a secret (ALTER ROLE ... PASSWORD) the first words only."""
    return " ".join(text.split()[:2]) + " ..." if sql.is_control(text) or sql.parsed(text) is None else text


def draw_for(name: str, use: sql.Use | None, type_: str, catalog: Catalog) -> Draw:
    """How a parameter is drawn, by what it is compared with."""
    if use is not None and use.limit:
        return Draw((f"\\set {name} {_LIMIT}",), f":{name}", f"a limit, taken to be {_LIMIT}")
    column = catalog.columns.get(use.table, {}).get(use.column) if use is not None else None
    if use is None or column is None:
        if type_ in _INTEGERS:
            return Draw((f"\\set {name} {_UNKNOWN}",), f":{name}", f"what it is of is not known: {_UNKNOWN}")
        listed = {"boolean": "true", "text": "x", "numeric": "1", "double precision": "1", "real": "1"}.get(type_)
        expression = f"'{listed}'::{type_}" if listed else f"null::{type_}"
        return Draw((), expression, f"what it is of is not known: always {expression}")
    table = use.table.rpartition(".")[2]
    if type_ in _INTEGERS and column.is_unique:
        if use.inserted:
            high = 2**31 - 1 if type_ != "bigint" else 10**15
            return Draw((f"\\set {name} random(:{table}_last + 1, {high})",), f":{name}", "a new key, by chance")
        return Draw((f"\\set {name} random(:{table}_first, :{table}_last)",), f":{name}")
    if use.inserted and column.is_unique:
        return Draw((), f"md5(random()::text)::{type_}", "a new key, by chance")
    if type_.endswith("[]"):
        return Draw((), f"array(select {use.column} from {use.table} limit 1)", "a list, taken to have one value")
    if sql.is_secret(use.column):
        return Draw((), f"md5(random()::text)::{type_}", "it may be a secret: drawn by chance, and found nowhere")
    known = catalog.distribution(use.table, use.column)
    if known.is_empty:
        return Draw((), f"null::{type_}", f"{use.table}.{use.column} has no values to draw from: always null")
    if type_ not in _INTEGERS:
        return draws.from_a_list(name, known, type_)
    if draws.are_integers(known):
        return draws.integers(name, known)
    return Draw((f"\\set {name} {_UNKNOWN}",), f":{name}", f"what it is of is not known: {_UNKNOWN}")


def name_of(text: str, tree: Any, number: int) -> str:
    """A file's name: what is done to which tables."""
    verb = text.split(None, 1)[0].lower() if text.split() else "statement"
    touched = sorted(sql.tables(tree)) if tree is not None else []
    words = "-".join([verb, *(t.rpartition(".")[2] for t in touched[:2])])
    return f"{number:02d}-{''.join(c if c.isalnum() or c in '-_' else '-' for c in words)[:50]}"
