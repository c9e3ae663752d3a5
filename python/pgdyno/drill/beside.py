"""A workload beside the ledger: one of pgbench's scripts, or TPC-C, by clients of its own, so that a drill is under the
load of a server that works.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pgdyno import _core, engine
from pgdyno.cluster import target as targets
from pgdyno.drill.load import Load
from pgdyno.errors import RefusedError, UsageError
from pgdyno.load import find, loader
from pgdyno.load.dataset import Dataset
from pgdyno.load.listener import LoadListener
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.spec import builtins
from pgdyno.tpcc import conditions

#: Beside the names of pgbench's scripts.
_TPCC = "tpcc"


@dataclass(frozen=True)
class Beside:
    """Which, by how many clients, over how much: of pgbench's 100,000 accounts each, of TPC-C's warehouses."""

    script: str
    clients: int
    scale: int

    def refuse_unknown(self) -> None:
        """Raises UsageError."""
        known = [*(b.name for b in builtins.ALL), _TPCC]
        if self.script not in known:
            raise UsageError(f"--workload: {self.script!r} is unknown", f"There are {', '.join(known)}.")

    def prepare(self, cluster: ReplicatedCluster, listener: LoadListener) -> None:
        """Its tables, unless they are there, of that size. Raises RefusedError, TargetError."""
        target = cluster.target_of(cluster.primary)
        wanted = Dataset(_TPCC if self._is_tpcc else "tpcb", self.scale)
        with targets.administrative(target) as conn:
            try:
                found = find.look(conn, target, wanted, force=False, replace=False)
            except RefusedError as e:
                raise RefusedError(e.message, "--scale names its size; or drop what is there: a drill does not.") from e
            if not found.holds(wanted):
                loader.over_connections(conn, target, wanted, found, listener=listener)
        cluster.wait_caught_up()

    def load(self, like: Load) -> Load:
        """Its clients, who go where those of another load go."""
        return Load(
            like.first, like.others, self._workload(), Path(), self.clients, like.answer_timeout_s,
            like.connect_timeout_s, read_write=like.read_write,
        )  # fmt: skip

    @property
    def _is_tpcc(self) -> bool:
        return self.script == _TPCC

    def _workload(self) -> _core.Workload:
        if self._is_tpcc:
            return _core.Workload.tpcc([engine.Tpcc(warehouses=self.scale)])
        workload = _core.Workload({"scale": str(self.scale)})
        workload.add(self.script, builtins.named(self.script).text, 1)
        return workload

    def inconsistent(self, cluster: ReplicatedCluster) -> list[str]:
        """Of TPC-C's consistency conditions those that its tables break on the primary: a transaction that is there in
        part. Raises psycopg.Error, TargetError.
        """
        if not self._is_tpcc:
            return []
        with targets.administrative(cluster.target_of(cluster.primary), patience_s=None) as conn:
            schema = find.schema_sql(conn)
            found = list(conditions.checked(conn, 1, conditions.CONSISTENCY, schema=schema))
        return [f"TPC-C {c.clause}, {c.title}: {c.broken:,} times, e.g. {c.example}" for c in found if not c.holds]
