"""Errors as exceptions: cause, remedy, and the exit code of the command line.

- PgdynoError: the base class of all errors
  - ReasonError: why something is not valid; another error names the thing
  - UsageError, exit code 2: the command line cannot be understood
    - SpecError, exit code 2: an experiment file or a script has a mistake; names file, key or line, and value
  - TargetError, exit code 3: the server cannot be reached, or denies access
    - RefusedError, exit code 3: pgdyno itself refuses, because it did not create what exists
  - ClusterError, exit code 4: the server that pgdyno manages cannot be created, or has died
  - TrialError, exit code 1: a trial could not be finished
  - LocalError, exit code 5: a problem of this machine: disk full, folder not writable, no file descriptors
"""

from __future__ import annotations

from pgdyno.format import one_line
from pgdyno.message import Listed, Message, Name, Text, listed
from pgdyno.units import Quantity, Share


class PgdynoError(Exception):
    """The base: what is wrong, and what to do about it (may be empty).

    A plain string is somebody else's words, such as a server's; it is the same in every language.
    """

    exit_code = 1

    def __init__(self, message: Text | str, remedy: Text | str = "") -> None:
        self.cause = Name(message) if isinstance(message, str) else message
        self.advice = Name(remedy) if isinstance(remedy, str) else remedy
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The cause, in English."""
        return _written(self.cause, "en")

    @property
    def remedy(self) -> str:
        """The remedy, in English; may be empty."""
        return _written(self.advice, "en")

    @property
    def whole(self) -> Text:
        """The cause and, on a line of its own, the remedy."""
        return listed((x for x in (self.cause, self.advice) if x != Name("")), "line")

    def text(self, lang: str = "en") -> str:
        """Write the cause and, on a line of its own, the remedy."""
        return "\n".join(filter(None, (_written(self.cause, lang), _written(self.advice, lang))))

    def __str__(self) -> str:
        return self.text()


def msg(id: str, /, **args: object) -> Message:
    """Return the message of an error by its id. Arguments other than texts and quantities are names."""
    return Message(id, {name: _argument(value) for name, value in args.items()})


def reason(error: BaseException) -> Text:
    """Return the cause of an error. Somebody else's words are in one line of at most 200 characters, never empty."""
    if isinstance(error, PgdynoError):
        return error.cause
    words = error.strerror if isinstance(error, OSError) and error.strerror else error
    return Name(one_line(words, 200) or type(error).__name__)


def _argument(value: object) -> Text | Quantity | Share:
    match value:
        case Message() | Name() | Listed() | Quantity() | Share():
            return value
        case PgdynoError() if value.advice == Name(""):
            return value.cause
        case OSError() | ValueError():
            return reason(value)
    return Name(str(value))


def _written(text: Text, lang: str) -> str:
    if isinstance(text, Name):
        # Not every program that may fail needs the catalogues.
        return text.text
    from pgdyno import i18n

    return i18n.text(text, lang)


class ReasonError(PgdynoError, ValueError):
    """Something is not valid: the reason alone, for an error that names the thing."""


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
