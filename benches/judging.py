"""Are the verdicts right? Equal sides (A/A), and a slowdown of 5% by a known delay, on a machine with other load.

Printed: of whole runs of one experiment, each pair, how often they are called different; by simulation, how often equal
configurations are, and a difference of 20% is found, as docs/math.md has it; on recorded series of real servers, how
often intervals of neighbouring parts agree (95 in 100); by duets of two real servers, how often equal ones are called
different (at most 1 in 100), and how often the slowdown is found within 120 s of measured time (at least 90 in 100).
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from pgdyno import _core
from pgdyno.analysis import duet, quantiles, series
from pgdyno.analysis.compare import Comparison, Verdict, compare
from pgdyno.analysis.duet import Difference
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import sized
from pgdyno.collect import host
from pgdyno.engine import Duet, Plan
from pgdyno.judge import runs
from pgdyno.judge.siblings import siblings
from pgdyno.run.planning.turns import order_of, transition_of, turns_for
from pgdyno.store import reading
from pgdyno.store.reading import RunData

SELECT = "\\set aid random(1, 500000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
UPDATE = "\\set aid random(1, 500000)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
#: What noise is recorded of: a name, the script, clients.
RECORDINGS = (("selects, 1 client", SELECT, 1), ("selects, 8 clients", SELECT, 8), ("updates, 8 clients", UPDATE, 8))
DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)
#: Comparisons of equal sides by recorded noise.
RECORDED = 400
#: Comparisons of several equal runs a side.
SPLITS = 200
#: Intervals of the parts of a recorded series; duets by recorded noise take parts of the second length.
WINDOWS = (20, 40, 100)
WINDOW = WINDOWS[1]
#: Of clients that wait most of the time: throughput follows the delay.
BASE_US, SLOWER = 1000, 0.05


class Looker:
    """Keeps each slice's commits, by side."""

    def __init__(self, order: list[int], commands: int) -> None:
        self.order = order
        self.commands = commands
        self.slices: dict[int, tuple[int, int]] = {}

    def started(self, start_ns: int, connect_ns: int) -> None: ...
    def event(self, e: _core.Event) -> None: ...

    def interval(self, i: _core.Interval) -> None:
        """One slice, or a transition."""
        if i.phase == "measure":
            side = self.order[i.turn]
            own = i.of_scripts((side, side + 1), (side * self.commands, (side + 1) * self.commands))
            self.slices[i.turn] = (side, own.committed)

    def differences(self) -> list[float]:
        """Of the logarithms of each pair."""
        found = []
        for turn in sorted(self.slices)[::2]:
            pair = dict([self.slices[turn], self.slices[turn + 1]])
            found.append(math.log(max(0.5, pair[1]) / max(0.5, pair[0])))
        return found


class Two:
    """Two servers alike."""

    def __init__(self, clusters: tuple[EmbeddedCluster, EmbeddedCluster], slice_s: float) -> None:
        self.clusters = clusters
        self.slice_s = slice_s
        self.seed = 0
        for c in clusters:
            config = _core.ConnConfig(**c.target.core_arguments())
            data = _core.Dataset("tpcb", 5)
            columns = {t.name: ", ".join(" ".join(filter(None, x)) for x in t.columns) for t in data.tables}
            steps = [f"create table {name} ({text})" for name, text in columns.items()]
            data.carry_out(config, [steps], lambda *_: None, connections=1)
            fill = [(f"copy {t.name} from stdin (format binary)", n, t.first, t.end) for n, t in enumerate(data.tables)]
            keys = ["alter table pgbench_accounts add primary key (aid)", "vacuum analyze"]
            data.carry_out(config, [[*fill]], lambda *_: None, connections=1)
            data.carry_out(config, [[k] for k in keys], lambda *_: None, connections=1)

    def start_anew(self) -> None:
        """Both."""
        for c in self.clusters:
            c.stop()
            c.start()

    def duet(self, a: str, b: str, clients: int, seconds: float) -> Difference:
        """One duet: so many seconds of each side."""
        self.seed += 1
        workload = _core.Workload({"scale": "5"})
        workload.add("a.sql", a, 1)
        commands = len(workload.commands)
        workload.other_side({})
        workload.add("b.sql", b, 1)
        warm, turns = 4, turns_for(seconds, self.slice_s)
        order, period = order_of(warm + turns, self.seed), self.slice_s + transition_of(self.slice_s)
        looker = Looker(order, commands)
        plan = Plan(
            clients=2 * clients, workers=1, duration_s=turns * period, warmup_s=warm * period, interval_s=self.slice_s,
            seed=self.seed, duet=Duet(order, transition_of(self.slice_s)),
        )  # fmt: skip
        _core.run([_core.ConnConfig(**c.target.core_arguments()) for c in self.clusters], workload, looker, plan)
        found = duet.pair_ratio(looker.differences())
        assert found is not None
        return found

    def verdict(self, a: str, b: str, clients: int, seconds: float, starts: int) -> Comparison:
        """B beside A over several starts, `seconds` of measuring in all."""
        units = []
        for n in range(starts):
            if n:
                self.start_anew()
            units.append([self.duet(a, b, clients, seconds / 2 / starts)])
        return duet.compared(units, 1, 1.0, 1.0)


def judged(name: str, found: list[Comparison], wanted: str) -> None:
    """Print a line of the result."""
    counts = ", ".join(f"{sum(c.verdict is w for c in found)} {w.value}" for w in Verdict)
    half = float(np.median([math.log(c.high / c.low) / 2 for c in found]))
    print(f"  {name:58} {len(found)}: {counts}; half width {half * 100:.1f}%  ({wanted})", flush=True)


def simulated(tables: int) -> None:
    """Tables of configurations in rounds, as docs/math.md has them."""
    rng = np.random.default_rng(1)
    noisy = 0.05 * math.sqrt(10)
    kinds: dict[str, Callable[[int, int, int], float]] = {
        "equal variances": lambda *_: 0.05,
        "half ten times": lambda cell, i, size: noisy if (cell if size == 2 else i) % 2 else 0.05,
        "one ten times": lambda cell, i, size: noisy if cell == 0 and i == size - 1 else 0.05,
    }

    def table(cells: int, size: int, n: int, kind: str, last: float = 0.0) -> list[Comparison]:
        figures: dict[Hashable, dict[int, float]] = {}
        pairs = []
        for cell in range(cells):
            machine = rng.normal(0, 0.05, n)
            for i in range(size):
                logs = machine + rng.normal(0, kinds[kind](cell, i, size), n) + (last if i == size - 1 else 0)
                figures[cell, i] = dict(enumerate(np.exp(logs).tolist()))
                pairs += [((cell, 0), (cell, i))] if i else []
        return compare(figures, pairs, blocked=True)

    for cells, size, n in ((1, 10, 3), (5, 2, 3), (10, 2, 3), (5, 2, 5)):
        line = []
        for kind in kinds:
            wrong = np.array([[c.verdict in DIFFERENT for c in table(cells, size, n, kind)] for _ in range(tables)])
            line.append(f"{kind} {wrong.mean() * 100:.1f}% (worst {wrong.mean(axis=0).max() * 100:.1f}%)")
        hits = [table(cells, size, n, "equal variances", math.log(1.2))[-1] for _ in range(tables)]
        power = np.mean([c.verdict is Verdict.FASTER for c in hits])
        print(f"  {cells} x {size}, {n} repetitions: {'; '.join(line)}; 20% found {power * 100:.0f}%", flush=True)


class Series:
    """Keeps each interval's throughput and histogram."""

    def __init__(self) -> None:
        self.tps: list[float] = []
        self.latency: list[_core.Histogram] = []

    def started(self, start_ns: int, connect_ns: int) -> None: ...
    def event(self, e: _core.Event) -> None: ...

    def interval(self, i: _core.Interval) -> None:
        """One of the measurement."""
        if i.phase == "measure":
            self.tps.append(i.committed / ((i.end_ns - i.start_ns) / 1e9))
            self.latency.append(i.latency)


def coverage(cluster: EmbeddedCluster, name: str, script: str, clients: int, seconds: float) -> list[float]:
    """Print how often the intervals of neighbouring parts of a recorded series agree; return the series."""
    workload = _core.Workload({"scale": "5"})
    workload.add("s.sql", script, 1)
    looker = Series()
    plan = Plan(clients=clients, workers=1, duration_s=seconds, warmup_s=2, interval_s=0.1, seed=1)
    _core.run([_core.ConnConfig(**cluster.target.core_arguments())], workload, looker, plan)
    tps = looker.tps
    lag = float(np.corrcoef(tps[:-1], tps[1:])[0, 1])
    print(f"  {name}, {seconds:g} s of 0.1 s, neighbours' correlation {lag:.2f}:")
    every: dict[str, list[bool]] = {"TPS": [], "p99": []}
    for n in WINDOWS:
        shown = []
        parts = [slice(i, i + n) for i in range(0, len(tps) - n + 1, n)]
        for figure, bands in (("TPS", [_of_mean(tps[p]) for p in parts]), ("p99", [_of_p99(looker, p) for p in parts])):
            known = [(a, b) for a, b in itertools.pairwise(bands) if a is not None and b is not None]
            agree = [abs(a[0] - b[0]) <= math.hypot(a[1], b[1]) for a, b in known]
            every[figure] += agree
            shown.append(f"{figure} {np.mean(agree) * 100 if agree else math.nan:.0f}% of {len(agree)}")
        means = [_of_mean(tps[p]) for p in parts]
        inside = [abs(m[0] - float(np.mean(tps))) <= m[1] for m in means if m is not None]
        print(
            f"    parts of {n / 10:g} s agree with the one behind them: {', '.join(shown)}; hold the mean of all: "
            f"{np.mean(inside) * 100:.0f}% (nothing promised)", flush=True,
        )  # fmt: skip
    means_of = ", ".join(f"{figure} {np.mean(agree) * 100:.1f}%" for figure, agree in every.items())
    print(f"    all: {means_of}  (95%, within 2%)", flush=True)
    return tps


def _of_mean(tps: list[float]) -> tuple[float, float] | None:
    """Return a mean and half the width of its interval."""
    found = series.mean_of(tps)
    return (found.mean, found.half_width) if found.half_width is not None else None


def _of_p99(looker: Series, part: slice) -> tuple[float, float] | None:
    """Return the logarithm of a p99 and half the width of its interval."""
    own = _core.Histogram()
    for h in looker.latency[part]:
        own.merge(h)
    value = own.percentile(99.0)
    counts = [h.count for h in looker.latency[part]]
    below = [h.count_up_to([value])[0] for h in looker.latency[part]]
    band = quantiles.quantile_band([float(n) for n in counts], [float(n) for n in below])
    if band is None:
        return None
    low, high = (own.percentile(p * 100) for p in band)
    # As it is printed: histograms have three digits.
    return math.log(value), max(math.log(high / low), quantiles.RESOLUTION) / 2


def by_recorded_noise(tps: list[float]) -> None:
    """Sides that are equal by their making: slices of one server in turn, three windows as three starts."""
    rng = np.random.default_rng(1)
    verdicts = []
    for _ in range(RECORDED):
        units = []
        for _ in range(3):
            first = int(rng.integers(0, len(tps) - WINDOW))
            order = order_of(WINDOW, int(rng.integers(1 << 30)))
            logs = [math.log(max(x, 0.5)) for x in tps[first : first + WINDOW]]
            turns = [(order[n], logs[n]) for n in range(WINDOW)]
            pairs = [dict(turns[n : n + 2]) for n in range(0, WINDOW, 2)]
            difference = duet.pair_ratio([p[1] - p[0] for p in pairs])
            assert difference is not None
            units.append([difference])
        verdicts.append(duet.compared(units, 1, 1.0, 1.0))
    judged("equal by recorded noise, 3 windows of 40 slices", verdicts, "at most 1% different")


#: One run of the kind that users compare: its servers are started anew.
EXPERIMENT = """
name = "equal"
title = "Equal runs"
[dataset]
kind = "tpcb"
scale = 5
[workloads.look-up]
title = "look-up"
[[workloads.look-up.scripts]]
text = '''
\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
'''
[axes]
clients = [4]
[run]
duration_s = 3
warmup_s = 1
repetitions = 1
restarts = 3
"""


def whole_runs(count: int) -> None:
    """Compare equal runs of one experiment pairwise; a verdict that one is faster is an error."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "equal.toml"
        file.write_text(EXPERIMENT)
        pgdyno = [
            str(Path(sys.executable).with_name("pgdyno")),
            "run",
            str(file),
            "--embedded",
            "--quiet",
            "--runs",
            folder,
        ]
        for n in range(count):
            subprocess.run([*pgdyno, "--seed", str(n + 1)], stdout=subprocess.DEVNULL, check=False, timeout=300)
        made = [reading.read(p.parent) for p in sorted(Path(folder).glob("*/manifest.json"))]
        for words, others in (("alone", False), ("with the others as history", True)):
            by_figure: dict[str, list[Comparison]] = {}
            for a, b in itertools.combinations(made, 2):
                known = siblings([a], [b]) if others else ()
                for row in runs.compare_runs([a], [b], others=known).rows:
                    by_figure.setdefault(row.figure.name, []).append(row.comparison)
            for figure, found in by_figure.items():
                judged(f"{figure}, {len(made)} runs, each pair, {words}", found, "these starts" if not others else "1%")
        several_runs(made, 3)


def several_runs(made: list[RunData], size: int) -> None:
    """So many runs a side, made in turn (A B B A A B): what verdicts without reserve are given of."""
    rng = np.random.default_rng(1)
    by_figure: dict[str, list[Comparison]] = {}
    for _ in range(SPLITS):
        some = sorted(rng.choice(len(made), 2 * size, replace=False))
        first = int(rng.integers(2))
        sides: tuple[list[RunData], list[RunData]] = ([], [])
        for n, run in enumerate(some):
            sides[(first + (n + 1) // 2) % 2].append(made[run])
        for row in runs.compare_runs(*sides).rows:
            if row.figure is runs.LOAD:
                continue
            by_figure.setdefault(row.figure.name, []).append(row.comparison)
    for figure, found in by_figure.items():
        judged(f"{figure}, {size} of {len(made)} runs a side, made in turn", found, "at most 1% different")


def burn(until: float, seed: int) -> None:
    """Other load: busy for a while, then not."""
    rng = random.Random(seed)
    while time.monotonic() < until:
        end = time.monotonic() + rng.uniform(0.1, 2)
        while time.monotonic() < end:
            pass
        time.sleep(rng.uniform(0.1, 2))


@contextmanager
def other_load() -> Iterator[None]:
    """As long as it is open; an hour at most."""
    process = multiprocessing.Process(target=burn, args=(time.monotonic() + 3600, 1), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def main() -> None:
    """Run all measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=300, help="simulated, of each kind")
    parser.add_argument("--equal", type=int, default=12, help="A/A comparisons of real servers, of each kind")
    parser.add_argument("--slower", type=int, default=6, help="comparisons with the slowdown, of each kind")
    parser.add_argument("--seconds", type=float, default=30, help="of measuring, each A/A comparison")
    parser.add_argument("--runs", type=int, default=16, help="whole runs, each compared with each")
    parser.add_argument("--recorded", type=float, default=200, help="seconds of each series for coverage")
    parser.add_argument("--slice", type=float, default=0.25, help="seconds of a slice")
    args = parser.parse_args()
    print("\nverdicts between whole runs of one experiment:")
    whole_runs(args.runs)
    print("\nverdicts, simulated (equal configurations called different):")
    simulated(args.tables)
    settings = sized(host.memory_bytes() // 2, host.cores(), 20)
    with EmbeddedCluster(settings) as a, EmbeddedCluster(settings) as b:
        two = Two((a, b), args.slice)
        print("\nintervals within a trial, on a recorded series:")
        recorded = [coverage(a, *of, args.recorded) for of in RECORDINGS]
        for tps in recorded:
            by_recorded_noise(tps)
        print("\nverdicts of duets between two servers:")
        with other_load():
            for name, clients in (("equal, 1 client", 1), ("equal, 8 clients", 8)):
                found = [two.verdict(SELECT, SELECT, clients, args.seconds, 3) for _ in range(args.equal)]
                judged(f"{name}, other load, {args.seconds:g} s, 3 starts", found, "at most 1% different")
            delayed = f"{SELECT}\\sleep {BASE_US} us\n"
            base = two.duet(delayed, f"{SELECT}\\sleep {2 * BASE_US} us\n", 4, 3)
            # Twice the delay tells what a transaction takes besides; from there the delay that makes it 5% longer.
            whole = BASE_US / (math.exp(-base.mean) - 1)
            more = whole * (1 / (1 - SLOWER) - 1)
            slow = f"{SELECT}\\sleep {round(BASE_US + more)} us\n"
            for seconds in (30.0, 120.0):
                found = [two.verdict(delayed, slow, 4, seconds, 5) for _ in range(args.slower)]
                name = f"5% slower by {more:.0f} µs, other load, {seconds:g} s, 5 starts"
                judged(name, found, "at least 90% slower" if seconds == 120 else "nothing promised")


if __name__ == "__main__":
    main()
