"""`pgdyno tpcc`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import partial

import psycopg
from rich import box
from rich.text import Text

from pgdyno import i18n
from pgdyno.cli import as_json, console
from pgdyno.cli.stopping import stoppable
from pgdyno.cli.tables import Table
from pgdyno.cli.viewers import stream_for
from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import Target
from pgdyno.errors import TargetError, UsageError, msg
from pgdyno.format import one_line
from pgdyno.load import find
from pgdyno.load.dataset import Dataset
from pgdyno.message import Name, message
from pgdyno.report.cells import column
from pgdyno.run.planning.workloads import functions, listing
from pgdyno.spec.experiment import Tpcc
from pgdyno.stream.events import CheckStarted, DatasetDone, Noted
from pgdyno.stream.stream import RunStream
from pgdyno.tpcc.conditions import CONSISTENCY, POPULATION, Checked, Condition, Connection, checked


def check(
    conninfo: str | None,
    *,
    population: bool,
    connect_timeout_s: float,
    json_output: bool,
    quiet: bool,
    lang: str = "en",
) -> int:
    """Check the TPC-C dataset of a server, show the results and return the exit code."""
    if conninfo is None and not targets.named_by_environment():
        raise UsageError(msg("error-check-which-server"), msg("remedy-target-conninfo-or-pghost"))
    target = targets.resolve(conninfo or "", connect_timeout_s)
    stream = stream_for(console.errors(), quiet=quiet, lang=lang)
    with stoppable():
        try:
            with administration.connect(target, patience_s=None) as conn:
                name, sets = dataset_in(conn, target)
                stream.emit(Noted(message("progress-dataset-in", name=Name(name), where=target.where)))
                wanted = [*CONSISTENCY, *(POPULATION if population else [])]
                schema = find.schema_sql(conn)
                found = list(checked(conn, sets, wanted, partial(began, stream), schema=schema))
        except psycopg.Error as e:
            reason = one_line(e)
            raise TargetError(msg("error-checking-failed", reason=reason), remedy_for(reason, e.sqlstate)) from e
        finally:
            stream.emit(DatasetDone())
            stream.close()
    if json_output:
        as_json.write({"dataset": name, "holds": all(c.holds for c in found), "checks": [c.as_json() for c in found]})
    else:
        show_checked(found, lang)
    return 0 if all(c.holds for c in found) else 1


def began(stream: RunStream, c: Condition, number: int, of: int) -> None:
    """Report that a condition is being checked."""
    stream.emit(CheckStarted(c.clause, number, of))


def dataset_in(conn: Connection, target: Target) -> tuple[str, int]:
    """Return the name of the TPC-C dataset in a database and its number of table sets."""
    found = find.find(conn, Dataset("tpcc", 1))
    name = found.name
    if name is None or not name.startswith("tpcc "):
        raise UsageError(
            msg("error-there-no-tables-tpc-c", where=target.where),
            msg("remedy-load-them-pgdyno-load-tpcc"),
        )
    if unfinished := [t.name for t in found.ours if t.mark is not None and t.mark.state]:
        raise UsageError(
            msg("error-not-complete", name=name, unfinished=", ".join(unfinished)), msg("remedy-load-again")
        )
    match = re.search(r" sets=(\d+)", name)
    return name, int(match[1]) if match else 1


def show_checked(found: Iterable[Checked], lang: str = "en") -> None:
    """Print the results of the checks as a table."""
    say, table = i18n.writer(lang), Table(box=box.SIMPLE_HEAD)
    for name in ("clause", "condition", "result"):
        table.add_column(say(column(name).title))
    table.add_column("s", justify="right")
    for c in found:
        result = message("condition-holds")
        if not c.holds:
            result = message("checked-times", n=c.broken, example=Name(c.example))
        words = Text(say(result), style="green" if c.holds else "red")
        table.add_row(c.clause, say(c.text), words, f"{c.seconds:.2f}")
    console.output().print(table)


def show(round_trips: str, transaction: str | None) -> int:
    """Print the SQL of the TPC-C transactions."""
    if round_trips not in ("statements", "pipelined", "functions"):
        raise UsageError(
            msg("error-round-trips-there-no", round_trips=round_trips),
            msg("remedy-there-statements-pipelined-functions"),
        )
    names = [name for name, _, _ in listing(Tpcc())]
    if transaction is not None and transaction not in names:
        raise UsageError(
            msg("error-there-no-transaction", transaction=transaction), msg("remedy-choices", choices=", ".join(names))
        )
    texts = [text for _, text, _ in listing(Tpcc())]
    if round_trips == "functions":
        texts = [f"{f.rstrip()};\n" for f in functions()]
    for name, text in zip(names, texts, strict=True):
        if transaction in (None, name):
            sys.stdout.write(f"-- {name}\n{text}\n")
    return 0
