"""Servers that answer nonsense, and that say without end: a message, an exit code, and a clean terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import pgdyno
from tests.support.nonsense import serving

VERBS: list[tuple[Any, ...]] = [
    ("load", "tpcb", "--scale", 1),
    ("run", "quick", "-q", "--clients", 1, "--duration", 0.2, "--warmup", 0),
    ("run", "tpcc", "-q"),
    ("tpcc", "check"),
    ("tpcc", "acid"),
    ("capture", "--output", "captured"),
]
VALUES = {
    "null": None,
    "empty": b"",
    "word": b"abc",
    "number": b"1",
    "minus": b"-1",
    "no-utf-8": b"\xff\xfe",
    "huge": b"9" * 5000,
}


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 3))])
@pytest.mark.parametrize("value", ["null", *(pytest.param(v, marks=pytest.mark.slow) for v in VALUES if v != "null")])
def test_whatever_a_server_answers_is_an_error_of_its_own(tmp_path: Path, value: str, rows: int) -> None:
    if rows != 1 and value not in ("null", "word"):
        pytest.skip("as with one row")
    with serving(VALUES[value], rows) as port:
        for words in VERBS:
            more = ("--runs", tmp_path / "runs") if words[0] == "run" else ()
            target = f"host=127.0.0.1 port={port} user=u dbname=d sslmode=disable"
            more += ("--connect-timeout", 3) if words[0] != "capture" else ()
            done = pgdyno(*words, *more, "--target", target, cwd=tmp_path, timeout=60)
            assert done.code in (1, 2, 3, 4, 5), (words, done.code, done.err)
            assert "defect" not in done.err and done.err.startswith(("pgdyno: ", "target: ")), (words, done.err)


def test_what_is_said_while_a_session_is_made_reaches_no_terminal() -> None:
    """Escapes that would steer it, hundreds of megabytes of them."""
    with serving(None, notice=b"\x1b]0;owned\x07" * 200, rounds=2000) as port:
        target = f"host=127.0.0.1 port={port} user=u dbname=d sslmode=disable"
        done = pgdyno("load", "tpcb", "--target", target, "--connect-timeout", 2, timeout=60)
    assert done.code == 3 and "\x1b" not in done.err and len(done.err) < 2000, done.err[:300]
