"""TPC-C's consistency conditions, checked in the tables after a trial."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.errors import PgdynoError, reason
from pgdyno.load import find
from pgdyno.load.dataset import Dataset
from pgdyno.message import Name, message
from pgdyno.model import Caveat, EventKind
from pgdyno.store.layout import CHECKS
from pgdyno.store.writing import replace_file
from pgdyno.stream.events import CheckStarted, DatasetDone, Happened
from pgdyno.stream.stream import RunStream, TrialStream
from pgdyno.tpcc.conditions import CONSISTENCY, Condition, checked


def after_trial(
    target: Target, dataset: Dataset, trials: Sequence[tuple[TrialStream, Path]], stream: RunStream
) -> list[Caveat]:
    """Check the data, and write the result into the folder of each trial that has worked on them.

    `trials` holds the streams and folders of these trials.

    A server that is unreachable or refuses the check does not end the run. The trials are then marked as not checked.
    """

    def began(condition: Condition, number: int, of: int) -> None:
        stream.emit(CheckStarted(condition.clause, number, of))

    try:
        # Each query reads whole tables: as long as that takes.
        with administration.connect(target, patience_s=None) as conn:
            found = list(checked(conn, dataset.tables_wanted, CONSISTENCY, began, schema=find.schema_sql(conn)))
    except (psycopg.Error, PgdynoError) as e:
        for trial, _ in trials:
            trial.emit(Happened(EventKind.CHECKING, reason(e)))
        return [Caveat.UNCHECKED]
    finally:
        stream.emit(DatasetDone())
    for trial, folder in trials:
        replace_file(folder / CHECKS, json.dumps([c.as_json() for c in found], indent=2) + "\n")
        for c in (c for c in found if not c.holds):
            words = message(
                "event-inconsistent",
                clause=Name(c.clause),
                condition=c.text,
                n=c.broken,
                example=Name(c.example),
            )
            trial.emit(Happened(EventKind.INCONSISTENT, words))
    return [] if all(c.holds for c in found) else [Caveat.INCONSISTENT]
