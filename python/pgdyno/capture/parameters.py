"""Draws of statement parameters without known values, by what they are compared with.

A call then finds about as many rows as it did in production.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pgdyno.capture import bounds, draws, picks, sql
from pgdyno.capture.catalog import INTEGERS, Catalog, Table
from pgdyno.capture.described import NotKnownError, Statement
from pgdyno.capture.draws import PARTS, Draw
from pgdyno.capture.secrets import looks_random
from pgdyno.errors import msg

#: Values of a list, at most.
_LONGEST_LIST = 200
#: New keys of other types than integers and texts.
_NEW = {
    "timestamp with time zone": "(now() + random() * interval '100 years')",
    "timestamp without time zone": "(localtimestamp + random() * interval '100 years')",
    "date": "(current_date + (random() * 1000000)::integer)",
    "inet": "('10.0.0.0'::inet + (random() * 16777215)::bigint)",
    "numeric": "(random() * 1000000000)::numeric", "double precision": "(random() * 1000000000)",
}  # fmt: skip
#: A limit of which production's rows say nothing.
_LIMIT = 10
#: More values than this many times the rows: independent draws would mostly find nothing.
_SPARSE = 2.0
_LARGEST = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 9 * 10**18}
#: What stands for a parameter of which only the type is known; others have no value that means anything.
_BY_TYPE = {
    "boolean": "true", "text": "'x'::text", "character varying": "'x'::varchar", "numeric": "1::numeric",
    "double precision": "1::float8", "real": "1::float4", "interval": "'1 day'::interval", "date": "current_date",
    "timestamp with time zone": "now()", "timestamp without time zone": "localtimestamp", "uuid": "gen_random_uuid()",
    "json": "'{}'::json", "jsonb": "'{}'::jsonb", "bytea": "''::bytea", "inet": "'127.0.0.1'::inet",
    "regconfig": "current_setting('default_text_search_config')::regconfig", "tsquery": "'x'::tsquery",
    "name": "'x'::name", "jsonpath": "", "character": "'x'::bpchar", "time without time zone": "localtime",
}  # fmt: skip


def drawn(s: Statement, catalog: Catalog) -> dict[int, Draw]:
    """Each parameter of a statement, by its number. Raises NotKnownError."""
    found: dict[int, Draw] = dict(s.known)
    open_ = {n: use for n, use in s.uses.items() if n not in s.known}
    for table, numbers in rows_together(open_, s.types, catalog):
        found |= picks.picked(table, {n: s.uses[n] for n in numbers}, s, catalog)
    for low, high in bounds.ranges(open_):
        if low not in found and high not in found:
            found |= bounds.between(low, high, s, catalog)
    for n in range(1, len(s.types) + 1):
        if n not in found:
            found[n] = alone(n, s, catalog)
    return dict(sorted(found.items()))


def is_calibrated(s: Statement) -> bool:
    """Return True if parameters are drawn so that a call finds as many rows as in production.

    This applies to bounds and to lists of a certain length.
    """
    return any(u.how in ("above", "below", "list") for u in s.uses.values())


# ------------------------------------------------------------ several at once


def rows_together(
    uses: Mapping[int, sql.Use], types: Sequence[str], catalog: Catalog
) -> Iterator[tuple[Table, list[int]]]:
    """Yield the tables with the parameters that are drawn from one row.

    These are parameters that are compared with columns of one table, if values drawn separately would seldom occur
    together. They are also the values of a foreign key of a new row, which come from a row of the referenced table.
    """
    yield from _references(uses, catalog)
    by_table: dict[str, list[int]] = {}
    for n, use in sorted(uses.items()):
        if use.how in ("equal", "member") and use.table in catalog.tables and catalog.column(use) is not None:
            by_table.setdefault(use.table, []).append(n)
    for name, numbers in by_table.items():
        table = catalog.tables[name]
        if len(numbers) < 2 or not catalog.has_rows(table):
            continue
        columns = {uses[n].column for n in numbers}
        if any(uses[n].how == "member" for n in numbers):
            yield table, [n for n in numbers if uses[n].column in columns]
            continue
        counts = [catalog.distinct(table, c) for c in columns]
        known = math.prod(c for c in counts if c is not None)
        if len(columns) > 1 and (any(c is None for c in counts) or known > _SPARSE * max(1.0, table.rows)):
            # Of a column that is asked for twice, one value of the two.
            yield table, [min(n for n in numbers if uses[n].column == c) for c in sorted(columns)]


def _references(uses: Mapping[int, sql.Use], catalog: Catalog) -> Iterator[tuple[Table, list[int]]]:
    new = {use.column: n for n, use in sorted(uses.items(), reverse=True) if use.inserted}
    tables = {use.table for use in uses.values() if use.inserted}
    done: set[str] = set()
    for table in (catalog.tables[t] for t in sorted(tables) if t in catalog.tables):
        for columns, other, _ in sorted(table.references, key=lambda r: -len(r[0])):
            numbers = [new[c] for c in columns if c in new and c not in done]
            if numbers and catalog.has_rows(catalog.tables[other]):
                done.update(columns)
                yield catalog.tables[other], numbers


# ------------------------------------------------------------ one


def alone(n: int, s: Statement, catalog: Catalog) -> Draw:
    """Draw a parameter by itself.

    Raise NotKnownError if no value can represent it.
    """
    use, type_, name = s.uses.get(n), s.type(n), f"{s.prefix}{n}"
    if use is not None and (fixed := _without_column(use, s, name)) is not None:
        return fixed
    column = catalog.column(use)
    if use is None or column is None:
        return type_draw(name, type_)
    table = catalog.tables[use.table]
    if (use.inserted and is_new(table, use.column, s)) or (use.how == "set" and table.is_unique(use.column)):
        return new_key(name, table, use.column, type_)
    if type_ == "jsonpath":
        raise NotKnownError(msg("capture-no-value-for-type", type="jsonpath"))
    if use.how == "list":
        return _list(n, table, s, catalog)
    if type_ in INTEGERS and table.key == use.column and use.how in ("equal", "list", "set"):
        return _key(name, table, s.hits, catalog) or _sometimes(_picked_alone(n, table, s, catalog), n, s)
    if use.how in ("above", "below"):
        bound = bounds.beyond(n, table, s, catalog)
        if bound is not None:
            return bound
    return _sometimes(_there(n, table, s, catalog), n, s)


def _there(n: int, table: Table, s: Statement, catalog: Catalog) -> Draw:
    """Draw a value that the column has."""
    use, type_, name = s.uses[n], s.type(n), f"{s.prefix}{n}"
    if catalog.may_be_written(use, type_) and not use.through and use.how != "member":
        known = catalog.distribution(table, use.column)
        if not known.is_empty:
            if type_ in INTEGERS and draws.are_integers(known):
                if use.how == "equal" and catalog.has_gaps(table, use.column) and catalog.has_rows(table):
                    return _picked_alone(n, table, s, catalog)
                return draws.integers(name, known)
            return draws.from_a_list(name, known, s.place)
    return _picked_alone(n, table, s, catalog)


def _sometimes(there: Draw, n: int, s: Statement) -> Draw:
    """Draw an existing value in as many of the calls as in production, and a missing value otherwise."""
    if s.hits >= 1 or s.uses[n].how != "equal":
        return there
    name, type_ = f"{s.prefix}{n}_u", s.type(n)
    # NULL surely finds no row that could be changed; another value is looked for as production's was.
    other = f"null::{type_}" if s.changes else "-1" if type_ in INTEGERS else looks_random(type_)
    if round(s.hits * PARTS) == 0:
        return Draw((), other, msg("draw-absent"))
    # A subquery, so that its value is known before rows are looked for.
    chosen = f"(select case when :{name} <= {round(s.hits * PARTS)} then {there.expression}::{type_} else {other} end)"
    why = msg("draw-present-in", share=f"{100 * s.hits:.3g}")
    lines = (*there.lines, f"\\set {name} random(1, {PARTS})")
    return replace(there, lines=lines, expression=chosen, remark=why)


def _without_column(use: sql.Use, s: Statement, name: str) -> Draw | None:
    match use.how:
        case "limit":
            known = s.rows is not None and s.rows >= 1
            limit = max(1, round(s.rows)) if known and s.rows is not None else _LIMIT
            why = msg("draw-limit-of-production") if known else msg("draw-limit-assumed", limit=limit)
            return Draw((f"\\set {name} {limit}",), f":{name}", why)
        case "offset":
            return Draw((f"\\set {name} 0",), f":{name}", msg("draw-offset"))
        case "step":
            none = {"interval": "'0'::interval"}.get(s.type(int(name[len(s.prefix) :])), "0")
            return Draw((), none, msg("draw-step"))
        case "unit":
            return Draw((), "'day'", msg("draw-unit"))
        case "zone":
            return Draw((), "'UTC'", msg("draw-zone"))
        case "encoding":
            return Draw((), "'hex'", msg("draw-encoding"))
        case "format":
            return Draw((), "'YYYY-MM-DD'", msg("draw-format"))
    return None


def type_draw(name: str, type_: str) -> Draw:
    """Draw a parameter of which only the type is known.

    Raise NotKnownError if no value can represent it.
    """
    if type_ in INTEGERS:
        return Draw((f"\\set {name} random(1, 1000)",), f":{name}", msg("draw-unknown-column", value="random(1, 1000)"))
    expression = f"'{{}}'::{type_}" if type_.endswith("[]") else _BY_TYPE.get(type_)
    if not expression:
        raise NotKnownError(msg("capture-no-value-for-type", type=type_))
    return Draw((), expression, msg("draw-unknown-column", value=expression))


def new_key(name: str, table: Table, column: str, type_: str) -> Draw:
    """Draw a value that the column very likely does not have."""
    if type_ not in INTEGERS:
        return Draw((), _NEW.get(type_, looks_random(type_)), msg("draw-new-key"))
    high = _LARGEST[type_]
    low = f":{table.name}_last + 1" if table.key == column else f"{high // 2}"
    return Draw((f"\\set {name} random({low}, {high})",), f":{name}", msg("draw-new-key"))


def is_new(table: Table, column: str, s: Statement) -> bool:
    """Return True if a new row must have a value of the column that no other row has.

    For a unique key of several columns, this is the last column that refers to no other table. The result is False if
    the statement provides for a conflict.
    """
    if s.may_conflict:
        return False
    new = {u.column for u in s.uses.values() if u.inserted and u.table == table.shown}
    for key in table.unique:
        own = [c for c in key if c in new and table.reference_of(c) is None]
        if own and own[-1] == column and set(key) <= new:
            return True
    return False


def _key(name: str, table: Table, hits: float, catalog: Catalog) -> Draw | None:
    """Create a draw for an integer key of which nearly all numbers exist."""
    if table.key is None or not catalog.is_dense(table, table.key):
        return None
    there = f"random(:{table.name}_first, :{table.name}_last)"
    if hits >= 1:
        return Draw((f"\\set {name} {there}",), f":{name}")
    # Below the first: what is inserted comes behind the last.
    return Draw(
        (f"\\set {name}_u random(1, {PARTS})",
         f"\\set {name} case when :{name}_u <= {round(hits * PARTS)} then {there} "
         f"else :{table.name}_first - random(1, 1000) end"),
        f":{name}", msg("draw-present-in", share=f"{100 * hits:.3g}"),
    )  # fmt: skip


def _picked_alone(n: int, table: Table, s: Statement, catalog: Catalog) -> Draw:
    use = s.uses[n]
    if not catalog.has_rows(table):
        made = type_draw(f"{s.prefix}{n}", s.type(n))
        return Draw(made.lines, made.expression, msg("draw-empty-table", table=table.shown))
    if not table.columns[use.column].is_plain:
        made = type_draw(f"{s.prefix}{n}", s.type(n))
        return Draw(made.lines, made.expression, msg("draw-unsafe-table", table=table.shown))
    return picks.picked(table, {n: use}, s, catalog)[n]


def _list(n: int, table: Table, s: Statement, catalog: Catalog) -> Draw:
    """Values of a list: as many as find production's rows."""
    use, type_ = s.uses[n], s.type(n)
    is_array = type_.endswith("[]")
    each = table.rows / max(1.0, catalog.distinct(table, use.column) or table.rows or 1.0)
    listed = sum(u.how == "list" and (u.table, u.column) == (use.table, use.column) for u in s.uses.values())
    wanted = min(_LONGEST_LIST, max(1, s.lengths.get(n, 1)))
    if (is_array or listed == 1) and s.rows is not None and s.returns_what_it_finds:
        wanted = min(_LONGEST_LIST, max(1, round(s.rows / max(each, 1.0))))
    one_type = type_.removesuffix("[]")
    lines: list[str] = []
    values: list[str] = []
    draw = Draw((), "")
    for i in range(1, wanted + 1):
        # Of the same list each.
        one = Statement(
            {1: sql.Use(use.table, use.column, "equal")}, [one_type], prefix=f"{s.prefix}{n}_", place=s.place
        )
        draw = alone(1, one, catalog)
        lines += [_numbered(line, f"{s.prefix}{n}_", i) for line in draw.lines]
        values.append(_numbered(draw.expression, f"{s.prefix}{n}_", i))
    remark = msg("draw-list", n=wanted) if wanted > 1 else None
    expression = f"array[{', '.join(values)}]::{type_}" if is_array else ", ".join(values)
    return replace(draw, lines=tuple(lines), expression=expression, remark=remark)


def _numbered(text: str, prefix: str, number: int) -> str:
    """Replace the variables in a text so that each value of a list has variables of its own."""
    return re.sub(rf"(?<=[\s:]){re.escape(prefix)}1", f"{prefix}{number}_1", text)
