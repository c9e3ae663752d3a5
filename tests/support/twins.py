"""Runs one command line with the installed pgbench and with ours, and makes their answers comparable."""

from __future__ import annotations

import difflib
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.cli import environment
from tests.support.server import Server

OURS = Path(sys.executable).parent / "pgbench"


@dataclass
class Answer:
    code: int
    out: str
    err: str


@dataclass
class Case:
    """A command line; scripts are written to files of these names in the working folder."""

    name: str
    options: str
    scripts: dict[str, str] = field(default_factory=dict)
    #: SQL before each of the two runs.
    before: str = ""
    #: Compare standard error as a set of lines: several clients speak in any order.
    unordered: bool = False
    env: dict[str, str] = field(default_factory=dict)
    stdin: str = ""


#: What differs from run to run: figures with a unit, and what comes of them.
_NORMAL = (
    (r"\d+\.\d+ ms", "N ms"),
    (r"tps = \d+\.\d+", "tps = N"),
    (r"\d+\.\d+ tps", "N tps"),
    (r"stddev \d+\.\d+", "stddev N"),
    (r"avg \d+\.\d+ \(max \d+\.\d+\) ms", "avg N (max N) ms"),
    (r"elapsed \d+\.\d+ s, remaining \d+\.\d+ s", "elapsed N s, remaining N s"),
    (r"\d+\.\d\d s", "N s"),
    (r"^ +\d+\.\d{3}(  +\d+)", r"   N\1"),
    (r"\d{10}\.\d{3} s", "EPOCH s"),
    (r"random seed to \d+", "random seed to N"),
    (r"\(pgdyno [\d.]+\)", ""),
    (r"actually processed: \d+$", "actually processed: N"),
)


def normal(text: str, ours: bool) -> str:
    if ours:
        text = "\n".join(line for line in text.split("\n") if not line.startswith("client-bound: "))
    else:
        # Standard error begins with the program's path when getopt speaks.
        text = re.sub(r"^\S+/pgbench: ", "pgbench: ", text, flags=re.M)
    for pattern, replacement in _NORMAL:
        text = re.sub(pattern, replacement, text, flags=re.M)
    # How often a client looks for an answer is its own affair.
    lines = [line.rstrip() for line in text.split("\n") if not re.fullmatch(r"pgbench: client \d+ receiving", line)]
    return "\n".join(lines)


def answer(program: Path, case: Case, folder: Path, server: Server | None, dbname: str) -> Answer:
    where = {}
    if server is not None:
        where = {"PGHOST": str(server.socket), "PGPORT": str(server.port), "PGUSER": "postgres", "PGDATABASE": dbname}
        if case.before:
            server.sql(case.before, dbname=dbname)
    words = [program, *shlex.split(case.options)]
    for name, text in case.scripts.items():
        (folder / name.split("@")[0]).write_text(text)
        words += ["-f", name]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=folder, env=environment(**{**where, **case.env}), timeout=120,
        check=False, input=case.stdin,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return Answer(done.returncode, done.stdout, done.stderr)


def compare(case: Case, folder: Path, server: Server | None, pgbench: Path, dbname: str = "postgres") -> None:
    """Fails where the two differ in exit code, standard output or standard error."""
    theirs = answer(pgbench, case, folder, server, dbname)
    ours = answer(OURS, case, folder, server, dbname)
    err = [normal(a.err, a is ours) for a in (theirs, ours)]
    out = [normal(a.out, a is ours) for a in (theirs, ours)]
    if case.unordered:
        err = ["\n".join(sorted(e.split("\n"))) for e in err]
    shown = f"{case.name}: pgbench ends with {theirs.code}, ours with {ours.code}\n--- ours\n{ours.out}\n{ours.err}"
    assert ours.code == theirs.code, shown + f"\n--- pgbench\n{theirs.out}\n{theirs.err}"
    for (theirs_said, ours_said), stream in ((out, "standard output"), (err, "standard error")):
        lines = difflib.unified_diff(
            theirs_said.split("\n"), ours_said.split("\n"), "pgbench", "ours", n=1, lineterm=""
        )
        assert ours_said == theirs_said, f"{case.name}: {stream}\n" + "\n".join(lines)
