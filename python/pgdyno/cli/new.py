"""`pgdyno new`: an experiment file to begin with."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path

from pgdyno.cli import streams
from pgdyno.errors import UsageError, msg

_HEAD = """\
# {title}. What it will do: pgdyno plan {file}. To do it: pgdyno run {file}
# All keys: docs/reference/experiment.md. What is commented out shows what is there when nothing is said, or an example.
name = "{name}"
title = "{title}"

"""
_DATASETS = {
    "tpcb": """\
[dataset]
kind = "tpcb"          # pgbench's four tables; also: pk, feed; your own: sql, dump, none (pgdyno new --kind)
scale = 10             # 100,000 accounts each, 15 MB; "auto": what fits this machine
# fillfactor = 90
""",
    "sql": """\
[dataset]
kind = "sql"
files = ["schema.sql"]        # beside this file: CREATE TABLE and the like, \\copy of CSV or Parquet
# after = ["indexes.sql"]     # carried out when the tables are full

# Tables to be filled with values that are drawn. What is not said of a column is taken from the catalog: its type,
# its foreign keys, its unique constraints.
[dataset.fill.customers]
rows = 10_000
[dataset.fill.orders]
rows = 100_000
columns.customer_id = { type = "reference", to = "customers.id", distribution = "zipf", skew = 0.8 }
columns.state = { type = "choice", values = ["new", "paid", "sent"], weights = [1, 2, 7] }
columns.placed = { type = "timestamp", min = "2024-01-01", max = "2025-01-01", like = "id", correlation = 0.99 }
columns.total = { type = "number", min = 1, max = 500, distribution = "exponential", nulls = 0.01 }
""",
    "dump": """\
[dataset]
kind = "dump"
dump = "shop.dump"     # of pg_dump, in any format; restored into an empty database
""",
    "none": """\
[dataset]
kind = "none"          # the database as it is: nothing is made, dropped or emptied; the workload does what it does
""",
}
_SCHEMA = """\
create table customers (
  id bigint generated always as identity primary key,
  name text not null,
  email text unique
);
create table orders (
  id bigint generated always as identity primary key,
  customer_id bigint not null references customers,
  state text not null,
  placed timestamptz not null default now(),
  total numeric(10, 2)
);
create index on orders (customer_id, placed);
"""
_TPCB_WORKLOADS = """\
[workloads.read-write]
title = "TPC-B TPS"
scripts = [{ builtin = "tpcb-like" }]

[workloads.read-only]
scripts = [{ name = "read an account", weight = 1, text = '''
\\set aid random(1, :range)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
''' }]

"""
_OWN_WORKLOADS = """\
# Scripts in pgbench's language, here or in files beside this one ({ file = "place.sql", weight = 2 }). Of each table
# that they touch they know :TABLE_rows, and of its integer key :TABLE_first and :TABLE_last.
[workloads.shop]
scripts = [
  { name = "place an order", weight = 1, text = '''
\\set customer random(:customers_first, :customers_last)
BEGIN;
-- name: look up the customer
SELECT name FROM customers WHERE id = :customer;
-- name: insert the order
INSERT INTO orders (customer_id, state, total) VALUES (:customer, 'new', 42);
END;
''' },
  { name = "newest orders", weight = 9, text = '''
\\set customer random(:customers_first, :customers_last)
SELECT id, state, total FROM orders WHERE customer_id = :customer ORDER BY placed DESC LIMIT 10;
''' },
]

"""
_TAIL = """\
# Without a target a private PostgreSQL is started; --target names one for the whole run.
# [targets.main]
# conninfo = "host=db1 dbname=bench user=me"

[axes]
clients = [2, 8, 32]             # connections; each combination of all axes is a configuration
# hot_set = [0.1, 1.0]           # parts of the rows
# settings.synchronous_commit = ["on", "off"]   # of private servers

[run]
duration_s = 10                  # 60 or more for figures to publish
warmup_s = 2
repetitions = 3
# rate = 500                     # open loop: transactions per second over all clients
# between = { checkpoint = true, restore = "template" }   # so that trials begin alike
"""


def head_of(path: Path, head: str) -> str:
    """Return the first lines of an experiment for this file."""
    name = re.sub(r"[^a-z0-9_-]+", "-", path.stem.lower()).strip("-_")[:60] or "experiment"
    title = path.stem.replace("-", " ").replace('"', "'").replace("\\", "/")
    return head.format(title=title, file=path, name=name)


def main(path: Path, kind: str, source: str | None = None) -> int:
    """Write the file, and of kind sql a schema beside it. Raise UsageError where something is in the way."""
    if source is not None:
        # It starts a server, whose modules take long to import.
        from pgdyno.cli import from_schema

        return from_schema.main(path, source, partial(head_of, head=_HEAD), _TAIL)
    if kind not in _DATASETS:
        raise UsageError(msg("error-kind-there-no", kind=kind), msg("remedy-choices", choices=", ".join(_DATASETS)))
    path = path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")
    workloads = _TPCB_WORKLOADS if kind == "tpcb" else _OWN_WORKLOADS
    head = head_of(path, _HEAD)
    texts = {path: head + _DATASETS[kind] + "\n" + workloads + _TAIL}
    if kind == "sql":
        texts[path.with_name("schema.sql")] = _SCHEMA
    for each in texts:
        if each.exists():
            raise UsageError(
                msg("error-there-already-nothing-was-written-2", each=each), msg("remedy-name-another-file")
            )
    for each, text in texts.items():
        with each.open("x", encoding="utf-8") as f:
            f.write(text)
    for line in (msg("new-written", files=", ".join(map(str, texts))), msg("new-look", file=path)):
        sys.stdout.write(f"{streams.written(line)}\n")
    return 0
