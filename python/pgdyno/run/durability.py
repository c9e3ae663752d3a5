"""Durability (clause 3.5): a server under load is killed, and every order that it has acknowledged is looked for.

What is killed are all its processes, at once. The kernel's memory survives: what was written but not synced is still
there, so this does not test whether the device keeps what it has promised; that takes a power cut.
"""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pgdyno import _core, engine
from pgdyno.cluster import administration
from pgdyno.cluster.held import HeldCluster
from pgdyno.errors import TrialError, msg
from pgdyno.message import Name, message
from pgdyno.search_path import qualified
from pgdyno.tpcc.schema import table

#: Orders that are shown of those that are lost.
_SHOWN = 10


@dataclass(frozen=True)
class Durability:
    """Cost of a kill: lost orders and recovery time."""

    #: Orders whose commit was acknowledged.
    acknowledged: int
    #: Of them, those that are not there, or not whole.
    lost: int
    #: Some of those: set, warehouse, district, order.
    examples: list[tuple[int, int, int, int]]
    #: Orders that are there and were not acknowledged: the connection was lost before the answer.
    unacknowledged: int
    #: Seconds from starting the server again until it took connections.
    recovery_s: float

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


class _Nobody:
    """Looks on, and stops the load when the server is gone."""

    def __init__(self) -> None:
        self.killed = threading.Event()

    def started(self, start_ns: int, connect_ns: int) -> None:
        """Nothing to do."""

    def interval(self, i: _core.Interval) -> None:
        if self.killed.is_set():
            raise _OverError

    def event(self, e: _core.Event) -> None:
        """Nothing to do."""


class _OverError(Exception):
    """The server was killed: the load has done its work."""


def killed_under_load(
    cluster: HeldCluster, options: engine.Tpcc, *, clients: int, seconds: float, orders: Path
) -> Durability:
    """Run TPC-C against a private server, kill and restart the server, and compare the orders.

    The kill comes after `seconds`. The acknowledged orders replace the contents of the file `orders`.
    """
    before = _orders_in(cluster, options)
    orders.write_text("")
    observer = _Nobody()
    workload = _core.Workload.tpcc([options._replace(orders=orders)])
    config = _core.ConnConfig(**cluster.target.core_arguments())
    plan = engine.Plan(
        clients=clients, duration_s=seconds + 60, interval_s=0.1, drain_timeout_s=0.1, max_tries=10, on_error="count"
    )

    def kill() -> None:
        time.sleep(seconds)
        cluster.crash()
        observer.killed.set()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    result = _core.run([config], workload, observer, plan)
    killer.join()
    before_start = time.monotonic()
    cluster.start()
    recovered = time.monotonic()
    acknowledged = _read(orders)
    if not acknowledged or not isinstance(result.raised, _OverError):
        id = "durability-none" if not acknowledged else "durability-over"
        error = message("in-brackets", text=Name(result.error)) if result.error else None
        why = message(id, error=error)
        raise TrialError(msg("error-durability-was-not-tested", why=why), msg("remedy-give-load-longer-seconds-or"))
    there, whole = _orders_in(cluster, options), _whole_in(cluster, options)
    lost = sorted(acknowledged - whole)
    return Durability(
        len(acknowledged), len(lost), lost[:_SHOWN], len(there - before - acknowledged), recovered - before_start
    )


def _read(path: Path) -> set[tuple[int, int, int, int]]:
    """Read the acknowledged orders from the file: set, warehouse, district, order."""
    found = set()
    for line in path.read_text().splitlines():
        _, number, warehouse, district, order = (int(word) for word in line.split())
        found.add((number, warehouse, district, order))
    return found


def _orders_in(cluster: HeldCluster, options: engine.Tpcc) -> set[tuple[int, int, int, int]]:
    """Return the orders that were added since the tables were loaded."""
    return _select(cluster, options, "select o_w_id, o_d_id, o_id from {orders} where o_id > 3000")


def _whole_in(cluster: HeldCluster, options: engine.Tpcc) -> set[tuple[int, int, int, int]]:
    """Return the orders, added since the tables were loaded, that have all their order lines."""
    return _select(
        cluster,
        options,
        "select o_w_id, o_d_id, o_id from {orders} where o_id > 3000 and o_ol_cnt = (select count(*) from {lines} "
        "where (ol_w_id, ol_d_id, ol_o_id) = (o_w_id, o_d_id, o_id))",
    )


def _select(cluster: HeldCluster, options: engine.Tpcc, sql: str) -> set[tuple[int, int, int, int]]:
    found = set()
    with administration.connect(cluster.target, patience_s=None) as conn:
        for n in range(options.sets):
            names = {
                "orders": qualified(conn, table("orders", n, options.sets)),
                "lines": qualified(conn, table("order_line", n, options.sets)),
            }
            found |= {(n + 1, *r) for r in conn.execute(sql.format(**names).encode())}
    return found
