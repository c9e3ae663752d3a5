"""The database's definitions, read before and after a trial: what was created, dropped or changed meanwhile."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg

from pgdyno.collect import server
from pgdyno.message import Argument, Message, Name, message
from pgdyno.search_path import relation_shown

Connection = psycopg.Connection[tuple[Any, ...]]
#: A kind (`object-...` of the catalogues) and a name.
Key = tuple[str, str]
#: Definitions that are read at most. A database with more is not compared.
MOST = 20_000
#: Changes that are told at most.
_TOLD = 20
_SECRET = re.compile(r"password|secret|token", re.IGNORECASE)
#: By kind: its name, the relation that it belongs to, and its definition. Only catalogs are read: no table is locked.
_OF_USERS: LiteralString = "n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relpersistence <> 't'"
_QUERIES: dict[str, LiteralString] = {
    "relation": f"""
        select case c.relkind when 'i' then 'index' when 'I' then 'index' when 'v' then 'view' when 'm' then 'view'
                 when 'S' then 'sequence' else 'table' end,
               c.oid::regclass::text, coalesce(i.indrelid::regclass::text, ''),
               coalesce(case when i.indisvalid then 'valid' else 'invalid' end, '')
        from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_index i on i.indexrelid = c.oid
        where {_OF_USERS} and c.relkind <> 't'""",
    "persistence": f"""
        select 'persistence', c.oid::regclass::text, c.oid::regclass::text,
               case c.relpersistence when 'u' then 'unlogged' else 'permanent' end
        from pg_class c join pg_namespace n on n.oid = c.relnamespace where {_OF_USERS} and c.relkind in ('r', 'm')""",
    "options": f"""
        select 'options', c.oid::regclass::text, c.oid::regclass::text,
               coalesce(array_to_string(c.reloptions, ', '), '')
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where {_OF_USERS} and c.relkind in ('r', 'm', 'i', 'p')""",
    "column": f"""
        select 'column', a.attname, c.oid::regclass::text,
               format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
        from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
        where {_OF_USERS} and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped""",
    "trigger": f"""
        select 'trigger', t.tgname, c.oid::regclass::text,
               case t.tgenabled when 'D' then 'disabled' else 'enabled' end
        from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
        where {_OF_USERS} and not t.tgisinternal""",
    "foreign-key": f"""
        select 'foreign-key', o.conname, c.oid::regclass::text, ''
        from pg_constraint o join pg_class c on c.oid = o.conrelid join pg_namespace n on n.oid = c.relnamespace
        where {_OF_USERS} and o.contype = 'f'""",
    "policy": f"""
        select 'policy', p.polname, c.oid::regclass::text, ''
        from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
        where {_OF_USERS}""",
    "function": """
        select 'function', p.oid::regprocedure::text, '', md5(p.prosrc)
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
          and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')""",
    "statistics": """
        select 'statistics', s.stxname, s.stxrelid::regclass::text, '' from pg_statistic_ext s""",
    "extension": "select 'extension', extname, '', extversion from pg_extension",
    "default": """
        select 'default', split_part(u, '=', 1),
               coalesce(nullif(concat_ws(' in ', case when s.setrole <> 0 then s.setrole::regrole::text end,
                                         case when s.setdatabase <> 0 then 'database' end), ''), 'all roles'),
               substr(u, strpos(u, '=') + 1)
        from pg_db_role_setting s, unnest(s.setconfig) u
        where s.setdatabase in (0, (select oid from pg_database where datname = current_database()))""",
}
#: Foreign keys whose columns lead no index: their columns, and their table.
_UNINDEXED: LiteralString = f"""
    select string_agg(quote_ident(a.attname), ', ' order by k.n), c.oid::regclass::text
    from pg_constraint o join pg_class c on c.oid = o.conrelid join pg_namespace n on n.oid = c.relnamespace,
         unnest(o.conkey) with ordinality k (attnum, n)
         join pg_attribute a on a.attnum = k.attnum
    where {_OF_USERS} and o.contype = 'f' and a.attrelid = o.conrelid
      and not exists (
        select from pg_index i
        where i.indrelid = o.conrelid and i.indisvalid and i.indpred is null
          and (i.indkey::smallint[])[0:cardinality(o.conkey) - 1] @> o.conkey)
    group by o.oid, c.oid limit {MOST}"""
#: Kind under which they are recorded.
UNINDEXED = "unindexed-key"
#: Kinds whose definition is a digest, and not for readers.
_DIGESTS = {"function"}
#: Kinds whose names are unique within their relation only.
_PARTS = {"column", "trigger", "foreign-key", "policy", "statistics"}


@dataclass(frozen=True)
class Catalog:
    """Definitions by kind and name, and the relation that each belongs to; None: there are more than MOST."""

    definitions: dict[Key, str] | None = field(default_factory=dict)
    owners: dict[Key, str] = field(default_factory=dict)
    #: Columns and table of each foreign key without an index.
    unindexed: list[tuple[str, str]] = field(default_factory=list)

    def rows(self) -> list[dict[str, str]]:
        """Return one row for each definition."""
        return [
            {"object": kind, "name": name, "definition": definition}
            for (kind, name), definition in (self.definitions or {}).items()
        ] + [{"object": UNINDEXED, "name": columns, "definition": table} for columns, table in self.unindexed]


def read(conn: Connection) -> Catalog:
    """Read the definitions of the current database. Raise psycopg.Error."""
    found, owners = dict[Key, str](), dict[Key, str]()
    for query in _QUERIES.values():
        for kind, name, owner, definition in conn.execute(f"{query} limit {MOST + 1}".encode()).fetchall():
            if kind == "default":
                # Of a role or of the database; values that may be secret are not read.
                hidden = server.is_private(name, definition) or _SECRET.search(name)
                found[kind, f"{name} ({owner})"] = "…" if hidden else definition
                continue
            shown = relation_shown(conn, name)
            if owner:
                owner = relation_shown(conn, owner)
                shown = f"{owner}.{name}" if kind in _PARTS else shown
                owners[kind, shown] = owner
            found[kind, shown] = definition
        if len(found) > MOST:
            return Catalog(None)
    unindexed = conn.execute(_UNINDEXED.encode()).fetchall()
    return Catalog(found, owners, [(columns, relation_shown(conn, table)) for columns, table in unindexed])


def changes(before: Catalog, after: Catalog) -> list[Message]:
    """Return what was dropped, created and changed between two readings; empty if either is not known."""
    old, new = before.definitions, after.definitions
    if old is None or new is None:
        return []
    found = []
    for key in sorted(old.keys() | new.keys()):
        kind, name = key
        parts: dict[str, Argument] = {"object": message(f"object-{kind}"), "name": Name(name)}
        if key not in new:
            if not _is_told(before.owners.get(key), old, new):
                found.append(message("schema-dropped", **parts))
        elif key not in old:
            if not _is_told(after.owners.get(key), new, old):
                found.append(message("schema-created", **parts))
        elif old[key] != new[key]:
            shown = kind not in _DIGESTS
            found.append(
                message("schema-changed-values", **parts, before=_value(old[key]), after=_value(new[key]))
                if shown
                else message("schema-changed", **parts)
            )
    if len(found) > _TOLD:
        return [*found[:_TOLD], message("schema-more", n=len(found) - _TOLD)]
    return found


def _is_told(owner: str | None, here: dict[Key, str], there: dict[Key, str]) -> bool:
    """Return True if the relation that something belongs to was itself created or dropped."""
    return owner is not None and any(k in here and k not in there for k in _relations(owner))


def _relations(name: str) -> list[Key]:
    return [(kind, name) for kind in ("table", "index", "view")]


def _value(definition: str) -> Name | Message:
    return Name(definition) if definition else message("schema-none")
