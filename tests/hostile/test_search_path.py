"""A database whose owner has laid a trap under every name of the server's: pgdyno calls and reads none of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import pgdyno
from tests.support.server import Server

#: Functions, operators, types and views of the server's names: each springs when it is used.
TRAPS = r"""
create schema evil;
create sequence evil.sprung;
create function evil.spring(what pg_catalog.text) returns pg_catalog.bool language plpgsql
  set search_path = pg_catalog as $$
  begin
    perform nextval('evil.sprung');
    raise warning 'sprung: % in %', what, left(current_query(), 200);
    return true;
  end $$;
do $do$
declare f record; n int := 0; result text;
begin
  for f in select p.proname, p.oid, oidvectortypes(p.proargtypes) as args, format_type(p.prorettype, null) as returns
           from pg_proc p where p.pronamespace = 11 and p.prokind in ('f', 'a', 'w')
             and not exists (select from unnest(p.proargtypes::oid[] || p.prorettype) t join pg_type y on y.oid = t
                             where y.typtype = 'p' and y.typname <> 'void')
  loop
    begin
      execute format('create function evil.%I(%s) returns %s language plpgsql set search_path = pg_catalog as '
                     '$f$ begin perform evil.spring(%L); raise exception %L; end $f$',
                     f.proname, f.args, f.returns, 'function ' || f.proname, 'trap');
    exception when others then null; end;
  end loop;
  -- Where the server's own takes any type: one that fits better.
  foreach result in array array['int4', 'int8', 'text', 'name', 'oid', 'float8', 'numeric', 'bool'] loop
    execute format('create function evil.count(%s) returns pg_catalog.int8 language plpgsql as '
                   '$f$ begin perform evil.spring(%L); return 0; end $f$', 'pg_catalog.' || result, 'count');
    execute format('create function evil.to_jsonb(%s) returns pg_catalog.jsonb language plpgsql as '
                   '$f$ begin perform evil.spring(%L); return null; end $f$', 'pg_catalog.' || result, 'to_jsonb');
  end loop;
  for f in select o.oprname, format_type(oprleft, null) as l, format_type(oprright, null) as r,
                  format_type(oprresult, null) as returns
           from pg_operator o where o.oprnamespace = 11 and oprleft <> 0
             and not exists (select from unnest(array[oprleft, oprright, oprresult]) t join pg_type y on y.oid = t
                             where y.typtype = 'p')
  loop
    n := n + 1;
    begin
      execute format('create function evil.operator_%s(%s, %s) returns %s language plpgsql as '
                     '$f$ begin perform evil.spring(%L); raise exception %L; end $f$',
                     n, f.l, f.r, f.returns, 'operator ' || f.oprname, 'trap');
      execute format('create operator evil.%s (leftarg = %s, rightarg = %s, function = evil.operator_%s)',
                     f.oprname, f.l, f.r, n);
    exception when others then null; end;
  end loop;
  for f in select relname from pg_class where relnamespace = 11 and relkind in ('r', 'v') loop
    begin
      execute format('create view evil.%I as select * from pg_catalog.%I where evil.spring(%L)', f.relname, f.relname,
                     'relation ' || f.relname);
    exception when invalid_table_definition then null; end;
  end loop;
  foreach result in array array['text', 'oid', 'float8', 'int8', 'name', 'regclass', 'jsonb', 'pg_lsn'] loop
    execute format('create domain evil.%I as pg_catalog.%I check (evil.spring(%L))', result, result, 'type ' || result);
  end loop;
end $do$;
"""


@pytest.fixture
def trapped(server: Server) -> Iterator[str]:
    server.sql("drop database if exists trapped with (force)")
    server.sql("create database trapped")
    server.sql(TRAPS, dbname="trapped")
    made = "select count(*) from pg_proc p join pg_namespace n on n.oid = pronamespace where nspname = 'evil'"
    assert server.sql(made, dbname="trapped")[0][0] > 2000
    server.sql("alter database trapped set search_path = evil, public, pg_catalog")
    yield "trapped"
    server.sql("drop database trapped with (force)")


def sprung(server: Server) -> int:
    ((called, value),) = server.sql("select is_called, last_value from evil.sprung", dbname="trapped")
    return int(value) if called else 0


def warnings(server: Server) -> list[str]:
    """What the server's log says of traps: which."""
    lines = [x for f in server.base.rglob("*") if f.is_file() and f.name.endswith("log") for x in
             f.read_text(errors="replace").splitlines()]  # fmt: skip
    return sorted({x.partition("sprung: ")[2] for x in lines if "sprung: " in x})


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("load", "tpcb", "--scale", 1),
        pytest.param(("load", "feed", "--rows", 1000, "--method", "server"), marks=pytest.mark.slow),
        ("run", "quick", "--scale", 1, "--clients", 2, "--duration", 1, "--warmup", 0.2, "--repetitions", 1),
        pytest.param(
            ("run", "tpcc", "--shrink", 100, "--clients", 2, "--duration", 1, "--warmup", 0.2, "--repetitions", 1),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda w: "-".join(map(str, w[:2])),
)
def test_no_trap_springs(server: Server, trapped: str, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert server.sql("select 1 from pg_catalog.pg_class limit 1", dbname=trapped)
    more = ("--runs", tmp_path) if words[0] == "run" else ()
    done = pgdyno(*words, "-q", "--target", server.conninfo(dbname=trapped), *more, timeout=170)
    assert done.code in (0, 1), done.err
    assert sprung(server) == 0, warnings(server)
    if words[:2] == ("run", "tpcc"):
        done = pgdyno("tpcc", "check", "--target", server.conninfo(dbname=trapped))
        assert done.code == 0, done.err
        assert sprung(server) == 0, warnings(server)
