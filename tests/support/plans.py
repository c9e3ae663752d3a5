"""Plans of experiments for tests: two cores, private servers."""

from __future__ import annotations

from pathlib import Path

from pgdyno.run.planning import matrix, plan
from pgdyno.run.planning.matrix import Configuration
from pgdyno.run.planning.options import Options
from pgdyno.run.planning.plan import Plan, Planned, Unit
from pgdyno.run.planning.prepared import Prepared
from pgdyno.spec.experiment import Experiment

_CORES = 2


def prepared(e: Experiment) -> Prepared:
    """Return the experiment as it is, without scripts."""
    return Prepared(e, "", {}, _CORES, Path("runs"), [])


def plan_of(e: Experiment, options: Options | None = None) -> Plan:
    return plan.plan_run(prepared(e), options or Options(embedded=True))


def configurations(e: Experiment) -> list[Configuration]:
    return matrix.configurations(e, _CORES)


def units(e: Experiment, *, one_database: bool = False) -> list[Unit]:
    """Return the trials; one database for all places means that no order is decided by their servers."""
    if e.run.order == "auto":
        e = e.model_copy(update={"run": e.run.model_copy(update={"order": "random"})})
    return plan_of(e, Options("host=x") if one_database else None).units


def trials(e: Experiment, *, one_database: bool = False) -> list[Planned]:
    return [planned for unit in units(e, one_database=one_database) for planned in unit]
