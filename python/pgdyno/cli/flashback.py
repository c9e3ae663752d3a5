"""`pgdyno cluster snapshot` and `flashback` of clusters with standbys."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pgdyno.cli import console, streams
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
    with at_work(folder) as cluster, watching("snapshot") as watch:
        if fails := archives.failing(cluster.primary.local):
            raise ClusterError(fails, msg("remedy-mend-archive-first-snapshot-needs"))
        found = flashback.take(cluster, lambda n: watch("", n))
        pruned = None if keep is None else flashback.prune(cluster, keep)
    how = (
        msg("cluster-shared", size=size(found.shared_bytes))
        if found.shared_bytes
        else msg("cluster-copied", size=size(found.copied_bytes))
    )
    _out.print(
        streams.written(
            msg(
                "flashback-snapshot",
                name=found.folder.name,
                member=found.member,
                stop_lsn=found.stop_lsn,
                how=how,
                seconds=f"{found.seconds:.2f}",
            )
        ),
        soft_wrap=True,
    )
    if pruned is not None:
        _out.print(streams.written(msg("flashback-pruned", pruned=pruned[0], pruned2=pruned[1])))
    return 0


def main(folder: Path, to: str, into: Path, timeline: str, *, json_output: bool) -> int:
    """Restore a cluster to an earlier state and return the exit code.

    Raise ClusterError if the restored cluster does not hold what it must.
    """
    with at_work(folder) as cluster, watching("flashback") as watch:
        found = flashback.restore(cluster, to, into, timeline, watch)
    if json_output:
        sys.stdout.write(json.dumps(found.as_json(), indent=2) + "\n")
    else:
        restored = msg(
            "flashback-restored",
            folder=found.folder,
            snapshot=found.snapshot,
            seconds=f"{found.seconds:.1f}",
            stopped=found.stopped,
        )
        lines = [streams.written(restored)]
        if found.last_transaction:
            lines.append(streams.written(msg("flashback-last", last_transaction=found.last_transaction)))
        lines += [
            streams.written(msg("flashback-rows", name=name, n=f"{n:,}"))
            for name, n in list(found.rows.items())[:_SHOWN]
        ]
        if len(found.rows) > _SHOWN:
            lines.append(streams.written(msg("flashback-more-tables", value=len(found.rows) - _SHOWN)))
        if found.ledger is not None:
            here, there = found.ledger
            whole = msg("flashback-not-first", n=found.torn) if found.torn else msg("flashback-first")
            lines.append(streams.written(msg("flashback-ledger", here=f"{here:,}", there=f"{there:,}", whole=whole)))
            if found.lost_since:
                lines.append(streams.written(msg("flashback-lost-since", lost_since=f"{found.lost_since:,}")))
        lines.append(streams.written(msg("flashback-runs", folder=found.folder)))
        for line in lines:
            _out.print(line, soft_wrap=True)
    if found.torn:
        raise ClusterError(msg("error-clients-ledger-holes-what-was", torn=found.torn), msg("remedy-run-pg-amcheck"))
    return 0
