"""What explain says first of causes that are made on real servers: the confusion table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

# The causes are made as the tests make them.
sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support import causes

#: Of the causes that are made, the part that must come first.
LEAST = 0.9


def main() -> None:
    """Inject each cause several times and print how it is ranked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-long", action="store_true", help="without those that take minutes")
    parser.add_argument(
        "--json", type=Path, help="file for the results of the last round; docs/guide/causes is made of it"
    )
    parser.add_argument("names", nargs="*", help="parts of their names; default: all")
    args = parser.parse_args()
    right = made = alarms = calm = 0
    results = []
    print(f"\n| {'made':26} | {'cause':22} | named first | findings of the last round |\n|---|---|---|---|")
    for i in (*causes.EVERY, *(() if args.no_long else causes.LONG)):
        if args.names and not any(n in i.name for n in args.names):
            continue
        if why := i.why_not():
            print(f"| {i.name:26} | {i.cause:22} | {why} | |")
            continue
        firsts = Counter[str]()
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory(prefix="pgdyno-causes-") as folder:
                found = causes.explained(i, Path(folder))
            shown = [f"{f['cause']} {f['cost']['mean'] * 100:.0f}% {f['confidence']}" for f in found.findings]
            if i.cause:
                made += 1
                right += found.causes[:1] == [i.cause] and i.says in found.findings[0]["sentence"]
            else:
                calm += 1
                alarms += bool(found.alarms)
            firsts[found.causes[0] if found.causes else "–"] += 1
        of = [{"cause": f["cause"], "cost": round(f["cost"]["mean"], 2), "confidence": f["confidence"]}
              for f in found.findings[:3]]  # fmt: skip
        results.append({"made": i.name, "cause": i.cause, "findings": of})
        # What they cost is the last round's.
        often = ", ".join(f"{cause} {n} of {args.rounds}" for cause, n in firsts.most_common())
        print(f"| {i.name:26} | {i.cause or '(none)':22} | {often} | {', '.join(shown[:3]) or '–'} |", flush=True)
    print(f"\n{right} of {made} causes are first; {alarms} of {calm} calm runs have a finding with high confidence")

    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if right < LEAST * made or alarms:
        sys.exit(f"fewer than {LEAST:.0%} of the causes are first, or a calm run has a finding with high confidence")


if __name__ == "__main__":
    main()
