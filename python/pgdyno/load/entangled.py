"""Objects of others that are tied to pgdyno's tables, and what would change with those tables.

A statement on a table reaches the tables that inherit from it. Its triggers and rules, and foreign keys that cascade,
write to other tables. A load test on such tables changes data that pgdyno did not create.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.cluster.target import Target
from pgdyno.errors import RefusedError, msg
from pgdyno.message import Message, Name, listed
from pgdyno.search_path import Connection

_TIED = """
with ours(oid) as (select pg_catalog.unnest(%s::pg_catalog.oid[]))
select 0, i.inhparent::pg_catalog.regclass::pg_catalog.text, i.inhrelid::pg_catalog.regclass::pg_catalog.text,
  c.relispartition
from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
where (i.inhparent in (select oid from ours)) <> (i.inhrelid in (select oid from ours))
union all
select 1, t.tgrelid::pg_catalog.regclass::pg_catalog.text, pg_catalog.quote_ident(t.tgname), false
from pg_catalog.pg_trigger t where t.tgrelid in (select oid from ours) and not t.tgisinternal
union all
select 2, r.ev_class::pg_catalog.regclass::pg_catalog.text, pg_catalog.quote_ident(r.rulename), false
from pg_catalog.pg_rewrite r where r.ev_class in (select oid from ours)
union all
select 3, k.confrelid::pg_catalog.regclass::pg_catalog.text, k.conrelid::pg_catalog.regclass::pg_catalog.text, false
from pg_catalog.pg_constraint k
where k.contype = 'f' and k.confrelid in (select oid from ours) and k.conrelid not in (select oid from ours)
  and (k.confdeltype in ('c', 'n', 'd') or k.confupdtype in ('c', 'n', 'd'))
order by 1, 2, 3"""


@dataclass(frozen=True)
class Tie:
    """Something of somebody else's that a statement on a table of ours would change, or call."""

    sentence: Message
    remedy: Message | str


def ties(conn: Connection, oids: Sequence[int]) -> list[Tie]:
    """Return what is tied to these tables from outside. Raise psycopg.Error."""
    found = []
    for kind, table, other, is_partition in conn.execute(_TIED, [list(oids)]).fetchall():
        if kind == 0 and is_partition:
            found.append(Tie(msg("tie-partition", other=other, table=table), f"ALTER TABLE {table} DETACH PARTITION"))
        elif kind == 0:
            found.append(Tie(msg("tie-inherits", other=other, table=table), f"ALTER TABLE {other} NO INHERIT {table}"))
        elif kind == 1:
            found.append(Tie(msg("tie-trigger", other=other, table=table), f"DROP TRIGGER {other} ON {table}"))
        elif kind == 2:
            found.append(Tie(msg("tie-rule", other=other, table=table), f"DROP RULE {other} ON {table}"))
        else:
            found.append(Tie(msg("tie-foreign-key", other=other, table=table), msg("tie-drop-key", other=other)))
    return found


def refuse(conn: Connection, target: Target, oids: Sequence[int]) -> None:
    """Raise RefusedError, naming them, where objects of somebody else are tied to these tables."""
    if found := ties(conn, oids):
        named = listed((t.sentence for t in found[:5]), "semicolon")
        more = msg("tie-more", n=len(found) - 5) if len(found) > 5 else Name("")
        raise RefusedError(
            msg("error-pgdyno-did-not-make-would", where=target.where, named=named, more=more),
            msg("remedy-use-database-own-createdb-bench", remedy=found[0].remedy),
        )
