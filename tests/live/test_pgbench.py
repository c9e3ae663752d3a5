"""What pgdyno's pgbench adds to pgbench's, and how it ends when things go wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgdyno.store import hlog

from tests.support.cli import PGDYNO, Result, environment
from tests.support.server import Server
from tests.support.twins import OURS
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def made(server: Server) -> Iterator[str]:
    """A database with pgbench's tables, made by ours."""
    server.sql("create database bench")
    assert pgbench(server, "-i", "-q").code == 0
    yield "bench"
    server.sql("drop database bench with (force)")


def where(server: Server, dbname: str = "bench") -> dict[str, str]:
    return {"PGHOST": str(server.socket), "PGPORT": str(server.port), "PGUSER": "postgres", "PGDATABASE": dbname}


def pgbench(server: Server, *args: Any, **env: str) -> Result:
    done = subprocess.run(
        [OURS, *map(str, args)], capture_output=True, text=True, env=environment(**{**where(server), **env}),
        timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return Result(done.returncode, done.stdout, done.stderr)


def figure(text: str, name: str) -> float:
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    return float(line.removeprefix(name).split("=")[-1].split()[0])


def test_percentiles_json_and_histograms_agree(server: Server, made: str, tmp_path: Path) -> None:
    document, histograms = tmp_path / "o.json", tmp_path / "o.hlog"
    r = pgbench(
        server, "-n", "-S", "-N", "-T2", "-c4", "-r", "-P1", "--percentiles=50,99.9",
        f"--json={document}", f"--histogram-log={histograms}",
    )  # fmt: skip
    assert r.code == 0, r.err
    found = json.loads(document.read_text())
    assert figure(r.out, "latency p50") == pytest.approx(found["latency"]["percentiles_ms"]["50"], abs=0.0006)
    assert figure(r.out, "tps") == pytest.approx(found["tps"], rel=1e-6)
    assert f"processed: {found['transactions']['committed']}\n" in r.out
    # Of both scripts and all their commands.
    assert r.out.count(" - latency p99.9 = ") == 2
    assert r.out.count("(average, p50, p99.9) and failures:") == 2
    (update,) = [line for line in r.out.splitlines() if "UPDATE pgbench_accounts" in line]
    average, p50, p999, failures = update.split()[:4]
    assert float(p50) <= float(p999) and float(average) > 0 and failures == "0"
    assert sum(s["committed"] for s in found["scripts"]) == found["transactions"]["committed"]
    assert sum(row["committed"] for row in found["series"]) == found["transactions"]["committed"]
    starts = {round(row["start_s"] * 1e9) for row in found["series"]}
    merged = hlog.read_merged(histograms, starts)
    assert merged["transaction"].count == found["transactions"]["committed"]
    assert merged["script-0"].count == found["scripts"][0]["committed"]


def test_an_aggregated_log_can_hold_percentiles(server: Server, made: str, tmp_path: Path) -> None:
    prefix = tmp_path / "agg"
    r = pgbench(
        server, "-n", "-S", "-T2", "-l", "--aggregate-interval=1", f"--log-prefix={prefix}", "--percentiles=50,99"
    )
    assert r.code == 0, r.err
    (log,) = tmp_path.glob("agg.*")
    rows = [line.split() for line in log.read_text().splitlines()]
    assert all(len(row) == 17 for row in rows)
    assert f"processed: {sum(int(row[1]) for row in rows)}\n" in r.out
    assert all(int(row[4]) <= int(row[15]) * 1.001 <= int(row[16]) * 1.002 for row in rows if int(row[1]))


@pytest.mark.slow
def test_lost_connections_are_made_again(server: Server, made: str, tmp_path: Path) -> None:
    stop = threading.Event()
    ours = "from pg_stat_activity where application_name = 'pgbench' and query like 'SELECT abalance%'"

    def shoot() -> None:
        """All four, once they are at work; and those that came after them."""
        shot: set[int] = set()

        def others() -> set[int]:
            return {pid for (pid,) in server.sql(f"select pid {ours}")} - shot

        for _ in range(2):
            wait_until(lambda: len(others()) == 4)
            there = others()
            server.sql(f"select pg_terminate_backend(pid) {ours}")
            shot |= there
        stop.set()

    def shoot_once() -> None:
        wait_until(lambda: server.sql(f"select pid {ours}"))
        server.sql(f"select pg_terminate_backend(pid) {ours}")

    shooter = threading.Thread(target=shoot)
    shooter.start()
    document = tmp_path / "o.json"
    r = pgbench(server, "-n", "-S", "-T5", "-c4", "--reconnect", f"--json={document}")
    shooter.join()
    assert stop.is_set()
    assert r.code == 0, r.err
    found = json.loads(document.read_text())
    assert found["connections"]["lost"] >= 4
    assert found["connections"]["made_again"] == found["connections"]["lost"]
    assert f"number of connections lost: {found['connections']['lost']}" in r.out
    assert "connecting again" in r.err and "is connected again" in r.err
    # Without it, the same ends the clients.
    shooter = threading.Thread(target=shoot_once)
    shooter.start()
    r = pgbench(server, "-n", "-S", "-T30", "-c4")
    shooter.join()
    assert r.code == 2
    assert "terminating connection due to administrator command" in r.err
    assert "Run was aborted; the above results are incomplete." in r.err


def test_clients_are_spread_over_targets(server: Server, made: str, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text("INSERT INTO seen VALUES (:client_id);\n")
    for name in ("left_side", "right_side"):
        server.sql(f"drop database if exists {name}")
        server.sql(f"create database {name}")
        server.sql("create table seen (n int)", dbname=name)
    targets = [f"--target={server.conninfo(dbname=name)}" for name in ("left_side", "right_side")]
    r = pgbench(server, "-n", "-f", script, "-c5", "-j2", "-t3", *targets)
    assert r.code == 0, r.err
    seen = [server.sql("select distinct n from seen order by 1", dbname=n) for n in ("left_side", "right_side")]
    assert seen == [[(0,), (2,), (4,)], [(1,), (3,)]]
    for name in ("left_side", "right_side"):
        server.sql(f"drop database {name}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "expected"),
    [(["--rate=500"], 1000), (["--rate=100..900/2s"], 1000), (["--rate=400", "--arrivals=constant"], 800)],
)
def test_rates(server: Server, made: str, rate: list[str], expected: int) -> None:
    r = pgbench(server, "-n", "-S", "-T2", "-c4", *rate)
    assert r.code == 0, r.err
    n = int(r.out.split("actually processed: ")[1].split()[0])
    # Poisson: five standard deviations; constant: to the one.
    allowed = 2 if "--arrivals=constant" in rate else 5 * expected**0.5
    assert abs(n - expected) <= allowed


@pytest.mark.parametrize("rate", ["100..x/2s", "1..2", "5..9/0s", "0..9/2s", "-5"])
def test_rates_that_make_no_sense(server: Server, rate: str) -> None:
    r = pgbench(server, "-n", "-S", f"--rate={rate}")
    assert r.code == 1 and "invalid rate limit" in r.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--percentiles=0"], "invalid percentiles"),
        (["--percentiles=a"], "invalid percentiles"),
        (["--arrivals=odd", "-R1"], "invalid arrivals"),
        (["--arrivals=constant"], "--arrivals is allowed only with --rate"),
        (["--json=/no/such/folder/x"], 'could not open file "/no/such/folder/x": No such file'),
        (["--histogram-log=/no/such/folder/x"], "could not open file"),
        (["-l", "--log-prefix=/no/such/folder/x"], 'could not open logfile "/no/such/folder/x.'),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(
    server: Server, made: str, options: list[str], message: str
) -> None:
    # The table that -N writes to, not the statistics: those also count what earlier sessions flush late.
    before = server.sql("select count(*) from pgbench_history", dbname="bench")
    r = pgbench(server, "-n", "-N", "-t5", *options)
    assert (r.code, message in r.err) == (1, True), r.err
    assert "tps" not in r.out
    assert server.sql("select count(*) from pgbench_history", dbname="bench") == before


def test_a_full_disk_does_not_hide_the_figures(server: Server, made: str) -> None:
    r = pgbench(server, "-n", "-S", "-t2000", "-l", "--log-prefix=/dev/full", "--json=/dev/full")
    assert r.code == 1
    # /dev/full.PID is an ordinary file in /dev; the JSON goes to /dev/full itself.
    for left in Path("/dev").glob("full.*"):
        left.unlink()
    assert "number of transactions actually processed: 2000/2000" in r.out
    assert "No space left on device" in r.err


def test_ctrl_c_keeps_what_was_measured(server: Server, made: str, tmp_path: Path) -> None:
    document = tmp_path / "o.json"
    rows = "select count(*) from pgbench_history"
    before = server.sql(rows, dbname=made)[0][0]
    process = subprocess.Popen(
        [OURS, "-n", "-N", "-T60", "-c2", f"--json={document}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**where(server)),
    )  # fmt: skip
    wait_until(lambda: server.sql(rows, dbname=made)[0][0] > before + 200, 20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err and "interrupted" in err
    assert "tps = " in out
    found = json.loads(document.read_text())
    assert found["transactions"]["committed"] > 100 and found["elapsed_s"] < 30
    assert found["complete"] is False


def test_a_busy_client_says_so(server: Server, made: str, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text("\\set x 1\n" * 2000)
    document = tmp_path / "run.json"
    r = pgbench(server, "-n", "-f", script, "-T1", f"--json={document}")
    assert r.code == 0, r.err
    found = json.loads(document.read_text())
    # It never rests: on a machine that does other work as well it waits for what it does not get of the CPU.
    assert found["client_cpu_share"] + found["client_run_delay_share"] > 0.8
    if found["client_cpu_share"] > 0.9:
        assert "client-bound: the busiest thread used" in r.out


@pytest.mark.slow
@pytest.mark.alone
def test_a_server_that_stalls_is_no_busy_client(server: Server, made: str, tmp_path: Path) -> None:
    """For 2 s of 4 nothing is answered: transactions begin late, and the client has all the time that it wants."""
    script = tmp_path / "s.sql"
    script.write_text("update pgbench_branches set bbalance = bbalance + 1 where bid = 1;\n")
    with psycopg.connect(server.conninfo(dbname=made)) as conn:
        conn.execute("lock table pgbench_branches in access exclusive mode")

        def unlock_later() -> None:
            """Two seconds after all four wait."""
            waiting = "select count(*), max(clock_timestamp() - waitstart) > '2s' from pg_locks where not granted"
            wait_until(lambda: server.sql(waiting)[0][0] >= 4 and server.sql(waiting)[0][1], 60)
            conn.rollback()

        unlock = threading.Thread(target=unlock_later)
        unlock.start()
        r = pgbench(server, "-n", "-f", script, "-T4", "-c4", "--rate=200")
        unlock.join()
    assert r.code == 0, r.err
    lag = float(r.out.split("rate limit schedule lag: avg ")[1].split()[0])
    assert lag > 100, "what was due in the stall was begun behind it"
    assert "client-bound" not in r.out


def test_failures_of_several_kinds_are_told_apart(server: Server, made: str, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text(
        "\\set n random(1, 4)\nDO $$ BEGIN IF :n = 1 THEN RAISE 'x' USING ERRCODE='40001'; ELSIF :n = 2 THEN\n"
        "RAISE 'y' USING ERRCODE='40P01'; ELSIF :n = 3 THEN RAISE 'z'; END IF; END $$;\n"
    )
    r = pgbench(server, "-n", "-f", script, "-t50", "-c2", "--continue-on-error", "--failures-detailed", "-r")
    assert r.code == 0, r.err
    kinds = ("serialization failures", "deadlock failures", "other failures")
    counts = [int(r.out.split(f"number of {k}: ")[1].split()[0]) for k in kinds]
    total = int(r.out.split("number of failed transactions: ")[1].split()[0])
    assert sum(counts) == total and all(counts)


def test_pgdyno_and_pgbench_are_one_program(server: Server, tmp_path: Path) -> None:
    pgdyno = OURS.parent / "pgdyno"
    said = [
        subprocess.run([*words, "-V"], capture_output=True, text=True, check=True).stdout
        for words in ([OURS], [pgdyno, "pgbench"])
    ]
    assert said[0] == said[1]
    assert said[0].startswith("pgbench (PostgreSQL) 18.")
    link = tmp_path / "pgbench"
    link.symlink_to(OURS)
    assert subprocess.run([link, "--help"], capture_output=True, text=True, check=True).stdout.startswith(
        "pgbench is a"
    )


@pytest.mark.parametrize(
    "options",
    [["-L", "1e400"], ["-t", "9" * 5000], ["--random-seed", "9" * 5000], ["-b", f"se@{'9' * 5000}"], ["-R", "1e999"],
     ["-f", b"\xff\xfe"], [b"-Dx=\xff"], ["--max-tries", "9" * 5000]],
)  # fmt: skip
def test_odd_arguments_are_answered_not_traced(server: Server, made: str, options: list[Any]) -> None:
    done = subprocess.run(
        [OURS, "-n", "-S", "-t1", *options],
        capture_output=True,
        env=environment(**where(server)),
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 1), done


def test_an_earlier_result_stays_until_there_is_another(server: Server, made: str, tmp_path: Path) -> None:
    document = tmp_path / "o.json"
    document.write_text("precious")
    assert pgbench(server, "-n", "-S", f"--json={document}", PGPORT="1").code == 1
    script = tmp_path / "s.sql"
    script.write_text("SELECT 1/0;\n")
    assert pgbench(server, "-n", "-f", script, "--exit-on-abort", f"--json={document}").code == 2
    assert document.read_text() == "precious"
    assert pgbench(server, "-n", "-S", f"--json={document}").code == 0
    assert json.loads(document.read_text())["complete"] is True
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o.json", "s.sql"]


@pytest.mark.parametrize("words", [["-n", "-S", "-t1"], ["--help"], ["-V"]])
def test_standard_output_may_be_full_or_closed(server: Server, made: str, words: list[str]) -> None:
    for redirection in (">/dev/full", ">&-"):
        done = subprocess.run(
            ["/bin/sh", "-c", f'"$0" "$@" {redirection}', OURS, *words], capture_output=True, text=True,
            env=environment(**where(server)), timeout=60, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr


def test_a_session_that_dies_while_setting_up_is_told(server: Server, made: str) -> None:
    stop = threading.Event()

    def shoot() -> None:
        while not stop.is_set():
            server.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity where query like 'copy pgbench_accounts%'"
            )

    shooter = threading.Thread(target=shoot)
    shooter.start()
    try:
        r = pgbench(server, "-i", "-q", "-s", "20")
    finally:
        stop.set()
        shooter.join()
    assert r.code == 1, r
    assert "pgbench: error: query failed: " in r.err
    assert pgbench(server, "-i", "-q").code == 0


def test_a_database_of_any_bytes(server: Server, tmp_path: Path) -> None:
    """SQL_ASCII: the session speaks as the database does, so that no byte is refused on its way."""
    server.sql("drop database if exists anything")
    server.sql("create database anything encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0")
    script = tmp_path / "bytes.sql"
    script.write_text("select E'\\351' as x \\gset\nselect ':x';\nselect 1 / (octet_length(':x') = 1)::int;\n")
    done = subprocess.run(
        [OURS, "-n", "-t3", "-f", script, "anything"],
        capture_output=True,
        env=environment(**where(server)),
        check=False,
    )
    assert done.returncode == 0 and b"processed: 3/3" in done.stdout, done
    server.sql("drop database anything")


def test_it_is_called_pgbench(server: Server, made: str) -> None:
    """Who looks for it among the processes looks for its first word."""
    process = subprocess.Popen(
        [OURS, "-n", "-S", "-T5", "-c2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=environment(**where(server)),
    )  # fmt: skip
    try:
        shown = Path(f"/proc/{process.pid}/cmdline")
        wait_until(lambda: shown.read_bytes().startswith(b"pgbench -n -S -T5 -c2"), 10, process=process)
    finally:
        process.terminate()
        process.wait()


def test_without_a_terminal_the_password_is_read_from_standard_input(server: Server) -> None:
    """As psql and pgbench read it; and no warning of Python's."""
    server.sql("drop role if exists asked; create role asked login password 'right'")
    info = server.conninfo(host="127.0.0.1", user="asked", dbname="postgres")
    for given, words in (("right\n", ""), ("", "password"), ("wrong\n", "authentication failed")):
        done = subprocess.run(
            [PGDYNO, "pgbench", "-n", "-t", "1", "-S", info],
            input=given, capture_output=True, text=True, env=environment(PGPASSFILE="/nonexistent"), check=False,
            start_new_session=True,
        )  # fmt: skip
        assert done.stderr.startswith("Password: ") and "Warning" not in done.stderr, done.stderr
        if given != "right\n":
            assert done.returncode == 1 and words in done.stderr, done.stderr
    server.sql("drop role asked")
