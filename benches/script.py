r"""What `\set` costs: our script machine beside pgbench's: `make bench`.

A transaction of ten times a Gaussian random number and ten expressions over it, no SQL. pgbench's cost is the latency
that it reports for such transactions, ours that of the machine alone; both divided by the 110 commands, so that what
surrounds a transaction hardly counts. In turn, several rounds, medians.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

from common import PROGRAMS
from pgdyno.cluster.binaries import wheel_folder
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import sized
from pgdyno.collect import host

COMMANDS = """\
\\set g random_gaussian(1, 100000 * :scale, 10.0)
\\set a :g % 1000 + 1
\\set b (:a * 7 + 3) / 2
\\set c :b - :a
\\set d greatest(:a, :b, :c)
\\set e case when :d > 500 then :d else 500 end
\\set f :e & 255
\\set h hash(:g) % 100
\\set i abs(:h) + 1
\\set j :i * 1.5
\\set k int(:j) + :f
"""
TIMES = 10


def output(*argv: object) -> str:
    """Return the output of a program."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    """Run both programs alternately."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    args = parser.parse_args()
    commands = len(COMMANDS.splitlines()) * TIMES
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as scratch:
        script = Path(scratch) / "expressions.sql"
        script.write_text(COMMANDS * TIMES)
        with EmbeddedCluster(sized(host.memory_bytes(), host.cores(), 8)) as cluster:
            for _ in range(args.rounds):
                ours.append(float(output(PROGRAMS / "vm", script, 200_000)) / commands)
                said = output(
                    f"{wheel_folder()}/pgbench", "-h", cluster.base / "socket", "-U", "postgres", "-n", "-f", script,
                    "-D", "scale=100", "-T", args.seconds, "postgres",
                )  # fmt: skip
                tps = float(re.search(r"tps = ([\d.]+)", said)[1])  # type: ignore[index]
                theirs.append(1e9 / tps / commands)
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"\n{commands} \\set commands a transaction, {args.rounds} rounds, ns for each (medians)")
    print(f"pgdyno {statistics.median(ours):.1f}, pgbench {statistics.median(theirs):.1f}, pgdyno/pgbench: {ratio:.3f}")


if __name__ == "__main__":
    main()
