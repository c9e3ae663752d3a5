"""Costs of users' drivers beside the engine's own client and the database."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.driver.named import is_python
from pgdyno.judge.groups import Group
from pgdyno.message import Name, Text, message
from pgdyno.model import spelled
from pgdyno.report import names
from pgdyno.report.cells import COUNT, Cell, Table, Value, cells, column, linked, own_column
from pgdyno.results.analysis import RunAnalysis
from pgdyno.units import Quantity

#: Sentences; the table has all.
_SOME = 4


@dataclass(frozen=True)
class _Cost:
    """CPU time of a transaction in ns, warm-up included; None: not known."""

    group: Group
    driver: str
    #: All of the client's machine: the engine and the workers of a driver.
    client: float | None
    #: The workers of a driver, and what they take without one.
    workers: float | None
    floor: float | None
    server: float | None
    #: CPU share of the busiest worker.
    busiest: float | None

    @property
    def own(self) -> float | None:
        """The driver's own part."""
        return None if self.workers is None or self.floor is None else max(0.0, self.workers - self.floor)


def _costs(run: RunAnalysis) -> list[_Cost]:
    return run.once("drivers", lambda: [_cost(run, g) for g in run.groups])


def _cost(run: RunAnalysis, g: Group) -> _Cost:
    driver = str(g.trials[0].parameters.get("driver") or "auto")
    observed = run.observed(g.trials)
    cpu = observed.mean("processes", "cpu", kind="pgdyno")
    client = cpu * 1e9 / observed.commits_per_s if cpu and observed.commits_per_s else None
    is_own = not is_python(driver)
    # Of a driver the transactions of the scripts, which the server may count as several.
    counted = "transactions" if is_own else "driver_transactions"
    transactions = sum(t.activity.get(counted, 0.0) for t in g.trials)

    def per_transaction(name: str) -> float | None:
        whole = sum(t.activity.get(name, 0.0) for t in g.trials)
        return whole / transactions if whole and transactions else None

    server = per_transaction("server_cpu_ns")
    if is_own:
        return _Cost(g, driver, client, None, None, server, None)
    workers, floor = per_transaction("driver_cpu_ns"), per_transaction("driver_floor_ns")
    busiest = max((t.activity.get("driver_busiest", 0.0) for t in g.trials), default=None)
    return _Cost(g, driver, client, workers, floor, server, busiest)


def sentences(run: RunAnalysis) -> list[Text]:
    """Return what each driver costs beside the database, for the fastest configuration of each."""
    best: dict[str, _Cost] = {}
    for c in (c for c in _costs(run) if is_python(c.driver) and c.own is not None):
        tps = c.group.over("tps").mean
        if c.driver not in best or tps > best[c.driver].group.over("tps").mean:
            best[c.driver] = c
    out: list[Text] = []
    for c in list(best.values())[:_SOME]:
        server = None
        if c.server and c.own is not None:
            server = message(
                "driver-beside-server", cpu=Quantity(c.server, "ns"), times=Quantity(c.own / c.server, "factor")
            )
        out.append(
            message(
                "answer-driver", driver=Name(c.driver), cpu=Quantity(c.own or 0.0, "ns"),
                server=server, where=names.configuration(c.group, "driver"),
            )
        )  # fmt: skip
    return out


def table(run: RunAnalysis) -> Table:
    """Return the table of the costs of drivers; it has no rows in a run without one."""
    found = _costs(run) if any(is_python(str(t.parameters.get("driver") or "")) for t in run.data.trials) else []
    axes = list(dict.fromkeys(name for c in found for name in c.group.varied if name != "driver"))
    several = {name for name in ("workload", "clients") if len({getattr(c.group, name) for c in found}) > 1}
    rows = []
    for c in found:
        g = c.group
        labels: list[Value | Cell | str | None] = [c.driver]
        labels += [g.workload] if "workload" in several else []
        labels += [spelled(g.varied[name]) if name in g.varied else None for name in axes]
        labels += [g.clients] if "clients" in several else []
        ratio = None if c.own is None or not c.server else Quantity(c.own / c.server, "factor")
        busiest = None if c.busiest is None else Quantity(c.busiest, "%")
        times = map(_time, (c.client, c.workers, c.floor, c.own, c.server))
        rows.append(cells([*labels, linked(Quantity(g.over("tps").mean, "count"), g.trials), *times, ratio, busiest]))
    labelled = [column("driver"), *([column("workload")] if "workload" in several else []), *map(own_column, axes)]
    labelled += [column("clients", COUNT)] if "clients" in several else []
    costs = ("client CPU/tx", "workers CPU/tx", "floor CPU/tx", "driver CPU/tx", "server CPU/tx", "times server")
    return Table(
        "drivers",
        message("table-drivers"),
        [*labelled, column("TPS", COUNT), *map(column, (*costs, "busiest worker"))],
        rows,
        [message("note-drivers")],
        len(labelled),
        ["busiest worker", "workers CPU/tx", "floor CPU/tx", "client CPU/tx"],
    )


def _time(ns: float | None) -> Quantity | None:
    return None if ns is None else Quantity(ns, "ns")
