"""`pgdyno tpcc acid`."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from rich import box
from rich.text import Text

from pgdyno import engine
from pgdyno.cli import as_json, console, streams
from pgdyno.cli.cluster import settings_of
from pgdyno.cli.stopping import stoppable
from pgdyno.cli.tables import Table
from pgdyno.cli.tpcc import began, dataset_in, show_checked
from pgdyno.cli.viewers import stream_for
from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import Target
from pgdyno.errors import ClusterError, TargetError, UsageError, msg
from pgdyno.format import one_line
from pgdyno.load import find, loader
from pgdyno.load.claim import Claim
from pgdyno.load.dataset import Dataset
from pgdyno.message import Message, counted, message
from pgdyno.run.durability import Durability, killed_under_load
from pgdyno.run.planning.workloads import listing
from pgdyno.spec.experiment import Tpcc
from pgdyno.stream.events import CheckStarted, DatasetDone, Noted
from pgdyno.stream.stream import RunStream
from pgdyno.tpcc.acid import Connection, Tested, tested
from pgdyno.tpcc.conditions import CONSISTENCY, Checked, checked
from pgdyno.tpcc.schema import TABLES, table
from pgdyno.units import Quantity

_LEVELS = ("read committed", "repeatable read", "serializable")
#: Of the private server.
_WAREHOUSES = 2


@dataclass(frozen=True)
class _Found:
    tests: list[Tested]
    checks: list[Checked]
    #: Of a private server.
    durability: Durability | None

    @property
    def passed(self) -> bool:
        lost = self.durability is not None and self.durability.lost
        return all(t.passed for t in self.tests) and all(c.holds for c in self.checks) and not lost


def main(
    conninfo: str | None,
    *,
    isolation: str,
    settings: list[str],
    seconds: float,
    clients: int,
    force: bool,
    connect_timeout_s: float,
    json_output: bool,
    quiet: bool,
) -> int:
    """Run the tests, show the result, and return the exit code."""
    if isolation not in _LEVELS:
        raise UsageError(
            msg("error-isolation-there-no", isolation=isolation), msg("remedy-choices", choices=", ".join(_LEVELS))
        )
    if conninfo is not None and settings:
        raise UsageError(msg("error-set-for-private-server"), msg("remedy-leave-out-or-target"))
    stream = stream_for(console.errors(), quiet=quiet)
    with stoppable():
        try:
            if conninfo is None:
                found = _private(settings, isolation, seconds, clients, stream)
            else:
                target = targets.resolve(conninfo, connect_timeout_s)
                with Claim(target, force=force) as claim:
                    _, sets = dataset_in(claim.conn, target)
                    tests = _tested(target, sets, isolation, stream)
                    found = _Found(tests, _checked(target, sets, stream), None)
        except psycopg.Error as e:
            message = one_line(e)
            raise TargetError(msg("error-testing-failed", message=message), remedy_for(message, e.sqlstate)) from e
        finally:
            stream.emit(DatasetDone())
            stream.close()
    _show(found, isolation, json_output)
    return 0 if found.passed else 1


def _private(given: list[str], isolation: str, seconds: float, clients: int, stream: RunStream) -> _Found:
    options = engine.Tpcc(warehouses=_WAREHOUSES, isolation=isolation)
    with ExitStack() as stack:
        stream.emit(Noted(message("progress-starting")))
        cluster = stack.enter_context(EmbeddedCluster(settings_of(given, clients, None)))
        loader.into_server(
            cluster,
            Dataset("tpcc", _WAREHOUSES),
            force=False,
            replace=False,
            stream=stream,
        )
        tests = _tested(cluster.target, 1, isolation, stream)
        by, length = counted("n-clients", clients), Quantity(seconds, "rate")
        stream.emit(Noted(message("progress-load-then-kill", clients=by, seconds=length)))
        lost = killed_under_load(
            cluster, options, clients=clients, seconds=seconds, orders=Path(cluster.base) / "acknowledged"
        )
        if not cluster.is_alive():
            raise ClusterError(msg("error-server-did-not-come-back", last_words=cluster.last_words(3)))
        return _Found(tests, _checked(cluster.target, 1, stream), lost)


def _tested(target: Target, sets: int, isolation: str, stream: RunStream) -> list[Tested]:
    """On the first set."""
    names = {t: table(t, 0, sets) for t in TABLES}
    statements: dict[str, str] = {}
    for _, text, _ in listing(Tpcc()):
        found = re.findall(r"^-- name: (.+)\n(.+);$", text, re.MULTILINE)
        statements |= {name: _renamed(sql, sets) for name, sql in found}

    def connect() -> Connection:
        conn = administration.connect(target, patience_s=None)
        # The statements are the workload's own, which name their tables by the search path.
        conn.execute(f"set search_path to {find.schema_sql(conn)}".encode())
        return conn

    return list(tested(connect, names, statements, isolation, lambda c, n, of: stream.emit(CheckStarted(c, n, of))))


def _renamed(sql: str, sets: int) -> str:
    """Rewrite a statement for the tables of the first of several sets."""
    return re.sub(rf"\btpcc_({'|'.join(TABLES)})\b", r"tpcc_\g<1>1", sql) if sets > 1 else sql


def _checked(target: Target, sets: int, stream: RunStream) -> list[Checked]:
    with administration.connect(target, patience_s=None) as conn:
        schema = find.schema_sql(conn)
        return list(checked(conn, sets, CONSISTENCY, partial(began, stream), schema=schema))


def _show(found: _Found, isolation: str, json_output: bool) -> None:
    d = found.durability
    if json_output:
        facts: dict[str, Any] = {"isolation": isolation, "passed": found.passed}
        facts |= {"tests": [t.as_json() for t in found.tests], "checks": [c.as_json() for c in found.checks]}
        as_json.write(facts | {"durability": None if d is None else d.as_json()})
        return
    out = console.output()
    shown = Table(
        box=box.SIMPLE_HEAD, title=streams.written(msg("acid-level", level=isolation.upper())), title_justify="left"
    )
    for name in ("column-clause", "heading-acid-test", "", "heading-acid-seen"):
        shown.add_column(name and streams.written(Message(name)))
    for t in found.tests:
        verdict = (
            Text(streams.written(msg("acid-passed")), style="green")
            if t.passed
            else Text(streams.written(msg("acid-not-passed")), style="red")
        )
        shown.add_row(t.clause, streams.written(t.title), verdict, streams.written(t.seen))
    out.print(shown)
    if broken := [c for c in found.checks if not c.holds]:
        show_checked(broken)
    else:
        out.print(streams.written(msg("acid-consistent", n_checks=len(found.checks))))
    if d is None:
        return
    style = "red" if d.lost else "green"
    killed = msg("acid-killed", acknowledged=f"{d.acknowledged:,}", lost=f"{d.lost:,}", seconds=f"{d.recovery_s:.1f}")
    out.print(Text(streams.written(killed), style=style))
    for number, warehouse, district, order in d.examples:
        out.print(
            streams.written(msg("acid-lost-order", order=order, number=number, warehouse=warehouse, district=district))
        )
    out.print(streams.written(msg("acid-unacknowledged", unacknowledged=f"{d.unacknowledged:,}")))
