"""Parameters that a row of a table has, which scripts pick where they run: no value is written down."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgdyno.capture import sql
from pgdyno.capture.catalog import Catalog, Table
from pgdyno.capture.described import Statement
from pgdyno.capture.draws import Draw
from pgdyno.message import Message
from pgdyno.spec.values import variable_of

#: Characters of a LIKE's prefix.
_PREFIX = 3
#: A smaller part of the rows without a value is no matter.
_SOME_NULLS = 0.01


def picked(
    table: Table, numbers: Mapping[int, sql.Use], s: Statement, catalog: Catalog, remark: Message | None = None
) -> dict[int, Draw]:
    """Parameters that one row of a table has, which is drawn where the script runs: no value is written down."""
    first = min(numbers)
    prefix = f"{s.prefix}{first}_"
    columns = {n: _column_in(table, use, catalog) for n, use in numbers.items()}
    # NULL is compared with nothing; a column of its own, since others of the table may be NULL where it is not.
    alone = next(iter(columns.values())) if len(columns) == 1 else ""
    is_compared = all(use.how not in ("new", "set", "") for use in numbers.values())
    without = is_compared and any(catalog.nulls(table, c) > _SOME_NULLS for c in columns.values())
    sample = sample_name(table) + (f"_{variable_of(alone or 'given')}" if without else "")
    out = {}
    documents = {columns[n] for n, use in numbers.items() if use.how == "member"}
    for n, use in sorted(numbers.items()):
        value = f":{prefix}{variable_of(columns[n])}"
        expression = _used_form(
            value, use, s.type(n), table.columns[columns[n]].type, is_member=columns[n] in documents
        )
        lines = (f"\\pick {sample} {prefix}",) if n == first else ()
        needs = ((sample, table.shown, columns[n], not without),)
        out[n] = Draw(lines, expression, remark if n == first else None, needs)
    return out


def _column_in(table: Table, use: sql.Use, catalog: Catalog) -> str:
    """Return the column of the row that has the parameter's value.

    For a foreign key, it is the referenced column.
    """
    if use.table == table.shown:
        return use.column
    for columns, other, others in catalog.tables[use.table].references:
        if other == table.shown and use.column in columns:
            return others[columns.index(use.column)]
    return use.column


def _used_form(value: str, use: sql.Use, type_: str, column_type: str, *, is_member: bool = False) -> str:
    """Return the expression of a parameter, given a column's value."""
    typed = f"({value}::{column_type})"
    key = (
        f"(select k from jsonb_object_keys(case jsonb_typeof({value}::jsonb) when 'object' then {value}::jsonb "
        "else '{}' end) k limit 1)"
    )
    if use.how == "member":
        return key
    if is_member and use.through in ("->", "->>"):
        return f"({value}::jsonb {use.through} {key})"
    if use.through in ("lower", "upper"):
        return f"{use.through}({value})"
    if use.how == "like":
        return f"(left({value}, {_PREFIX}) || '%')"
    if use.how == "contained":
        if column_type == "jsonb":
            return (
                f"(select coalesce(jsonb_object_agg(k, {value}::jsonb -> k), '{{}}') from (select {key} as k) x "
                "where k is not null)"
            )
        if column_type.endswith("[]") and type_.endswith("[]"):
            return f"{typed}[1:1]"
        if column_type.endswith("range") and not type_.endswith("range"):
            return f"lower{typed}"
    if use.how == "list" and type_.endswith("[]"):
        return f"array[{value}]::{type_}"
    return value


def like(n: int, s: Statement, table: Table, patterns: Sequence[str], catalog: Catalog) -> Draw:
    """Draw a LIKE pattern of the most common shape.

    It is a part of a row's text, about as long as the text of the given patterns between their wildcards.
    """
    ends = [(p[:1] == "%", p[-1:] == "%") for p in patterns]
    lead, trail = max(set(ends), key=ends.count)
    lengths = sorted(len(p.strip("%")) for p in patterns)
    draw = picked(table, {n: replace(s.uses[n], how="equal")}, s, catalog)[n]
    part = f"substr({draw.expression}, {3 if lead else 1}, {max(1, lengths[len(lengths) // 2])})"
    parts = ["'%'"] * lead + [part] + ["'%'"] * trail
    return replace(draw, expression=f"({' || '.join(parts)})")


def sample_name(table: Table) -> str:
    """Return the name that scripts use for a sample of a table's rows."""
    name = table.name if table.shown == table.name else f"{table.schema}_{table.name}"
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if not plain[:1].isdigit() else f"t{plain}"
