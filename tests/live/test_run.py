"""`pgdyno run` on real servers: the whole way from the command line to the report."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from pgdyno.cluster.scratch import PREFIX
from pgdyno.store import reading

from tests.support.cli import PGDYNO, SHORT, environment, pgdyno
from tests.support.server import Server
from tests.support.tells import tells
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def own_temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever another pgdyno on this machine does lies elsewhere. The servers' account must get in, and sockets need
    short names.
    """
    # The tests' own stays where it is.
    tmp_path_factory.getbasetemp()
    with tempfile.TemporaryDirectory(prefix="own-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


def left_behind() -> list[str]:
    """Clusters and servers of this test's that should be gone."""
    folders = [str(p) for p in Path(tempfile.gettempdir()).glob(f"{PREFIX}*")]
    servers = [" ".join(p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]
    return folders + [s for s in servers if f"{tempfile.gettempdir()}/{PREFIX}" in s]


def only_run(runs: Path) -> Path:
    (found,) = runs.iterdir()
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--duration", "10x"), 2, "is not a time"),
        (("--set", "shared_bufers=1GB"), 2, "did you mean shared_buffers?"),
        (("--vary", "work_mem"), 2, '--vary: "work_mem" is not of the form NAME=A,B'),
        (("--vary", "work_mem=4MB"), 2, "one value is no comparison"),
        (("--hot-set", "10"), 2, "for 10% give --hot-set 0.1"),
        (("--clients", "5000000"), 2, "--clients"),
        (("--clients", "90000"), 5, "90,000 clients need 90,200 file descriptors, and the limit is 4,096"),
    ],
)
def test_a_mistake_is_told_by_the_option_before_anything_is_made(
    tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    limited = ["prlimit", "--nofile=4096", PGDYNO, "run", "quick", "--embedded", "--runs", tmp_path, *words]
    done = subprocess.run(limited, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == code and said in " ".join(done.stderr.split()), done.stderr
    assert list(tmp_path.iterdir()) == [] and left_behind() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prepare", "sql"),
    [
        # A role that sees no row, a rule and a trigger that swallow updates, keys beyond the table, an empty table.
        ("alter table t enable row level security; alter table t owner to postgres; grant all on t to plain",
         "UPDATE t SET v = v + 1 WHERE id = 1"),
        pytest.param(
            "create rule r as on update to t do instead nothing",
            "UPDATE t SET v = v + 1 WHERE id = 1",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "create function nothing() returns trigger language plpgsql as 'begin return null; end'; "
            "create trigger g before update on t for each row execute function nothing()",
            "UPDATE t SET v = v + 1 WHERE id = 1",
            marks=pytest.mark.slow,
        ),
        ("", "SELECT v FROM t WHERE id = 1000000"),
        pytest.param("truncate t", "DELETE FROM t WHERE id = 1", marks=pytest.mark.slow),
    ],
)  # fmt: skip
@pytest.mark.parametrize("protocol", ["prepared", *(pytest.param(p, marks=pytest.mark.slow) for p in ("extended",))])
def test_work_that_was_not_done_is_said_first(
    server: Server, database: str, tmp_path: Path, prepare: str, sql: str, protocol: str
) -> None:
    server.sql("create table t (id int primary key, v int); insert into t select g, 0 from generate_series(1, 9) g",
               dbname=database)  # fmt: skip
    server.sql("do $$ begin create role plain login; exception when duplicate_object then null; end $$")
    if prepare:
        server.sql(prepare, dbname=database)
    text = (
        'name = "t"\ntitle = "t"\n[dataset]\nkind = "none"\n[workloads.w]\nEXPECT\n'
        f'scripts = [{{ text = "{sql};" }}]\n[axes]\nclients = [2]\nprotocol = ["{protocol}"]\n'
        "[run]\nduration_s = 0.3\nwarmup_s = 0\nrepetitions = 1\ncollect = []\n"
    )
    (tmp_path / "t.toml").write_text(text.replace("EXPECT", ""))
    user = "plain" if "plain" in prepare else "postgres"
    words = (
        "run",
        tmp_path / "t.toml",
        "--target",
        server.conninfo(dbname=database, user=user),
        "--runs",
        tmp_path / "r",
    )
    done = pgdyno(*words, "--json", "-q")
    assert done.code == 1 and tells(done.json["answer"][0], "answer-no-work"), done.err
    assert "in 100% of its" in done.json["answer"][0] and done.json["trials"][0]["caveats"].count("NO_WORK") == 1
    (tmp_path / "t.toml").write_text(text.replace("EXPECT", "expect_rows = true"))
    done = pgdyno(*words, "--json", "-q")
    assert done.code == 1 and done.json["trials"][0]["state"] == "failed"
    assert done.json["trials"][0]["error"].startswith("expect_rows: ")


def test_embedded_run_leaves_a_report_and_nothing_else(tmp_path: Path) -> None:
    before = left_behind()
    done = pgdyno("run", "quick", "--embedded", *SHORT, "--runs", tmp_path)
    assert done.code == 0, done.err
    assert (
        re.match(r"\s*read-only, 10% hot: [\d,]+ TPS ", done.out) and "read-write" in done.out and "p99.9" in done.out
    )
    assert max(len(line.rstrip()) for line in done.out.splitlines()) <= 80
    run = only_run(tmp_path)
    page = (run / "report.html").read_text()
    assert len(page) < 600_000
    # Offline: nothing is loaded from anywhere.
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=[\"']?(https?:)?//", page)
    assert "| read-write |" in (run / "report.md").read_text()
    data = reading.read(run)
    assert [t.state for t in data.trials] == ["finished"] * 4
    for t in data.trials:
        s = t.summary
        assert s is not None and s.committed > 0
        ends = s.committed + sum(s.failed.values()) + s.skipped + s.unknown + s.unfinished
        assert s.scheduled == ends
        assert s.latency.count == s.committed
        assert t.start_ns > 1_600_000_000 * 10**9
        # Point select: 1 statement; read-write: 5 and BEGIN and END.
        assert abs(s.qps / s.tps - (1 if t.plan.workload == "read-only" else 7)) < 0.2
        rows = data.series[t.plan.number]
        assert sum(r.committed for r in rows if r.phase != "warmup") == s.committed
    # 2 to 32 clients: all of a sweep are measured by the same means.
    assert len({t.summary.driver for t in data.trials if t.summary}) == 1
    settings = json.loads((run / "manifest.json").read_text())["server"]["settings"]
    assert settings["fsync"]["value"] == "on" and "shared_buffers" in settings
    assert (run / "server.log").read_text()
    assert left_behind() == before
    # What reads it again.
    again = pgdyno("report", run, "--details")
    assert again.code == 0 and "read-only QPS" in again.out and "read-write QPS" in again.out
    assert "UPDATE pgbench_acc" in again.out
    assert max(len(line.rstrip()) for line in again.out.splitlines()) <= 80
    rows = pgdyno(
        "sql", "select workload, count(*) n from trials group by all order by 1", "--runs", run, "--json"
    ).json
    assert rows == [{"workload": "read-only", "n": 2}, {"workload": "read-write", "n": 2}]
    assert "read-write" in pgdyno("sql", "select * from trials", "--runs", run).out
    assert pgdyno("sql", "", "--runs", run).code == 2
    blocked = pgdyno("sql", "select * from read_csv('/etc/passwd')", "--runs", run)
    assert blocked.code == 2 and tells(blocked.err, "error-query-failed")


@pytest.mark.slow
def test_a_run_in_chinese_has_both_reports(server: Server, database: str, tmp_path: Path) -> None:
    target = server.conninfo(dbname=database)
    few = ("--scale", 1, "--clients", 2, "--hot-set", 1, "--duration", 1, "--warmup", 0, "--repetitions", 1)
    done = pgdyno("run", "quick", "--target", target, *few, "--runs", tmp_path, "--lang", "zh")
    assert "目标：" in done.err and "次试验，每次" in done.err and "target: " not in done.err, done.err
    assert done.code == 0, done.err
    run = only_run(tmp_path)
    assert "连接" in done.out and f"报告：{run / 'report.zh.html'}" in done.err.replace("\n", " ")
    assert '<html lang="zh' in (run / "report.zh.html").read_text()
    assert '<html lang="en' in (run / "report.html").read_text()


@pytest.mark.slow
def test_a_users_server_by_conninfo_and_by_environment(server: Server, database: str, tmp_path: Path) -> None:
    done = pgdyno("run", "quick", "--target", server.conninfo(dbname=database), *SHORT, "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    assert (
        "creating pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers "
        f'in schema "public" of database "{database}"' in done.err
    )
    assert done.json["manifest"]["target"]["dbname"] == database
    counts = server.sql(
        "select count(*), min(bid), max(bid), sum(length(filler)) from pgbench_accounts", dbname=database
    )
    # length() of char(84) does not count the padding; its stored size does.
    assert counts == [(100_000, 1, 1, 0)]
    # Again: the dataset is found, not made anew.
    env = environment(PGHOST=str(server.socket), PGPORT=str(server.port), PGUSER="postgres", PGDATABASE=database)
    again = pgdyno("run", "quick", *SHORT, "--runs", tmp_path, env=env)
    assert again.code == 0, again.err
    assert tells(again.err, "progress-dataset-found", name="tpcb scale=1")
    # Another scale: replaced, since it is ours, and we say so.
    bigger = pgdyno("run", "quick", *SHORT, "--scale", 2, "--replace", "--runs", tmp_path, env=env)
    assert bigger.code == 0 and tells(bigger.err, "progress-replacing", what="tpcb scale=1")
    assert server.sql("select count(*) from pgbench_accounts", dbname=database) == [(200_000,)]


@pytest.mark.slow
def test_a_service_file_and_a_passfile_are_read(server: Server, database: str, tmp_path: Path) -> None:
    server.sql(
        "drop role if exists passuser; create role passuser login password 'p:w';"
        f"grant all on database {database} to passuser"
    )
    server.sql("grant create on schema public to passuser", dbname=database)
    service = tmp_path / "service.conf"
    service.write_text(f"[bench]\nhost=127.0.0.1\nport={server.port}\nuser=passuser\ndbname={database}\n")
    passfile = tmp_path / "pass"
    passfile.write_text(f"127.0.0.1:{server.port}:*:passuser:p\\:w\n")
    passfile.chmod(0o600)
    env = environment(PGSERVICEFILE=str(service), PGSERVICE="bench", PGPASSFILE=str(passfile))
    done = pgdyno("run", "quick", *SHORT, "--runs", tmp_path / "runs", env=env)
    assert done.code == 0, done.err
    everything = "".join(p.read_text(errors="replace") for p in (tmp_path / "runs").rglob("*") if p.is_file())
    assert "p:w" not in everything and "p:w" not in done.err + done.out, "a password must never be written down"
    server.sql("drop owned by passuser", dbname=database)


@pytest.mark.slow
def test_rate_is_kept_and_lag_reported(server: Server, database: str, tmp_path: Path) -> None:
    args = ("--target", server.conninfo(dbname=database), *SHORT, "--duration", 2, "--rate", 300, "--hot-set", "1")
    done = pgdyno("run", "quick", *args, "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    for t in done.json["trials"]:
        assert 225 < t["summary"]["tps"] < 375


def wait_measured(runs: Path, intervals: int = 3) -> None:
    """Until the first trial of the only run has measured as many, as its file on the disk says."""
    files = "*/trials/0001-*/intervals.jsonl"
    wait_until(
        lambda: any(file.read_text().count('"measure"') >= intervals for file in runs.glob(files)),
        why=lambda: f"nothing was measured: {list(runs.rglob('*'))}",
    )


def interrupt(tmp_path: Path, number: signal.Signals, after: str) -> tuple[int, str, Path]:
    process = subprocess.Popen(
        [PGDYNO, "run", "quick", "--embedded", "--duration", "30", "--scale", "2", "--runs", tmp_path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    seen: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        seen.append(line)
        if after in line or time.monotonic() > deadline:
            break
    if after == "trials of":
        wait_measured(tmp_path)
    else:
        # The message comes first; what it announces, a moment later.
        time.sleep(1.0)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out + "".join(seen) + err, tmp_path


def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(tmp_path: Path) -> None:
    before = left_behind()
    code, text, runs = interrupt(tmp_path, signal.SIGINT, "trials of")
    assert code == 130 and tells(text, "error-interrupted")
    data = reading.read(only_run(runs))
    assert data.trials[0].state == "interrupted"
    assert data.series[1] and data.trials[0].summary is not None
    assert tells(text, "heading-error") and tells(text, "error-interrupted")
    assert left_behind() == before


@pytest.mark.slow
def test_sigterm_while_starting_leaves_nothing(tmp_path: Path) -> None:
    before = left_behind()
    code, text, _ = interrupt(tmp_path, signal.SIGTERM, "starting a private PostgreSQL")
    assert code == 143 and "SIGTERM" in text
    assert left_behind() == before


@pytest.mark.slow
def test_a_kill_leaves_a_readable_directory_and_the_next_run_cleans_up(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [PGDYNO, "run", "quick", "--embedded", "--duration", "30", "--scale", "1", "--runs", tmp_path],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "trials of" in line:
            break
    wait_measured(tmp_path)
    process.kill()
    process.communicate()
    run = only_run(tmp_path)
    data = reading.read(run)
    assert data.trials[0].state == "interrupted" and len(data.series[1]) >= 3
    # What it had measured is reported.
    found = data.trials[0].summary
    assert found is not None and found.committed == sum(r.committed for r in data.series[1] if r.phase == "measure")
    assert found.latency.count > 0 and found.tps > 0
    reported = pgdyno("report", run)
    assert reported.code == 0 and tells(reported.out, "caveat-interrupted"), reported
    wait_until(lambda: not any("postgres" in s for s in left_behind()), 20)
    assert not any("postgres" in s for s in left_behind()), "the server dies with pgdyno"
    pgdyno("run", "quick", "--embedded", *SHORT, "--runs", tmp_path / "next")
    assert left_behind() == []


@pytest.mark.slow
def test_a_crash_of_the_managed_server_is_told(tmp_path: Path) -> None:
    before = left_behind()
    process = subprocess.Popen(
        [PGDYNO, "run", "quick", "--embedded", "--duration", "30", "--scale", "1", "--runs", tmp_path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "trials of" in line:
            break
    wait_measured(tmp_path)
    (postmaster,) = [c for c in psutil.Process(process.pid).children() if c.name() == "postgres"]
    for victim in [postmaster, *postmaster.children()]:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4 and tells(err, "error-server-has-died") and "Traceback" not in err
    data = reading.read(only_run(tmp_path))
    assert data.trials[0].state == "failed" and data.series[1]
    assert left_behind() == before


@pytest.mark.slow
def test_a_killed_and_restarted_server_is_an_outage_in_the_series(tmp_path: Path) -> None:
    with Server() as s:
        result: list[object] = []
        args = (
            "--target",
            s.conninfo(),
            "--scale",
            1,
            "--clients",
            4,
            "--duration",
            10,
            "--warmup",
            0,
            "--repetitions",
            1,
        )
        thread = threading.Thread(
            target=lambda: result.append(pgdyno("run", "quick", *args, "--hot-set", 1, "--runs", tmp_path, "--json"))
        )
        thread.start()
        wait_measured(tmp_path, 1)
        s.kill()
        (series,) = tmp_path.glob("*/trials/0001-*/intervals.jsonl")
        wait_until(lambda: '"committed": 0' in series.read_text(), 10)
        s.start()
        thread.join()
        (done,) = result
        assert done.code == 1, done.err  # type: ignore[attr-defined]
        first = done.json["trials"][0]  # type: ignore[attr-defined]
        assert first["state"] == "finished"
        assert first["summary"]["lost"] == 4 and first["summary"]["reconnects"] == 4
        assert "OUTAGE" in first["caveats"]
        data = reading.read(only_run(tmp_path))
        rows = [r for r in data.series[1] if r.phase == "measure"]
        assert any(r.committed == 0 for r in rows) and rows[-1].committed > 0
        assert (tmp_path / only_run(tmp_path).name / "trials").exists()
        events = next(tmp_path.glob("*/trials/0001-*/events.jsonl")).read_text()
        assert "connection_lost" in events and "reconnected" in events


@pytest.mark.slow
def test_a_level_that_changes_is_said_first(server: Server, database: str, tmp_path: Path) -> None:
    server.sql("create table t (id int primary key, v int)", dbname=database)
    server.sql("insert into t select g, 0 from generate_series(1, 300000) g", dbname=database)
    script = "\\\\set id random(1, 300000)\\nSELECT v FROM t WHERE id = :id;"
    (tmp_path / "t.toml").write_text(
        'name = "t"\ntitle = "t"\n[dataset]\nkind = "none"\n[workloads.w]\n'
        f'scripts = [{{ text = "{script}" }}]\n[axes]\nclients = [2]\n'
        "[run]\nduration_s = 8\nwarmup_s = 0\nrepetitions = 1\ninterval_s = 0.5\n"
    )

    def drop() -> None:
        # In the middle of the measurement: of 16 intervals.
        wait_measured(tmp_path / "r", 8)
        server.sql("alter table t drop constraint t_pkey", dbname=database)

    dropping = threading.Thread(target=drop)
    dropping.start()
    words = ("run", tmp_path / "t.toml", "--target", server.conninfo(dbname=database), "--runs", tmp_path / "r")
    done = pgdyno(*words, "--json", "-q")
    dropping.join()
    assert done.code == 1, done.err
    said = done.json["answer"][0]
    assert said.startswith("w, 2 clients: no one figure holds: throughput fell from "), done.json["answer"]
    assert "(1 of 1 trial)" in said and not any("p99" in s for s in done.json["answer"])
    assert "NO_ONE_LEVEL" in done.json["trials"][0]["caveats"] and "WARMUP" not in done.json["trials"][0]["caveats"]


@pytest.mark.slow
def test_what_a_preparation_waits_for_is_said(tmp_path: Path) -> None:
    """A standby that is not there, and somebody's lock: each stands still without a word otherwise."""
    with Server() as own:
        words: list[object] = ["--scale", 1, "--clients", 1, "--duration", 0.3, "--warmup", 0, "--repetitions", 1]
        words += ["--target", own.conninfo(), "--runs", tmp_path, "--hot-set", 1, "--force"]

        def said(expected: str, end: Callable[[], object]) -> None:
            run = subprocess.Popen([PGDYNO, "run", "quick", *map(str, words)], env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
            assert run.stderr is not None
            try:
                assert any(expected in line for line in run.stderr)
                end()
                rest = run.stderr.read()
                assert run.wait(60) in (0, 1), rest
            finally:
                run.kill()
                run.wait()

        own.sql("alter system set synchronous_standby_names to 'nobody'")
        own.sql("select pg_reload_conf()")

        def nobody_is_waited_for() -> None:
            own.sql("alter system reset synchronous_standby_names")
            own.sql("select pg_reload_conf()")

        said("until a standby confirms its commit (synchronous_standby_names = 'nobody')", nobody_is_waited_for)
        with psycopg.connect(own.conninfo()) as holder:
            holder.execute("lock table pgbench_accounts")
            said(f"held by process {holder.info.backend_pid}", holder.rollback)


def test_a_run_that_goes_wrong_tells_so_in_chinese(server: Server, tmp_path: Path) -> None:
    """Progress, the error that ended the run, a bound that was exceeded, and the page."""
    (tmp_path / "w.sql").write_text("select nosuch from pgbench_branches;\n")
    (tmp_path / "x.toml").write_text(
        'name = "x"\ntitle = "x"\ndataset = { kind = "tpcb", scale = 1 }\n[[workloads.w.scripts]]\nfile = "w.sql"\n'
        "[run]\nduration_s = 1.0\nwarmup_s = 0.0\nrepetitions = 1\n[axes]\nclients = [1]\n"
    )
    target = ("--target", server.conninfo(), "--runs", tmp_path / "runs")
    wrong = pgdyno("--lang", "zh", "run", tmp_path / "x.toml", *target)
    assert wrong.code == 2 and 'column "nosuch" does not exist' in wrong.err and "试验" in wrong.err
    (run,) = (tmp_path / "runs").iterdir()
    kept = reading.read(run)
    assert kept.manifest.error_text is not None and kept.trials[0].error is not None
    (tmp_path / "w.sql").write_text("select 1;\n")
    beyond = pgdyno("--lang", "zh", "run", tmp_path / "x.toml", *target, "--fail-if", "TPS > 1")
    assert beyond.code == 6 and "--fail-if TPS > 1：" in beyond.err
    # Names, and the sentence of the engine with the server's words.
    own = re.sub(r"/\S+|pgbench_\S+|the server refuses this statement.*|select nosuch from", "", wrong.err + beyond.err)
    assert re.findall(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", own) == [], own
