"""MariaDB, driven natively: authentication, values, errors, loss, and a whole run."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pgdyno import _core, engine
from pgdyno.cluster import administration
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import Setting
from pgdyno.errors import RefusedError, TargetError
from pgdyno.load import loader
from pgdyno.load import mysql as loading
from pgdyno.load.dataset import Dataset
from pgdyno.mysql.session import MySqlClaim, Session, read_only
from pgdyno.stream.stream import RunStream

from tests.support.cli import pgdyno
from tests.support.mariadb import MariaDb, why_not
from tests.support.tells import tells

pytestmark = pytest.mark.skipif(why_not() != "", reason=why_not())

_SELECT = "\\set id random(1, 1000)\nselect v, d from t where id = :id;\n"
_UPDATE = "\\set id random(1, 1000)\nbegin;\nupdate t set d = d + 1 where id = :id;\ncommit;\n"
#: A column of each type, and a value.
_KINDS = {
    "tinyint": "-5", "tinyint unsigned": "200", "smallint": "-300", "year": "2026", "int": "-70000",
    "int unsigned": "4000000000", "mediumint": "-9", "bigint": "-9000000000000000000",
    "bigint unsigned": "18000000000000000000", "decimal(20,5)": "-12345.67890", "float": "1.5", "double": "-2.25e100",
    "date": "'2026-11-29'", "datetime": "'2026-11-29 01:02:03'", "datetime(6)": "'2026-11-29 01:02:03.000450'",
    "timestamp": "'2026-11-29 01:02:03'", "time": "'-838:59:59'", "time(3)": "'01:02:03.250'",
    "varchar(40)": "'it''s \\\\ ; :x 中文'", "mediumtext": "repeat('x', 70000)", "blob": "'b'", "json": "'{\"a\": 1}'",
    "char(3)": "null", "enum('a','b')": "'b'", "bit(1)": "b'1'",
}  # fmt: skip


class _Observer:
    def __init__(self) -> None:
        self.events: list[str] = []
        self.on_interval: Any = lambda: None

    def started(self, start_ns: int, connect_ns: int) -> None:
        """Nothing to do."""

    def interval(self, i: _core.Interval) -> None:
        self.on_interval()

    def event(self, e: _core.Event) -> None:
        self.events.append(f"{e.kind}: {e.text}")


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDb]:
    with MariaDb("--innodb-lock-wait-timeout=1") as found:
        with found.session() as s:
            s.rows("create table t (id int primary key, v varchar(20), d decimal(10, 2)) engine=InnoDB")
            s.rows("insert into t select seq, concat('v', seq), 0 from seq_1_to_1000")
            s.rows("create user n@'%' identified by 'p''w'")
            s.rows("create user e@'%' identified via ed25519 using password('secret')")
            s.rows("grant all on bench.* to n@'%'")
            s.rows("grant all on bench.* to e@'%'")
        yield found


def _ran(
    server: MariaDb, script: str, observer: _Observer | None = None, config: Any = None, **plan: Any
) -> _core.RunResult:
    workload = _core.Workload({}, dialect="mysql")
    workload.add("script", script)
    config = server.target().core_config() if config is None else config
    return _core.run([config], workload, observer or _Observer(), engine.Plan(**{"clients": 2, **plan}))


def _measured(result: _core.RunResult) -> _core.Interval:
    found = result.phase("measure")
    assert found is not None
    return found


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("script", [_SELECT, _UPDATE])
def test_every_transaction_is_committed(server: MariaDb, protocol: engine.Protocol, script: str) -> None:
    with server.session() as s:
        s.rows("update t set d = 0")
    result = _ran(server, script, protocol=protocol, transactions=200)
    assert result.error is None and _measured(result).committed == 400
    with server.session() as s:
        assert float(s.value("select sum(d) from t") or 0) == (400 if script == _UPDATE else 0)


@pytest.mark.parametrize(
    ("user", "password", "is_right"),
    [("n", "p'w", True), ("n", "pw", False), ("e", "secret", True), ("e", "", False), ("nobody", "x", False)],
)
@pytest.mark.parametrize("sslmode", ["disable", "require", "verify-full"])
def test_accounts_prove_their_passwords(
    server: MariaDb, user: str, password: str, is_right: bool, sslmode: str
) -> None:
    config = _core.MySqlConfig(
        host="localhost", port=server.port, user=user, database="bench", password=password, sslmode=sslmode,
        sslrootcert=str(server.certificate) if sslmode == "verify-full" else None,
    )  # fmt: skip
    if is_right:
        assert _measured(_ran(server, _SELECT, config=config, transactions=3)).committed == 6
        return
    with pytest.raises(_core.ConnectError) as found:
        _ran(server, _SELECT, config=config, transactions=3)
    assert found.value.sqlstate == "28000"


@pytest.mark.slow
def test_another_certificate_is_refused(server: MariaDb, tmp_path: Path) -> None:
    with MariaDb() as other:
        config = _core.MySqlConfig(
            host="localhost", port=server.port, user="n", database="bench", password="p'w", sslmode="verify-full",
            sslrootcert=str(other.certificate),
        )  # fmt: skip
        with pytest.raises(_core.ConnectError, match="certificate"):
            _ran(server, _SELECT, config=config, transactions=1)


def test_values_of_every_type_are_read_alike(server: MariaDb) -> None:
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(_KINDS))
    names = [f"c{n}" for n in range(len(_KINDS))]
    with server.session() as s:
        s.rows(f"create or replace table kinds ({columns})")
        s.rows(f"insert into kinds values ({', '.join(_KINDS.values())})")
        s.rows("create or replace table seen (protocol varchar(9), n int, v mediumtext)")
        direct = s.rows("select * from kinds")[0]
    # bit(1) is a byte, and no text.
    texts = names[:-1]
    for protocol in ("simple", "prepared"):
        script = f"select {', '.join(texts)} from kinds\\gset\n"
        for n, name in enumerate(texts):
            # The simple protocol writes the value into the text: it must be quoted there, and cannot hold a quote.
            value = f"':{name}'" if protocol == "simple" else f":{name}"
            value = f"replace({value}, '', '')" if protocol == "simple" else value
            if name == f"c{list(_KINDS).index('varchar(40)')}" and protocol == "simple":
                value = "'it''s \\\\ ; :x 中文'"
            script += f"insert into seen values ('{protocol}', {n}, {value});\n"
        result = _ran(server, script, protocol=protocol, clients=1, transactions=1)
        assert result.error is None
    with server.session() as s:
        for n, name in enumerate(texts):
            one, other = (
                s.value(f"select v from seen where protocol = '{p}' and n = {n}") for p in ("simple", "prepared")
            )
            expected = direct[n] or ""
            if name == f"c{list(_KINDS).index('double')}":
                assert one is not None and other is not None and float(one) == float(other) == -2.25e100
                continue
            assert (one, other) == (expected, expected), name


def test_errors_have_codes_and_mistakes_have_places(server: MariaDb) -> None:
    for script, code, words in [
        ("select * from nope;\n", "42S02", "script:1:1"),
        ("\\set a 1\nselec :a;\n", "42000", "script:2:1"),
        ("begin;\nselect 1;\n", "25001", "ends inside a transaction block"),
        ("\\startpipeline\nselect 1;\n\\endpipeline\n", "XP001", "pipelines need PostgreSQL"),
    ]:
        result = _ran(server, script, clients=1, transactions=1)
        assert result.error is not None and words in result.error, script
        assert _measured(result).failed == {code: 1}


def test_a_lock_that_is_not_granted_fails_the_transaction(server: MariaDb) -> None:
    with server.session() as s:
        s.rows("start transaction")
        s.rows("update t set d = d + 1 where id = 1")
        script = "begin;\nupdate t set d = d + 1 where id = 1;\ncommit;\n"
        result = _ran(server, script, clients=1, transactions=1)
        assert _measured(result).failed == {"M1205": 1} and result.error is None
        s.rows("rollback")


def test_a_statement_under_way_is_cancelled_at_the_end(server: MariaDb) -> None:
    result = _ran(server, "select sleep(60);\n", duration_s=0.5, drain_timeout_s=0.2)
    assert result.error is None
    with server.session() as s:
        sleeping = "select count(*) from information_schema.processlist where info like 'select sleep%'"
        assert s.value(sleeping) == "0"


@pytest.mark.slow
def test_a_server_that_dies_is_reached_again() -> None:
    with MariaDb() as own:
        with own.session() as s:
            s.rows("create table t (id int primary key, v varchar(20), d decimal(10, 2))")
            s.rows("insert into t select seq, concat('v', seq), 0 from seq_1_to_1000")
        observer = _Observer()
        again = threading.Thread(target=lambda: (own.kill(), own.start()))
        once = iter([again.start])
        observer.on_interval = lambda: next(once, lambda: None)()
        result = _ran(own, _UPDATE, observer, duration_s=15.0, interval_s=0.5)
        again.join()
        whole = _measured(result)
        assert whole.lost >= 1 and whole.reconnects >= 2, observer.events
        with own.session() as s:
            updated = float(s.value("select sum(d) from t") or 0)
        # What was acknowledged is there; what was under way may be.
        assert whole.committed <= updated <= whole.committed + whole.unknown + 4


def test_two_of_us_do_not_meet(server: MariaDb) -> None:
    with MySqlClaim(server.target(), force=False), pytest.raises(RefusedError) as found:
        MySqlClaim(server.target(), force=False)
    assert found.value.exit_code


def test_who_else_is_at_work_is_seen(server: MariaDb) -> None:
    with server.session() as s:
        s.rows("select 1")
        with pytest.raises(RefusedError) as found:
            MySqlClaim(server.target(), force=False)
        assert tells(found.value.text(), "error-use-other-session-s-were")
        MySqlClaim(server.target(), force=True).conn.close()
    # An account that sees no other session cannot say that there is none.
    with pytest.raises(RefusedError) as found:
        MySqlClaim(server.target(user="n", password="p'w"), force=False)
    assert tells(found.value.text(), "error-mysql-sessions-hidden")
    MySqlClaim(server.target(user="n", password="p'w"), force=True).conn.close()


def test_a_question_without_an_answer_ends(server: MariaDb) -> None:
    with Session(server.target(), patience_s=0.5) as s, pytest.raises(TargetError):
        s.rows("select sleep(30)")
    with server.session() as s:
        sleeping = "select count(*) from information_schema.processlist where info like 'select sleep%'"
        assert s.value(sleeping) == "0"


def test_a_variable_within_quotes_has_a_place(server: MariaDb) -> None:
    script = "\\set a 1\nselect 1 from t where v = ':a' and id = :a;\n"
    result = _ran(server, script, clients=1, transactions=1)
    assert result.error is not None and "script:2:1" in result.error and "within quotes" in result.error
    assert _measured(_ran(server, script, clients=1, transactions=1, protocol="simple")).committed == 1


def test_a_wrong_password_is_said_once(server: MariaDb) -> None:
    config = _core.MySqlConfig(host="localhost", port=server.port, user="n", database="bench", password="x")
    with pytest.raises(_core.ConnectError, match="Access denied"):
        _ran(server, _SELECT, config=config, transactions=1)


_FILE = """
name = "points"
title = "Points"
[dataset]
kind = "none"
[workloads.select]
scripts = [{ name = "select", text = '''
\\set id random(1, 1000)
select v, 'it\\'s; not the end' from t where id = :id;
''' }]
[axes]
clients = [1, 2]
"""


def test_a_whole_run(server: MariaDb, tmp_path: Path) -> None:
    file = tmp_path / "points.toml"
    file.write_text(_FILE)
    short = ("--duration", "1", "--warmup", "0.2", "--repetitions", "2", "--runs", tmp_path / "runs")
    done = pgdyno("run", file, "--target", server.url, *short, "--json")
    assert done.json["trials"], done.err
    run = next((tmp_path / "runs").iterdir())
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["server"]["product"] == "MariaDB"
    assert manifest["server"]["settings"]["innodb_flush_log_at_trx_commit"]["value"] == "1"
    report = (run / "report.md").read_text()
    assert report.splitlines()[2].startswith("MariaDB 10.")
    assert tells(report, "gap-not-postgresql")
    assert pgdyno("report", run, "--lang", "zh").code in (0, 1)
    assert tells(pgdyno("explain", run).out, "explain-other-product")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "size", "table", "sums"),
    [
        ("pk", 300_001, "pk", "select count(*), sum(id), min(crt_time), max(info) from pk"),
        ("tpcb", 2, "pgbench_accounts", "select count(*), sum(aid), max(bid), min(abalance) from pgbench_accounts"),
        ("feed", 5_000, "feed", "select count(*), sum(id), max(id), 0 from feed"),
    ],
)
def test_a_dataset_is_the_same_as_on_postgresql(server: MariaDb, kind: str, size: int, table: str, sums: str) -> None:
    dataset = Dataset(kind, size, **({"index": "none"} if kind == "feed" else {}))
    done = loading.make(server.target(), dataset, connections=2, connect_timeout_s=10, stream=RunStream())
    assert loading.holds(server.target(), dataset) and done.rows == dataset.rows
    with EmbeddedCluster([Setting("listen_addresses", "", "private-socket")]) as cluster:
        loader.into_server(cluster, dataset, force=False, replace=False, stream=RunStream())
        with administration.connect(cluster.target) as conn:
            conn.execute("set timezone to 'UTC'")
            expected = conn.execute(sums.replace("from ", "from public.").encode()).fetchone()
    with server.session() as s:
        s.rows("set time_zone = '+00:00'")
        found = s.rows(sums)[0]
    assert expected is not None
    texts = [x.strftime("%F %T.%f") if isinstance(x, datetime) else str(x) for x in expected]
    assert list(found) == texts
    # Another size is another dataset.
    other = Dataset(kind, size + 1, **({"index": "none"} if kind == "feed" else {}))
    assert not loading.holds(server.target(), other)
    with pytest.raises(RefusedError):
        loading.look(server.target(), other, replace=False)
    loading.look(server.target(), other, replace=True)


def test_a_read_only_workload_cannot_write(server: MariaDb) -> None:
    config = read_only(server.target()).core_config()
    assert _measured(_ran(server, _SELECT, config=config, transactions=2)).committed == 4
    assert _measured(_ran(server, _UPDATE, config=config, clients=1, transactions=1)).failed == {"25006": 1}


def test_tables_of_somebody_else_stay(server: MariaDb) -> None:
    with server.session() as s:
        s.rows("drop table if exists pk")
        s.rows("create table pk (a int)")
        s.rows("insert into pk values (1)")
    with pytest.raises(RefusedError):
        loading.look(server.target(), Dataset("pk", 10), replace=True)
    with pytest.raises(TargetError):
        loading.make(server.target(), Dataset("pk", 10), connections=1, connect_timeout_s=10, stream=RunStream())
    with server.session() as s:
        assert s.value("select a from pk") == "1"
        s.rows("drop table pk")


def test_a_load_that_fails_leaves_nothing(server: MariaDb) -> None:
    with server.session() as s:
        s.rows("drop table if exists pk")
        s.rows("set global local_infile = 0")
    try:
        with pytest.raises(TargetError) as found:
            loading.make(server.target(), Dataset("pk", 10), connections=1, connect_timeout_s=10, stream=RunStream())
    finally:
        with server.session() as s:
            s.rows("set global local_infile = 1")
    assert tells(found.value.text(), "remedy-local-infile")
    with server.session() as s:
        assert s.rows("show tables like 'pk'") == []


@pytest.mark.slow
def test_pgbench_and_the_shipped_experiments_run(server: MariaDb, tmp_path: Path) -> None:
    short = ("--duration", "1", "--warmup", "0.2", "--repetitions", "1", "--clients", "2", "--scale", "1")
    with server.session() as s:
        s.rows("create database other")
    url = server.url.replace("/bench", "/other")
    done = pgdyno("run", "quick", "--target", url, *short, "--runs", tmp_path, "--json")
    assert done.json["trials"], done.err
    assert all(t["summary"]["committed"] > 0 for t in done.json["trials"]), done.out
    with server.session() as s:
        s.rows("use other")
        assert s.value("select count(*) from pgbench_accounts") == "100000"
        sums = [s.value(f"select sum({c}balance) from pgbench_{t}") for c, t in (("t", "tellers"), ("b", "branches"))]
        assert sums[0] == sums[1]


def test_what_cannot_be_done_there_is_refused(server: MariaDb, tmp_path: Path) -> None:
    done = pgdyno("run", "tpcc", "--target", server.url, "--runs", tmp_path)
    assert tells(done.err, "error-no-loading-into-mysql") and done.code != 0
    assert tells(done.err, "remedy-kind-none-of-mysql")
    file = tmp_path / "points.toml"
    file.write_text(_FILE)
    done = pgdyno("run", file, "--target", server.url.replace("root@", "stranger:x@"), "--runs", tmp_path)
    assert tells(done.err, "remedy-server-mysql-account") and done.code != 0
    done = pgdyno("run", file, "--target", server.url.replace("/bench", "/nope"), "--runs", tmp_path)
    assert tells(done.err, "remedy-server-mysql-rights") and done.code != 0
    assert list(tmp_path.glob("*/manifest.json")) == []


def test_a_history_that_is_not_ours_is_not_emptied(server: MariaDb) -> None:
    dataset = Dataset("tpcb", 1)
    with server.session() as s:
        s.rows("create or replace table pgbench_history (a int)")
        s.rows("insert into pgbench_history values (1)")
    with pytest.raises(RefusedError):
        loading.refresh(server.target(), dataset)
    with server.session() as s:
        assert s.value("select a from pgbench_history") == "1"
        s.rows("drop table pgbench_history")
