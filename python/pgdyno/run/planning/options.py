"""Options of the command line that concern a run's servers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pgdyno.cluster import target as targets
from pgdyno.spec.experiment import Experiment


@dataclass(frozen=True)
class Options:
    """Options of the command line that concern servers."""

    #: libpq connection string; None: private servers, unless the environment names one.
    target: str | None = None
    embedded: bool = False
    keep: bool = False
    force: bool = False
    #: Datasets of another size that a target has may go.
    replace: bool = False
    pg_bin: Path | None = None
    #: What is done about templates: "use" one that holds the dataset, also "keep" what was loaded as one, "off".
    templates: str = "use"

    def conninfo(self, experiment: Experiment) -> str | None:
        """Return the connection string that the command line or the environment names.

        It applies to an experiment without targets of its own. An empty string means that libpq's environment
        variables define the connection. None means private servers. For an experiment with its own targets, the result
        is None.
        """
        if experiment.targets:
            return None
        if self.target is None and not self.embedded and targets.named_by_environment():
            return ""
        return self.target
