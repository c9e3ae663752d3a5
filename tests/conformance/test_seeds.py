"""Equal seeds, equal values: whole runs of the installed pgbench and of ours, compared through what they wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pgdyno.cluster.binaries import wheel_folder

from tests.support.cli import environment, pgdyno
from tests.support.server import Server
from tests.support.twins import OURS


def spoken(program: Path, server: Server, folder: Path, scripts: dict[str, str], *options: str) -> tuple[int, str, str]:
    """Exit code, what `debug()` showed, and the errors of a run."""
    words = [str(program), "-n", "-D", "scale=10", *options]
    for name, text in scripts.items():
        (folder / name.split("@")[0]).write_text(text)
        words += ["-f", name]
    where = {"PGHOST": str(server.socket), "PGPORT": str(server.port), "PGUSER": "postgres", "PGDATABASE": "postgres"}
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment(**where), check=False)
    assert "Traceback" not in done.stderr, done.stderr
    lines = done.stderr.splitlines()
    shown = [line for line in lines if line.startswith("debug(")]
    errors = [line for line in lines if line.startswith("pgbench: error: ")]
    return done.returncode, "\n".join(shown), "\n".join(errors)


def compare(server: Server, folder: Path, scripts: dict[str, str], *options: str) -> None:
    theirs = spoken(server.bin / "pgbench", server, folder, scripts, *options)
    ours = spoken(OURS, server, folder, scripts, *options)
    assert ours == theirs
    assert theirs[1]


@pytest.mark.slow
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
    script = {"s.sql": f"\\set v debug({expression})\n"}
    compare(server, tmp_path, script, "--random-seed=5432", "-t", "20")


#: Functions with the number of their arguments.
FUNCTIONS = {
    "abs": 1, "double": 1, "exp": 1, "hash": 1, "hash_fnv1a": 2, "hash_murmur2": 2, "int": 1, "ln": 1, "mod": 2,
    "permute": 2, "pow": 2, "power": 2, "random": 2, "random_exponential": 3, "random_gaussian": 3,
    "random_zipfian": 3, "sqrt": 1, "greatest": 3, "least": 2, "debug": 1,
}  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "%", "=", "<>", "!=", "<", "<=", ">", ">=", "|", "&", "#", "<<", ">>", "AND", "or"]


LEAVES = [
    "0.5", "2.25", "1e3", ".1E-2", "pi()", ":scale", ":text", ":nothing", ":yes", "NULL", "TRUE", "false", "0", "1",
    "(-7)",
    "9223372036854775807", "-9223372036854775808", ":client_id", "1.5", "13", "60", "random(1, 1000000)",
]  # fmt: skip
TESTS = ["is null", "IS NOT NULL", "ISNULL", "notnull", "is true", "is not false"]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """Anything that pgbench's grammar allows, right or wrong in its types."""
    kind = draw(st.integers(0, 9)) if depth else 0

    def inner() -> str:
        return draw(expressions(depth=depth - 1))

    if kind <= 1:
        return draw(st.sampled_from(LEAVES))
    if kind <= 4:
        text = f"{inner()} {draw(st.sampled_from(OPERATORS))} {inner()}"
        return text if draw(st.booleans()) else f"({text})"
    if kind == 5:
        return f"case when {inner()} then {inner()} else {inner()} end"
    if kind == 6:
        return f"({inner()} {draw(st.sampled_from(TESTS))})"
    if kind == 7:
        return f"{draw(st.sampled_from(['-', '+', '~', 'NOT ']))}({inner()})"
    name = draw(st.sampled_from(sorted(FUNCTIONS)))
    # Of a boolean, pgbench's abs shows what happens to lie in memory.
    args = [f"0 + ({inner()})"] if name == "abs" else [inner() for _ in range(FUNCTIONS[name])]
    return f"{name}({', '.join(args)})"


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=st.lists(expressions(), min_size=1, max_size=10), seed=st.integers(0, 2**64 - 1))
def test_generated_expressions_have_pgbenchs_values(
    server: Server, tmp_path: Path, wanted: list[str], seed: int
) -> None:
    # One after the other: the first that fails ends the client, in both programs with the same words.
    lines = ["\\set yes TRUE", "\\set nothing NULL", *(f"\\set v debug({e})" for e in wanted)]
    script = {"s.sql": "\n".join(["\\set begin debug(1)", *lines, ""])}
    theirs = spoken(server.bin / "pgbench", server, tmp_path, script, f"--random-seed={seed}", "-t2", "-Dtext=7")
    ours = spoken(OURS, server, tmp_path, script, f"--random-seed={seed}", "-t2", "-Dtext=7")
    assert ours == theirs


def test_scripts_are_chosen_alike(server: Server, tmp_path: Path) -> None:
    # Scripts without SQL: when a client's turn comes then depends on nothing but the program.
    line = "\\set v debug(random(1, 1000000000) * 1000 + :client_id)\n"
    scripts = {"one.sql@3": line, "two.sql@2": line * 2, "three.sql": line * 3}
    compare(server, tmp_path, scripts, "--random-seed=99", "-c7", "-t20")


@pytest.mark.parametrize("jobs", ["1", "2", "3"])
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_clients_have_their_own_streams(server: Server, tmp_path: Path, jobs: str, mode: str) -> None:
    server.sql("drop table if exists drawn; create table drawn (client int, v text)")
    script = "\\set v random_gaussian(1, 1000000000, 3)\nINSERT INTO drawn VALUES (:client_id::int, (:v)::text);\n"
    seen = []
    for program in (server.bin / "pgbench", OURS):
        done = spoken(
            program, server, tmp_path, {"s.sql": script}, "--random-seed=9", "-c7", "-j", jobs, "-t20", "-M", mode
        )
        assert done[0] == 0, done
        seen.append(server.sql("select client, v from drawn order by 1, 2"))
        server.sql("truncate drawn")
    assert seen[0] == seen[1]
    assert len(seen[0]) == 140


def test_a_retried_transaction_draws_the_same_values(server: Server, tmp_path: Path) -> None:
    script = (
        "\\set a debug(random(1, 1000000))\nSELECT nextval('turns') % 3 AS n \\gset\n"
        "\\set b debug(random_gaussian(1, 1000000, 3))\n\\if :n <> 0\n"
        "DO $$ BEGIN RAISE 'no' USING ERRCODE = '40001'; END $$;\n\\endif\n"
    )
    server.sql("drop sequence if exists turns; create sequence turns")
    theirs = spoken(
        server.bin / "pgbench", server, tmp_path, {"s.sql": script}, "--random-seed=3", "--max-tries=9", "-t5"
    )
    server.sql("alter sequence turns restart")
    ours = spoken(OURS, server, tmp_path, {"s.sql": script}, "--random-seed=3", "--max-tries=9", "-t5")
    server.sql("drop sequence turns")
    assert ours == theirs
    values = [line.split(": ")[1] for line in theirs[1].split("\n")]
    assert len(values) == 30 and len(set(values)) == 10


@pytest.mark.parametrize(
    "options",
    [
        "-q",
        "-q -I dtGvp",
        pytest.param("-q --partitions=3", marks=pytest.mark.slow),
        "-q --partitions=3 -I dtpfgv",
        pytest.param("-q --partitions=2 --partition-method=hash -F 70", marks=pytest.mark.slow),
        pytest.param("-q -s 3", marks=pytest.mark.slow),
    ],
)
def test_initialized_tables_equal_pgbenchs(server: Server, options: str) -> None:
    seen = []
    for program in (server.bin / "pgbench", OURS):
        server.sql("drop database if exists made")
        server.sql("create database made")
        where = {"PGHOST": str(server.socket), "PGPORT": str(server.port), "PGUSER": "postgres"}
        words = [program, "-i", *options.split(), "made"]
        subprocess.run(words, check=True, capture_output=True, env=environment(**where))
        seen.append([server.sql(q, dbname="made") for q in (*DESCRIPTION, CONTENT, SIZES)])
    server.sql("drop database made")
    (*theirs, their_sizes), (*ours, our_sizes) = seen
    assert ours == theirs
    if "--partitions=3" in options:
        # COPY through the parent leaves pages behind that it extended a partition by and never filled.
        assert all(a[0] == b[0] and a[1] <= b[1] for a, b in zip(our_sizes, their_sizes, strict=True))
    else:
        assert our_sizes == their_sizes


DESCRIPTION = (
    """select table_name, column_name, ordinal_position, data_type, character_maximum_length, is_nullable
        from information_schema.columns where table_name like 'pgbench%' order by 1, 3""",
    """select relname, reloptions::text, relpersistence, relkind, pg_get_expr(relpartbound, oid),
        (select count(*) from pg_index where indrelid = c.oid),
        (select string_agg(conname || pg_get_constraintdef(oid), ',' order by conname) from pg_constraint
          where conrelid = c.oid and contype in ('p', 'f'))
        from pg_class c where relname like 'pgbench%' order by 1""",
)
SIZES = "select relname, pg_relation_size(oid) from pg_class where relname like 'pgbench%' order by 1"
CONTENT = """select 'a', count(*), md5(string_agg(t::text, ',' order by aid)) from pgbench_accounts t union all
    select 'b', count(*), md5(string_agg(t::text, ',' order by bid)) from pgbench_branches t union all
    select 't', count(*), md5(string_agg(t::text, ',' order by tid)) from pgbench_tellers t union all
    select 'h', count(*), md5(string_agg(t::text, ',' order by tid)) from pgbench_history t order by 1"""


def test_partitions_are_filled_side_by_side_and_frozen(server: Server) -> None:
    server.sql("drop database if exists made")
    server.sql("create database made")
    where = {"PGHOST": str(server.socket), "PGPORT": str(server.port), "PGUSER": "postgres"}
    subprocess.run([OURS, "-i", "--partitions=3", "made"], check=True, capture_output=True, env=environment(**where))
    server.sql("create extension pg_visibility", dbname="made")
    not_frozen = "select sum(relpages - (pg_visibility_map_summary(oid)).all_frozen) from pg_class where relkind = 'r'"
    assert server.sql(f"{not_frozen} and relname like 'pgbench_accounts_%'", dbname="made") == [(0,)]
    assert server.sql("select count(distinct aid) from pgbench_accounts", dbname="made") == [(100_000,)]
    server.sql("drop database made")


def test_several_connections_make_the_same_tables(server: Server) -> None:
    """Their rows lie in another order, so the size may differ by some pages; they are frozen all the same."""
    seen = []
    for program in (server.bin / "pgbench", OURS):
        server.sql("drop database if exists made")
        server.sql("create database made")
        where = {"PGHOST": str(server.socket), "PGPORT": str(server.port), "PGUSER": "postgres"}
        subprocess.run([program, "-i", "-q", "-s6", "made"], check=True, capture_output=True, env=environment(**where))
        server.sql("create extension pg_visibility", dbname="made")
        frozen = server.sql(
            "select all_frozen > 9830 from pg_visibility_map_summary('pgbench_accounts')", dbname="made"
        )
        seen.append([frozen, server.sql(CONTENT, dbname="made")])
    server.sql("drop database made")
    assert seen[0] == seen[1] and seen[0][0] == [(True,)]


@pytest.mark.parametrize(
    "options", [pytest.param([], marks=pytest.mark.slow), ["--method=server"], ["--connections=3"]]
)
def test_loaded_tables_equal_pgbenchs(server: Server, options: list[str]) -> None:
    folder = wheel_folder()
    assert folder is not None
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
            loaded = pgdyno("load", "tpcb", "--scale=2", "--target", server.conninfo(dbname=name), "--json", *options)
            assert loaded.code == 0, loaded.err
            assert loaded.json["loaded"]["rows"] == 200_022
        seen.append([server.sql(q, dbname=name) for q in (*DESCRIPTION, CONTENT)])
        server.sql(f"drop database {name}")
    assert seen[0] == seen[1]
