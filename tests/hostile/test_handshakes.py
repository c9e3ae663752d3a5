"""Servers that keep a client at work, or flood it, before there is a session."""

from __future__ import annotations

import base64
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from pgdyno import _core
from pgdyno.engine import Plan

from tests.live.test_tls import Quiet
from tests.support.cli import pgdyno
from tests.support.tells import tells

Conversation = Callable[[socket.socket], None]


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def received(s: socket.socket) -> bytes:
    """One message of a client that has begun: its body."""
    head = s.recv(5, socket.MSG_WAITALL)
    return s.recv(struct.unpack("!i", head[1:])[0] - 4, socket.MSG_WAITALL)


def startup(s: socket.socket) -> None:
    """Until it has said who it is: no TLS, no GSSAPI."""
    while True:
        length, code = struct.unpack("!ii", s.recv(8, socket.MSG_WAITALL))
        s.recv(length - 8, socket.MSG_WAITALL)
        if code >> 16 == 3:
            return
        s.sendall(b"N")


@contextmanager
def serving(conversation: Conversation) -> Iterator[int]:
    """A server that has one conversation with everybody; its port."""

    def accepting() -> None:
        with suppress(OSError):
            while True:
                s, _ = listener.accept()
                threading.Thread(target=talk, args=(s,), daemon=True).start()

    def talk(s: socket.socket) -> None:
        with s, suppress(OSError, struct.error):
            startup(s)
            conversation(s)
            s.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accepting, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def one() -> _core.Workload:
    workload = _core.Workload()
    workload.add("one.sql", "SELECT 1;")
    return workload


def scram(iterations: str) -> Conversation:
    def talk(s: socket.socket) -> None:
        s.sendall(message(b"R", struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0"))
        nonce = received(s).partition(b"r=")[2]
        first = b"r=%sserver,s=%s,i=%s" % (nonce, base64.b64encode(b"salt" * 4), iterations.encode())
        s.sendall(message(b"R", struct.pack("!i", 11) + first))

    return talk


@pytest.mark.parametrize("iterations", ["2000000000", "10000001", "99999999999999999999999", "-1", "0", ""])
def test_our_client_does_not_reckon_for_hours(iterations: str) -> None:
    with serving(scram(iterations)) as port:
        config = _core.ConnConfig(host="127.0.0.1", port=port, user="u", dbname="d", password="secret")
        with pytest.raises(_core.ConnectError, match="SCRAM"):
            _core.run([config], one(), Quiet(), Plan(clients=1, transactions=1))


def test_libpq_is_not_waited_for(tmp_path: Any) -> None:
    """It reckons as long as it is told to, about 20 minutes here."""
    with serving(scram("2000000000")) as port:
        target = f"host=127.0.0.1 port={port} user=u dbname=d password=secret"
        done = pgdyno("load", "tpcb", "--target", target, "--connect-timeout", 2, timeout=120, cwd=tmp_path)
    assert done.code == 3 and tells(done.err, "error-cannot-connect-no-session-within", timeout_s="2"), done.err


@pytest.mark.slow
def test_no_later_session_is_waited_for(tmp_path: Any) -> None:
    """psycopg holds the interpreter's lock while libpq computes: only the process can end then."""
    with serving(scram("2000000000")) as port:
        connect = "from pgdyno.cluster.target import Target\nfrom pgdyno.cluster import administration\n"
        connect += f"administration.connect(Target('127.0.0.1', {port}, 'u', 'd', 'secret', connect_timeout_s=0.4))"
        done = subprocess.run(
            [sys.executable, "-c", connect], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 3, done
    assert tells(done.stderr, "error-cannot-connect-no-session-within", timeout_s=7)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [1_000, 30_000_000])
def test_an_error_is_as_long_as_people_read(tmp_path: Any, size: int) -> None:
    def talk(s: socket.socket) -> None:
        fields = b"SFATAL\0VFATAL\0C28000\0M" + b"\x1b]0;owned\x07wrong " * (size // 17) + b"\0\0"
        s.sendall(message(b"E", fields))

    with serving(talk) as port:
        target = f"host=127.0.0.1 port={port} user=u dbname=d"
        done = pgdyno("load", "tpcb", "--target", target, cwd=tmp_path)
        config = _core.ConnConfig(host="127.0.0.1", port=port, user="u", dbname="d")
        with pytest.raises(_core.ConnectError) as raised:
            _core.run([config], one(), Quiet(), Plan(clients=1, transactions=1))
    # Of what is longer than 30 kB libpq thinks that it is of an old server.
    assert done.code == 3 and ("wrong" in done.err or size > 30_000) and "\x1b" not in done.err, done.err[:500]
    assert len(done.err) < 20_000 and len(str(raised.value)) < 20_000


def test_what_is_printed_while_connecting_is_bounded_and_harmless() -> None:
    """libpq prints the notices of a connection that is not made yet."""

    def talk(s: socket.socket) -> None:
        notice = message(b"N", b"SNOTICE\0VNOTICE\0C00000\0M\x1b]0;owned\x07" + b"x" * 4000 + b"\0\0")
        s.sendall(message(b"R", b"\0\0\0\0"))
        for _ in range(1000):
            s.sendall(notice)
        s.sendall(message(b"E", b"SFATAL\0VFATAL\0C28000\0Mgo away\0\0"))

    with serving(talk) as port:
        done = pgdyno("pgbench", "-n", "-t", "1", f"host=127.0.0.1 port={port} user=x dbname=y sslmode=disable")
    assert done.code == 1 and "go away" in done.err
    assert "\x1b" not in done.err and "\x07" not in done.err and len(done.err) < 100_000


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("code", "said", "remedy"),
    [
        ("28P01", "Passwort-Authentifizierung für Benutzer »u« fehlgeschlagen", "PGPASSWORD"),
        ("28000", "Rolle »u« existiert nicht", "check that it exists and may log in"),
        ("3D000", '数据库 "d" 不存在', "createdb NAME"),
        ("53300", "現在クライアント数が多すぎます", "max_connections"),
        ("57P03", "la base de données démarre", "recovery"),
        ("28000", 'no pg_hba.conf entry for host "127.0.0.1", user "u"', "Add a line"),
    ],
)
def test_a_refusal_has_its_remedy_in_every_language(tmp_path: Any, code: str, said: str, remedy: str) -> None:
    def talk(s: socket.socket) -> None:
        place = b"Fauth.c\0L321\0Rauth_failed\0"
        s.sendall(message(b"E", b"SFATAL\0VFATAL\0C" + code.encode() + b"\0M" + said.encode() + b"\0" + place + b"\0"))

    with serving(talk) as port:
        done = pgdyno("load", "tpcb", "--target", f"host=127.0.0.1 port={port} user=u dbname=d", cwd=tmp_path)
    assert done.code == 3 and said in done.err and remedy in done.err, done.err
    assert code not in done.err and "auth.c" not in done.err, done.err
