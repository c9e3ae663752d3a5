"""`pgdyno sql`."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from pgdyno.cli import console, streams
from pgdyno.cli.tables import Table
from pgdyno.errors import UsageError, msg
from pgdyno.format import count
from pgdyno.store import query
from pgdyno.store.query import Rows

#: What --output knows, by the end of the name.
_FORMATS = (".csv", ".parquet", ".json")


def main(text: str, runs: Path, form: str, output: Path | None) -> int:
    """Run the query and print its rows, or write them to a file."""
    if output is not None and output.suffix not in _FORMATS:
        raise UsageError(
            msg("error-output-name-none", output=output, formats=", ".join(_FORMATS)), msg("remedy-name-x-csv")
        )
    if output is not None and form:
        raise UsageError(msg("error-output-says-format-name"), msg("remedy-leave-out-2", form=form))
    found = query.run(text, runs)
    for what in found.unreadable:
        streams.say(streams.written(msg("not-read", what=what)))
    if output is not None:
        query.write(found, output)
        sys.stderr.write(f"{count(len(found.rows), 'row')}: {output}\n")
    elif form == "csv":
        query.write_csv(found, sys.stdout)
    elif form == "json":
        sys.stdout.write(as_json(found))
    else:
        _show(found)
    return 0


def as_json(found: Rows) -> str:
    """Return the rows as a JSON list of objects.

    Numbers that JSON cannot represent (NaN and infinity) become null; values of types that JSON lacks become strings.
    """
    clean = [[None if isinstance(v, float) and not math.isfinite(v) else v for v in row] for row in found.rows]
    named = [dict(zip(found.columns, row, strict=True)) for row in clean]
    return json.dumps(named, indent=2, default=str) + "\n"


def _show(found: Rows) -> None:
    columns, cells = found.columns, [[_cell(v) for v in row] for row in found.rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    out = console.output()
    if sum(widths) + len(widths) > out.width:
        # As psql's expanded display: a row that does not fit is a list.
        for n, row in enumerate(cells, 1):
            out.print(f"-[ row {n} ]", soft_wrap=True)
            for name, cell in zip(columns, row, strict=True):
                out.print(f"{name:<{max(map(len, columns))}}  {cell}".rstrip(), soft_wrap=True)
        return
    table = Table(*columns, box=None, pad_edge=False)
    for row in cells:
        table.add_row(*row)
    out.print(table)


def _cell(v: Any) -> str:
    return "" if v is None else f"{v:,.6g}" if isinstance(v, float) else str(v)
