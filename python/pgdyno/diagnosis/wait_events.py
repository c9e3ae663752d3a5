"""PostgreSQL's own descriptions of its wait events, as its view pg_wait_events has them (scripts/wait_events.py)."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources


def description(wait: str) -> str:
    """Return what PostgreSQL says of a wait event ("IO:WalSync"); empty if version 18 does not have it.

    Upper and lower case are ignored, because server versions spell the names differently.
    """
    return _descriptions().get(wait.lower(), "")


@cache
def _descriptions() -> dict[str, str]:
    text = resources.files(__package__).joinpath("wait_events.csv").read_text(encoding="utf-8")
    return {f"{row['type']}:{row['name']}".lower(): row["description"] for row in csv.DictReader(text.splitlines())}
