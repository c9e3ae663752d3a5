"""Writes what the documentation quotes from the program itself: `make docs`. Tests hold the files against this.

The reference (help texts, the schema) is the same each time. Outputs of real runs are not: each quote stands behind a
comment with a digest of how the present version prints a run of that kind that was made up, or of the texts that the
output consists of. A quote whose digest differs is stale.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# The runs that are made up are the tests'.
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))

import pages  # noqa: E402
from pgdyno import samples  # noqa: E402
from pgdyno.report import summary, view  # noqa: E402
from pgdyno.results.analysis import RunAnalysis  # noqa: E402
from pgdyno.spec.experiment import Experiment  # noqa: E402
from pgdyno.store import reading  # noqa: E402
from rich.console import Console  # noqa: E402

from tests.support import synthetic  # noqa: E402

REFERENCE = ROOT / "docs" / "reference"
PACKAGE = ROOT / "python" / "pgdyno"
#: Most characters of a line of the guide.
WIDTH = 120
BIN = Path(sys.executable).parent
CLUSTER = tuple(
    f"cluster {v}" for v in (
        "create", "start", "stop", "status", "switchover", "failover", "rejoin", "repair", "link", "snapshot",
        "flashback", "destroy", "restore", "list", "drop",
    )
)  # fmt: skip
TPCC = tuple(f"tpcc {v}" for v in ("check", "acid", "show"))
JUDGING = ("explain", "compare", "capacity", "history", "judge", "observe", "scaling")
VERBS = (
    "run", "plan", "experiments", "new", "capture", "load", "tpcc", *TPCC, "cluster", *CLUSTER, "drill", "storage",
    "watch", "runs", "report", *JUDGING, "sql", "export", "pgbench",
)  # fmt: skip


# ---------------------------------------------------------------- the reference


_HELP = """
import contextlib, io, json, sys
from pgdyno.cli.main import app

texts = []
for verb in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        app([*verb.split(), "--help"], prog_name="pgdyno", standalone_mode=False)
    texts.append(out.getvalue())
print(json.dumps(texts))
"""


def command_line() -> str:
    """Return the help of every verb."""
    out = ["# Command line", "", "Written by `make docs`; the words are the program's own.", ""]
    env = {**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100"}
    printed = partial(subprocess.run, capture_output=True, text=True, check=True, env=env)
    verbs = [v for v in ("", *VERBS) if v != "pgbench"]
    # One process for all that have one parser: most of the time is for imports.
    texts = dict(zip(verbs, json.loads(printed([sys.executable, "-c", _HELP, *verbs]).stdout), strict=True))
    texts["pgbench"] = printed([BIN / "pgdyno", "pgbench", "--help"]).stdout
    for verb, text in texts.items():
        body = "\n".join(line.rstrip() for line in text.strip().splitlines())
        out += [f"## pgdyno {verb}".rstrip(), "", "```", body, "```", ""]
    return "\n".join(out)


def schema() -> str:
    """Return the JSON Schema of experiment files, for editors."""
    return json.dumps(Experiment.model_json_schema(), indent=2) + "\n"


def sampled() -> str:
    """Return the columns of all samples."""
    out = ["# Samples", "", "Written by `make docs` from `pgdyno/samples.py`.", ""]
    out += (inspect.getdoc(samples) or "").split("\n\n")[1].splitlines()
    out += ["", "Each source is a table of `pgdyno sql`. Optional columns are absent where the server lacks them.", ""]
    for source, of in samples.SAMPLES.items():
        out += [f"## {source}", "", (inspect.getdoc(of) or "").replace("\n", " "), ""]
        out += ["| column | type |", "|---|---|"]
        types = {int: "integer", float: "double", str: "text"}
        for name, kind in samples.columns(source).items():
            out.append(f"| {name} | {types[kind]}{', optional' if hasattr(of, name) else ''} |")
        out.append("")
    return "\n".join(out)


def limits() -> str:
    """Return the table of all thresholds, by cause."""
    source = (PACKAGE / "diagnosis" / "thresholds.py").read_text(encoding="utf-8")
    intro = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")
    out = ["# Thresholds", "", "Written by `make docs` from `pgdyno/diagnosis/thresholds.py`.", ""]
    out += [intro[1].partition(" docs/reference/")[0], ""]
    for match in re.finditer(r'^class (\w+):\n    """(.+)"""\n((?:.*\n)*?)(?=\n\nclass |\Z)', source, re.MULTILINE):
        out += [f"## {match[1]}", "", match[2], "", "| threshold | value | meaning |", "|---|---|---|"]
        for comment, name, value in re.findall(r"((?:^    #: .*\n)+)    (\w+) = (.*)", match[3], re.MULTILINE):
            meaning = " ".join(line.strip().removeprefix("#: ") for line in comment.splitlines())
            out.append(f"| {name} | {value} | {meaning} |")
        out.append("")
    return "\n".join(out)


#: Each knows those before it, as far as it needs them.
CRATES = (
    "base",
    "record",
    "script",
    "protocol",
    "postgres",
    "mysql",
    "engine",
    "load",
    "tpcc",
    "ledger",
    "relay",
    "py",
)


def places() -> str:
    """Return the map of the tree: each crate and package with the first line of its own documentation."""
    crates = [(f"crates/{name}", (ROOT / "crates" / name / "src" / "lib.rs").read_text()) for name in CRATES]
    lines = [(name, text.splitlines()[0].removeprefix("//! ")) for name, text in crates]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    for module in (m.strip() for layer in contract for m in layer.split("|")):
        path = ROOT / "python" / Path(*module.split("."))
        within = sorted(p.parent for p in path.glob("*/__init__.py"))
        for room in (path, *within):
            source = room / "__init__.py" if room.is_dir() else room.with_suffix(".py")
            summary = (ast.get_docstring(ast.parse(source.read_text())) or "").splitlines()[0]
            lines.append((str(source.relative_to(ROOT)).removesuffix("/__init__.py"), summary))
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {summary}" for name, summary in lines)


def contributing() -> str:
    """Return CONTRIBUTING.md with the map of the tree as it is."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = f"<!-- make docs: map -->\n```\n{places()}\n```\n"
    return re.sub(r"<!-- make docs: map -->\n```\n.*?```\n", lambda _: block, text, flags=re.DOTALL)


def files() -> dict[Path, str]:
    """Return the generated pages by path."""
    return {
        REFERENCE / "command-line.md": command_line(),
        REFERENCE / "experiment.schema.json": schema(),
        REFERENCE / "samples.md": sampled(),
        REFERENCE / "thresholds.md": limits(),
        ROOT / "CONTRIBUTING.md": contributing(),
        **pages.cause_pages(),
        **pages.error_pages(),
    }


# ---------------------------------------------------------------- quotes


@dataclass(frozen=True)
class Quote:
    """A block of a page: what a command prints."""

    #: Kinds of output that it shows, for `digest`.
    printed_by: tuple[str, ...]
    page: str
    command: str
    #: Of its output, what is shown.
    shown: Callable[[str], str] = lambda text: text


def _until(words: str) -> Callable[[str], str]:
    return lambda text: text.partition(words)[0].rstrip() + "\n..."


def _undisturbed(text: str) -> str:
    """Refuse what a disturbed machine has measured: the page explains a good run."""
    if text.startswith("Problem"):
        raise SystemExit(f"not quoted, because the run went wrong; run it again:\n{text[:400]}")
    return text


def _answer(text: str) -> str:
    return _undisturbed(text).partition("\n\n")[0]


def _line(text: str, begin: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(begin))


def _some_of_pgbench(text: str) -> str:
    """Of a summary what pgdyno adds, and where it stands."""
    shown = r"progress: [24]|transaction type|latency |rate limit|SQL script 2| - (weight|\d)| - statement"
    out: list[str] = []
    for line in text.splitlines():
        if re.match(rf"pgbench|{shown}|\s+[\d.]+ .*(aid|SELECT abalance)", line):
            out.append(line)
        elif out and out[-1] != "...":
            out.append("...")
    return "\n".join(out)


def _after(words: str) -> Callable[[str], str]:
    """From the line that has the words on."""
    return lambda text: text[text.rfind("\n", 0, text.find(words)) + 1 :]


def _lines(most: int) -> Callable[[str], str]:
    return lambda text: "\n".join([*text.split("\n")[:most], "..."])


def _first(sections: int) -> Callable[[str], str]:
    return lambda text: "\n\n".join(text.split("\n\n")[:sections])


def _table(title: str) -> Callable[[str], str]:
    """Return a filter that keeps one table."""
    return lambda text: title + text.partition(f"\n{title}")[2].partition("\n\n")[0]


COMPARE_GUIDE = "docs/guide/compare.md"
REPORT_GUIDE = "docs/guide/report.md"
#: A short run for a quote that is not about its figures.
_SHORTLY = "--embedded --quiet --workload read-only --clients 4 --hot-set 1 --scale 5 --duration 10 --repetitions 3"
LIMIT_GUIDE = "docs/guide/limit.md"
EXPERIMENTS_GUIDE = "docs/guide/experiments.md"
TPCC_GUIDE = "docs/guide/tpcc.md"
REPLICAS_GUIDE = "docs/guide/replicas.md"
FAILOVER_GUIDE = "docs/guide/failover.md"
_EXPLAIN = (
    "pgdyno run quick --embedded --quiet --clients 8 --hot-set 1 --duration 8 --repetitions 1 --runs e > e.log 2>&1; "
    "pgdyno explain e/*"
)
_VERIFY = r"""
cat > orders.toml <<'END'
name = "orders"
title = "Orders of a customer"
[dataset]
kind = "sql"
setup = ["create table orders (id int primary key, customer int, total numeric)",
  "insert into orders select i, i % 5000, i from generate_series(1, 50000) i", "analyze orders"]
[workloads.orders]
[[workloads.orders.scripts]]
text = '''
\set customer random(1, 4999)
SELECT sum(total) FROM orders WHERE customer = :customer;
'''
[axes]
clients = [4]
[run]
duration_s = 6
warmup_s = 1
repetitions = 1
END
pgdyno run orders.toml --quiet --runs v > v.log 2>&1; pgdyno explain v/* --verify --budget 2m --runs w 2> log
"""
_OBSERVE = "(pgbench -n -c 4 -T 30 > load.log 2>&1 &); sleep 2; pgdyno observe --for 20 2> log"
_SHORT = "--embedded --quiet --clients 4 --hot-set 1 --scale 5 --duration 2 --warmup 0.5 --repetitions 1"
_COMPARE = (
    f"pgdyno run quick {_SHORT} --restarts 4 --runs a > a.log 2>&1; "
    f"pgdyno run quick {_SHORT} --restarts 4 --set synchronous_commit=off --runs b > b.log 2>&1; "
    "pgdyno compare a/* b/*"
)
_HISTORY = (
    f"for n in 1 2 3 4 5 6 7; do pgdyno run quick {_SHORT} --restarts 2 --runs nights > h.log 2>&1; done; "
    "pgdyno history nights"
)
_JUDGE = (
    "for n in 1 2; do pgbench -n -S -c 4 -T 40 -P 1 > run$n.txt 2>&1; done; "
    "pgbench -n -N -c 4 -T 8 -P 1 > short.txt 2>&1; "
    "pgdyno judge run1.txt run2.txt; echo; pgdyno judge short.txt"
)
_FLASHBACK = (
    "pgdyno cluster snapshot r2 ; pgdyno drill r2 --rounds 1 -q > drill.log ; "
    "pgdyno cluster flashback r2 --to latest --into was 2> log ; pgdyno cluster stop was > log"
)
#: What a reader types, where what is run here has more to it: where a server is, what was done before.
_COPIED = 'pgdyno load pk --rows 1000000 --target "host=$PWD/c1/socket user=postgres dbname=postgres"'
_PGBENCH = "pgbench -n -N -S -c 8 -j 2 -T 5 -P 2 -M prepared -r --percentiles --rate 200..2000/5s --json=run.json"
_PREPARED = (
    "export PGHOST=$PWD/c1/socket PGUSER=postgres PGDATABASE=postgres; pgdyno cluster start c1 > log 2>&1; "
    "pgbench -i -q -s 10 > log 2>&1; "
)
_KEPT = (
    "pgdyno cluster stop c1 > log 2>&1; export PGDYNO_TEMPLATES=$PWD/templates; pgdyno cluster snapshot c1; "
    "pgdyno cluster list; echo; pgdyno cluster restore $(ls templates | head -1) c2; pgdyno cluster start c2; "
    "pgdyno cluster stop c2 > log 2>&1"
)
#: Clusters that commands name.
CLUSTERS = {
    "c1": "pgdyno cluster create c1",
    # Empty and stopped, whatever the quotes before have left in c1.
    "c3": "pgdyno cluster create c3",
    "r1": "pgdyno cluster create r1 --standbys 2 --sync 'ANY 1 (*)'",
    "r2": "pgdyno cluster create r2 --standbys 2 --archive",
}
QUOTES = {
    "demo": Quote(("levels",), "README.md", "pgdyno run quick --embedded", _until("\nMore: --details")),
    "explain": Quote(("explain", "findings"), LIMIT_GUIDE, _EXPLAIN),
    "verify": Quote(("explain", "findings"), LIMIT_GUIDE, _VERIFY, _after("Measured on")),
    "observe": Quote(("explain", "findings"), "docs/guide/observe.md", _PREPARED + _OBSERVE),
    "vary": Quote(
        ("compared", "explain:why,state,use"),
        COMPARE_GUIDE,
        "pgdyno run quick --vary synchronous_commit=on,off",
        lambda text: _first(2)(_undisturbed(text)),
    ),
    "answer": Quote(
        ("compared", "explain:why,state,use"), "README.md", "pgdyno run quick --vary synchronous_commit=on,off", _answer
    ),
    "runs": Quote(
        ("report:state-of-run,column-run,column-verdict",),
        REPORT_GUIDE,
        f"pgdyno run quick {_SHORTLY} --tag before > a.log 2>&1; "
        f"pgdyno run quick {_SHORTLY} --tag after --note 'new disk' > b.log 2>&1; "
        "pgdyno runs",
    ),
    "plan": Quote(("plan",), EXPERIMENTS_GUIDE, "pgdyno plan pgbench-compare"),
    "capacity": Quote(("searched",), LIMIT_GUIDE, "pgdyno capacity --slo 'p99<20ms' --embedded --scale 10", _lines(20)),
    "scaling": Quote(("levels",), LIMIT_GUIDE, "pgdyno scaling", _until("\n\n500000000")),
    "tpcc": Quote(
        ("levels", "compared"),
        TPCC_GUIDE,
        "pgdyno run tpcc-compare --scale 10 --clients 8 --duration 6 --warmup 2 --repetitions 3",
        _until("\nMore: --details"),
    ),
    "acid": Quote(("experiments",), TPCC_GUIDE, "pgdyno tpcc acid"),
    "standbys": Quote(("clusters",), REPLICAS_GUIDE, CLUSTERS["r1"]),
    "standbys_status": Quote(("clusters",), REPLICAS_GUIDE, "pgdyno cluster status r1", _until("--target")),
    "modes": Quote(("drills",), FAILOVER_GUIDE, "pgdyno drill r1 --modes --rounds 2 -q"),
    "faults": Quote(("drills",), "docs/guide/faults.md", "pgdyno drill r1 --fault all --rounds 2 -q"),
    "replication_cost": Quote(
        ("levels",), REPLICAS_GUIDE, "pgdyno run replication-cost --details", _table("What standbys cost")
    ),
    "driver_tax": Quote(
        ("report:answer-driver,driver-,table-drivers,note-drivers",),
        "docs/guide/drivers.md",
        "pgdyno run driver-tax",
        _first(2),
    ),
    "flashback": Quote(("clusters",), REPLICAS_GUIDE, _FLASHBACK),
    "experiments": Quote(("experiments",), EXPERIMENTS_GUIDE, "pgdyno experiments"),
    "start": Quote(
        ("levels",),
        "docs/guide/start.md",
        "pgdyno run quick --embedded --clients 8 --hot-set 1 --repetitions 3 --duration 5",
    ),
    "compare": Quote(("compare", "explain:why,state,use"), COMPARE_GUIDE, _COMPARE),
    "history": Quote(("compare:history,column",), "docs/guide/ci.md", _HISTORY),
    "judge": Quote(("compare",), "docs/guide/compare.md", _PREPARED + _JUDGE),
    "load_plan": Quote(
        ("progress",), "docs/guide/loading.md", "pgdyno load tpcb --scale 1000000 --dry-run --disk-mbps 4000"
    ),
    "load_direct": Quote(("progress",), "docs/guide/loading.md", "pgdyno load tpcb --scale 100 --data c1"),
    "kept": Quote(("clusters",), "docs/guide/loading.md", _KEPT),
    "load_copy": Quote(
        ("progress",),
        "docs/guide/loading.md",
        f"pgdyno cluster start c1 > log 2>&1; {_COPIED} 2>&1",
        lambda text: _line(text, "done in"),
    ),
    "pgbench": Quote(("progress",), "docs/guide/pgbench.md", _PREPARED + _PGBENCH + " 2>&1", _some_of_pgbench),
    "storage": Quote(
        ("progress",), "docs/guide/storage.md", "pgdyno storage . --seconds 2 --size 1g 2>&1", _after("file of 1024 MB")
    ),
    "load": Quote(
        ("progress",), "README.md", "pgdyno load tpcb --scale 1000 --data c3", lambda text: _line(text, "done in")
    ),
}
_MARKED = re.compile(r"<!-- make docs: (\w+) (\w+) -->\n```\n(.*?)```\n", re.DOTALL)


@cache
def digest(kind: str) -> str:
    """Return a digest of how a kind of output is printed, whatever the figures.

    `kind` is one of `RUNS`, whose summary is printed, or a file of the English catalogue; behind a colon, beginnings of
    the messages that count.
    """
    if kind in RUNS:
        out = io.StringIO()
        console = Console(file=out, width=80, highlight=False, markup=False)
        with tempfile.TemporaryDirectory() as folder:
            run = RUNS[kind](Path(folder))
            summary.render(view.build(RunAnalysis(reading.read(run)), with_charts=False), console)
        # Neither figures nor the width that they take.
        words = re.sub(r"[\d.,]*\d[\d.,]*[a-z%]*", "0", out.getvalue())
    else:
        name, _, prefixes = kind.partition(":")
        lines = (CATALOGUE / f"{name}.ftl").read_text(encoding="utf-8").splitlines()
        words = "\n".join(line for line in lines if line.startswith(tuple(prefixes.split(","))))
    return hashlib.sha256(" ".join(words.split()).encode()).hexdigest()


def digest_of(q: Quote) -> str:
    """Return the digest of a quote: it changes where something that prints it has changed."""
    return hashlib.sha256("".join(map(digest, q.printed_by)).encode()).hexdigest()[:12]


CATALOGUE = ROOT / "python" / "pgdyno" / "i18n" / "locale" / "en"
#: Runs that are made up, by kind.
RUNS = {
    "levels": lambda folder: synthetic.make_run(
        folder, synthetic.plans([2, 8], 3), lambda p, i, r: 900 * p.clients, name="levels"
    ),
    "compared": lambda folder: synthetic.make_run(
        folder,
        synthetic.plans([8], 5, setting=["on", "off"]),
        lambda p, i, r: (1000 if p.varied["setting"] == "on" else 1500) * r.uniform(0.99, 1.01),
        name="compared",
    ),
    "searched": lambda folder: synthetic.make_run(
        folder,
        synthetic.plans([8], 2, rate=["closed", 100.0, 200.0]),
        lambda p, i, r: 100.0,
        name="searched",
        manifest={"capacity": _CAPACITY},
    ),
}
_CAPACITY: dict[str, Any] = {
    "objective": "p99 < 5 ms", "figure": "p99", "below_ns": 5e6, "rate": 150.0, "low": 140.0, "high": 160.0,
    "closed_tps": 300.0, "narrow": True,
    "probes": [{"rate": r, "done": r, "latency_ns": 1e6, "holds": r < 150} for r in (100.0, 200.0) for _ in (1, 2)],
}  # fmt: skip


def stale() -> list[str]:
    """Quotes that another version has printed, and those that are not there."""
    found = set()
    out = []
    for page in dict.fromkeys(q.page for q in QUOTES.values()):
        for name, when, _ in _MARKED.findall((ROOT / page).read_text(encoding="utf-8")):
            found.add(name)
            if when != digest_of(QUOTES[name]):
                out.append(f"{page}: {name}")
    return out + [f"{q.page}: {name} is missing" for name, q in QUOTES.items() if name not in found]


def _cut(line: str) -> str:
    """Return a line that the guide has room for."""
    line = line.rstrip()
    return line if len(line) <= WIDTH else line[: WIDTH - 1].rstrip() + "…"


def requote(only: list[str]) -> None:
    """Run each command once and write its output; only those named in `only`, if any."""
    printed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="pgdyno-docs-") as folder, contextlib.ExitStack() as stack:
        # As root, the server's account must get through.
        Path(folder).chmod(0o755)
        env = {**os.environ, "COLUMNS": "80", "PATH": f"{BIN}:{os.environ['PATH']}"}
        # What still runs is stopped; of what is not there the refusal is nothing to read.
        end = partial(subprocess.run, cwd=folder, env=env, capture_output=True)
        for name in ("r1", "r2"):
            stack.callback(end, [BIN / "pgdyno", "cluster", "destroy", name])
        for name, q in QUOTES.items():
            if only and name not in only:
                continue
            if q.command not in printed:
                sys.stderr.write(f"{q.command}\n")
                for name_of, made in CLUSTERS.items():
                    if name_of in q.command.split() and made != q.command and not (Path(folder) / name_of).exists():
                        subprocess.run(made, shell=True, cwd=folder, env=env, check=True)
                done = subprocess.run(q.command, shell=True, cwd=folder, env=env, capture_output=True, text=True)
                text = done.stdout if done.stdout.strip() else done.stderr
                text = text.replace(f"{folder}/", "")
                printed[q.command] = "\n".join(_cut(line) for line in text.strip("\n").splitlines())
            page = ROOT / q.page
            block = (
                f"<!-- make docs: {name} {digest_of(q)} -->\n```\n{q.shown(printed[q.command]).strip(chr(10))}\n```\n"
            )
            old = page.read_text(encoding="utf-8")
            marked = re.compile(rf"<!-- make docs: {name} \w+ -->\n```\n.*?```\n", re.DOTALL)
            page.write_text(marked.sub(block.replace("\\", r"\\"), old), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes what the documentation quotes.")
    parser.add_argument("--reference", action="store_true", help="help texts and schema alone; runs nothing")
    parser.add_argument("--only", nargs="+", default=[], choices=list(QUOTES), help="some of the quotes")
    args = parser.parse_args()
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
    if not args.reference:
        requote(args.only)
