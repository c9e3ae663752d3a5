"""A table of hostile calls, with what must come of each: exit code, words, what is on the disk, and no traceback."""

from __future__ import annotations

import os
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from pgdyno.cluster.account import server_account
from pgdyno.cluster.held import _HALF_LOG, HeldCluster

from tests.support.cli import PGDYNO, SHORT, environment, pgdyno
from tests.support.server import Server
from tests.support.tells import tells

SCRIPT = 'name = "a"\ntitle = "A"\n[workloads.a]\nscripts = [{{ file = "{}" }}]\n[axes]\nclients = [1]\n'


@dataclass
class Call:
    """A command line; `{info}` stands for a server's conninfo, `{folder}` for a folder with odd files in it."""

    words: str
    code: int
    said: str


CALLS = [
    Call("load pk --rows 10 --target {info} --connect-timeout inf", 2, "--connect-timeout"),
    Call("load pk --rows 10 --target {info} --connect-timeout 1e300", 2, "--connect-timeout"),
    Call("load pk --rows 10 --target {info} --connect-timeout nan", 2, "--connect-timeout"),
    Call("run quick --target {info} --connect-timeout 1e300", 2, "--connect-timeout"),
    Call("load pk --rows 100000000000000000000 --plan --disk-mbps 1", 2, "cannot be as large"),
    Call("load tpcb --scale 1 --partitions 100000000000 --plan --disk-mbps 1", 2, "cannot be as large"),
    Call("load pk --rows 10 --target host=x|=y", 2, "not a connection string"),
    Call("report {folder}/file", 2, "it is a file"),
    Call("report {folder}/missing", 2, "no run directory"),
    Call("compare {folder}/file {folder}/file", 2, "it is a file"),
    Call("history {folder}/file", 2, "no run"),
    Call("scaling {folder}/bytes", 2, "{folder}/bytes"),
    Call("scaling {folder}", 2, "{folder}"),
    Call("sql select|\udce9 --runs {folder}", 2, ""),
    Call("plan {folder}/fifo", 2, "not a regular file"),
    Call("plan /dev/zero", 2, "not a regular file"),
    Call("plan {folder}/bytes.toml", 2, "not UTF-8 (line 2)"),
    Call("plan {folder}/long.toml", 2, "longer than"),
    Call("plan {folder}/of-fifo.toml", 2, "not a regular file"),
    Call("plan {folder}/of-zero.toml", 2, "not a regular file"),
    Call("plan {folder}", 2, "neither an experiment nor a run directory"),
    Call("plan quick --set work_mem=4MB --vary work_mem=1MB,4MB", 2, "contradict each other"),
    Call("load pk --rows 10 --target hots=db1", 2, '(did you mean "host"?)'),
    Call("drill {folder} --fault nonsense", 2, "'nonsense' is unknown"),
    Call("run \x1b[31mred", 2, "no experiment"),
    Call("capacity --slo p99<5ms --workload nosuch --embedded", 2, "It has read-only, read-write"),
    Call("load pk --rows 10 --target {info}|requirepeer=postgres", 3, "requirepeer=postgres is not supported"),
    Call("load pk --rows 10 --target {info}|ssl_min_protocol_version=TLSv1.3", 3, "ssl_min_protocol_version=TLSv1.3"),
    Call("load pk --rows 10 --target {info}|keepalives_idle=3", 3, "keepalives_idle=3 is not supported"),
    Call("load pk --rows 10 --target {info}|require_auth=none", 3, "require_auth=none is not supported"),
    Call("load pk --rows 10 --target {tcp}|gssencmode=require", 3, "GSSAPI"),
    Call("load pk --rows 10 --target host=@nobody-there|dbname=x", 3, "Connection refused"),
    Call("load pk --rows 10 --target {info}|sslcertmode=require|gssencmode=disable", 3, "SSL certificate"),
    Call("load pk --rows 10 --data {folder}", 3, "no data directory"),
    Call("cluster create {folder}/file/c", 5, "{folder}/file"),
    Call("storage {folder}/missing", 5, ""),
]


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder of odd files."""
    (tmp_path / "file").write_text("x\n")
    (tmp_path / "bytes").write_bytes(b"a,b\n\xe9\xff,1\n")
    (tmp_path / "bytes.toml").write_bytes(b'name = "a"\ntitle = "\xe9"\n')
    (tmp_path / "of-fifo.toml").write_text(SCRIPT.format("fifo"))
    (tmp_path / "of-zero.toml").write_text(SCRIPT.format("/dev/zero"))
    with (tmp_path / "long.toml").open("wb") as f:
        f.truncate(65 << 20)
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS, ids=lambda c: c.words.encode("unicode_escape").decode()[:60])
def test_a_hostile_call(call: Call, odd: Path, server: Server) -> None:
    before = sorted(p.name for p in odd.rglob("*"))
    places = {"folder": str(odd), "info": server.conninfo(), "tcp": f"host=127.0.0.1 port={server.port} user=postgres"}
    words = []
    for word in call.words.split(" "):
        for name, value in places.items():
            word = word.replace("{" + name + "}", value)
        # A bar stands for a blank within a word.
        words.append(word.replace("|", " "))
    done = subprocess.run(
        [PGDYNO, *map(os.fsencode, words)], capture_output=True, timeout=60, check=False, env=environment(), cwd=odd
    )
    said = " ".join(done.stderr.decode("utf-8", "replace").split())
    assert "Traceback" not in said and "defect" not in said, said
    assert done.returncode == call.code, said
    assert call.said.replace("{folder}", str(odd)) in said and said and b"\x1b" not in done.stderr
    assert sorted(p.name for p in odd.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize("words", [["experiments"], ["--help"], ["load", "pk", "--plan", "--disk-mbps", "1"]])
def test_a_full_standard_output(words: list[str]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [PGDYNO, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment()
        )
    assert done.returncode == 5 and done.stderr == "pgdyno: No space left on device\n", done.stderr


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "closed",
    [
        "2>&-",
        pytest.param(">&- 2>&-", marks=SLOW),
        pytest.param("0<&- >&- 2>&-", marks=SLOW),
        pytest.param(">/dev/full 2>/dev/full", marks=SLOW),
    ],
)
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    """A program without standard error gives its number to the next file that it opens."""
    code = 'exec "$0" report nosuch ' + closed
    assert subprocess.run(["sh", "-c", code, PGDYNO], check=False, env=environment(), cwd=tmp_path).returncode == 2
    code = f'exec "$0" run quick --embedded {" ".join(SHORT)} --runs runs {closed}'
    done = subprocess.run(["sh", "-c", code, PGDYNO], check=False, env=environment(), cwd=tmp_path, timeout=120)
    # It has run, and only what it wanted to show is lost.
    assert done.returncode in (0, 1, 5)
    assert list(tmp_path.glob("runs/*/report.html"))
    assert pgdyno("report", next(tmp_path.glob("runs/*"))).code in (0, 1)


def test_a_long_log_is_kept_in_part(tmp_path: Path) -> None:
    class Cluster(HeldCluster):
        def __init__(self) -> None:
            self._log_before = 5

        @property
        def log(self) -> Path:
            return tmp_path / "log"

        def _process(self, hold: object) -> None:  # type: ignore[override]
            raise AssertionError("its server is never started")

    (tmp_path / "log").write_bytes(b"older" + b"first" + b"." * (3 * _HALF_LOG) + b"last")
    Cluster().append_log(tmp_path / "kept")
    kept = (tmp_path / "kept").read_bytes()
    assert kept.startswith(b"first") and kept.endswith(b"last") and b"bytes left out" in kept
    assert len(kept) < 2 * _HALF_LOG + 100


ROLES = {
    "connection limit 1": "Raise its limit",
    "set statement_timeout = '1ms'": "statement_timeout: lift it",
    "set default_transaction_read_only = on": "default_transaction_read_only on",
    "nologin": "Let the role log in",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", list(ROLES))
def test_a_role_that_may_not(how: str, server: Server, database: str) -> None:
    server.sql("drop role if exists limited")
    server.sql("create role limited login")
    try:
        server.sql("grant all on schema public to limited", dbname=database)
        server.sql(f"alter role limited {how}")
        done = pgdyno("load", "pk", "--rows", 10, "--target", server.conninfo(dbname=database, user="limited"))
        assert done.code == 3 and ROLES[how] in " ".join(done.err.split()), done.err
        assert server.sql("select to_regclass('pk')", dbname=database) == [(None,)]
    finally:
        server.sql("drop owned by limited", dbname=database)
        server.sql("drop role limited")


@pytest.mark.slow
def test_few_descriptors(server: Server, database: str, tmp_path: Path) -> None:
    words = ["run", "quick", *SHORT, "--target", server.conninfo(dbname=database), "--runs", tmp_path]
    code = f'ulimit -n 40; exec "$0" {" ".join(f"{chr(39)}{w}{chr(39)}" for w in words)}'
    done = subprocess.run(["bash", "-c", code, PGDYNO], capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 5 and "Raise it (ulimit -n" in " ".join(done.stderr.split()), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the server's account is ours")
def test_tmpdir_out_of_reach(tmp_path: Path, reachable: Path) -> None:
    """In a folder of a short name: pytest's own may be too long for a socket, which is refused before."""
    closed = reachable / "closed"
    closed.mkdir(mode=0o700)
    env = environment(TMPDIR=str(closed))
    done = pgdyno("run", "quick", "--embedded", *SHORT, "--runs", tmp_path / "runs", env=env)
    assert done.code == 5 and "cannot reach" in done.err and "TMPDIR" in done.err, done.err
    assert list(closed.iterdir()) == []


def test_an_abstract_socket_is_refused() -> None:
    """Libpq reaches it, our client and psycopg do not."""
    server = Server()
    with (server.data / "postgresql.conf").open("a") as f:
        f.write(f"unix_socket_directories='{server.socket},@{server.socket}'\n")
    with server:
        info = server.conninfo(host=f"@{server.socket}")
        for words in (["load", "pk", "--rows", "10", "--target", info], ["pgbench", "-n", "-S", info]):
            done = pgdyno(*words)
            assert done.code in (1, 3) and "abstract namespace" in done.err, done.err


@pytest.mark.slow
def test_what_would_steer_a_terminal_or_a_page(tmp_path: Path) -> None:
    """Titles, statements and messages of runs are somebody else's words."""
    text = (
        'name = "odd"\ntitle = "A\\u001b]0;evil\\u0007 <b>x</b> | y"\n[workloads.a]\n'
        'scripts = [{ text = "select 1 /* <!--<script> \\u001b[31m | */;" }]\n'
        "[axes]\nclients = [1]\n[run]\nduration_s = 0.3\nwarmup_s = 0\nrepetitions = 1\n"
    )
    words = ("run", tmp_path / "odd.toml", "--embedded", "--runs", tmp_path / "runs")
    (tmp_path / "odd.toml").write_text(text)
    refused = pgdyno(*words)
    assert refused.code == 2 and tells(refused.err, "spec-unprintable", code="U+001B") and "\x1b" not in refused.err
    (tmp_path / "odd.toml").write_text(text.replace("\\u001b]0;evil\\u0007 ", ""))
    done = pgdyno(*words)
    assert done.code == 0, done.err
    run = next(tmp_path.glob("runs/*"))
    shown = [done, pgdyno("report", run), pgdyno("sql", "select title from trials limit 1", "--runs", run)]
    assert all("\x1b" not in d.out + d.err and "\x07" not in d.out + d.err for d in shown)
    markdown, page = (run / "report.md").read_text(), (run / "report.html").read_text()
    assert "<b>" not in markdown and "<!--" not in markdown and "&lt;!--&lt;script&gt;" in markdown
    assert "\x1b" not in markdown and "\\| */" in markdown
    data = page.split('<script id="json-tables"')[1].split("</script>")[0]
    assert "<!--" not in data and "\\u003c!--\\u003cscript>" in data
    assert run.stat().st_mode & 0o777 == 0o700


def test_a_stopped_standby_says_that_it_is_one(reachable: Path) -> None:
    """Not only that it was shut down in recovery."""
    data = reachable / "data"
    (data / "global").mkdir(parents=True)
    (data / "PG_VERSION").write_text("18")
    (data / "global" / "pg_control").write_bytes(struct.pack("=Q I I I", 1, 1800, 1, 2))
    (data / "standby.signal").touch()
    for path in (data, *data.rglob("*")):
        server_account().own(path)
    done = pgdyno("load", "pk", "--rows", "10", "--data", data)
    assert done.code == 3 and "is a standby" in done.err and tells(done.err, "remedy-load-through-primary"), done.err


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_too_small_for_a_cluster(reachable: Path, tmp_path: Path) -> None:
    """It is this machine that refuses, not the server that has died."""
    words = ["mount", "-t", "tmpfs", "-o", "size=20m,mode=755", "none", reachable]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("no tmpfs here")
    try:
        env = environment(TMPDIR=str(reachable))
        done = pgdyno("run", "quick", "--embedded", *SHORT, "--templates", "off", "--runs", tmp_path, env=env)
        assert done.code == 5 and "is full" in done.err and "TMPDIR" in done.err, done.err
        assert list(reachable.iterdir()) == []
    finally:
        subprocess.run(["umount", reachable], check=True)
