"""Tables that pgdyno did not make stay, whenever they came."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.errors import PgdynoError
from pgdyno.load import find
from pgdyno.load.claim import Claim
from pgdyno.load.connected import Connected
from pgdyno.load.dataset import Dataset
from pgdyno.stream.stream import RunStream

from tests.support.cli import pgdyno
from tests.support.messages import text
from tests.support.server import Server
from tests.support.tells import tells


def loading(server: Server, dbname: str, dataset: Dataset) -> Connected:
    target = targets.resolve(server.conninfo(dbname=dbname))
    return Connected(
        target,
        dataset,
        "public",
        on_server=False,
        connections=2,
        split=False,
        connect_timeout_s=10.0,
        stream=RunStream(),
    )


@pytest.mark.parametrize("tables", [3, 1200])
def test_a_table_that_came_meanwhile_stays(server: Server, tables: int) -> None:
    """Another session makes a table between our look and our CREATE TABLE: with few tables, in one transaction; with
    so many that they take several.
    """
    server.sql("drop database if exists meanwhile with (force)")
    server.sql("create database meanwhile")
    mine = f"feed{tables}"
    server.sql(f"create table {mine} (mine text); insert into {mine} values ('mine')", dbname="meanwhile")
    with pytest.raises(PgdynoError, match="already exists") as e:
        loading(server, "meanwhile", Dataset("feed", 10, tables_wanted=tables)).make([])
    assert tells(str(e.value), "left-unchanged" if tables == 3 else "left-nothing")
    names = server.sql("select relname from pg_class where relkind = 'r' and relname like 'feed%'", dbname="meanwhile")
    assert names == [(mine,)] and server.sql(f"select * from {mine}", dbname="meanwhile") == [("mine",)]
    server.sql("drop database meanwhile")


def test_a_load_that_fails_changes_nothing_it_did_not_begin(server: Server) -> None:
    """The old tables stay where the new ones cannot be made."""
    server.sql("drop database if exists before with (force)")
    server.sql("create database before")
    old = Dataset("pk", 100)
    loading(server, "before", old).make([])
    server.sql("create view other as select 1", dbname="before")
    # A view that stands on a table keeps it from being dropped.
    server.sql("create view uses as select * from pk", dbname="before")
    new = Dataset("pk", 200)
    with administration.connect(targets.resolve(server.conninfo(dbname="before"))) as conn:
        there = find.find(conn, new).tables
    with pytest.raises(PgdynoError, match="depend on it") as e:
        loading(server, "before", new).make(there)
    assert tells(str(e.value), "left-unchanged")
    assert server.sql("select count(*) from pk", dbname="before") == [(100,)]
    server.sql("drop database before")


def loaded(server: Server, database: str, *args: str) -> tuple[int, str]:
    done = pgdyno("load", *args, "--target", server.conninfo(dbname=database))
    return done.code, done.err


@pytest.mark.slow
def test_a_table_that_was_renamed_is_its_owner_s(server: Server, database: str) -> None:
    """The comment goes with a table that is renamed; what it says is of another."""
    assert loaded(server, database, "tpcb", "--scale", "1")[0] == 0
    server.sql("insert into pgbench_history values (1, 1, 1, 42)", dbname=database)
    server.sql("alter table pgbench_history rename to my_results", dbname=database)
    assert loaded(server, database, "tpcb", "--scale", "1")[0] == 0
    assert server.sql("select delta from my_results", dbname=database) == [(42,)]
    assert server.sql("select count(*) from pgbench_history", dbname=database) == [(0,)]
    # It also stays where one of ours is called as another was.
    server.sql("drop table pgbench_history; alter table my_results rename to pgbench_tellers_old", dbname=database)
    server.sql("create table pgbench_history (mine text)", dbname=database)
    code, said = loaded(server, database, "tpcb", "--scale", "1")
    assert code == 3 and tells(said, "error-exists-not-ours", tables="pgbench_history")
    assert server.sql("select delta from pgbench_tellers_old", dbname=database) == [(42,)]


@pytest.mark.slow
def test_what_somebody_attached_to_a_table_of_ours_stays(server: Server, database: str) -> None:
    """Who drops a partitioned table drops its partitions."""
    assert loaded(server, database, "tpcb", "--scale", "1", "--partitions", "2")[0] == 0
    server.sql("create schema theirs", dbname=database)
    server.sql("alter table pgbench_accounts detach partition pgbench_accounts_2", dbname=database)
    server.sql("create table theirs.mine (like pgbench_accounts_2)", dbname=database)
    server.sql(
        "alter table pgbench_accounts attach partition theirs.mine for values from (50001) to (maxvalue)",
        dbname=database,
    )
    code, said = loaded(server, database, "tpcb", "--scale", "1")
    assert code == 3 and "theirs.mine" in said, said
    assert server.sql("select count(*) from theirs.mine", dbname=database) == [(0,)]


@pytest.mark.slow
def test_a_dataset_of_another_size_goes_only_when_it_may(server: Server, database: str, tmp_path: Path) -> None:
    assert loaded(server, database, "tpcb", "--scale", "2")[0] == 0
    for verb in (["load", "tpcb"], ["run", "quick", "--duration", "1", "--runs", str(tmp_path)]):
        done = pgdyno(*verb, "--scale", "1", "--target", server.conninfo(dbname=database))
        assert done.code == 3, done.err
        said = " ".join(done.err.split())
        assert (
            tells(said, "error-holds-another-dataset-pgdyno-s-3", name="tpcb scale=2")
            and " MB)" in said
            and "--replace" in said
        )
        for table in ("accounts", "branches", "history", "tellers"):
            assert f"pgbench_{table}" in said
    assert server.sql("select count(*) from pgbench_branches", dbname=database) == [(2,)]
    assert list(tmp_path.iterdir()) == []
    code, said = loaded(server, database, "tpcb", "--scale", "1", "--replace")
    assert code == 0 and tells(" ".join(said.split()), "progress-replacing", what="tpcb scale=2")
    assert server.sql("select count(*) from pgbench_branches", dbname=database) == [(1,)]


@pytest.mark.slow
def test_a_dataset_from_a_dump_is_used_but_never_dropped(server: Server, database: str) -> None:
    """Its marks were written on other tables: those of the same names elsewhere."""
    assert loaded(server, database, "pk", "--rows", "100")[0] == 0
    server.sql("create table copy (like pk including all)", dbname=database)
    server.sql("insert into copy select * from pk", dbname=database)
    comment = server.sql("select obj_description('pk'::regclass)", dbname=database)[0][0]
    server.sql("drop table pk; alter table copy rename to pk", dbname=database)
    server.sql(f"comment on table pk is '{comment}'", dbname=database)
    assert loaded(server, database, "pk", "--rows", "100")[0] == 0
    code, said = loaded(server, database, "pk", "--rows", "200", "--replace")
    assert code == 3 and tells(" ".join(said.split()), "error-exists-with-other-marks")
    assert loaded(server, database, "pk", "--rows", "200", "--force")[0] == 0


def test_nothing_is_dropped_once_the_claim_is_lost(server: Server, database: str) -> None:
    """Whoever may terminate its session lets another pgdyno in."""
    target = targets.resolve(server.conninfo(dbname=database))
    loading(server, database, Dataset("pk", 100)).make([])
    with Claim(target, force=False) as claim:
        there = find.find(claim.conn, Dataset("pk", 200)).tables
        server.sql(f"select pg_terminate_backend({claim.holder}, 5000)", dbname=database)
        with pytest.raises(PgdynoError, match="claim on this database is lost"):
            loading(server, database, Dataset("pk", 200)).make(there, claim)
        assert server.sql("select count(*) from pk", dbname=database) == [(100,)]
        claim.renew()
        with pytest.raises(PgdynoError, match="another pgdyno is at work"):
            Claim(target, force=False)
        # And what was replaced meanwhile stays.
        server.sql("alter table pk rename to other; create table pk (mine text)", dbname=database)
        with pytest.raises(PgdynoError, match="another table by now"):
            loading(server, database, Dataset("pk", 200)).make(there, claim)
        server.sql("drop table pk", dbname=database)
    first = Claim(target, force=False)
    server.sql(f"select pg_terminate_backend({first.holder}, 5000)", dbname=database)
    with Claim(target, force=False), pytest.raises(PgdynoError, match="another pgdyno is at work"):
        first.renew()


def test_names_are_listed_each() -> None:
    assert find.listed_names([f"feed{i}" for i in (0, 1, 2, 10, 11)]) == "feed0 to feed2 (3 tables), feed10, feed11"
    assert find.listed_names(["b", "a01", "a02"]) == "a01, a02, b"


@pytest.mark.slow
def test_whoever_may_create_functions_gets_no_further(server: Server, database: str) -> None:
    """A function that fits better than the server's own, a forged mark, names that end a literal or a block."""
    server.sql("drop role if exists evil")
    server.sql("create role evil login")
    server.sql("grant create on schema public to evil", dbname=database)
    server.sql(f"alter database {database} owner to evil")
    server.sql(f"alter database {database} set standard_conforming_strings = off")
    try:
        with psycopg.connect(server.conninfo(dbname=database, user="evil"), autocommit=True) as conn:
            conn.execute("set standard_conforming_strings = on")
            become = "as $f$ begin alter role evil superuser; return null; end $f$ language plpgsql"
            for name, arguments, result in (
                ("pg_relation_size", "oid", "bigint"),
                ("pg_total_relation_size", "oid", "bigint"),
                ("quote_ident", "name", "text"),
                ("obj_description", "oid, text", "text"),
                ("to_regclass", "name", "regclass"),
                ("concat", "text, text, text", "text"),
            ):
                conn.execute(f"create function public.{name}({arguments}) returns {result} {become}".encode())
            for n, name in enumerate(["\\'])as l(name);alter role evil superuser;end--", "a$$b$pgdyno$c", "plain"]):
                quoted = name.replace('"', '""')
                conn.execute(f'create table "{quoted}" (n int)'.encode())
                oid = conn.execute("select oid from pg_class where relname = %s", [name]).fetchone()
                assert oid is not None
                mark = f"pgdyno dataset tpcb scale={n + 7} [{name} {oid[0]}] (not complete)".replace("'", "''")
                conn.execute(f"comment on table \"{quoted}\" is '{mark}'".encode())
            conn.execute("create view pgbench_accounts_9 as select 1")
        for words in (("--scale", "1"), ("--scale", "2", "--replace")):
            code, said = loaded(server, database, "tpcb", *words)
            assert code == 0, said
        assert server.sql("select rolsuper from pg_roles where rolname = 'evil'") == [(False,)]
        assert server.sql("select count(*) from plain", dbname=database) == [(0,)]
    finally:
        server.sql(f"drop database {database} with (force)")
        server.sql("drop role evil")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "why"),
    [
        ("create table pgbench_accounts (aid int not null, bid int, abalance int, filler char(84)); "
         "insert into pgbench_accounts values (100001, 1, 0, '')", text("why-other-rows")),
        ("create table pgbench_accounts (aid int, precious text)", text("why-other-columns")),
        ("create table pgbench_accounts (aid int not null, bid int, abalance int, filler char(84)); "
         "alter table pgbench_accounts owner to forger", text("why-belongs-to", owner="forger")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("state", ["", " (not complete)"])
def test_a_forged_mark_is_not_enough(server: Server, database: str, make: str, why: str, state: str) -> None:
    """Anybody can write a comment on a table of theirs, and a dump that is restored by hand may carry one."""
    server.sql("drop role if exists forger; create role forger")
    try:
        server.sql(make, dbname=database)
        ((oid,),) = server.sql("select 'pgbench_accounts'::regclass::oid", dbname=database)
        mark = f"pgdyno dataset tpcb scale=1 [pgbench_accounts {oid}]{state}"
        server.sql(f"comment on table pgbench_accounts is '{mark}'", dbname=database)
        for words in (("--scale", "1"), ("--scale", "2")):
            code, said = loaded(server, database, "tpcb", *words)
            flat = " ".join(said.split())
            # Of another size it is refused anyway.
            is_known = why in flat or (state == "" and words[1] == "2" and "holds another dataset" in flat)
            assert code == 3 and is_known and "--replace" in said, said
            assert server.sql("select 'pgbench_accounts'::regclass::oid", dbname=database) == [(oid,)]
        code, said = loaded(server, database, "tpcb", "--scale", "1", "--replace")
        assert code == 0, said
    finally:
        server.sql(f"drop database {database} with (force)")
        server.sql("drop role forger")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("tpcc", "--warehouses", "1"), ("feed", "--rows", "10", "--tables", "3"),
                                   ("pk", "--rows", "10"), ("tpcb", "--scale", "1", "--partitions", "2")])  # fmt: skip
def test_what_a_load_left_unfinished_is_no_doubt(server: Server, database: str, words: tuple[str, ...]) -> None:
    assert loaded(server, database, *words)[0] == 0
    server.sql(
        "do $$ declare t regclass; begin for t in select oid from pg_class where relkind in ('r', 'p') and "
        "obj_description(oid, 'pg_class') like 'pgdyno dataset%' loop execute format('comment on table %s is %L', t, "
        "obj_description(t, 'pg_class') || ' (not complete)'); end loop; end $$", dbname=database,
    )  # fmt: skip
    code, said = loaded(server, database, *words)
    assert code == 0, said


def test_schemas_with_odd_names(server: Server, database: str) -> None:
    server.sql('create schema "My Schema"', dbname=database)
    server.sql(f'alter database {database} set search_path to "My Schema"')
    assert loaded(server, database, "tpcb", "--scale", "1")[0] == 0
    assert loaded(server, database, "tpcb", "--scale", "1", "--partitions", "3", "--replace")[0] == 0
    assert server.sql("select count(*) from pgbench_accounts", dbname=database) == [(100_000,)]


@pytest.mark.slow
def test_more_tables_than_a_transaction_locks(server: Server, database: str) -> None:
    code, said = loaded(server, database, "tpcb", "--scale", "1", "--partitions", "1100")
    assert code == 0, said
    assert loaded(server, database, "tpcb", "--scale", "1", "--replace")[0] == 0
    assert server.sql("select count(*) from pg_class where relname ~ '^pgbench_acc.*[0-9]$'", dbname=database) == [(0,)]
    assert loaded(server, database, "feed", "--rows", "1", "--tables", "600")[0] == 0
    server.sql("create view v as select * from feed600", dbname=database)
    code, said = loaded(server, database, "feed", "--rows", "1", "--tables", "2", "--replace")
    assert code == 3 and tells(said, "left-some-gone"), said


@pytest.mark.slow
def test_marks_of_old_are_replaced_when_it_is_said(server: Server, database: str) -> None:
    assert loaded(server, database, "pk", "--rows", "100")[0] == 0
    server.sql("comment on table pk is 'pgdyno dataset pk rows=100'", dbname=database)
    assert loaded(server, database, "pk", "--rows", "100")[0] == 0
    code, said = loaded(server, database, "pk", "--rows", "200")
    assert code == 3 and tells(" ".join(said.split()), "error-holds-another-dataset-pgdyno-s-2") and "--replace" in said
    assert loaded(server, database, "pk", "--rows", "200", "--replace")[0] == 0
