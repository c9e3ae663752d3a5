"""Bindings for the part of libpq that is needed before a session of pgdyno exists.

They show the sources of connection parameters, and provide a connection for setup. They use ctypes and the library
that psycopg includes. Importing psycopg itself takes ten times as long as the start of pgbench.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pgdyno.errors import LocalError, msg

#: ConnStatusType.
OK, BAD = 0, 1
#: PostgresPollingStatusType.
FAILED, READING, WRITING, READY = 0, 1, 2, 3
#: ExecStatusType.
COPY_IN, NONFATAL_ERROR, FATAL_ERROR = 4, 6, 7
#: PGVerbosity.
_VERBOSE = 2
#: An error of a server, as libpq writes it then.
_WITH_STATE = re.compile(r"^(.*?[A-ZÀ-Þ]+:  )([0-9A-Z]{5}): ", re.DOTALL)
_LOCATION = re.compile(r"\n\S+: {1,2}\S+, \S+:\d+\s*$")
#: PG_DIAG_SQLSTATE.
_SQLSTATE = ord("C")
_Processor = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class LibpqError(Exception):
    """Error with the message of libpq."""


class _Option(ctypes.Structure):
    _fields_ = (
        ("keyword", ctypes.c_char_p),
        ("envvar", ctypes.c_char_p),
        ("compiled", ctypes.c_char_p),
        ("val", ctypes.c_char_p),
        ("label", ctypes.c_char_p),
        ("dispchar", ctypes.c_char_p),
        ("dispsize", ctypes.c_int),
    )


class Parameter(NamedTuple):
    """A connection parameter: its default, and what it is."""

    keyword: str
    compiled: str | None
    value: str | None


@cache
def _library() -> Any:
    """Load libpq.

    Raise LocalError if it was not found.
    """
    found: list[str] = []
    spec = importlib.util.find_spec("psycopg_binary")
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).parent
        folders = (package.with_name("psycopg_binary.libs"), package / ".dylibs")
        found = [str(p) for folder in folders for p in sorted(folder.glob("libpq[-.]*"))]
    for name in (*found, "libpq.so.5", "libpq.5.dylib"):
        try:
            return _declared(ctypes.CDLL(name))
        except OSError:
            continue
    raise LocalError(msg("error-libpq-was-not-found"), msg("remedy-install-pip-install-psycopg-binary"))


def _declared(lib: Any) -> Any:
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    functions: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "PQconnectdb": (pointer, (text,)),
        "PQconnectStart": (pointer, (text,)),
        "PQconnectPoll": (number, (pointer,)),
        "PQconninfo": (ctypes.POINTER(_Option), (pointer,)),
        "PQconninfoParse": (ctypes.POINTER(_Option), (text, ctypes.POINTER(pointer))),
        "PQconninfoFree": (None, (ctypes.POINTER(_Option),)),
        "PQfreemem": (None, (pointer,)),
        "PQfinish": (None, (pointer,)),
        "PQstatus": (number, (pointer,)),
        "PQsocket": (number, (pointer,)),
        "PQserverVersion": (number, (pointer,)),
        "PQconnectionNeedsPassword": (number, (pointer,)),
        "PQsetnonblocking": (number, (pointer, number)),
        "PQsetErrorVerbosity": (number, (pointer, number)),
        "PQsetNoticeProcessor": (pointer, (pointer, _Processor, pointer)),
        "PQparameterStatus": (text, (pointer, text)),
        "PQsendQuery": (number, (pointer, text)),
        "PQflush": (number, (pointer,)),
        "PQisBusy": (number, (pointer,)),
        "PQconsumeInput": (number, (pointer,)),
        "PQgetResult": (pointer, (pointer,)),
        "PQputCopyData": (number, (pointer, text, number)),
        "PQputCopyEnd": (number, (pointer, text)),
        "PQgetCancel": (pointer, (pointer,)),
        "PQcancel": (number, (pointer, text, number)),
        "PQfreeCancel": (None, (pointer,)),
        "PQclear": (None, (pointer,)),
        "PQresultStatus": (number, (pointer,)),
        "PQresultErrorMessage": (text, (pointer,)),
        "PQresultErrorField": (text, (pointer, number)),
        "PQntuples": (number, (pointer,)),
        "PQgetvalue": (text, (pointer, number, number)),
        "PQgetisnull": (number, (pointer, number, number)),
    }
    functions |= {f"PQ{name}": (text, (pointer,)) for name in ("errorMessage", "host", "port", "user", "db", "pass")}
    for name, (result, arguments) in functions.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def parse(conninfo: str) -> dict[str, str]:
    """Return the parameters that a connection string or URI names.

    Raise LibpqError if the string is not valid.
    """
    lib, message = _library(), ctypes.c_void_p()
    options = lib.PQconninfoParse(_bytes(conninfo), ctypes.byref(message))
    if not options:
        said = ctypes.string_at(message.value).decode("utf-8", "replace") if message.value else "out of memory"
        lib.PQfreemem(message)
        raise LibpqError(said.strip())
    return {p.keyword: p.value for p in _taken(options) if p.value is not None}


def conninfo(parameters: dict[str, Any]) -> str:
    """Return a connection string of these parameters."""

    def quoted(value: Any) -> str:
        escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"

    return " ".join(f"{name}={quoted(value)}" for name, value in parameters.items() if value is not None)


def _taken(options: Any) -> list[Parameter]:
    """Read libpq's list of parameters and free it."""

    def text(raw: bytes | None) -> str | None:
        return None if raw is None else raw.decode("utf-8", "surrogateescape")

    found, n = [], 0
    while options[n].keyword:
        o = options[n]
        found.append(Parameter(o.keyword.decode(), text(o.compiled), text(o.val)))
        n += 1
    _library().PQconninfoFree(options)
    return found


class Result:
    """Result of a command."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer
        self._lib = _library()

    def __del__(self) -> None:
        self._lib.PQclear(self._pointer)

    @property
    def status(self) -> int:
        """One of the constants."""
        return int(self._lib.PQresultStatus(self._pointer))

    @property
    def error_message(self) -> str:
        """Error message of the server."""
        return _text(self._lib.PQresultErrorMessage(self._pointer))

    @property
    def sqlstate(self) -> str:
        """SQLSTATE of an error."""
        return _text(self._lib.PQresultErrorField(self._pointer, _SQLSTATE))

    @property
    def ntuples(self) -> int:
        """Rows."""
        return int(self._lib.PQntuples(self._pointer))

    def get_value(self, row: int, column: int) -> bytes | None:
        """Return a value; None means NULL."""
        if self._lib.PQgetisnull(self._pointer, row, column):
            return None
        value: bytes = self._lib.PQgetvalue(self._pointer, row, column)
        return value


class Connection:
    """A connection; `finish` it."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer
        self._lib = _library()
        self._processor: Any = None

    @classmethod
    def connect(cls, conninfo: str) -> Connection:
        """Connect, and wait until the attempt has succeeded or failed: see `status`."""
        return cls(_library().PQconnectdb(_bytes(conninfo)))

    @classmethod
    def start(cls, conninfo: str) -> Connection:
        """Begin to connect; go on by `poll`. What the server says meanwhile is not shown: it may be anybody's."""
        conn = cls(_library().PQconnectStart(_bytes(conninfo)))
        conn.notices(lambda _: None)
        # Then an error that ends the attempt has its SQLSTATE, which is the same in every language.
        conn._lib.PQsetErrorVerbosity(conn._pointer, _VERBOSE)
        return conn

    def poll(self) -> int:
        """Goes on connecting: FAILED, READY, or what is waited for, READING or WRITING."""
        return int(self._lib.PQconnectPoll(self._pointer))

    def finish(self) -> None:
        """Close the connection."""
        if self._pointer:
            self._lib.PQfinish(self._pointer)
            self._pointer = 0

    def __del__(self) -> None:
        self.finish()

    # ------------------------------------------------------------ facts

    @property
    def status(self) -> int:
        """OK, BAD, or a step on the way."""
        return int(self._lib.PQstatus(self._pointer))

    @property
    def error_message(self) -> str:
        """Message of the most recent error."""
        return _text(self._lib.PQerrorMessage(self._pointer))

    def failure(self) -> tuple[str, str | None]:
        """Return the error of a connection begun by `start`, and its SQLSTATE, or None if libpq itself failed."""
        text = _LOCATION.sub("", self.error_message.rstrip())
        match = _WITH_STATE.match(text)
        return (text, None) if match is None else (match[1] + text[match.end() :], match[2])

    @property
    def needs_password(self) -> bool:
        """Return True if the connection failed because it had no password."""
        return bool(self._lib.PQconnectionNeedsPassword(self._pointer))

    @property
    def socket(self) -> int:
        """Its descriptor; -1 without one."""
        return int(self._lib.PQsocket(self._pointer))

    @property
    def host(self) -> str:
        """Host of the connection; if several were given, the one that accepted it."""
        return _text(self._lib.PQhost(self._pointer))

    @property
    def port(self) -> str:
        """Port as text."""
        return _text(self._lib.PQport(self._pointer))

    @property
    def user(self) -> str:
        """The role."""
        return _text(self._lib.PQuser(self._pointer))

    @property
    def db(self) -> str:
        """The database."""
        return _text(self._lib.PQdb(self._pointer))

    @property
    def password(self) -> str:
        """Password, whatever its source."""
        return _text(self._lib.PQpass(self._pointer))

    @property
    def server_version(self) -> int:
        """180001 is 18.1."""
        return int(self._lib.PQserverVersion(self._pointer))

    @property
    def info(self) -> list[Parameter]:
        """All parameters, as they were used."""
        return _taken(self._lib.PQconninfo(self._pointer))

    def parameter_status(self, name: str) -> str | None:
        """Return the value that the server has reported for a setting, or None."""
        value = self._lib.PQparameterStatus(self._pointer, name.encode())
        return None if value is None else _text(value)

    # ------------------------------------------------------------ commands

    def do_not_block(self) -> None:
        """Set the connection to non-blocking: from now on sending does not wait."""
        self._lib.PQsetnonblocking(self._pointer, 1)

    def notices(self, show: Callable[[str], object]) -> None:
        """Lets `show` have the server's notices."""
        self._processor = _Processor(lambda _, message: show(_text(message)) and None)
        self._lib.PQsetNoticeProcessor(self._pointer, self._processor, None)

    def send_query(self, sql: str) -> None:
        """Send a query.

        Raise LibpqError if it cannot be sent.
        """
        self._check(self._lib.PQsendQuery(self._pointer, _bytes(sql)) == 1)

    def flush(self) -> bool:
        """Send queued data; return True if data remains to be sent.

        Raise LibpqError if sending fails.
        """
        left = self._lib.PQflush(self._pointer)
        self._check(left >= 0)
        return bool(left)

    def is_busy(self) -> bool:
        """Return True if the next result is not yet available without waiting."""
        return bool(self._lib.PQisBusy(self._pointer))

    def consume_input(self) -> None:
        """Read the data that has arrived from the server.

        Raise LibpqError if reading fails.
        """
        self._check(self._lib.PQconsumeInput(self._pointer) == 1)

    def get_result(self) -> Result | None:
        """Return the next result, or None after the last one."""
        pointer = self._lib.PQgetResult(self._pointer)
        return Result(pointer) if pointer else None

    def put_copy_data(self, data: bytes) -> bool:
        """Send COPY data; return True if libpq accepted it.

        If the return value is False, wait until the socket is writable, then retry. Raise LibpqError if sending fails.
        """
        done = self._lib.PQputCopyData(self._pointer, data, len(data))
        self._check(done >= 0)
        return bool(done)

    def put_copy_end(self, why: bytes | None = None) -> bool:
        """Send the end of the COPY data; return True if libpq accepted it.

        If the return value is False, wait until the socket is writable, then retry. `why` makes the COPY fail. Raise
        LibpqError if sending fails.
        """
        done = self._lib.PQputCopyEnd(self._pointer, why)
        self._check(done >= 0)
        return bool(done)

    def cancel(self) -> None:
        """Asks the server to give up what it is doing."""
        cancel = self._lib.PQgetCancel(self._pointer)
        if cancel:
            self._lib.PQcancel(cancel, ctypes.create_string_buffer(256), 256)
            self._lib.PQfreeCancel(cancel)

    def _check(self, fine: bool) -> None:
        if not fine:
            raise LibpqError(self.error_message.strip())


def _bytes(text: str) -> bytes:
    # Words of the command line may be in any encoding: they go as they came.
    return text.encode("utf-8", "surrogateescape")


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")
