"""`--against SERVER`: the same experiment on a second server, side by side."""

from __future__ import annotations

from typing import Any

from pgdyno.errors import UsageError, msg
from pgdyno.mysql.settings import equal_promises
from pgdyno.spec.experiment import Experiment

#: Name of the private server that an experiment without targets has.
_FIRST = "postgresql"


def add(data: dict[str, Any], experiment: Experiment, server: str) -> None:
    """Add a target to `data`, the experiment's, that repeats all trials of its only target.

    A private MariaDB gets the promises that the settings of the first target make. Raise UsageError if the experiment
    has several targets.
    """
    if len(experiment.targets) > 1:
        raise UsageError(
            msg("error-against-several-targets", n=len(experiment.targets)), msg("remedy-name-servers-in-file")
        )
    if server != "mariadb" and "=" not in server and "://" not in server:
        raise UsageError(msg("error-against-unknown", server=server), msg("remedy-against"))
    targets = data["targets"] = data["targets"] or {_FIRST: {}}
    (first, target), *_ = targets.items()
    name = "mariadb" if server == "mariadb" else "against"
    if name == first:
        raise UsageError(msg("error-against-itself", name=name), msg("remedy-name-servers-in-file"))
    if server == "mariadb":
        for key in ("conninfo", "cluster", "version", "file_system", "tablespaces", "standbys", "setup"):
            if target.get(key):
                raise UsageError(
                    msg("error-against-one-sided", name=first, key=key), msg("remedy-name-servers-in-file")
                )
        same = {key: target.get(key) for key in ("cpus", "memory", "folder")}
        targets[name] = {"product": "mariadb", "settings": equal_promises(target.get("settings") or {}), **same}
    else:
        targets[name] = {"conninfo": server}
    for axes in data["axes"] if isinstance(data["axes"], list) else [data["axes"]]:
        if axes["target"]:
            axes["target"] = [*axes["target"], name]
    data["title"] = f"{experiment.name}: {first} and {name}"
    data["title_zh"] = ""
