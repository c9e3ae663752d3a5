"""Sizes that are computed before a table is made, against those of tables that pgbench made."""

from __future__ import annotations

import subprocess

import pytest
from pgdyno import _core

from tests.support.cli import environment
from tests.support.server import Server


@pytest.mark.parametrize("scale", [1, 2, 5, 13])
def test_tpcb_is_as_large_as_it_was_said_to_be(server: Server, scale: int) -> None:
    server.sql("drop database if exists sized")
    server.sql("create database sized")
    where = {"PGHOST": str(server.socket), "PGPORT": str(server.port), "PGUSER": "postgres"}
    words = [server.bin / "pgbench", "-i", "-q", "-s", str(scale), "sized"]
    subprocess.run(words, check=True, capture_output=True, env=environment(**where))
    query = """select c.relname, pg_relation_size(c.oid), coalesce(pg_relation_size(i.indexrelid), 0)
        from pg_class c left join pg_index i on i.indrelid = c.oid
        where c.relname like 'pgbench%' and c.relkind = 'r'"""
    there = {name: (heap, key) for name, heap, key in server.sql(query, dbname="sized")}
    assert {t.name: (t.heap_bytes, t.key_bytes) for t in _core.Dataset("tpcb", scale).tables} == there
    server.sql("drop database sized")
