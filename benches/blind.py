"""Score explain on troubles that were drawn at random: named first or not, cost, and false alarms."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

# The troubles are made as the tests make them.
sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support import blind, causes

#: A trouble counts from this loss on; its cost is right within this factor.
LOSS, FACTOR = 0.10, 1.5


def measured_tps(run: Path) -> float:
    """Mean throughput of the trials of a run."""
    found: list[float] = [json.loads(p.read_text())["summary"]["tps"] for p in run.glob("trials/*/trial.json")]
    return sum(found) / len(found)


def main() -> None:
    """Draw a scenario for each seed, run it without and with its trouble, and print all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="number of scenarios")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first one")
    parser.add_argument("--pairs", action="store_true", help="two troubles at a time")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    if args.pairs:
        pairs(range(args.first, args.first + args.seeds))
        return
    results = []
    print("| seed | workload | trouble | loss | named | first finding |\n|---|---|---|---|---|---|")
    for seed in range(args.first, args.first + args.seeds):
        drawn = blind.draw(seed)
        name = drawn.trouble.name if drawn.trouble else ""
        if (drawn.troubled.quota or drawn.troubled.server_cpus) and (why := causes.no_cgroups()):
            print(f"| {seed} | {drawn.workload} | {name} | {why} | | |", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="pgdyno-blind-") as folder:
            # Another script has another throughput: that is no loss to compare with.
            usual = None
            if (reference := drawn.reference) is not None:
                usual = measured_tps(causes.explained(reference, Path(folder) / "calm").path)
            found = causes.explained(drawn.troubled, Path(folder) / "troubled")
            loss = 1 - measured_tps(found.path) / usual if usual else None
        place = next((n for n, f in enumerate(found.findings, 1) if drawn.is_named(f)), 0)
        first = found.findings[0] if found.findings else None
        cost = found.findings[place - 1]["cost"]["mean"] if place else None
        said = [[f["cause"], f["cost"]["mean"], f["sentence"]] for f in found.findings]
        results.append({"seed": seed, "workload": drawn.workload, "trouble": name, "loss": loss, "place": place,
                        "cost": cost, "alarms": found.alarms, "findings": said})  # fmt: skip
        shown = f"{first['cause']} {first['cost']['mean']:.0%} {first['sentence'][:110]}" if first else "–"
        lost = "–" if loss is None else f"{loss:.0%}"
        print(f"| {seed} | {drawn.workload} | {name or '(none)'} | {lost} | {place or 'no'} | {shown} |", flush=True)
        if args.json:
            args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    summarize(results)


def pairs(seeds: range) -> None:
    """Make two troubles at a time, and print which of them is named at all, and which is first."""
    both = firsts = made = 0
    print("| seed | workload | troubles | named | first finding |\n|---|---|---|---|---|")
    for seed in seeds:
        one, other, scenario = blind.draw_pair(seed)
        if (scenario.quota or scenario.server_cpus) and (why := causes.no_cgroups()):
            print(f"| {seed} | {one.workload} | {why} | | |", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="pgdyno-blind-") as folder:
            found = causes.explained(scenario, Path(folder)).findings
        named = [d.trouble.name for d in (one, other) if d.trouble and any(map(d.is_named, found))]
        made += 1
        both += len(named) == 2
        firsts += bool(found) and (one.is_named(found[0]) or other.is_named(found[0]))
        troubles = " and ".join(d.trouble.name for d in (one, other) if d.trouble)
        first = f"{found[0]['cause']} {found[0]['cost']['mean']:.0%} {found[0]['sentence'][:90]}" if found else "–"
        print(f"| {seed} | {one.workload} | {troubles} | {', '.join(named) or 'none'} | {first} |", flush=True)
    print(f"\n{made} pairs: both named in {both}, one of them first in {firsts}")


def summarize(results: list[dict[str, object]]) -> None:
    """Print the scores by the rules that were fixed beforehand."""
    made = [r for r in results if r["trouble"] and (r["loss"] is None or float(str(r["loss"])) >= LOSS)]
    calm = [r for r in results if not r["trouble"]]
    places = Counter(int(str(r["place"])) for r in made)
    known = [(float(str(r["loss"])), float(str(r["cost"]))) for r in made if r["loss"] is not None and r["cost"]]
    close = sum(max(a, b) <= FACTOR * min(a, b) for a, b in known if min(a, b) > 0)
    print(f"\n{len(made)} troubles that cost {LOSS:.0%} or more: {places[1]} named first, "
          f"{len(made) - places[0]} named at all; cost within a factor of {FACTOR} in {close} of {len(known)}; "
          f"{sum(bool(r['alarms']) for r in calm)} of {len(calm)} calm runs raise an alarm")  # fmt: skip


if __name__ == "__main__":
    main()
