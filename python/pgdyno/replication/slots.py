"""Physical replication slots of a server, reached as superuser."""

from __future__ import annotations

import time

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target

#: How long a slot may be used by somebody who has turned away.
_PATIENCE_S = 5.0


def ensure(server: Target, name: str) -> None:
    """Create the slot of a standby unless it exists.

    The slot retains WAL from now on.
    """
    with administration.connect(server) as conn:
        there = conn.execute("select 1 from pg_replication_slots where slot_name = %s", [name]).fetchone()
        if there is None:
            conn.execute("select pg_create_physical_replication_slot(%s, true)", [name])


def drop(server: Target, name: str) -> None:
    """Remove a slot if it exists.

    Terminate the backend that still uses it: a pg_basebackup left by a killed pgdyno would continue to stream.
    """
    with administration.connect(server) as conn:
        conn.execute(
            "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = %s and active", [name]
        )
    _drop(server, "slot_name = %s", [name])


def drop_all(server: Target) -> None:
    """Remove all slots of a standby that date from its time as the primary.

    They would retain WAL forever. A server that still uses one of them soon switches to another primary.
    """
    _drop(server, "true", [])


def _drop(server: Target, which: str, values: list[str]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    drop_ = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active and "
    with administration.connect(server) as conn:
        while True:
            conn.execute((drop_ + which).encode(), values)
            left = conn.execute(f"select 1 from pg_replication_slots where {which}".encode(), values).fetchone()
            if not left or time.monotonic() > deadline:
                return
            time.sleep(0.02)
