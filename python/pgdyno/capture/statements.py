"""From pg_stat_statements: the statements that take a server's time, with their parameters drawn as the tables'
statistics say.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from pgdyno.capture import draws, sql
from pgdyno.capture.draws import PARTS, Distribution, Draw
from pgdyno.capture.harm import Functions, Planner, differs, functions
from pgdyno.errors import RefusedError, UsageError
from pgdyno.format import one_line
from pgdyno.load.find import Connection
from pgdyno.search_path import schemas_of, user_path
from pgdyno.statements import writes

_STATEMENTS = """
select s.queryid, s.query, sum(s.calls)::int8, sum(s.total_exec_time)::float8, sum(s.rows)::int8,
  sum(s.shared_blks_hit + s.shared_blks_read)::float8, sum(s.wal_bytes)::float8
from {} s join pg_catalog.pg_database d on d.oid = s.dbid
where d.datname = pg_catalog.current_database() and s.query is not null
group by 1, 2"""
#: The extension's own view, wherever it was made: another of its name is not asked.
_EXTENSION = """
select n.nspname::text, c.relname::text from pg_catalog.pg_extension e
  join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass and d.refobjid = e.oid
    and d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.deptype = 'e'
  join pg_catalog.pg_class c on c.oid = d.objid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where e.extname = 'pg_stat_statements' and c.relname = 'pg_stat_statements'"""
#: A table is named as statements name it: alone, where it is the first of its name in the user's search path. Such that
#: hold values of their own can be looked into; views call what their owners like.
_COLUMNS = """
select case when n.nspname::text = (
    select n2.nspname::text from pg_catalog.pg_class c2 join pg_catalog.pg_namespace n2 on n2.oid = c2.relnamespace
    where c2.relname = c.relname and n2.nspname::text = any(%(path)s::text[])
    order by pg_catalog.array_position(%(path)s::text[], n2.nspname::text) limit 1)
    then c.relname::text else n.nspname::text || '.' || c.relname::text end,
  n.nspname::text, c.relname::text, a.attname::text, pg_catalog.format_type(a.atttypid, null),
  c.relkind in ('r', 'p') and not c.relrowsecurity and a.attgenerated <> 'v'
    and t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace,
  exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisunique and i.indnkeyatts = 1
          and i.indkey[0] = a.attnum)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join pg_catalog.pg_type t on t.oid = a.atttypid
where c.relkind in ('r', 'p', 'v', 'm') and n.nspname not in ('pg_catalog', 'information_schema')"""
_STATS = """
select most_common_vals::text::text[], most_common_freqs, histogram_bounds::text::text[], n_distinct
from pg_catalog.pg_stats
where schemaname::text = %s and tablename::text = %s and attname::text = %s
order by inherited limit 1"""
#: Rows that are looked at where there are no statistics, and how long that may take, milliseconds.
_SOME, _LOOK_MS = 200, 2_000
#: Types that hold none.
_NO_SECRET = re.compile(
    r"(?:smallint|integer|bigint|numeric|real|double precision|boolean|date|time|timestamp|interval|money|oid|inet|"
    r"cidr|macaddr|point|box|circle|line|lseg|path|polygon|\w*range|bit)\b"
)
_INTEGERS = ("smallint", "integer", "bigint")
#: Types whose values tell an amount or a time, of which a histogram's bounds may be written.
_MEASURED = re.compile(
    r"(?:smallint|integer|bigint|numeric|real|double precision|boolean|date|time|timestamp|interval)\b"
)
#: Rows of a table without an integer key.
_FIRST = 100
#: A parameter that nothing is known of.
_UNKNOWN = "random(1, 1000)"
_LIMIT = 10
#: What the planner takes an array for whose elements it does not know.
_ELEMENTS = 10
_OR = re.compile(r"\bor\b", re.IGNORECASE)
#: What takes rows away, or changes them.
_CHANGES = re.compile(r"(?:update|delete|merge)\b|with\b.*[()]\s*(?:update|delete|merge)\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Captured:
    """A script: its name, its text, how often it was carried out, and what it could not keep."""

    name: str
    text: str
    calls: int
    remarks: Sequence[str] = ()
    #: What one call was, by the keys of spec.experiment.ProducedScript.
    each: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Capture:
    """What came of it."""

    scripts: list[Captured] = field(default_factory=list)
    #: Statements that are not among them: why, the text, calls.
    left_out: list[tuple[str, str, int]] = field(default_factory=list)
    #: Part of the time that the server spent in statements that the scripts stand for.
    covered: float = 0.0
    #: What the reader should know of the source.
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Column:
    """A column, as the catalog has it."""

    type: str
    is_unique: bool
    #: Schema and table as the catalog has them.
    schema: str = ""
    table: str = ""
    #: Values can be read without calling anything but the server's own functions.
    is_plain: bool = False


class Catalog:
    """Tables' columns, and what their statistics say. `with_values`: columns whose values may be written, as "column",
    "table.column", or "all".
    """

    def __init__(self, conn: Connection, with_values: Sequence[str] = ()) -> None:
        self._conn = conn
        self._with_values = frozenset(with_values)
        self.columns: dict[str, dict[str, Column]] = {}
        self.planner = Planner(conn)
        path = {"path": list(schemas_of(conn))}
        for shown_as, schema, table, column, type_, plain, unique in conn.execute(_COLUMNS, path).fetchall():
            self.columns.setdefault(shown_as, {})[column] = Column(type_, unique, schema, table, plain)
        known = {"all"} | {n for t, of in self.columns.items() for c in of for n in (c, f"{t}.{c}")}
        if unknown := sorted(self._with_values - known):
            raise UsageError(
                f"--with-values: no table has a column {', '.join(unknown)}", "Write COLUMN, TABLE.COLUMN, or all."
            )

    @property
    def names(self) -> dict[str, set[str]]:
        """By table the names of its columns."""
        return {t: set(c) for t, c in self.columns.items()}

    def distribution(self, table: str, column: str) -> Distribution:
        """Of its values: by ANALYZE; where that says nothing, of some rows."""
        c = self.columns[table][column]
        row = self._conn.execute(_STATS, [c.schema, c.table, column]).fetchone()
        if row is not None and (row[0] or row[2]):
            return Distribution(row[0] or (), row[1] or (), row[2] or ())
        if not c.is_plain:
            return Distribution()
        look = SQL("select {}::pg_catalog.text from {} limit {}").format(
            Identifier(column), Identifier(c.schema, c.table), _SOME
        )
        try:
            with self._conn.transaction():
                self._conn.execute(f"set local statement_timeout = {_LOOK_MS}")
                rows = self._conn.execute(look).fetchall()
        except psycopg.Error:
            return Distribution()
        return Distribution.of([r[0] for r in rows if r[0] is not None])

    def is_secret(self, use: sql.Use | None, type_: str) -> bool:
        """Whether a parameter's values are better not written down. Numbers, dates and truth values are no secrets."""
        return use is not None and not _NO_SECRET.match(type_) and sql.is_secret(use.column)

    def may_be_written(self, use: sql.Use | None, type_: str) -> bool:
        """Whether values may stand in a script: numbers, times and truth values; of others, those asked for."""
        if _MEASURED.match(type_) and not type_.endswith("[]"):
            return True
        names = {"all"} | ({use.column, f"{use.table}.{use.column}"} if use is not None else set())
        return not names.isdisjoint(self._with_values)

    def from_its_table(self, name: str, use: sql.Use | None, type_: str) -> Draw:
        """A value that a row of the table has where the script runs, so that none is written down."""
        table = self.columns.get(use.table) if use is not None else None
        if use is None or table is None or use.column not in table:
            return Draw(
                (), by_chance(type_), "what it is of is not known: drawn by chance (--with-values writes values)"
            )
        c, column = table[use.column], _quoted(use.column)
        if not self._has_rows(c):
            return Draw((), by_chance(type_), f"{use.table} has no rows to draw from: drawn by chance")
        where = f"select {column} from {_quoted(c.schema)}.{_quoted(c.table)} where {column} is not null"
        key = next((n for n, k in table.items() if k.is_unique and k.type in _INTEGERS), None)
        if key is None:
            lines = (f"\\set {name}k random(0, {_FIRST - 1})",)
            return Draw(
                lines, f"({where} offset :{name}k limit 1)::{type_}", f"of one of the first {_FIRST} rows there"
            )
        # Variables are named by the table's own name.
        lines = (f"\\set {name}k random(:{c.table}_first, :{c.table}_last)",)
        drawn = f"({where} and {_quoted(key)} >= :{name}k order by {_quoted(key)} limit 1)::{type_}"
        return Draw(lines, drawn, "the value of a row that is there")

    def _has_rows(self, c: Column) -> bool:
        look = SQL("select exists (select from {})").format(Identifier(c.schema, c.table))
        try:
            with self._conn.transaction():
                self._conn.execute(f"set local statement_timeout = {_LOOK_MS}")
                row = self._conn.execute(look).fetchone() if c.is_plain else None
        except psycopg.Error:
            return False
        return row is not None and bool(row[0])

    def functions(self, text: str) -> Functions:
        """Somebody's functions that a statement may call."""
        return functions(self._conn, text)

    def types(self, text: str) -> list[str] | str:
        """Of a statement's parameters, as the server sees them; or why it does not take it."""
        # The extended protocol takes one statement, and nothing is carried out.
        pgconn = self._conn.pgconn
        with user_path(self._conn):
            result = pgconn.prepare(b"", text.encode())
            if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
                return " ".join(result.get_error_message().split()).removeprefix("ERROR: ")
            described = pgconn.describe_prepared(b"")
        oids = [described.param_type(n) for n in range(described.nparams)]
        rows = self._conn.execute("select pg_catalog.format_type(t, null) from unnest(%s::oid[]) t", [oids]).fetchall()
        return [r[0] for r in rows]


def of_server(
    conn: Connection, *, seconds: float, top: int, read_only: bool, with_values: Sequence[str] = ()
) -> Capture:
    """What a server has carried out since its statistics were reset, or within so many seconds from now."""
    before = _counts(conn)
    if seconds:
        time.sleep(seconds)
        now = _counts(conn)
        counts = {k: c.since(before.get(k)) for k, c in now.items()}
    else:
        counts = before
    found = sorted((c for c in counts.values() if c.calls > 0), key=lambda c: -c.ms)
    whole = sum(c.ms for c in found) or 1.0
    out, catalog = Capture(), Catalog(conn, with_values)
    if not found:
        out.notes = _why_nothing(conn)
    for c in found:
        why = _not_ours(c.text, catalog, read_only) or (
            "" if len(out.scripts) < top else f"beyond the first {top} (--top)"
        )
        script = why or script_of(c, catalog, len(out.scripts) + 1)
        if isinstance(script, str):
            out.left_out.append((script, shown(c.text), c.calls))
            continue
        out.scripts.append(script)
        out.covered += c.ms / whole
    return out


@dataclass(frozen=True)
class Counts:
    """What a server has counted of a statement."""

    text: str
    calls: int
    ms: float
    #: Returned, or changed.
    rows: int
    #: Read, from memory or not.
    blocks: float = 0.0
    wal_bytes: float = 0.0

    def since(self, before: Counts | None) -> Counts:
        """What came to it."""
        if before is None:
            return self
        names = ("calls", "ms", "rows", "blocks", "wal_bytes")
        return replace(self, **{name: getattr(self, name) - getattr(before, name) for name in names})

    @property
    def each(self) -> dict[str, float]:
        """Of one call."""
        n = max(1, self.calls)
        return {"ms": self.ms / n, "rows": self.rows / n, "blocks": self.blocks / n, "wal_bytes": self.wal_bytes / n}

    @property
    def rows_per_call(self) -> float:
        """Mean."""
        return self.rows / self.calls if self.calls else 0.0


def _counts(conn: Connection) -> dict[Any, Counts]:
    try:
        view = conn.execute(_EXTENSION).fetchone()
        if view is None:
            raise psycopg.errors.UndefinedTable("the extension is not in this database")
        rows = conn.execute(SQL(_STATEMENTS).format(Identifier(*view))).fetchall()
    except psycopg.Error as e:
        raise RefusedError(
            f"pg_stat_statements cannot be read: {one_line(e)[:200]}",
            "CREATE EXTENSION pg_stat_statements (it must be in shared_preload_libraries); or capture a log: --log.",
        ) from e
    return {(i, q): Counts(q, *counted) for i, q, *counted in rows}


def _why_nothing(conn: Connection) -> list[str]:
    row = conn.execute("select pg_catalog.current_setting('pg_stat_statements.track', true)").fetchone()
    if row is not None and row[0] == "none":
        return ["pg_stat_statements.track = none: nothing is counted (SET it to top)"]
    return ["pg_stat_statements has counted no statement of this database (was it reset? is it another database?)"]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _not_ours(text: str, catalog: Catalog, read_only: bool) -> str:
    if sql.is_control(text):
        return "it controls transactions, settings or the schema"
    if sql.asks_catalog(text):
        return "it asks the catalog"
    if text == "<insufficient privilege>":
        return "its text is hidden: GRANT pg_read_all_stats"
    return may_write(text, catalog) if read_only else ""


def may_write(text: str, catalog: Catalog) -> str:
    """Why a statement has no place in a capture that only reads; empty: it has one."""
    if writes(text) or sql.bare(text)[:4].lower() == "call":
        return "it writes (--read-only)"
    if volatile := catalog.functions(text).volatile:
        return f"it calls {volatile}, which may write (--read-only): it is VOLATILE, which STABLE ones are not"
    return ""


def script_of(c: Counts, catalog: Catalog, number: int) -> Captured | str:
    """A script for one statement; or why there is none."""
    text = c.text.strip().rstrip(";")
    types = catalog.types(text)
    if isinstance(types, str):
        return f"the server does not take its general form: {types}"
    tree = sql.parsed(text)
    uses = sql.uses(tree, catalog.names) if tree is not None else {}
    remarks: list[str] = [] if tree is not None else ["it could not be read: parameters are drawn by type alone"]
    changes = _CHANGES.match(sql.bare(text)) is not None
    is_of_one = tree is not None and len(sql.tables(tree)) == 1
    by_key = is_of_one and _finds_one(text, uses, types, catalog)
    here = _rows(text, uses, types, catalog, by_key=by_key)
    # Where a key finds one row at most, it finds none as often as in production.
    hits = min(1.0, c.rows_per_call) if by_key and changes else 1.0
    drawn = {n: draw_for(f"p{n}", uses.get(n), type_, catalog, hits) for n, type_ in enumerate(types, 1)}
    remarks += [f"${n}: {d.remark}" for n, d in drawn.items() if d.remark]
    if changes and here is not None and differs(here * hits, c.rows_per_call):
        return (
            f"it changed {c.rows_per_call:.3g} rows a call in production, and with parameters that are drawn about "
            f"{here * hits:,.3g}"
        )
    if changes and here is None:
        if not differs(1.0, c.rows_per_call):
            remarks.append("how many rows it changes with these parameters is not known")
        else:
            return "it changed next to no rows in production; what it would change with these parameters is not known"
    elif here is not None and (differs(here, c.rows_per_call) or differs(c.rows_per_call, here)):
        remarks.append(f"{c.rows_per_call:.3g} rows a call in production, about {here:,.3g} here")
    return Captured(name_of(text, tree, number), _text(text, drawn), c.calls, remarks, c.each)


def _finds_one(text: str, uses: Mapping[int, sql.Use], types: Sequence[str], catalog: Catalog) -> bool:
    """Whether a unique integer key is compared with one parameter, and nothing else can find more."""
    keys = [(n, use.column) for n, use in uses.items() if _is_key(use, types, n, catalog)]
    if len(keys) != 1 or _OR.search(text):
        return False
    ((n, column),) = keys
    name = re.escape(column)
    equal = rf'\b{name}"?\s*=\s*\(?\${n}(?!\d)|\${n}\s*=\s*(?:\w+\.)?"?{name}\b'
    return re.search(equal, text, re.IGNORECASE) is not None


def _is_key(use: sql.Use, types: Sequence[str], number: int, catalog: Catalog) -> bool:
    column = catalog.columns.get(use.table, {}).get(use.column)
    return column is not None and column.is_unique and not use.inserted and types[number - 1] in _INTEGERS


def _rows(
    text: str, uses: Mapping[int, sql.Use], types: Sequence[str], catalog: Catalog, *, by_key: bool
) -> float | None:
    """How many rows it touches as the script draws its parameters: of a list one value, of a limit 10, of a key one."""
    here = catalog.planner.rows(text, len(types))
    if by_key:
        return min(1.0, here if here is not None else 1.0)
    if here is None:
        return None
    if any(t.endswith("[]") for t in types):
        here /= _ELEMENTS
    return min(here, float(_LIMIT)) if any(u.limit for u in uses.values()) else here


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


def draw_for(name: str, use: sql.Use | None, type_: str, catalog: Catalog, hits: float = 1.0) -> Draw:
    """How a parameter is drawn, by what it is compared with. Of keys such a part that are there are `hits`."""
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
        there = f"random(:{table}_first, :{table}_last)"
        if hits >= 1:
            return Draw((f"\\set {name} {there}",), f":{name}")
        # Below the first: what is inserted comes behind the last.
        return Draw(
            (f"\\set {name}_u random(1, {PARTS})",
             f"\\set {name} case when :{name}_u <= {round(hits * PARTS)} then {there} "
             f"else :{table}_first - random(1, 1000) end"),
            f":{name}", f"a key that is there in {hits:.3g} of the calls, as in production",
        )  # fmt: skip
    if use.inserted and column.is_unique:
        return Draw((), by_chance(type_), "a new key, by chance")
    if type_.endswith("[]"):
        return Draw((), f"array(select {use.column} from {use.table} limit 1)", "a list, taken to have one value")
    if catalog.is_secret(use, type_):
        return Draw((), by_chance(type_), "it may be a secret: drawn by chance, and found nowhere")
    if not catalog.may_be_written(use, type_):
        return catalog.from_its_table(name, use, type_)
    known = catalog.distribution(use.table, use.column)
    if known.is_empty:
        return Draw((), f"null::{type_}", f"{use.table}.{use.column} has no values to draw from: always null")
    if type_ not in _INTEGERS:
        return draws.from_a_list(name, known, type_)
    if draws.are_integers(known):
        return draws.integers(name, known)
    return Draw((f"\\set {name} {_UNKNOWN}",), f":{name}", f"what it is of is not known: {_UNKNOWN}")


def is_open(type_: str) -> bool:
    """Whether values of a type hold no secrets."""
    return _NO_SECRET.match(type_) is not None


def by_chance(type_: str) -> str:
    """An expression that is worked out once a statement, so that an index can be used: a subquery of its own."""
    drawn = "md5(random()::text)"
    match type_:
        case "bytea":
            return f"(select decode({drawn}, 'hex'))"
        case "json" | "jsonb":
            return f"(select to_{type_}({drawn}))"
        case "character":
            return f"(select {drawn}::bpchar)"
        case _ if type_.endswith("[]"):
            return f"(select array[{drawn}]::{type_})"
        case _ if _NO_SECRET.match(type_):
            return f"null::{type_}"
    # Texts, uuid, and what reads text: citext, domains over them.
    return f"(select {drawn}::{type_})"


def name_of(text: str, tree: Any, number: int) -> str:
    """A file's name: what is done to which tables."""
    verb = text.split(None, 1)[0].lower() if text.split() else "statement"
    touched = sorted(sql.tables(tree)) if tree is not None else []
    words = "-".join([verb, *(t.rpartition(".")[2] for t in touched[:2])])
    return f"{number:02d}-{''.join(c if c.isalnum() or c in '-_' else '-' for c in words)[:50]}"
