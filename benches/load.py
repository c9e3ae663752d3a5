"""How fast datasets are loaded: beside `pgbench -i`, and beside what fio needs to write the same bytes durably.

Each round runs all programs in turn; a program's time is that of its whole process, and for what a running server does,
with the CHECKPOINT that brings the data to the disk. Medians of the rounds; ratios of the medians.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgdyno.cluster.administration import connect
from pgdyno.cluster.binaries import wheel_folder
from pgdyno.cluster.managed import ManagedCluster
from pgdyno.cluster.settings import sized
from pgdyno.collect import host

PGDYNO = Path(sys.executable).parent / "pgdyno"
PGBENCH = Path(f"{wheel_folder()}/pgbench")


class Used:
    """Time, CPU and memory of a program, and what it printed."""

    def __init__(self, argv: list[Any], env: dict[str, str] | None = None) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        words = [str(a) for a in argv]
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
        )
        self.peak_kib = 0
        watcher = threading.Thread(target=self._watch, args=(process,))
        watcher.start()
        self.out, err = process.communicate()
        self.seconds = time.monotonic() - start
        watcher.join()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if process.returncode:
            sys.exit(f"{' '.join(words)}\n{self.out}{err}")

    def _watch(self, process: subprocess.Popen[str]) -> None:
        # wait4's figure would count this Python before the exec.
        while process.poll() is None:
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{process.pid}/status").read_text()
                if found := re.search(r"VmHWM:\s+(\d+) kB", status):
                    self.peak_kib = int(found[1])
            time.sleep(0.02)


#: Pages that ANALYZE reads of a large table: 300 x default_statistics_target (std_typanalyze in analyze.c).
SAMPLED = 30_000


def fio(folder: Path, size: int) -> tuple[float, float]:
    """Return the least seconds that the disk needs to write `size` bytes, and to read the pages that ANALYZE reads.

    It writes in sequence, past the page cache, with fsync at the end, and reads many single pages at a time.
    """
    common = ["fio", "--name=w", f"--directory={folder}", f"--size={size}", "--direct=1", "--ioengine=libaio"]
    write = ["--bs=4M", "--rw=write", "--iodepth=4", "--fallocate=none", "--end_fsync=1", "--output-format=json"]
    read = ["--bs=8k", "--rw=randread", "--iodepth=64", f"--number_ios={SAMPLED}", "--output-format=json"]
    written, sampled = (
        float(json.loads(Used([*common, *words]).out)["jobs"][0]["job_runtime"]) / 1e3 for words in (write, read)
    )
    for path in folder.glob("w.*"):
        path.unlink()
    return written, sampled


def direct(folder: Path, scale: int, rounds: int, *, with_pgbench: bool) -> None:
    """Files of a stopped server, against pgbench into a running one, both new; and against the disk."""
    whole: list[float] = []
    loads: list[float] = []
    writing: list[float] = []
    disk: list[float] = []
    sampled: list[float] = []
    peers: list[float] = []
    memory: list[float] = []
    size = 0
    for _ in range(rounds):
        # Into a new cluster, as one that is made for a test is: its WAL segments do not exist yet.
        ours = _create(folder / "ours")
        used = Used([PGDYNO, "load", "tpcb", "--scale", scale, "--data", ours.base, "-q", "--json"])
        shutil.rmtree(ours.base)
        memory.append(used.peak_kib)
        facts = json.loads(used.out)["loaded"]
        size = facts["dataset_bytes"]
        whole.append(used.seconds)
        loads.append(facts["total_s"])
        writing.append(facts["phases_s"]["generate"])
        write, read = fio(folder, facts["moved_bytes"])
        disk.append(write)
        sampled.append(read)
        if with_pgbench:
            theirs = _create(folder / "theirs")
            theirs.start()
            peers.append(_pgbench(theirs, scale).seconds)
            theirs.stop()
            shutil.rmtree(theirs.base)
    m = statistics.median
    print(f"\ndirect, tpcb scale {scale} with keys, {size / 1e6:,.0f} MB, {rounds} rounds (medians, in turn):")
    print(f"  pgdyno load, whole process              {m(whole):7.2f} s  (range {min(whole):.2f} to {max(whole):.2f})")
    print(f"    of it: server's starts, ANALYZE, all  {m(loads):7.2f} s")
    print(f"    of it: generate and keys, synced      {m(writing):7.2f} s  {size / m(writing) / 1e6:,.0f} MB/s")
    print(f"  fio, the same bytes, synced             {m(disk):7.2f} s  {size / m(disk) / 1e6:,.0f} MB/s")
    print(f"  ratio to fio: writing {m(writing) / m(disk):.2f}, all of the load {m(loads) / m(disk):.2f}, "
          f"whole process {m(whole) / m(disk):.2f}")  # fmt: skip
    least = m(disk) + m(sampled)
    print(f"  fio, {SAMPLED:,} single pages of them      {m(sampled):7.2f} s  {SAMPLED / m(sampled):,.0f} a second")
    print(f"  ratio of all of the load to both, which is what the disk needs at least: {m(loads) / least:.2f}")
    print(f"  memory of pgdyno load, at most          {max(memory) / 1024:7.0f} MB")
    if peers:
        print(
            f"  pgbench -i and CHECKPOINT               {m(peers):7.2f} s  (range {min(peers):.2f} to {max(peers):.2f})"
        )
        print(
            f"  pgbench takes {m(peers) / m(whole):.1f} times as long (whole process), {m(peers) / m(loads):.1f} (load)"
        )


def copy(folder: Path, scale: int, rounds: int, partitions: int = 0) -> None:
    """COPY into a running server, against pgbench into the same. Only partitions can be frozen side by side."""
    cluster = _create(folder / "copy")
    cluster.start()
    t = cluster.layout.target
    conninfo = f"host={t.host} port={t.port} user={t.user} dbname={t.dbname}"

    def load(scale: int) -> Used:
        words = ["--scale", scale, "--partitions", partitions, "--target", conninfo, "-q", "--json", "--force"]
        used = Used([PGDYNO, "load", "tpcb", *words])
        used.seconds += _checkpoint(cluster)
        return used

    def initialize(scale: int) -> Used:
        return _pgbench(cluster, scale, partitions)

    def drop_in(scale: int) -> Used:
        used = Used([PGDYNO, "pgbench", "-i", "-q", "-s", scale, f"--partitions={partitions}"], _environment(cluster))
        used.seconds += _checkpoint(cluster)
        return used

    programs: dict[str, Callable[[int], Used]] = {
        "pgdyno load": load, "pgdyno pgbench -i": drop_in, "pgbench -i": initialize
    }  # fmt: skip
    # What a program costs before the first row.
    idle = {name: min(run(1).cpu for _ in range(2)) for name, run in programs.items()}
    used: dict[str, list[Used]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, run in programs.items():
            _drop(cluster)
            used[name].append(run(scale))
    rows = (scale - 1) * 100_011
    table = f"{partitions} partitions" if partitions else "one table"
    print(f"\ncopy, tpcb scale {scale}, {table}, with keys and CHECKPOINT, {rounds} rounds (medians, in turn):")
    cpu = {}
    for name, all_ in used.items():
        cpu[name] = (statistics.median(u.cpu for u in all_) - idle[name]) / rows * 1e9
        print(f"  {name:18} {statistics.median(u.seconds for u in all_):7.2f} s, client CPU {cpu[name]:5.0f} ns a row")
    theirs = statistics.median(u.seconds for u in used["pgbench -i"])
    for name in ("pgdyno load", "pgdyno pgbench -i"):
        ours = statistics.median(u.seconds for u in used[name])
        print(f"  pgbench takes {theirs / ours:.2f} times as long as {name}; CPU {cpu[name] / cpu['pgbench -i']:.3f}")
    cluster.stop()
    shutil.rmtree(cluster.base)


def _create(path: Path) -> ManagedCluster:
    cluster = ManagedCluster(path)
    cluster.create(sized(host.memory_bytes(), host.cores(), 10))
    return cluster


def _pgbench(cluster: ManagedCluster, scale: int, partitions: int = 0) -> Used:
    _drop(cluster)
    used = Used([PGBENCH, "-i", "-q", "-s", scale, f"--partitions={partitions}"], _environment(cluster))
    used.seconds += _checkpoint(cluster)
    return used


def _environment(cluster: ManagedCluster) -> dict[str, str]:
    t = cluster.layout.target
    return {"PGHOST": t.host, "PGPORT": str(t.port), "PGUSER": t.user, "PGDATABASE": t.dbname}


def _checkpoint(cluster: ManagedCluster) -> float:
    start = time.monotonic()
    with connect(cluster.layout.target) as conn:
        conn.execute("checkpoint")
    return time.monotonic() - start


def _drop(cluster: ManagedCluster) -> None:
    with connect(cluster.layout.target) as conn:
        conn.execute(
            "drop table if exists pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history; checkpoint"
        )


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=100)
    parser.add_argument("--large", type=int, default=1000, help="scale of the second direct load; 0: none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where clusters are made; default: the temporary folder")
    args = parser.parse_args()
    if shutil.which("fio") is None:
        sys.exit("this bench needs fio, to compare with the disk: apt-get install fio")
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-", dir=args.folder) as name:
        folder = Path(name)
        folder.chmod(0o755)
        direct(folder, args.scale, args.rounds, with_pgbench=True)
        if args.large and shutil.disk_usage(folder).free > 3 * 16_000_000 * args.large:
            direct(folder, args.large, 2, with_pgbench=False)
        copy(folder, args.scale, max(3, args.rounds - 2))
        copy(folder, args.scale, 3, partitions=8)


if __name__ == "__main__":
    main()
