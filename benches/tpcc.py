"""TPC-C beside sysbench and go-tpc: `make bench`, or this with --rounds, --seconds, --warehouses, --clients.

(a) Transactions: sysbench with the statements of sysbench-tpcc (benches/tpcc.lua, or the folder of the original by
    --sysbench-tpcc), ours at equal statements and round trips, and ours pipelined and by functions; in turn, over the
    same tables. go-tpc, where it is installed, over its own. CPU is the kernel's account of the whole client process.
(b) Memory for each client.
(c) Loading: binary COPY and files written directly, beside rows by sysbench's INSERTs of many rows, what go-tpc takes
    with as many threads as there are cores, and the disk alone.

Figures are medians of rounds, ratios the medians of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import Sample, median, ratio
from pgdyno import _core, engine
from pgdyno.cluster import administration
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import sized
from pgdyno.collect import host
from pgdyno.load import loader
from pgdyno.load.dataset import Dataset
from pgdyno.load.plan import measure_disk
from pgdyno.stream.stream import RunStream

OURS = ("statements", "pipelined", "functions")
_PEERS = ("sysbench", "go-tpc")
#: Of the tables' bytes, what benches/tpcc.lua loads.
_LARGEST = 0.9


class Nobody:
    """Looks on."""

    def started(self, start_ns: int, connect_ns: int) -> None:
        """Nothing to do."""

    def interval(self, i: Any) -> None:
        """Nothing to do."""

    def event(self, e: Any) -> None:
        """Nothing to do."""


def ours(cluster: EmbeddedCluster, how: str, warehouses: int, clients: int, seconds: float, protocol: str) -> Sample:
    """One round of ours, in this process; CPU of all its threads."""
    config = _core.ConnConfig(**cluster.target.core_arguments())
    workload = _core.Workload.tpcc([engine.Tpcc(warehouses=warehouses, round_trips=how)])
    plan = engine.Plan(
        clients=clients, duration_s=seconds, protocol=protocol, max_tries=100, seed=int(time.time())  # type: ignore[arg-type]
    )  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_SELF)
    result = _core.run([config], workload, Nobody(), plan)
    after = resource.getrusage(resource.RUSAGE_SELF)
    measured = result.phase("measure")
    if result.error is not None or measured is None:
        sys.exit(f"{how}: {result.error}")
    n = measured.committed
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Sample(n / (result.elapsed_ns / 1e9), user / n * 1e6, system / n * 1e6)


#: Of the original's tables, which have names of their own and are counted by its scripts.
_ORIGINAL = "sysbench_tpcc"


def sysbench_arguments(cluster: EmbeddedCluster, warehouses: int, clients: int, folder: Path | None) -> list[str]:
    """Its command line, less what it shall do. The original's scripts look for each other where it is begun."""
    words = ["sysbench", "--db-driver=pgsql", f"--pgsql-host={cluster.layout.socket}", "--pgsql-user=postgres",
             f"--pgsql-db={_ORIGINAL if folder else 'postgres'}", f"--threads={clients}"]  # fmt: skip
    if folder is not None:
        return [*words, "--tables=1", f"--scale={warehouses}", "--use_fk=0", "--trx_level=RC", "tpcc.lua"]
    return [*words, f"--warehouses={warehouses}", str(Path(__file__).parent / "tpcc.lua")]


def prepare_original(cluster: EmbeddedCluster, args: argparse.Namespace) -> None:
    """Load the tables of the original, in a database of their own."""
    with administration.connect(cluster.target) as conn:
        conn.execute(f"create database {_ORIGINAL}".encode())
    words = sysbench_arguments(cluster, args.warehouses, 1, args.sysbench_tpcc)
    subprocess.run([*words, "prepare"], check=True, stdout=subprocess.DEVNULL, cwd=args.sysbench_tpcc)


def theirs(words: list[str], seconds: float, folder: Path | None) -> Sample:
    """One round of sysbench's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*words, f"--time={seconds:g}", "run"], capture_output=True, text=True, check=False, cwd=folder
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(r"transactions: +(\d+) +\(([\d.]+) per sec", done.stdout)
    if done.returncode != 0 or found is None:
        sys.exit(done.stdout + done.stderr)
    n = int(found[1])
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Sample(float(found[2]), user / n * 1e6, system / n * 1e6)


#: Of go-tpc's tables.
_GO_TPC = "go_tpc"
_GO_COUNT = re.compile(r"^\[Summary\] (\w+?) +- Takes\(s\): ([\d.]+), Count: (\d+)", re.MULTILINE)


def go_tpc_arguments(cluster: EmbeddedCluster, warehouses: int, clients: int) -> list[str]:
    """Return the command line without the action.

    The program has no option for a socket. Its driver takes one behind the `?`; the host is an empty word of a list.
    """
    params = f"host={cluster.layout.socket}&sslmode=disable"
    return ["go-tpc", "--driver", "postgres", "--host", '""', "--port", str(cluster.target.port), "--user",
            "postgres", "--db", _GO_TPC, "--conn-params", params, "--threads", str(clients), "--warehouses",
            str(warehouses), "tpcc"]  # fmt: skip


def load_go_tpc(cluster: EmbeddedCluster, warehouses: int) -> float:
    """Seconds of its loading, with as many threads as there are cores."""
    with administration.connect(cluster.target) as conn:
        conn.execute(f"create database {_GO_TPC}".encode())
    words = go_tpc_arguments(cluster, warehouses, os.cpu_count() or 1)
    start = time.monotonic()
    done = subprocess.run([*words, "prepare", "--no-check"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return time.monotonic() - start


def go_tpc(cluster: EmbeddedCluster, warehouses: int, clients: int, seconds: float) -> Sample:
    """One round of go-tpc's."""
    words = go_tpc_arguments(cluster, warehouses, clients)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*words, "run", "--time", f"{seconds:g}s", "--ignore-error"], capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = [(float(s), int(n)) for name, s, n in _GO_COUNT.findall(done.stdout) if not name.endswith("_ERR")]
    if not found:
        sys.exit(done.stdout + done.stderr)
    n, took = sum(n for _, n in found), max(s for s, _ in found)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Sample(n / took, user / n * 1e6, system / n * 1e6)


def transactions(cluster: EmbeddedCluster, args: argparse.Namespace, clients: int) -> None:
    """Measure (a) at a number of clients."""
    samples: dict[str, list[Sample]] = {}
    peer = shutil.which("sysbench")
    words = sysbench_arguments(cluster, args.warehouses, clients, args.sysbench_tpcc)
    for _ in range(args.rounds):
        if peer:
            samples.setdefault("sysbench", []).append(theirs(words, args.seconds, args.sysbench_tpcc))
        if shutil.which("go-tpc"):
            samples.setdefault("go-tpc", []).append(go_tpc(cluster, args.warehouses, clients, args.seconds))
        for name, how, protocol in (
            ("simple", "statements", "simple"), *((how, how, "prepared") for how in OURS),
        ):  # fmt: skip
            samples.setdefault(name, []).append(ours(cluster, how, args.warehouses, clients, args.seconds, protocol))
    print(f"\nTPC-C, {args.warehouses} warehouses, {clients} clients, {args.rounds} rounds of {args.seconds:g} s")
    print("µs of client CPU per transaction (medians)")
    peers = [name for name in _PEERS if name in samples]
    heads = "".join(f"{figure + '/' + name:>14}" for name in peers for figure in ("CPU", "TPS"))
    print(f"{'':12}{'TPS':>9}{'user':>9}{'system':>9}{'total':>9}{heads}")
    for name, s in samples.items():
        line = f"{name:12}{median(s, 'tps'):>9,.0f}"
        line += "".join(f"{median(s, f):>9.1f}" for f in ("user_us", "system_us", "total_us"))
        for them in peers if name not in _PEERS else []:
            line += f"{ratio(s, samples[them], 'total_us'):>14.3f}{ratio(s, samples[them], 'tps'):>14.3f}"
        print(line, flush=True)
    for name in set(_PEERS) - set(peers):
        print(f"{name} is not installed: no ratios to it")


def memory(cluster: EmbeddedCluster, warehouses: int) -> None:
    """(b): resident memory with many clients, less that with few."""

    def peak(clients: int) -> int:
        code = (
            "import sys; sys.path.insert(0, 'benches'); from tpcc import Nobody\n"
            "from pgdyno import _core, engine\nfrom pathlib import Path\nimport re\n"
            "from pgdyno.cluster import target as targets\n"
            f"t = targets.resolve({cluster.target.conninfo!r}, 10.0)\n"
            f"w = _core.Workload.tpcc([engine.Tpcc(warehouses={warehouses})])\n"
            f"_core.run([_core.ConnConfig(**t.core_arguments())], w, Nobody(), engine.Plan(clients={clients}, "
            "duration_s=3, max_tries=100))\n"
            "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return int(done.stdout)

    few, many = 10, 210
    each = (peak(many) - peak(few)) / (many - few)
    print(f"\nmemory: {each:.0f} KiB a client ({few} to {many} clients, peak resident)", flush=True)


def loading(args: argparse.Namespace) -> None:
    """(c)."""
    times: dict[str, list[float]] = {}
    disk = []
    for _ in range(max(1, args.rounds // 2)):
        for how in ("copy", "direct"):
            # Anew: it remembers where rows stand.
            data = Dataset("tpcc", args.warehouses, check=False)
            with EmbeddedCluster(sized(host.memory_bytes(), host.cores(), 64)) as cluster:
                if how == "direct":
                    disk.append(measure_disk(cluster.base))
                    done = loader.into_server(cluster, data, force=False, replace=False, stream=RunStream())
                    assert done is not None
                    files = done.phases_s["generate"]
                    times.setdefault("direct, files alone", []).append(files)
                    times.setdefault("direct", []).append(done.total_s)
                    bytes_written = done.moved_bytes
                else:
                    times.setdefault("copy", []).append(over_connections(cluster, data))
                    if shutil.which("sysbench"):
                        start = time.monotonic()
                        subprocess.run(
                            [*sysbench_arguments(cluster, 1, 1, None), "prepare"],
                            check=True, stdout=subprocess.DEVNULL,
                        )  # fmt: skip
                        times.setdefault("rows", []).append((time.monotonic() - start) / _LARGEST * args.warehouses)
                    if shutil.which("go-tpc"):
                        times.setdefault("go-tpc", []).append(load_go_tpc(cluster, args.warehouses))
    raw = bytes_written / statistics.median(disk)
    print(f"\nloading {args.warehouses} warehouses, {data.heap_bytes + data.key_bytes:,} bytes (medians)")
    print(f"{'the disk alone':24}{raw:8.2f} s")
    rows = statistics.median(times["rows"]) if "rows" in times else None
    for name, seconds in times.items():
        t = statistics.median(seconds)
        words = f"{t / raw:6.2f} × the disk" if name.startswith("direct") else ""
        words += f"{rows / t:8.1f} × faster than rows" if rows and name != "rows" else ""
        label = "rows by sysbench, of 1" if name == "rows" else name
        print(f"{label:24}{t:8.2f} s  {words}", flush=True)


def over_connections(cluster: EmbeddedCluster, data: Dataset) -> float:
    """Seconds of the method copy."""
    from pgdyno.load.claim import Claim

    with Claim(cluster.target, force=True) as claim:
        done = loader.over_connections(claim.conn, cluster.target, data, claim=claim, stream=RunStream())
    assert done is not None
    return done.total_s


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--warehouses", type=int, default=10)
    parser.add_argument("--clients", default="8,32")
    parser.add_argument("--sysbench-tpcc", type=Path, help="the folder of sysbench-tpcc, in place of benches/tpcc.lua")
    args = parser.parse_args()
    args.sysbench_tpcc = args.sysbench_tpcc and args.sysbench_tpcc.resolve()
    os.chdir(Path(__file__).parent.parent)
    loading(args)
    with EmbeddedCluster(sized(host.memory_bytes(), host.cores(), 300)) as cluster:
        data = Dataset("tpcc", args.warehouses)
        loader.into_server(cluster, data, force=False, replace=False, stream=RunStream())
        if args.sysbench_tpcc is not None and shutil.which("sysbench"):
            prepare_original(cluster, args)
        if shutil.which("go-tpc"):
            load_go_tpc(cluster, args.warehouses)
        for clients in args.clients.split(","):
            transactions(cluster, args, int(clients))
        memory(cluster, args.warehouses)


if __name__ == "__main__":
    main()
