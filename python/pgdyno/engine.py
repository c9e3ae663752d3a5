"""Work of the engine as one typed plan, which `pgdyno._core.run` reads.

Times are seconds, unless a name states otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

Protocol = Literal["simple", "extended", "prepared"]
Driver = Literal["auto", "epoll", "uring", "polling"]
#: What an error does that is not retried: what can never succeed ends the run and the rest is counted; all is counted;
#: it ends its client, as in pgbench; that, but errors of the server are counted (--continue-on-error).
OnError = Literal["end_run", "count", "end_client", "end_client_unless_sql"]


class Rate(NamedTuple):
    """Arrivals of an open loop, in transactions per second over all clients: a ramp, and then its end."""

    start: float
    end: float
    ramp_s: float = 0.0
    #: At even distances instead of as a Poisson process.
    constant: bool = False

    @classmethod
    def of(cls, tps: float) -> Rate:
        """Return a rate that stays at `tps` all the time."""
        return cls(tps, tps)


class Sample(NamedTuple):
    r"""Rows of some columns, which scripts draw from with `\pick`; values as text, None for NULL."""

    name: str
    #: As variables are named after them.
    columns: list[str]
    rows: list[list[str | None]]
    #: A transaction's row is said by the workload's schedule, and not drawn.
    is_scheduled: bool = False


class Duet(NamedTuple):
    """Alternating sides, one under load at a time, or all sides under load at once.

    Each interval is a turn. Client `i` belongs to side `i % sides`.
    """

    #: Whose turn it is, one after the other, warm-up included.
    order: list[int]
    #: How much of the beginning of each turn is not counted, on top of the interval.
    transition_s: float
    sides: int = 2
    #: All sides are under load all the time, whatever the order.
    together: bool = False


class TransactionLog(NamedTuple):
    """pgbench's log of transactions."""

    path: str
    sampling_rate: float = 1.0
    #: Seconds in a line; 0: a line for each transaction.
    aggregate_s: int = 0
    #: Failures are told apart by kind.
    detailed: bool = False
    #: A third column of failures.
    other_failures: bool = False
    #: In percent, of each aggregated line.
    percentiles: Sequence[float] = ()


class Voice(NamedTuple):
    """Messages reported besides the figures, in pgbench's wording."""

    verbose: bool = False
    debug: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One run: give either `duration_s` or `transactions`, of each client."""

    clients: int
    workers: int = 1
    protocol: Protocol = "prepared"
    duration_s: float | None = None
    transactions: int | None = None
    warmup_s: float = 0.0
    interval_s: float = 1.0
    #: None: a closed loop.
    rate: Rate | None = None
    duet: Duet | None = None
    seed: int = 0
    connect_timeout_s: float = 10.0
    #: The longest pause before a lost connection is made again.
    longest_pause_s: float = 1.0
    #: How long an answer may take until its connection is given up for lost; None: as long as it likes.
    answer_timeout_s: float | None = None
    drain_timeout_s: float = 5.0
    #: A lost connection is made again; else it ends the run, or its client.
    reconnect: bool = True
    on_error: OnError = "end_run"
    #: Nanoseconds since 1970; None: as soon as all clients are connected.
    start_at_ns: int | None = None
    driver: Driver = "auto"
    #: Above it a transaction counts as late, and one that is due longer ago is not begun.
    latency_limit_s: float | None = None
    max_tries: int = 1
    #: Each transaction has a connection of its own.
    connect_each: bool = False
    #: What was due before the end of an open loop is begun after it.
    begin_what_was_due: bool = True
    #: The measurement goes on until the last transaction is done.
    measure_until_done: bool = False
    #: Record how long each command takes.
    command_latency: bool = True
    exit_on_abort: bool = False
    log: TransactionLog | None = None
    #: None: events instead of pgbench's messages.
    voice: Voice | None = None


class Tpcc(NamedTuple):
    """Behaviour of clients that run the TPC-C workload."""

    #: Of each set of tables.
    warehouses: int
    sets: int = 1
    #: What the tables were populated from: the constants of NURand go with it.
    data_seed: int = 1
    #: How often each transaction is chosen: new-order, payment, order-status, delivery, stock-level.
    weights: tuple[int, int, int, int, int] = (10, 10, 1, 1, 1)
    #: "statements": one each; "pipelined": those that do not depend on each other share one; "functions": one a
    #: transaction.
    round_trips: str = "statements"
    #: Which warehouse a client works on: "random", any; "bound", its own; "terminal", its own district as well.
    home: str = "random"
    #: BEGIN's isolation level; empty: the server's default.
    isolation: str = ""
    #: What the standard's keying and think times are multiplied by; 0: no waits.
    waits: float = 0.0
    #: A file that each order is appended to when its commit is acknowledged: client, set, warehouse, district, order.
    orders: Path | None = None
