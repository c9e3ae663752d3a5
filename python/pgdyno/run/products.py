"""Products whose servers a run may drive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.cluster.target import Target
from pgdyno.collect import activity, server
from pgdyno.dbms import Database, Dialect, Product
from pgdyno.errors import PgdynoError, reason
from pgdyno.message import Text
from pgdyno.mysql.product import MySqlProduct

#: Seconds that a server may take to report its counters.
PATIENCE_S = 5.0


class PostgresProduct:
    """PostgreSQL, and what speaks its protocol."""

    def describe(self, target: Target) -> tuple[dict[str, Any], list[Text]]:
        """Return the server facts for a manifest, and a message for each that cannot be read. Raise TargetError."""
        with administration.connect(target, patience_s=targets.PATIENCE_S) as conn:
            return server.describe(conn)

    def sizes(self, target: Target, relations: Sequence[str]) -> dict[str, int]:
        """Return the bytes of tables with their indexes. Raise TargetError."""
        with administration.connect(target, patience_s=targets.PATIENCE_S) as conn:
            return server.relation_sizes(conn, list(relations))

    def counters(self, target: Target, record: Sequence[str]) -> tuple[dict[str, float], list[Text]]:
        """Return the server's counters, once sessions have reported theirs, and what could not be read."""
        try:
            with administration.connect(target, patience_s=PATIENCE_S) as conn:
                activity.wait_until_settled(conn)
                return activity.snapshot(conn, record)
        except (PgdynoError, psycopg.Error) as e:
            return {}, [reason(e)]


PRODUCTS: dict[Dialect, Product] = {"postgresql": PostgresProduct(), "mysql": MySqlProduct()}


def product_of(target: Database) -> Product:
    """Return the product of a database's server."""
    return PRODUCTS[target.dialect]
