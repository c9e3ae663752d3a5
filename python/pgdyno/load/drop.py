"""SQL that drops tables: those that were looked at, and named, and nothing that stands in their place by now."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.load.dataset import MARK, block, literal
from pgdyno.load.standing import Table

#: Tables in a transaction: it locks each of them, and the server's table of locks has an end.
BATCH = 500


#: Functions of tpcc in the schema at hand: those that we have made, whatever their tables were.
_DROP_FUNCTIONS = block(
    "for one in select p.oid::pg_catalog.regprocedure::pg_catalog.text from pg_catalog.pg_proc p "
    "join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname = pg_catalog.current_schema() "
    "where p.proname::pg_catalog.text ~ '^tpcc_'::pg_catalog.text "
    f"and pg_catalog.obj_description(p.oid, 'pg_proc'::pg_catalog.name) = {literal(f'{MARK} tpcc')}::pg_catalog.text "
    "loop execute 'drop function ' || one; end loop;",
    "declare one pg_catalog.text;",
)


def statements(tables: Sequence[Table]) -> list[str]:
    """For a transaction: locks the tables, fails where one of them is another by now, drops them."""
    if not tables:
        return []
    names = ", ".join(t.sql for t in tables)
    texts, oids = ", ".join(literal(t.sql) for t in tables), ", ".join(str(t.oid) for t in tables)
    return [
        f"lock table {names} in access exclusive mode",
        block(
            "select name into other from "
            f"rows from (pg_catalog.unnest(array[{texts}]::pg_catalog.text[]), "
            f"pg_catalog.unnest(array[{oids}]::pg_catalog.oid[])) as looked_at(name, id) "
            "where pg_catalog.to_regclass(name)::pg_catalog.oid is distinct from id; "
            "if found then raise '% is another table by now', other; end if;",
            "declare other pg_catalog.text;",
        ),
        f"drop table {names}",
        *([_DROP_FUNCTIONS] if any(t.mark and t.mark.name.startswith("tpcc ") for t in tables) else []),
    ]


def batches(tables: Sequence[Table]) -> list[list[str]]:
    """Return SQL that drops many tables, in as many transactions as necessary.

    Each transaction locks its tables, fails if one of them is another table by now, and drops them.
    """
    return [statements(tables[i : i + BATCH]) for i in range(0, len(tables), BATCH)]
