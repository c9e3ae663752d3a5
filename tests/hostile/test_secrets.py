"""What is secret is neither shown nor written down."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psycopg
import pytest
from pgdyno import conninfo, home
from pgdyno.collect import server as facts
from pgdyno.errors import UsageError
from pgdyno.spec import load

from tests.support.cli import SHORT, pgdyno
from tests.support.server import Server
from tests.support.tells import telling, tells

PASSWORDS = (
    "host=h password=hunter2",
    "host=h password = hunter2",
    "postgresql://u:hunter2@h/db",
    "postgresql://h/db?password=hunter2",
    "postgresql://u@h/db?%70assword=hunter2",
    "postgresql://h/db?ssl%70assword=hunter2",
    # Of what cannot be read nobody knows.
    "host=h what password=hunter2",
    "postgresql://u:hunter2@h:port/db",
)


@pytest.mark.parametrize("text", PASSWORDS)
def test_a_password_is_seen_however_it_is_spelled(text: str) -> None:
    assert conninfo.holds_secret(text)
    toml = (
        'name = "x"\ntitle = "X"\n[targets.t]\nconninfo = "'
        + text
        + '"\n[workloads.w]\nscripts = [{ text = "SELECT 1;" }]\n'
    )
    with telling(UsageError, "spec-password") as e:
        load.parse(toml, "x.toml")
    assert "hunter2" not in str(e.value)


@pytest.mark.parametrize("text", ["host=h", "postgresql://u@h:5432/db?connect_timeout=3", "service=s passfile=/f"])
def test_what_holds_none_is_taken(text: str) -> None:
    assert not conninfo.holds_secret(text)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "text",
    [
        "password=my hunter2 host=h",
        "host=h password='hunter2",
        "postgresql://u:pw@[hunter2",
        "postgresql://h/db?hunter2",
    ],
)
def test_messages_do_not_quote_what_cannot_be_read(text: str) -> None:
    done = pgdyno("run", "quick", "--target", text)
    assert (
        done.code == 2 and tells(done.err, "error-not-connection-string", named="--target") and "libpq" in done.err
    ), done.err
    assert "hunter2" not in done.err + done.out


def test_settings_with_secrets_are_left_out(server: Server) -> None:
    """By their names and by what they hold: the words of their category are the server's language's."""
    assert "category" not in facts._QUERIES["settings"]
    secrets = {
        "primary_conninfo": "host=p password=hunter2",
        "restore_command": "fetch --key hunter2",
        "archive_cleanup_command": "clean hunter2",
        "ssl_passphrase_command": "echo hunter2",
        "log_line_prefix": "postgresql://u:hunter2@h",
    }
    try:
        for name, value in {**secrets, "work_mem": "5MB"}.items():
            server.sql(f"alter system set {name} = '{value}'")
        server.sql("alter system set primary_slot_name = 'hunter2'")
        server.sql("select pg_reload_conf()")
        with psycopg.connect(server.conninfo()) as conn:
            found, _ = facts.describe(conn)
    finally:
        server.sql("alter system reset all")
        server.sql("select pg_reload_conf()")
    assert "hunter2" not in json.dumps(found)
    assert found["settings"]["work_mem"]["value"] == "5MB" and found["settings"]["fsync"]["value"] == "off"
    assert "server_version" in found["settings"] and "port" not in found["settings"]


@pytest.mark.slow
def test_a_servers_log_is_its_owners_alone(tmp_path: Path) -> None:
    """It may hold what users have typed."""
    before = os.umask(0o022)
    try:
        done = pgdyno("run", "quick", "--embedded", *SHORT, "--runs", tmp_path)
    finally:
        os.umask(before)
    assert done.code in (0, 1), done.err
    (log,) = tmp_path.glob("*/server.log")
    assert log.stat().st_mode & 0o777 == 0o600
    link = tmp_path / "link"
    link.symlink_to(log)
    with pytest.raises(OSError):
        home.opened_to_append(link)
