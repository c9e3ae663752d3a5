"""`pgdyno sql`."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pgdyno.store import query


def main(text: str, runs: Path, json_output: bool) -> int:
    """Runs the query and prints its rows."""
    columns, rows = query.run(text, runs)
    if json_output:
        clean = [[None if isinstance(v, float) and not math.isfinite(v) else v for v in row] for row in rows]
        named = [dict(zip(columns, row, strict=True)) for row in clean]
        sys.stdout.write(json.dumps(named, indent=2, default=str) + "\n")
        return 0
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*("" if v is None else f"{v:,.6g}" if isinstance(v, float) else str(v) for v in row))
    Console(highlight=False).print(table)
    return 0
