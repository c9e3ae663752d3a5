"""Additions to TPC-C's tables: foreign keys (clause 1.3), and functions that run the transactions."""

from __future__ import annotations

import re

#: Table, its columns, and what they refer to; each parent has its key in this order. Written with the names of one set.
_FOREIGN_KEYS = (
    ("district", "d_w_id", "warehouse", "w_id"),
    ("customer", "c_w_id, c_d_id", "district", "d_w_id, d_id"),
    ("history", "h_c_w_id, h_c_d_id, h_c_id", "customer", "c_w_id, c_d_id, c_id"),
    ("history", "h_w_id, h_d_id", "district", "d_w_id, d_id"),
    ("orders", "o_w_id, o_d_id, o_c_id", "customer", "c_w_id, c_d_id, c_id"),
    ("new_order", "no_w_id, no_d_id, no_o_id", "orders", "o_w_id, o_d_id, o_id"),
    ("order_line", "ol_w_id, ol_d_id, ol_o_id", "orders", "o_w_id, o_d_id, o_id"),
    ("stock", "s_w_id", "warehouse", "w_id"),
    ("stock", "s_i_id", "item", "i_id"),
    ("order_line", "ol_supply_w_id, ol_i_id", "stock", "s_w_id, s_i_id"),
)
_HEAD = re.compile(r"create or replace function (\w+)\((.*?)\) returns", re.DOTALL)


def table(short: str, number: int, sets: int) -> str:
    """Return the name of a table in set `number` (from 0).

    The name is "tpcc_stock", or "tpcc_stock1" if there are several sets.
    """
    return f"tpcc_{short}{number + 1 if sets > 1 else ''}"


#: Of foreign keys whose columns begin no index yet: table, columns. As sysbench-tpcc has them.
_REFERRING = (
    ("history", "h_c_w_id, h_c_d_id, h_c_id"),
    ("history", "h_w_id, h_d_id"),
    ("stock", "s_i_id"),
    ("order_line", "ol_supply_w_id, ol_i_id"),
)


def foreign_keys(number: int, sets: int) -> list[str]:
    """ALTER TABLE … ADD FOREIGN KEY of a set, and the indexes on what refers."""
    indexes = [
        f"create index {table(child, number, sets)}_by_parent_{n} on {table(child, number, sets)} ({columns})"
        for n, (child, columns) in enumerate(_REFERRING, 1)
    ]
    return indexes + [
        f"alter table {table(child, number, sets)} add foreign key ({columns}) "
        f"references {table(parent, number, sets)} ({key})"
        for child, columns, parent, key in _FOREIGN_KEYS
    ]


def signature(function: str) -> str:
    """Return the name and the argument types of a CREATE FUNCTION, as DROP and COMMENT take them."""
    match = _HEAD.match(function)
    assert match is not None, function
    types = [argument.split()[-1] for argument in match[2].split(",")]
    return f"{match[1]}({', '.join(types)})"


#: Its tables, by the names that stand in queries.
TABLES = ("item", "warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "stock")


def named(sql: str, number: int, sets: int, schema: str = "") -> str:
    """Return a query in which tables stand as {stock}, for a set; `schema` as SQL takes it, or none."""
    for short in TABLES:
        name = table(short, number, sets)
        sql = sql.replace("{" + short + "}", f"{schema}.{name}" if schema else name)
    return sql
