"""The database under test, as libpq resolves it: conninfo, environment, service file, passfile."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
from psycopg import pq
from psycopg.abc import RV, PQGen

from pgdyno import conninfo as conninfos
from pgdyno.errors import TargetError

#: How long an administrative statement waits for a lock.
LOCK_S = 30.0
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

    @property
    def where(self) -> str:
        """Server and database, in words."""
        at = f"socket {self.host}" if self.host.startswith(("/", "@")) else self.host
        return f'database "{self.dbname}" at {at} port {self.port} as "{self.user}"'

    @property
    def is_local(self) -> bool:
        """Whether the address is of this machine: a socket, or loopback. A tunnel may lead elsewhere."""
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
        return psycopg.conninfo.make_conninfo("", **{k: v for k, v in values.items() if v not in (None, "")})

    def core_arguments(self) -> dict[str, Any]:
        """What the native module's ConnConfig takes."""
        names = (
            "hostaddr", "sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "options", "application_name"
        )  # fmt: skip
        given = {k: self.options[k] for k in names if self.options.get(k)}
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "dbname": self.dbname,
            "password": self.password,
            "settings": session_settings(),
            **given,
        }


def session_settings() -> dict[str, str]:
    """Settings that libpq takes from the environment into each session."""
    named = {name: os.environ.get(variable, "") for name, variable in _SETTINGS.items()}
    return {name: value for name, value in named.items() if value and value != "auto"}


#: What libpq's fe-connect knows beyond connection parameters.
_SETTINGS = {
    "datestyle": "PGDATESTYLE", "timezone": "PGTZ", "geqo": "PGGEQO", "client_encoding": "PGCLIENTENCODING"
}  # fmt: skip


def named_by_environment() -> bool:
    """Whether the environment names a server."""
    return any(os.environ.get(name) for name in ENVIRONMENT)


def resolve(conninfo: str, connect_timeout_s: float = 10.0, *, named: str = "--target") -> Target:
    """Connects once by libpq, which knows all the places that parameters come from, and reads back what it used.
    `named`: where the connection string stands.

    Raises UsageError where it is no connection string, TargetError with libpq's reason and what to do about it.
    """
    given = conninfos.read(conninfo, named=named)
    given.setdefault("connect_timeout", max(2, round(connect_timeout_s)))
    given.setdefault("application_name", "pgdyno")
    conn = _connected(_full(given), connect_timeout_s)
    try:
        if conn.status != pq.ConnStatus.OK:
            reason = _clean(conn.error_message.decode("utf-8", "replace"))
            raise TargetError(reason, remedy_for(reason))
        return replace(target_of(conn), connect_timeout_s=connect_timeout_s)
    finally:
        conn.finish()


def connect(
    dbname: str, parameters: dict[str, str], application: str, ask: Callable[[], str] | None = None
) -> pq.abc.PGconn:
    """A libpq connection as PostgreSQL's own programs make it, time-outs and lists of hosts included: `dbname` may be a
    whole connection string, which then wins over `parameters`; `ask` gives a password where the server wants one.
    Blocks, and Ctrl-C ends the program meanwhile: nothing has been done yet. Raises TargetError in libpq's words.
    """
    given: dict[str, Any] = dict(parameters)
    if "=" in dbname or dbname.startswith(("postgresql://", "postgres://")):
        try:
            given |= psycopg.conninfo.conninfo_to_dict(dbname)
        except psycopg.ProgrammingError as e:
            raise TargetError(str(e).strip()) from e
    elif dbname:
        given["dbname"] = dbname
    given["fallback_application_name"] = application
    conn = _blocking(_full(given))
    if conn.status != pq.ConnStatus.OK and conn.needs_password and ask is not None:
        conn.finish()
        conn = _blocking(_full({**given, "password": ask()}))
    if conn.status != pq.ConnStatus.OK:
        reason = conn.error_message.decode("utf-8", "replace").strip()
        conn.finish()
        raise TargetError(reason)
    return conn


def _blocking(conninfo: bytes) -> pq.abc.PGconn:
    # Python's handler would run only when libpq returns.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return pq.PGconn.connect(conninfo)
    finally:
        signal.signal(signal.SIGINT, before)


def connect_timeout_of(conn: pq.abc.PGconn) -> float | None:
    """The connect_timeout that a connection was made with, in seconds; none: without end."""
    found = next((o.val for o in conn.info if o.keyword == b"connect_timeout"), None)
    text = (found or b"").decode().strip()
    return float(max(2, int(text))) if text.isdigit() and int(text) else None


def _full(given: dict[str, Any]) -> bytes:
    full: str = psycopg.conninfo.make_conninfo("", **given)
    return full.encode()


def target_of(conn: pq.abc.PGconn) -> Target:
    """What an open connection was made of. Raises TargetError where our own client cannot do the same."""
    used = {o.keyword.decode(): (o.val or b"").decode() for o in conn.info if o.val}
    _refuse_what_is_not_heeded(used)
    password = conn.password.decode() or used.get("password") or None
    # After a list of hosts: the one that answered.
    hostaddr = used.get("hostaddr", "")
    options = {**used, "hostaddr": "" if "," in hostaddr else hostaddr}
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
        host=conn.host.decode() or used.get("host", "/tmp"),
        port=int(conn.port.decode() or 5432),
        user=conn.user.decode(),
        dbname=conn.db.decode(),
        password=password,
        options={k: options[k] for k in names if options.get(k)},
        server_version=conn.server_version,
    )


#: What libpq would heed and our client does not yet; ignoring it would weaken what the user asked for.
_NOT_HEEDED = {"require_auth": (), "sslcrl": (), "sslcrldir": (), "sslnegotiation": ("postgres",), "sslpassword": ()}


def _refuse_what_is_not_heeded(used: dict[str, str]) -> None:
    for name, harmless in _NOT_HEEDED.items():
        if used.get(name) and used[name] not in harmless:
            raise TargetError(
                f"{name} is not supported by pgdyno's own client", f"Leave {name} out, or its variable unset."
            )
    if used.get("sslrootcert") == "system" and used.get("sslmode") == "verify-full":
        raise TargetError(
            "sslrootcert=system is not supported by pgdyno's own client", "Name the file: sslrootcert=FILE."
        )


def _connected(conninfo: bytes, timeout_s: float) -> pq.abc.PGconn:
    """Connects without psycopg's assumptions about the server; libpq's own time-out applies. The result may be a
    connection that has failed.
    """
    import select
    import time

    conn = pq.PGconn.connect_start(conninfo)
    deadline = time.monotonic() + timeout_s
    state = None
    while conn.status != pq.ConnStatus.BAD and state != pq.PollingStatus.OK:
        state = conn.connect_poll()
        if state == pq.PollingStatus.FAILED:
            break
        if state == pq.PollingStatus.OK:
            break
        left = deadline - time.monotonic()
        ready = False
        if left > 0 and conn.socket >= 0:
            reading = [conn.socket] if state == pq.PollingStatus.READING else []
            writing = [] if reading else [conn.socket]
            ready = any(select.select(reading, writing, [], left))
        if not ready:
            host, port = conn.host.decode(), conn.port.decode()
            conn.finish()
            raise TargetError(
                f"cannot connect to {host} port {port}: no answer within {timeout_s:g} s",
                "Is that a PostgreSQL server? Is a firewall between? --connect-timeout sets how long to wait.",
            )
    return conn


def _clean(message: str) -> str:
    return " ".join(message.split()).removeprefix("connection is bad: ")


def remedy_for(reason: str) -> str:
    """What to do about a connection's failure, by what the server or libpq say of it."""
    cases = {
        "password authentication failed": "Set PGPASSWORD, or check the entry in ~/.pgpass (or PGPASSFILE).",
        "no password supplied": "Set PGPASSWORD, or write the password to ~/.pgpass.",
        "does not exist": "Create it first: createdb NAME, or createuser NAME.",
        "Connection refused": "Is the server running, and does it listen there (listen_addresses, port)?",
        "No such file or directory": "Is the server running? host=/path names the folder of its socket.",
        "could not translate host name": "Check the spelling of host, or give hostaddr.",
        "name does not resolve": "Check the spelling of host, or give hostaddr.",
        "timeout expired": "Is a firewall between? --connect-timeout sets how long to wait.",
        "no pg_hba.conf entry": "Add a line for this user, database and address to pg_hba.conf and reload.",
        "too many clients": "Raise max_connections, or use fewer --clients.",
        "remaining connection slots": "Raise max_connections, or use fewer --clients.",
        "does not support SSL": "Set ssl=on in the server, or use sslmode=prefer.",
        "does not offer TLS": "Set ssl=on in the server, or use sslmode=prefer.",
        "certificate verify failed": "Give the right root certificate: sslrootcert=FILE.",
        "root certificate file": "Give it as sslrootcert=FILE, or use sslmode=require to go without verification.",
        "server certificate for": "Connect by a name that the certificate holds, or use sslmode=verify-ca.",
        "starting up": "Wait until the server has finished its recovery, then try again.",
    }
    return next((remedy for words, remedy in cases.items() if words in reason), "")


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """As psycopg's; but what is asked is answered within `patience_s`, or the connection is given up: a server that is
    frozen does not heed its own time-outs.
    """

    patience_s: float | None = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            return super().wait(gen, interval, self.patience_s if timeout is None else timeout)
        except psycopg.errors._WaitTimeout as e:
            self.close()
            raise psycopg.OperationalError("the server does not answer") from e


def administrative(target: Target, *, patience_s: float | None = None) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection for administrative SQL; the caller closes it. No statement waits for a lock longer than LOCK_S, and
    none for anything longer than `patience_s`, where that is given.
    """
    try:
        conn = _Connection.connect(
            target.conninfo,
            autocommit=True,
            application_name="pgdyno admin",
            # Without an encoding (SQL_ASCII) psycopg would give bytes for text.
            client_encoding="UTF8",
            connect_timeout=max(2, round(target.connect_timeout_s)),
        )
        try:
            conn.patience_s = target.connect_timeout_s if patience_s is None else patience_s + 1
            limits = {"lock_timeout": LOCK_S if patience_s is None else patience_s / 2, "statement_timeout": patience_s}
            for name, seconds in limits.items():
                if seconds is not None:
                    conn.execute("select set_config(%s, %s, false)", [name, f"{round(seconds * 1000)}ms"])
            conn.patience_s = None if patience_s is None else patience_s + 1
        except psycopg.errors.DatabaseError:
            # Not quite PostgreSQL, unless it is gone.
            if conn.closed:
                raise
        return conn
    except psycopg.Error as e:
        reason = _clean(str(e))
        raise TargetError(reason, remedy_for(reason)) from e
