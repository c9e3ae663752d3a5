"""`pgdyno cluster snapshot` and `flashback` of clusters with standbys."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pgdyno.cli import console
from pgdyno.cli.replication import at_work, watching
from pgdyno.errors import ClusterError, msg
from pgdyno.format import size
from pgdyno.replication import archives, flashback

_out = console.output()
#: Tables whose rows are shown.
_SHOWN = 20


def snapshot(folder: Path, keep: int | None) -> int:
    """Take a snapshot of a standby while it replays.

    If `keep` is given, only the last `keep` snapshots are kept.
    """
    with at_work(folder) as cluster, watching("snapshot of") as watch:
        if fails := archives.failing(cluster.primary.local):
            raise ClusterError(fails, msg("remedy-mend-archive-first-snapshot-needs"))
        found = flashback.take(cluster, lambda n: watch("a standby", n))
        pruned = None if keep is None else flashback.prune(cluster, keep)
    how = f"{size(found.shared_bytes)} shared" if found.shared_bytes else f"{size(found.copied_bytes)} copied"
    _out.print(
        f"{found.folder.name}: {found.member} at {found.stop_lsn}, {how} in {found.seconds:.2f} s", soft_wrap=True
    )
    if pruned is not None:
        _out.print(f"removed {pruned[0]} older snapshots and {pruned[1]} archived segments from before the first kept")
    return 0


def main(folder: Path, to: str, into: Path, timeline: str, *, json_output: bool) -> int:
    """Restore a cluster to an earlier state and return the exit code.

    Raise ClusterError if the restored cluster does not hold what it must.
    """
    with at_work(folder) as cluster, watching("flashback:") as watch:
        found = flashback.restore(cluster, to, into, timeline, watch)
    if json_output:
        sys.stdout.write(json.dumps(found.as_json(), indent=2) + "\n")
    else:
        lines = [f"{found.folder}: from {found.snapshot} in {found.seconds:.1f} s; {found.stopped}"]
        if found.last_transaction:
            lines.append(f"its last transaction is of {found.last_transaction}")
        lines += [f"{name}: {n:,} rows" for name, n in list(found.rows.items())[:_SHOWN]]
        if len(found.rows) > _SHOWN:
            lines.append(f"... and {len(found.rows) - _SHOWN} tables more")
        if found.ledger is not None:
            here, there = found.ledger
            whole = "of each client the first" if not found.torn else f"of {found.torn} clients NOT the first"
            lines.append(f"ledger of drills: {here:,} rows, the cluster has {there:,} now; {whole}")
            if found.lost_since:
                lines.append(f"{found.lost_since:,} rows are here that the cluster has lost since")
        lines.append(
            f'it runs: --target "host={found.folder}/socket user=postgres"; pgdyno cluster stop {found.folder}'
        )
        for line in lines:
            _out.print(line, soft_wrap=True)
    if found.torn:
        raise ClusterError(msg("error-clients-ledger-holes-what-was", torn=found.torn), msg("remedy-run-pg-amcheck"))
    return 0
