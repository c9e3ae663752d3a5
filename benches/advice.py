"""Score explain --verify: the gain of the advice for made causes, its prediction, and the order of the actions."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The places are made as the tests make them.
sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support import causes, slowdisk
from tests.support.cli import PGDYNO, environment

#: Goals: a gain above zero, within the predicted interval, and the first action the best of those measured.
GAIN, PREDICTED, BEST = 0.8, 0.7, 0.7


@dataclass(frozen=True)
class Advised:
    """A server with a cause that an action removes, or a calm one (`cause` is empty)."""

    name: str
    cause: str
    script: str
    setup: Sequence[str] = ()
    settings: dict[str, str] = field(default_factory=dict)
    clients: int = 4
    seconds: float = 10.0
    protocol: str = "prepared"
    rate: float | None = None
    place: Callable[[], AbstractContextManager[Path | None]] = nullcontext
    why_not: Callable[[], str] = field(default=lambda: "")


def _filled(n: int, pad: int = 100) -> tuple[str, ...]:
    return (
        "create table t (id int primary key, v int, pad text)",
        f"insert into t select i, 0, repeat('x', {pad}) from generate_series(1, {n}) i",
        "analyze t",
    )


_POINT = "\\set id random(1, {n})\nSELECT v FROM t WHERE id = :id;\n"
_UPDATE = "\\set id random(1, {n})\nUPDATE t SET v = v + 1 WHERE id = :id;\n"
_OWN = "\\set id random(1, 1000) + 1000 * :client_id\nUPDATE t SET v = v + 1 WHERE id = :id;\n"
_LOOSE = {"synchronous_commit": "off", "autovacuum": "off"}
_SPREAD = ("create table t (id int primary key, v int, pad text)",
           "insert into t select i, i, repeat('x', 20) from generate_series(1, 20000) i", "analyze t")  # fmt: skip

EVERY = (
    Advised("missing index", "missing-index", "\\set v random(1, 20000)\nSELECT id FROM t WHERE v = :v;\n", _SPREAD,
            _LOOSE),
    Advised("missing index of two columns", "missing-index",
            "\\set v random(1, 100)\n\\set w random(1, 200)\nSELECT count(*) FROM t WHERE a = :v AND b = :w;\n",
            ("create table t (id int primary key, a int, b int)",
             "insert into t select i, i % 100, i % 199 from generate_series(1, 50000) i", "analyze t"), _LOOSE, 2),
    Advised("foreign key without an index", "missing-index",
            "\\set id random(2, 20000)\nBEGIN;\nDELETE FROM t WHERE id = :id;\nROLLBACK;\n",
            (*_filled(20_000), "create table child (id int, parent int references t)",
             "insert into child select i, 1 from generate_series(1, 50000) i"), _LOOSE, 2),
    Advised("tiny shared_buffers", "buffer-misses", _POINT.format(n=500_000), _filled(500_000, 300),
            {"shared_buffers": "1MB", "autovacuum": "off"}, 2),
    Advised("data on the disk", "data-io", _POINT.format(n=400_000), _filled(400_000, 300),
            {**_LOOSE, "shared_buffers": "8MB", "debug_io_direct": "data"}, 2, place=causes.on_loop,
            why_not=causes.no_loop),
    Advised("small work_mem", "temporary-files",
            "SELECT count(*) FROM (SELECT pad FROM t ORDER BY pad, v OFFSET 1) x;\n", _filled(20_000),
            {**_LOOSE, "work_mem": "64kB"}, 2),
    Advised("slow commits", "wal-flush", _OWN, _filled(20_000), {"autovacuum": "off"}, 2, place=causes.on_slow_disk,
            why_not=lambda: slowdisk.why_not() or causes.no_loop()),
    Advised("slow commits of many", "wal-flush", _OWN, _filled(20_000), {"autovacuum": "off"}, 8,
            place=causes.on_slow_disk, why_not=lambda: slowdisk.why_not() or causes.no_loop()),
    Advised("aggressive autovacuum", "autovacuum", _UPDATE.format(n=600_000),
            (*_filled(600_000, 60), "create index on t (pad, id)", "create index on t (id, pad)",
             "create index on t (pad, v)", "create index on t (v, id)"),
            {"synchronous_commit": "off", "autovacuum_naptime": "1", "autovacuum_vacuum_cost_delay": "0",
             "autovacuum_vacuum_threshold": "1", "autovacuum_vacuum_scale_factor": "0",
             "autovacuum_analyze_threshold": "1", "autovacuum_analyze_scale_factor": "0",
             "maintenance_work_mem": "1MB"}),
    Advised("no vacuum", "bloat", f"{_UPDATE.format(n=500)}SELECT count(*) FROM t;\n",
            (*_filled(500), "create index on t (v)"), _LOOSE, seconds=16),
    Advised("tiny wal_buffers", "wal-insert",
            "INSERT INTO t SELECT i, 0, repeat(md5(i::text), 60) FROM generate_series(1, 20) i;\n",
            ("create table t (id int, v int, pad text)", "alter table t alter pad set storage external"),
            {**_LOOSE, "wal_buffers": "32kB", "full_page_writes": "off", "max_wal_size": "16GB",
             "wal_writer_delay": "10s"}, 8),
    Advised("max_wal_size too small", "checkpoint-full-pages", _UPDATE.format(n=1_000_000), _filled(1_000_000),
            {"synchronous_commit": "off", "autovacuum": "off", "max_wal_size": "64MB", "min_wal_size": "32MB",
             "shared_buffers": "512MB"}, 8, seconds=16),
    Advised("too many connections", "connections", "SELECT sum(i) FROM generate_series(1, 3000) i;\n", ("select 1",),
            {"max_connections": "200"}, 120),
    Advised("simple protocol", "server-cpu",
            "\\set id random(1, 1000)\nSELECT a.v, b.v, c.v FROM t a JOIN t b ON b.id = a.id JOIN t c ON c.id = b.id "
            "JOIN t d ON d.id = c.id WHERE a.id = :id;\n", _filled(1000), _LOOSE, 8, protocol="simple"),
    Advised("calm: reads", "", _POINT.format(n=10_000), _filled(10_000), {}, 2),
    Advised("calm: reads of many", "", _POINT.format(n=10_000), _filled(10_000), {}, 8),
    Advised("calm: updates", "", _OWN, _filled(20_000), {"synchronous_commit": "off"}, 2),
    Advised("calm: a rate", "", _OWN, _filled(20_000), {}, 2, rate=200.0),
    Advised("calm: queries", "", "SELECT sum(i * i) FROM generate_series(1, 20000) i;\n", ("select 1",), {}, 4),
)  # fmt: skip


def experiment_of(a: Advised, folder: Path | None) -> str:
    """Return the experiment file; JSON's strings and lists are TOML's."""
    target = [f"{name} = {json.dumps(value)}" for name, value in a.settings.items()]
    place = [f"folder = {json.dumps(str(folder))}"] if folder is not None else []
    rate = [f"rate = {a.rate}"] if a.rate is not None else []
    lines = [
        'name = "advice"', f"title = {json.dumps(a.name)}", "[dataset]", 'kind = "sql"',
        f"setup = {json.dumps(list(a.setup))}", "[targets.server]", *place, "[targets.server.settings]", *target,
        "[workloads.w]", "[[workloads.w.scripts]]", f"text = {json.dumps(a.script)}", "[axes]",
        f"clients = [{a.clients}]", "[run]", f"protocol = {json.dumps(a.protocol)}", f"duration_s = {a.seconds}",
        "warmup_s = 1.0", "repetitions = 1", "interval_s = 0.2", *rate,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def verified(a: Advised, folder: Path, budget: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Run the experiment and verify its actions. Return the causes in their order, and the actions with results."""
    with a.place() as place:
        file = folder / "advice.toml"
        file.write_text(experiment_of(a, place))
        common: dict[str, Any] = {"env": environment(), "capture_output": True, "text": True, "check": False}
        argv: list[str] = [str(PGDYNO), "run", str(file), "--runs", str(folder), "--quiet"]
        done = subprocess.run(argv, **common)
        runs = sorted(folder.glob("*/manifest.json"))
        assert runs, done.stderr
        run = str(runs[-1].parent)
        explained = json.loads(subprocess.run([str(PGDYNO), "explain", run, "--json"], **common).stdout)
        argv = [str(PGDYNO), "explain", run, "--verify", "--budget", budget, "--runs", str(folder), "--json"]
        done = subprocess.run(argv, **common)
        assert done.returncode == 0, done.stderr
        return [f["cause"] for f in explained["findings"]], json.loads(done.stdout)["actions"]


def main() -> None:
    """Verify the actions of each cause, print all of them, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", default="5m", help="of each verification")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("names", nargs="*", help="parts of their names; default: all")
    args = parser.parse_args()
    results: list[dict[str, Any]] = []
    print("| made | first finding | action | predicted gain | measured gain | outcome |\n|---|---|---|---|---|---|")
    for a in EVERY:
        if args.names and not any(n in a.name for n in args.names):
            continue
        if why := a.why_not():
            print(f"| {a.name} | {why} | | | | |", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="pgdyno-advice-") as folder:
            found, actions = verified(a, Path(folder), args.budget)
        results.append({"made": a.name, "cause": a.cause, "findings": found, "actions": actions})
        shown = [_shown(x) for x in actions] or [("–", "", "", "")]
        for line in shown:
            print(f"| {' | '.join((a.name, found[0] if found else '–', *line))} |", flush=True)
        if args.json:
            args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    _summarize(results)


def _shown(x: dict[str, Any]) -> tuple[str, str, str, str]:
    gain, measured = x["gain"], x["measured"]
    seen = f"{measured['gain']:+.0%} ({measured['low']:+.0%} to {measured['high']:+.0%})" if measured else "–"
    text = "; ".join(x["settings"]) or "; ".join(x["sql"]) or f"{x['clients'] or x['protocol']}"
    outcome = x["outcome"] if not x["reason"] else f"{x['outcome']}: {x['reason']}"
    predicted = f"{gain['mean']:+.0%} ({gain['low']:+.0%} to {gain['high']:+.0%})"
    return f"{text}{' (set)' if x['set'] else ''}", predicted, seen, outcome


def _summarize(results: list[dict[str, Any]]) -> None:
    made = [r for r in results if r["cause"]]
    calm = [r for r in results if not r["cause"]]
    alone = [[x for x in r["actions"] if x["measured"] and not x["set"]] for r in made]
    first = [of[0] for of in alone if of]
    every = [x for of in alone for x in of]
    several = [of for of in alone if len(of) > 1]
    gains = sum(x["measured"]["low"] > 0 for x in first)
    fits = sum(bool(x["as_predicted"]) for x in every)
    best = sum(of[0]["measured"]["gain"] >= max(x["measured"]["gain"] for x in of) - 0.02 for of in several)
    alarms = sum(x["outcome"] == "verified" for r in calm for x in r["actions"])
    print(f"\n{len(first)} of {len(made)} causes have an action that was measured.")
    print(f"First action with a gain above zero: {gains} of {len(first)}")
    print(f"Measured within the predicted interval: {fits} of {len(every)}")
    print(f"First action the best of several (within 2%): {best} of {len(several)}")
    print(f"Calm servers: {alarms} actions verified on {len(calm)}")


if __name__ == "__main__":
    main()
