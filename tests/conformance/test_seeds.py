"""Equal seeds, equal values: whole runs of the installed pgbench and of ours, compared through what they wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pgdyno import _core
from pgdyno.cluster.binaries import wheel_folder

from tests.support.cli import environment
from tests.support.server import Server

INSERT = "INSERT INTO drawn (client, v) VALUES (:client_id, (:v)::text);\n"


class Quiet:
    def started(self, *_: Any) -> None: ...
    def interval(self, _: Any) -> None: ...
    def event(self, _: Any) -> None: ...


def by_pgbench(server: Server, script: Path, seed: int, clients: int, n: int) -> None:
    folder = wheel_folder()
    assert folder is not None
    done = subprocess.run(
        [folder / "pgbench", "-n", "-h", server.socket, "-p", str(server.port), "-U", "postgres", "-f", script,
         "-M", "simple", "-c", str(clients), "-t", str(n), "--random-seed", str(seed), "-D", "scale=10", "postgres"],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def by_pgdyno(server: Server, text: str, seed: int, clients: int, n: int) -> None:
    config = _core.ConnConfig(host=str(server.socket), port=server.port, user="postgres", dbname="postgres")
    script = _core.Script("s.sql", text, {"scale": "10"})
    result = _core.run(config, [script], Quiet(), clients=clients, transactions=n, seed=seed, protocol="simple")
    assert result.error is None, result.error


def drawn(server: Server) -> list[tuple[Any, ...]]:
    rows = server.sql("select client, v from drawn order by client, n")
    server.sql("truncate drawn restart identity")
    return rows


def compare(server: Server, tmp_path: Path, expression: str, seed: int, clients: int = 3, n: int = 20) -> None:
    server.sql("create table if not exists drawn (n serial, client int, v text)")
    text = f"\\set v {expression}\n{INSERT}"
    script = tmp_path / "s.sql"
    script.write_text(text)
    by_pgbench(server, script, seed, clients, n)
    theirs = drawn(server)
    by_pgdyno(server, text, seed, clients, n)
    assert drawn(server) == theirs
    assert len(theirs) == clients * n


@pytest.mark.parametrize(
    "expression",
    [
        "random(1, 1000000)",
        "random(-4611686018427387903, 4611686018427387903)",
        "random_gaussian(1, 100000 * :scale, 10.0)",
        "random_exponential(1, 1000000, 5.0)",
        "random_zipfian(1, 1000000, 1.2)",
        "random_zipfian(1, 1000000, 0.5 + 2)",
        "hash(random(1, 100))",
        "hash_fnv1a(random(1, 100))",
        "hash_murmur2(random(1, 100), 5)",
        "permute(random(0, 999), 1000)",
        "permute(random(0, 999999999999), 1000000000000, 77)",
        ":random_seed",
        ":default_seed",
        "int(2.5) + int(3.5) + int(-2.5)",
        "1.0 / random(1, 10)",
        "pow(random(1, 5), 3)",
        "exp(random(1, 300)) * pi()",
        "ln(random(1, 10))",
        "sqrt(random(1, 10))",
        "greatest(random(1, 10), 5.5)",
        "abs(random(-10, 10)) % 7",
        "random(1, 10) << 40 | 5",
        "CASE WHEN random(1, 10) > 5 THEN 1 ELSE 0.5 END",
        "random(1, 2) = 1 AND NOT random(1, 2) = 1",
    ],
)
def test_functions_draw_what_pgbench_draws(server: Server, tmp_path: Path, expression: str) -> None:
    compare(server, tmp_path, expression, seed=5432)


def numbers() -> st.SearchStrategy[str]:
    leaf = st.one_of(
        st.integers(-50, 50).map(lambda n: f"({n})"),
        st.sampled_from(["0.5", "2.25", "1e3", "random(1, 9)", "random_gaussian(1, 99, 3)", ":scale", "NULL"]),
    )

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pair = st.tuples(inner, inner)
        return st.one_of(
            st.builds(lambda p, op: f"{p[0]} {op} {p[1]}", pair, st.sampled_from(["+", "-", "*"])),
            st.builds(lambda p: f"({p[0]} - {p[1]})", pair),
            st.builds(lambda p: f"greatest({p[0]}, {p[1]})", pair),
            st.builds(lambda p: f"CASE WHEN {p[0]} < {p[1]} THEN {p[0]} ELSE {p[1]} END", pair),
            st.builds(lambda x: f"abs({x})", inner),
            st.builds(lambda x: f"(-{x})", inner),
        )

    return st.recursive(leaf, grow, max_leaves=6)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(expression=numbers(), seed=st.integers(0, 2**31))
def test_generated_expressions_have_pgbenchs_values(server: Server, tmp_path: Path, expression: str, seed: int) -> None:
    compare(server, tmp_path, expression, seed, clients=2, n=3)


def test_loaded_tables_equal_pgbenchs(server: Server) -> None:
    folder = wheel_folder()
    assert folder is not None
    definition = """select table_name, column_name, ordinal_position, data_type, character_maximum_length, is_nullable
        from information_schema.columns where table_name like 'pgbench%' order by 1, 3"""
    extra = """select relname, reloptions::text, relpersistence, (select count(*) from pg_index where indrelid = c.oid),
        (select string_agg(conname || pg_get_constraintdef(oid), ',' order by conname) from pg_constraint
          where conrelid = c.oid and contype = 'p')
        from pg_class c where relname like 'pgbench%' and relkind = 'r' order by 1"""
    content = """select 'a', count(*), md5(string_agg(t::text, ',' order by aid)) from pgbench_accounts t union all
        select 'b', count(*), md5(string_agg(t::text, ',' order by bid)) from pgbench_branches t union all
        select 't', count(*), md5(string_agg(t::text, ',' order by tid)) from pgbench_tellers t union all
        select 'h', count(*), md5(string_agg(t::text, ',' order by tid)) from pgbench_history t order by 1"""
    sizes = "select relname, pg_relation_size(oid) from pg_class where relname like 'pgbench%' order by 1"
    seen = []
    for name in ("theirs", "ours"):
        server.sql(f"drop database if exists {name}")
        server.sql(f"create database {name}")
        if name == "theirs":
            subprocess.run(
                [folder / "pgbench", "-i", "-q", "-s", "2", "-h", server.socket, "-p", str(server.port),
                 "-U", "postgres", name],
                check=True, capture_output=True, env=environment(),
            )  # fmt: skip
        else:
            config = _core.ConnConfig(host=str(server.socket), port=server.port, user="postgres", dbname=name)
            assert _core.load_tpcb(config, 2, lambda *_: None)[0] == 200_022
        seen.append([server.sql(q, dbname=name) for q in (definition, extra, content, sizes)])
        server.sql(f"drop database {name}")
    assert seen[0] == seen[1]
