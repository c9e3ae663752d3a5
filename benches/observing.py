"""Score pgdyno observe on causes that are made under the load of Debian's pgbench: named first, and false alarms."""

from __future__ import annotations

import argparse
import json
import math
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# The causes are made as the tests make them.
sys.path.insert(0, str(Path(__file__).parent.parent))

from pgdyno.analysis.duet import pair_ratio
from pgdyno.run.planning.turns import order_of

from tests.support import causes, observed
from tests.support.cli import PGDYNO
from tests.support.server import Server

#: Seconds of a turn.
_TURN_S = 5.0

#: Causes that an observed server can have: those of pgdyno's own client are not among them.
NAMES = (
    "tiny shared_buffers", "throttled device", "slow commits", "hot row", "aggressive autovacuum", "processors' quota",
    "locked table", "open transaction", "small work_mem", "synchronous standby", "data on the disk",
    "tiny wal_buffers", "advisory lock", "VACUUM FULL of another table", "queries of another session",
    "foreign key without an index", "primary key dropped", "setting changed", "sleeping trigger", "frozen backends",
    "heavy queries", "checkpoints on a slow disk", "slow application",
)  # fmt: skip
#: Of an observed server a heavy statement is part of its work: what is limited by it, and which it is.
OTHERWISE = {"queries of another session": ("server-cpu", "generate_series")}
#: Calm servers: half a load, by pgbench's own rate.
CALM = {"calm: half a load": "500", "calm: one client": "200", "calm: own rows": "300"}
#: Of the causes, the part that comes first.
LEAST = 17 / 20


def cost(seconds: float) -> None:
    """Print the throughput of pgbench while observe is at work by that while it is stopped, in turns of 5 s."""
    with (
        tempfile.TemporaryDirectory(prefix="pgdyno-observing-") as folder,
        Server(hba="host all all 127.0.0.1/32 trust\n", conf="synchronous_commit=off\n") as server,
    ):
        for statement in filter(None, map(str.strip, causes._filled(100_000).split(";"))):
            server.sql(statement)
        script = Path(folder) / "script.sql"
        script.write_text("\\set id random(1, 100000)\nSELECT v FROM t WHERE id = :id;\n")
        load = observed.load(server, script, 8, seconds + 10, "-P", "1")
        argv = [str(PGDYNO), "observe", "--target", server.conninfo(), "--for", str(seconds + 10), "--runs",
                folder, "--json"]  # fmt: skip
        watcher = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began, turns = time.monotonic(), []
        time.sleep(5)
        for is_on in order_of(4 * math.ceil(seconds / _TURN_S / 4), 1):
            watcher.send_signal(signal.SIGCONT if is_on else signal.SIGSTOP)
            turns.append((time.monotonic() - began, is_on))
            time.sleep(_TURN_S)
        watcher.send_signal(signal.SIGCONT)
        watcher.terminate()
        watcher.wait()
        lines, _ = load.communicate()
    seen = [(float(t), float(tps)) for t, tps in re.findall(r"progress: ([\d.]+) s, ([\d.]+) tps", lines)]
    means = []
    for start, is_on in turns:
        # The first second of a turn is both's.
        own = [tps for t, tps in seen if start + 2 <= t <= start + _TURN_S]
        means.append((is_on, math.log(sum(own) / len(own))))
    pairs = [
        sum(x for on, x in means[n : n + 2] if on) - sum(x for on, x in means[n : n + 2] if not on)
        for n in range(0, len(means) - 1, 2)
    ]
    found = pair_ratio(pairs)
    assert found is not None, "too few turns"
    half = 1.96 * math.sqrt(found.variance)
    low, mean, high = (math.exp(found.mean + x) for x in (-half, 0.0, half))
    print(f"TPS with observe by without: {mean:.4f} (95%: {low:.4f} to {high:.4f}; {len(pairs)} pairs of turns)")


def main() -> None:
    """Make each cause, observe, and print what comes first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=16.0, help="of an observation")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("names", nargs="*", help="parts of their names; default: all")
    parser.add_argument(
        "--cost", type=float, metavar="SECONDS", help="measure the cost of observing instead; 200 or more"
    )
    args = parser.parse_args()
    if why := observed.why_not():
        sys.exit(why)
    if args.cost:
        cost(args.cost)
        return
    by_name = {i.name: i for i in (*causes.EVERY, *causes.OBSERVED)}
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
        kept = [{"cause": f["cause"], "cost": round(f["cost"]["mean"], 2), "confidence": f["confidence"]}
                for f in findings[:3]]  # fmt: skip
        results.append({"made": name, "cause": cause, "place": place, "findings": kept})
        if args.json:
            args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"\n{right} of {made} causes are first; {alarms} of the calm servers have a finding with high confidence")
    if right < LEAST * made or alarms:
        sys.exit(f"fewer than {LEAST:.0%} of the causes are first, or a calm server has a finding with high confidence")


if __name__ == "__main__":
    main()
