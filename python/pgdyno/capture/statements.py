"""Capture from pg_stat_statements: the statements that take a server's time.

Their parameters are drawn as the statistics of the tables suggest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from pgdyno.capture import described, draws, lexical, parameters, sql
from pgdyno.capture.catalog import INTEGERS, Catalog
from pgdyno.capture.draws import Draw, Listed
from pgdyno.capture.harm import differs
from pgdyno.capture.pace import Pace
from pgdyno.errors import ReasonError, RefusedError, msg, reason
from pgdyno.load.find import Connection
from pgdyno.message import Message, Name, Text, message
from pgdyno.statements import writes

_STATEMENTS = """
select s.queryid, s.query, sum(s.calls)::int8, sum(s.total_exec_time)::float8, sum(s.rows)::int8,
  sum(s.shared_blks_hit + s.shared_blks_read)::float8, sum(s.wal_bytes)::float8
from {} s join pg_catalog.pg_database d on d.oid = s.dbid
where d.datname = pg_catalog.current_database() and s.query is not null
group by 1, 2"""
_RESET = "select extract(epoch from pg_catalog.now() - stats_reset)::float8 from {}.pg_stat_statements_info"
#: The extension's own view, wherever it was made: another of its name is not asked.
_EXTENSION = """
select n.nspname::text, c.relname::text from pg_catalog.pg_extension e
  join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass and d.refobjid = e.oid
    and d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.deptype = 'e'
  join pg_catalog.pg_class c on c.oid = d.objid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where e.extname = 'pg_stat_statements' and c.relname = 'pg_stat_statements'"""
#: A column with more values than this tells rows apart.
_FEW_VALUES = 100
#: Rows per call below which most calls find none.
_HALF = 0.5
#: As a part of the rows that have one value.
_FAR_FEWER = 0.1
#: What the planner takes an array for whose elements it does not know.
_ELEMENTS = 10
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_SETS = re.compile(r"\bset_config\s*\(", re.IGNORECASE)
#: What takes rows away, or changes them.
_CHANGES = re.compile(r"(?:update|delete|merge)\b|with\b.*[()]\s*(?:update|delete|merge)\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Captured:
    """A script: its name, its text, how often it was executed, and what it could not keep."""

    name: str
    text: str
    calls: int
    remarks: Sequence[Text] = ()
    #: What one call was, by the keys of spec.experiment.ProducedScript.
    each: Mapping[str, float] = field(default_factory=dict)
    #: What rows must have that it picks: tables and columns.
    needs: Sequence[tuple[str, str, str, bool]] = ()
    #: Values that it picks from.
    listed: Sequence[Listed] = ()
    #: Parameters that a replay gives: number of the statement from 0, number of the parameter.
    scheduled: Sequence[tuple[int, int]] = ()
    #: In production, in words; empty: not known.
    plan: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A statement, or a kind of transaction, that no script stands for."""

    why: Message
    text: str
    calls: int
    #: Of the time of all; of their number, where the time is not known.
    part: float


@dataclass(frozen=True)
class Replayed:
    """Transactions as sessions have begun them."""

    clients: int
    seconds: float
    #: Client, milliseconds from the begin, script, sample or "-", values.
    lines: Sequence[tuple[int, float, str, str, Sequence[str | None]]]
    #: Columns of scheduled samples.
    samples: Mapping[str, Sequence[str]]


@dataclass
class Capture:
    """Result of a capture."""

    scripts: list[Captured] = field(default_factory=list)
    #: What is not among them.
    left_out: list[LeftOut] = field(default_factory=list)
    #: Part that the scripts stand for, and of what.
    covered: float = 0.0
    of: Message = field(default_factory=lambda: msg("capture-of-time"))
    is_of_log: bool = False
    #: What the reader should know of the source.
    notes: Sequence[Text] = ()
    #: In place of a rate: sessions' transactions at their times.
    replay: Replayed | None = None
    #: Executions per second; None: not known.
    pace: Pace | None = None
    #: What the scripts pick from: by the sample's name its table, as SQL names it, columns, and whether these may be
    #: NULL.
    samples: dict[str, tuple[str, list[str], bool]] = field(default_factory=dict)
    #: Values that the scripts pick from.
    listed: list[Listed] = field(default_factory=list)

    def add(self, script: Captured, catalog: Catalog) -> None:
        """Add a script and the samples that it picks from."""
        self.scripts.append(script)
        self.listed += script.listed
        for sample, shown, column, nulls in script.needs:
            table = catalog.tables[shown]
            name = f"{_quoted(table.schema)}.{_quoted(table.name)}"
            _, columns, _ = self.samples.setdefault(sample, (name, [], nulls))
            if column not in columns:
                columns.append(column)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_server(
    conn: Connection, *, seconds: float, top: int, read_only: bool, with_values: Sequence[str] = ()
) -> Capture:
    """Capture the statements that a server ran since its statistics were reset.

    If `seconds` is not 0, capture only the statements of that many seconds from now on.
    """
    before = _counts(conn)
    if seconds:
        time.sleep(seconds)
        now = _counts(conn)
        counts = {k: c.since(before.get(k)) for k, c in now.items()}
    else:
        counts = before
    found = sorted((c for c in counts.values() if c.calls > 0), key=lambda c: -c.ms)
    whole = sum(c.ms for c in found) or 1.0
    over_s = seconds or _since_reset(conn)
    out, catalog = Capture(), Catalog(conn, with_values)
    if not found:
        out.notes = _why_nothing(conn)
    for c in found:
        why = _not_ours(c.text, catalog, read_only) or (
            None if len(out.scripts) < top else msg("capture-beyond", top=top)
        )
        script = why or script_of(c, catalog, len(out.scripts) + 1)
        if isinstance(script, Message):
            out.left_out.append(LeftOut(script, shown(lexical.general(c.text)[0]), c.calls, c.ms / whole))
            continue
        out.add(script, catalog)
        out.covered += c.ms / whole
    out.notes = [*out.notes, *unfound(out)]
    if over_s and out.scripts:
        carried_out = sum(s.calls for s in out.scripts)
        busy = sum(s.calls * s.each.get("ms", 0.0) for s in out.scripts) / 1e3 / over_s
        out.pace = Pace(carried_out / over_s, over_s, 0, busy)
    return out


def unfound(found: Capture) -> list[Text]:
    """Return advice for the case that many statements name relations that this session does not find."""
    calls = sum(x.calls for x in found.left_out if _is_unfound(x.why))
    return [message("capture-unfound", calls=calls)] if calls else []


def _is_unfound(why: Message) -> bool:
    words = why.args.get("words")
    return isinstance(words, Name) and "does not exist" in words.text and "relation" in words.text


def _since_reset(conn: Connection) -> float:
    """Seconds for which statements were counted; 0: not known (before PostgreSQL 14)."""
    try:
        (view, _) = conn.execute(_EXTENSION).fetchone() or ("", "")
        row = conn.execute(SQL(_RESET).format(Identifier(view))).fetchone() if view else None
    except psycopg.Error:
        return 0.0
    return float(row[0]) if row is not None and row[0] is not None else 0.0


@dataclass(frozen=True)
class Counts:
    """Server counters of one statement."""

    text: str
    calls: int
    ms: float
    #: Returned, or changed.
    rows: int
    #: Read, from memory or not.
    blocks: float = 0.0
    wal_bytes: float = 0.0

    def since(self, before: Counts | None) -> Counts:
        """Return the counts that were added since `before`."""
        if before is None:
            return self
        names = ("calls", "ms", "rows", "blocks", "wal_bytes")
        return replace(self, **{name: getattr(self, name) - getattr(before, name) for name in names})

    @property
    def each(self) -> dict[str, float]:
        """Counts per call."""
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
            raise ReasonError(msg("why-no-extension"))
        rows = conn.execute(SQL(_STATEMENTS).format(Identifier(*view))).fetchall()
    except (psycopg.Error, ReasonError) as e:
        raise RefusedError(
            msg("error-pg-stat-statements-cannot-be", reason=reason(e)),
            msg("remedy-create-extension-pg-stat-statements"),
        ) from e
    return {(i, q): Counts(q, *counted) for i, q, *counted in rows}


def _why_nothing(conn: Connection) -> list[Text]:
    # What the session had before it turned its own off.
    row = conn.execute(
        "select reset_val from pg_catalog.pg_settings where name = 'pg_stat_statements.track'"
    ).fetchone()
    if row is not None and row[0] == "none":
        return [msg("capture-track-none")]
    return [msg("capture-none-counted")]


def _not_ours(text: str, catalog: Catalog, read_only: bool) -> Message | None:
    if sql.is_control(text):
        return msg("capture-controls")
    if sql.asks_catalog(text):
        return msg("capture-asks-catalog")
    if text == "<insufficient privilege>":
        return msg("capture-hidden")
    return may_write(text, catalog) if read_only else None


def may_write(text: str, catalog: Catalog) -> Message | None:
    """Return the reason why a statement does not belong in a read-only capture, or None if it does."""
    if writes(text) or sql.bare(text)[:4].lower() == "call":
        return msg("capture-writes")
    if volatile := catalog.functions(text).volatile:
        return msg("capture-calls-volatile", function=volatile)
    return None


def script_of(c: Counts, catalog: Catalog, number: int) -> Captured | Message:
    """Create a script for one statement; return the reason if there is none."""
    given = sql.acceptable(c.text.strip().rstrip(";"))
    # Of what was prepared before statistics were reset, constants are counted with their values.
    text, constants = lexical.general(given)
    types = catalog.types(text)
    for casts in (lexical.Casts.NONE, lexical.Casts.ALL) if isinstance(types, str) and constants else ():
        other = lexical.general(given, casts)[0]
        if not isinstance(found := catalog.types(other), str):
            text, types = other, found
            break
    if isinstance(types, str):
        return msg("capture-general-form-refused", words=types)
    tree = sql.parsed(text)
    uses = sql.uses(tree, catalog.names) if tree is not None else {}
    uses |= {n: sql.Use(how="unit") for n in sql.extracted(text)}
    if _SETS.search(text):
        return msg("capture-sets-session")
    remarks: list[Text] = [] if tree is not None else [msg("capture-unread")]
    changes = _CHANGES.match(sql.bare(text)) is not None
    tables = [catalog.tables[t] for t in sql.tables(tree) if t in catalog.tables] if tree is not None else []
    is_of_one = tree is not None and len(sql.tables(tree)) == 1
    finds_one = is_of_one and _finds_one(text, uses, types, catalog)
    known = _constants(constants, lexical.highest(given), uses, types, catalog)
    finds = is_of_one and tree is not None and sql.returns_what_it_finds(tree)
    # Where a key finds one row at most, it finds none as often as in production.
    hits = min(1.0, c.rows_per_call) if finds_one and (changes or finds) else 1.0
    if finds and not finds_one and not _OR.search(text):
        hits = _hits(c, uses, catalog)
    statement = described.Statement(
        uses,
        types,
        known,
        rows=c.rows_per_call,
        blocks=c.blocks / max(1, c.calls),
        pages=sum(t.pages for t in tables),
        returns_what_it_finds=finds,
        hits=hits,
        changes=changes,
        place=f"v{number}_",
        may_conflict=sql.may_conflict(text),
    )
    try:
        drawn = parameters.drawn(statement, catalog)
    except described.NotKnownError as e:
        return e.reason
    remarks += [msg("capture-parameter", n=n, remark=d.remark) for n, d in drawn.items() if d.remark]
    prepared = prepared_form(with_draws(text, drawn))
    own_types = catalog.types(prepared)
    if isinstance(own_types, str):
        return msg("capture-drawn-refused", words=own_types)
    here = _rows(prepared, own_types, catalog, finds_one=finds_one)
    if finds and parameters.is_calibrated(statement):
        # Its parameters are drawn so that they find as many; a generic plan knows nothing of that.
        here = None if changes else c.rows_per_call
    here = None if here is None else here * hits
    if changes and here is not None and differs(here, c.rows_per_call):
        return msg("capture-changes-more", there=f"{c.rows_per_call:.3g}", here=f"{here:,.3g}")
    if changes and here is None:
        if not differs(1.0, c.rows_per_call):
            remarks.append(msg("capture-changes-unknown"))
        else:
            return msg("capture-changed-nearly-none")
    elif here is not None and (differs(here, c.rows_per_call) or differs(c.rows_per_call, here)):
        remarks.append(msg("capture-rows-differ", there=f"{c.rows_per_call:.3g}", here=f"{here:,.3g}"))
    finds_little = c.rows_per_call < _HALF and not text.lower().startswith("insert")
    script = _text(text, drawn, "-- may find nothing, as in production" if finds_little else "")
    plan = catalog.planner.shape(prepared, len(own_types))
    name, listed = name_of(text, tree, number), listed_of(drawn)
    return Captured(name, script, c.calls, remarks, c.each, needs_of(drawn), listed, plan=plan)


def prepared_form(text: str) -> str:
    """Convert a script's statement so that its variables become parameters."""
    names: dict[str, int] = {}
    return re.sub(r"(?<!:):([A-Za-z_]\w*)", lambda m: f"${names.setdefault(m[1], len(names) + 1)}", text)


def listed_of(drawn: Mapping[int, Draw]) -> list[Listed]:
    """Return the lists of values that the scripts pick from."""
    return [d.listed for d in drawn.values() if d.listed is not None]


def _constants(
    values: Sequence[str], behind: int, uses: Mapping[int, sql.Use], types: Sequence[str], catalog: Catalog
) -> dict[int, Draw]:
    """Constants of a statement that may stand in a script: numbers, times, units of time."""
    found = {}
    for n, value in enumerate(values, behind + 1):
        use, type_ = uses.get(n), types[n - 1]
        if use is not None and use.how in ("equal", "list", "new", "set") and _names_one(use, catalog):
            continue
        if sql.is_word(use, value) or catalog.may_be_written(use, type_):
            written = value if type_ in (*INTEGERS, "numeric") else draws.literal_of(value)
            found[n] = Draw((), written)
    return found


def _names_one(use: sql.Use, catalog: Catalog) -> bool:
    """Return True if a value of the column distinguishes one row, or a few, from the others.

    Values of a state or a kind do not.
    """
    table = catalog.tables.get(use.table)
    if table is None or use.column not in table.columns:
        return False
    distinct = catalog.distinct(table, use.column)
    return distinct is None or distinct > _FEW_VALUES


def _hits(c: Counts, uses: Mapping[int, sql.Use], catalog: Catalog) -> float:
    """Estimate the share of calls in which the only compared value existed.

    It is below 1 if calls found far fewer rows than one value has.
    """
    compared = [use for use in uses.values() if use.how not in ("new", "set")]
    if len(compared) != 1 or compared[0].how != "equal" or compared[0].table not in catalog.tables:
        return 1.0
    table = catalog.tables[compared[0].table]
    distinct = catalog.distinct(table, compared[0].column)
    each = table.rows / distinct if distinct else 0.0
    return c.rows_per_call / each if each and c.rows_per_call < _FAR_FEWER * each else 1.0


def needs_of(drawn: Mapping[int, Draw]) -> tuple[tuple[str, str, str, bool], ...]:
    """Return the tables and columns that the scripts pick from."""
    return tuple(dict.fromkeys(need for d in drawn.values() for need in d.needs))


def _finds_one(text: str, uses: Mapping[int, sql.Use], types: Sequence[str], catalog: Catalog) -> bool:
    """Return True if a unique integer key is compared with one parameter, and no other part can find more rows."""
    keys = [(n, use.column) for n, use in uses.items() if _is_key(use, types, n, catalog)]
    if len(keys) != 1 or _OR.search(text):
        return False
    ((n, column),) = keys
    name = re.escape(column)
    equal = rf'\b{name}"?\s*=\s*\(?\${n}(?!\d)|\${n}\s*=\s*(?:\w+\.)?"?{name}\b'
    return re.search(equal, text, re.IGNORECASE) is not None


def _is_key(use: sql.Use, types: Sequence[str], number: int, catalog: Catalog) -> bool:
    table = catalog.tables.get(use.table)
    is_unique = table is not None and table.is_unique(use.column)
    return is_unique and use.how == "equal" and types[number - 1] in INTEGERS


def _rows(text: str, types: Sequence[str], catalog: Catalog, *, finds_one: bool) -> float | None:
    """Estimate the number of rows that a statement touches with the parameters that the script draws.

    The estimate counts one value for a list and one row for a key.
    """
    here = catalog.planner.rows(text, len(types))
    if finds_one:
        return min(1.0, here if here is not None else 1.0)
    return here / _ELEMENTS if here is not None and any(t.endswith("[]") for t in types) else here


def _text(text: str, drawn: Mapping[int, Draw], comment: str = "") -> str:
    lines = [line for d in drawn.values() for line in d.lines]
    lines += [comment] if comment else []
    return "\n".join([*lines, f"{with_draws(text, drawn)};"]) + "\n"


def with_draws(text: str, drawn: Mapping[int, Draw]) -> str:
    """Replace the parameters of a statement with their draws.

    The remark that pg_stat_statements leaves in the text is removed.
    """
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
    """Return a statement for display.

    If it may hold a secret (ALTER ROLE ... PASSWORD), only its first words are shown.
    """
    if not sql.is_control(text) and sql.parsed(text) is not None:
        return text
    words = re.match(r"[A-Za-z]+(?:\s+[A-Za-z]+(?![\w(']))?", text.strip())
    return f"{' '.join(words[0].split()) if words else ''} ..."


def name_of(text: str, tree: Any, number: int) -> str:
    """Return a file name that tells the operation and the tables."""
    verb = text.split(None, 1)[0].lower() if text.split() else "statement"
    touched = sorted(sql.tables(tree)) if tree is not None else []
    words = "-".join([verb, *(t.rpartition(".")[2] for t in touched[:2])])
    return f"{number:02d}-{''.join(c if c.isalnum() or c in '-_' else '-' for c in words)[:50]}"
