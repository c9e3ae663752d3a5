"""Standard output and standard error, whatever whoever started us has made of them."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import Any, NoReturn, TextIO, cast

from pgdyno import exit_handlers
from pgdyno.errors import PgdynoError, msg
from pgdyno.format import printable
from pgdyno.message import Message, Text

#: No message is longer: of a server's or a file's words the beginning says enough.
_LONGEST = 20_000
#: Language of messages: that of --lang, once it was read; None: of the locale.
language: str | None = None


class _Lossy:
    """A stream that takes everything, whether it can be written or not: no run is lost for its progress."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare() -> None:
    """Make standard input, output and error safe to use, even if they are closed.

    Output to a closed stream is discarded. Without this, the next file that the program opens would receive the free
    descriptor number, and messages would be written into that file. Output that standard error cannot take is lost.
    Standard output is the purpose of the call, so its write errors are reported.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = cast(TextIO, _Lossy(sys.stderr or open(2, "w", closefd=False)))  # noqa: SIM115


def clean_warnings() -> None:
    """Print libraries' warnings as our own messages, cleaned and bounded: they may hold a server's words."""
    # Only here: a run of pgbench needs no library that warns, and a tenth of its start would go into the import.
    import logging

    class Cleaned(logging.Handler):
        most = 20

        def emit(self, record: logging.LogRecord) -> None:
            self.most -= 1
            if self.most >= 0:
                say(f"{record.name}: {record.getMessage()}")

    logging.lastResort = Cleaned(logging.WARNING)


def give_up_output() -> None:
    """Discard the content of standard output's buffer, because it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def leave(code: int) -> NoReturn:
    """End the process with an exit code."""
    if exit_handlers.are_skipped():
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def say(message: str) -> None:
    """Print a message on standard error, without terminal control characters and with a bounded length."""
    text = printable(message)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} … ({len(message):,} characters in all)"
    sys.stderr.write(f"pgdyno: {text}\n")
    sys.stderr.flush()


def written(text: Text) -> str:
    """Write a text in the language of the output."""
    from pgdyno import i18n

    return i18n.text(text, language or i18n.chosen(None))


def say_error(error: PgdynoError) -> None:
    """Print an error in the language of the output."""
    from pgdyno import i18n

    say(error.text(language or i18n.chosen(None)))


def written_down(error: BaseException) -> Message:
    """Write the error's traceback to a file and return a sentence with the file's path."""
    import traceback
    from datetime import UTC, datetime

    from pgdyno import home

    try:
        folder = home.state()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"defect-{datetime.now(UTC):%Y%m%dT%H%M%S}.txt"
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8", errors="replace")
    except OSError:
        return msg("defect-not-saved")
    return msg("defect-saved", path=path)
