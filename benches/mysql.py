"""CPU time of the client on MariaDB, beside sysbench's driver: `make bench`.

CPU of the client per transaction, Unix-domain socket, prepared point selects, one worker thread of ours and a thread a
client of sysbench's, alternately, several rounds. Then the load of `pk` beside LOAD DATA LOCAL by MariaDB's own client.
Both load the same rows into the same kind of table. Skipped where there is no MariaDB or no sysbench.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from common import PROGRAMS, Sample, measure, median, ratio
from pgdyno.collect import host
from pgdyno.load import mysql
from pgdyno.load.dataset import Dataset
from pgdyno.stream.stream import RunStream

from tests.support.mariadb import MariaDb, why_not

_ROWS = 100_000
_SCRIPT = f"\\set id random(1, {_ROWS})\nSELECT c FROM sbtest1 WHERE id = :id;\n"


def sysbench(server: MariaDb, *more: str) -> tuple[str, float, float]:
    """Run sysbench's point selects; return its output and its CPU time in seconds, user and system."""
    argv = [
        "sysbench", "oltp_point_select", "--db-driver=mysql", f"--mysql-socket={server.socket}", "--mysql-user=root",
        "--mysql-db=bench", "--tables=1", f"--table-size={_ROWS}", "--rand-type=uniform", *more,
    ]  # fmt: skip
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, out
    return out, usage.ru_utime, usage.ru_stime


def client_cpu(server: MariaDb, clients: int, rounds: int, seconds: float) -> None:
    """Compare the CPU time of both clients at one number of connections."""
    script = server.base / "select.sql"
    script.write_text(_SCRIPT)
    ours: list[Sample] = []
    theirs: list[Sample] = []
    for n in range(rounds):
        for is_ours in (True, False) if n % 2 else (False, True):
            if is_ours:
                drive = [PROGRAMS / "drive", server.socket, "bench", clients, seconds, "auto", script, "prepared"]
                ours.append(measure([*drive, "mysql"]))
                continue
            out, user, system = sysbench(server, f"--threads={clients}", f"--time={round(seconds)}", "run")
            done = int(re.search(r"transactions:\s+(\d+)", out)[1])  # type: ignore[index]
            theirs.append(Sample(done / seconds, 1e6 * user / done, 1e6 * system / done))
    print(f"\nMariaDB, prepared point selects: {clients} clients, {rounds} rounds of {seconds:g} s")
    for name, samples in (("pgdyno", ours), ("sysbench", theirs)):
        figures = [median(samples, f) for f in ("tps", "user_us", "system_us", "total_us")]
        print("{:12}{:>10,.0f} TPS  user {:.2f}  system {:.2f}  total {:.2f} us".format(name, *figures))
    print(f"pgdyno/sysbench: {ratio(ours, theirs, 'total_us'):.3f} of the CPU per transaction (median of the rounds)")


def load(server: MariaDb, rows: int, rounds: int) -> None:
    """Compare the loads of `pk`."""
    client = shutil.which("mariadb")
    dataset, file = Dataset("pk", rows), server.base / "run" / "pk.tsv"
    took: dict[str, list[float]] = {"pgdyno": [], "client": []}
    connections = host.cores()
    for _ in range(rounds):
        done = mysql.make(
            server.target(), dataset, connections=connections, connect_timeout_s=10, stream=RunStream(), replace=True
        )
        took["pgdyno"].append(done.phases_s["generate"])
        with server.session() as s:
            s.rows("set time_zone = '+00:00'")
            if not file.exists():
                s.rows(f"select * from pk into outfile '{file}'")
            s.rows("create or replace table pk2 like pk")
        sql = f"set time_zone = '+00:00'; load data local infile '{file}' into table pk2"
        start = time.monotonic()
        subprocess.run(
            [str(client), "--local-infile=1", "-S", server.socket, "-u", "root", "bench", "-e", sql], check=True
        )
        took["client"].append(time.monotonic() - start)
    ours, theirs = (statistics.median(took[name]) for name in ("pgdyno", "client"))
    print(
        f"\nload of pk, {rows:,} rows, {rounds} rounds: pgdyno {ours:.1f} s ({connections} connections), "
        f"MariaDB's client {theirs:.1f} s (medians)"
    )


def main() -> None:
    """Compare both where they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rows", type=int, default=2_000_000)
    args = parser.parse_args()
    if why := why_not() or ("" if shutil.which("sysbench") else "needs Debian's sysbench"):
        print(f"MariaDB: {why}")
        return
    with MariaDb("--innodb-buffer-pool-size=1G") as server:
        sysbench(server, "prepare")
        for clients in (8, 32, 64):
            client_cpu(server, clients, args.rounds, args.seconds)
        load(server, args.rows, max(3, args.rounds // 2))


if __name__ == "__main__":
    main()
