"""Workloads of the clients: compiled scripts, or the transactions of TPC-C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgdyno import _core, engine
from pgdyno.dbms import Dialect
from pgdyno.errors import SpecError, msg
from pgdyno.run.planning.replay import Schedule
from pgdyno.spec.experiment import Tpcc

#: Scripts as runs keep them: name, text, weight.
Scripts = Sequence[tuple[str, str, int]]


def compiled(
    texts: Scripts,
    variables: Mapping[str, str],
    tpcc: Tpcc | None = None,
    samples: Sequence[engine.Sample] = (),
    schedule: Schedule | None = None,
    *,
    dialect: Dialect = "postgresql",
) -> _core.Workload:
    """Return a workload of these scripts, or of TPC-C. `dialect` is whose SQL the scripts have.

    Raise SpecError, with file, line, column and caret, if a script has a mistake.
    """
    if tpcc is not None:
        return tpcc_workload([(tpcc, variables)])
    workload = _core.Workload(dict(variables), dialect=dialect)
    try:
        for sample in samples:
            workload.add_sample(sample)
        for name, text, weight in texts:
            workload.add(name, text, weight)
    except _core.ScriptError as e:
        raise SpecError(message_of(e)) from e
    if schedule is not None:
        workload.schedule(schedule)
    try:
        # Builds it, which also weighs the scripts.
        _ = workload.commands
    except _core.CoreError as e:
        raise SpecError(f"{texts[0][0]}: {message_of(e)}") from e
    return workload


def tpcc_workload(sides: Sequence[tuple[Tpcc, Mapping[str, str]]]) -> _core.Workload:
    """TPC-C, of one side or of two of a duet, each with its variables."""
    try:
        return _core.Workload.tpcc([_options(tpcc, variables) for tpcc, variables in sides])
    except _core.CoreError as e:
        raise SpecError(msg("error-in-tpcc", message_of=message_of(e))) from e


def listing(tpcc: Tpcc) -> list[tuple[str, str, int]]:
    """TPC-C's transactions as scripts are kept: for people to read, and their weights."""
    transactions = _core.tpcc_transactions(_options(tpcc, {"warehouses": "1"}))
    return [(name, text, weight) for (name, text), weight in zip(transactions, tpcc.mix, strict=True)]


def constants(variables: Mapping[str, str]) -> dict[str, int]:
    """Return the NURand constants of a dataset, for the record."""
    names = ("last_name_load", "last_name_run", "customer", "item")
    return dict(zip(names, _core.tpcc_constants(int(variables.get("data_seed", "1"))), strict=True))


def functions() -> list[str]:
    """CREATE FUNCTION of TPC-C's transactions, in the order of `listing`."""
    return _core.tpcc_functions(0, 1)


def _options(tpcc: Tpcc, variables: Mapping[str, str]) -> engine.Tpcc:
    fields: dict[str, Any] = tpcc.model_dump()
    fields |= {key: value for key, value in variables.items() if key in fields}
    waits = float(fields["waits"])
    a, b, c, d, e = tpcc.mix
    return engine.Tpcc(
        warehouses=int(variables.get("warehouses", "1")),
        sets=int(variables.get("sets", "1")),
        data_seed=int(variables.get("data_seed", "1")),
        weights=(a, b, c, d, e),
        round_trips=fields["round_trips"],
        # The standard's terminals have a place.
        home="terminal" if waits else fields["home"],
        isolation="" if fields["isolation"] == "default" else fields["isolation"],
        waits=waits,
    )


def message_of(e: _core.CoreError) -> str:
    """Return the message in pgdyno's own words.

    Some errors also carry the message of the classic tools, which follows it.
    """
    return str(e.args[0])
