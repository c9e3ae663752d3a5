"""Tables that pgdyno did not make are not touched: random databases of somebody's objects around ours, random verbs.

The truth is a fingerprint of all that is not ours, taken before and after: rows, contents, files, definitions. A failure
is shrunk to the fewest objects that show it, and printed with its seed.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.cli import Result, pgdyno
from tests.support.server import Server

#: How many databases the slow tests make.
SEEDS = int(os.environ.get("PGDYNO_SEEDS", "10"))
OURS = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers", "pk")


@dataclass(frozen=True)
class Thing:
    """Something of somebody's. `ties`: it hangs on a table of ours in a way in which statements reach it."""

    sql: str
    ties: bool = False


def things(rng: random.Random, n: int) -> list[Thing]:
    """Objects of somebody's, of any kind, around tables of ours."""
    found: list[Thing] = []
    for i in range(n):
        t = rng.choice(OURS[:4])
        key = {"pgbench_accounts": "aid", "pgbench_branches": "bid", "pgbench_tellers": "tid"}.get(t, "tid")
        name = rng.choice(
            [f"mine{i}", f'"My Table {i}"', f"other.mine{i}", f'"quo""ted{i}"', f"pgbench_log{i}", f"feedx{i}"]
        )
        rows = f"insert into {name} select g from generate_series(1, {rng.randrange(1, 500)}) g;"
        plain = f"create table {name} (id int primary key); {rows}"
        found.append(
            rng.choice([
                Thing(plain),
                Thing(plain + f"comment on table {name} is 'pgdyno: something else';"),
                Thing(f"create table {name} () inherits ({t}); insert into {name} select * from {t} limit 100;", ties=True),
                Thing(f"create table {name} () inherits ({t}); create table other.deep{i} () inherits ({name}); "
                      f"insert into other.deep{i} select * from {t} limit 10;", ties=True),
                Thing(plain + f"create function other.hit{i}() returns trigger language plpgsql as "
                      f"$$ begin insert into {name} select max(id) + 1 from {name}; return new; end $$; "
                      f"create trigger hit after insert or update on {t} for each row execute function other.hit{i}();",
                      ties=True),
                Thing(plain + f"create rule r{i} as on update to {t} do also delete from {name} where id < 5;", ties=True),
                Thing(f"create table {name} (id int references pgbench_branches on delete cascade);", ties=True),
                Thing(f"create view other.v{i} as select * from {t};"),
                Thing(f"create materialized view other.m{i} as select {key} from {t} limit 50;"),
                Thing(f"create sequence other.s{i}; select nextval('other.s{i}');"),
                Thing(f"create type other.mood{i} as enum ('a', 'b'); create domain other.d{i} as int check (value > 0);"),
                Thing(f"create table {name} (a int, b text) partition by range (a); create table other.part{i} partition of "
                      f"{name} for values from (0) to (100); insert into {name} select g, 'x' from generate_series(0, 99) g;"),
                Thing(plain + f"alter table {name} enable row level security; create policy p on {name} using (id < 10);"),
                Thing(f"create publication pub{i} for table {t};"),
                Thing(plain + f"alter table {name} owner to somebody;"),
                Thing(f"create table other.{t} (id int); insert into other.{t} values (1), (2);"),
                Thing(f"create function other.f{i}(int) returns int language sql as 'select $1';"),
            ])
        )  # fmt: skip
    return found


VERBS: list[tuple[Any, ...]] = [
    ("load", "tpcb", "--scale", 1),
    ("load", "tpcb", "--scale", 2, "--replace"),
    ("load", "pk", "--rows", 1000, "--replace"),
    ("run", "quick", "--scale", 1, "--clients", 2, "--duration", 0.3, "--warmup", 0, "--repetitions", 1, "--hot-set", 1),
    ("run", "TRUNCATE",),
]  # fmt: skip
TRUNCATE = """
name = "t"
title = "t"
[dataset]
scale = 1
[workloads.w]
scripts = [{ builtin = "tpcb-like" }]
[axes]
clients = [2]
[run]
duration_s = 0.3
warmup_s = 0
repetitions = 2
between = { restore = "truncate" }
"""
#: Every relation that is not ours, with its rows, contents and files; and the definitions of all else.
FINGERPRINT = r"""
create or replace function pg_temp.fingerprint() returns setof text language plpgsql as $f$
declare r record; n text;
begin
  for r in select c.oid, c.oid::regclass::text as name, c.relkind, c.relfilenode, c.relowner, c.relacl::text as acl,
                  obj_description(c.oid, 'pg_class') as comment
           from pg_class c join pg_namespace s on s.oid = c.relnamespace
           where s.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and s.nspname not like 'pg\_temp%'
             and s.nspname not like 'pg\_toast%'
             and not (s.nspname = 'public' and (c.relname = any(%(ours)s) or exists (
               select from pg_index i join pg_class t on t.oid = i.indrelid where i.indexrelid = c.oid
                 and t.relname = any(%(ours)s) and t.relnamespace = s.oid)))
           order by c.oid
  loop
    n := '';
    if r.relkind in ('r', 'p', 'm') then
      execute format('select count(*) || '' '' || coalesce(sum(hashtextextended(t::text, 0)), 0) from %%s t',
                     r.name) into n;
    elsif r.relkind = 'S' then
      execute format('select last_value || '' '' || is_called from %%s', r.name) into n;
    elsif r.relkind = 'v' then n := pg_get_viewdef(r.oid);
    end if;
    return next concat_ws(' | ', r.name, r.relkind, r.oid, r.relfilenode, r.relowner, r.acl, r.comment, n);
  end loop;
  return query select 'function ' || pg_get_functiondef(p.oid) from pg_proc p join pg_namespace s on s.oid = pronamespace
    where nspname = 'other' order by 1;
  return query select 'trigger ' || pg_get_triggerdef(oid) from pg_trigger where not tgisinternal order by 1;
  return query select 'rule ' || pg_get_ruledef(oid) from pg_rewrite where rulename <> '_RETURN' order by 1;
  return query select 'key ' || conrelid::regclass || pg_get_constraintdef(oid) from pg_constraint
    where contype = 'f' order by 1;
  return query select 'inherits ' || inhrelid::regclass || inhparent::regclass from pg_inherits order by 1;
  return query select 'publication ' || pubname || prrelid::regclass from pg_publication_rel pr
    join pg_publication p on p.oid = pr.prpubid order by 1;
  return query select 'type ' || typname || typtype::text from pg_type t join pg_namespace s on s.oid = typnamespace
    where nspname = 'other' order by 1;
  return query select 'policy ' || polname || polrelid::regclass from pg_policy order by 1;
end $f$"""


def fingerprint(server: Server, name: str) -> list[str]:
    with psycopg.connect(server.conninfo(dbname=name)) as conn:
        conn.execute(FINGERPRINT.replace("%(ours)s", f"array{list(OURS)}").replace("%%", "%").encode())
        return [r[0] for r in conn.execute("select * from pg_temp.fingerprint()").fetchall()]


def play(server: Server, made: list[Thing], words: tuple[Any, ...], tmp: Path) -> tuple[Result, list[str]]:
    """Make a database with our tables and these things, run a verb, and return what has changed of the things."""
    name = "strangers"
    server.sql(f"drop database if exists {name} with (force)")
    server.sql(f"create database {name} template strangers_with_ours")
    kept = []
    for thing in made:
        try:
            server.sql(thing.sql, dbname=name)
            kept.append(thing)
        except Exception:
            # Two of one name, or two ties that exclude each other: no object then.
            continue
    before = fingerprint(server, name)
    if words[1] == "TRUNCATE":
        (tmp / "t.toml").write_text(TRUNCATE)
        words = ("run", tmp / "t.toml")
    more = ("--runs", tmp / "runs", "-q") if words[0] == "run" else ()
    done = pgdyno(*words, *more, "--target", server.conninfo(dbname=name))
    after = fingerprint(server, name)
    assert any(t.ties for t in kept) or done.code in (0, 1, 3), done.err
    return done, sorted(set(before) ^ set(after))


@pytest.fixture(scope="module")
def ours(server: Server) -> None:
    server.sql("drop database if exists strangers_with_ours with (force)")
    server.sql("create database strangers_with_ours")
    done = pgdyno("load", "tpcb", "--scale", 1, "--target", server.conninfo(dbname="strangers_with_ours"))
    assert done.code == 0, done.err
    # Marks are bound to OIDs, which a copy of the database keeps.
    server.sql("create schema other; do $$ begin create role somebody; exception when others then null; end $$",
               dbname="strangers_with_ours")  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, SEEDS))])
def test_what_is_somebodys_stays(server: Server, ours: None, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    made, words = things(rng, rng.randrange(1, 7)), rng.choice(VERBS)
    _, changed = play(server, made, words, tmp_path)
    if changed:
        # The fewest things that show it.
        for thing in list(made):
            fewer = [t for t in made if t is not thing]
            if play(server, fewer, words, tmp_path)[1]:
                made = fewer
        pytest.fail(f"seed {seed}: {words} changed {changed[:4]}\n" + "\n".join(t.sql for t in made))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("create table my_results (note text) inherits (pgbench_history)", "my_results inherits from"),
        ("create trigger t before update on pgbench_accounts for each row execute function suppress_redundant_updates_trigger()",
         "has the trigger t"),
        ("create rule r as on insert to pgbench_history do also notify x", "has the rule r"),
        ("create table mine (bid int references pgbench_branches on update cascade)", "a foreign key of"),
        ("create table whole (like pgbench_tellers) partition by range (tid); "
         "alter table whole attach partition pgbench_tellers for values from (minvalue) to (maxvalue)", "is attached to"),
    ],
)  # fmt: skip
def test_what_is_tied_to_ours_is_refused_by_name(
    server: Server, ours: None, tmp_path: Path, sql: str, named: str
) -> None:
    for force in ((), ("--force",)):
        done, changed = play(server, [Thing(sql, ties=True)], (*VERBS[3], *force), tmp_path)
        assert done.code == 3 and named in " ".join(done.err.split()) and not changed, done.err


@pytest.mark.slow
def test_a_template_is_refused_and_subscribers_are_named(server: Server, tmp_path: Path) -> None:
    name = "template1"
    done = pgdyno("load", "pk", "--rows", 10, "--target", server.conninfo(dbname=name))
    assert done.code == 3 and "is a template" in done.err, done.err
    done = pgdyno("run", "quick", "--target", server.conninfo(dbname=name), "--runs", tmp_path, "-q")
    assert done.code == 3 and "is a template" in done.err and not list(tmp_path.iterdir()), done.err
    assert server.sql("select count(*) from pg_class where relname = 'pk'", dbname="template1") == [(0,)]
    server.sql("drop database if exists published")
    server.sql("create database published")
    server.sql("create publication everything for all tables", dbname="published")
    done = pgdyno("load", "pk", "--rows", 10, "--target", server.conninfo(dbname="published"))
    assert done.code == 0 and "publication everything of all tables" in done.err, done.err
    server.sql("drop database published")
