"""How long until a connection is tried: `pgdyno pgbench` beside pgbench, both against a socket that is not there.

The time is that of the whole process, in turn, several rounds, medians: what is measured beyond the first attempt to
connect (saying that there is nobody, ending) is in it, so the truth is a little less.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from pgdyno.cluster.binaries import wheel_folder

ROUNDS = 15


def main() -> None:
    """Run both programs alternately."""
    programs = {"pgdyno": Path(sys.executable).parent / "pgbench", "pgbench": f"{wheel_folder()}/pgbench"}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run([str(program), "-n", "-S", "-h", "/nonexistent"], capture_output=True, check=False)
            times[name].append(1e3 * (time.perf_counter() - start))
    ours, theirs = (statistics.median(times[name]) for name in ("pgdyno", "pgbench"))
    print(f"start-up to the first connection, {ROUNDS} rounds: pgdyno {ours:.0f} ms, pgbench {theirs:.0f} ms (medians)")


if __name__ == "__main__":
    main()
