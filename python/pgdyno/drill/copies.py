"""The ledger as each member has it, before anything is mended: what two primaries have apart from each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.drill import ledger
from pgdyno.drill.ledger import Entry, Key
from pgdyno.errors import PgdynoError


@dataclass(frozen=True)
class Copy:
    """The rows of a run on a member that answered."""

    member: str
    is_primary: bool
    rows: frozenset[Key]


def read(members: Mapping[str, Target], run: int) -> list[Copy]:
    """Ask every member; one that does not answer, or has no ledger, is left out."""
    found = []
    for name, target in members.items():
        try:
            with administration.connect(target) as conn:
                row = conn.execute("select pg_catalog.pg_is_in_recovery()").fetchone()
                found.append(Copy(name, row is not None and not row[0], frozenset(ledger.rows(conn, run))))
        except (PgdynoError, psycopg.Error):
            continue
    return found


def divided(entries: Sequence[Entry], copies: Sequence[Copy]) -> dict[str, list[Entry]]:
    """Return the acknowledged commits that only one of several primaries has, by that primary."""
    primaries = [c for c in copies if c.is_primary]
    found: dict[str, list[Entry]] = {}
    if len(primaries) < 2:
        return found
    for e in entries:
        if e.outcome == "acknowledged" and len(having := [c.member for c in primaries if e.key in c.rows]) == 1:
            found.setdefault(having[0], []).append(e)
    return found


def union(copies: Sequence[Copy]) -> list[Key]:
    """Return the rows that any primary has."""
    return sorted(frozenset().union(*(c.rows for c in copies if c.is_primary)))
