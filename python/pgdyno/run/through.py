"""Trials whose statements go through a user's driver: its workers, what they cost, and whether they are the limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from pgdyno import _core, engine
from pgdyno.cluster.target import Target
from pgdyno.dbms import Database
from pgdyno.driver import named
from pgdyno.driver.adapters import Server
from pgdyno.driver.pool import Workers
from pgdyno.mysql.target import MySqlTarget
from pgdyno.run.workloads import compiled
from pgdyno.spec.experiment import Run

#: Seconds for which the workers are measured alone.
_FLOOR_S = 1.0
#: A worker that is on a CPU for this part of the time can hardly do more: one thread of Python runs at a time.
_BUSY = 0.85
_SELECT = [("floor", "SELECT 1;\n", 1)]
#: CPU time of a statement, in ns, of workers without a driver: by protocol, clients, processes, and kind of calls.
_floors: dict[tuple[str, int, int, bool], float] = {}


@dataclass
class Through:
    """The workers of a trial, and their CPU time."""

    workers: Workers
    floor_ns: float
    _began: float = 0.0
    _before: list[float] = field(default_factory=list)

    def begin(self) -> None:
        """Begin to count: the workers are connected to nothing yet."""
        self._began, self._before = time.monotonic(), self.workers.cpu_ns()

    def usage(self) -> dict[str, float]:
        """Return the CPU time of the load and its warm-up, the floor of a statement, and the busiest worker's share."""
        elapsed = max(1e-3, time.monotonic() - self._began)
        used = [max(0.0, b - a) for a, b in zip(self._before, self.workers.cpu_ns(), strict=True)]
        return {
            "driver_cpu_ns": sum(used),
            "driver_floor_ns": self.floor_ns,
            "driver_processes": float(len(used)),
            "driver_busiest": max(used, default=0.0) / 1e9 / elapsed,
        }


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
        yield Through(workers, _floor_ns(workers, server, run.protocol, clients))


def _server(target: Database, protocol: str) -> Server:
    conninfo = target.conninfo if isinstance(target, Target) else ""
    password = target.password if isinstance(target, Target | MySqlTarget) else None
    program = target.options.get("application_name") or "pgdyno"
    return Server(
        conninfo, target.host, target.port, target.user, password, target.dbname, target.dialect, protocol, program
    )


class _Silent:
    """Hears nothing."""

    def started(self, start_ns: int, connect_ns: int) -> None:
        """Nothing to do."""

    def interval(self, i: _core.Interval) -> None:
        """Nothing to do."""

    def event(self, e: _core.Event) -> None:
        """Nothing to do."""


def _floor_ns(workers: Workers, server: Server, protocol: str, clients: int) -> float:
    """Return the CPU time of a statement, in ns, in workers whose driver does nothing."""
    key = (protocol, clients, workers.processes, workers.is_awaited)
    if key not in _floors:
        name = named.parse(named.NULL + ("_awaited" if workers.is_awaited else ""))
        assert name is not None
        plan = engine.Plan(
            clients=clients, workers=1, protocol=cast("engine.Protocol", protocol), duration_s=_FLOOR_S, seed=1
        )
        with Workers(name, server, workers.processes) as idle:
            before = sum(idle.cpu_ns())
            result = _core.run(idle.configs, compiled(_SELECT, {}), _Silent(), plan)
            used = sum(idle.cpu_ns()) - before
        phase = result.phase("measure")
        count = phase.latency.count if phase is not None else 0
        _floors[key] = used / count if count else 0.0
    return _floors[key]
