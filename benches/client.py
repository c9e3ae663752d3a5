"""What the client costs, beside pgbench and beside a bare loop: `make bench`.

(a) CPU per transaction, prepared point select, Unix-domain socket, one worker thread, at 8, 32 and 64 clients: ours and
    the wheel's pgbench in turn, several rounds; user and system separately.
(b) The same of a bare send-and-receive loop, on epoll and on io_uring: the least that a client can do.
(c) Memory per connection against a server that does nothing.

Each figure is the median over the rounds, each ratio the median of the rounds' ratios: machines are noisy, so only what
ran in the same round is compared. CPU time is the kernel's account of the whole process (wait4).
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pgdyno import _core
from pgdyno.cluster.binaries import wheel_folder
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import sized
from pgdyno.collect import host

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "target" / "release"
SCRIPT = "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"


class Sample(NamedTuple):
    """One round of one program."""

    tps: float
    user_us: float
    system_us: float

    @property
    def total_us(self) -> float:
        """CPU per transaction."""
        return self.user_us + self.system_us


def measure(argv: Sequence[object]) -> Sample:
    """Runs a program; its output says how many transactions it did."""
    argv = [str(a) for a in argv]
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_DUP2, write, 2)]
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    os.close(write)
    with os.fdopen(read) as f:
        out = f.read()
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(argv)}\n{out}")
    if processed := re.search(r"actually processed: (\d+)", out):
        n = int(processed[1])
        tps = float(re.search(r"tps = ([\d.]+)", out)[1])  # type: ignore[index]
    else:
        count, seconds = out.split()[:2]
        n = int(count)
        tps = n / float(seconds)
    return Sample(tps, usage.ru_utime / n * 1e6, usage.ru_stime / n * 1e6)


def peak_kib(argv: Sequence[object]) -> int:
    """Runs a program; its peak resident memory. (wait4's figure would count this Python before the exec.)"""
    process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        if found := re.search(r"VmHWM:\s+(\d+) kB", status):
            peak = int(found[1])
        time.sleep(0.01)
    _, err = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{argv}\n{err.decode()}")
    return peak


def median(samples: Sequence[Sample], name: str) -> float:
    """The median of a figure."""
    return statistics.median(getattr(s, name) for s in samples)


def ratio(a: Sequence[Sample], b: Sequence[Sample], name: str) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(getattr(x, name) / getattr(y, name) for x, y in zip(a, b, strict=True))


def client_cpu(socket: Path, script: Path, clients: int, rounds: int, seconds: float) -> None:
    """(a) and (b) at one number of clients."""
    folder = wheel_folder()
    port = f"{socket}/.s.PGSQL.5432"
    common = (port, "postgres", clients, seconds)
    programs: dict[str, list[object]] = {
        "pgdyno": [PROGRAMS / "drive", *common, "auto", script],
        "pgbench": [
            f"{folder}/pgbench", "-h", socket, "-U", "postgres", "-n", "-M", "prepared", "-f", script,
            "-D", "scale=100", "-c", clients, "-j", 1, "-T", int(seconds), "postgres",
        ],
        "bare epoll": [PROGRAMS / "floor", "epoll", *common],
        "bare uring": [PROGRAMS / "floor", "uring", *common],
    }  # fmt: skip
    samples: dict[str, list[Sample]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, argv in programs.items():
            samples[name].append(measure(argv))
    ours, theirs = samples["pgdyno"], samples["pgbench"]
    print(f"\n{clients} clients, {rounds} rounds of {seconds:g} s, µs of client CPU per transaction (medians)")
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


def memory(script: Path, seconds: float) -> None:
    """(c): peak memory at 1, 100 and 1,000 connections; what each adds."""
    folder = wheel_folder()
    print("\nPeak memory against a server that does nothing (KiB)")
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as base:
        path = f"{base}/.s.PGSQL.5432"
        stub = subprocess.Popen([PROGRAMS / "stubserver", path])
        try:
            while not Path(path).exists():
                time.sleep(0.01)
            peaks: dict[str, dict[int, int]] = {"pgdyno": {}, "pgbench": {}}
            for clients in (1, 100, 1000):
                peaks["pgdyno"][clients] = peak_kib(
                    [PROGRAMS / "drive", path, "postgres", clients, seconds, "auto", script]
                )
                peaks["pgbench"][clients] = peak_kib(
                    [f"{folder}/pgbench", "-h", base, "-U", "postgres", "-n", "-M", "prepared", "-f", script,
                     "-D", "scale=100", "-c", clients, "-j", 1, "-T", max(1, int(seconds)), "postgres"]
                )  # fmt: skip
        finally:
            stub.kill()
            stub.wait()
    for name, p in peaks.items():
        each = (p[1000] - p[1]) / 999
        print(
            f"{name:12}" + "".join(f"{n:>7} conn {kib:>8,}" for n, kib in p.items()) + f"  {each:.1f} KiB a connection"
        )


def main() -> None:
    """Runs all, or what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--scale", type=int, default=100)
    parser.add_argument("--clients", default="8,32,64")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as scratch:
        script = Path(scratch) / "select.sql"
        script.write_text(SCRIPT)
        memory(script, 2)
        with EmbeddedCluster(sized(host.memory_bytes(), host.cores(), 64)) as cluster:
            # The bench programs connect as postgres without a password; the cluster's peer map lets them.
            config = _core.ConnConfig(**cluster.target.core_arguments())
            print(f"\nloading tpcb, scale {args.scale} ...", flush=True)
            _core.load_tpcb(config, args.scale, lambda *_: None)
            for clients in map(int, args.clients.split(",")):
                client_cpu(cluster.base / "socket", script, clients, args.rounds, args.seconds)


if __name__ == "__main__":
    main()
