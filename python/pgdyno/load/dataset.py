"""Datasets on the server: tables, the SQL that creates them, and the mark that identifies them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Literal, Protocol

from pgdyno import _core
from pgdyno.errors import UsageError, msg
from pgdyno.tpcc import schema as tpcc

#: On feed's time.
INDEXES = ("brin", "btree", "none")
#: What the comments on tables of ours begin with.
MARK = "pgdyno dataset"
_MARK = re.compile(rf"^{MARK} (.*?)(?: \[(.+) (\d+)\])?(?: \((not complete|not vacuumed yet)\))?$")
#: Fields of a dataset that its kind decides.
_SIZED = ("kind", "size", "tables_wanted")
_PAGE, _PAGES_MAX = 8192, 2**32 - 1
#: What an int column can count.
_INT_MAX = 2**31 - 1
#: Of tpcc: beyond it an order line's number would need more memory than a client has.
_WAREHOUSES_MAX, _SETS_MAX = 100_000, 1_000


class DatasetOptions(Protocol):
    """Options of a dataset, by the names of the fields of `Dataset`.

    The table [dataset] of an experiment file has them, and so have the options of `load`.
    """

    @property
    def scale(self) -> Literal["auto"] | int | None:
        """Scale; of kinds that count rows, millions of rows in all tables."""

    @property
    def rows(self) -> int | None:
        """Rows of each table."""

    @property
    def tables(self) -> int | None:
        """Number of tables, or of sets of tables."""


@dataclass(frozen=True)
class DatasetKind:
    """Kind of dataset."""

    name: str
    #: What the size counts: scale, rows or warehouses.
    unit: str
    #: Names that its tables may have.
    tables: re.Pattern[str]
    #: Rows of a unit of --scale.
    rows_per_scale: int
    #: Bytes to reckon with for a unit of the size, keys included: PostgreSQL 15 and 18, blocks of 8 kB.
    unit_bytes: int
    #: Size if neither the user nor the room decides.
    default: int
    #: The size of the whole is given, whatever the number of rows.
    is_scale: bool = False
    #: Its tables are empty until a workload fills them, unless a size is given.
    is_fed: bool = False

    def plan(self, options: DatasetOptions, room_bytes: int | None = None) -> Dataset:
        """Return the dataset that options describe.

        If they leave the size open, the data take `room_bytes`; None means the default size. Raise UsageError if
        options contradict each other.
        """
        return Dataset.sized(self.name, self._size(options, room_bytes), options)

    def _size(self, options: DatasetOptions, room_bytes: int | None) -> int:
        scale, rows, tables = None if options.scale == "auto" else options.scale, options.rows, options.tables or 1
        if scale is not None and rows is not None:
            raise UsageError(msg("error-scale-rows-say-same"), msg("remedy-give-one-them"))
        if self.is_scale and rows is not None:
            raise UsageError(msg("error-size", kind=self.name, word=f"--{self.unit}"), msg("remedy-leave-rows-out"))
        if rows is not None:
            return rows
        if scale is not None:
            # All tables together, as a scale is the size of the whole.
            return scale if self.is_scale else scale * self.rows_per_scale // tables
        if room_bytes is None or self.is_fed:
            return self.default
        return max(1, room_bytes // self.unit_bytes // tables)


_TPCC = r"tpcc_(item|warehouse|district|customer|history|orders|new_order|order_line|stock)\d*(_\d+)?"
#: Kinds of datasets that pgdyno makes, by name.
KINDS = {
    k.name: k
    for k in (
        DatasetKind(
            "tpcb", "scale", re.compile(r"pgbench_(accounts(_\d+)?|branches|history|tellers)"),
            rows_per_scale=100_000, unit_bytes=15_100_000, default=1, is_scale=True,
        ),
        DatasetKind(
            "pk", "rows", re.compile("pk"), rows_per_scale=1_000_000, unit_bytes=151, default=50_000_000
        ),
        DatasetKind(
            "feed", "rows", re.compile(r"feed\d*"), rows_per_scale=1_000_000, unit_bytes=50, default=0, is_fed=True
        ),
        DatasetKind(
            "tpcc", "warehouses", re.compile(_TPCC),
            rows_per_scale=100_000, unit_bytes=105_000_000, default=1, is_scale=True,
        ),
    )
}  # fmt: skip


def kind_named(name: str) -> DatasetKind:
    """Return a kind by its name. Raise UsageError if there is none."""
    if name not in KINDS:
        raise UsageError(msg("error-there-no-dataset", kind=name), msg("remedy-choices", choices=", ".join(KINDS)))
    return KINDS[name]


@dataclass(frozen=True)
class Dataset:
    """A dataset of a size; `size` is tpcb's scale, and of the others the rows of each table."""

    kind: str
    size: int
    tables_wanted: int = 1
    partitions: int = 0
    fillfactor: int = 100
    unlogged: bool = False
    tablespace: str = ""
    index_tablespace: str = ""
    #: On feed's time: brin, btree or none.
    index: str = "brin"
    #: Of tpcc: what its rows are drawn from, and whether they are bound to each other by foreign keys.
    seed: int = 1
    foreign_keys: bool = False
    #: Of tpcc: what was loaded is checked; no part of what it is.
    check: bool = field(default=True, compare=False)
    core: _core.Dataset = field(init=False, repr=False, compare=False)

    @classmethod
    def sized(cls, kind: str, size: int, options: DatasetOptions) -> Dataset:
        """Return a dataset of a kind and size; its other fields are the options of the same names."""
        given = {f.name: getattr(options, f.name) for f in fields(cls) if f.init and f.name not in _SIZED}
        return cls(kind, size, tables_wanted=options.tables or 1, **given)

    def __post_init__(self) -> None:
        kind_named(self.kind)
        if self.index not in INDEXES or (self.index != "brin" and self.kind != "feed"):
            raise UsageError(
                msg("error-no-index", kind=self.kind, index=self.index),
                msg("remedy-feed-has", indexes=", ".join(INDEXES)),
            )
        if self.kind == "feed" and self.size > _INT_MAX:
            raise UsageError(msg("error-feed-int-id-at-most", int_max=f"{_INT_MAX:,}"), msg("remedy-use-more-tables"))
        if self.kind == "tpcb" and self.size < 1:
            raise UsageError(msg("error-tpcb-needs-scale-1-or"), msg("remedy-scale-100-1-5-gb"))
        if self.kind == "tpcb" and self.size * 10 > _INT_MAX:
            raise UsageError(
                msg("error-tpcb-int-for-tellers-scale", value=f"{_INT_MAX // 10:,}"), msg("remedy-use-smaller-scale")
            )
        if self.kind == "tpcc" and not 1 <= self.size <= _WAREHOUSES_MAX:
            raise UsageError(
                msg("error-tpcc-needs-1-warehouses-each", warehouses_max=f"{_WAREHOUSES_MAX:,}"),
                msg("remedy-warehouses-10-about-1-gb"),
            )
        if self.kind != "tpcc" and (self.seed != 1 or self.foreign_keys):
            raise UsageError(msg("error-no-seed-no-foreign-keys", kind=self.kind), msg("remedy-tpcc-has-them"))
        if self.kind not in ("tpcb", "tpcc") and self.partitions:
            raise UsageError(msg("error-no-partitions", kind=self.kind), msg("remedy-leave-partitions-out"))
        if self.kind not in ("feed", "tpcc") and self.tables_wanted != 1:
            raise UsageError(msg("error-tables-are-fixed", kind=self.kind), msg("remedy-leave-tables-out"))
        if self.kind == "tpcc" and self.tables_wanted > _SETS_MAX:
            raise UsageError(msg("error-tpcc-at-most-sets", sets_max=_SETS_MAX), msg("remedy-use-more-warehouses"))
        try:
            core = _core.Dataset(
                self.kind,
                self.size,
                tables=self.tables_wanted,
                partitions=self.partitions,
                fillfactor=self.fillfactor,
                seed=self.seed,
            )
        except OverflowError as e:
            raise UsageError(
                msg("error-cannot-be-large", kind=self.kind, name=self.name), msg("remedy-use-smaller-numbers")
            ) from e
        except _core.CoreError as e:
            raise UsageError(f"{self.kind}: {e}") from e
        object.__setattr__(self, "core", core)
        for table in core.tables:
            if max(table.heap_bytes, table.key_bytes) // _PAGE >= _PAGES_MAX:
                raise UsageError(msg("error-would-be-larger-than-32", name=table.name), msg("remedy-use-partitions"))

    # ------------------------------------------------------------ facts

    @cached_property
    def tables(self) -> list[_core.Table]:
        """Its tables; partitions stand for their parent."""
        return self.core.tables

    @cached_property
    def parents(self) -> dict[str, _core.Table]:
        """The partitioned tables, each with its first partition."""
        found: dict[str, _core.Table] = {}
        for t in self.tables:
            if t.partition is not None:
                found.setdefault(t.partition[0], t)
        return found

    @cached_property
    def relations(self) -> list[str]:
        """All its tables, the parents of partitions before them."""
        return [n for t in self.tables for n in self._with_parent(t)]

    def _with_parent(self, table: _core.Table) -> list[str]:
        """Return a table's name, after the name of its parent if it is the first partition."""
        first = table.partition is not None and self.parents[table.partition[0]].name == table.name
        return [table.partition[0], table.name] if first and table.partition is not None else [table.name]

    @property
    def rows(self) -> int:
        """Rows in all."""
        return sum(t.end - t.first for t in self.tables)

    @property
    def rows_of_key(self) -> int:
        """Rows that a workload draws its keys from: of the accounts, or of each table."""
        return self.size * kind.rows_per_scale if (kind := KINDS[self.kind]).is_scale else self.size

    @property
    def heap_bytes(self) -> int:
        """Bytes of all heaps."""
        return sum(t.heap_bytes for t in self.tables)

    @property
    def key_bytes(self) -> int:
        """Bytes of all primary keys."""
        return sum(t.key_bytes for t in self.tables)

    @property
    def index_bytes(self) -> int:
        """Bytes of the other indexes whose pages we can write."""
        return sum(t.index_bytes for t in self.tables)

    @property
    def total_bytes(self) -> int:
        """Bytes of all that we can write."""
        return self.heap_bytes + self.key_bytes + self.index_bytes

    @property
    def name(self) -> str:
        """Kind, size, and what differs from the default, in one line."""
        parts = [self.kind, f"{KINDS[self.kind].unit}={self.size}"]
        if self.kind == "feed":
            parts.append(f"tables={self.tables_wanted}")
        if self.kind == "tpcc" and self.tables_wanted != 1:
            parts.append(f"sets={self.tables_wanted}")
        if self.seed != 1:
            parts.append(f"seed={self.seed}")
        if self.foreign_keys:
            parts.append("foreign_keys")
        if self.partitions:
            parts.append(f"partitions={self.partitions}")
        if self.fillfactor != 100:
            parts.append(f"fillfactor={self.fillfactor}")
        if self.unlogged:
            parts.append("unlogged")
        if self.index != "brin":
            parts.append(f"index={self.index}")
        for word, value in (("tablespace", self.tablespace), ("index_tablespace", self.index_tablespace)):
            if value:
                parts.append(f"{word}={value}")
        return " ".join(parts)

    # ------------------------------------------------------------ SQL

    def create(self) -> list[str]:
        """CREATE TABLE, for all."""
        unlogged = " unlogged" if self.unlogged else ""
        space = f" tablespace {quoted(self.tablespace)}" if self.tablespace else ""
        statements = []
        for table in self.tables:
            with_ = f" with (fillfactor={table.fillfactor})" if table.key or table.fillfactor != 100 else ""
            columns = ", ".join(" ".join(filter(None, column)) for column in table.columns)
            if table.partition is None:
                statements.append(f"create{unlogged} table {table.name} ({columns}){with_}{space}")
                continue
            parent, column, first, end = table.partition
            if self.parents[parent].name == table.name:
                statements.append(f"create table {parent} ({columns}) partition by range ({column}){space}")
            low, high = ("minvalue" if first is None else first), ("maxvalue" if end is None else end)
            statements.append(
                f"create{unlogged} table {table.name} partition of {parent} "
                f"for values from ({low}) to ({high}){with_}{space}"
            )
        return statements

    def primary_keys(self) -> list[str]:
        """ALTER TABLE … ADD PRIMARY KEY, for each table; independent of each other."""
        return [self._primary_key(t.name, t.key) for t in self.tables if t.key]

    def parent_keys(self) -> list[str]:
        """Return the SQL that adds the primary keys of partitioned tables.

        These take over the primary keys of the partitions.
        """
        return [self._primary_key(parent, first.key) for parent, first in self.parents.items() if first.key]

    def parent_indexes(self) -> list[str]:
        """Return the SQL that creates the other indexes of partitioned tables.

        These take over the indexes of the partitions.
        """
        named = [(p, i.removesuffix("_1"), c) for p, first in self.parents.items() for i, c, _ in first.indexes]
        return [f"create index {index} on {parent} ({', '.join(columns)})" for parent, index, columns in named]

    def _primary_key(self, table: str, key: list[str]) -> str:
        space = f" using index tablespace {quoted(self.index_tablespace)}" if self.index_tablespace else ""
        return f"alter table {table} add primary key ({', '.join(key)}){space}"

    def indexes(self, *, written: bool | None = None, texts: bool = False) -> list[str]:
        """Return CREATE INDEX for all indexes that are no primary keys.

        The statements are independent of each other. `written` True selects only indexes whose pages pgdyno can write
        directly; False selects only the others. None selects all. Pages of indexes on texts can be written directly if
        `texts` is True.
        """
        space = f" tablespace {quoted(self.index_tablespace)}" if self.index_tablespace else ""
        timed = [t for t in self.tables if t.brin and self.index != "none"] if written is not True else []
        others = [(t, i, c) for t in self.tables for i, c, text in t.indexes if written in (None, texts or not text)]
        return [
            *(f"create index idx_{t.name} on {t.name} using {self.index} ({t.brin}){space}" for t in timed),
            *(f"create index {i} on {t.name} ({', '.join(c)}){space}" for t, i, c in others),
        ]

    def finish(self) -> list[str]:
        """Return the SQL to run once tables and indexes exist: tpcc's functions and foreign keys."""
        if self.kind != "tpcc":
            return []
        sets = self.tables_wanted
        functions = [f for n in range(sets) for f in _core.tpcc_functions(n, sets)]
        comments = [f"comment on function {tpcc.signature(f)} is {literal(f'{MARK} {self.kind}')}" for f in functions]
        keys = [k for n in range(sets) for k in tpcc.foreign_keys(n, sets)] if self.foreign_keys else []
        return [*functions, *comments, *keys]

    def marks(self, state: str = "") -> list[str]:
        """Return the SQL that writes the marks: comments on all tables that name pgdyno and the dataset.

        Each mark is bound to the table's name and OID. A table that was renamed, or restored from a dump, is therefore
        not mistaken for one that pgdyno created.
        """
        return list(self._marks(state).values())

    def create_marked(self, state: str) -> list[str]:
        """CREATE TABLE and its mark, for each table in turn; a parent before its partitions."""
        marks, out = self._marks(state), []
        for name, create in zip(self.relations, self.create(), strict=True):
            out += [create, marks[name]]
        return out

    def _marks(self, state: str) -> dict[str, str]:
        return {
            name: block(f"execute pg_catalog.format('comment on table {name} is %L'::text, {self._mark(name, state)});")
            for name in self.relations
        }

    def refuse_another(self, table: str, state: str) -> str:
        """Return SQL that fails if `table` is not the table that pgdyno has marked."""
        message = literal(f"{table} is another table by now")
        comment = f"pg_catalog.obj_description({literal(table)}::pg_catalog.regclass::pg_catalog.oid, 'pg_class'::name)"
        return block(f"if {comment} is distinct from {self._mark(table, state)} then raise {message}; end if;")

    def _mark(self, table: str, state: str) -> str:
        """Return the SQL expression for a mark.

        It states all types explicitly. Otherwise a role that may create functions or operators in this database could
        define one that fits better than the server's own.
        """
        begin, end = literal(f"{MARK} {self.name} [{table} "), literal(f"] ({state})" if state else "]")
        oid = f"{literal(table)}::pg_catalog.regclass::pg_catalog.oid::pg_catalog.text"
        return f"pg_catalog.concat({begin}::pg_catalog.text, {oid}, {end}::pg_catalog.text)"


@dataclass(frozen=True)
class Mark:
    """Content of the mark in a table's comment."""

    #: As Dataset.name.
    name: str
    #: The table that it was written on; empty and 0 in marks that are older than that.
    table: str
    oid: int
    #: What is missing: "not complete", "not vacuumed yet"; or nothing.
    state: str

    def is_of(self, table: str, oid: int) -> bool:
        """Return True if the mark was written on this table."""
        return (self.table, self.oid) == (table, oid)


def mark_of(comment: str | None) -> Mark | None:
    """Return the mark that a table comment contains, or None if it is no pgdyno mark."""
    match = _MARK.match(comment or "")
    return Mark(match[1], match[2] or "", int(match[3] or 0), match[4] or "") if match else None


def quoted(name: str) -> str:
    """Return `name` as a quoted SQL identifier."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def block(body: str, declare: str = "") -> str:
    """Return an anonymous block of PL/pgSQL, quoted safely whatever names `body` contains."""
    tag = "$pgdyno$"
    while tag in body:
        tag = f"{tag[:-1]}_$"
    return f"do {tag} {declare} begin {body} end {tag}"


def literal(text: str) -> str:
    """Return `text` as an SQL string constant."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
