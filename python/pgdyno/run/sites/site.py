"""Site of a run: a place that is in use, with its server and its data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pgdyno.cluster.held import HeldServer
from pgdyno.cluster.target import Target
from pgdyno.dbms import Database
from pgdyno.engine import Sample
from pgdyno.load.claim import Claim
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.own.touched import Touched
from pgdyno.load.planned import AnyDataset
from pgdyno.message import Text, message
from pgdyno.mysql.session import MySqlClaim
from pgdyno.run.planning.matrix import Place


@dataclass
class Site:
    """A place that is in use: its server, and what lies in it."""

    place: Place
    target: Database
    dataset: AnyDataset
    #: Where we start and stop it.
    cluster: HeldServer | None = None
    #: Holds the claim on a database that is not ours alone.
    claim: Claim | None = None
    #: The same on another product's server.
    lock: MySqlClaim | None = None
    loaded: dict[str, Any] = field(default_factory=dict)
    #: Where a server or a cluster is that stays; of a private one nothing, its folder is another each time.
    reached: dict[str, Any] = field(default_factory=dict)
    #: Of somebody's own dataset, the tables that the workloads touch.
    touched: list[Touched] = field(default_factory=list)
    #: By workload, what its scripts pick from.
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    #: Tables that began empty, where they are to be emptied before each trial.
    emptied: list[str] = field(default_factory=list)

    @property
    def relations(self) -> list[str]:
        """The tables that are written down."""
        return [t.name for t in self.touched] if isinstance(self.dataset, OwnDataset) else self.dataset.relations

    @property
    def rows(self) -> int:
        """Rows that the workloads may touch."""
        own = isinstance(self.dataset, OwnDataset) and not self.dataset.adopted
        return sum(t.rows for t in self.touched) if own else self.dataset.rows_of_key

    @property
    def postgresql(self) -> Target:
        """The target, where the server is known to be PostgreSQL."""
        assert isinstance(self.target, Target)
        return self.target

    @property
    def database(self) -> object:
        """Identity of the database that other sites may share.

        It is the claim on the database, or the folder of the cluster.
        """
        return (self.claim or self.lock) if self.cluster is None else self.cluster.base.resolve()

    def died(self) -> Text | None:
        """Return why the server is gone, or None if it runs or pgdyno does not manage it."""
        if self.cluster is None or self.cluster.is_alive():
            return None
        return message("error-server-has-died", log=self.cluster.last_words(2))
