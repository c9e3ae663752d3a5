"""Drills: `make bench`, or this with --rounds, --pairs, --seconds, --clients.

(a) What the ledger's record costs: the same load with and without it, in turn, on one server; the ratio of TPS.
(b) Rounds of kill-primary, freeze-primary and cut-primary with commits that wait for one of two standbys (on, and
    remote_write): how long a round takes, how long clients are not served, and how much of that is pg_promote itself;
    and how many acknowledged commits are lost. Exit code 1: any.

Figures are medians; ratios the medians of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from pgdyno import _core, engine
from pgdyno.cluster import administration, network
from pgdyno.cluster.settings import sized
from pgdyno.drill import ledger
from pgdyno.drill.own import OwnTarget
from pgdyno.drill.records import Options
from pgdyno.drill.rounds import play
from pgdyno.drill.verdict import judge_rounds
from pgdyno.replication import build, configuration
from pgdyno.replication.cluster import ReplicatedCluster

DRILLED = ("kill-primary", "freeze-primary", "cut-primary")
COMMITS = ("on", "remote_write")
#: Seconds that twenty rounds may take; what the records may cost, of the commits a second.
MOST_S, MOST = 600, 0.05


class Nobody:
    """Looks on."""

    def started(self, start_ns: int, connect_ns: int) -> None:
        """Nothing to do."""

    def interval(self, i: Any) -> None:
        """Nothing to do."""

    def event(self, e: Any) -> None:
        """Nothing to do."""


def tps(cluster: ReplicatedCluster, records: Path | None, clients: int, seconds: float) -> float:
    """Return the commits per second of one run."""
    config = _core.ConnConfig(**cluster.target_of(cluster.primary).core_arguments())
    workload = _core.Workload.ledger(time.time_ns(), records)
    plan = engine.Plan(clients=clients, duration_s=seconds, warmup_s=0.3)
    result = _core.run([config], workload, Nobody(), plan)
    done = result.phase("measure")
    assert done is not None and result.error is None, result.error
    return done.committed / (result.elapsed_ns / 1e9)


def drill(cluster: ReplicatedCluster, base: Path, fault: str, commit: str, args: argparse.Namespace) -> bool:
    """Run rounds of a fault; return True if a commit was lost or a round failed."""
    configuration.change_settings(cluster, synchronous_commit=commit)
    began, rounds = time.monotonic(), []
    for n in range(1, args.rounds + 1):
        options = Options(clients=args.clients)
        folder = base / f"{fault}-{commit}-{n}"
        rounds.append(play(OwnTarget(cluster), fault, n, options, folder, lambda _: None))
    v = judge_rounds(rounds)
    assert v.promote_s is not None and v.outage_p50_s is not None and v.detected_s is not None
    print(
        f"(b) {fault}, synchronous_commit = {commit}: {args.rounds} rounds in {time.monotonic() - began:.0f} s; "
        f"{v.sentence}\n"
        f"    clients not served {v.outage_p50_s:.2f} s (median of {args.rounds} x {args.clients}; 95% within "
        f"{v.outage_p95_s:.2f} s, longest {v.outage_max_s:.2f} s): found dead after {v.detected_s:.2f} s, "
        f"pg_promote {v.promote_s:.3f} s",
        flush=True,
    )
    return bool(v.lost or v.errors) or time.monotonic() - began > MOST_S * args.rounds / 20


def main() -> None:
    """Run all measurements and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--clients", type=int, default=8)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as folder:
        base = Path(folder)
        base.chmod(0o755)
        cluster = build.create(
            base / "c", 2, "ANY 1 (*)", sized(1 << 30, 2, args.clients), use_namespaces=network.is_possible()
        )
        try:
            build.build_members(cluster, watch=lambda *_: None)
            with administration.connect(cluster.target_of(cluster.primary)) as conn:
                ledger.create(conn)
            # Without waits for disks and standbys the client's part is largest.
            configuration.change_settings(cluster, synchronous_standby_names="", synchronous_commit="off")
            with_: list[float] = []
            without: list[float] = []
            for n in range(args.pairs):
                pair = [(with_, base / f"records-{n}"), (without, None)]
                for sink, records in pair if n % 2 else reversed(pair):
                    sink.append(tps(cluster, records, args.clients, args.seconds))
            ratios = sorted(a / b for a, b in zip(with_, without, strict=True))
            print(
                f"(a) ledger with records {statistics.median(with_):,.0f} commits/s, without "
                f"{statistics.median(without):,.0f}: ratio {statistics.median(ratios):.3f} "
                f"(quartiles {ratios[len(ratios) // 4]:.3f} to {ratios[3 * len(ratios) // 4]:.3f}, "
                f"{args.pairs} pairs of {args.seconds:g} s, {args.clients} clients, synchronous_commit = off)"
            )
            configuration.change_settings(cluster, synchronous_standby_names="ANY 1 (*)")
            lost = [drill(cluster, base, fault, commit, args) for commit in COMMITS for fault in DRILLED]
            if any(lost):
                raise SystemExit("commits were lost where none may be, a round went wrong, or rounds took too long")
            if ratios[3 * len(ratios) // 4] < 1 - MOST:
                raise SystemExit(f"the ledger's records cost more than {MOST:.0%}")
        finally:
            build.destroy(cluster)


if __name__ == "__main__":
    main()
