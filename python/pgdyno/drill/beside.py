"""Workload that runs beside the ledger during a drill.

It is one of pgbench's scripts, or TPC-C, and has its own clients. The drill thus runs on a server under load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno import _core, engine
from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.drill.load import Load
from pgdyno.errors import RefusedError, UsageError, msg
from pgdyno.load import find, loader
from pgdyno.load.dataset import Dataset
from pgdyno.message import Name, Text, message
from pgdyno.spec import builtins
from pgdyno.stream.stream import RunStream
from pgdyno.tpcc import conditions

#: Of pgbench's scripts that write, the tables whose balances each transaction changes by its delta.
_BALANCES = {
    "tpcb-like": {
        "pgbench_accounts": "abalance", "pgbench_tellers": "tbalance", "pgbench_branches": "bbalance",
    },
    "simple-update": {"pgbench_accounts": "abalance"},
}  # fmt: skip
#: Beside the names of pgbench's scripts.
_TPCC = "tpcc"


@dataclass(frozen=True)
class Beside:
    """Which, by how many clients, over how much: of pgbench's 100,000 accounts each, of TPC-C's warehouses."""

    script: str
    clients: int
    scale: int

    def refuse_unknown(self) -> None:
        """Raise UsageError if the script is unknown."""
        known = [*(b.name for b in builtins.ALL), _TPCC]
        if self.script not in known:
            raise UsageError(
                msg("error-workload-unknown", script=repr(self.script)), msg("remedy-choices", choices=", ".join(known))
            )

    def prepare(self, target: Target, stream: RunStream) -> None:
        """Create the tables unless they exist. Raise RefusedError if tables of another size exist."""
        wanted = Dataset(_TPCC if self._is_tpcc else "tpcb", self.scale)
        with administration.connect(target) as conn:
            try:
                find.look(conn, target, wanted, force=False, replace=False)
            except RefusedError as e:
                raise RefusedError(e.cause, msg("remedy-scale-names-size-or-drop")) from e
            loader.over_connections(conn, target, wanted, stream=stream)

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

    def sums(self, primary: Target) -> dict[str, int]:
        """Return the difference between each table's balances and the deltas in the history.

        No transaction of pgbench's scripts changes these differences: each transaction adds one delta to all of them.
        Raise psycopg.Error or TargetError if the primary cannot be queried.
        """
        tables = _BALANCES.get(self.script, {})
        if not tables:
            return {}
        with administration.connect(primary, patience_s=None) as conn:
            schema = find.schema_sql(conn)
            ask = ", ".join(
                f"(select coalesce(sum({column}), 0) from {schema}.{table})"
                for table, column in {**tables, "pgbench_history": "delta"}.items()
            )
            row = conn.execute(f"select {ask}").fetchone()
        assert row is not None
        return {table: int(total) - int(row[-1]) for table, total in zip(tables, row[:-1], strict=True)}

    def inconsistent(self, primary: Target, before: Mapping[str, int]) -> list[Text]:
        """Return the signs of transactions that exist only in part.

        For TPC-C they are the consistency conditions that its tables violate on the primary. For pgbench they are the
        sums that differ from `before`. Raise psycopg.Error or TargetError if the primary cannot be queried.
        """
        if not self._is_tpcc:
            now = self.sums(primary)
            return [
                message(
                    "drill-sums-differ",
                    script=Name(str(self.script)),
                    table=Name(table),
                    now=now[table],
                    before=before[table],
                )
                for table in now
                if now[table] != before.get(table, now[table])
            ]
        with administration.connect(primary, patience_s=None) as conn:
            schema = find.schema_sql(conn)
            found = list(conditions.checked(conn, 1, conditions.CONSISTENCY, schema=schema))
        return [
            message(
                "drill-condition-broken",
                clause=Name(c.clause),
                condition=c.text,
                n=c.broken,
                example=Name(c.example),
            )
            for c in found
            if not c.holds
        ]
