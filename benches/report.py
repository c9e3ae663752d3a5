"""Seconds that a report takes: of 10,000 trials, and of one trial of 8 hours at intervals of 1 s.

Target: under 4 s each. Then the behaviour of its page in Chromium.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support import page, synthetic

PGDYNO = Path(sys.executable).parent / "pgdyno"
ROUNDS = 5


def main() -> None:
    """Make the runs and write their reports."""
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
            print(f"  {what:44} median {statistics.median(seconds):.2f} s "
                  f"(range {min(seconds):.2f} to {max(seconds):.2f})")  # fmt: skip
        if page.CHROMIUM is None:
            print("\nno Chromium here: the page was not opened")
            return
        print(f"\nthe page in Chromium, headless, medians of {ROUNDS} rounds:")
        for what, path in runs.items():
            text = (path / "report.html").read_text(encoding="utf-8")
            seen = [page.opened(text, folder) for _ in range(ROUNDS)]
            wrong = sum(bool(s["wrong"]) for s in seen)

            def median(name: str, seen: list[dict[str, Any]] = seen) -> float:
                return float(statistics.median(s[name] for s in seen))

            print(
                f"  {what}, {len(text) / 1e6:.1f} MB: shown after {median('shown_ms'):,.0f} ms with "
                f"{median('charts'):.0f} charts; from a key in the filter to the "
                f"picture {median('filter_ms'):,.0f} ms, from a click on a figure to its trials "
                f"{median('follow_ms'):,.0f} ms" + (f"; SCRIPT ERRORS in {wrong}" if wrong else "")
            )


if __name__ == "__main__":
    main()
