"""`pgdyno sql`."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from rich.table import Table

from pgdyno.cli import console
from pgdyno.store import query


def main(text: str, runs: Path, json_output: bool) -> int:
    """Runs the query and prints its rows."""
    columns, rows, unreadable = query.run(text, runs)
    for what in unreadable:
        sys.stderr.write(f"not read: {what}\n")
    if json_output:
        clean = [[None if isinstance(v, float) and not math.isfinite(v) else v for v in row] for row in rows]
        named = [dict(zip(columns, row, strict=True)) for row in clean]
        sys.stdout.write(json.dumps(named, indent=2, default=str) + "\n")
        return 0
    cells = [["" if v is None else f"{v:,.6g}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    out = console.output()
    if sum(widths) + len(widths) > out.width:
        # As psql's expanded display: a row that does not fit is a list.
        for n, row in enumerate(cells, 1):
            out.print(f"-[ row {n} ]", soft_wrap=True)
            for name, cell in zip(columns, row, strict=True):
                out.print(f"{name:<{max(map(len, columns))}}  {cell}".rstrip(), soft_wrap=True)
        return 0
    table = Table(*columns, box=None, pad_edge=False)
    for row in cells:
        table.add_row(*row)
    out.print(table)
    return 0
