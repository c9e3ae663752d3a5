"""Dialects of SQL that the targets of an experiment speak."""

from __future__ import annotations

from pgdyno.dbms import Dialect
from pgdyno.mysql.target import names_mysql
from pgdyno.spec import experiment as spec
from pgdyno.spec.experiment import Experiment


def dialects_of(experiment: Experiment, conninfo: str | None) -> set[Dialect]:
    """Return whose SQL the servers of an experiment speak; `conninfo` is that of the command line."""
    return {dialect_of(target, conninfo) for target in experiment.all_targets.values()}


def dialect_of(target: spec.Target, conninfo: str | None) -> Dialect:
    """Return whose SQL the server of a target speaks; `conninfo` is that of the command line."""
    text = target.conninfo if target.conninfo is not None else conninfo
    is_mysql = target.product == "mariadb" or (text is not None and names_mysql(text))
    return "mysql" if is_mysql else "postgresql"
