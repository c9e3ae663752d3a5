"""How long a report takes: of 10,000 trials, and of one of 8 hours at intervals of 1 s. Target: under 5 s each."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support import synthetic

PGDYNO = Path(sys.executable).parent / "pgdyno"
ROUNDS = 5


def main() -> None:
    """Makes the runs, and reports them in turn."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as name:
        folder = Path(name)
        runs = {
            "10,000 trials, 3,334 configurations": synthetic.make_run(
                folder,
                synthetic.plans(list(range(1, 3335)), 3),
                lambda p, i, r: 1000 * r.uniform(0.9, 1.1),
                intervals=10,
            ),
            "one trial of 28,800 intervals": synthetic.make_run(
                folder, synthetic.plans([8], 1), lambda p, i, r: 1000 * r.uniform(0.9, 1.1), intervals=28_800
            ),
        }
        took: dict[str, list[float]] = {what: [] for what in runs}
        for _ in range(ROUNDS):
            for what, path in runs.items():
                begun = time.monotonic()
                subprocess.run([PGDYNO, "report", path], check=True, capture_output=True)
                took[what].append(time.monotonic() - begun)
        print(f"\npgdyno report, whole process, {ROUNDS} rounds:")
        for what, seconds in took.items():
            page = (runs[what] / "report.html").stat().st_size
            print(
                f"  {what:36} median {statistics.median(seconds):.2f} s (range {min(seconds):.2f} to "
                f"{max(seconds):.2f}), "
                f"page {page / 1e6:.1f} MB"
            )


if __name__ == "__main__":
    main()
