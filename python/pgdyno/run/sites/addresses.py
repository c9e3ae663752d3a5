"""Addresses of an experiment's targets: a running server that is connected to, or one that pgdyno starts."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.cluster import target as targets
from pgdyno.cluster.target import Target
from pgdyno.mysql.target import MySqlTarget, names_mysql, read
from pgdyno.run.planning.options import Options
from pgdyno.spec.experiment import Experiment


@dataclass(frozen=True)
class Addresses:
    """Addresses of targets by their names in the experiment."""

    experiment: Experiment
    options: Options

    def conninfo(self, name: str) -> str | None:
        """Return the connection string of a target; None for a server that pgdyno starts itself."""
        target = self.experiment.all_targets[name]
        return target.conninfo if target.conninfo is not None else self.options.conninfo(self.experiment)

    def is_private(self, name: str) -> bool:
        """Return True if pgdyno itself starts the server of a target, a private one or an existing cluster."""
        return self.conninfo(name) is None

    def resolve(self, name: str) -> Target | MySqlTarget | None:
        """Return the target of a running server; None for a server that pgdyno starts itself.

        Raise UsageError for a connection string that is not valid.
        """
        conninfo = self.conninfo(name)
        if conninfo is None:
            return None
        named = f"targets.{name}.conninfo" if self.experiment.targets else "--target"
        if names_mysql(conninfo):
            return read(conninfo, named=named, connect_timeout_s=self.experiment.run.connect_timeout_s)
        return targets.resolve(conninfo, self.experiment.run.connect_timeout_s, named=named)
