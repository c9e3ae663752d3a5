"""Are the verdicts right? Equal sides (A/A) on a real server, and a slowdown of 5% put in by a known delay.

Trials alternate, A B or B A by chance, as an experiment with two variants runs them, and are compared in pairs.
Printed:
how often equal sides were called different (at most 5%), and how often the slowdown was found with the repetitions
that a pilot recommends (at least 90%); the same for simulated series whose neighbours resemble each other.
"""

from __future__ import annotations

import argparse
import math
import random

import numpy as np
from pgdyno import _core
from pgdyno.analysis.compare import Verdict, compare, repetitions_needed
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import sized
from pgdyno.collect import host
from pgdyno.engine import Plan

SELECT = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
#: Of one client that waits most of the time: throughput follows the delay.
BASE_US = 1000
SLOWER = 0.05
#: Repetitions, where the machine is so noisy that more would be needed; the line then says with how many it was tried.
MOST = 15


class Nobody:
    """Looks on and does nothing."""

    def started(self, start_ns: int, connect_ns: int) -> None: ...
    def interval(self, i: _core.Interval) -> None: ...
    def event(self, e: _core.Event) -> None: ...


class Bench:
    """A server with pgbench's tables, and trials on it."""

    def __init__(self, cluster: EmbeddedCluster, seconds: float) -> None:
        self.config = _core.ConnConfig(**cluster.target.core_arguments())
        self.seconds = seconds
        self.seed = 0
        data = _core.Dataset("tpcb", 5)
        columns = {t.name: ", ".join(" ".join(filter(None, c)) for c in t.columns) for t in data.tables}
        steps = [f"create table {name} ({text})" for name, text in columns.items()]
        data.carry_out(self.config, [steps], lambda *_: None, connections=1)
        fill = [(f"copy {t.name} from stdin (format binary)", n, t.first, t.end) for n, t in enumerate(data.tables)]
        keys = ["alter table pgbench_accounts add primary key (aid)", "vacuum analyze"]
        data.carry_out(self.config, [[*fill]], lambda *_: None, connections=1)
        data.carry_out(self.config, [[k] for k in keys], lambda *_: None, connections=1)

    def tps(self, script: str, clients: int) -> float:
        """One trial."""
        self.seed += 1
        workload = _core.Workload({"scale": "5"})
        workload.add("s.sql", "\\set aid random(1, 500000)\n" + script, 1)
        plan = Plan(clients=clients, duration_s=self.seconds, warmup_s=0.05, interval_s=0.5, seed=self.seed)
        done = _core.run([self.config], workload, Nobody(), plan)
        measured = done.phase("measure")
        assert measured is not None
        return measured.committed / (done.elapsed_ns / 1e9)

    def verdict(self, a: str, b: str, n: int, clients: int, rng: random.Random) -> Verdict:
        """B beside A, by n pairs."""
        x, y = [], []
        for _ in range(n):
            pair = [(a, x), (b, y)]
            rng.shuffle(pair)
            for script, figures in pair:
                figures.append(self.tps(script, clients))
        return compare(x, y, paired=True).verdict


def judged(name: str, found: list[Verdict], wanted: str) -> None:
    """A line of the result."""
    counts = ", ".join(f"{sum(v is w for v in found)} {w.value}" for w in Verdict if w in found)
    print(f"  {name:52} {len(found)} comparisons: {counts}  ({wanted})", flush=True)


def simulated() -> None:
    """Series of an AR(1) process within each trial, and trials that differ among themselves."""
    rng = np.random.default_rng(1)

    def trial(level: float) -> float:
        noise, x = rng.normal(0, 8, 60), 0.0
        series = []
        for e in noise:
            x = 0.6 * x + e
            series.append(level + x)
        return float(np.mean(series))

    sigma = 0.02
    n = repetitions_needed(sigma, paired=True) or 0
    for name, ratio in (("simulated, equal", 1.0), (f"simulated, 5% slower, {n} repetitions", 1 - SLOWER)):
        found = []
        for _ in range(1000):
            a = [trial(1000 * math.exp(rng.normal(0, sigma))) for _ in range(n)]
            b = [trial(1000 * ratio * math.exp(rng.normal(0, sigma))) for _ in range(n)]
            found.append(compare(a, b, paired=True).verdict)
        judged(name, found, "at most 5% different" if ratio == 1 else "at least 90% slower")


def main() -> None:
    """Runs all, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=40, help="A/A comparisons on the server")
    parser.add_argument("--slower", type=int, default=20, help="comparisons with the slowdown")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each trial")
    args = parser.parse_args()
    print("\nverdicts:")
    simulated()
    rng = random.Random(7)
    with EmbeddedCluster(sized(host.memory_bytes(), host.cores(), 20)) as cluster:
        bench = Bench(cluster, args.seconds)
        for _ in range(3):
            bench.tps(SELECT, 8)
        found = [bench.verdict(SELECT, SELECT, 5, 8, rng) for _ in range(args.pairs)]
        judged("real, equal: point selects, 8 clients, 5 repetitions", found, "at most 5% different")
        delayed = f"{SELECT}\\sleep {BASE_US} us\n"
        base = [bench.tps(delayed, 1) for _ in range(12)]
        # What a transaction takes on average, and 5% less throughput by a longer delay.
        more = 1e6 / float(np.mean(base)) * (1 / (1 - SLOWER) - 1)
        slow = f"{SELECT}\\sleep {round(BASE_US + more)} us\n"
        n = repetitions_needed(float(np.std(np.log(base), ddof=1)), paired=True) or 20
        found = [bench.verdict(delayed, slow, n, 1, rng) for _ in range(args.slower)]
        judged(f"real, 5% slower by a delay of {more:.0f} µs, {n} repetitions", found, "at least 90% slower")
        busy = [bench.tps(SELECT * 20, 8) for _ in range(12)]
        wanted = repetitions_needed(float(np.std(np.log(busy), ddof=1)), paired=True) or 500
        n = min(MOST, wanted)
        found = [bench.verdict(SELECT * 20, SELECT * 21, n, 8, rng) for _ in range(args.slower)]
        promise = "at least 90% slower" if n == wanted else f"{wanted} are recommended: nothing is promised for {n}"
        judged(f"real, 20 statements beside 21 (4.8% slower), {n} repetitions", found, promise)


if __name__ == "__main__":
    main()
