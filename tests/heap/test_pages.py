"""Pages by arithmetic, against the same by loops, and against what servers wrote."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pgdyno import _core

from tests.heap import reference
from tests.heap.reference import PAGE
from tests.support.server import Server
from tests.support.versions import folder_of

KINDS = st.one_of(st.sampled_from(["int4", "int8", "float8", "text"]), st.integers(1, 300).map(str))


def value_of(kind: str) -> st.SearchStrategy[Any]:
    if kind == "int4":
        return st.integers(-(2**31), 2**31 - 1)
    if kind == "int8":
        return st.integers(-(2**63), 2**63 - 1)
    if kind == "float8":
        return st.floats(allow_nan=False)
    letters = st.characters(min_codepoint=32, max_codepoint=126)
    # Around the length from which on a varlena has a long header.
    lengths = st.one_of(st.integers(0, 5), st.integers(120, 132)) if kind == "text" else st.integers(0, int(kind))
    return lengths.flatmap(lambda n: st.text(letters, min_size=n, max_size=n))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[Any]]]:
    """Columns, and rows of any shape: NULLs here and there, texts short and long."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=12).filter(lambda ks: sum(_widest(k) for k in ks) < 1900))
    row = st.tuples(*(st.one_of(st.none(), value_of(k)) if draw(st.booleans()) else value_of(k) for k in kinds))
    return kinds, [list(r) for r in draw(st.lists(row, min_size=1, max_size=20))]


def _widest(kind: str) -> int:
    return 140 if kind == "text" else 8 if kind in ("int4", "int8", "float8") else int(kind)


@settings(max_examples=300, deadline=None)
@given(tables(), st.integers(0, 2**32 - 2), st.integers(0, 2**32 - 1))
def test_heap_pages_equal_the_reference(table: tuple[list[str], list[list[Any]]], block: int, xmin: int) -> None:
    kinds, rows = table
    rows = (rows * 20)[:400]
    assert _core.heap_page(kinds, rows, block=block, xmin=xmin) == reference.heap_page(
        kinds, rows, block=block, xmin=xmin
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**64), st.integers(0, 2**32 - 1))
def test_checksums_equal_the_reference(seed: int, block: int) -> None:
    page = random.Random(seed).randbytes(PAGE)
    assert _core.page_checksum(page, block) == reference.checksum(page, block)


@pytest.mark.slow
@pytest.mark.parametrize("width", [4, 8])
def test_b_trees_equal_the_reference(width: int) -> None:
    # Everything around the sizes where a leaf, an inner page and a level overflow, and some in between.
    leaf, inner = 366, 285
    edges = [0, 1, 2, leaf, leaf * 2, leaf * inner, leaf * (inner + 1), leaf * inner * 2]
    sizes = {max(0, e + d) for e in edges for d in (-1, 0, 1, 2)} | {
        random.Random(5).randrange(300_000) for _ in range(5)
    }
    for rows in sorted(sizes):
        expected = reference.BTree(rows, width, 61).bytes()
        assert _core.btree_pages(rows, width, 61, 0, 1 << 20) == expected, rows


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 400_000), st.sampled_from([4, 8]), st.integers(1, 226), st.data())
def test_any_part_of_a_b_tree_is_the_part_of_the_whole(
    rows: int, width: int, on_page: int, data: st.DataObject
) -> None:
    whole = _core.btree_pages(rows, width, on_page, 0, 1 << 20)
    first = data.draw(st.integers(0, len(whole) // PAGE))
    count = data.draw(st.integers(0, 700))
    part = _core.btree_pages(rows, width, on_page, first, count)
    assert part == whole[first * PAGE : (first + count) * PAGE]


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 2 * 10**11), st.data())
def test_b_trees_of_any_size_hang_together(rows: int, data: st.DataObject) -> None:
    """Every block is a page that its neighbours and its parent's links name."""
    width = 4 if rows < 2**31 else 8
    meta = _core.btree_pages(rows, width, 61, 0, 1)
    root, level = struct.unpack_from("<II", meta, 24 + 8)
    block, key = root, 0
    # From the root down along a random path.
    while True:
        page = _core.btree_pages(rows, width, 61, block, 1)
        before, after, here, flags = struct.unpack_from("<IIIH", page, PAGE - 16)
        assert here == level and bool(flags & 1) == (level == 0) and bool(flags & 2) == (block == root)
        for side, at in ((before, 4), (after, 0)):
            if side:
                neighbour = _core.btree_pages(rows, width, 61, side, 1)
                assert struct.unpack_from("<I", neighbour, PAGE - 16 + at)[0] == block
                assert struct.unpack_from("<I", neighbour, PAGE - 16 + 8)[0] == level
        pointers = (struct.unpack_from("<H", page, 12)[0] - 24) // 4
        first = 2 if after else 1
        number = data.draw(st.integers(first, pointers))
        offset = struct.unpack_from("<I", page, 24 + 4 * (number - 1))[0] & 0x7FFF
        high, low, posid, info = struct.unpack_from("<HHHH", page, offset)
        size = info & 0x1FFF
        found = int.from_bytes(page[offset + 8 : offset + 8 + width], "little") if size > 8 else key
        if level == 0:
            assert (found - 1) // 61 == (high << 16 | low) & 0xFFFFFFFF and (found - 1) % 61 + 1 == posid
            assert number > first or found == (key or 1)
            return
        block, level, key = high << 16 | low, level - 1, found if number > first else key


# ------------------------------------------------------------------ against servers


#: The newest each time, the others in `make test-all`.
SERVERS = [*(pytest.param(n, marks=pytest.mark.slow) for n in (14, 15, 16, 17)), 18]


@pytest.fixture(scope="module", params=SERVERS)
def any_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(bin_folder=folder_of(request.param), conf="shared_buffers=512MB\nmaintenance_work_mem=256MB") as s:
        yield s


def compare(server: Server, dataset: _core.Dataset) -> None:
    """Loads by COPY FREEZE and CREATE INDEX, and compares every page of every file; LSN and checksum aside, and whose
    rows they are.
    """
    config = _core.ConnConfig(host=str(server.socket), port=server.port, user="postgres", dbname="postgres")
    for number, table in enumerate(dataset.tables):
        columns = ", ".join(" ".join(c) for c in table.columns)
        steps: list[str | tuple[str, int, int, int]] = [
            f"drop table if exists {table.name}",
            "begin",
            f"create table {table.name} ({columns}) with (fillfactor={table.fillfactor})",
            (f"copy {table.name} from stdin (format binary, freeze on)", number, table.first, table.end),
            "commit",
        ]
        if table.key:
            steps.append(f"alter table {table.name} add primary key ({', '.join(table.key)})")
        dataset.carry_out(config, [[*steps, f"vacuum {table.name}", "checkpoint"]], lambda *_: None)
        ((heap, key),) = server.sql(
            f"""select pg_relation_filepath('{table.name}'), pg_relation_filepath(
                (select indexrelid from pg_index where indrelid = '{table.name}'::regclass))"""
        )
        for part, path in (("heap", heap), ("visibility", f"{heap}_vm"), ("key", key)):
            if path is None or table.end == table.first:
                continue
            first = b""
            blocks, segment = 0, 0
            while (file := server.data / (path + (f".{segment}" if segment else ""))).exists():
                with file.open("rb") as f:
                    while theirs := f.read(4096 * PAGE):
                        first = first or theirs[:PAGE]
                        compare_pages(dataset, number, part, blocks, theirs, first)
                        blocks += len(theirs) // PAGE
                segment += 1
            assert not dataset.pages(number, part, blocks, 1), f"{table.name}: the server's {part} has fewer pages"
        server.sql(f"drop table {table.name}")


def compare_pages(dataset: _core.Dataset, table: int, part: str, block: int, theirs: bytes, first: bytes) -> None:
    xmin, cmin = 2, 0
    if part == "heap":
        offset = struct.unpack_from("<I", first, 24)[0] & 0x7FFF
        xmin, _, cmin = struct.unpack_from("<III", first, offset)
    ours = dataset.pages(table, part, block, len(theirs) // PAGE, xmin=xmin, cmin=cmin)
    assert len(ours) == len(theirs)
    for i in range(0, len(theirs), PAGE):
        # The LSN and the checksum are the page's first ten bytes.
        assert ours[i + 10 : i + PAGE] == theirs[i + 10 : i + PAGE], f"{part}, block {block + i // PAGE}"


@pytest.mark.parametrize(
    "dataset",
    [("tpcb", 3, {}), ("tpcb", 1, {"partitions": 3, "fillfactor": 70}), ("pk", 150_000, {}), ("feed", 70_000, {})],
    ids=lambda d: f"{d[0]}-{d[1]}",
)
def test_every_page_is_what_the_server_would_have_written(any_server: Server, dataset: Any) -> None:
    kind, size, options = dataset
    compare(any_server, _core.Dataset(kind, size, **options))


@pytest.mark.slow
def test_pages_across_a_segment_and_several_pages_of_the_map(any_server: Server) -> None:
    """1.04 GB: two segments, five pages of the visibility map, three levels of the key."""
    if any_server.sql("show server_version_num")[0][0] < "180000":
        pytest.skip("one version is enough for a gigabyte")
    compare(any_server, _core.Dataset("tpcb", 81))


def test_wide_keys_are_what_the_server_would_have_written(any_server: Server) -> None:
    """A bigint key, which the datasets have only from two billion rows on."""
    any_server.sql("drop table if exists wide; create table wide (id bigint)")
    any_server.sql(
        "insert into wide select generate_series(1, 120000); alter table wide add primary key (id); checkpoint"
    )
    ((path, on_page),) = any_server.sql(
        "select pg_relation_filepath('wide_pkey'), (select count(*) from wide where ctid < '(1,0)')"
    )
    theirs = (any_server.data / path).read_bytes()
    ours = _core.btree_pages(120_000, 8, on_page, 0, 1 << 20)
    assert len(ours) == len(theirs)
    for i in range(0, len(theirs), PAGE):
        assert ours[i + 10 : i + PAGE] == theirs[i + 10 : i + PAGE], i // PAGE


@pytest.mark.parametrize("each", [1, 3, 700, 200_000])
def test_a_b_tree_with_equal_keys_is_sound(server: Server, each: int) -> None:
    """Of no other size than any: leaves between which keys are equal are told apart by the rows' addresses."""
    rows = 120_000
    name = f"equal_{each}"
    server.sql(
        f"create extension if not exists amcheck; create table {name} (k int); "
        f"insert into {name} select g / {each} + 1 from generate_series(0, {rows - 1}) g; create index on {name} (k); "
        "checkpoint"
    )
    ((path, on_page),) = server.sql(
        f"select pg_relation_filepath('{name}_k_idx'), (select count(*) from {name} where ctid < '(1,0)')"
    )
    server.stop()
    pages = bytearray(_core.btree_pages(rows, 4, on_page, 0, 1 << 20, each=each))
    for block in range(len(pages) // PAGE):
        page = bytes(pages[block * PAGE : (block + 1) * PAGE])
        struct.pack_into("<H", pages, block * PAGE + 8, _core.page_checksum(page, block))
    (server.data / path).write_bytes(pages)
    server.start()
    server.sql(f"select bt_index_parent_check('{name}_k_idx', true, true)")
    with psycopg.connect(server.conninfo()) as conn:
        conn.execute("set enable_seqscan = off")
        assert conn.execute(f"select count(*) from {name} where k = 1".encode()).fetchone() == (min(each, rows),)
    server.sql(f"drop table {name}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables())
def test_rows_of_any_shape_are_what_the_server_would_have_written(
    server: Server, table: tuple[list[str], list[list[Any]]]
) -> None:
    kinds, rows = table
    names = {"int4": "int", "int8": "bigint", "float8": "double precision", "text": "text"}
    columns = ", ".join(f"c{i} {names.get(k) or f'char({k})'}" for i, k in enumerate(kinds))
    with psycopg.connect(server.conninfo()) as conn:
        conn.execute(f"create extension if not exists pageinspect; create table shapes ({columns})".encode())
        cursor = conn.cursor()
        with cursor.copy("copy shapes from stdin (freeze on)") as copy:
            for row in rows:
                copy.write_row(row)
        found = conn.execute("select get_raw_page('shapes', 0)").fetchone()
        conn.rollback()
    assert found is not None
    theirs = found[0]
    offset = struct.unpack_from("<I", theirs, 24)[0] & 0x7FFF
    xmin, _, cmin = struct.unpack_from("<III", theirs, offset)
    ours, _ = _core.heap_page(kinds, rows, xmin=xmin, cmin=cmin)
    assert ours[10:] == theirs[10:]
