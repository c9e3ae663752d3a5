"""After TPC-C was loaded: the standard's rules for what its tables begin with, and its consistency conditions."""

from __future__ import annotations

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import Target
from pgdyno.errors import TargetError
from pgdyno.format import one_line
from pgdyno.load.dataset import Dataset, quoted
from pgdyno.stream.events import CheckStarted, DatasetDone
from pgdyno.stream.stream import RunStream
from pgdyno.tpcc.conditions import CONSISTENCY, POPULATION, Condition, checked, warehouse_range


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
                        f"what was loaded breaks clause {c.clause} of TPC-C, {c.title}: {c.broken:,} times, "
                        f"e.g. {c.example}",
                        "Does another session write there? Else it is a defect of the disk, or of pgdyno.",
                    )
    except psycopg.Error as e:
        message = one_line(e)
        remedy = remedy_for(message, e.sqlstate)
        raise TargetError(f"{dataset.name} is loaded, but could not be checked: {message}", remedy) from e
    finally:
        stream.emit(DatasetDone())
