"""Messages in pgbench's form, and how it ends."""

from __future__ import annotations

import sys
from typing import NoReturn

PROGRAM = "pgbench"


class Exit(Exception):  # noqa: N818 (an end, not always an error)
    """The program ends with this code; everything has been said."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def out(text: str) -> None:
    """To standard output, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def plain(text: str) -> None:
    """To standard error as it stands."""
    sys.stderr.write(text)
    sys.stderr.flush()


def log(level: str, text: str) -> None:
    """Print a message of a level.

    The levels are `error`, `warning`, `detail` and `hint`. The level is empty for information and debugging output.
    """
    label = f"{level}: " if level else ""
    plain(f"{PROGRAM}: {label}{text.rstrip()}\n")


def fail(text: str, *, detail: str = "", hint: str = "", code: int = 1) -> NoReturn:
    """Print an error message and end the program."""
    log("error", text)
    if detail:
        log("detail", detail)
    if hint:
        log("hint", hint)
    raise Exit(code)


HELP_HINT = f'Try "{PROGRAM} --help" for more information.'
