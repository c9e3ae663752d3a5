"""What the client costs, beside pgbench and beside a bare loop: `make bench`.

(a) CPU per transaction, Unix-domain socket, one worker thread, ours and the wheel's pgbench in turn, several rounds,
    user and system separately: prepared point select at 8, 32 and 64 clients; the same in the simple protocol; the
    TPC-B-like script of five statements in a block, prepared and simple.
(b) A bare send-and-receive loop, on epoll and on io_uring: the least that a client can do.
(c) 1,000 and 5,000 clients against a server that answers at once: CPU per transaction and memory.

Each figure is the median over the rounds, each ratio the median of the rounds' ratios: machines are noisy, so only what
ran in the same round is compared. CPU time is the kernel's account of the whole process (wait4).
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

from common import PROGRAMS, Sample, measure, median, peak_kib, ratio
from pgdyno.cluster.binaries import wheel_folder
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import sized
from pgdyno.collect import host
from pgdyno.load import loader
from pgdyno.load.dataset import Dataset
from pgdyno.spec import builtins
from pgdyno.stream.stream import RunStream

MANY = (1000, 5000)


def client_cpu(
    socket: Path, script: Path, clients: int, rounds: int, seconds: float, protocol: str = "prepared", bare: bool = True
) -> None:
    """One script over one protocol at one number of clients; `bare`: beside the bare loops too."""
    folder = wheel_folder()
    port = f"{socket}/.s.PGSQL.5432"
    common = (port, "postgres", clients, seconds)
    programs: dict[str, list[object]] = {
        "pgdyno": [PROGRAMS / "drive", *common, "auto", script, protocol],
        "pgbench": [
            f"{folder}/pgbench", "-h", socket, "-U", "postgres", "-n", "-M", protocol, "-f", script,
            "-D", "scale=100", "-c", clients, "-j", 1, "-T", int(seconds), "postgres",
        ],
    }  # fmt: skip
    if bare:
        programs |= {f"bare {how}": [PROGRAMS / "floor", how, *common] for how in ("epoll", "uring")}
    samples: dict[str, list[Sample]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, argv in programs.items():
            samples[name].append(measure(argv))
    ours, theirs = samples["pgdyno"], samples["pgbench"]
    print(f"\n{script.stem}, {protocol}: {clients} clients, {rounds} rounds of {seconds:g} s")
    print("µs of client CPU per transaction (medians)")
    print(f"{'':12}{'TPS':>10}{'user':>9}{'system':>9}{'total':>9}{'pgdyno/it':>12}")
    for name, s in samples.items():
        figures = [median(s, f) for f in ("user_us", "system_us", "total_us")]
        against = "" if name == "pgdyno" else f"{ratio(ours, s, 'total_us'):>12.3f}"
        print(f"{name:12}{median(s, 'tps'):>10,.0f}" + "".join(f"{f:>9.3f}" for f in figures) + against)
    print(
        f"pgdyno/pgbench: total {ratio(ours, theirs, 'total_us'):.3f}, user {ratio(ours, theirs, 'user_us'):.3f}, "
        f"TPS {ratio(ours, theirs, 'tps'):.3f}",
        flush=True,
    )


def many_clients(script: Path, rounds: int, seconds: float) -> None:
    """(c)."""
    folder = wheel_folder()
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as base:
        path = f"{base}/.s.PGSQL.5432"
        stub = subprocess.Popen([PROGRAMS / "stubserver", path])
        try:
            while not Path(path).exists():
                time.sleep(0.01)

            def programs(clients: int) -> dict[str, list[object]]:
                return {
                    "pgdyno": [PROGRAMS / "drive", path, "postgres", clients, seconds, "auto", script],
                    "pgbench": [
                        f"{folder}/pgbench", "-h", base, "-U", "postgres", "-n", "-M", "prepared", "-f", script,
                        # Its clock runs while it connects, so it is given transactions, about as many.
                        "-D", "scale=100", "-c", clients, "-j", 1, "-t", max(1, 150_000 // clients), "postgres",
                    ],
                }  # fmt: skip

            single = {name: peak_kib(argv) for name, argv in programs(1).items()}
            for clients in MANY:
                samples: dict[str, list[Sample]] = {"pgdyno": [], "pgbench": []}
                for _ in range(rounds):
                    for name, argv in programs(clients).items():
                        samples[name].append(measure(argv))
                peaks = {name: peak_kib(argv) for name, argv in programs(clients).items()}
                print(
                    f"\n{clients:,} clients, a server that answers at once, {rounds} rounds of {seconds:g} s (medians)"
                )
                print(f"{'':12}{'TPS':>10}{'CPU us/tx':>11}{'peak KiB':>11}{'KiB/conn':>10}")
                for name, s in samples.items():
                    each = (peaks[name] - single[name]) / (clients - 1)
                    cpu = median(s, "total_us")
                    print(f"{name:12}{median(s, 'tps'):>10,.0f}{cpu:>11.2f}{peaks[name]:>11,}{each:>10.1f}")
                print(f"pgdyno/pgbench: CPU {ratio(samples['pgdyno'], samples['pgbench'], 'total_us'):.3f}", flush=True)
        finally:
            stub.kill()
            stub.wait()


def main() -> None:
    """Run all measurements, or those named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--scale", type=int, default=100)
    parser.add_argument("--clients", default="8,32,64")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as scratch:
        scripts = {b.name: Path(scratch) / f"{b.name}.sql" for b in builtins.ALL}
        for b in builtins.ALL:
            scripts[b.name].write_text(b.text)
        select, tpcb = scripts["select-only"], scripts["tpcb-like"]
        many_clients(select, min(3, args.rounds), 2)
        with EmbeddedCluster(sized(host.memory_bytes(), host.cores(), 64)) as cluster:
            # The bench programs connect as postgres without a password; the cluster's peer map lets them.
            print(f"\nloading tpcb, scale {args.scale} ...", flush=True)
            loader.into_server(cluster, Dataset("tpcb", args.scale), force=False, replace=False, stream=RunStream())
            socket = cluster.base / "socket"
            counts = [int(n) for n in args.clients.split(",")]
            for clients in counts:
                client_cpu(socket, select, clients, args.rounds, args.seconds)
            most = counts[-1] if len(counts) < 3 else counts[1]
            client_cpu(socket, select, most, args.rounds, args.seconds, "simple", bare=False)
            for protocol in ("prepared", "simple"):
                client_cpu(socket, tpcb, most, args.rounds, args.seconds, protocol, bare=False)


if __name__ == "__main__":
    main()
