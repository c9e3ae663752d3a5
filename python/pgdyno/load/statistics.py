"""Statistics of tables that were written directly: SQL that hands them to the server.

From version 18 on a server takes statistics as it takes rows, for pg_upgrade's sake. Ours are what ANALYZE's own
formulas make of a random sample of the rows, as many as ANALYZE would take. It would read nearly all of a table of some
100 MB again to find them; rows are functions of their numbers, so no page is read here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pgdyno import _core
from pgdyno.load.dataset import block, literal, quoted

#: The first version that takes them.
SINCE = 18
#: Of what default_statistics_target may be, the largest for which samples take moments, and 100 MB each.
TARGET_MAX = 300
#: Samples at a time.
TOGETHER = 4
#: Of tables and indexes: more pages of 8 kB than an int4 counts are ANALYZE's.
BYTES_MAX = 2**31 * 8192
_TIMESTAMPS_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class HandedOver:
    """Statements that take the place of ANALYZE, before and behind VACUUM."""

    #: The table's count of rows: where VACUUM skips pages it lets that stand, and reports it.
    rows: str
    #: The statistics of its columns, and the sizes of its indexes; ANALYZE where the server does not take all of them.
    rest: str


def handed_over(schema: str, table: str, rows: int, columns: Iterable[_core.ColumnStatistics]) -> HandedOver:
    """Return the statements that hand over the statistics of a table with `rows` rows."""
    relation = f"{literal(f'{quoted(schema)}.{quoted(table)}')}::pg_catalog.regclass"
    pages = "(pg_catalog.pg_relation_size(c.oid) operator(pg_catalog./) 8192)::int4"
    words = [("schemaname", literal(schema)), ("relname", "c.relname::text"), ("relpages", pages),
             ("reltuples", f"{rows}::float4")]  # fmt: skip
    sizes = f"select pg_catalog.bool_and(pg_catalog.pg_restore_relation_stats({_arguments(words)})) from"
    whole = f"c.oid operator(pg_catalog.=) {relation}"
    indexes = (
        "pg_catalog.pg_class c left join pg_catalog.pg_index i on i.indexrelid operator(pg_catalog.=) c.oid "
        f"where {whole} or i.indrelid operator(pg_catalog.=) {relation}"
    )
    calls = ", ".join(f"({_column_row(schema, table, c)})" for c in columns)
    return HandedOver(
        block(f"perform ({sizes} pg_catalog.pg_class c where {whole}); exception when others then null;"),
        block(
            f"if ({sizes} {indexes}) is not true "
            f"or (select pg_catalog.bool_and(taken) from (values {calls}) as v (taken)) is not true "
            f"then analyze {table}; end if; exception when others then analyze {table};"
        ),
    )


def _column_row(schema: str, table: str, c: _core.ColumnStatistics) -> str:
    words = [("schemaname", literal(schema)), ("relname", literal(table)), ("attname", literal(c.column)),
             ("inherited", "false"), ("null_frac", f"'{c.null_fraction!r}'::float4"),
             ("avg_width", f"{c.average_width}::int4"), ("n_distinct", f"'{c.distinct!r}'::float4")]  # fmt: skip
    if c.common:
        fractions = ",".join(repr(fraction) for _, fraction in c.common)
        words.append(("most_common_vals", array(c.kind, (value for value, _ in c.common))))
        words.append(("most_common_freqs", f"'{{{fractions}}}'::float4[]"))
    if c.bounds:
        words.append(("histogram_bounds", array(c.kind, c.bounds)))
    if c.correlation is not None:
        words.append(("correlation", f"'{c.correlation!r}'::float4"))
    return f"pg_catalog.pg_restore_attribute_stats({_arguments(words)})"


def _arguments(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"'{name}', {value}" for name, value in pairs)


def array(kind: str, values: Iterable[float | str]) -> str:
    """Return an array of values of a column of type `kind`, as an SQL string constant."""
    return literal("{" + ",".join(_element(kind, value) for value in values) + "}") + "::text"


def _element(kind: str, value: float | str) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", r"\\").replace('"', r"\"")
        return f'"{escaped}"'
    if kind.startswith("timestamp"):
        return f'"{(_TIMESTAMPS_BEGIN + timedelta(microseconds=value)).isoformat(sep=" ")}"'
    if kind.startswith("numeric"):
        # In units of the last digit.
        scale = int(kind.rstrip(")").rpartition(",")[2])
        return f"{value}e-{scale}"
    return repr(value)
