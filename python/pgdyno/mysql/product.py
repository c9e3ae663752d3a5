"""Operations of a run on a MySQL or MariaDB server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.errors import TargetError
from pgdyno.message import Text, message
from pgdyno.mysql import facts
from pgdyno.mysql.session import Session
from pgdyno.mysql.target import MySqlTarget


class MySqlProduct:
    """MySQL and MariaDB. Their counters have the names of PostgreSQL's where they count the same."""

    def describe(self, target: MySqlTarget) -> tuple[dict[str, Any], list[Text]]:
        """Return the server facts for a manifest, and a message for each that cannot be read. Raise TargetError."""
        with Session(target) as session:
            found, missing = facts.describe(session)
        return found, [*missing, message("gap-not-postgresql")]

    def sizes(self, target: MySqlTarget, relations: Sequence[str]) -> dict[str, int]:
        """Return the bytes of the tables with their indexes. Raise TargetError."""
        with Session(target) as session:
            found = facts.sizes(session)
        return {name: size for name, size in found.items() if not relations or name in relations}

    def counters(self, target: MySqlTarget, record: Sequence[str]) -> tuple[dict[str, float], list[Text]]:
        """Return the server's counters, and why they could not be read."""
        try:
            with Session(target) as session:
                return facts.counters(session, record), []
        except TargetError as e:
            return {}, [e.cause]
