"""Cost of collecting: throughput with all collectors over throughput without, in alternating slices of one run.

Exit with 1 if it certainly costs more than 1% of throughput or CPU, or if memory grows.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
from pgdyno import _core
from pgdyno.analysis.series import autocorrelation_time
from pgdyno.cluster import administration
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import Setting, sized
from pgdyno.collect import host
from pgdyno.collect.collection import Collection
from pgdyno.collect.sources.base import Row, Source
from pgdyno.collect.sources.counters import Counters
from pgdyno.collect.sources.devices import Devices, places_of
from pgdyno.collect.sources.locks import Locks
from pgdyno.collect.sources.machine import Cores, Machine, SoftInterrupts
from pgdyno.collect.sources.network import Network
from pgdyno.collect.sources.processes import Processes
from pgdyno.collect.sources.progress import Progress
from pgdyno.collect.sources.quota import Quota
from pgdyno.collect.sources.sessions import Blockers, Slots, Snapshots, Standbys
from pgdyno.collect.sources.sizes import Sizes
from pgdyno.collect.sources.waits import Waits
from pgdyno.engine import Plan
from pgdyno.run.planning.turns import order_of
from pgdyno.store.samples import SampleWriter
from pgdyno.stream.events import Body, SamplesTaken

SCALE, SLICE_S, CLIENTS = 10, 1.0, 16
#: What collecting may cost.
MOST = 0.01
#: MiB that this process may grow by while it collects.
GROWN = 16.0
SELECT = f"\\set aid random(1, {100_000 * SCALE})\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
UPDATE = (
    f"\\set aid random(1, {100_000 * SCALE})\n\\set d random(-5000, 5000)\n"
    "UPDATE pgbench_accounts SET abalance = abalance + :d WHERE aid = :aid;\n"
)


class Samples:
    """Writes the samples of a collection, and prints the rest."""

    def __init__(self, writer: SampleWriter) -> None:
        self._writer = writer

    def emit(self, body: Body, *, origin: str = "session") -> None:
        if isinstance(body, SamplesTaken):
            self._writer.append(body.source, body.start_ns, body.end_ns, body.rows)
        else:
            print(body)


class Gate:
    """Lets samples be taken in some slices only."""

    def __init__(self) -> None:
        self.is_open = False


class Spent:
    """CPU seconds by source: of the thread that asks, and of the server's process that answers."""

    def __init__(self, backend: int) -> None:
        self.ours: dict[str, float] = {}
        self.server: dict[str, float] = {}
        self._backend = Path(f"/proc/{backend}/schedstat")

    def _answered(self) -> float:
        return int(self._backend.read_bytes().split()[0]) / 1e9

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Whatever is done within."""
        theirs, began = self._answered(), time.thread_time()
        yield
        self.ours[name] = self.ours.get(name, 0.0) + time.thread_time() - began
        self.server[name] = self.server.get(name, 0.0) + self._answered() - theirs


class Gated:
    """A source behind the gate; what it costs is added up."""

    def __init__(self, source: Source, gate: Gate, spent: Spent) -> None:
        self.name = source.name
        self.source = source
        self.gate = gate
        self.spent = spent

    @property
    def period_s(self) -> float:
        """Return the source's own period, which may change."""
        return self.source.period_s

    @period_s.setter
    def period_s(self, value: float) -> None:
        self.source.period_s = value

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        if not self.gate.is_open:
            return []
        with self.spent.of(self.name):
            return self.source.rows(seconds)


class Looked(Waits):
    """The same of waits."""

    gate: Gate
    spent: Spent

    def look(self) -> None:
        """See Waits."""
        if self.gate.is_open:
            with self.spent.of("waits"):
                super().look()

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        return super().rows(seconds) if self._looks else []


class Asked:
    """See collection.Asked."""

    is_lost = False

    def __init__(self, sources: list[Source], waits: Waits) -> None:
        self.sources = sources
        self.waits: Waits | None = waits

    def renew(self) -> None:
        """Never."""


class Slices:
    """Opens and shuts the gate as the slices go, and keeps what each has done."""

    def __init__(self, order: list[int], gate: Gate) -> None:
        self.order = order
        self.gate = gate
        self.done: list[int] = []
        self.began_ns = 0

    def started(self, start_ns: int, connect_ns: int) -> None:
        """Of the first slice."""
        self.gate.is_open = bool(self.order[0])
        # Samples are taken in the middle of slices: what one costs is its own slice's.
        self.began_ns = start_ns + int(SLICE_S / 2 * 1e9)

    def event(self, e: _core.Event) -> None: ...

    def interval(self, i: _core.Interval) -> None:
        """One slice is over: the next begins."""
        if i.phase == "measure":
            self.done.append(i.committed)
        n = len(self.done)
        self.gate.is_open = bool(self.order[n % len(self.order)])

    def logs(self) -> list[float]:
        """Of each pair of slices: the logarithm of throughput with by without."""
        found = []
        for n in range(0, len(self.done) - 1, 2):
            pair = {self.order[n]: self.done[n], self.order[n + 1]: self.done[n + 1]}
            found.append(math.log(max(1, pair[1]) / max(1, pair[0])))
        return found


def measure(cluster: EmbeddedCluster, script: str, seconds: float, folder: Path) -> bool:
    """Print the ratio for a script; return True if it may be within the limit."""
    gate = Gate()
    order = order_of(int(seconds / SLICE_S), 1)
    workload = _core.Workload({})
    workload.add("s.sql", script, 1)
    slices = Slices(order, gate)
    with administration.connect(cluster.target) as conn:
        spent = Spent(conn.info.backend_pid)
        waits = Looked(conn, "pgdyno")
        waits.gate, waits.spent = gate, spent
        assert cluster.process_id is not None
        sources: list[Source] = [
            Counters(conn), Snapshots(conn, "pgdyno"), Standbys(conn), Slots(conn), Progress(conn), Network(conn),
            Blockers(conn, "pgdyno", lambda: waits.is_locked), Locks(conn), Sizes(conn), Machine(), Cores(),
            SoftInterrupts(), Processes(cluster.process_id), Devices(places_of(cluster.data)),
            Quota(cluster.process_id),
        ]  # fmt: skip
        folder.mkdir()
        writer = SampleWriter(folder)
        backend = psutil.Process(conn.info.backend_pid)
        resident_before = resident()
        server_before = sum(backend.cpu_times()[:2])
        asked = Asked([waits, *[Gated(s, gate, spent) for s in sources]], waits)
        collection = Collection([], asked, Samples(writer), start_ns=lambda: slices.began_ns)
        collection.start()
        plan = Plan(clients=CLIENTS, workers=1, duration_s=seconds, warmup_s=2, interval_s=SLICE_S, seed=1)
        _core.run([_core.ConnConfig(**cluster.target.core_arguments())], workload, slices, plan)
        collection.stop()
        grown = resident() - resident_before
        writer.finish()
        server_s = sum(backend.cpu_times()[:2]) - server_before
    logs = np.array(slices.logs())
    mean, half = trimmed(logs)
    low, high = (math.exp(mean + side * half) for side in (-1, 1))
    print(
        f"  {script.splitlines()[-1][:60]:60} {math.exp(mean):.4f} ({low:.4f} to {high:.4f}), {len(logs)} pairs "
        f"of {SLICE_S:g} s",
        flush=True,
    )
    on = sum(order) * SLICE_S
    print("  CPU, ms a second of collecting: | source | pgdyno | server |")
    for n, s in sorted(spent.ours.items(), key=lambda x: -x[1]):
        print(f"    | {n} | {s / on * 1e3:.2f} | {spent.server[n] / on * 1e3:.2f} |", flush=True)
    # What it takes of the processors bounds the cost more narrowly than a noisy machine's throughput does.
    all_of_it = sum(spent.ours.values()) + server_s
    print(
        f"  with the session's in the server {all_of_it / on * 1e3:.1f} ms a second: "
        f"{all_of_it / on / host.cores():.2%} of {host.cores()} cores",
        flush=True,
    )
    print(f"  resident memory: {grown:+.1f} MiB while it was collected in {seconds:g} s", flush=True)
    share = all_of_it / on / host.cores()
    by_throughput = "shown" if low >= 1 - MOST else "not shown: the machine is too noisy for this time"
    print(f"  within {MOST:.0%} by throughput: {by_throughput}; by CPU: {'yes' if share < MOST else 'no'}", flush=True)
    return high >= 1 - MOST and share < MOST and grown < GROWN


def trimmed(series: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean without the lowest and the highest tenth, and half the width of its 95% interval.

    Source: Tukey and McLaughlin 1963. A machine that stalls for a moment makes pairs that say nothing about the ratio.
    """
    n, cut = len(series), len(series) // 10
    logs = np.sort(series)
    kept = logs[cut : n - cut]
    winsorized = np.clip(logs, kept[0], kept[-1])
    half = 1.96 * float(winsorized.std(ddof=1)) / ((1 - 2 * cut / n) * math.sqrt(n))
    return float(kept.mean()), half * math.sqrt(max(1.0, autocorrelation_time(series)))


def resident() -> float:
    """MiB of this process."""
    return float(psutil.Process().memory_info().rss / (1 << 20))


def main() -> None:
    """Both scripts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="each script")
    args = parser.parse_args()
    # Commits that wait for the disk have its noise, which hides 1%; without, each ms of a processor counts.
    settings = [*sized(host.memory_bytes(), host.cores(), 40), Setting("synchronous_commit", "off", "its noise")]
    with EmbeddedCluster(settings) as cluster, tempfile.TemporaryDirectory() as folder:
        config = _core.ConnConfig(**cluster.target.core_arguments())
        data = _core.Dataset("tpcb", SCALE)
        columns = {t.name: ", ".join(" ".join(filter(None, x)) for x in t.columns) for t in data.tables}
        data.carry_out(
            config, [[f"create table {n} ({c})" for n, c in columns.items()]], lambda *_: None, connections=1
        )
        fill = [(f"copy {t.name} from stdin (format binary)", n, t.first, t.end) for n, t in enumerate(data.tables)]
        keys = "alter table pgbench_accounts add primary key (aid)"
        data.carry_out(config, [[*fill]], lambda *_: None, connections=1)
        data.carry_out(config, [[keys], ["vacuum analyze"]], lambda *_: None, connections=1)
        print(f"\nthroughput with everything collected by without, {CLIENTS} clients, {host.cores()} cores:")
        parts = enumerate((SELECT, UPDATE))
        allowed = [measure(cluster, script, args.seconds, Path(folder) / str(n)) for n, script in parts]
    if not all(allowed):
        sys.exit(f"collecting costs more than {MOST:.0%}, or memory")


if __name__ == "__main__":
    main()
