"""The plans of a workload's statements, before and after a trial: generic, and executed once with values of its own.

A statement is executed (EXPLAIN ANALYZE) only on a server that is ours alone, within a transaction that is rolled
back, and only if it can be repeated: a SELECT (read only), or an INSERT, UPDATE or DELETE of a plain table, that calls
no function of somebody's making.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg

from pgdyno.format import one_line
from pgdyno.message import Name, Text, message
from pgdyno.search_path import use_user_path

Connection = psycopg.Connection[tuple[Any, ...]]
Row = dict[str, float | str]
#: Statements that have a plan.
_PLANNED = re.compile(r"\s*(?:select|insert|update|delete|merge|with|values)\b", re.IGNORECASE)
#: A call in a statement; of these PostgreSQL's own is known that they change nothing outside.
_CALL = re.compile(r"([a-z_][a-z0-9_.]*)\s*\(", re.IGNORECASE)
_HARMLESS = {
    "count", "sum", "min", "max", "avg", "coalesce", "nullif", "greatest", "least", "now", "clock_timestamp", "random",
    "abs", "floor", "ceil", "round", "length", "lower", "upper", "substr", "substring", "left", "right", "extract",
    "date_trunc", "to_char", "md5", "concat", "cast", "row", "values", "in", "any", "all", "exists", "and", "or", "not",
    "over", "array", "generate_series", "array_agg", "string_agg", "jsonb_build_object", "json_build_object", "unnest",
    "into", "on", "as", "using", "from", "where", "select", "join", "conflict", "set", "numeric", "varchar", "char",
    "interval", "date", "filter", "distinct", "by", "when", "then", "else", "between", "like", "is", "limit", "repeat",
}  # fmt: skip
#: What a statement writes to, as it names it.
_NAME = r"(?:\"(?:[^\"]|\"\")+\"|\w+)"
_TARGET = re.compile(
    rf"\s*(insert\s+into|update(?:\s+only)?|delete\s+from(?:\s+only)?)\s+({_NAME}(?:\s*\.\s*{_NAME})?)", re.IGNORECASE
)
_LOCKS = re.compile(r"\bfor\s+(no\s+key\s+update|update|share|key\s+share)\b", re.IGNORECASE)
#: A table whose rows are written by nobody else's code: no triggers but those of keys, no rules; and for an INSERT no
#: default that counts on, which a rollback would not take back.
_PLAIN: LiteralString = r"""
select c.relkind in ('r', 'p') and not c.relhasrules
  and not exists (select from pg_trigger t where not t.tgisinternal
                  and t.tgrelid in (select c.oid union all select relid from pg_partition_tree(c.oid)))
  and not (%s and exists (
    select from pg_attribute a left join pg_attrdef d on (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
    where a.attrelid = c.oid and a.attnum > 0
      and (a.attidentity <> ''
           or regexp_replace(pg_get_expr(d.adbin, d.adrelid), '\m(now|clock_timestamp)\(\)', '', 'g') ~ '\w\(')))
from pg_class c where c.oid = to_regclass(%s)"""
#: How long one statement may take to be planned, or executed.
_PLAN_MS, _CARRY_OUT_MS = 2_000, 5_000
_TOTAL_S = 10.0
#: What a statement is prepared with, to see its generic plan.
PREPARE = "prepare pgdyno_plan as "


@dataclass(frozen=True)
class Sample:
    """A statement of a script: its place, its text with parameters, and with values."""

    script: str
    line: int
    text: str
    prepared: str
    sample: str


@dataclass(frozen=True)
class Plan:
    """A statement's plan."""

    statement: Sample
    #: The nodes from the top, without costs: what is compared.
    shape: str
    #: Scans that read whole tables: table, rows that it is estimated to have, condition by which rows are filtered out.
    scans: list[tuple[str, float, str]] = field(default_factory=list)
    #: If it was executed: time, blocks, temporary blocks; of the scan that threw away most, its rows and those.
    facts: Mapping[str, float] = field(default_factory=dict)


def can_be_repeated(text: str) -> bool:
    """Return True if a statement makes no change that remains after a rollback."""
    if _PLANNED.match(text) is None or re.search(r"\bnextval\b|\bpg_|\bset_config\b", text, re.IGNORECASE):
        return False
    # Not the table that an INSERT names with its columns.
    text = re.sub(r"\binto\s+[\w.\"]+\s*\(", "into (", re.sub(r"'(?:[^']|'')*'", "''", text), flags=re.IGNORECASE)
    # A quoted name may be any function's; a WITH that writes, and a MERGE, write to more than one place.
    writes = re.search(r"\b(insert|update|delete|merge)\b", text, re.IGNORECASE)
    if re.search(r"\"\s*\(", text) or re.match(r"\s*merge\b", text, re.IGNORECASE):
        return False
    if writes and re.match(r"\s*with\b", text, re.IGNORECASE):
        return False
    return all(name.lower() in _HARMLESS for name in _CALL.findall(text))


def _writes_plainly(conn: Connection, text: str) -> bool | None:
    """Return True if a statement writes to a plain table, or None if it does not write."""
    if (match := _TARGET.match(text)) is None:
        return None
    row = conn.execute(_PLAIN, [match[1].lower().startswith("insert"), match[2]]).fetchone()
    return row is not None and bool(row[0])


def read(conn: Connection, statements: Sequence[Sample], *, carry_out: bool) -> tuple[list[Plan], list[Text]]:
    """Return the plans of statements, and a message with the reason for each plan that could not be read.

    If `carry_out` is set, statements are also executed. No execution starts later than _TOTAL_S seconds after the
    call.
    """
    plans: list[Plan] = []
    missing: list[Text] = []
    deadline = time.monotonic() + _TOTAL_S
    for s in statements:
        # Several in one message are none: a COMMIT among them would end the transaction that is to be rolled back.
        if _PLANNED.match(s.prepared) is None or ";" in s.prepared.rstrip("; \t\n"):
            continue
        try:
            with conn.transaction(force_rollback=True):
                carried_out = carry_out and time.monotonic() < deadline and can_be_repeated(s.prepared)
                plans.append(_plan(conn, s, carry_out=carried_out))
        except psycopg.Error as e:
            place = Name(f"{s.script}:{s.line}")
            missing.append(message("gap-plan", place=place, reason=Name(one_line(e)[:200])))
            if conn.closed:
                break
    return plans, missing


def _plan(conn: Connection, s: Sample, *, carry_out: bool) -> Plan:
    conn.execute(f"set local statement_timeout = {_PLAN_MS}")
    conn.execute("set local lock_timeout = 200; set local plan_cache_mode = force_generic_plan")
    # The statements are the workload's: they find their tables as its sessions do.
    use_user_path(conn)
    count = len(set(re.findall(r"\$(\d+)", s.prepared)))
    _uncounted(conn)
    _one(conn, f"{PREPARE}{s.prepared}")
    try:
        nulls = f"({', '.join(['null'] * count)})" if count else ""
        top = _explained(conn, f"explain (format json) execute pgdyno_plan{nulls}")
    finally:
        if conn.info.transaction_status != psycopg.pq.TransactionStatus.INERROR:
            conn.execute("deallocate pgdyno_plan")
    facts: dict[str, float] = {}
    worst = ""
    if carry_out:
        conn.execute(f"set local statement_timeout = {_CARRY_OUT_MS}")
        try:
            with conn.transaction():
                writes = _writes_plainly(conn, s.prepared)
                if writes is None and not _LOCKS.search(s.prepared):
                    # Whatever it calls may write nothing, nor take a number of a sequence.
                    conn.execute("set local transaction_read_only = on")
                if writes is False:
                    raise psycopg.errors.RaiseException
                done = _explained(conn, f"explain (analyze, buffers, format json) {s.sample}")
            facts, worst = _facts(done)
        except psycopg.Error:
            # By itself it cannot be: a savepoint, a lock that a client holds.
            facts = {}
    known = {} if facts else _estimated(conn, s)
    scans = [(name, known.get(name, rows), condition) for name, rows, condition in _scans(top)]
    # The one that was seen to throw away most comes first.
    return Plan(s, shape(top), sorted(scans, key=lambda scan: scan[0] != worst), facts)


def _scans(top: Mapping[str, Any]) -> list[tuple[str, float, str]]:
    """Return the scans that read whole tables: table, rows that it is estimated to have, condition."""
    return [
        (str(n["Relation Name"]), float(n.get("Plan Rows", 0)), str(n.get("Filter", "")))
        for n in _nodes(top)
        if n.get("Node Type") == "Seq Scan" and "Relation Name" in n
    ]


def _estimated(conn: Connection, s: Sample) -> dict[str, float]:
    """Return the rows that whole scans of tables are estimated to have with the statement's own values.

    A generic plan does not know the values: of a column with one frequent value it expects that one. Nothing is
    executed.
    """
    # To estimate, the planner calls functions of constants.
    if not can_be_repeated(s.prepared):
        return {}
    try:
        with conn.transaction():
            return {name: rows for name, rows, _ in _scans(_explained(conn, f"explain (format json) {s.sample}"))}
    except psycopg.Error:
        return {}


def _uncounted(conn: Connection) -> None:
    """Hide the PREPARE that follows from pg_stat_statements.

    Otherwise pg_stat_statements would store the workload's statement with the text of the PREPARE. A role without the
    privilege for this cannot hide it; then the text itself identifies the PREPARE.
    """
    with contextlib.suppress(psycopg.Error), conn.transaction():
        conn.execute("set local pg_stat_statements.track = 'none'")


def _one(conn: Connection, query: str) -> psycopg.Cursor[tuple[Any, ...]]:
    """Exactly one statement: the extended protocol, which binary results ask for, refuses several."""
    return conn.execute(query.encode(), binary=True)


def _explained(conn: Connection, query: str) -> dict[str, Any]:
    row = _one(conn, query).fetchone()
    assert row is not None
    found: dict[str, Any] = (json.loads(row[0]) if isinstance(row[0], str) else row[0])[0]
    return {**found["Plan"], "Execution Time": found.get("Execution Time", 0.0)}


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def shape(node: Mapping[str, Any]) -> str:
    """Return the node types and the relations they read: "Update on t (Index Scan on t using t_pkey)"."""
    words = str(node.get("Node Type", "?"))
    if words == "ModifyTable":
        words = str(node.get("Operation", words))
    if "Relation Name" in node:
        words += f" on {node['Relation Name']}"
    if "Index Name" in node:
        words += f" using {node['Index Name']}"
    inner = "; ".join(shape(c) for c in node.get("Plans", ()))
    return f"{words} ({inner})" if inner else words


def _facts(top: Mapping[str, Any]) -> tuple[dict[str, float], str]:
    """Return the figures of an executed statement, and the table whose scan discarded the most rows."""
    # Of several scans the one that throws away most: it is what an index would spare.
    scans = [n for n in _nodes(top) if n.get("Node Type") == "Seq Scan"]
    worst = max(scans, key=_thrown_away, default={})
    return {
        "ms": float(top.get("Execution Time", 0.0)),
        "blocks_hit": float(top.get("Shared Hit Blocks", 0)),
        "blocks_read": float(top.get("Shared Read Blocks", 0)),
        "temp_blocks": float(top.get("Temp Read Blocks", 0) + top.get("Temp Written Blocks", 0)),
        "rows": float(worst.get("Actual Rows", 0)) * float(worst.get("Actual Loops", 1)),
        "rows_thrown_away": _thrown_away(worst),
    }, str(worst.get("Relation Name", ""))


def _thrown_away(scan: Mapping[str, Any]) -> float:
    return float(scan.get("Rows Removed by Filter", 0)) * float(scan.get("Actual Loops", 1))


def rows(before: Sequence[Plan], after: Sequence[Plan]) -> list[Row]:
    """Return one row per statement: its plan before and its plan after."""
    later = {p.statement: p for p in after}
    found: list[Row] = []
    for p in before:
        last = later.get(p.statement, p)
        table, estimated, condition = next(iter(last.scans), ("", 0.0, ""))
        found.append(
            {"script": p.statement.script, "line": float(p.statement.line), "statement": p.statement.text,
             "plan": p.shape, "plan_after": last.shape, "scanned_table": table, "scanned_rows": estimated,
             "scan_filters": float(bool(condition)), "scan_filter": condition,
             **{n: last.facts.get(n, -1.0) for n in ("ms", "blocks_hit", "blocks_read", "temp_blocks", "rows",
                                                     "rows_thrown_away")}}
        )  # fmt: skip
    return found


def changed(before: Sequence[Plan], after: Sequence[Plan]) -> list[Text]:
    """Return the statements whose plan has changed during the trial."""
    later = {p.statement: p.shape for p in after}
    return [
        message(
            "event-plan",
            place=Name(f"{p.statement.script}:{p.statement.line}"),
            before=Name(p.shape),
            after=Name(later[p.statement]),
        )
        for p in before
        if later.get(p.statement, p.shape) != p.shape
    ]
