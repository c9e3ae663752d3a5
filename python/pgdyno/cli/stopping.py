"""Ctrl-C and SIGTERM in verbs that have nothing to report when they are stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.errors import EXIT_SIGINT, EXIT_SIGTERM, PgdynoError, msg
from pgdyno.interrupt import Terminated, signals_raise
from pgdyno.message import Message


class StoppedError(PgdynoError):
    """The user wanted no more."""

    def __init__(self, message: Message, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def stoppable() -> Iterator[None]:
    """Within it a signal winds everything up and ends as a StoppedError, with the exit code that shells expect."""
    try:
        with signals_raise():
            yield
    except KeyboardInterrupt as e:
        raise StoppedError(msg("error-interrupted"), EXIT_SIGINT) from e
    except Terminated as e:
        raise StoppedError(msg("error-stopped-sigterm"), EXIT_SIGTERM) from e
