"""Remedies are chosen by codes and by whole messages, never by a value that stands in one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno.cluster.remedies import remedy_for
from pgdyno.cluster.target import Target, clean
from pgdyno.i18n import text
from pgdyno.load.connected import load_error
from pgdyno.message import Name

from tests.support.tells import tells

#: As libpq and servers say them; and a part of what is to be done.
FAILED = [
    ('FATAL:  database "x" does not exist', "createdb"),
    ('connection to server on socket "/tmp/.s.PGSQL.5432" failed: FATAL:  role "x" does not exist', "createuser"),
    ('FATAL:  Peer authentication failed for user "postgres"', "user=NAME"),
    ('FATAL:  password authentication failed for user "x"', "PGPASSWORD"),
    ('connection to server at "h" (10.0.0.1), port 5432 failed: Connection refused', "running"),
    ('FATAL:  no pg_hba.conf entry for host "10.0.0.1"', "pg_hba.conf"),
    ("FATAL:  sorry, too many clients already", "max_connections"),
    ("cannot begin a session at db port 5432: FATAL: the database system is starting up (SQLSTATE 57P03)", "recovery"),
]


@pytest.mark.parametrize(("message", "remedy"), FAILED)
def test_what_a_failed_connection_needs(message: str, remedy: str) -> None:
    assert remedy in text(remedy_for(message))


#: Words that some message holds, anywhere in another one.
WORDS = ["42501", "does not exist", "too many clients", "53100", "No space left", "os error 28"]
PHRASES = [m for m, _ in FAILED] + WORDS


@given(st.sampled_from(PHRASES), st.text(max_size=20), st.sampled_from(["23505", "42704", "42P01", "22P02", "XX000"]))
def test_a_value_chooses_no_remedy(phrase: str, more: str, state: str) -> None:
    """Keys, names and statements are the users': whatever they hold, the error is of its own kind."""
    message = f"ERROR: duplicate key; Key (a)=({more}{phrase}) (SQLSTATE {state})"
    assert text(remedy_for(message, state)) == ""
    error = load_error(message, state, Target("h", 1, "me", "d"), Name(""))
    assert "GRANT" not in error.remedy and "disk is full" not in error.message


def test_the_code_decides_in_any_language() -> None:
    error = load_error("FEHLER: keine Berechtigung", "42501", Target("h", 1, "me", "d"), Name(""))
    assert tells(error.remedy, "remedy-let-create-tables-grant-create", user="me")
    assert load_error("FEHLER: Platte voll", "53100", Target("h", 1, "me", "d"), Name("")).exit_code == 5
    assert "max_connections" in text(remedy_for("FATAL: zu viele", "53300"))


@pytest.mark.parametrize("prefix", ["", "connection failed: ", "connection is bad: "])
def test_who_refused_has_the_same_remedy_whichever_connection_it_was(prefix: str) -> None:
    """psycopg's words before libpq's are none of the server's."""
    refused = 'connection to server on socket "/s/.s.PGSQL.5432" failed: FATAL:  too many connections for role "x"'
    assert tells(text(remedy_for(clean(prefix + refused))), "remedy-server-role-limit")


def test_reasons_of_several_hosts_are_apart_and_without_libpqs_hints() -> None:
    text = (
        'connection to server on socket "/x/.s.PGSQL.5432" failed: Нет такого файла или каталога\n'
        "\tСервер действительно работает локально и принимает подключения через этот сокет?\n"
        'connection to server at "db2", port 5432 failed: FATAL:  the database system is starting up\n'
    )
    assert clean(text) == (
        'connection to server on socket "/x/.s.PGSQL.5432" failed: Нет такого файла или каталога; '
        'connection to server at "db2", port 5432 failed: FATAL: the database system is starting up'
    )
