"""Users' drivers on real servers: psycopg, asyncpg, PyMySQL, and one that fails."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from pgdyno.cluster.target import resolve
from pgdyno.driver import adapters
from pgdyno.driver.pool import RUNNING
from pgdyno.store import reading

from tests.support.cli import pgdyno
from tests.support.mariadb import MariaDb, why_not
from tests.support.server import Server
from tests.support.tells import tells

_SCRIPT = r"""
\set id random(1, 9)
\set part random(1, 3) * 0.5
BEGIN;
UPDATE t SET v = v + :part WHERE id = :id;
SELECT v AS value, id FROM t WHERE id = :id \gset
SELECT id FROM t WHERE v >= :value AND name LIKE 'n%' AND id = :id;
COMMIT;
"""
_PIPELINE = r"""
\set id random(1, 9)
\startpipeline
SELECT v FROM t WHERE id = :id;
SELECT v FROM t WHERE id = :id + 1;
\endpipeline
"""


def _experiment(folder: Path, script: str, driver: str, protocol: str = "prepared", more: str = "") -> Path:
    path = folder / "t.toml"
    (folder / "s.sql").write_text(script)
    path.write_text(
        'name = "t"\ntitle = "t"\n[dataset]\nkind = "none"\n[workloads.w]\nscripts = [{ file = "s.sql" }]\n'
        f'[axes]\nclients = [4]\nprotocol = ["{protocol}"]\ndriver = ["{driver}"]\n'
        f"[run]\nduration_s = 0.6\nwarmup_s = 0\nrepetitions = 1\n{more}"
    )
    return path


def _tables(server: Server, database: str) -> None:
    server.sql(
        "create table t (id int primary key, v float8, name text);"
        "insert into t select g, 0, 'n' || g from generate_series(1, 10) g",
        dbname=database,
    )


@pytest.mark.parametrize(
    ("driver", "protocol"),
    [
        ("python:psycopg", "simple"),
        ("python:psycopg", "prepared"),
        pytest.param("python:psycopg", "extended", marks=pytest.mark.slow),
        ("python:asyncpg", "prepared"),
        pytest.param("python:asyncpg", "extended", marks=pytest.mark.slow),
    ],
)
def test_a_driver_does_the_same_work(server: Server, database: str, tmp_path: Path, driver: str, protocol: str) -> None:
    _tables(server, database)
    words = ("--target", server.conninfo(dbname=database), "--runs", tmp_path / "r", "--json", "-q")
    done = pgdyno("run", _experiment(tmp_path, _SCRIPT, driver, protocol), *words)
    assert done.code == 0, done.err + str(done.json["trials"])
    (trial,) = done.json["trials"]
    assert trial["state"] == "finished" and trial["summary"]["committed"] > 20, trial
    # What the client counts is what the server has: each transaction adds 0.5 to 1.5.
    ((total,),) = server.sql("select sum(v) from t", dbname=database)
    data = reading.read(next((tmp_path / "r").iterdir()))
    (record,) = data.trials
    assert record.summary is not None and not record.summary.failed
    ends = record.summary.committed + record.summary.unfinished
    assert 0.5 * record.summary.committed <= total <= 1.5 * ends + 6
    assert record.activity["driver_cpu_ns"] > 0 and record.activity["driver_floor_ns"] > 0
    # Its sessions are known as those of the load.
    assert any(row["ours"] for row in data.samples[1, "waits"])
    assert any(tells(line, "answer-driver", driver=driver) for line in done.json["answer"]), done.json["answer"]
    assert set() == RUNNING


@pytest.mark.parametrize("module", ["psycopg", "asyncpg"])
@pytest.mark.parametrize("mode", ["prepared", "extended"])
def test_statements_are_prepared_where_the_mode_says_so(server: Server, database: str, module: str, mode: str) -> None:
    target = resolve(server.conninfo(dbname=database))
    at = adapters.Server(
        target.conninfo, target.host, target.port, target.user, target.password, target.dbname, "postgresql", mode
    )
    wanted = adapters.Statement("SELECT 4711 + $1::int", (1,), mode)
    look = adapters.Statement("SELECT statement FROM pg_prepared_statements", (), "extended")

    async def prepared() -> list[str]:
        driver = adapters.adapted(await adapters.awaited(adapters.factory(module, "")(at)), module, at)
        for _ in range(3):
            await adapters.awaited(driver.run([wanted]))
        ((_, rows, _),) = (await adapters.awaited(driver.run([look])))[0]
        await adapters.awaited(driver.close())
        return [str(statement) for (statement,) in rows]

    found = asyncio.run(prepared())
    assert any("4711" in text for text in found) is (mode == "prepared"), found


@pytest.mark.parametrize("driver", ["python:psycopg", "python:asyncpg"])
def test_who_may_only_read_does_not_write(server: Server, database: str, tmp_path: Path, driver: str) -> None:
    """A workload that may only read is held to it by the session, in every driver."""
    _tables(server, database)
    experiment = _experiment(tmp_path, "UPDATE t SET v = 1;\n", driver)
    experiment.write_text(experiment.read_text().replace("[workloads.w]\n", "[workloads.w]\nread_only = true\n"))
    words = ("--target", server.conninfo(dbname=database), "--runs", tmp_path / "r", "--json", "-q")
    done = pgdyno("run", experiment, *words)
    assert done.code == 1 and "25006" in done.json["trials"][0]["error"], done.out


def test_a_pipeline_goes_through_psycopgs(server: Server, database: str, tmp_path: Path) -> None:
    _tables(server, database)
    words = ("--target", server.conninfo(dbname=database), "--runs", tmp_path / "r", "--json", "-q")
    done = pgdyno("run", _experiment(tmp_path, _PIPELINE, "python:psycopg"), *words)
    assert done.code == 0 and done.json["trials"][0]["summary"]["committed"] > 20, done.err


def test_errors_of_a_driver_have_the_servers_codes(server: Server, database: str, tmp_path: Path) -> None:
    _tables(server, database)
    script = "SELECT 1 / (:client_id * 0);\n"
    words = ("--target", server.conninfo(dbname=database), "--runs", tmp_path / "r", "--json", "-q")
    done = pgdyno("run", _experiment(tmp_path, script, "python:psycopg"), *words)
    assert done.code == 1 and "22012" in done.json["trials"][0]["error"], done.json["trials"][0]


@pytest.mark.parametrize(
    ("driver", "code", "said"),
    [
        ("python:no_such_driver", 2, "No module named 'no_such_driver'"),
        ("python:json", 2, "the driver python:json cannot be imported"),
        ("python:psycopg:nothing", 2, "cannot be imported"),
        ("python:", 2, "python:MODULE[:FACTORY]"),
        ("odbc", 2, "python:MODULE[:FACTORY]"),
    ],
)
def test_a_driver_that_is_not_there(
    server: Server, database: str, tmp_path: Path, driver: str, code: int, said: str
) -> None:
    words = ("--target", server.conninfo(dbname=database), "--runs", tmp_path / "r", "-q")
    done = pgdyno("run", _experiment(tmp_path, "SELECT 1;\n", driver), *words)
    assert done.code == code and said in " ".join(done.err.split()), (done.code, done.err)


@pytest.mark.slow
def test_workers_that_die_are_lost_connections(
    server: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a driver does to its process, the run ends and says so."""
    (tmp_path / "crashing.py").write_text(
        "import os, psycopg\n"
        "class Crashing:\n"
        "    n = 0\n"
        "    def run(self, statements):\n"
        "        Crashing.n += 1\n"
        "        if Crashing.n > 50: os.kill(os.getpid(), 9)\n"
        "        return [[(['x'], [(1,)], 'SELECT 1')] for _ in statements]\n"
        "    def status(self): return None\n"
        "    def close(self): pass\n"
        "def make(server): return Crashing()\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ("--target", server.conninfo(dbname=database), "--runs", tmp_path / "r", "--json", "-q")
    done = pgdyno("run", _experiment(tmp_path, "SELECT 1;\n", "python:crashing:make"), *words)
    assert done.code != 0 and "Traceback" not in done.err
    data = reading.read(next((tmp_path / "r").iterdir()))
    assert data.trials[0].summary is not None or data.trials[0].error is not None


@pytest.mark.slow
def test_tpcc_through_a_driver_stays_consistent(tmp_path: Path) -> None:
    """Its transactions read rows by position, without asking for the names of columns."""
    short = ("--scale", "1", "--clients", "2", "--duration", "1", "--warmup", "0", "--repetitions", "1")
    done = pgdyno(
        "run", "tpcc", "--embedded", "--driver", "python:psycopg", *short, "--runs", tmp_path, "--json", "-q"
    )  # fmt: skip
    assert done.code == 0, done.err
    (trial,) = done.json["trials"]
    assert trial["state"] == "finished" and trial["summary"]["committed"] > 20 and not trial["summary"]["failed"]
    assert len(done.json["checks"]) == 12 and all(check["holds"] for check in done.json["checks"])


@pytest.mark.skipif(why_not() != "", reason=why_not())
@pytest.mark.slow
def test_a_driver_of_mariadb(tmp_path: Path) -> None:
    script = "\\set id random(1, 9)\nbegin;\nupdate t set v = v + 1 where id = :id;\nselect v from t;\ncommit;\n"
    with MariaDb() as found:
        with found.session() as s:
            s.rows("create table t (id int primary key, v int) engine=InnoDB")
            s.rows("insert into t select seq, 0 from seq_1_to_9")
        words = ("--target", found.url, "--runs", tmp_path / "r", "--json", "-q")
        done = pgdyno("run", _experiment(tmp_path, script, "python:pymysql", more="collect = []\n"), *words)
        assert done.code == 0, done.err + str(done.json["trials"])
        with found.session() as s:
            ((total,),) = s.rows("select sum(v) from t")
    committed = json.loads(done.out)["trials"][0]["summary"]["committed"]
    assert committed <= int(total) <= committed + 4
