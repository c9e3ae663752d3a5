"""Decision how the columns of one table are drawn."""

from __future__ import annotations

import itertools
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from pgdyno.errors import SpecError, msg
from pgdyno.load.find import Connection
from pgdyno.load.own import catalog, checks, spellings
from pgdyno.load.own.catalog import Column, Key, Reference, TableFacts, quoted
from pgdyno.load.own.drawn import Digit, Drawn, Filling, Pick
from pgdyno.load.own.requested import FROM, LONG, SHORT, TO, decimals, instant, length, requested_draw
from pgdyno.load.own.sizes import size_of
from pgdyno.message import Name, Text, listed, message, sentences

_INTEGERS = {"int2": 2**15 - 1, "int4": 2**31 - 1, "int8": 2**63 - 1}
_NAMES = {"int2": "smallint", "int4": "integer", "int8": "bigint"}
_INSTANTS = {"timestamp": "timestamp", "timestamptz": "timestamp", "date": "date"}
_TEXTS = ("text", "varchar", "bpchar", "citext", "name")
#: Rows of a table that is not filled, whose keys are referred to.
_POOL = 100_000
#: Rows of a table that its constraints are tried with; and of those that are to be chosen from.
_TRIED, _CANDIDATES = 1000, 4000
#: Below this part of a parent's rows it is reported.
_LITTLE = 0.2


@dataclass(frozen=True)
class Problem:
    """A column that cannot be drawn, and what to write. `most`: the rows of the table with which it can."""

    table: str
    what: Text
    remedy: Text | None = None
    most: int | None = None


class UndrawableError(SpecError):
    """All that cannot be drawn."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        remedies: list[Text] = []
        for p in problems:
            if p.remedy is not None and p.remedy not in remedies:
                remedies.append(p.remedy)
        super().__init__(listed((p.what for p in problems), "semicolon"), sentences(remedies))
        self.problems = problems


def _names(columns: Iterable[str]) -> Text:
    return listed(map(Name, columns), "list")


def key_of(name: str) -> str:
    """Return a name as a TOML key."""
    name = name.removeprefix("public.")
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


class Table:
    """Decides one table. `done` has those that it may refer to."""

    def __init__(
        self,
        conn: Connection,
        facts: TableFacts,
        name: str,
        rows: int,
        requested: Mapping[str, Mapping[str, Any]],
        done: Mapping[int, Filling],
        wanted: Mapping[int, TableFacts],
        broken: frozenset[tuple[str, ...]],
    ) -> None:
        self._conn, self._facts, self._name, self._rows, self._said = conn, facts, name, rows, requested
        self._done, self._wanted, self._broken = done, wanted, broken
        self._drawn: dict[str, Drawn] = {}
        self._picks: dict[str, Pick] = {}
        self._notes: list[Text] = []
        self._constants: list[str] = []
        self._satisfied: list[frozenset[str]] = []
        self.problems: list[Problem] = []

    def filling(self) -> Filling:
        """All of it. Raises SpecError where what the user says makes no sense."""
        for column in self._said:
            if column not in self._facts.columns:
                raise SpecError(
                    msg("error-fill-columns-table-no-such", name=self._name, column=column),
                    msg("remedy-it-has", names=", ".join(self._facts.columns)),
                )
        self._refuse_wrong_likes()
        for column, how in self._said.items():
            self._requested(column, how)
        for r in sorted(self._facts.references, key=lambda r: -len(r.columns)):
            self._refer(r)
        in_keys = {c for k in self._facts.keys for c in self._columns_of(k)}
        for c in self._facts.columns.values():
            if c.name not in self._drawn:
                self._typed_draw(c, is_key=c.name in in_keys)
        self._narrow()
        for k in self._facts.keys:
            self._make_unique(k)
        if self._rows and not self.problems:
            self._hold()
        for column, how in self._said.items():
            if how.get("like") and how["like"] not in self._drawn:
                where = f"fill.{self._name}.columns.{column}"
                raise SpecError(
                    msg("error-like-not-drawn", where=where, how=how["like"]), msg("remedy-say-how-under-columns")
                )
        return self._filling()

    def _filling(self) -> Filling:
        parents = {p.parent for p in self._picks.values() if p.parent} - {self._facts.name}
        columns = [self._drawn[name] for name in self._facts.columns if name in self._drawn]
        in_order = any(p.before for p in self._picks.values())
        picks = tuple(self._picks.values())
        notes = [*self._notes, *self._little_used()]
        constants = [f"{c} ({self._facts.columns[c].default})" for c in self._constants]
        return Filling(self._facts.name, self._rows, columns, frozenset(parents), picks, in_order, notes, constants)

    def _where(self, column: str) -> str:
        return f"fill.{self._name}.columns.{column}"

    def _problem(self, column: str, what: Text, remedy: Text | None = None, most: int | None = None) -> None:
        how = message("fill-say-how", table=Name(key_of(self._name)), column=Name(key_of(column)))
        where = Name(self._where(column))
        self.problems.append(Problem(self._name, message("fill-problem", where=where, what=what), remedy or how, most))

    def _refuse_wrong_likes(self) -> None:
        for name in self._said:
            seen, at = {name}, str(self._said[name].get("like") or "")
            while at:
                if at in seen:
                    raise SpecError(
                        msg("error-like-leads-circle", where=self._where(name), seen=", ".join(sorted(seen)))
                    )
                seen.add(at)
                at = str(self._said.get(at, {}).get("like") or "")

    # ------------------------------------------------------------ what the user says

    def _requested(self, column: str, how: Mapping[str, Any]) -> None:
        c, where = self._facts.columns[column], self._where(column)
        if how["type"] != "reference":
            self._drawn[column] = requested_draw(c, how, where)
            return
        table, _, other = str(how["to"]).rpartition(".")
        oid = catalog.found(self._conn, table, where)
        base = Drawn(
            "", "integer", 0, 0, how["distribution"], how["skew"], nulls=how["nulls"], like=how["like"],
            correlation=how["correlation"],
        )  # fmt: skip
        self._pick(Reference((column,), oid, (other.strip('"'),)), base, must=True)

    # ------------------------------------------------------------ foreign keys

    def _refer(self, r: Reference) -> None:
        columns = [self._facts.columns[c] for c in r.columns]
        requested = [c for c in r.columns if c in self._said]
        if len(requested) == len(r.columns) or any(c.generated for c in columns):
            return
        if r.columns in self._broken:
            self._nothing(r, message("fill-circle"))
            return
        if r.is_temporal:
            self._problem(r.columns[0], message("fill-period"), message("fill-leave-empty"))
            return
        decided = [c for c in r.columns if c in self._drawn]
        if len(decided) == len(r.columns):
            self._restrict(r)
        elif len(decided) > 1 or (decided and r.table not in self._done):
            self._problem(r.columns[0], message("fill-shared-columns", columns=_names(r.columns)))
        else:
            self._pick(r, Drawn("", "integer", 0, 0), shared=decided[0] if decided else "")

    def _nothing(self, r: Reference, why: Text) -> None:
        for c in r.columns:
            if c not in self._drawn and not self._facts.columns[c].not_null:
                self._drawn[c] = Drawn(c, "choice", values=("",), nulls=1.0)
        where = Name(f"{self._facts.short}.{', '.join(r.columns)}")
        self._notes.append(message("fill-all-null", where=where, why=why))

    def _pick(self, r: Reference, base: Drawn, *, shared: str = "", must: bool = False) -> None:
        """Decide a foreign key's columns: a row of the other table is picked, and its key is theirs."""
        name = f"@{len(self._picks)} {' '.join(r.columns)}"
        is_itself = r.table == self._facts.oid
        parent = self._done.get(r.table)
        if is_itself or parent is not None:
            rows = self._rows if is_itself else parent.rows if parent is not None else 0
            pick = self._filled_reference(r, replace(base, name=name, high=rows - 1), parent, rows, must=must)
        else:
            pick = self._present_rows(r, replace(base, name=name), must=must)
        if pick is None:
            return
        if shared:
            other = r.others[r.columns.index(shared)]
            pick = replace(pick, same=(shared, other))
            self._restrict(Reference((shared,), r.table, (other,)))
        self._picks[name] = pick
        for own, other in zip(r.columns, r.others, strict=True):
            if own not in self._drawn:
                self._drawn[own] = Drawn(own, "picked", pick=name, column=other, nulls=0.0)

    def _filled_reference(
        self, r: Reference, d: Drawn, parent: Filling | None, rows: int, *, must: bool
    ) -> Pick | None:
        if parent is None:
            nullable = not any(self._facts.columns[c].not_null for c in r.columns)
            return Pick(d.name, d, self._facts.name, before=True, first_is_null=nullable)
        if not rows:
            self._empty(r, parent.name, must=must)
            return None
        missing = [c for c in r.others if c not in {x.name for x in parent.columns}]
        if missing:
            raise SpecError(
                msg(
                    "error-not-drawn-so-cannot-be",
                    where=self._where(r.columns[0]),
                    name=parent.name,
                    missing=missing[0],
                ),
                msg("remedy-say-how-drawn-fill-columns", name=parent.name, missing=missing[0]),
            )
        return Pick(d.name, d, parent.name)

    def _present_rows(self, r: Reference, d: Drawn, *, must: bool) -> Pick | None:
        names = ", ".join(map(quoted, r.others))
        row = self._conn.execute(
            "select %s::pg_catalog.oid::pg_catalog.regclass::pg_catalog.text", [r.table]
        ).fetchone()
        table = str(row[0]) if row is not None else ""
        known = " and ".join(f"{quoted(c)} is not null" for c in r.others)
        as_text = ", ".join(f"{quoted(c)}::pg_catalog.text" for c in r.others)
        # Each key once, and in an order that is the same next time.
        keys = (
            f"select distinct {names} from {table}{self._some_of(r.table)} where {known} order by {names} limit {_POOL}"
        )
        sql = f"select {as_text} from ({keys}) t"
        try:
            with self._conn.transaction():
                rows = self._conn.execute(sql.encode()).fetchall()
        except psycopg.Error as e:
            raise SpecError(f"{self._where(r.columns[0])}: {e.diag.message_primary or e}") from e
        if not rows:
            self._empty(r, table, must=must)
            return None
        pool = {name: [x[n] for x in rows] for n, name in enumerate(r.others)}
        return Pick(d.name, replace(d, high=len(rows) - 1), pool=pool)

    def _some_of(self, oid: int) -> str:
        """Return a TABLESAMPLE clause for a large table; the sample is the same each time.

        The clause is empty for other tables.
        """
        row = self._conn.execute(
            "select coalesce(sum(c.reltuples), 0)::float8 from pg_catalog.pg_class c where c.oid = %(oid)s or c.oid in "
            "(select t.relid from pg_catalog.pg_partition_tree(%(oid)s) t where t.isleaf)",
            {"oid": oid},
        ).fetchone()
        rows = float(row[0]) if row is not None else 0.0
        return f" tablesample bernoulli ({100 * _POOL / rows:.9f}) repeatable (1)" if rows > _POOL else ""

    def _empty(self, r: Reference, table: str, *, must: bool) -> None:
        if not must and not any(self._facts.columns[c].not_null for c in r.columns):
            self._nothing(r, message("fill-no-rows", table=Name(table)))
            return
        if not self._rows:
            return
        what = message("fill-refers-to-empty", table=Name(table))
        if must:
            where = Name(self._where(r.columns[0]))
            raise SpecError(message("fill-problem", where=where, what=what), msg("remedy-fill-table-too-or-say"))
        self._problem(r.columns[0], what, message("fill-that-table", table=Name(key_of(table))))

    def _restrict(self, r: Reference) -> None:
        """Restrict the rows that a foreign key's columns are picked from to those that the foreign key allows.

        Its columns are decided already.
        """
        if len(r.columns) > 1 or r.table not in self._done:
            if not self._is_implied(r):
                self._problem(r.columns[0], message("fill-shared-columns", columns=_names(r.columns)))
            return
        if self._is_implied(r):
            return
        own = self._drawn[r.columns[0]]
        pick = self._picks.get(own.pick)
        if pick is None or not pick.parent or pick.same or pick.before or pick.drawn.digit:
            other = Name(self._done[r.table].name)
            self._problem(r.columns[0], message("fill-two-tables", table=other))
            return
        within = (*pick.within, (own.column, self._done[r.table].name, r.others[0]))
        self._picks[own.pick] = replace(pick, within=within)

    def _is_implied(self, r: Reference) -> bool:
        """Return True if the picks of other columns already satisfy the foreign key.

        Its columns are then picked from the referenced columns themselves, or from columns that refer to the same
        ones. All of them come from one pick.
        """
        for column, other in zip(r.columns, r.others, strict=True):
            at = self._drawn[column]
            fillings = {f.name: f for f in self._done.values()}
            picks = self._picks
            while at.type == "picked" and (pick := picks[at.pick]).parent and pick.parent in fillings:
                parent = fillings[pick.parent]
                target = self._done.get(r.table)
                if target is not None and (parent.name, at.column) == (target.name, other):
                    break
                at = next(c for c in parent.columns if c.name == at.column)
                picks = {p.name: p for p in parent.picks}
            else:
                return False
        return len({self._drawn[c].pick for c in r.columns}) == 1

    # ------------------------------------------------------------ types

    def _typed_draw(self, c: Column, *, is_key: bool) -> None:
        """Decide a column by its type alone, because the user specified nothing else.

        The server fills a column that is left out.
        """
        if c.generated:
            return
        if c.type in _INTEGERS and (c.identity or c.default.startswith("nextval(")):
            low = self._first(c)
            self._drawn[c.name] = Drawn(c.name, "serial", low)
            self._refuse_too_high(c, low)
            return
        drawn = self._type_draw(c)
        # A default that is computed (now(), gen_random_uuid()) stands for another value in each row.
        computed = "(" in c.default or "CURRENT" in c.default
        if c.default and not is_key and not c.labels and not (computed and c.type in (*_INSTANTS, "uuid")):
            allowed = [checks.listed(k.expression, c.name) for k in self._facts.checks if c.name in k.columns]
            values = next(filter(None, allowed), [])
            if not values or drawn is None:
                self._constants.append(c.name)
                return
            drawn = Drawn(c.name, "choice", values=tuple(values))
        if drawn is not None:
            self._drawn[c.name] = drawn
        elif c.not_null:
            self._problem(c.name, message("fill-no-type", type=Name(c.sql_type)), message("fill-give-default"))
        else:
            where, why = Name(f"{self._facts.short}.{c.name}"), message("fill-no-type", type=Name(c.sql_type))
            self._notes.append(message("fill-all-null", where=where, why=why))

    def _first(self, c: Column) -> int:
        """Return the first value of a serial column, which follows the values that the files have inserted."""
        row = self._conn.execute(f"select max({quoted(c.name)}) from {self._facts.name}".encode()).fetchone()
        return 1 if row is None or row[0] is None else int(row[0]) + 1

    def _type_draw(self, c: Column) -> Drawn | None:
        if c.type in _INTEGERS:
            most = min(_INTEGERS[c.type], 1000 if c.type == "int2" else max(1, self._rows))
            return Drawn(c.name, "integer", 1, most)
        if c.type in _TEXTS:
            long = min(LONG, length(c) or (1 if c.type == "bpchar" else LONG))
            return Drawn(c.name, "text", min(SHORT, long), long)
        if c.type in ("numeric", "float4", "float8", "money"):
            places = decimals(c)
            digits = ((c.modifier - 4) >> 16) & 0xFFFF if c.type == "numeric" and c.modifier >= 4 else 8
            high = 10.0 ** min(4, digits - (places if c.type == "numeric" else 0)) - 10.0**-places
            return Drawn(c.name, "number", 0, high, decimals=places)
        if c.type in _INSTANTS:
            kind = _INSTANTS[c.type]
            return Drawn(c.name, kind, instant(None, FROM, kind, ""), instant(None, TO, kind, ""))
        if c.type in ("bool", "uuid"):
            return Drawn(c.name, {"bool": "boolean"}.get(c.type, c.type))
        if c.labels:
            return Drawn(c.name, "choice", values=tuple(c.labels))
        if c.type in ("bit", "varbit"):
            return Drawn(c.name, "spelled", spelling=f"bits {c.modifier if c.modifier > 0 else 8}")
        spelling = spellings.spelling_of(c.type, c.element, c.subtype, c.is_multirange)
        if not spelling:
            return None
        # A server may be built without a type's functions (xml), an extension's type take other words.
        some = [spellings.speller(spelling)(k) for k in (0, 1, 4711)]
        fine = all(checks.held(self._conn, self._facts.columns, {c.name: some}, f"{quoted(c.name)} is not null"))
        return Drawn(c.name, "spelled", spelling=spelling) if fine else None

    # ------------------------------------------------------------ constraints

    def _expressions(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Name, expression and columns of what must hold in each row."""
        found = [(c.name, c.expression, c.columns) for c in self._facts.checks]
        if self._facts.leaves and not any(leaf.is_default for leaf in self._facts.leaves):
            text = " or ".join(f"({leaf.expression})" for leaf in self._facts.leaves)
            found.append((f"partitions of {self._facts.short}", text, tuple(self._facts.partitioned_by)))
        return found

    def _free(self, column: str) -> bool:
        return column in self._drawn and column not in self._said and self._drawn[column].type != "picked"

    def _narrow(self) -> None:
        """Bounds and lists that expressions give."""
        for check in self._facts.checks:
            for name in check.columns:
                if self._free(name):
                    self._drawn[name] = checks.narrowed(self._drawn[name], self._facts.columns[name], check.expression)
            self._differ(check.expression)
        leaves = self._facts.leaves
        if not leaves or any(leaf.is_default for leaf in leaves):
            return
        for name in self._facts.partitioned_by:
            d = self._drawn.get(name)
            if d is None or not self._free(name) or d.type not in ("integer", "timestamp", "date"):
                continue
            wide = replace(d, low=-(2.0**62), high=2.0**62)
            segments = [checks.bounds(leaf.expression, wide, self._facts.columns[name]) for leaf in leaves]
            bounded = all(a > -(2.0**62) or b < 2.0**62 for a, b in segments)
            segments = sorted(self._near(d, a, b) for a, b in segments)
            apart = all(a <= b for a, b in segments) and all(x[1] < y[0] for x, y in itertools.pairwise(segments))
            if bounded and apart:
                self._drawn[name] = replace(d, low=segments[0][0], high=segments[-1][1], segments=tuple(segments))

    def _differ(self, expression: str) -> None:
        """Two columns that refer to the same table, and must not to the same row."""
        sides = [re.sub(r"::[\w ]+", "", side).strip('()" ') for side in expression.split(" <> ")]
        if len(sides) != 2:
            return
        columns = [self._drawn.get(name) for name in sides]
        picks = [self._picks.get(c.pick) for c in columns if c is not None]
        if len(picks) < 2 or picks[0] is None or picks[1] is None or columns[0] is None or columns[1] is None:
            return
        a, b = picks[0], picks[1]
        is_same = (a.parent, columns[0].column, a.drawn.high) == (b.parent, columns[1].column, b.drawn.high)
        if is_same and not (b.same or b.before or b.within) and b.drawn.high >= 1:
            self._picks[b.name] = replace(b, other_than=a.name)

    @staticmethod
    def _near(d: Drawn, a: float, b: float) -> tuple[float, float]:
        """Close an interval that is open at one end, so that it is as wide as the range otherwise drawn."""
        wide = d.high - d.low
        if a <= -(2.0**62):
            a = b - wide if b < 2.0**62 else d.low
        return (a, b) if b < 2.0**62 else (a, a + wide)

    def _hold(self) -> None:
        """Try what is drawn; of what does not hold, choose among values that do."""
        groups: list[tuple[set[str], list[tuple[str, str]]]] = []
        for name, expression, columns in self._expressions():
            known = {c for c in columns if c in self._drawn}
            if len(known) < len(set(columns)):
                # A column that the server fills; it knows.
                continue
            joined = [g for g in groups if g[0] & known]
            groups = [g for g in groups if not g[0] & known]
            groups.append(
                (known.union(*(g[0] for g in joined)), [(name, expression), *(x for g in joined for x in g[1])])
            )
        for n, (columns_, expressions) in enumerate(groups):
            self._hold_together(f"@check {n}", sorted(columns_), expressions)

    def _hold_together(self, source: str, columns: Sequence[str], expressions: Sequence[tuple[str, str]]) -> None:
        every = " and ".join(f"({text})" for _, text in expressions)
        if all(self._tried(columns, every)):
            return
        in_keys = {c for k in self._facts.keys for c in self._columns_of(k)}
        free = [c for c in columns if self._free(c) and c not in in_keys]
        single = len(columns) == 1 and self._free(columns[0]) and self._drawn[columns[0]].type != "serial"
        if self._sorted(free, columns, every):
            return
        if (free and len(free) == len(columns)) or single:
            values = self._candidates(columns, every)
            held = checks.held(self._conn, self._facts.columns, values, every)
            rows = list(
                dict.fromkeys(row for row, fine in zip(zip(*values.values(), strict=True), held, strict=True) if fine)
            )
            # NULL passes any check; it is no value to choose by itself.
            full = [row for row in rows if None not in row] or rows
            if full and single and not self._suffices(columns[0], len(full)):
                d = self._facts.columns[columns[0]]
                what = message(
                    "fill-unique-check", type=Name(d.sql_type), n=len(full), constraint=Name(expressions[0][0])
                )
                self._problem(columns[0], what, message("fill-fewer-rows"), len(full))
                return
            if full:
                for at, name in enumerate(columns):
                    values_of = tuple(row[at] for row in full)
                    self._drawn[name] = replace(
                        self._drawn[name], type="choice", values=values_of, weights=(), segments=(), sorted_with=(),
                        source="" if single else source,
                    )  # fmt: skip
                return
        names = ", ".join(name for name, _ in expressions)
        requested = [c for c in columns if c in self._said]
        if requested:
            what = message("fill-check-fails", constraints=Name(names), expression=Name(every[:200]))
            self._problem(requested[0], what, message("fill-change-definition"))
            return
        self._problem(columns[0], message("fill-no-values", constraints=Name(names), expression=Name(every[:200])))

    def _suffices(self, column: str, count: int) -> bool:
        d = self._drawn[column]
        return d.digit is None and (not d.unique or count >= self._rows)

    def _tried(self, columns: Sequence[str], expression: str, rows: int = _TRIED) -> list[bool]:
        return checks.held(self._conn, self._facts.columns, self._sample(columns, rows), expression)

    def _sample(self, columns: Sequence[str], rows: int) -> dict[str, list[str | None]]:
        """Return the values of the first rows and of the last rows."""
        # It imports what takes long.
        import numpy as np

        from pgdyno.load.own.draw import Drawer
        from pgdyno.store import tabular

        f = self._filling()
        drawer = Drawer([*self._done.values(), f])
        ends = [np.arange(min(rows, f.rows)), np.arange(max(0, f.rows - rows), f.rows)]
        index = np.unique(np.concatenate(ends)).astype(np.int64)
        return {c: tabular.text_rows(drawer.column(f.name, c, index)) for c in columns}

    def _sorted(self, free: Sequence[str], columns: Sequence[str], expression: str) -> bool:
        """Columns of one type that are in some order (begins before it ends): sorted in each row."""
        for kind in ("timestamp", "date", "integer", "number"):
            alike = [c for c in free if self._drawn[c].type == kind and not self._drawn[c].segments]
            if not 2 <= len(alike) <= 4:
                continue
            before = dict(self._drawn)
            low = min(self._drawn[c].low for c in alike)
            high = max(self._drawn[c].high for c in alike)
            for order in itertools.permutations(alike):
                for c in alike:
                    self._drawn[c] = replace(before[c], low=low, high=high, sorted_with=tuple(order))
                if all(self._tried(columns, expression)):
                    return True
            self._drawn = before
        return False

    def _candidates(self, columns: Sequence[str], expression: str) -> dict[str, list[str | None]]:
        """Values to choose from: what would be drawn, what the expression names, and NULL."""
        drawn = self._sample(columns, _CANDIDATES // 2)
        named = checks.literals(expression)
        if len(columns) == 1:
            values = drawn[columns[0]]
            return {
                columns[0]: [
                    *dict.fromkeys([*values, *named]),
                    *([] if self._facts.columns[columns[0]].not_null else [None]),
                ]
            }
        out: dict[str, list[str | None]] = {c: list(drawn[c]) for c in columns}
        choices = []
        for c in columns:
            some: list[str | None] = [*drawn[c][:3], *named[:12], *([] if self._facts.columns[c].not_null else [None])]
            choices.append(list(dict.fromkeys(some)))
        for row in itertools.islice(itertools.product(*choices), _CANDIDATES):
            for c, value in zip(columns, row, strict=True):
                out[c].append(value)
        return out

    # ------------------------------------------------------------ keys

    def _columns_of(self, k: Key) -> list[str]:
        """Its columns, and those that its expressions name."""
        out = []
        for part, column in zip(k.parts, k.columns, strict=True):
            if column is not None:
                out.append(column)
                continue
            words = set(re.findall(r'"(?:[^"]|"")+"|\w+', part))
            out += [c for c in self._facts.columns if c in words or quoted(c) in words]
        return list(dict.fromkeys(out))

    def _make_unique(self, k: Key) -> None:
        columns = [c for c in self._columns_of(k) if c in self._drawn]
        if not columns or not self._rows:
            return
        if k.operators and set(k.operators) - {"="}:
            self._make_disjoint(k, columns)
            return
        if any(self._is_unique(c) for c in columns) or any(s <= set(columns) for s in self._satisfied):
            return
        # NULL differs from NULL.
        if any(self._drawn[c].nulls == 1.0 for c in columns):
            return
        if k.predicate and self._spared(k, columns):
            return
        if len(columns) == 1:
            self._make_single(columns[0])
        else:
            self._make_key(k, columns)

    def _is_unique(self, column: str) -> bool:
        d = self._drawn[column]
        if d.type == "picked":
            p = self._picks[d.pick]
            return p.drawn.unique and not self._is_bound(p) and self._identifies(d.pick, [column])
        return d.type == "serial" or d.unique

    @staticmethod
    def _is_bound(p: Pick) -> bool:
        """Return True if the choice of the picked row depends on other rows."""
        return bool(p.same or p.before or p.within or p.other_than)

    def _identifies(self, pick: str, columns: Sequence[str]) -> bool:
        """Return True if the columns identify the row that was picked.

        This holds if they include all columns that the pick supplies, because these are a key of the other table.
        """
        return all(c in columns for c, d in self._drawn.items() if d.pick == pick)

    def _make_disjoint(self, k: Key, columns: Sequence[str]) -> None:
        """Draw consecutive ranges for an exclusion constraint, so that none of them overlap."""
        for column, operator in zip(k.columns, k.operators, strict=False):
            d = self._drawn.get(column or "")
            if d is not None and operator == "&&" and d.type == "spelled" and self._free(d.name):
                if spellings.size_of(d.spelling) < self._rows:
                    break
                self._drawn[d.name] = replace(d, unique=True)
                return
            c = self._facts.columns.get(column or "")
            # A default in all rows would exclude the second.
            if operator == "&&" and c is not None and c.subtype is not None and column not in self._said:
                made = self._type_draw(c)
                if made is not None:
                    self._drawn[c.name] = replace(made, unique=True)
                    self._constants = [n for n in self._constants if n != c.name]
                    return
        what = message("fill-exclusion", constraint=Name(k.name), operators=Name(", ".join(k.operators)))
        self._problem(columns[0], what)

    def _spared(self, k: Key, columns: Sequence[str]) -> bool:
        """Return True if a partial index needs no unique columns, because they have fewer combinations than rows.

        If its predicate is a boolean column, that column becomes false in all rows. Otherwise, record a problem.
        """
        combinations = math.prod(self._size(c) for c in columns)
        if combinations >= self._rows:
            return False
        flag = re.fullmatch(r'\(?"?(\w+)"?\)?', k.predicate)
        if flag is None or not self._free(flag[1]) or self._facts.columns[flag[1]].type != "bool":
            self._problem(
                columns[0],
                message(
                    "fill-partial-index",
                    index=Name(k.name),
                    predicate=Name(k.predicate[:100]),
                    n=combinations,
                    rows=self._rows,
                ),
                most=combinations,
            )
            return True
        self._drawn[flag[1]] = Drawn(flag[1], "choice", values=("false",))
        where = Name(f"{self._facts.short}.{flag[1]}")
        self._notes.append(message("fill-all-false", where=where, index=Name(k.name)))
        return True

    def _size(self, column: str) -> int:
        d = self._drawn[column]
        return size_of(self._picks[d.pick].drawn if d.type == "picked" else d)

    def _make_single(self, column: str) -> None:
        d, c = self._drawn[column], self._facts.columns[column]
        if column in self._said:
            # The user's word; the server says where it does not do.
            return
        if d.type == "picked":
            self._make_pick_unique(column)
        elif d.type == "integer":
            if d.segments:
                self._drawn[column] = replace(d, unique=True)
                self._refuse_too_few(column)
                return
            low = max(int(d.low) if d.low > 1 else 1, self._first(c))
            self._refuse_too_high(c, low)
            self._drawn[column] = Drawn(column, "serial", low)
        elif d.type == "number":
            self._drawn[column] = replace(d, unique=True, high=max(d.high, self._widest(c)))
            self._refuse_too_few(column)
        else:
            self._drawn[column] = replace(d, unique=True, weights=(), sorted_with=(), source="")
            self._refuse_too_few(column)

    def _refuse_too_high(self, c: Column, low: int) -> None:
        if self._rows and low + self._rows - 1 > _INTEGERS[c.type]:
            what = message("fill-too-high", n=self._rows, low=low, type=Name(_NAMES[c.type]))
            self._problem(c.name, what, message("fill-fewer-rows"), _INTEGERS[c.type] - low + 1)

    def _widest(self, c: Column) -> float:
        if c.type == "numeric" and c.modifier >= 4:
            digits = ((c.modifier - 4) >> 16) & 0xFFFF
            return float(10.0 ** (digits - decimals(c)) - 10.0 ** -decimals(c))
        return float(self._rows)

    def _refuse_too_few(self, column: str) -> None:
        if self._size(column) < self._rows:
            self._problem(
                column,
                message(
                    "fill-too-few",
                    type=Name(self._facts.columns[column].sql_type),
                    n=self._size(column),
                    rows=self._rows,
                ),
                message("fill-fewer-rows"),
                self._size(column),
            )

    def _make_pick_unique(self, column: str) -> None:
        d = self._drawn[column]
        p = self._picks[d.pick]
        bound = self._is_bound(p) or not self._identifies(d.pick, [column])
        if bound or self._size(column) < self._rows:
            self._problem(
                column,
                message(
                    "fill-unique-reference",
                    n=self._size(column),
                    table=Name(p.parent) if p.parent else message("fill-a-table"),
                    rows=self._rows,
                ),
                message("fill-fewer-or-more"),
                None if bound else self._size(column),
            )
            return
        self._picks[d.pick] = replace(p, drawn=replace(p.drawn, unique=True, like=""))

    def _make_key(self, k: Key, columns: Sequence[str]) -> None:
        """Draw a key of several columns: each combination occurs once, in an order that mixes all of them."""
        if any(c in self._said and not self._plain(c) for c in columns):
            own = next(
                (c for c in columns if self._free(c) and self._drawn[c].type in ("integer", "text", "uuid")), None
            )
            if own is not None:
                self._make_single(own)
            return
        text = next((c for c in columns if self._free(c) and self._drawn[c].type in ("text", "uuid")), None)
        if text is not None and self._size(text) >= self._rows and self._drawn[text].high >= SHORT:
            self._drawn[text] = replace(self._drawn[text], unique=True)
            return
        free = [c for c in columns if self._can_be_a_digit(c, columns)]
        # One pick may give several of its columns.
        units = {self._drawn[c].pick or c: c for c in free}
        self._bound_numbers(list(units.values()))
        sizes = [self._size(c) for c in units.values()]
        total = math.prod(sizes)
        if total < self._rows:
            self.problems.append(
                Problem(
                    self._name,
                    message(
                        "fill-key-combinations",
                        table=Name(self._name),
                        columns=_names(columns),
                        n=total,
                        rows=self._rows,
                    ),
                    message("fill-fewer-or-more"),
                    total,
                )
            )
            return
        seed = zlib.crc32(f"{self._facts.name}/{k.name}".encode())
        divisor = 1
        for c, size in zip(units.values(), sizes, strict=True):
            digit = Digit(divisor, min(total, 2**62), seed)
            d = self._drawn[c]
            if d.type == "picked":
                p = self._picks[d.pick]
                self._picks[d.pick] = replace(p, drawn=replace(p.drawn, digit=digit))
            else:
                self._drawn[c] = replace(d, digit=digit, weights=(), sorted_with=(), source="")
            divisor *= size
        self._satisfied.append(frozenset(columns))

    def _plain(self, column: str) -> bool:
        d = self._drawn[column]
        d = self._picks[d.pick].drawn if d.type == "picked" else d
        return d.distribution == "uniform" and not d.like and not d.weights and not d.nulls

    def _can_be_a_digit(self, column: str, key: Sequence[str]) -> bool:
        d = self._drawn[column]
        if d.type == "picked":
            p = self._picks[d.pick]
            is_free = not (self._is_bound(p) or p.drawn.digit) and self._plain(column)
            return is_free and self._identifies(d.pick, key)
        return d.digit is None and not d.source and not d.sorted_with and self._plain(column)

    def _bound_numbers(self, columns: Sequence[str]) -> None:
        """Limit a number that counts within the other key columns to the range that it needs.

        The line number of an order is such a number.
        """
        numbers = [c for c in columns if self._drawn[c].type == "integer" and self._free(c)]
        others = [self._size(c) for c in columns if c not in numbers]
        if not numbers or not others:
            return
        needed = max(1, math.ceil(self._rows / math.prod(others)))
        for c in numbers:
            d = self._drawn[c]
            limit = _INTEGERS.get(self._facts.columns[c].type, 2**31)
            high = d.low + max(1, math.ceil(needed ** (1 / len(numbers)))) - 1
            if not d.segments and high <= limit:
                self._drawn[c] = replace(d, high=high)

    # ------------------------------------------------------------ what the reader should know

    def _little_used(self) -> list[Text]:
        out: list[Text] = []
        rows = {f.name: f.rows for f in self._done.values()}
        for p in self._picks.values():
            if p.parent in rows and 0 < self._rows < _LITTLE * rows[p.parent]:
                out.append(
                    message(
                        "fill-little-used",
                        table=Name(self._facts.short),
                        rows=self._rows,
                        n=rows[p.parent],
                        other=Name(p.parent),
                    )
                )
        return out
