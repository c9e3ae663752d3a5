"""Bad input and faults: each has a clear error with a remedy, its exit code, and leaves nothing half done."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from tests.support.cli import SHORT, environment, pgdyno
from tests.support.server import Server, free_port
from tests.support.tells import tells


def refused(*words: str, code: int, args: tuple[object, ...], env: dict[str, str] | None = None, **more: object) -> str:
    done = pgdyno("run", "quick", *SHORT, *args, env=env, **more)
    assert done.code == code, done.err
    for word in words:
        assert word in done.err, done.err
    return done.err


def test_wrong_password(server: Server, tmp_path: Path) -> None:
    server.sql("drop role if exists wrongpw; create role wrongpw login password 'right'")
    info = server.conninfo(host="127.0.0.1", user="wrongpw")
    env = environment(PGPASSWORD="wrong")
    refused(
        "password authentication failed", "PGPASSWORD", code=3, args=("--target", info, "--runs", tmp_path), env=env
    )
    assert not list(tmp_path.iterdir())
    refused("no password supplied", "~/.pgpass", code=3, args=("--target", info, "--runs", tmp_path))


@pytest.mark.slow
def test_unreachable_host(tmp_path: Path) -> None:
    info = f"host=127.0.0.1 port={free_port()} user=x dbname=y"
    refused("Connection refused", "Is the server running", code=3, args=("--target", info, "--runs", tmp_path))
    refused("name", code=3, args=("--target", "host=no.such.host.invalid dbname=x", "--runs", tmp_path))
    refused("No such file", "Is the server running", code=3, args=("--target", "host=/nonexistent", "--runs", tmp_path))


def test_a_server_that_never_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        info = f"host=127.0.0.1 port={mute.getsockname()[1]} user=x dbname=y"
        refused("within 1 s", code=3, args=("--target", info, "--connect-timeout", 1, "--runs", tmp_path))


def test_something_that_is_no_postgresql(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            for _ in range(3):
                connection, _ = other.accept()
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.close()

        threading.Thread(target=answer, daemon=True).start()
        info = f"host=127.0.0.1 port={other.getsockname()[1]} user=x dbname=y"
        refused("127.0.0.1", code=3, args=("--target", info, "--runs", tmp_path))


def test_missing_database_and_role(server: Server, tmp_path: Path) -> None:
    words = ('database "nowhere" does not exist', "createdb")
    refused(*words, code=3, args=("--target", server.conninfo(dbname="nowhere"), "--runs", tmp_path))


def test_no_permission_to_create(server: Server, database: str, tmp_path: Path) -> None:
    server.sql("drop role if exists modest; create role modest login")
    info = server.conninfo(dbname=database, user="modest")
    refused("permission denied", "GRANT CREATE ON SCHEMA public", code=3, args=("--target", info, "--runs", tmp_path))


@pytest.mark.slow
def test_foreign_tables_are_never_touched(server: Server, database: str, tmp_path: Path) -> None:
    server.sql("create table pgbench_accounts (precious int); insert into pgbench_accounts values (1)", dbname=database)
    info = server.conninfo(dbname=database)
    refused(
        "already has pgbench_accounts, which pgdyno did not create",
        "--force",
        code=3,
        args=("--target", info, "--runs", tmp_path),
    )
    assert server.sql("select precious from pgbench_accounts", dbname=database) == [(1,)]
    done = pgdyno("run", "quick", *SHORT, "--target", info, "--runs", tmp_path, "--force")
    assert done.code == 0 and "dropping pgbench_accounts" in done.err


@pytest.mark.slow
def test_what_writes_is_left_out_where_the_target_only_reads(server: Server, database: str, tmp_path: Path) -> None:
    info = server.conninfo(dbname=database)
    assert pgdyno("load", "tpcb", "--scale", 1, "--target", info).code == 0
    server.sql(f"alter database {database} set default_transaction_read_only = on")
    done = pgdyno("run", "quick", *SHORT, "--target", info, "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    assert tells(done.err, "progress-left-out", workloads="read-write")
    assert {t["workload"] for t in done.json["trials"]} == {"read-only"}
    assert done.json["manifest"]["trials"] == len(done.json["trials"])
    (tmp_path / "t.toml").write_text(
        'name = "t"\ntitle = "t"\n[dataset]\nkind = "tpcb"\nscale = 1\n[workloads.w]\n'
        'scripts = [{ builtin = "simple-update" }]\n'
    )
    done = pgdyno("run", tmp_path / "t.toml", *SHORT, "--target", info, "--runs", tmp_path)
    assert (
        done.code == 3
        and tells(done.err, "error-writes-to-read-only", workloads="w")
        and tells(done.err, "remedy-name-primary-target-or-workload")
    ), done.err


@pytest.mark.slow
def test_force_drops_only_where_it_makes(server: Server, database: str, tmp_path: Path) -> None:
    server.sql("create schema s1; create table s1.pgbench_accounts (precious int)", dbname=database)
    server.sql(f"alter database {database} set search_path = public, s1")
    done = pgdyno("run", "quick", *SHORT, "--target", server.conninfo(dbname=database), "--force", "--runs", tmp_path)
    assert done.code == 0 and 'schema "public"' in done.err, done.err
    assert server.sql("select count(*) from s1.pgbench_accounts", dbname=database) == [(0,)]


@pytest.mark.slow
def test_failed_transactions_make_no_queries(server: Server, database: str, tmp_path: Path) -> None:
    args = ("--target", server.conninfo(dbname=database), *SHORT, "--runs", tmp_path / "runs", "--json")
    done = pgdyno("run", experiment(tmp_path, "begin;\nselect 1 / 0;\nend;\n"), *args)
    (trial,) = done.json["trials"]
    assert done.code == 1 and trial["summary"]["failed"]["22012"] > 10
    assert trial["summary"]["qps"] == 0 and trial["summary"]["tps"] == 0
    done = pgdyno("run", experiment(tmp_path, "begin;\nselect 1;\nrollback;\n"), *args)
    (trial,) = done.json["trials"]
    assert done.code == 0 and abs(trial["summary"]["qps"] / trial["summary"]["tps"] - 3) < 0.01
    assert trial["summary"]["statements"][2]["latency"]["count"] > 10


def test_a_database_in_use_is_refused(server: Server, database: str, tmp_path: Path) -> None:
    import psycopg

    info = server.conninfo(dbname=database)
    with psycopg.connect(info, application_name="the shop") as other:
        other.execute("select 1")
        refused("is in use", "the shop", "--force", code=3, args=("--target", info, "--runs", tmp_path))


@pytest.mark.slow
def test_two_pgdynos_do_not_share_a_database(server: Server, database: str, tmp_path: Path) -> None:
    import psycopg
    from pgdyno.load.claim import KEY

    info = server.conninfo(dbname=database)
    with psycopg.connect(info, autocommit=True, application_name="pgdyno admin") as other:
        other.execute("select pg_advisory_lock(%s)", [KEY])
        refused("another pgdyno is at work", code=3, args=("--target", info, "--runs", tmp_path))


@pytest.mark.slow
def test_a_load_that_was_not_vacuumed_is_made_again(server: Server, database: str, tmp_path: Path) -> None:
    info = server.conninfo(dbname=database)
    args = ("--target", info, "--runs", tmp_path)
    assert pgdyno("run", "quick", *SHORT, *args).code == 0
    oid = server.sql("select 'pgbench_tellers'::regclass::oid", dbname=database)[0][0]
    mark = f"pgdyno dataset tpcb scale=1 [pgbench_tellers {oid}] (not vacuumed yet)"
    server.sql(f"comment on table pgbench_tellers is '{mark}'", dbname=database)
    done = pgdyno("run", "quick", *SHORT, *args)
    assert done.code == 0 and tells(done.err, "progress-replacing"), done.err


@pytest.mark.slow
def test_what_our_client_would_not_heed_is_refused(server: Server, tmp_path: Path) -> None:
    info = server.conninfo(host="127.0.0.1", user="postgres") + " require_auth=none"
    env = environment(PGPASSWORD="x")
    done = pgdyno("run", "quick", *SHORT, "--target", info, "--runs", tmp_path, env=env)
    assert done.code == 3 and ("require_auth" in done.err or "authentication" in done.err), done.err
    info = server.conninfo() + " require_auth=none"
    refused("require_auth=none is not supported", code=3, args=("--target", info, "--runs", tmp_path))


@pytest.mark.slow
def test_more_clients_than_connections(server: Server, database: str, tmp_path: Path) -> None:
    info = server.conninfo(dbname=database)
    args = ("--target", info, "--clients", 500, "--runs", tmp_path)
    refused("500 clients do not fit into max_connections = 100", "--clients", code=3, args=args)
    # Where the limit is the role's, only connecting tells.
    server.sql("drop role if exists narrow; create role narrow login superuser connection limit 4")
    info = server.conninfo(dbname=database, user="narrow")
    server.sql("alter role narrow nosuperuser")
    server.sql("grant create on schema public to narrow", dbname=database)
    done = pgdyno("run", "quick", *SHORT, "--target", info, "--clients", 8, "--runs", tmp_path)
    assert done.code == 3 and "too many connections" in done.err, done.err
    server.sql("drop owned by narrow", dbname=database)


def test_too_few_file_descriptors(server: Server, database: str, tmp_path: Path) -> None:
    server.sql("alter system set max_connections = 100")

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))

    args = ("--target", server.conninfo(dbname=database), "--clients", 60, "--runs", tmp_path)
    done = pgdyno("run", "quick", *SHORT, *args, preexec_fn=few)
    assert done.code == 5 and "file descriptors" in done.err and "ulimit -n" in done.err, done.err


def experiment(tmp_path: Path, script: str) -> Path:
    file = tmp_path / "mine.toml"
    (tmp_path / "mine.sql").write_text(script)
    file.write_text('name = "mine"\ntitle = "Mine"\n[workloads.w]\nscripts = [{file = "mine.sql"}]\n')
    return file


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("SELECT 1;\n\\set x 1 +\n", ("mine.sql:2:11", "an expression was expected here", "^")),
        ("SELECT :nowhere;\n", ('mine.sql:1:8: undefined variable "nowhere"', "--set nowhere=VALUE")),
        ("\\frobnicate\n", ("mine.sql:1:1: invalid command",)),
    ],
)
def test_mistakes_in_a_script_are_found_before_anything_starts(
    script: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    done = pgdyno("run", experiment(tmp_path, script), *SHORT, "--embedded", "--runs", tmp_path / "runs")
    assert done.code == 2, done.err
    for word in words:
        assert word in done.err, done.err
    assert "starting" not in done.err and not (tmp_path / "runs").exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("\\set z 0\n\\set x 1 / :z\nSELECT :x;\n", ("mine.sql:2:8: division by zero",)),
        ("SELECT 1;\nSELECT no_such_column FROM pgbench_accounts;\n", ("mine.sql:2:1", "no_such_column", "42703")),
        ("SELEC 1;\n", ("mine.sql:1:1", "42601")),
    ],
)
def test_mistakes_that_show_in_the_run_are_told_with_their_place(
    server: Server, database: str, script: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    info = server.conninfo(dbname=database)
    done = pgdyno("run", experiment(tmp_path, script), *SHORT, "--target", info, "--runs", tmp_path / "runs")
    assert done.code == 2, done.err
    for word in words:
        assert word in done.err, done.err


@pytest.mark.slow
def test_what_cannot_be_recorded_is_said(server: Server, database: str, tmp_path: Path) -> None:
    server.sql("drop role if exists blind; create role blind login")
    server.sql("grant create on schema public to blind", dbname=database)
    server.sql("revoke select on pg_settings from public", dbname=database)
    info = server.conninfo(dbname=database, user="blind")
    done = pgdyno("run", "quick", *SHORT, "--target", info, "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    assert any("settings: permission denied" in x for x in done.json["manifest"]["not_recorded"])
    run = Path(done.json["path"])
    assert tells((run / "report.md").read_text(), "caveat-not-recorded")
    server.sql("drop owned by blind", dbname=database)


@pytest.fixture
def small_disk(tmp_path: Path) -> object:
    """A file system of 150 MB of its own."""
    if os.geteuid() != 0:
        pytest.skip("mounting a loop device needs root")
    image, mount = tmp_path / "disk", tmp_path / "mnt"
    mount.mkdir()
    with image.open("wb") as f:
        f.truncate(150 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system has no loop devices")
    mount.chmod(0o755)
    for parent in [tmp_path, *tmp_path.parents][:4]:
        parent.chmod(parent.stat().st_mode | 0o111)
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


@pytest.mark.slow
def test_a_full_disk_while_loading_leaves_nothing(small_disk: Path, tmp_path: Path) -> None:
    with Server(
        folder=small_disk,
        hba="host all all 127.0.0.1/32 trust",
        conf="wal_level=minimal\nmax_wal_senders=0\nmax_wal_size=64MB\nmin_wal_size=32MB",
    ) as s:
        info = s.conninfo()
        # A disk that we see is looked at beforehand.
        args = ("--scale", 20, "--runs", tmp_path / "runs")
        refused("needs 359 MB", "smaller --scale", code=5, args=("--target", info, *args))
        # Over TCP the server might be anywhere.
        refused("disk is full", "Nothing was kept", code=5, args=("--target", s.conninfo(host="127.0.0.1"), *args))
        assert s.sql("select to_regclass('pgbench_accounts')") == [(None,)]
        # And with less it works: nothing was left behind.
        done = pgdyno("run", "quick", *SHORT, "--target", info, "--runs", tmp_path / "runs")
        assert done.code == 0, done.err


def test_a_full_disk_under_the_run_directory_is_told(server: Server, database: str, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * (130 << 20)) if os.statvfs(small_disk).f_bavail * 4096 > (
        131 << 20
    ) else None
    with (small_disk / "rest").open("wb") as f:
        try:
            while True:
                f.write(b"x" * 65536)
                f.flush()
        except OSError:
            pass
    args = ("--target", server.conninfo(dbname=database), "--runs", small_disk / "runs")
    refused("cannot write", code=5, args=args)


def test_help_and_version() -> None:
    for args, words in ((("--help",), "Exit codes"), (("run", "-h"), "--target"), (("-V",), "pgdyno 0.")):
        done = pgdyno(*args)
        assert done.code == 0 and words in done.out and not done.err, done


@pytest.mark.slow
def test_nonsense_on_the_command_line() -> None:
    for args, words in (
        (("run", "nosuch"), ("there is no experiment", "quick")),
        (("run", "/no/such.toml"), ("cannot read /no/such.toml",)),
        (("run", "quick", "--clients", "a,b"), ("--clients", "not a list of numbers")),
        (("run", "quick", "--clients", "0"), ("--clients", "at least 1")),
        (("run", "quick", "--hot-set", "2"), ("--hot-set",)),
        (("run", "quick", "--protocol", "carrier-pigeon"), ("--protocol",)),
        (("run", "quick", "--rate", "1e300"), ("--rate",)),
        (("run", "quick", "--duration", "inf"), ("--duration",)),
        (("run", "quick", "--repetitions", "99999999999"), ("--repetitions",)),
        (("run", "quick", "--target", "nonsense"), ("--target is not a connection string",)),
        (("run", "quick", "--embedded", "--target", "host=x"), ("contradict",)),
        (("run", "quick", "--pg-bin", "/nonexistent"), ("there is no program postgres in /nonexistent",)),
        (("report", "/nonexistent"), ("there is no run directory /nonexistent",)),
    ):
        done = pgdyno(*args)
        assert done.code in (2, 3, 4), (args, done.err)
        assert done.out == "", done.out
        for word in words:
            assert word in done.err, (args, done.err)
