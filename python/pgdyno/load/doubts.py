"""Tables that bear a mark of ours, and may be somebody's all the same: whoever owns a table can write its comment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from pgdyno.errors import UsageError, msg
from pgdyno.load.dataset import Dataset, literal
from pgdyno.load.standing import Table
from pgdyno.message import Message

#: Pages that are looked at for rows which the dataset cannot have: all of a smaller table.
_PAGES = 1_000
#: Tables whose keys no workload extends, with how many keys a unit of size has; 0: as many whatever the size.
_KEYS = {
    "pgbench_accounts": ("aid", 100_000),
    "pgbench_branches": ("bid", 1),
    "pgbench_tellers": ("tid", 10),
    "tpcc_item": ("i_id", 0),
    "tpcc_warehouse": ("w_id", 1),
    "tpcc_district": ("d_w_id", 1),
    "tpcc_customer": ("c_w_id", 1),
    "tpcc_stock": ("s_w_id", 1),
}
_ITEMS = 100_000
_LOOKED_AT = """
select c.oid, pg_catalog.pg_get_userbyid(c.relowner)::text, c.relowner = r.oid,
  pg_catalog.pg_relation_size(c.oid::pg_catalog.regclass) / 8192,
  array(select a.attname::text || ' ' || a.atttypid::pg_catalog.regtype::text from pg_catalog.pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum)
from pg_catalog.pg_class c, pg_catalog.pg_roles r
where c.oid = any(%s::oid[]) and r.rolname = current_user"""


def doubts(conn: psycopg.Connection[Any], tables: Sequence[Table]) -> Iterator[tuple[Table, Message]]:
    """Yield tables that bear a pgdyno mark but may not be pgdyno's, each with the reason.

    The reasons are: another role owns the table, its columns differ from the dataset's, or it has a row that the
    dataset cannot have. The rows of up to 1,000 pages of each table are checked.
    """
    by_oid = {t.oid: t for t in tables}
    for oid, owner, is_mine, pages, columns in conn.execute(_LOOKED_AT, [list(by_oid)]).fetchall():
        table = by_oid[oid]
        if not is_mine:
            yield table, msg("why-belongs-to", owner=owner)
        elif columns != _columns(conn, table):
            yield table, msg("why-other-columns")
        elif table.kind == "r" and _has_other_rows(conn, table, pages):
            yield table, msg("why-other-rows")


def _stem(name: str) -> str:
    """Return a table's name without the number of its set and that of its partition."""
    return re.sub(r"\d*(_\d+)?$", "", name)


def _kind_and_size(table: Table) -> tuple[str, int]:
    assert table.mark is not None
    kind, size, *_ = [*table.mark.name.split(" "), ""]
    number = size.rpartition("=")[2]
    return kind, int(number) if number.isdigit() else 0


def _columns(conn: psycopg.Connection[Any], table: Table) -> list[str] | None:
    """Return the columns that the dataset in the table's mark gives it, in the format of `_LOOKED_AT`.

    Return None if the dataset has no such table.
    """
    kind, size = _kind_and_size(table)
    try:
        made = Dataset(kind, max(1, size))
    except UsageError:
        return None
    columns = next((t.columns for t in made.tables if _stem(t.name) == _stem(table.name)), None)
    if columns is None:
        return None
    types = ", ".join(f"pg_catalog.to_regtype({literal(kind)})::text" for _, kind, *_ in columns)
    row = conn.execute(f"select array[{types}]").fetchone()
    return [f"{name} {kind}" for (name, *_), kind in zip(columns, row[0] if row else [], strict=True)]


def _has_other_rows(conn: psycopg.Connection[Any], table: Table, pages: int) -> bool:
    column, each = _KEYS.get(_stem(table.name), ("", 0))
    if not column or not pages:
        return False
    last = each * _kind_and_size(table)[1] or _ITEMS
    row = conn.execute(
        f"select exists (select 1 from only {table.sql} tablesample system ({min(100.0, 100 * _PAGES / pages)})"
        f" where {column} not between 1 and {last})"
    ).fetchone()
    return bool(row and row[0])
