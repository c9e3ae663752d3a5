"""What can go wrong, as exceptions; each says the cause and the remedy, and has the exit code that the CLI ends with.

PgdynoError
├── UsageError          2  the command line cannot be understood
│   └── SpecError       2  an experiment file or a script has a mistake: file, key or line, value
├── TargetError         3  the server cannot be reached, or does not let us
│   └── RefusedError    3  pgdyno itself declines: what is there is not its own
├── ClusterError        4  the server that pgdyno manages cannot be made, or has died
├── TrialError          1  a trial could not be finished
└── LocalError          5  this machine: disk full, folder not writable, no file descriptors
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
    """What is there is not pgdyno's own, or is in use."""


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
