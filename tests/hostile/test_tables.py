"""Tables that pgdyno did not make stay, whenever they came."""

from __future__ import annotations

import pytest
from pgdyno.cluster import target as targets
from pgdyno.errors import PgdynoError
from pgdyno.load.connected import Connected
from pgdyno.load.dataset import Dataset
from pgdyno.load.listener import LoadListener

from tests.support.server import Server


def loading(server: Server, dbname: str, dataset: Dataset) -> Connected:
    target = targets.resolve(server.conninfo(dbname=dbname))
    return Connected(
        target,
        dataset,
        "public",
        in_server=False,
        connections=2,
        split=False,
        connect_timeout_s=10.0,
        listener=LoadListener(),
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
    assert ("Nothing was changed" if tables == 3 else "Nothing was kept") in str(e.value)
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
    with pytest.raises(PgdynoError, match="depend on it") as e:
        loading(server, "before", Dataset("pk", 200)).make(["pk"])
    assert "Nothing was changed" in str(e.value)
    assert server.sql("select count(*) from pk", dbname="before") == [(100,)]
    server.sql("drop database before")
