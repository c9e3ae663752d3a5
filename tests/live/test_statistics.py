"""Statistics that are handed over with files: what the server's own ANALYZE finds in them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import Setting
from pgdyno.load import loader
from pgdyno.load.dataset import Dataset
from pgdyno.load.direct import Direct
from pgdyno.load.statistics import array, handed_over
from pgdyno.stream.stream import RunStream

from tests.live.test_load import direct, stopped
from tests.support.server import Server
from tests.support.versions import folder_of

#: Rows that ANALYZE looks at of each table.
SAMPLE = 30_000
LISTS = ("most_common_vals", "histogram_bounds")
SIZES = """
select relname, relpages, reltuples, relallvisible from pg_class c join pg_namespace n on n.oid = relnamespace
where nspname = 'public' and relkind in ('r', 'i', 'p') order by 1
"""
ROWS = "select relname, n_live_tup, n_dead_tup, n_mod_since_analyze from pg_stat_user_tables order by 1"


def columns(conn: psycopg.Connection[Any]) -> dict[tuple[str, str], dict[str, Any]]:
    lists = ", ".join(f"{name}::text::text[]" for name in LISTS)
    rows = conn.execute(
        f"select tablename, attname, null_frac, avg_width, n_distinct, correlation, most_common_freqs, {lists} "
        "from pg_stats where schemaname = 'public'".encode()
    )
    names = ("null_frac", "avg_width", "n_distinct", "correlation", "most_common_freqs", *LISTS)
    return {(table, column): dict(zip(names, values, strict=True)) for table, column, *values in rows}


def analyzed(conn: psycopg.Connection[Any]) -> set[str]:
    """The tables with rows on which ANALYZE has run."""
    query = "select relname from pg_stat_user_tables where last_analyze is not null and n_live_tup > 0"
    return {name for (name,) in conn.execute(query.encode())}


def near(ours: dict[str, Any], theirs: dict[str, Any], rows: int) -> bool:
    """Two samples of the same column. Fractions within six standard errors of the difference of two."""

    def alike(a: float, b: float) -> bool:
        return abs(a - b) <= 6 * (2 * max(a * (1 - a), 1 / SAMPLE) / SAMPLE) ** 0.5

    def distinct(s: dict[str, Any]) -> float:
        n: float = s["n_distinct"]
        return -n * rows if n < 0 else n

    first = [dict(zip(s["most_common_vals"] or (), s["most_common_freqs"] or (), strict=True)) for s in (ours, theirs)]
    # What is listed in one sample alone is seldom in the other.
    common = all(
        alike(first[0].get(v, 0.0), first[1].get(v, 0.0)) for v in {*first[0], *first[1]} if len(first[0]) < 20
    )
    bounds = [len(s["histogram_bounds"] or ()) for s in (ours, theirs)]
    return (
        alike(ours["null_frac"], theirs["null_frac"])
        and abs(ours["avg_width"] - theirs["avg_width"]) <= 1 + 0.02 * theirs["avg_width"]
        and abs(distinct(ours) - distinct(theirs)) <= 0.1 * distinct(theirs)
        and abs(ours["correlation"] - theirs["correlation"]) <= 0.05
        and common
        and bounds[0] == bounds[1]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (Dataset("tpcc", 1), ("tpcc", "--warehouses", 1)),
        pytest.param(Dataset("tpcb", 1), ("tpcb", "--scale", 1), marks=pytest.mark.slow),
        pytest.param(Dataset("pk", 20_000), ("pk", "--rows", 20_000), marks=pytest.mark.slow),
        pytest.param(Dataset("feed", 200_000), ("feed", "--rows", 200_000), marks=pytest.mark.slow),
    ],
)
def test_they_are_what_analyze_finds(dataset: Dataset, options: tuple[Any, ...]) -> None:
    server = stopped()
    try:
        done = direct(server, *options)
        assert done.code == 0, done.err
        with server, psycopg.connect(server.conninfo(), autocommit=True) as conn:
            assert analyzed(conn) == set()
            ours, sizes, counts = columns(conn), conn.execute(SIZES).fetchall(), conn.execute(ROWS).fetchall()
            conn.execute("vacuum (freeze, analyze)")
            conn.execute("select pg_stat_force_next_flush()")
            theirs = columns(conn)
            assert sizes == conn.execute(SIZES).fetchall()
            assert counts == conn.execute(ROWS).fetchall()
        assert ours.keys() == theirs.keys()
        rows = {t.name: t.end - t.first for t in dataset.tables}
        whole = {c for c in ours if rows[c[0]] <= SAMPLE}
        # Of small tables both look at every row.
        assert {c: ours[c] for c in whole} == {c: theirs[c] for c in whole}
        wrong = {c: (ours[c], theirs[c]) for c in ours.keys() - whole if not near(ours[c], theirs[c], rows[c[0]])}
        assert not wrong
    finally:
        server.remove()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "locale", "options"), [(15, "C", ()), (18, "C.UTF-8", ()), (18, "C", ("--partitions", 2))]
)
def test_elsewhere_analyze_finds_them(version: int, locale: str, options: tuple[Any, ...]) -> None:
    """On old versions; of partitions; where texts do not stand in the order of their bytes."""
    server = stopped(bin_folder=folder_of(version), initdb=(f"--locale={locale}",))
    try:
        done = direct(server, "tpcc", "--warehouses", 2, *options)
        assert done.code == 0, done.err
        with server, psycopg.connect(server.conninfo()) as conn:
            named = {table for table, _ in columns(conn)}
            assert {"tpcc_item", "tpcc_stock", "tpcc_customer"} <= named
            # Statistics of a partitioned table are of all partitions.
            alone = {"tpcc_item", "tpcc_warehouse", "tpcc_district"} if options else set()
            assert analyzed(conn) >= {t for t in named - alone if t.endswith(("_1", "_2")) or not options}
    finally:
        server.remove()


def test_what_cannot_be_sampled_is_analyzed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Direct, "_statistics", fails)
    with EmbeddedCluster([Setting("listen_addresses", "", "private-socket")]) as cluster:
        loader.into_server(cluster, Dataset("pk", 1_000), force=False, replace=False, stream=RunStream())
        with psycopg.connect(cluster.target.conninfo) as after:
            assert analyzed(after) == {"pk"}


def test_what_is_not_taken_is_analyzed(server: Server, database: str) -> None:
    """And names are names, whatever stands in them."""
    table = 'it\'s a "table"\\'
    quoted = table.replace('"', '""')
    data = Dataset("pk", 1_000)
    [found] = [data.core.statistics(n, 100) for n, _ in enumerate(data.tables)]
    with psycopg.connect(server.conninfo(dbname=database), autocommit=True) as conn:
        conn.execute(f'create schema "{quoted}"'.encode())
        conn.execute(f'set search_path to "{quoted}"'.encode())
        made = ", ".join(f"{name} {kind}" for name, kind, _ in data.tables[0].columns)
        conn.execute(f"create table pk ({made}, primary key (id))".encode())
        query = "select attname, n_distinct from pg_stats where schemaname = %s order by attname"
        statements = handed_over(table, "pk", 1_000, found)
        conn.execute(statements.rows.encode())
        conn.execute(statements.rest.encode())
        taken = conn.execute(query, [table]).fetchall()
        assert [name for name, _ in taken] == sorted(name for name, *_ in data.tables[0].columns)
        assert conn.execute("select reltuples from pg_class where oid = 'pk'::regclass").fetchone() == (1000,)
        # Defects that we could have: a bound that is no value of the type, which is a warning, and a column that is
        # not there, which is an error: ANALYZE finds an empty table.
        for right, wrong in (
            ("'histogram_bounds', '{", "'histogram_bounds', '{x,"),
            ("'attname', 'id'", "'attname', 'x'"),
        ):
            conn.execute(statements.rest.encode())
            assert conn.execute("select reltuples from pg_class where oid = 'pk'::regclass").fetchone() == (1000,)
            assert right in statements.rest
            conn.execute(statements.rest.replace(right, wrong, 1).encode())
            assert conn.execute("select reltuples from pg_class where oid = 'pk'::regclass").fetchone() == (0,)


def test_values_are_written_as_the_server_reads_them(server: Server) -> None:
    with psycopg.connect(server.conninfo()) as conn:
        for kind, values, expected in (
            ("numeric(12,2)", [0, 7, -1234, 10**9], "{0.00,0.07,-12.34,10000000.00}"),
            ("numeric(4,4)", [1, 5000], "{0.0001,0.5000}"),
            ("timestamp", [0, 1_500_000, 9497 * 86_400_000_000], None),
            ("text", ['a"b', "a\\b", "it's", "", "a,b", "NULL"], None),
            ("double precision", [0.1, -1e300, 5e-324], "{0.1,-1e+300,5e-324}"),
            ("int", [-5, 0], "{-5,0}"),
        ):
            row = conn.execute(
                f"select {array(kind, values)}::{kind}[]::text, {array(kind, values)}::{kind}[]".encode()
            )
            text, back = row.fetchone() or ("", [])
            assert expected is None or text == expected
            if kind == "text":
                assert back == values
        row = conn.execute(f"select ({array('timestamp', [9497 * 86_400_000_000])}::timestamp[])[1]::text".encode())
        assert row.fetchone() == ("2026-01-01 00:00:00",)
