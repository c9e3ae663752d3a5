"""Statistics of a live database as columns of an experiment, without the column values.

They state the number of distinct values and the frequency of the common ones. They also state the share of NULL, the
length of texts, and the columns that follow the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.load.find import Connection
from pgdyno.load.own.catalog import Column, TableFacts
from pgdyno.load.own.requested import decimals, length

_STATS = """
select c.oid::pg_catalog.regclass::pg_catalog.text, s.attname::text, s.null_frac, s.n_distinct, s.most_common_freqs,
  s.avg_width, s.correlation, greatest(c.reltuples, 1)::float8,
  case when a.atttypid = 16 then s.most_common_vals::text end
from pg_catalog.pg_stats s
  join pg_catalog.pg_namespace n on n.nspname = s.schemaname
  join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = s.tablename
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = s.attname
where s.schemaname not in ('pg_catalog', 'information_schema') and c.relkind in ('r', 'p') and not c.relispartition
order by s.inherited"""
_INTEGERS = {"int2": 2**15 - 1, "int4": 2**31 - 1, "int8": 2**62}
#: Values that are written out, as made-up texts.
_LISTED = 100
#: What is less is not worth a line: a part that is NULL, an exponent of Zipf's law, a correlation.
_NULLS, _SKEW, _FOLLOWS = 0.005, 0.2, 0.5
#: Above this part of the rows, n_distinct grows with them.
_GROWS = 0.1
_STEEPEST = 4.0
#: Weights of which the largest is at most so many times the least are as good as equal.
_ALIKE = 1.3


@dataclass(frozen=True)
class Shape:
    """A column, by ANALYZE."""

    nulls: float
    #: Values, as a part of the rows where it is negative.
    distinct: float
    #: Of the most common values, the largest first, as parts of all rows.
    frequencies: Sequence[float]
    #: Bytes, in the mean.
    width: float
    #: Of the values with the rows' order.
    correlation: float
    #: Of booleans: the part that is true.
    true: float | None = None

    def values(self, rows: int) -> int:
        """Return the number of distinct values in a table of `rows` rows."""
        return max(1, round(self.distinct if self.distinct > 0 else -self.distinct * rows))


def read(conn: Connection) -> dict[str, dict[str, Shape]]:
    """Read the statistics of a database's columns, by table and column name."""
    found: dict[str, dict[str, Shape]] = {}
    for table, column, nulls, distinct, frequencies, width, correlation, rows, common in conn.execute(
        _STATS
    ).fetchall():
        grows = distinct > 0 and distinct > _GROWS * rows
        # As {t,f}.
        order = str(common or "").strip("{}").split(",")
        true = dict(zip(order, frequencies or (), strict=False)).get("t", 0.0) if common else None
        shape = Shape(
            nulls, -distinct / rows if grows else distinct, frequencies or (), width, correlation or 0.0, true
        )
        found.setdefault(table, {})[column] = shape
    return found


def said_of(
    t: TableFacts, shapes: Mapping[str, Shape], rows: int, names: Mapping[int, str]
) -> dict[str, dict[str, Any]]:
    """Return the columns of a table as an experiment specifies them: with the keys of spec.datasets.Column.

    `names` are the names of the tables that are filled. Columns that a key or a constraint decides are left to the
    catalog.
    """
    decided = (
        {c for k in t.keys for c in k.columns if c} | {c for k in t.checks for c in k.columns} | set(t.partitioned_by)
    )
    decided |= {c for r in t.references if len(r.columns) > 1 for c in r.columns}
    references = {
        r.columns[0]: r for r in t.references if len(r.columns) == 1 and r.table in names and r.table != t.oid
    }
    ordered = next((c.name for c in t.columns.values() if c.identity or c.default.startswith("nextval(")), "")
    found = {}
    for name, shape in shapes.items():
        c = t.columns.get(name)
        if c is None or name in decided or c.generated or c.labels or c.domain_checks or c.element or name == ordered:
            continue
        if c.default.startswith("nextval("):
            continue
        nulls = {} if c.not_null or shape.nulls < _NULLS else {"nulls": round(min(1.0, shape.nulls), 4)}
        if name in references:
            r = references[name]
            said: dict[str, Any] = {
                "type": "reference",
                "to": f"{names[r.table]}.{r.others[0]}",
                **_skewed(shape, rows),
            }
        elif any(name in r.columns for r in t.references) or (said := _shaped(c, shape, rows, ordered)) == {"type": ""}:
            continue
        if nulls or len(said) > 1:
            found[name] = said | nulls
    return found


def _shaped(c: Column, s: Shape, rows: int, ordered: str) -> dict[str, Any]:
    """Return the specification of a column that is no reference."""
    if c.type in _INTEGERS:
        return {"type": "integer", "min": 1, "max": min(s.values(rows), _INTEGERS[c.type]), **_skewed(s, rows)}
    if c.type in ("numeric", "float4", "float8"):
        step = 10.0 ** -decimals(c)
        return {"type": "number", "min": step, "max": round(step * s.values(rows), decimals(c)), **_skewed(s, rows)}
    if c.type == "bool":
        if s.true is None:
            return {"type": "boolean"}
        share = s.true / max(1e-9, sum(s.frequencies))
        return {"type": "choice", "values": [True, False], "weights": [round(share, 4), round(1 - share, 4)]}
    if c.type in ("timestamp", "timestamptz", "date"):
        follows = ordered and s.correlation > _FOLLOWS
        like = {"like": ordered, "correlation": round(min(s.correlation, 0.9999), 4)} if follows else {}
        return {"type": "date" if c.type == "date" else "timestamp", **like}
    if c.type in ("text", "varchar") and s.width:
        return _text(c, s, rows)
    return {"type": ""}


def _text(c: Column, s: Shape, rows: int) -> dict[str, Any]:
    # A short text has a byte before it.
    width, longest = max(1, round(s.width) - 1), length(c) or 1_000_000
    n = s.values(rows)
    if n > _LISTED:
        return {
            "type": "text",
            "min": min(longest, max(1, round(0.75 * width))),
            "max": min(longest, round(1.25 * width) + 1),
        }
    values = [f"v{i}".ljust(width, "x")[: max(width, len(f"v{i}"))] for i in range(1, n + 1)]
    if max(map(len, values)) > longest:
        return {"type": ""}
    common = [round(f, 4) for f in s.frequencies[:n]]
    left = max(0.0, 1 - s.nulls - sum(common))
    rest = [round(max(left / max(1, n - len(common)), 1e-4), 4)] * (n - len(common))
    weights = [*common, *rest]
    alike = max(weights) <= _ALIKE * min(weights)
    return {"type": "choice", "values": values, **({} if alike else {"weights": weights})}


def _skewed(s: Shape, rows: int) -> dict[str, Any]:
    """Zipf's law whose most common value is as common."""
    n = s.values(rows)
    if not s.frequencies or n < 2:
        return {}
    most = s.frequencies[0] / max(1e-9, 1 - s.nulls)
    low, high = 0.0, _STEEPEST
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 / _harmonic(n, middle) < most else (low, middle)
    return {"distribution": "zipf", "skew": round(low, 2)} if low >= _SKEW else {}


def _harmonic(n: int, exponent: float) -> float:
    """Return the sum of 1/k^exponent for k from 1 to n; beyond 1,000 terms, use the integral."""
    some = min(n, 1_000)
    found = math.fsum(k**-exponent for k in range(1, some + 1))
    if n > some:
        a, b = some + 0.5, n + 0.5
        power = 1 - exponent
        found += (b**power - a**power) / power if abs(power) > 1e-9 else math.log(b / a)
    return found
