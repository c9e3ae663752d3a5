"""A workload beside the ledger: one of pgbench's scripts, by clients of its own, so that a drill is under the load of
a server that works.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pgdyno import _core
from pgdyno.cluster import target as targets
from pgdyno.drill.load import Load
from pgdyno.errors import UsageError
from pgdyno.load import find, loader
from pgdyno.load.dataset import Dataset
from pgdyno.load.listener import LoadListener
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.spec import builtins


@dataclass(frozen=True)
class Beside:
    """Which, by how many clients, over how many rows (100,000 accounts each)."""

    script: str
    clients: int
    scale: int

    def refuse_unknown(self) -> None:
        """Raises UsageError."""
        known = [b.name for b in builtins.ALL]
        if self.script not in known:
            raise UsageError(f"--workload: {self.script!r} is unknown", f"There are {', '.join(known)}.")

    def prepare(self, cluster: ReplicatedCluster, listener: LoadListener) -> None:
        """Pgbench's tables, unless they are there, of that size. Raises RefusedError, TargetError."""
        target, wanted = cluster.target_of(cluster.primary), Dataset("tpcb", self.scale)
        with targets.administrative(target) as conn:
            found = find.look(conn, target, wanted, force=False, replace=True)
            if not found.holds(wanted):
                loader.over_connections(conn, target, wanted, found, listener=listener)
        cluster.wait_caught_up()

    def load(self, like: Load) -> Load:
        """Its clients, who go where those of another load go."""
        workload = _core.Workload({"scale": str(self.scale)})
        workload.add(self.script, builtins.named(self.script).text, 1)
        return Load(
            like.first, like.others, workload, Path(), self.clients, like.answer_timeout_s, like.connect_timeout_s,
            read_write=like.read_write,
        )  # fmt: skip
