"""Errors as exceptions: cause, remedy, and the exit code of the command line.

- PgdynoError: the base class of all errors
  - UsageError, exit code 2: the command line cannot be understood
    - SpecError, exit code 2: an experiment file or a script has a mistake; names file, key or line, and value
  - TargetError, exit code 3: the server cannot be reached, or denies access
    - RefusedError, exit code 3: pgdyno itself refuses, because it did not create what exists
  - ClusterError, exit code 4: the server that pgdyno manages cannot be created, or has died
  - TrialError, exit code 1: a trial could not be finished
  - LocalError, exit code 5: a problem of this machine: disk full, folder not writable, no file descriptors
"""

from __future__ import annotations


class PgdynoError(Exception):
    """The base: a message, and what to do about it (may be empty)."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}" if self.remedy else self.message


class UsageError(PgdynoError):
    """The command line cannot be understood."""

    exit_code = 2


class SpecError(UsageError):
    """An experiment file or a script has a mistake."""


class TargetError(PgdynoError):
    """The server cannot be reached, or does not let us."""

    exit_code = 3


class RefusedError(TargetError):
    """Refusal to use existing objects that pgdyno did not create, or that somebody uses."""


class ClusterError(PgdynoError):
    """The server that pgdyno manages cannot be made, or has died."""

    exit_code = 4


class TrialError(PgdynoError):
    """A trial could not be finished."""

    exit_code = 1


class LocalError(PgdynoError):
    """Our own machine does not let us: disk full, folder not writable."""

    exit_code = 5


#: Exit codes that no exception carries.
EXIT_OK = 0
EXIT_WITH_CAVEATS = 1
#: What --fail-if names has come to pass.
EXIT_THRESHOLD = 6
EXIT_DEFECT = 70
EXIT_SIGINT = 130
EXIT_SIGTERM = 143
