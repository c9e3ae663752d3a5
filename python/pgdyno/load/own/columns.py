"""Rules by which the columns of filled tables are drawn.

The rules follow the user's specification, otherwise the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pgdyno.errors import SpecError, msg
from pgdyno.load.find import Connection
from pgdyno.load.own import catalog, decide
from pgdyno.load.own.catalog import TableFacts
from pgdyno.load.own.drawn import Filling


@dataclass(frozen=True)
class Wanted:
    """A table that is to be filled, as the user says."""

    name: str
    rows: int
    #: By column, what is said of it: the keys of spec.datasets.Column.
    columns: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def decided(conn: Connection, wanted: Sequence[Wanted]) -> list[Filling]:
    """Decide how every column of all tables is drawn; return referenced tables first.

    Raise SpecError if columns cannot be drawn; it names all of them at once.
    """
    # Literals of constraints are read as they are printed.
    conn.execute(
        "select pg_catalog.set_config('timezone', 'UTC', false), pg_catalog.set_config('datestyle', 'ISO', false)"
    )
    by_oid: dict[int, Wanted] = {}
    for w in wanted:
        oid = catalog.found(conn, w.name, f"fill.{w.name}")
        if oid in by_oid:
            raise SpecError(
                msg("error-fill-same-table-fill", name=w.name, name2=by_oid[oid].name), msg("remedy-say-once")
            )
        by_oid[oid] = w
    facts = {oid: catalog.read(conn, oid) for oid in by_oid}
    done: dict[int, Filling] = {}
    problems: list[decide.Problem] = []
    for oid, broken in _ordered(facts, by_oid):
        w = by_oid[oid]
        table = decide.Table(conn, facts[oid], w.name, w.rows, w.columns, done, facts, broken)
        done[oid] = table.filling()
        problems += table.problems
    if problems:
        raise decide.UndrawableError(problems)
    return list(done.values())


def _ordered(
    facts: Mapping[int, TableFacts], wanted: Mapping[int, Wanted]
) -> Iterator[tuple[int, frozenset[tuple[str, ...]]]]:
    """Yield each table after the tables that it refers to, with its foreign keys that stay NULL.

    These keys stay NULL because they would lead in a circle. Raise SpecError if tables refer to each other in a circle
    that cannot be broken.
    """
    left = dict(facts)
    broken: dict[int, set[tuple[str, ...]]] = {oid: set() for oid in facts}

    def parents(oid: int) -> set[int]:
        said = {str(s["to"]).rpartition(".")[0] for s in wanted[oid].columns.values() if s.get("to")}
        named = {o for o in facts if wanted[o].name in said or facts[o].name in said or facts[o].short in said}
        own = {r.table for r in facts[oid].references if r.columns not in broken[oid]}
        return ((own | named) & set(left)) - {oid}

    while left:
        ready = [oid for oid in left if not parents(oid)]
        for oid in ready:
            yield oid, frozenset(broken[oid])
            del left[oid]
        if ready:
            continue
        for oid in left:
            columns = facts[oid].columns
            may = [
                r for r in facts[oid].references
                if r.table in left and r.table != oid and r.columns not in broken[oid]
                and not any(columns[c].not_null or c in wanted[oid].columns for c in r.columns)
            ]  # fmt: skip
            if may:
                broken[oid].update(r.columns for r in may)
                break
        else:
            circle = ", ".join(sorted(facts[oid].name for oid in left))
            raise SpecError(
                msg("error-fill-refer-each-other-circle", circle=circle),
                msg("remedy-leave-foreign-key-out-add"),
            )
