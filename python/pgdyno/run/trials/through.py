"""Trials whose statements go through a user's driver: its workers, what they cost, and whether they are the limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from pgdyno import _core, engine
from pgdyno.cluster.target import Target, session_settings
from pgdyno.dbms import Database
from pgdyno.driver import named
from pgdyno.driver.adapters import Server
from pgdyno.driver.pool import Workers
from pgdyno.mysql.target import MySqlTarget
from pgdyno.run.planning.workloads import compiled
from pgdyno.spec.experiment import Run

#: Seconds for which the workers are measured alone, for each of two scripts.
_FLOOR_S = 0.8
#: A worker that is on a CPU for this part of the time can hardly do more: one thread of Python runs at a time.
_BUSY = 0.85
#: Statements of a pipeline whose cost is compared with that of one.
_GROUP = 8
_ONE = [("one", "SELECT 1;\n", 1)]
_MANY = [("many", "\\startpipeline\n" + _GROUP * "SELECT 1;\n" + "\\endpipeline\n", 1)]


@dataclass(frozen=True)
class _Floor:
    """CPU time of workers without a driver, in ns: of a group of statements that is awaited, and of a statement."""

    group_ns: float
    statement_ns: float


#: Floors by protocol, clients, processes, and kind of calls.
_floors: dict[tuple[str, int, int, bool], _Floor] = {}


@dataclass
class Through:
    """The workers of a trial, and their CPU time."""

    workers: Workers
    floor: _Floor
    _began: float = 0.0
    _before: list[float] = field(default_factory=list)
    _transactions: int = 0

    def begin(self) -> None:
        """Begin to count: the workers are connected to nothing yet."""
        self._began, self._before = time.monotonic(), self.workers.cpu_ns()

    def add(self, result: _core.RunResult) -> None:
        """Count the transactions of a run of the engine through the workers, those of its warm-up included."""
        self._transactions += _transactions(result)

    def usage(self) -> dict[str, float]:
        """Return the CPU time of the workers and its floor in ns, the transactions, and the busiest worker's share."""
        elapsed = max(1e-3, time.monotonic() - self._began)
        used = [max(0.0, b - a) for a, b in zip(self._before, self.workers.cpu_ns(), strict=True)]
        groups, statements = self.workers.counts()
        return {
            "driver_cpu_ns": sum(used),
            "driver_floor_ns": groups * self.floor.group_ns + statements * self.floor.statement_ns,
            "driver_transactions": float(self._transactions),
            "driver_processes": float(len(used)),
            "driver_busiest": max(used, default=0.0) / 1e9 / elapsed,
        }


def _transactions(result: _core.RunResult) -> int:
    phases = (result.phase(name) for name in ("warmup", "measure", "transition", "drain"))
    return sum(p.latency.count for p in phases if p is not None)


def is_limit(usage: dict[str, float]) -> bool:
    """Return True if a worker was so busy that it limits the load."""
    return usage.get("driver_busiest", 0.0) >= _BUSY


@contextmanager
def through(run: Run, target: Database, clients: int, cores: int) -> Iterator[Through | None]:
    """Start the workers of the run's driver, whose cost without a driver is measured first.

    None means that the client is the engine's own. Raise UsageError if the driver cannot be imported.
    """
    name = named.parse(run.driver)
    if name is None:
        yield None
        return
    server = _server(target, run.protocol)
    with Workers(name, server, max(1, min(clients, cores))) as workers:
        yield Through(workers, _floor_of(workers, server, run.protocol, clients))


def _server(target: Database, protocol: str) -> Server:
    at = (target.host, target.port, target.user)
    if isinstance(target, Target):
        # Drivers choose the encoding of their own strings.
        settings = {k: v for k, v in session_settings().items() if k != "client_encoding"}
        settings["application_name"] = target.options.get("application_name") or "pgdyno"
        return Server(
            target.conninfo, *at, target.password, target.dbname, target.dialect, protocol, target.options, settings
        )
    own = target if isinstance(target, MySqlTarget) else None
    return Server(
        "", *at, own.password if own else None, target.dbname, target.dialect, protocol, target.options,
        own.settings if own else {},
    )  # fmt: skip


class _Silent:
    """Hears nothing."""

    def started(self, start_ns: int, connect_ns: int) -> None:
        """Nothing to do."""

    def interval(self, i: _core.Interval) -> None:
        """Nothing to do."""

    def event(self, e: _core.Event) -> None:
        """Nothing to do."""


def _floor_of(workers: Workers, server: Server, protocol: str, clients: int) -> _Floor:
    """Return the CPU time of workers whose driver does nothing."""
    key = (protocol, clients, workers.processes, workers.is_awaited)
    if key not in _floors:
        one = _cost_ns(workers, server, protocol, clients, _ONE)
        # A group of the simple protocol is one statement.
        each = 0.0
        if protocol != "simple":
            many = _cost_ns(workers, server, protocol, clients, _MANY)
            each = min(one, max(0.0, (many - one) / (_GROUP - 1)))
        _floors[key] = _Floor(one - each, each)
    return _floors[key]


def _cost_ns(
    workers: Workers, server: Server, protocol: str, clients: int, scripts: list[tuple[str, str, int]]
) -> float:
    """Return the CPU time of a transaction of scripts, in ns. Raise what a signal's handler raised meanwhile."""
    name = named.parse(named.NULL + ("_awaited" if workers.is_awaited else ""))
    assert name is not None
    mode = cast("engine.Protocol", protocol)
    plan = engine.Plan(clients=clients, workers=1, protocol=mode, duration_s=_FLOOR_S, seed=1)
    with Workers(name, server, workers.processes) as idle:
        before = sum(idle.cpu_ns())
        result = _core.run(idle.configs, compiled(scripts, {}), _Silent(), plan)
        used = sum(idle.cpu_ns()) - before
    if result.raised is not None:
        raise result.raised
    count = _transactions(result)
    return used / count if count else 0.0
