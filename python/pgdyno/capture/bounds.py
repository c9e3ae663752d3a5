"""Parameters that a column lies above, below or between: as far out, or apart, as production's rows say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgdyno.capture import draws, sql
from pgdyno.capture.catalog import Catalog, Table
from pgdyno.capture.described import Statement
from pgdyno.capture.draws import Draw
from pgdyno.errors import msg

#: Ranges of a column that stand in a script.
_RANGES = 40
#: Beyond this part of the rows, all of them are meant.
_NEARLY_ALL = 0.9
#: Between two bounds, where nothing is known.
_TENTH = 0.1
_TIMES = re.compile(r"(?:date|timestamp)\b")


def ranges(uses: Mapping[int, sql.Use]) -> list[tuple[int, int]]:
    """Parameters that a column lies between."""
    out: list[tuple[int, int]] = []
    bounds: dict[tuple[str, str], int] = {}
    for n, use in sorted(uses.items()):
        if use.how in ("above", "below") and not use.is_age:
            at = (use.table, use.column)
            if at in bounds and uses[bounds[at]].how != use.how:
                other = bounds.pop(at)
                out.append((n, other) if use.how == "above" else (other, n))
            else:
                bounds[at] = n
    return out


def between(low: int, high: int, s: Statement, catalog: Catalog) -> dict[int, Draw]:
    """Two bounds of one column: as far apart as production's rows say, anywhere in its range."""
    use, type_ = s.uses[low], s.type(low)
    table, name = catalog.tables.get(use.table), f"{s.prefix}{low}"
    bounds = _bounds(use, type_, catalog)
    if table is None or not bounds:
        return {}
    part = _part(table, s, catalog)
    remark = None if part is not None else msg("draw-range-by-blocks")
    part = min(_TENTH, (s.blocks or table.rows) / max(1.0, _narrowed(table, s, catalog))) if part is None else part
    is_moved = use.is_moved or s.uses[high].is_moved
    pairs = []
    for i in range(_RANGES):
        begin = (1 - part) * (i + 0.5) / _RANGES
        # A bound that is moved away from the other is so from the same value.
        end = begin if is_moved else begin + part
        pairs.append((_at(begin, bounds, type_, catalog), _at(end, bounds, type_, catalog)))
    first, second = draws.pairs(name, pairs, s.place)
    found = {low: replace(first, remark=remark), high: second}
    steps = [n for n, u in s.uses.items() if u.how == "step" and n not in s.known]
    if is_moved and len(steps) == 1:
        (n,) = steps
        apart = catalog.apart(type_, s.type(n), _at(0.5 - part / 2, bounds, type_, catalog),
                              _at(0.5 + part / 2, bounds, type_, catalog))  # fmt: skip
        found |= {n: Draw((), apart, msg("draw-range-by-rows"))} if apart else {}
    return found


def _bounds(use: sql.Use, type_: str, catalog: Catalog) -> list[str]:
    """Quantiles of a column whose values may be written."""
    column = catalog.column(use)
    if column is None or not catalog.may_be_written(use, column.type) or type_ == "boolean":
        return []
    known = catalog.distribution(catalog.tables[use.table], use.column)
    if len(only := {*known.common, *known.bounds}) == 1:
        return catalog.around(column.type, only.pop())
    return known.quantiles(column.type)


def _part(table: Table, s: Statement, catalog: Catalog) -> float | None:
    """Return the share of a table's rows that production's calls found, or None if nothing tells it."""
    rows = _narrowed(table, s, catalog)
    is_narrowed = any(use.table == table.shown and use.how == "equal" for use in s.uses.values())
    has_limit = any(use.how == "limit" for use in s.uses.values())
    if s.rows is not None and (s.returns_what_it_finds or (is_narrowed and has_limit)):
        return min(1.0, s.rows / max(1.0, rows))
    if s.blocks is not None and not is_narrowed:
        # A scan of the whole table reads all its pages; of an index, about the rows' part of them.
        return min(1.0, s.blocks / max(1.0, s.pages))
    return None


def _narrowed(table: Table, s: Statement, catalog: Catalog) -> float:
    """Estimate the number of a table's rows that have the values which its columns must equal."""
    rows = max(1.0, table.rows)
    for use in s.uses.values():
        if use.table == table.shown and use.how == "equal":
            rows /= max(1.0, catalog.distinct(table, use.column) or 1.0)
    return max(1.0, rows)


def _at(part: float, bounds: Sequence[str], type_: str, catalog: Catalog) -> str:
    place = min(max(part, 0.0), 1.0) * (len(bounds) - 1)
    n = min(int(place), len(bounds) - 2)
    return catalog.between(type_, bounds[n], bounds[n + 1], place - n)


def beyond(n: int, table: Table, s: Statement, catalog: Catalog) -> Draw | None:
    """One bound of a column, so that production's part of the rows is beyond it."""
    use, type_, name = s.uses[n], s.type(n), f"{s.prefix}{n}"
    column_type = table.columns[use.column].type
    bounds = _bounds(use, column_type, catalog)
    is_age = use.is_age or (type_ == "interval" and _TIMES.match(column_type) is not None)
    if not bounds or (is_age and not _TIMES.match(column_type)):
        return None
    part = _part(table, s, catalog)
    remark = None if part is not None else msg("draw-bound-anywhere")
    parts = [(i + 0.5) / 10 for i in range(10)] if part is None else [part * f for f in (0.6, 0.8, 1.0, 1.2, 1.4)]
    values = [_at(1 - p if use.how == "above" else p, bounds, column_type, catalog) for p in parts]
    if part is not None and part > _NEARLY_ALL:
        outside = catalog.around(column_type, bounds[0] if use.how == "above" else bounds[-1])
        values = [outside[0 if use.how == "above" else 1]] if outside else values
    if is_age:
        now = "current_date" if column_type == "date" else "localtimestamp" if "without" in column_type else "now()"
        of = draws.from_values(name, values, s.place)
        ago = f"({now} - {of.expression}::{column_type})"
        # A date less a date is a number of days.
        ago = f"({now}::timestamp - {of.expression}::timestamp)" if column_type == "date" else ago
        return replace(of, expression=ago, remark=remark or msg("draw-age"))
    return draws.from_values(name, values, s.place, remark)
