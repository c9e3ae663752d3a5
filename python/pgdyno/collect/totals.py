"""Statistics that are read before and after a trial, and stored as differences.

They cover tables and indexes, I/O by kind of process, statements, and waits as pg_wait_sampling counts them.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg

from pgdyno.collect import catalog, extensions, server
from pgdyno.collect.catalog import Catalog
from pgdyno.conninfo import looks_secret
from pgdyno.format import one_line
from pgdyno.message import Argument, Name, Text, message
from pgdyno.model import EventKind
from pgdyno.samples import CATALOG
from pgdyno.search_path import relation_shown

Connection = psycopg.Connection[tuple[Any, ...]]
Row = dict[str, float | str]
_SECRET = re.compile(r"\b(password|secret|token)\b", re.IGNORECASE)
#: By so much two readings of a time may lie apart, where the server's clock is another's.
_CLOCK_NS = 500_000_000
#: Changed rows from which on a table of the system catalog is worth a row.
_CATALOG_CHANGES = 1000
#: What is read of very many: those that are used most.
_LIMITS = {"tables": 300, "indexes": 300, "functions": 300, "statements": 5000, "nested_statements": 300}


@dataclass(frozen=True)
class _Question:
    """Columns that name a row, those that grow, and those that are as they are now."""

    names: tuple[str, ...]
    grows: tuple[str, ...]
    now: tuple[str, ...]
    query: LiteralString


_TABLES = _Question(
    ("table",),
    (
        "seq_scans", "seq_rows_read", "index_scans", "rows_inserted", "rows_updated", "rows_hot_updated",
        "rows_deleted", "autovacuums", "autoanalyzes", "blocks_read", "blocks_hit", "index_blocks_read",
        "index_blocks_hit",
    ),
    ("rows", "dead_rows", "bytes", "estimated_rows"),
    """select case when s.schemaname = 'pg_catalog' then 'pg_catalog.' || s.relname else s.relid::regclass::text end,
              coalesce(s.seq_scan, 0), coalesce(s.seq_tup_read, 0), coalesce(s.idx_scan, 0),
              s.n_tup_ins, s.n_tup_upd, s.n_tup_hot_upd, s.n_tup_del, s.autovacuum_count, s.autoanalyze_count,
              coalesce(i.heap_blks_read, 0), coalesce(i.heap_blks_hit, 0), coalesce(i.idx_blks_read, 0),
              coalesce(i.idx_blks_hit, 0), s.n_live_tup, s.n_dead_tup, pg_catalog.pg_table_size(s.relid::regclass),
              (select greatest(c.reltuples, 0)::float8 from pg_catalog.pg_class c where c.oid = s.relid)
       from pg_stat_all_tables s join pg_statio_all_tables i using (relid)
       where s.schemaname <> 'information_schema' and s.schemaname !~ '^pg_toast'
         and (s.schemaname <> 'pg_catalog' or s.n_tup_ins + s.n_tup_upd + s.n_tup_del > 0)
       order by s.schemaname = 'pg_catalog',
         coalesce(s.seq_tup_read, 0) + coalesce(s.idx_tup_fetch, 0) + s.n_tup_ins + s.n_tup_upd desc
       limit 300""",
)  # fmt: skip
_INDEXES = _Question(
    ("table", "index"), ("scans", "entries_read", "blocks_read", "blocks_hit"), ("bytes",),
    """select s.relid::regclass::text, s.indexrelid::regclass::text, s.idx_scan, s.idx_tup_read, i.idx_blks_read,
              i.idx_blks_hit, pg_catalog.pg_relation_size(s.indexrelid::regclass)
       from pg_stat_user_indexes s join pg_statio_user_indexes i using (indexrelid)
       order by s.idx_scan desc limit 300""",
)  # fmt: skip
#: Counted where track_functions is on; triggers are among them.
_FUNCTIONS = _Question(
    ("function",), ("calls", "ms", "self_ms"), (),
    """select funcid::regprocedure::text, calls, total_time, self_time
       from pg_stat_user_functions order by self_time desc limit 300""",
)  # fmt: skip
_IO: dict[int, _Question] = {
    180000: _Question(
        ("kind", "object", "context"),
        ("reads", "read_bytes", "read_ms", "writes", "write_bytes", "write_ms", "extends", "hits", "evictions",
         "syncs", "sync_ms"), (),
        """select backend_type, object, context, reads, read_bytes, read_time, writes, write_bytes, write_time, extends,
                  hits, evictions, fsyncs, fsync_time from pg_stat_io""",
    ),
    160000: _Question(
        ("kind", "object", "context"),
        ("reads", "read_bytes", "read_ms", "writes", "write_bytes", "write_ms", "extends", "hits", "evictions",
         "syncs", "sync_ms"), (),
        """select backend_type, object, context, reads, reads * op_bytes, read_time, writes, writes * op_bytes,
                  write_time, extends, hits, evictions, fsyncs, fsync_time from pg_stat_io""",
    ),
}  # fmt: skip
_STATEMENTS = _Question(
    ("id", "statement"),
    ("calls", "ms", "rows", "blocks_hit", "blocks_read", "blocks_dirtied", "temp_blocks_read", "temp_blocks_written",
     "wal_bytes", "wal_full_pages", "jit_ms"), (),
    # What an extension's older version does not count is absent from its rows as JSON.
    """select queryid::text, left(query, 10000), sum(calls), sum(total_exec_time), sum(rows), sum(shared_blks_hit),
              sum(shared_blks_read), sum(shared_blks_dirtied), sum(temp_blks_read), sum(temp_blks_written),
              sum(wal_bytes), sum(wal_fpi),
              sum(coalesce((j ->> 'jit_generation_time')::float8, 0) + coalesce((j ->> 'jit_inlining_time')::float8, 0)
                  + coalesce((j ->> 'jit_optimization_time')::float8, 0)
                  + coalesce((j ->> 'jit_emission_time')::float8, 0))
       from {schema}.pg_stat_statements s, lateral (select to_jsonb(s) - 'query') as as_json (j)
       where dbid = (select oid from pg_database where datname = current_database()) and queryid is not null
         and coalesce((j ->> 'toplevel')::boolean, true)
       group by 1, 2 order by sum(total_exec_time) desc limit 5000""",
)  # fmt: skip
#: Statements that functions, triggers and checks of foreign keys run. Their time is within that of the others.
_NESTED = _Question(
    ("id", "statement"), ("calls", "ms", "rows", "blocks_hit", "blocks_read"), (),
    """select queryid::text, left(query, 10000), sum(calls), sum(total_exec_time), sum(rows), sum(shared_blks_hit),
              sum(shared_blks_read)
       from {schema}.pg_stat_statements s, lateral (select to_jsonb(s) - 'query') as as_json (j)
       where dbid = (select oid from pg_database where datname = current_database()) and queryid is not null
         and not coalesce((j ->> 'toplevel')::boolean, true)
       group by 1, 2 order by sum(total_exec_time) desc limit 300""",
)  # fmt: skip
_WAIT_PROFILE = _Question(
    ("wait_type", "wait"), ("samples", "ms"), (),
    """select coalesce(event_type, ''), coalesce(event, ''), sum(count),
              sum(count) * current_setting('pg_wait_sampling.profile_period')::float8
       from {schema}.pg_wait_sampling_profile group by 1, 2""",
)  # fmt: skip
#: By the extension that counts it: the names of what is read, and how.
_EXTENSIONS = {
    "pg_stat_statements": {"statements": _STATEMENTS, "nested_statements": _NESTED},
    "pg_wait_sampling": {"wait_profile": _WAIT_PROFILE},
}
_OF_STATEMENTS = tuple(_EXTENSIONS["pg_stat_statements"])


@dataclass
class Totals:
    """Cumulative counters of a server at one moment."""

    #: By name: rows by what names them.
    counted: dict[str, dict[tuple[str, ...], tuple[float | None, ...]]] = field(default_factory=dict)
    #: Names of which there are more than are read.
    cut: set[str] = field(default_factory=set)
    missing: list[Text] = field(default_factory=list)
    #: When the server was started, and when it last read its configuration: nanoseconds since 1970 by our clock; 0: not
    #: known. And its settings.
    started_ns: int = 0
    configured_ns: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    #: Definitions of the database; None: not read.
    catalog: Catalog | None = None
    #: When its counters were last reset, by a crash or by somebody, in its own words.
    reset: tuple[str, ...] = ()

    def counted_by(self, name: str) -> bool:
        """Return True if the counters of this name could be read."""
        return name in self.counted

    def were_reset_since(self, before: Totals) -> bool:
        """Return True if the counters were reset since `before`, so that the increase is unknown."""
        return any(old and old != new for old, new in zip(before.reset, self.reset, strict=False))


def _questions(version: int) -> dict[str, _Question]:
    found = {"tables": _TABLES, "indexes": _INDEXES, "functions": _FUNCTIONS}
    io = next((q for since, q in _IO.items() if version >= since), None)
    return found | ({"io": io} if io else {})


def read(conn: Connection, *, statements_alone: bool = False, is_ours: bool = False) -> Totals:
    """Read the current totals, or only those of statements if `statements_alone` is set.

    The result names totals that cannot be read. `is_ours` means that pgdyno owns the server. Extensions whose
    libraries are loaded may then be created for the duration of the query.
    """
    totals = Totals()
    for name, q in ({} if statements_alone else _questions(conn.info.server_version)).items():
        _count(conn, totals, name, q, q.query.encode())
    for extension, questions in _EXTENSIONS.items():
        if statements_alone and "statements" not in questions:
            continue
        try:
            with extensions.at_hand(conn, extension, make=is_ours) as schema:
                for name, q in questions.items() if schema else ():
                    if name == "nested_statements" and not is_ours and not _counts_nested(conn):
                        continue
                    _count(conn, totals, name, q, q.query.replace("{schema}", schema).encode())
        except psycopg.Error as e:
            totals.missing.append(message("gap-of", what=Name(next(iter(questions))), reason=Name(one_line(e))))
    _hide_secrets(totals)
    try:
        _read_times(conn, totals)
        settings = "select name, setting from pg_settings where context <> 'internal' and source <> 'session'"
        totals.settings = {n: v for n, v in conn.execute(settings).fetchall() if v is not None}
    except psycopg.Error as e:
        totals.missing.append(message("gap-of", what=Name("settings"), reason=Name(one_line(e))))
    if not statements_alone:
        _read_catalog(conn, totals)
    return totals


def _counts_nested(conn: Connection) -> bool:
    row = conn.execute("select current_setting('pg_stat_statements.track', true)").fetchone()
    return row is not None and row[0] == "all"


def _read_catalog(conn: Connection, totals: Totals) -> None:
    try:
        with conn.transaction():
            totals.catalog = catalog.read(conn)
    except psycopg.Error as e:
        totals.missing.append(message("gap-of", what=Name("catalog"), reason=Name(one_line(e))))
        return
    if totals.catalog.definitions is None:
        totals.missing.append(message("gap-catalog", n=catalog.MOST))


def _read_times(conn: Connection, totals: Totals) -> None:
    began = time.time()
    # A crash resets the counters of all kinds at once, the archiver's among them.
    row = conn.execute(
        """select extract(epoch from clock_timestamp())::float8, extract(epoch from pg_postmaster_start_time())::float8,
                  extract(epoch from pg_conf_load_time())::float8,
                  coalesce((select stats_reset::text from pg_stat_archiver), ''),
                  coalesce((select stats_reset::text from pg_stat_database where datname = current_database()), '')"""
    ).fetchone()
    assert row is not None
    # The server's clock may be another machine's: what it shows is taken to be of the middle of the question.
    ahead = row[0] - (began + time.time()) / 2
    totals.started_ns, totals.configured_ns = (round((at - ahead) * 1e9) for at in row[1:3])
    totals.reset = row[3:]


def _count(conn: Connection, totals: Totals, name: str, q: _Question, query: bytes) -> None:
    try:
        with conn.transaction():
            rows = conn.execute(query).fetchall()
    except psycopg.Error as e:
        totals.missing.append(message("gap-of", what=Name(name), reason=Name(one_line(e))))
        return
    n = len(q.names)
    if len(rows) >= _LIMITS.get(name, len(rows) + 1):
        totals.cut.add(name)
        totals.missing.append(message("gap-most-used", what=Name(name), n=len(rows)))
    named = name in ("tables", "indexes")
    totals.counted[name] = {
        tuple(relation_shown(conn, v) if named else str(v) for v in r[:n]): tuple(
            None if v is None else float(v) for v in r[n:]
        )
        for r in rows
    }


def _hide_secrets(totals: Totals) -> None:
    """Statements that are not normalised (ALTER ROLE ... PASSWORD) may hold secrets."""
    for name in _OF_STATEMENTS:
        if (statements := totals.counted.get(name)) is not None:
            totals.counted[name] = {
                k: v for k, v in statements.items() if not looks_secret(k[1]) and not _SECRET.search(k[1])
            }


def _is_worth_it(row: Row) -> bool:
    """Return True for a table of somebody's, and for a table of the catalog that the load changes."""
    changes = sum(float(row[n]) for n in ("rows_inserted", "rows_updated", "rows_deleted"))
    return not str(row["table"]).startswith(CATALOG) or changes >= _CATALOG_CHANGES


def between(before: Totals, after: Totals, version: int) -> dict[str, list[Row]]:
    """Return the increases between two readings, by name: one row for each object with any activity.

    Objects whose counters were reset are omitted, because their increase is unknown.
    """
    found: dict[str, list[Row]] = {}
    if after.were_reset_since(before):
        return found
    for name, q in {n: q for of in (_questions(version), *_EXTENSIONS.values()) for n, q in of.items()}.items():
        rows: list[Row] = []
        first = before.counted.get(name)
        if first is None:
            continue
        for key, values in after.counted.get(name, {}).items():
            if key not in first and name in before.cut:
                # It was there, and among those that are not read: what it had counted is not known.
                continue
            grown = len(q.grows)
            old = first.get(key, (0.0,) * grown)
            added = [None if v is None else v - (o or 0.0) for v, o in zip(values[:grown], old[:grown], strict=True)]
            if not any(added) or any(a is not None and a < 0 for a in added):
                continue
            row: Row = dict(zip(q.names, key, strict=True))
            row |= {n: a or 0.0 for n, a in zip(q.grows, added, strict=True)}
            row |= {n: v or 0.0 for n, v in zip(q.now, values[grown:], strict=True)}
            if name != "tables" or _is_worth_it(row):
                rows.append(row)
        found[name] = rows
    return found


def happened(before: Totals, after: Totals) -> list[tuple[int, EventKind, Text]]:
    """Events that show in what stood before and after: when (nanoseconds since 1970; 0: not known), kind, and words."""
    found: list[tuple[int, EventKind, Text]] = []
    at_ns = 0
    if before.started_ns and after.started_ns - before.started_ns > _CLOCK_NS:
        at_ns = after.started_ns
        found.append((at_ns, EventKind.SERVER_RESTARTED, message("event-restarted")))
    elif before.configured_ns and after.configured_ns - before.configured_ns > _CLOCK_NS:
        at_ns = after.configured_ns
        found.append((at_ns, EventKind.CONFIGURATION_RELOADED, message("event-reloaded")))
    elif after.were_reset_since(before):
        found.append((0, EventKind.COUNTERS_RESET, message("event-reset")))
    for name in sorted(set(before.settings) & set(after.settings)):
        old, new = before.settings[name], after.settings[name]
        if old != new:
            is_private = server.is_private(name, old) or server.is_private(name, new)
            values: dict[str, Argument] = {} if is_private else {"before": Name(old), "after": Name(new)}
            id = "event-setting-hidden" if is_private else "event-setting"
            # One of the last time that the server read them, if there was any: else of the role or the database.
            found.append((at_ns, EventKind.SETTING_CHANGED, message(id, name=Name(name), **values)))
    if before.catalog is not None and after.catalog is not None:
        found += [(0, EventKind.SCHEMA_CHANGED, text) for text in catalog.changes(before.catalog, after.catalog)]
    return found
