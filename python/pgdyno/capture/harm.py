"""Analysis of the damage that a captured statement may do when it runs again.

The module finds the user-defined functions that the statement may call and the rows that it changes with generated
parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from pgdyno.collect.plans import shape
from pgdyno.load.find import Connection
from pgdyno.search_path import user_path

#: Constants and comments; names in double quotes stay.
_NO_NAMES = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)'
_CALLED = re.compile(rf"({_NAME})\s*\(")
_NAMES = re.compile(_NAME)
#: Functions that are none of the server's own: by name; as an attribute of a row; those in views, rules and policies of
#: the relations that are named, through any number of views and partitions; and, which the planner may call, those in
#: indexes, constraints, statistics and partition keys.
_FUNCTIONS = """
with recursive seen(oid) as (
  select c.oid from pg_catalog.pg_class c where c.relname::text = any(%(names)s::text[])
  union
  select x.oid from seen, lateral (
    select d.refobjid as oid from pg_catalog.pg_rewrite r join pg_catalog.pg_depend d
      on d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass and d.objid = r.oid
      and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass where r.ev_class = seen.oid
    union all
    select i.inhrelid from pg_catalog.pg_inherits i where i.inhparent = seen.oid) x),
holders(class, oid, is_carried_out) as (
  select 'pg_catalog.pg_rewrite'::pg_catalog.regclass, r.oid, true
    from seen join pg_catalog.pg_rewrite r on r.ev_class = seen.oid
  union all select 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, true
    from seen join pg_catalog.pg_policy p on p.polrelid = seen.oid
  union all select 'pg_catalog.pg_class'::pg_catalog.regclass, i.indexrelid, false
    from seen join pg_catalog.pg_index i on i.indrelid = seen.oid
  union all select 'pg_catalog.pg_class'::pg_catalog.regclass, seen.oid, false from seen
  union all select 'pg_catalog.pg_constraint'::pg_catalog.regclass, c.oid, false
    from seen join pg_catalog.pg_constraint c on c.conrelid = seen.oid
  union all select 'pg_catalog.pg_attrdef'::pg_catalog.regclass, a.oid, false
    from seen join pg_catalog.pg_attrdef a on a.adrelid = seen.oid
  union all select 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid, false
    from seen join pg_catalog.pg_statistic_ext s on s.stxrelid = seen.oid),
called(oid, is_carried_out) as (
  select d.refobjid, h.is_carried_out from holders h join pg_catalog.pg_depend d on d.classid = h.class::pg_catalog.oid
    and d.objid = h.oid and d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
  union all
  select oid, true from pg_catalog.pg_proc where proname::text = any(%(called)s::text[])
  union all
  select p.oid, true from pg_catalog.pg_proc p join pg_catalog.pg_type t on t.oid = p.proargtypes[0]
  where p.pronargs = 1 and t.typtype = 'c' and p.proname::text = any(%(names)s::text[]))
select p.oid::pg_catalog.regprocedure::text, bool_or(is_carried_out and (p.provolatile = 'v' or p.prokind = 'p'))
from called join pg_catalog.pg_proc p using (oid) join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname not in ('pg_catalog', 'information_schema')
group by 1 order by 2 desc, 1"""
#: Planning calls functions, by operators, casts, indexes and constants as well, and no reading of a statement's text
#: finds them all. Only a superuser's, and one's own, are carried out with one's own rights.
_OTHERS = """
select exists (select from pg_catalog.pg_proc p join pg_catalog.pg_roles r on r.oid = p.proowner
               where not r.rolsuper and r.rolname <> current_user)"""
_PREPARED = "pgdyno_captured"
_PLAN_MS = 2_000
#: A larger factor between rows per call here and in production counts as different; fewer rows per call than the second
#: count as none.
TIMES, _NONE = 10.0, 0.09


@dataclass(frozen=True)
class Functions:
    """Somebody's functions that a statement may call."""

    #: By name; those that may write come first.
    names: list[str]
    #: The first that may write: VOLATILE, or a procedure; empty: there is none.
    volatile: str


def functions(conn: Connection, text: str) -> Functions:
    """Return the functions outside of pg_catalog that a statement may call, by any of its names: rather too many."""
    plain = _NO_NAMES.sub(" ", text)
    names, called = ({_folded(n) for n in of.findall(plain)} for of in (_NAMES, _CALLED))
    rows = conn.execute(_FUNCTIONS, {"names": sorted(names), "called": sorted(called)}).fetchall()
    return Functions([r[0] for r in rows], next((r[0] for r in rows if r[1]), ""))


def _folded(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


class Planner:
    """Estimate the rows that a statement changes or returns, from its generic plan."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        row = conn.execute(_OTHERS).fetchone()
        self._others = row is None or bool(row[0])
        self._prepared = 0

    def rows(self, text: str, parameters: int) -> float | None:
        """Estimate the number of rows that a statement changes or returns.

        None means that it is not known, or that finding it out could call other users' functions with pgdyno's rights.
        """
        if self._others:
            return None
        try:
            with self._conn.transaction(force_rollback=True), user_path(self._conn):
                return self._estimated(text, parameters)
        except (psycopg.Error, ValueError, LookupError, TypeError):
            return None

    def shape(self, text: str, parameters: int) -> str:
        """Return the generic plan in words, as runs have it; empty: not known."""
        if self._others:
            return ""
        try:
            with self._conn.transaction(force_rollback=True), user_path(self._conn):
                return shape(self._planned(text, parameters))
        except (psycopg.Error, ValueError, LookupError, TypeError):
            return ""

    def _estimated(self, text: str, parameters: int) -> float:
        plan = self._planned(text, parameters)
        changes = list(_changes(plan))
        return sum(changes) if changes else float(plan["Plan Rows"])

    def _planned(self, text: str, parameters: int) -> dict[str, Any]:
        self._conn.execute(f"set local statement_timeout = {_PLAN_MS}")
        self._conn.execute("set local plan_cache_mode = force_generic_plan; set local lock_timeout = 200")
        # A rollback takes back no PREPARE: of one that failed the name stays.
        self._prepared += 1
        name = f"{_PREPARED}_{self._prepared}"
        # The extended protocol takes one statement, whatever the text is.
        done = self._conn.pgconn.exec_params(f"prepare {name} as {text}".encode(), [])
        if done.status != psycopg.pq.ExecStatus.COMMAND_OK:
            raise ValueError(done.get_error_message())
        nulls = f"({', '.join(['null'] * parameters)})" if parameters else ""
        row = self._conn.execute(f"explain (format json) execute {name}{nulls}".encode()).fetchone()
        self._conn.execute(f"deallocate {name}")
        return dict((row[0] if not isinstance(row[0], str) else json.loads(row[0]))[0]["Plan"]) if row else {}


def _changes(plan: dict[str, Any]) -> Iterator[float]:
    """Yield the estimated rows of each ModifyTable node: the sum over its inputs, since its own estimate is 0."""
    inner = plan.get("Plans", [])
    if plan.get("Node Type") == "ModifyTable":
        yield sum(float(p["Plan Rows"]) for p in inner if p.get("Parent Relationship") in ("Outer", "Member"))
    for p in inner:
        yield from _changes(p)


def differs(here: float, harms_production: float) -> bool:
    """Return True if a statement would touch more than ten times as many rows as it did in production.

    This is also the case if it would touch one row and touched none in production.
    """
    return here > TIMES * max(harms_production, _NONE)
