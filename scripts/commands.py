"""Runs each command of the README and the guide, shortened, and reports those that fail: part of `make docs`.

Names of servers, runs and files stand for ones that are made here. Seconds, sizes and rounds are fewer.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pgdyno.cluster import binaries

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
#: Seconds for one command.
PATIENCE_S = 900

#: Commands that are named, not given to be typed: a verb alone, or with an ellipsis.
_NAMED = re.compile(r"pgdyno( [a-z]+){1,2}( --(live|fail-if '[^']*'|rate 0))?|.*\.\.\.( .*)?")
#: Commands that cannot be run here, each with the reason.
NOT_RUN = {
    "pgdyno drill patroni.toml": "needs a Patroni cluster: tests/live/drill/test_foreign.py",
    "pgdyno run quick --vary version=17,18": "needs a second version: tests/live/test_run.py",
    "pgdyno cluster flashback r2 --to '": "a time of its day",
    "pgdyno cluster flashback r2 --to 0/": "a position of its day",
    "pgdyno cluster repair NAME": "the same as of r1",
    "pgdyno run RUN": "goes on with a run that was interrupted, and there is none: tests/live/test_run.py",
    "pgdyno run shop.toml --target mysql:": "needs a MariaDB: tests/live/test_mysql.py",
    "pgdyno compare base/* $(printf": "the same as of A1 A2 A3, in folders",
    "pgdyno run pk-oltp --target mysql:": "needs a MariaDB: tests/live/test_mysql.py",
    "pgdyno run pk-oltp --shrink 5000 --against mariadb": "needs a MariaDB: tests/live/test_against.py",
    "pgdyno drill r --fault": "needs 60 rounds; the same as of r1",
}
#: What stands in the guide, and what it stands for here.
_STANDS_FOR = [
    (r'"host=db1 dbname=bench" "host=db2 dbname=bench"', '"$C1 dbname=bench" "$C5 dbname=bench"'),
    (r'"host=db1 dbname=bench user=me"|"host=db[12] dbname=bench"|"dbname=bench"|"\.\.\."', '"$C1 dbname=bench"'),
    (r'"host=copy dbname=shop"', '"$C1 dbname=copy"'),
    (r'"(host=db1 )?dbname=shop"', '"$C1 dbname=shop"'),
    (r"\b(BASE|RUN_A|A1) (HEAD|RUN_B|A2)( A3)?", r"$RUNS"),
    (r"--side-b B1 --side-b B2 --side-b B3", "--side-b $RUN4 --side-b $RUN5 --side-b $RUN6"),
    (r"--live A B\b", '--live "$C1 dbname=bench" "$C5 dbname=bench"'),
    (r"cluster create c1$", "cluster create c6"),
    (r"SEARCH_A SEARCH_B", "$SEARCH1 $SEARCH2"),
    (r"\bRUN\.\.\.", "$RUN1 $RUN2"),
    (r"\bRUN(_DIRECTORY)?\b", "$RUN1"),
    (r"\bFILE\.csv", "levels.csv"),
    (r"\bFILE\.\.\.", "before.txt"),
    (r"pgdyno run FILE", "pgdyno run bench.toml"),
    (r"\bNAME\b", "r1"),
    # Here several experiments lie in one folder.
    (r"history (runs|nights)(?! --experiment)", r"history \1 --experiment quick"),
    (r"/srv/data", "."),
    (r"--data /var/lib/postgresql/18/main", "--data c4"),
    (r"run nightly", "run nightly.toml"),
    (r"restore \S+ c2", "restore $(ls templates | head -1) c2"),
    # Less of everything.
    (r"--duration \d+", "--duration 2"),
    (r"--seconds \d+", "--seconds 4"),
    (r"--for \d+", "--for 6"),
    (r"--every \w+", "--every 8s --times 1"),
    (r"--warehouses 1000 --data", "--warehouses 1 --data"),
    (r"--warehouses 100 ", "--warehouses 1 "),
    (r"--scale (50|100|1000) ", "--scale 2 "),
    (r"--scale (50|100)$", "--scale 2"),
    (r"--scale (50|100)(?= --d)", "--scale 2"),
    (r"--rows 1000000 ", "--rows 1000 "),
    (r"--rounds \d+", "--rounds 1"),
    (r"--restarts \d+", "--restarts 2"),
    (r"--clients 64", "--clients 8"),
    (r"-T 60", "-T 2"),
    (r"--shrink 10000", "--shrink 1000000"),
]
#: Options that shorten a verb, where the command does not have them.
_SHORT = {
    "run": {"--duration": "2", "--warmup": "0.5", "--repetitions": "1"},
    "drill": {"--rounds": "1"},
    "explain --verify": {"--budget": "60s", "--top": "1"},
    "capture": {"--seconds": "4"},
    "capacity": {"--duration": "1", "--warmup": "0.2", "--scale": "1"},
    "compare --live": {"--duration": "5", "--scale": "1"},
    "storage": {"--seconds": "1", "--size": "64m"},
    "tpcc acid": {"--warehouses": "1"},
}
#: Exit codes of a command that did what it is for; 6 is what `--fail-if` names.
_GOOD = {0, 1, 6}

_SETUP = r"""
set -e
pgdyno cluster create c1 --set shared_preload_libraries=pg_stat_statements --set pg_stat_statements.track=top \
  --set logging_collector=on \
  --set log_destination=csvlog --set log_min_duration_statement=0
pgdyno cluster create c4; pgdyno cluster create c5; pgdyno cluster start c1; pgdyno cluster start c5
export PGHOST=$PWD/c1/socket PGUSER=postgres PGDATABASE=postgres
createdb bench; createdb shop; createdb copy; createdb -h $PWD/c5/socket bench
pgdyno cluster start c4; createdb -h $PWD/c4/socket bench; pgdyno cluster stop c4
pgbench -i -q -s 1 shop; pgbench -i -q -s 1 copy
psql -q -d shop -c "create extension pg_stat_statements"
pgbench -n -S -c 2 -T 3 shop > first.txt 2>&1
cat c1/data/log/*.csv > postgresql.csv
psql -q -c "alter system set log_min_duration_statement = -1" -c "select pg_reload_conf()" > reload.txt
for n in 1 2; do pgbench -n -S -c 2 -T 12 -P 1 shop > $n.txt 2>&1; done; mv 1.txt before.txt; mv 2.txt after.txt
pg_dump -s shop > schema.sql
printf 'clients,tps\n1,100\n2,190\n4,350\n8,500\n16,600\n' > levels.csv
short="--embedded --quiet --clients 2 --hot-set 1 --scale 1 --duration 1 --warmup 0.2 --repetitions 1"
for n in 1 2 3 4 5 6; do pgdyno run quick $short --restarts 2 --runs runs || test $? = 1; done
pgdyno new nightly.toml
pgdyno run nightly.toml --embedded --quiet --scale 1 --duration 1 --warmup 0.2 --repetitions 1 --clients 2 \
  --runs runs || test $? = 1
cp -r runs nights
for n in 1 2; do pgdyno capacity --slo 'p99<50ms' --embedded --scale 1 --quiet --duration 0.5 --warmup 0.1 \
  --runs searches || test $? = 1; done
pgdyno run quick --embedded --quiet --clients 1,2,4,8 --hot-set 1 --scale 1 --duration 1 --warmup 0.2 --runs levels ||
  test $? = 1
pgdyno new bench.toml
mkdir -p templates
"""


def commands(page: Path) -> Iterator[str]:
    """Yield the commands of pgdyno on a page: of code, of indented lines, and between backticks."""
    text = page.read_text(encoding="utf-8")
    # What a quote shows is a program's own.
    text = re.sub(r"<!-- make docs: .*?```\n.*?```\n", "", text, flags=re.DOTALL)
    fences = "\n".join(re.findall(r"```\w*\n(.*?)```", text, re.DOTALL))
    indented = "\n".join(re.findall(r"^    (\S.*)$", text, re.MULTILINE))
    spans = "\n".join(re.findall(r"`(pgdyno [^`]*)`", text))
    for command in re.findall(r"(?:^|; |&& )(pgdyno [a-z][^\n#;&|]*)", f"{fences}\n{indented}\n{spans}", re.MULTILINE):
        yield re.split(r" {3,}", command.strip())[0]


def guide() -> list[Path]:
    """Return the README and the pages of the guide."""
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


def typed() -> list[str]:
    """Return each command that a reader may type, once."""
    found = dict.fromkeys(c for page in guide() for c in commands(page))
    return [c for c in found if not _NAMED.fullmatch(c) or c in ("pgdyno experiments", "pgdyno run tpcc")]


def shortened(command: str) -> str | None:
    """Return what is run for a command; None: it is not run here."""
    if any(command.startswith(x) for x in NOT_RUN):
        return None
    for pattern, meant in _STANDS_FOR:
        command = re.sub(pattern, meant, command)
    words = command.split()
    for verb, options in _SHORT.items():
        first, _, with_option = verb.partition(" ")
        is_verb = words[1] == first and (not with_option or with_option in words)
        if is_verb and "$RUN1" not in command.partition("run ")[2][:5] and "--list" not in words:
            command += "".join(f" {o} {v}" for o, v in options.items() if o not in words)
    return command


def run(only: str = "") -> int:
    """Run the commands that contain `only` in a folder of their own; return the number that failed."""
    failed = []
    with tempfile.TemporaryDirectory(prefix="pgdyno-commands-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        env = {**os.environ, "COLUMNS": "80", "PATH": f"{_pg_bin()}:{BIN}:{os.environ['PATH']}"}
        env |= {"PGDYNO_TEMPLATES": f"{name}/templates"}
        try:
            subprocess.run(["bash", "-c", _SETUP], cwd=folder, env=env, check=True, capture_output=True, text=True)
            runs, searches = (sorted((folder / x).iterdir()) for x in ("runs", "searches"))
            env |= {f"RUN{n}": str(r) for n, r in enumerate(runs, 1)} | {"RUNS": f"{runs[0]} {runs[1]}"}
            env |= {f"SEARCH{n}": str(r) for n, r in enumerate(searches, 1)}
            env |= {"C1": f"host={name}/c1/socket user=postgres"}
            env["C5"] = f"host={name}/c5/socket user=postgres"
            env["RUN7"] = str(next((folder / "levels").iterdir()))
            for command in typed():
                meant = shortened(command)
                if meant is None or only not in command:
                    continue
                if problem := _problem(meant, folder, env):
                    failed.append(command)
                    sys.stdout.write(f"FAILED {command}\n  ran: {meant}\n  {problem}\n")
                sys.stdout.flush()
        except subprocess.CalledProcessError as e:
            sys.stdout.write(f"what the commands need could not be made:\n{e.stderr}\n")
            return 1
        finally:
            for cluster in ("c1", "c2", "c4", "c5", "c6", "r1", "r2", "was"):
                subprocess.run(
                    [BIN / "pgdyno", "cluster", "destroy", cluster], cwd=folder, env=env, capture_output=True
                )
    sys.stdout.write(f"{len(typed()) - len(failed)} of {len(typed())} commands work or are not run here\n")
    return len(failed)


def _problem(command: str, folder: Path, env: dict[str, str]) -> str:
    begun = time.monotonic()
    words = shlex.split(command)
    before = _needed(words)
    if words[1] == "pgbench":
        env = env | {"PGHOST": f"{folder}/c1/socket", "PGUSER": "postgres"}
        before += "pgbench -i -q -s 1 bench > /dev/null 2>&1; "
    if "scaling" in words:
        command = command.replace("$RUN1", "$RUN7")
    if words[1:3] == ["cluster", "link"] and len(words) > 4:
        # It goes on until it is interrupted.
        command = f"timeout -s INT --preserve-status 10 {command} || test $? = 130"
    try:
        done = subprocess.run(
            ["bash", "-c", f"{before}{command}"],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        return f"took more than {PATIENCE_S} s"
    sys.stderr.write(f"{time.monotonic() - begun:5.1f} s  {done.returncode}  {command}\n")
    return "" if done.returncode in _GOOD else f"exit code {done.returncode}: {done.stderr.strip()[-600:]}"


def _needed(words: list[str]) -> str:
    """Return the commands that make the cluster which a command names, and put it into the state that it is for."""
    made = {
        "r1": "pgdyno cluster create r1 --standbys 2 --sync 'ANY 1 (*)'",
        "r2": "pgdyno cluster create r2 --standbys 2 --archive",
    }
    out = ""
    for name, how in made.items():
        if name in words and "create" not in words:
            out += f"test -d {name} || {how} > /dev/null 2>&1; pgdyno cluster start {name} > /dev/null 2>&1; "
    if "create" in words and words[3] in made:
        out += f"pgdyno cluster destroy {words[3]} > /dev/null 2>&1; "
    if "failover" in words and words[1] == "cluster":
        # Anew: an earlier switchover may have made another node the primary.
        out += f"pgdyno cluster destroy r1 > /dev/null 2>&1; {made['r1']} > /dev/null 2>&1; "
        out += "kill -9 $(head -1 r1/node1/data/postmaster.pid); "
    if "flashback" in words:
        out += "pgdyno cluster destroy was > /dev/null 2>&1; pgdyno cluster snapshot r2 > /dev/null 2>&1; "
    on_server = any("$C1" in w for w in words)
    if "c1" in words or on_server:
        out += f"pgdyno cluster {'start' if on_server else 'stop'} c1 > /dev/null 2>&1; "
    if on_server and any("dbname=bench" in w for w in words):
        anew = "for c in dropdb createdb; do $c -U postgres -h $PWD/$h/socket bench; done"
        out += f"for h in c1 c5; do {anew}; done; "
    if "--through-pooler" in words:
        out += "pgdyno cluster destroy r1 > /dev/null 2>&1; "
        out += f"{made['r1']} --pooler > /dev/null 2>&1; pgdyno cluster start r1 > /dev/null 2>&1; "
    if "capture" in words:
        # There must be statements to capture, while it looks.
        out += "(pgbench -U postgres -h $PWD/c1/socket -n -S -c 2 -T 12 shop > /dev/null 2>&1 &); sleep 1; "
    if words[1] == "new":
        # It may write files of SQL beside, which others here need as they are.
        out += "mkdir -p fresh && cd fresh; " if "--kind" in words else ""
        out += f"rm -f {words[2]}; "
    return out


def _pg_bin() -> Path:
    """Return the folder of the embedded server's programs."""
    folder = binaries.wheel_folder()
    assert folder is not None, "pgdyno[embedded] is not installed"
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="commands that contain this")
    parser.add_argument("--list", action="store_true", help="show what would be run")
    args = parser.parse_args()
    # Clusters are removed whatever ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if args.list:
        for c in typed():
            sys.stdout.write(f"{c}\n    {shortened(c) or 'not run here'}\n")
        sys.exit(0)
    sys.exit(1 if run(args.only) else 0)
