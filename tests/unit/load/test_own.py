"""Values that are drawn, and files of SQL that are read."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgdyno.capture import lexical, sql
from pgdyno.capture.draws import Distribution, from_a_list, integers
from pgdyno.engine import Sample
from pgdyno.errors import SpecError
from pgdyno.load.own import statistics
from pgdyno.load.own.draw import Drawer, permuted, zipf
from pgdyno.load.own.drawn import CHUNK, Digit, Drawn, Filling, Pick
from pgdyno.load.own.files import SqlFile
from pgdyno.load.own.touched import Touched, requested_properties, variables
from pgdyno.run.planning.workloads import compiled

from tests.support.tells import telling

ROWS = 2 * CHUNK


def drawn(*columns: Drawn, rows: int = ROWS) -> list[list[str]]:
    return rows_of([Filling("t", rows, columns)])


def rows_of(fillings: list[Filling]) -> list[list[str]]:
    """Of the last one."""
    drawer, f = Drawer(fillings), fillings[-1]
    text = b"".join(drawer.chunk(f, first, min(first + CHUNK, f.rows)) for first in range(0, f.rows, CHUNK))
    return list(csv.reader(io.StringIO(text.decode())))


def numbers(column: Drawn, *others: Drawn) -> np.ndarray:  # type: ignore[type-arg]
    return np.asarray([float(r[0]) for r in drawn(column, *others)])


def test_each_distribution_is_what_it_is_called() -> None:
    low, high = 1, 1000
    uniform = numbers(Drawn("a", "integer", low, high))
    assert uniform.min() == low and uniform.max() == high and abs(uniform.mean() - 500.5) < 5
    normal = numbers(Drawn("a", "integer", low, high, "normal"))
    assert abs(normal.mean() - 500.5) < 5 and abs(normal.std() - 1000 / 6) < 5
    exponential = numbers(Drawn("a", "number", 0, 700, "exponential"))
    assert abs(exponential.mean() - 100) < 3 and exponential.max() <= 700
    counts = np.bincount(numbers(Drawn("a", "integer", 1, 1000, "zipf", 1.0)).astype(int))
    # Rank 1 about twice as often as rank 2, which is about twice as often as rank 4.
    assert 1.4 < counts[1] / counts[2] < 2.2 and 1.5 < counts[2:4].sum() / counts[4:8].sum() * 1.0 + 0.7 < 2.2


@given(st.floats(0, 0.999999), st.integers(1, 10**9), st.floats(0, 5))
def test_ranks_of_zipf_stay_within_their_bounds(u: float, n: int, s: float) -> None:
    (rank,) = zipf(np.asarray([u]), n, s)
    assert 1 <= rank <= n


@pytest.mark.parametrize("r", [-0.9, 0.0, 0.5, 0.99])
def test_a_column_follows_another_as_closely_as_is_said(r: float) -> None:
    rows = drawn(Drawn("id", "serial"), Drawn("x", "integer", 1, 10**6, like="id", correlation=r))
    x, y = np.asarray(rows, dtype=float).T
    # A Gaussian copula's rank correlation is 6/pi asin(r/2).
    assert abs(np.corrcoef(x, y)[0, 1] - 6 / np.pi * np.arcsin(r / 2)) < 0.02


def test_rows_are_the_same_whoever_draws_them() -> None:
    columns = [
        Drawn("id", "serial"),
        Drawn("t", "text", 3, 9),
        Drawn("u", "uuid"),
        Drawn("n", "number", 0, 1, nulls=0.3),
    ]
    whole = drawn(*columns)
    f = Filling("t", ROWS, columns)
    again = Drawer([f]).chunk(f, CHUNK, 2 * CHUNK)
    assert list(csv.reader(io.StringIO(again.decode()))) == whole[CHUNK:]
    assert [r[0] for r in whole[:3]] == ["1", "2", "3"]
    assert {len(r[1]) for r in whole} == set(range(3, 10)) and {len(r[2]) for r in whole} == {32}
    assert abs(sum(r[3] == "" for r in whole) / ROWS - 0.3) < 0.01


def test_keys_are_unique() -> None:
    texts = drawn(Drawn("t", "text", 2, 6, unique=True))
    assert len({r[0] for r in texts}) == ROWS
    digit = Digit(1, 500 * 300, 7)
    pairs = drawn(
        Drawn("a", "integer", 1, 500, digit=digit), Drawn("b", "integer", 1, 300, digit=replace(digit, divisor=500))
    )
    assert len({tuple(r) for r in pairs}) == ROWS
    # Whatever the part of all combinations, each value comes about as often as another.
    some = [int(r[0]) for r in pairs[:5000]]
    assert len(set(some)) == 500 and max(map(some.count, set(some))) < 40


@given(st.integers(1, 5000), st.integers(0, 2**32))
def test_a_permutation_has_each_number_once(total: int, seed: int) -> None:
    assert sorted(permuted(np.arange(total), total, seed)) == list(range(total))


def test_rows_refer_to_rows() -> None:
    """Keys of several columns, of texts and uuids; a column that two foreign keys share; the table itself."""
    tenants = Filling("tenants", 50, [Drawn("id", "uuid", unique=True)])
    of = Pick("@0", Drawn("@0", "integer", 0, 49), "tenants")
    users = Filling(
        "users",
        3000,
        [Drawn("tenant", "picked", pick="@0", column="id"), Drawn("name", "text", 4, 9, unique=True)],
        picks=[of],
    )
    notes = Filling(
        "notes", 5000,
        [Drawn("tenant", "picked", pick="@0", column="tenant"), Drawn("author", "picked", pick="@0", column="name"),
         Drawn("reader", "picked", pick="@1", column="name"), Drawn("id", "serial"),
         Drawn("before", "picked", pick="@2", column="id")],
        picks=[
            Pick("@0", Drawn("@0", "integer", 0, 2999), "users"),
            Pick("@1", Drawn("@1", "integer", 0, 2999), "users", same=("tenant", "tenant")),
            Pick("@2", Drawn("@2", "integer", 0, 4999, nulls=0.1), "notes", before=True, first_is_null=True),
        ],
    )  # fmt: skip
    known = {tuple(r) for r in rows_of([tenants, users])}
    assert len({t for t, _ in known}) == 50
    rows = rows_of([tenants, users, notes])
    assert all({(r[0], r[1]), (r[0], r[2])} <= known for r in rows)
    assert all(r[4] == "" or int(r[4]) < int(r[3]) for r in rows) and rows[0][4] == ""
    assert 400 < sum(r[4] == "" for r in rows) < 600


def test_what_a_workload_touches_is_given_to_its_scripts() -> None:
    tables = [Touched("orders", 1000, 1, 1000), Touched("shop.lines", 50), Touched('"Odd"', 5, 11, 20)]
    found = variables(tables, 0.1)
    assert found == {
        "orders_rows": "1000", "orders_first": "1", "orders_last": "100", "lines_rows": "50", "Odd_rows": "5",
        "Odd_first": "11", "Odd_last": "11",
    }  # fmt: skip
    scripts = ["\\set a random(:orders_first, :order_lines_last)\n\\pick people p_\nselect :p_c_last;"]
    assert requested_properties(scripts) == [("orders", "first"), ("order_lines", "last")]


def read(tmp_path: Path, text: str) -> SqlFile:
    (tmp_path / "x.sql").write_text(text)
    return SqlFile.read(tmp_path / "x.sql")


def test_statements_end_where_psql_ends_them(tmp_path: Path) -> None:
    text = (
        "-- a; comment\ncreate table a (x text default ';');\n"
        "create function f() returns int language plpgsql as $body$ begin; return 1; end; $body$;\n"
        "/* ; */ insert into a values ('it''s; so'); select 1\n"
    )
    parts = [p.text for p in read(tmp_path, text).parts]
    assert [p.split()[0] for p in parts] == ["create", "create", "insert", "select"]
    with pytest.raises(SpecError, match=r"x\.sql:2:1: COMMIT"):
        read(tmp_path, "select 1;\nCOMMIT;\n")
    assert read(tmp_path, "select 'commit;'; -- commit;\n")
    for hidden in ("select E'it\\'s'; commit; select 'x';", "select a$b$c; commit; select d$b$e;",
                   "/* a /* b */ ' */; commit; /* ' */", "prepare transaction 'x';"):  # fmt: skip
        with telling(SpecError, "why-one-transaction"):
            read(tmp_path, hidden)
    for fine in ("select E'it\\'s; commit; ';", "/* /* */ ; commit; */ select 1;",
                 "create function f() returns int begin atomic select 1; end;"):  # fmt: skip
        assert read(tmp_path, fine)
    rule = "create rule r as on insert to a do also (delete from b; delete from c);"
    assert len(list(read(tmp_path, rule).parts)) == 1


@given(st.text(alphabet="abc '\"$;-/*\n\\", max_size=60))
@settings(max_examples=300)
def test_no_text_is_too_odd_to_be_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "odd.sql"
    path.write_text(text)
    try:
        parts = list(SqlFile.read(path).parts)
    except SpecError as e:
        assert "odd.sql" in e.message
        return
    # Nothing is lost but blanks, comments and what ends statements.
    assert all(p.text in path.read_text() for p in parts)


def test_parameters_are_found() -> None:
    columns = {"orders": {"id", "at", "customer_id"}, "customers": {"id", "email"}}

    def uses(text: str) -> dict[int, tuple[str, str]]:
        tree = sql.parsed(text)
        assert tree is not None
        return {n: (u.table, u.column) for n, u in sql.uses(tree, columns).items()}

    assert uses("select * from orders o join customers c on c.id = o.customer_id where c.email = $1 and at > $2") == {
        1: ("customers", "email"),
        2: ("orders", "at"),
    }
    assert uses("insert into orders (customer_id, at) values ($1, $2)") == {
        1: ("orders", "customer_id"), 2: ("orders", "at"),
    }  # fmt: skip
    assert uses("update customers set email = $1 where id in ($2, $3)") == {
        1: ("customers", "email"), 2: ("customers", "id"), 3: ("customers", "id"),
    }  # fmt: skip


@given(st.lists(st.text(max_size=8), min_size=1, max_size=40))
def test_any_values_make_a_script(values: list[str]) -> None:
    values = [v.replace("\0", "") for v in values]
    d = from_a_list("p1", Distribution.of(values), "v1_")
    script = "\n".join([*d.lines, f"SELECT {d.expression};"])
    samples = [Sample(d.listed.name, [*d.listed.columns], [[*r] for r in d.listed.rows])] if d.listed else []
    compiled([("x.sql", script, 1)], {}, samples=samples)


def test_integers_are_drawn_as_they_were_seen() -> None:
    d = integers("p1", Distribution(["7"], [0.5], [str(n) for n in range(0, 101, 10)]))
    assert d.lines[0] == "\\set p1_u random(1, 1000000)" and "<= 500000 then 7" in d.lines[1]
    assert d.lines[1].count("random(") == 10
    compiled([("x.sql", "\n".join([*d.lines, "SELECT :p1;"]), 1)], {})


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("insert into users(name,password) values ($1,$2)", 2),
        ("insert into users (name, password) values ('bob', 'S3CRET'::text)", 2),
        ("insert into users (name,password) values($1,$2)returning name", 2),
        ("update users set password=$1,name=$2 where name=$3", 1),
    ],
)
def test_a_secret_is_known_however_it_is_written(text: str, secret: int, capfd: pytest.CaptureFixture[str]) -> None:
    """As drivers write it, who leave out blanks and say each value's type."""
    general, values = lexical.general(text)
    assert "S3CRET" not in general and (not values or "S3CRET" in values)
    tree = sql.parsed(general)
    assert tree is not None
    uses = sql.uses(tree, {"users": {"name", "password"}})
    assert uses[secret].column == "password"
    # What it cannot read is not shown to whoever looks on.
    assert sql.parsed("call login('bob', 'S3CRET') over and out") is None
    assert "S3CRET" not in "".join(capfd.readouterr())


def test_names_that_sound_of_secrets() -> None:
    """By words: a passenger has no password."""
    for name in ("password", "pwd", "userPwd", "session_id", "api_key", "apiKey", "cookie", "auth", "bearer", "credit"):
        assert sql.is_secret(name), name
    for name in ("passenger_id", "compass", "passage", "author", "hashtag", "monkey", "opinion", "keynote", "tokyo"):
        assert not sql.is_secret(name), name


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("/* nightly */ truncate orders", "truncate"), ("-- x\n  drop table t", "drop"),
        ("/* a /* nested */ ' */ delete from t", "delete"), ("/* never ends", ""), ("  select 1", "select"),
        ("/*x*//*y*/--z\n/**/ update t set a = 1", "update"), ("-- only", ""),
    ],
)  # fmt: skip
def test_comments_hide_no_statement(text: str, first: str) -> None:
    assert sql.bare(text).split(" ")[0] == first
    assert sql.is_control(text) is (first in ("truncate", "drop"))


@pytest.mark.parametrize("value", ["$100", "$2b$10$abc", "costs $1,000", "x $1 y"])
def test_a_constant_stays_as_it_was(value: str) -> None:
    general, values = lexical.general(f"select * from t where a = '{value}'")
    assert values == [value] and "$1" in general


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.0 + 1e-12, 1.5])
def test_the_sum_beyond_its_terms_is_its_integral(exponent: float) -> None:
    """The bisection for Zipf's exponent comes by 1, where the integral is a logarithm."""
    n = 20_000
    assert statistics._harmonic(n, exponent) == pytest.approx(
        math.fsum(k**-exponent for k in range(1, n + 1)), rel=1e-4
    )
