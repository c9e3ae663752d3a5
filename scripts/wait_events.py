"""Write the wait events of PostgreSQL with their descriptions, from the view pg_wait_events of the embedded server."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

# The server is started as the tests start it.
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.server import Server  # noqa: E402

FILE = ROOT / "python" / "pgdyno" / "diagnosis" / "wait_events.csv"


def main() -> None:
    """Write the file."""
    with Server() as server:
        rows = server.sql(
            "select type, name, regexp_replace(description, '\\s+', ' ', 'g') from pg_wait_events "
            "where type not in ('Extension', 'InjectionPoint') order by 1, 2"
        )
    with FILE.open("w", encoding="utf-8", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["type", "name", "description"])
        out.writerows(rows)
    sys.stdout.write(f"{len(rows)} wait events in {FILE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
