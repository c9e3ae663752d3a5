"""Whatever a server, or what is between, does to us: we end, we say what happened, and nothing is half there."""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.load import find
from pgdyno.load.dataset import Dataset

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.proxy import Fault, Proxy
from tests.support.server import Server
from tests.support.waiting import wait_until

ROWS = 3000
CALLS = {
    "load": ["load", "pk", "--rows", str(ROWS), "--connections", "2", "--force", "--connect-timeout", "2"],
    "run": ["run", "quick", "--scale", "1", "--clients", "2", "--duration", "1", "--warmup", "0.2",
            "--repetitions", "1", "--force", "--connect-timeout", "2"],
    "pgbench": ["pgbench", "-n", "-c2", "-t200", "-f"],
}  # fmt: skip
#: Seconds after which somebody wants it to end, and in which it must.
PATIENCE_S, END_S = 4, 30
#: More memory than any of them needs, whatever a server sends.
MEMORY_MIB = 200


def carried_out(verb: str, proxy: Proxy, dbname: str, folder: Path) -> tuple[int, str, bool]:
    """Exit code, what was said, and whether it had to be told to end."""
    words = [str(PGDYNO), *CALLS[verb]]
    if verb == "pgbench":
        script = folder / "script.sql"
        script.write_text("select 1;\n")
        words += [str(script), proxy.conninfo(dbname)]
    else:
        words += ["--target", proxy.conninfo(dbname), *(["--runs", str(folder)] if verb == "run" else [])]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment()
    )
    told = False
    try:
        said, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        told = True
        used = psutil.Process(process.pid).memory_info().rss
        process.send_signal(signal.SIGTERM)
        try:
            said, _ = process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert used < MEMORY_MIB << 20, used
    return process.returncode, said, told


def check(verb: str, fault: Fault, server: Server, folder: Path) -> str:
    """What must hold after any fault; returns what was said."""
    server.sql("drop database if exists faults with (force)")
    server.sql("create database faults")
    with Proxy(server, fault) as proxy:
        code, said, told = carried_out(verb, proxy, "faults", folder)
    case = f"{verb}, {fault}: exit code {code}\n{said}"
    assert "Traceback" not in said and "panicked" not in said, case
    assert code in ((-signal.SIGTERM, 143) if told and verb != "pgbench" else (0, 1, 2, 3, 143, -signal.SIGTERM)), case
    assert code == 0 or said.strip() or told, case
    # What a cut connection began may still be rolled back.
    busy = "select count(*) from pg_stat_activity where datname = 'faults' and pid <> pg_backend_pid()"
    wait_until(lambda: server.sql(busy, dbname="faults") == [(0,)], 10)
    if verb == "load":
        with administration.connect(targets.resolve(server.conninfo(dbname="faults"))) as conn:
            found = find.find(conn, Dataset("pk", ROWS))
        assert code != 0 or found.holds(Dataset("pk", ROWS)), case
        # What is there is whole, or says that it is not.
        if found.complete:
            assert server.sql("select count(*) from pk", dbname="faults") == [(ROWS,)], case
        else:
            assert not found.foreign and all(t.mark and t.mark.state for t in found.ours), case
    for run in folder.glob("*/manifest.json"):
        reported = pgdyno("report", run.parent)
        assert reported.code in (0, 1, 2, 3), reported.err
    return said


#: Others take their patience: they are among the slow ones.
QUICK = {("load", "cut"), ("run", "flood"), ("pgbench", "corrupt")}
CASES = [
    pytest.param(verb, kind, marks=[] if (verb, kind) in QUICK else [pytest.mark.slow])
    for verb in CALLS
    for kind in ("cut", "corrupt", "freeze", "flood", "delay")
]


@pytest.mark.parametrize(("verb", "kind"), CASES)
def test_a_fault_in_the_middle(verb: str, kind: str, server: Server, tmp_path: Path) -> None:
    """Once the sessions are there and at work."""
    check(verb, Fault(kind, after=25, detail=3, first=2), server, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_fault_at_any_moment(seed: int, server: Server, tmp_path: Path) -> None:
    rng = random.Random(seed)
    verb, kind = rng.choice(list(CALLS)), rng.choice(["cut", "corrupt", "freeze", "flood"])
    after, first = rng.choice([0, 1, 5, 14, 15, 16, 20, 40, 100]), rng.randrange(6)
    check(verb, Fault(kind, after, rng.randrange(4000), first), server, tmp_path)
