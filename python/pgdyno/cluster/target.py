"""The database under test, as libpq resolves it: conninfo, environment, service file, passfile."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pgdyno import conninfo as conninfos
from pgdyno import exit_handlers, libpq
from pgdyno.cluster.remedies import remedy_for
from pgdyno.errors import TargetError, msg
from pgdyno.format import one_line, printable
from pgdyno.message import Message, Name, Text

if TYPE_CHECKING:
    from pgdyno import _core

#: How long an administrative statement waits for a lock.
LOCK_S = 30.0
#: And how long it may take where nothing else is said: a CHECKPOINT of a large server takes minutes.
STATEMENT_S = 3600.0
#: How long a question may take that a server answers at once, if nothing is wrong.
PATIENCE_S = 60.0
#: Variables that say that the user means a server of their own.
ENVIRONMENT = ("PGHOST", "PGHOSTADDR", "PGSERVICE")


@dataclass(frozen=True)
class Target:
    """Everything that is needed to connect; `password` is never shown."""

    host: str
    port: int
    user: str
    dbname: str
    password: str | None = field(default=None, repr=False)
    options: dict[str, str] = field(default_factory=dict, repr=False)
    server_version: int = 0
    #: How long to wait for a connection.
    connect_timeout_s: float = 10.0
    #: In which our own client speaks, unless PGCLIENTENCODING says another; empty: in the database's.
    client_encoding: str = "UTF8"

    @property
    def dialect(self) -> Literal["postgresql"]:
        """Name of the SQL dialect."""
        return "postgresql"

    def core_config(self) -> _core.ConnConfig:
        """Return the parameters for the native module. Raise _core.CoreError."""
        from pgdyno import _core

        return _core.ConnConfig(**self.core_arguments())

    @property
    def where(self) -> Message:
        """Server and database."""
        id = "target-at-socket" if self.host.startswith(("/", "@")) else "target-at-host"
        return msg(id, name=self.dbname, host=self.host, port=str(self.port), user=self.user)

    @property
    def is_local(self) -> bool:
        """Return True if the address belongs to this machine: a socket, or loopback.

        A tunnel may lead to another machine.
        """
        host = self.options.get("hostaddr") or self.host
        return self.host.startswith(("/", "@")) or host == "localhost" or host == "::1" or host.startswith("127.")

    @property
    def conninfo(self) -> str:
        """For libpq; holds the password, so never print or store it."""
        values: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "dbname": self.dbname,
            "password": self.password,
            **self.options,
        }
        return libpq.conninfo({k: v for k, v in values.items() if v not in (None, "")})

    def core_arguments(self) -> dict[str, Any]:
        """Return the arguments for the native module's ConnConfig."""
        names = (
            "hostaddr", "sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "options", "application_name"
        )  # fmt: skip
        given = {k: self.options[k] for k in names if self.options.get(k)}
        encoding = {"client_encoding": self.client_encoding} if self.client_encoding else {}
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "dbname": self.dbname,
            "password": self.password,
            "settings": {**encoding, **session_settings()},
            **given,
        }


def session_settings() -> dict[str, str]:
    """Return the settings that libpq takes from the environment into each session."""
    named = {name: os.environ.get(variable, "") for name, variable in _SETTINGS.items()}
    return {name: value for name, value in named.items() if value and value != "auto"}


#: What libpq's fe-connect knows beyond connection parameters.
_SETTINGS = {
    "datestyle": "PGDATESTYLE", "timezone": "PGTZ", "geqo": "PGGEQO", "client_encoding": "PGCLIENTENCODING"
}  # fmt: skip


def named_by_environment() -> bool:
    """Return True if the environment names a server."""
    return any(os.environ.get(name) for name in ENVIRONMENT)


def resolve(conninfo: str, connect_timeout_s: float = 10.0, *, named: str = "--target") -> Target:
    """Connect once through libpq and return the target with the parameters that libpq used.

    Libpq knows all the places from which parameters come. `named` says where the connection string was given, such as
    --target.

    Raise UsageError if the text is not a connection string. Raise TargetError with libpq's reason and a remedy if the
    connection fails.
    """
    given = conninfos.read(conninfo, named=named)
    given.setdefault("connect_timeout", max(2, round(connect_timeout_s)))
    given.setdefault("application_name", "pgdyno")
    conn = _connected(libpq.conninfo(given), connect_timeout_s)
    try:
        if conn.status != libpq.OK:
            message, sqlstate = conn.failure()
            reason = clean(message)
            raise TargetError(reason, remedy_for(reason, sqlstate))
        # SQL_ASCII holds any bytes, and a client that is to get UTF-8 is refused those that are none.
        any_bytes = conn.parameter_status("server_encoding") == "SQL_ASCII"
        encoding = "" if any_bytes else "UTF8"
        return replace(target_of(conn), connect_timeout_s=connect_timeout_s, client_encoding=encoding)
    finally:
        conn.finish()


def connect(
    dbname: str, parameters: dict[str, str], application: str, ask: Callable[[], str] | None = None
) -> libpq.Connection:
    """Return a libpq connection, opened as PostgreSQL's own programs do, with timeouts and host lists.

    `dbname` may be a whole connection string, which then takes precedence over `parameters`. `ask` returns a password
    if the server requires one. The call blocks, and Ctrl-C ends the program during it. This is safe, because nothing
    has been done yet. Raise TargetError with libpq's message if the connection fails.
    """
    given: dict[str, Any] = dict(parameters)
    if "=" in dbname or dbname.startswith(("postgresql://", "postgres://")):
        try:
            given |= libpq.parse(dbname)
        except libpq.LibpqError as e:
            raise TargetError(str(e)) from e
    elif dbname:
        given["dbname"] = dbname
    given["fallback_application_name"] = application
    conn = _blocking(libpq.conninfo(given))
    if conn.status != libpq.OK and conn.needs_password and ask is not None:
        conn.finish()
        conn = _blocking(libpq.conninfo({**given, "password": ask()}))
    if conn.status != libpq.OK:
        reason = conn.error_message.strip()
        conn.finish()
        raise TargetError(reason)
    return conn


def _blocking(conninfo: str) -> libpq.Connection:
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        # Python's handler would run only when libpq returns.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with _own_words():
            return libpq.Connection.connect(conninfo)
    finally:
        signal.signal(signal.SIGINT, before)


#: Bytes that libpq may print while it connects.
_WORDS = 64 << 10


@contextlib.contextmanager
def _own_words() -> Iterator[None]:
    """Collect what libpq prints by itself, and print it at the end, bounded and without terminal control characters.

    Libpq prints notices itself while no connection exists on which to change that. The notices may come from any
    server.
    """
    source, sink = os.pipe()
    kept = os.dup(2)
    heard = bytearray()

    def hear() -> None:
        while piece := os.read(source, 1 << 16):
            heard.extend(piece[: _WORDS - len(heard)])

    thread = threading.Thread(target=hear, name="pgdyno-libpq", daemon=True)
    os.dup2(sink, 2)
    os.close(sink)
    thread.start()
    try:
        yield
    finally:
        # The last end of the pipe that is written to.
        os.dup2(kept, 2)
        os.close(kept)
        thread.join()
        os.close(source)
        if heard:
            sys.stderr.write(printable(heard.decode("utf-8", "replace")))
            sys.stderr.flush()


def connect_timeout_of(conn: libpq.Connection) -> float | None:
    """Return the connect_timeout of a connection in seconds; None means no timeout."""
    text = next((p.value or "" for p in conn.info if p.keyword == "connect_timeout"), "").strip()
    return float(max(2, int(text))) if text.isdigit() and int(text) else None


def target_of(conn: libpq.Connection) -> Target:
    """Return the target of an open connection.

    The connection uses the database's encoding. Raise TargetError if pgdyno's own client cannot connect in the same
    way.
    """
    used = {p.keyword: p.value for p in conn.info if p.value}
    if conn.host.startswith("@"):
        raise TargetError(
            msg("error-host-sockets-abstract-namespace-not", host=conn.host),
            msg("remedy-use-one-folder-unix-socket"),
        )
    _refuse_what_is_not_heeded(conn, used)
    password = conn.password or used.get("password") or None
    # After a list of hosts: the one that answered.
    hostaddr = used.get("hostaddr", "")
    options = {**used, "hostaddr": "" if "," in hostaddr else hostaddr, "sslcert": "", "sslkey": ""}
    options |= _client_certificate(used)
    names = (
        "hostaddr",
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "channel_binding",
        "options",
        "application_name",
    )
    return Target(
        host=conn.host or used.get("host", "/tmp"),
        port=int(conn.port or 5432),
        user=conn.user,
        dbname=conn.db,
        password=password,
        options={k: options[k] for k in names if options.get(k)},
        server_version=conn.server_version,
        client_encoding="",
    )


#: Parameters that are heeded: by our own client, or by libpq before it starts (which of several hosts, passwords,
#: services, time-outs); and those that only say something of what is not used (GSSAPI).
_HEEDED = {
    "host", "hostaddr", "port", "user", "dbname", "password", "passfile", "service", "servicefile", "connect_timeout",
    "options", "application_name", "fallback_application_name", "client_encoding", "target_session_attrs",
    "load_balance_hosts", "sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "krbsrvname", "gsslib",
    "gssdelegation", "sslcertmode", "sslcompression",
}  # fmt: skip
#: Values of others that ask for nothing else than what our client does.
_HARMLESS = {
    "gssencmode": {"prefer", "disable"},
    "sslnegotiation": {"postgres"},
    "ssl_min_protocol_version": {"TLSv1", "TLSv1.1", "TLSv1.2"},
    "ssl_max_protocol_version": {"TLSv1.3"},
    "sslsni": {"1"},
    "keepalives": {"1"},
    "replication": {"false", "off", "no", "0"},
    "min_protocol_version": {"3.0"},
    "max_protocol_version": {"3.0", "latest", "3.2"},
}


def _refuse_what_is_not_heeded(conn: libpq.Connection, used: dict[str, str]) -> None:
    """Raise TargetError for parameters that libpq applies and pgdyno's client does not.

    To ignore such a parameter would weaken what the user asked for.
    """
    compiled = {p.keyword: p.compiled or "" for p in conn.info}
    for name, value in used.items():
        if name in _HEEDED or value == compiled.get(name) or value in _HARMLESS.get(name, set()):
            continue
        shown = "" if conninfos.is_secret(name) else f"={value}"
        raise TargetError(
            msg("error-not-supported-pgdyno-s-own", name=name, shown=shown),
            msg("remedy-leave-out-or-variable-unset", name=name),
        )
    if used.get("sslcertmode") == "require":
        raise TargetError(msg("error-sslcertmode-require-not-supported-pgdyno"), msg("remedy-leave-out"))
    if used.get("sslrootcert") == "system" and used.get("sslmode") == "verify-full":
        raise TargetError(
            msg("error-sslrootcert-system-not-supported-pgdyno"), msg("remedy-name-file-sslrootcert-file")
        )


def _client_certificate(used: dict[str, str]) -> dict[str, str]:
    """Return the certificate that libpq would present, and its key.

    Each comes from the file that a parameter names, or from ~/.postgresql.
    """
    folder = Path.home() / ".postgresql"
    certificate = Path(used.get("sslcert") or folder / "postgresql.crt")
    key = used.get("sslkey") or str(folder / "postgresql.key")
    # Without the file libpq goes without a certificate.
    if used.get("sslcertmode") == "disable" or not certificate.exists():
        return {}
    return {"sslcert": str(certificate), "sslkey": key}


def _connected(conninfo: str, timeout_s: float) -> libpq.Connection:
    """Connect without psycopg's assumptions about the server.

    Libpq's own timeout applies. The returned connection may have failed. Raise TargetError if the server does not
    respond within `timeout_s`. The same applies if it keeps libpq busy for longer, with a SCRAM of billions of
    iterations.
    """
    conn = libpq.Connection.start(conninfo)
    given_up = threading.Event()
    # In a thread: what libpq reckons for a server cannot be interrupted.
    thread = threading.Thread(target=_connect, args=(conn, given_up), name="pgdyno-connect", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        host, port = conn.host, conn.port
        given_up.set()
        thread.join(0.2)
        if thread.is_alive():
            exit_handlers.skip()
        raise _too_long(Name(f"{host} port {port}"), timeout_s)
    return conn


def _too_long(where: Text, timeout_s: float) -> TargetError:
    return TargetError(
        msg("error-cannot-connect-no-session-within", where=where, timeout_s=f"{timeout_s:g}"),
        msg("remedy-postgresql-server-firewall-between-connect"),
    )


@contextmanager
def bounded(target: Target) -> Iterator[None]:
    """End pgdyno if psycopg does not connect in time.

    Psycopg's own timeout does not apply while libpq computes, such as a SCRAM of billions of iterations. No other
    thread runs then, because psycopg holds the interpreter's lock.
    """
    from pgdyno import _core

    # psycopg tries each address for the whole of its time-out before it gives up by itself.
    patience_s = 5.0 + 5 * target.connect_timeout_s
    late = _too_long(target.where, patience_s)
    deadline = _core.Deadline(patience_s, f"pgdyno: {printable(str(late))}", late.exit_code)
    try:
        yield
    finally:
        deadline.close()


def _connect(conn: libpq.Connection, given_up: threading.Event) -> None:
    while conn.status != libpq.BAD and (state := conn.poll()) not in (libpq.FAILED, libpq.READY):
        ready = False
        while not ready and not given_up.is_set():
            reading = [conn.socket] if state == libpq.READING else []
            writing = [] if reading else [conn.socket]
            ready = any(select.select(reading, writing, [], 0.1)) if conn.socket >= 0 else False
        if given_up.is_set():
            conn.finish()
            return


def clean(message: str) -> str:
    """Return a message of a server or of libpq in one line, without libpq's hints."""
    # Hints are indented, in every language, and pgdyno has its own.
    lines = [line for line in message.splitlines() if not line.startswith("\t")]
    return (
        one_line("; ".join(line.strip() for line in lines if line.strip()))
        .removeprefix("connection is bad: ")
        .removeprefix("connection failed: ")
    )
