"""Actions are measured on private servers beside ones without them; what brings nothing is not verified."""

from __future__ import annotations

import json
import random
from pathlib import Path

import psycopg
import pytest
from pgdyno.diagnosis.causes.missing_index import filtered_columns

from tests.support.cli import pgdyno
from tests.support.server import Server

_EXPERIMENT = """
name = "verified"
title = "Verified"
[dataset]
kind = "sql"
setup = ["create table t (id int primary key, v int)", "insert into t select i, i from generate_series(1, 20000) i",
  "analyze t"]
[workloads.w]
[[workloads.w.scripts]]
text = '''
\\\\set v random(1, 20000)
SELECT id FROM t WHERE {column} = :v;
'''
[axes]
clients = [{clients}]
[run]
duration_s = 3
warmup_s = 0.5
repetitions = 1
"""


def _run(folder: Path, column: str, clients: int = 2) -> Path:
    file = folder / "experiment.toml"
    file.write_text(_EXPERIMENT.format(column=column, clients=clients).replace("\\\\", "\\"))
    done = pgdyno("run", file, "--runs", folder / "runs", "--quiet")
    assert done.code in (0, 1), done.err
    (run,) = (folder / "runs").iterdir()
    return run


@pytest.mark.slow
@pytest.mark.alone
def test_an_index_that_is_missing_is_verified(tmp_path: Path) -> None:
    run = _run(tmp_path, "v")
    proposed = json.loads((run / "findings.json").read_text())[0]["actions"]
    assert [a["sql"] for a in proposed] == [["CREATE INDEX CONCURRENTLY ON t (v)"]]
    shown = pgdyno("explain", run)
    assert "CREATE INDEX CONCURRENTLY ON t (v);" in shown.out and "predicted" in shown.out
    runs = tmp_path / "runs"
    done = pgdyno("explain", run, "--verify", "--top", "1", "--budget", "80s", "--runs", runs, timeout=170)
    assert done.code == 0, done.err
    (result,) = json.loads((run / "verified.json").read_text())
    assert result["outcome"] == "verified" and result["measured"]["low"] > 3 and result["as_predicted"]
    assert Path(result["run"]).is_dir()
    assert done.out.rstrip().endswith("CREATE INDEX CONCURRENTLY ON t (v);")


@pytest.mark.slow
@pytest.mark.alone
def test_nothing_is_verified_on_a_calm_server(tmp_path: Path) -> None:
    # With fewer, one more client gains on an idle processor, which is verified with right.
    run = _run(tmp_path, "id", clients=8)
    done = pgdyno("explain", run, "--verify", "--budget", "80s", "--runs", tmp_path / "runs", "--json", timeout=170)
    assert done.code == 0, done.err
    assert [a for a in done.json["actions"] if a["outcome"] == "verified"] == []


@pytest.mark.slow
def test_own_tables_need_a_copy(server: Server, database: str, tmp_path: Path) -> None:
    with psycopg.connect(server.conninfo(dbname=database), autocommit=True) as conn:
        conn.execute("create table t (id int primary key, v int)")
        conn.execute("insert into t select i, i from generate_series(1, 20000) i")
        conn.execute("analyze t")
    text = _EXPERIMENT.format(column="v", clients=2).replace("\\\\", "\\")
    head, tail = text.split("[dataset]\n")[0], text[text.index("[workloads.w]") :]
    file = tmp_path / "own.toml"
    file.write_text(f'{head}[dataset]\nkind = "none"\n{tail}')
    target = server.conninfo(dbname=database)
    done = pgdyno("run", file, "--target", target, "--runs", tmp_path / "runs", "--quiet")
    assert done.code in (0, 1), done.err
    (run,) = (tmp_path / "runs").iterdir()
    done = pgdyno("explain", run, "--verify", "--runs", tmp_path / "runs")
    assert done.code == 2 and "--copy CONNINFO" in " ".join(done.err.split())
    assert not (run / "verified.json").exists()
    # A budget that does not suffice is said of each action, and nothing is run.
    done = pgdyno("explain", run, "--verify", "--copy", target, "--budget", "5s", "--runs", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    assert {a["outcome"] for a in done.json["actions"]} == {"not-measured"}
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_options_of_a_verification_need_it(tmp_path: Path) -> None:
    done = pgdyno("explain", tmp_path, "--top", "2")
    assert done.code == 2 and "--verify" in done.err


_NAMES = ("a", "b", '"Odd name"', '"order"', "c_1")
_TYPES = ("int", "bigint", "text", "timestamptz", "numeric", "varchar(20)")


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 30))])
def test_columns_of_conditions_are_found_and_make_an_index(server: Server, database: str, seed: int) -> None:
    """Random tables and conditions: the columns are known, the index can be made, and the server uses it."""
    rng = random.Random(seed)
    columns = {name: rng.choice(_TYPES) for name in rng.sample(_NAMES, 3)}
    with psycopg.connect(server.conninfo(dbname=database), autocommit=True) as conn:
        declared = ", ".join(f"{name} {type}" for name, type in columns.items())
        conn.execute(f"create table t (id int, {declared})".encode())
        values = ", ".join(_value(type, "i") for type in columns.values())
        conn.execute(f"insert into t select i, {values} from generate_series(1, 5000) i".encode())
        conn.execute("analyze t")
        equal = rng.sample(list(columns), rng.randint(1, 2))
        ranged = [n for n in columns if n not in equal][: rng.randint(0, 1)]
        parts = [f"{n} = {_value(columns[n], '77')}" for n in equal]
        parts += [f"{n} {rng.choice(['<', '>', '<=', '>='])} {_value(columns[n], '77')}" for n in ranged]
        hidden = rng.choice(["", "id + 0 > 5", "id <> 3"])
        where = " and ".join(rng.sample([*parts, *([hidden] if hidden else [])], len(parts) + bool(hidden)))
        row = conn.execute(f"explain (format json) select id from t where {where}".encode()).fetchone()
        assert row is not None
        types = {name.strip('"'): type.replace("varchar", "character varying") for name, type in columns.items()}
        found = filtered_columns(row[0][0]["Plan"]["Filter"], types)
        assert set(found[: len(equal)]) == set(equal) and set(found[len(equal) :]) == set(ranged), (where, found)
        conn.execute(f"create index concurrently on t ({', '.join(found)})".encode())
        conn.execute("set enable_seqscan to off")
        plan = conn.execute(f"explain select id from t where {where}".encode()).fetchall()
        assert "Index" in str(plan) or "Bitmap" in str(plan), (where, plan)


def _value(type: str, number: str) -> str:
    if type == "timestamptz":
        return f"timestamptz '2026-01-01' + {number} * interval '1 s'"
    return f"({number})::{type}"
