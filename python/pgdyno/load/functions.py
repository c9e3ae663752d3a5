"""The functions of tpcc's tables that are there: those that another version of pgdyno has made are replaced."""

from __future__ import annotations

import re

import psycopg

from pgdyno import _core
from pgdyno.errors import RefusedError, msg
from pgdyno.format import one_line
from pgdyno.load.dataset import MARK, Dataset
from pgdyno.load.find import Connection, find, schema_sql
from pgdyno.message import Name, message
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream
from pgdyno.tpcc.schema import signature

_BODY = re.compile(r"\$body\$(.*)\$body\$", re.DOTALL)
#: Those that pgdyno has made, in the schema of its tables.
_MADE = """
select p.proname::pg_catalog.text, p.prosrc from pg_catalog.pg_proc p
where p.pronamespace operator(pg_catalog.=)
    (select c.relnamespace from pg_catalog.pg_class c where c.oid operator(pg_catalog.=) %s)
  and pg_catalog.obj_description(p.oid, 'pg_proc'::pg_catalog.name) operator(pg_catalog.=) %s"""


def renew(conn: Connection, dataset: Dataset, stream: RunStream) -> None:
    """Recreate the functions of an existing dataset.

    Raise RefusedError if the session may not replace them.
    """
    if dataset.kind != "tpcc":
        return
    tables = find(conn, dataset).ours
    made: dict[str, str] = (
        dict(conn.execute(_MADE, [tables[0].oid, f"{MARK} {dataset.kind}"]).fetchall()) if tables else {}
    )
    wanted = [f for n in range(dataset.tables_wanted) for f in _core.tpcc_functions(n, dataset.tables_wanted)]
    old = [f for f in wanted if made.get(signature(f).partition("(")[0], _body(f)) != _body(f)]
    if not old:
        return
    stream.emit(Noted(message("progress-functions", n=len(old), names=Name(", ".join(map(signature, old))))))
    try:
        with conn.transaction():
            conn.execute(f"set local search_path to {schema_sql(conn)}".encode())
            for function in old:
                conn.execute(function.encode())
    except psycopg.Error as e:
        why = one_line(e)
        raise RefusedError(
            msg("error-functions-another-pgdyno-s-cannot", name=dataset.name, why=why),
            msg("remedy-connect-their-owner-or-load"),
        ) from e


def _body(function: str) -> str:
    match = _BODY.search(function)
    assert match is not None, function
    return match[1]
