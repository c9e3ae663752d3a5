"""Score pgdyno observe on causes that are made under the load of Debian's pgbench: named first, and false alarms."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

# The causes are made as the tests make them.
sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support import causes, observed

#: Causes that an observed server can have: those of pgdyno's own client are not among them.
NAMES = (
    "tiny shared_buffers", "throttled device", "slow commits", "hot row", "aggressive autovacuum", "processors' quota",
    "locked table", "open transaction", "small work_mem", "synchronous standby", "data on the disk",
    "tiny wal_buffers", "advisory lock", "VACUUM FULL of another table", "queries of another session",
    "foreign key without an index", "primary key dropped", "setting changed", "sleeping trigger", "frozen backends",
    "heavy queries", "checkpoints on a slow disk",
)  # fmt: skip
#: Of an observed server a heavy statement is part of its work: what is limited by it, and which it is.
OTHERWISE = {"queries of another session": ("server-cpu", "generate_series")}
#: Calm servers: half a load, by pgbench's own rate.
CALM = {"calm: half a load": "500", "calm: one client": "200", "calm: own rows": "300"}
#: Of the causes, the part that comes first.
LEAST = 17 / 20


def main() -> None:
    """Make each cause, observe, and print what comes first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=16.0, help="of an observation")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("names", nargs="*", help="parts of their names; default: all")
    args = parser.parse_args()
    if why := observed.why_not():
        sys.exit(why)
    by_name = {i.name: i for i in causes.EVERY}
    results: list[dict[str, Any]] = []
    right = made = alarms = 0
    print("| made | cause | place | findings |\n|---|---|---|---|")
    for name in (*NAMES, *CALM):
        i = by_name[name]
        if args.names and not any(n in name for n in args.names):
            continue
        if why := i.why_not():
            print(f"| {name} | {i.cause} | {why} | |", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="pgdyno-observing-") as folder:
            options = ("-R", CALM[name]) if name in CALM else ()
            found = observed.observed(i, Path(folder), args.seconds, options)
        findings = found["findings"]
        cause, says = OTHERWISE.get(name, (i.cause, ""))
        of = [f["cause"] for f in findings if says in f["sentence"] or f["cause"] != cause]
        place = of.index(cause) + 1 if cause in of else 0
        if cause:
            made += 1
            right += place == 1
        else:
            alarms += any(f["confidence"] == "high" and f["kind"] != "limit" for f in findings)
        shown = [f"{f['cause']} {f['cost']['mean']:.0%} {f['confidence']}" for f in findings[:4]]
        print(f"| {name} | {cause or '(none)'} | {place or 'no'} | {', '.join(shown) or '–'} |", flush=True)
        results.append({"made": name, "cause": cause, "place": place, "answer": found["answer"],
                        "findings": [[f["cause"], f["cost"]["mean"], f["sentence"]] for f in findings]})  # fmt: skip
        if args.json:
            args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"\n{right} of {made} causes are first; {alarms} of the calm servers have a finding with high confidence")
    if right < LEAST * made or alarms:
        sys.exit(f"fewer than {LEAST:.0%} of the causes are first, or a calm server has a finding with high confidence")


if __name__ == "__main__":
    main()
