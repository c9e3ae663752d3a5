"""`pgdyno new`: an experiment file to begin with."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path

from pgdyno.cli import streams
from pgdyno.errors import UsageError, msg
from pgdyno.message import Message

_HEAD = """\
# {title}. <new-plan> pgdyno plan {file}. <new-run> pgdyno run {file}
# <new-keys>
name = "{name}"
title = "{title}"

"""
_DATASETS = {
    "tpcb": """\
[dataset]
kind = "tpcb"          # <new-tpcb>
scale = 10             # <new-scale>
# fillfactor = 90
""",
    "sql": """\
[dataset]
kind = "sql"
files = ["schema.sql"]        # <new-files>
# after = ["indexes.sql"]     # <new-after>

# <new-fill>
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
dump = "shop.dump"     # <new-dump>
""",
    "none": """\
[dataset]
kind = "none"          # <new-none>
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
# <new-scripts>
# <new-variables>
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
# <new-target>
# [targets.main]
# conninfo = "host=db1 dbname=bench user=me"

[axes]
clients = [2, 8, 32]             # <new-clients>
# hot_set = [0.1, 1.0]           # <new-hot-set>
# settings.synchronous_commit = ["on", "off"]   # <new-settings>

[run]
duration_s = 10                  # <new-duration>
warmup_s = 2
repetitions = 3
# rate = 500                     # <new-rate>
# between = { checkpoint = true, restore = "template" }   # <new-between>
"""


def localized(template: str) -> str:
    """Return a template with its comments (<message id>) in the language of the output."""
    return re.sub(r"<(new-[a-z-]+)>", lambda m: streams.written(Message(m[1])), template)


def head_of(path: Path, head: str) -> str:
    """Return the first lines of an experiment for this file."""
    name = re.sub(r"[^a-z0-9_-]+", "-", path.stem.lower()).strip("-_")[:60] or "experiment"
    title = path.stem.replace("-", " ").replace('"', "'").replace("\\", "/")
    return localized(head).format(title=title, file=path, name=name)


def main(path: Path, kind: str, source: str | None = None) -> int:
    """Write the file, and of kind sql a schema beside it. Raise UsageError where something is in the way."""
    if source is not None:
        # It starts a server, whose modules take long to import.
        from pgdyno.cli import from_schema

        return from_schema.main(path, source, partial(head_of, head=_HEAD), localized(_TAIL))
    if kind not in _DATASETS:
        raise UsageError(msg("error-kind-there-no", kind=kind), msg("remedy-choices", choices=", ".join(_DATASETS)))
    path = path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")
    workloads = _TPCB_WORKLOADS if kind == "tpcb" else _OWN_WORKLOADS
    head = head_of(path, _HEAD)
    texts = {path: head + localized(f"{_DATASETS[kind]}\n{workloads}{_TAIL}")}
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
