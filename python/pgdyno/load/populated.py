"""After TPC-C was loaded: the standard's rules for what its tables begin with, and its consistency conditions."""

from __future__ import annotations

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import Target
from pgdyno.errors import TargetError, msg
from pgdyno.format import one_line
from pgdyno.load.dataset import Dataset, quoted
from pgdyno.stream.events import CheckStarted, DatasetDone
from pgdyno.stream.stream import RunStream
from pgdyno.tpcc.conditions import CONSISTENCY, POPULATION, Condition, checked, warehouse_range
from pgdyno.units import Quantity


def check(target: Target, dataset: Dataset, schema: str, stream: RunStream) -> None:
    """Check that the loaded tables satisfy the rules of TPC-C.

    Raise TargetError if they do not. The tables stay.
    """
    try:
        with administration.connect(target, patience_s=None) as conn:
            wanted = [warehouse_range(dataset.size), *POPULATION, *CONSISTENCY]

            def began(c: Condition, number: int, of: int) -> None:
                stream.emit(CheckStarted(c.clause, number, of))

            for c in checked(conn, dataset.tables_wanted, wanted, began, schema=quoted(schema)):
                if not c.holds:
                    raise TargetError(
                        msg(
                            "error-what-was-loaded-breaks-clause",
                            clause=c.clause,
                            title=c.text,
                            broken=Quantity(c.broken, "whole"),
                            example=c.example,
                        ),
                        msg("remedy-does-another-session-write-there"),
                    )
    except psycopg.Error as e:
        message = one_line(e)
        remedy = remedy_for(message, e.sqlstate)
        raise TargetError(msg("error-loaded-but-could-not-be", name=dataset.name, message=message), remedy) from e
    finally:
        stream.emit(DatasetDone())
