"""Calls of drivers: DB-API connections and those of asyncio, behind one interface.

A driver is what FACTORY returns when it is called with a `Server`: a DB-API connection (PEP 249), an asyncio connection
with `fetch` and `execute` as asyncpg's, or an object with the methods of `Driver`. Without a factory the module's own
`connect` is called.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from datetime import time as clock
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import urlencode

from pgdyno.driver.placeholders import Style, converted

Rows = Sequence[Iterable[object]]
#: Names of columns, rows, and the tag of the command; no names: it returns no rows.
Result = tuple[list[str] | None, Rows, str]


@dataclass(frozen=True)
class Server:
    """The database to connect to, and the way in which statements are sent: simple, extended or prepared."""

    conninfo: str = field(repr=False)
    host: str
    port: int
    user: str
    password: str | None = field(repr=False)
    dbname: str
    dialect: str
    mode: str
    #: Parameters of the connection beside these, by the names of libpq or of MySQL's URLs: TLS, options.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Session settings: of PostgreSQL their values, of MySQL their values as SQL.
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Statement:
    """A statement with its values."""

    sql: str
    values: tuple[object, ...]
    mode: str


class Driver(Protocol):
    """A connection; methods may return awaitables, which then run in the event loop of the worker."""

    def run(self, statements: Sequence[Statement]) -> Any:
        """Carry out the statements that the client awaits together, and return a list of results for each.

        Raise Failed with the results before it if one fails.
        """

    def status(self) -> str | None:
        """Return I, T or E as PostgreSQL names the state of a transaction, or None if the driver does not tell."""

    def close(self) -> Any:
        """End the session."""


class Failed(Exception):  # noqa: N818
    """A statement failed: results of those before it, SQLSTATE, and whether the session has ended."""

    def __init__(self, done: list[list[Result]], reason: BaseException, *, is_fatal: bool) -> None:
        super().__init__(str(reason))
        self.done = done
        self.sqlstate = sqlstate_of(reason)
        self.is_fatal = is_fatal


def sqlstate_of(error: BaseException) -> str:
    """Return the SQLSTATE of a driver's exception; XX000 if it has none."""
    names = ("sqlstate", "pgcode", "SQLSTATE")
    found = next((value for name in names if isinstance(value := getattr(error, name, None), str)), "")
    number = getattr(error, "errno", None) or (error.args[0] if error.args else None)
    if isinstance(number, int) and type(error).__module__.partition(".")[0] in _OF_MYSQL:
        # As the engine's own client names them: a number where the SQLSTATE says nothing.
        return _STATES.get(number, found if len(found) == 5 and found != "HY000" else f"M{number:04}")
    return found if len(found) == 5 else "XX000"


_OF_MYSQL = ("pymysql", "MySQLdb", "mysql")
#: SQLSTATE of errors of MySQL and MariaDB, whose drivers tell the number alone (MySQL 8.4 Error Message Reference).
_STATES = {
    1044: "42000", 1045: "28000", 1048: "23000", 1049: "42000", 1054: "42S22", 1062: "23000", 1064: "42000",
    1146: "42S02", 1213: "40001", 1264: "22003", 1292: "22007", 1305: "42000", 1317: "70100", 1365: "22012",
    1406: "22001", 1451: "23000", 1452: "23000", 1792: "25006",
}  # fmt: skip


def is_closed(connection: Any) -> bool:
    """Return True if a connection says that it is closed, in one of the ways in which drivers do."""
    closed, is_open = getattr(connection, "closed", False), getattr(connection, "open", True)
    return bool(not callable(closed) and closed) or not (callable(is_open) or is_open)


class NoPipelinesError(Exception):
    """Statements that are sent together are one transaction on PostgreSQL, which this driver cannot keep."""

    sqlstate = "0A000"

    def __init__(self) -> None:
        super().__init__("this driver has no pipelines: leave out \\startpipeline, or use psycopg")


def tag_of(sql: str, count: int) -> str:
    """Return the tag with which PostgreSQL would answer a command that `count` rows come of."""
    word = sql.lstrip(" \t\r\n(;").split(None, 1)[0].rstrip(";").upper() if sql.strip(" \t\r\n(;") else ""
    if word == "INSERT":
        return f"INSERT 0 {max(0, count)}"
    if word in ("UPDATE", "DELETE", "SELECT", "MERGE", "FETCH"):
        return f"{word} {max(0, count)}"
    return {"END": "COMMIT", "START": "BEGIN", "ABORT": "ROLLBACK", "WITH": f"SELECT {max(0, count)}"}.get(word, word)


class DbApi:
    """A connection of PEP 249."""

    def __init__(self, connection: Any, style: Style, dialect: str = "postgresql") -> None:
        self._connection = connection
        self._are_marks = dialect == "mysql"
        self._cursor = connection.cursor()
        self._nextset = getattr(self._cursor, "nextset", None)
        self._style = style
        self._texts: dict[str, tuple[str, list[int]]] = {}

    def run(self, statements: Sequence[Statement]) -> list[list[Result]]:
        """See Driver."""
        if len(statements) > 1:
            raise Failed([], NoPipelinesError(), is_fatal=False)
        try:
            return [self._one(s) for s in statements]
        except Exception as e:
            raise Failed([], e, is_fatal=is_closed(self._connection)) from e

    def _one(self, s: Statement) -> list[Result]:
        if s.mode == "simple":
            self._execute(s, s.sql, None)
        else:
            text, values = self._bound(s)
            self._execute(s, text, values)
        found = [self._result(s.sql)]
        while self._has_more():
            found.append(self._result(s.sql))
        # A text may hold several statements; what is executed with parameters has one result.
        return found if s.mode == "simple" else found[:1]

    def _has_more(self) -> bool:
        """Go to the next result, where the driver knows such."""
        if self._nextset is None:
            return False
        try:
            return bool(self._nextset())
        except Exception as e:
            if type(e).__name__ != "NotSupportedError":
                raise
            self._nextset = None
            return False

    def _bound(self, s: Statement) -> tuple[str, Any]:
        """Return the text of a statement in the driver's style, and its values."""
        if (known := self._texts.get(s.sql)) is None:
            known = self._texts[s.sql] = converted(s.sql, self._style, are_marks=self._are_marks)
        text, order = known
        values = tuple(s.values[n] for n in order)
        return text, {f"p{n + 1}": v for n, v in enumerate(values)} if self._style == "named" else values

    def _execute(self, s: Statement, text: str, values: Any) -> None:
        if values:
            self._cursor.execute(text, values)
        else:
            # Without values a driver does not look for placeholders.
            self._cursor.execute(s.sql)

    def _result(self, sql: str) -> Result:
        tag = getattr(self._cursor, "statusmessage", None)
        described = self._cursor.description
        if described is None:
            return None, (), tag or tag_of(sql, self._cursor.rowcount)
        rows = self._cursor.fetchall()
        return [str(column[0]) for column in described], rows, tag or tag_of(sql, len(rows))

    def status(self) -> str | None:
        """See Driver."""
        return None

    def close(self) -> None:
        """See Driver."""
        self._connection.close()


class Psycopg(DbApi):
    """psycopg 3: the client's cursor for simple, the server's parameters for the others, and its pipeline mode."""

    def __init__(self, connection: Any, mode: str) -> None:
        import psycopg

        if mode == "simple":
            connection.cursor_factory = psycopg.ClientCursor
        super().__init__(connection, "format")
        self._states = {0: "I", 1: "T", 2: "T", 3: "E"}

    def _execute(self, s: Statement, text: str, values: Any) -> None:
        if s.mode == "simple":
            self._cursor.execute(text)
        else:
            self._cursor.execute(text, values, prepare=s.mode == "prepared")

    def run(self, statements: Sequence[Statement]) -> list[list[Result]]:
        """See Driver."""
        if len(statements) < 2:
            return super().run(statements)
        cursors = []
        try:
            with self._connection.pipeline():
                for s in statements:
                    text, values = self._bound(s)
                    cursors.append(self._connection.execute(text, values, prepare=s.mode == "prepared"))
        except Exception as e:
            # Which of them failed is not told: none of them counts.
            raise Failed([], e, is_fatal=is_closed(self._connection)) from e
        done: list[list[Result]] = []
        for cursor in cursors:
            rows = cursor.fetchall() if cursor.description else ()
            names = [c.name for c in cursor.description] if cursor.description else None
            done.append([(names, rows, cursor.statusmessage or "")])
        return done

    def status(self) -> str | None:
        """See Driver."""
        return self._states.get(int(self._connection.info.transaction_status))


#: What makes of a script's text the value that asyncpg wants for a type: it takes no text for a number or a time.
_OF_TEXT: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), int),
    **dict.fromkeys(("float4", "float8"), float),
    "numeric": Decimal,
    "bool": lambda text: text.lower() in ("t", "true", "1", "on", "yes"),
    "date": date.fromisoformat,
    "time": clock.fromisoformat,
    **dict.fromkeys(("timestamp", "timestamptz"), datetime.fromisoformat),
}
_TEXTS = frozenset(("text", "varchar", "bpchar", "name", "json", "jsonb", "xml", "char"))


def _typed(value: object, kind: str) -> object:
    """Return a value of a script as the type of a parameter wants it."""
    if isinstance(value, str):
        return _OF_TEXT[kind](value) if kind in _OF_TEXT else value
    if kind in _TEXTS and isinstance(value, int | float):
        return str(value)
    return int(value) if kind in ("int2", "int4", "int8") and isinstance(value, float) else value


class Asyncpg:
    """asyncpg: one connection, statements prepared once where the mode says so."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._prepared: dict[str, tuple[Any, list[str]]] = {}

    async def run(self, statements: Sequence[Statement]) -> list[list[Result]]:
        """See Driver."""
        if len(statements) > 1:
            raise Failed([], NoPipelinesError(), is_fatal=False)
        try:
            return [[await self._one(s)] for s in statements]
        except Exception as e:
            raise Failed([], e, is_fatal=self._connection.is_closed()) from e

    async def _one(self, s: Statement) -> Result:
        if s.mode == "simple":
            return None, (), await self._connection.execute(s.sql)
        known = self._prepared.get(s.sql) if s.mode == "prepared" else None
        if known is None:
            prepared = await self._connection.prepare(s.sql)
            known = prepared, [p.name for p in prepared.get_parameters()]
            if s.mode == "prepared":
                self._prepared[s.sql] = known
        statement, kinds = known
        rows = await statement.fetch(*map(_typed, s.values, kinds))
        names = [a.name for a in statement.get_attributes()]
        return names or None, rows, statement.get_statusmsg() or ""

    def status(self) -> str | None:
        """See Driver."""
        return None

    async def close(self) -> None:
        """See Driver."""
        await self._connection.close()


class Nothing:
    """Answers at once: what it takes is what the workers take."""

    def run(self, statements: Sequence[Statement]) -> list[list[Result]]:
        """See Driver."""
        return [[(["one"], ((1,),), "SELECT 1")] for _ in statements]

    def status(self) -> str | None:
        """See Driver."""
        return "I"

    def close(self) -> None:
        """See Driver."""


class NothingAwaited(Nothing):
    """Nothing in an event loop."""

    async def run(self, statements: Sequence[Statement]) -> list[list[Result]]:  # type: ignore[override]
        """See Driver."""
        return super().run(statements)


def nothing(_: Server) -> Nothing:
    """Return a driver that does nothing, called as DB-API drivers are."""
    return Nothing()


async def nothing_awaited(_: Server) -> NothingAwaited:
    """Return a driver that does nothing, called as those of asyncio are."""
    return NothingAwaited()


def _psycopg(server: Server) -> Any:
    import psycopg

    return psycopg.connect(server.conninfo, autocommit=True)


async def _asyncpg(server: Server) -> Any:
    import asyncpg  # type: ignore[import-not-found,import-untyped,unused-ignore]

    # It knows the parameters of TLS in a URL. Without a cache it prepares nothing that stays; with one it would prepare
    # in every mode.
    known = ("sslmode", "sslrootcert", "sslcert", "sslkey", "options")
    values = {name: server.options[name] for name in known if server.options.get(name)}
    values |= {"host": server.options.get("hostaddr") or server.host, "port": str(server.port)}
    return await asyncpg.connect(
        f"postgresql:///?{urlencode(values)}", user=server.user, password=server.password, database=server.dbname,
        statement_cache_size=1000 if server.mode == "prepared" else 0,
    )  # fmt: skip


def _mysql(module: Any) -> Callable[[Server], Any]:
    def connect(server: Server) -> Any:
        place: dict[str, Any] = (
            {"unix_socket": server.host} if server.host.startswith("/") else {"host": server.host, "port": server.port}
        )
        tls = {k: v for k, v in server.options.items() if k.startswith("ssl-") and v not in ("PREFERRED", "DISABLED")}
        if tls and module.__name__ != "pymysql":
            raise ValueError(f"{module.__name__} is not told how to verify TLS here ({', '.join(tls)}): use a factory")
        if tls:
            mode = tls.get("ssl-mode", "REQUIRED")
            place |= {"ssl": {"ca": tls.get("ssl-ca"), "cert": tls.get("ssl-cert"), "key": tls.get("ssl-key")}}
            place |= {"ssl_verify_cert": mode.startswith("VERIFY"), "ssl_verify_identity": mode == "VERIFY_IDENTITY"}
        return module.connect(
            **place, user=server.user, password=server.password or "", database=server.dbname, autocommit=True
        )

    return connect


def _db_api(module: Any) -> Callable[[Server], Any]:
    def connect(server: Server) -> Any:
        connection = module.connect(server.conninfo)
        connection.autocommit = True
        return connection

    return connect


def preparing(server: Server) -> list[Statement]:
    """Return the statements with which a session of the load begins: its name, and its settings.

    Drivers may ignore what a connection string has of them.
    """
    if server.dialect == "mysql":
        texts = [f"SET SESSION {name} = {value}" for name, value in server.settings.items()]
    else:
        pairs = {**server.settings, **settings_of(server.options.get("options", ""))}
        literal = "SELECT set_config('{}', '{}', false)".format
        texts = [literal(*(x.replace("'", "''") for x in pair)) for pair in pairs.items()]
    return [Statement(text, (), "simple") for text in texts]


def settings_of(options: str) -> dict[str, str]:
    """Return the settings in libpq's `options`: -c name=value, --name=value; a backslash keeps a blank."""
    words = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|\S)+", options)]
    text = "\0".join(words).replace("-c\0", "-c")
    pairs = [word[2:].partition("=") for word in text.split("\0") if word.startswith(("-c", "--"))]
    return {name.replace("-", "_"): value for name, _, value in pairs if name}


def factory(module_name: str, name: str) -> Callable[[Server], Any]:
    """Return what makes connections of a module. Raise ImportError, AttributeError if there is no such thing."""
    module = importlib.import_module(module_name)
    if name:
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]
    if module_name == "psycopg":
        return _psycopg
    if module_name == "asyncpg":
        return _asyncpg
    if module_name in ("pymysql", "MySQLdb", "mysql.connector"):
        return _mysql(module)
    if not hasattr(module, "connect"):
        raise AttributeError("connect")
    return _db_api(module)


def adapted(connection: Any, module_name: str, server: Server) -> Driver:
    """Return a driver's connection behind the interface of all. Raise TypeError if it is none."""
    if hasattr(connection, "run") and hasattr(connection, "status"):
        return connection  # type: ignore[no-any-return]
    root = type(connection).__module__.partition(".")[0]
    if root == "psycopg":
        return Psycopg(connection, server.mode)
    if inspect.iscoroutinefunction(getattr(type(connection), "execute", None)) and hasattr(connection, "prepare"):
        return Asyncpg(connection)
    if not hasattr(connection, "cursor"):
        raise TypeError(type(connection).__name__)
    module = importlib.import_module(module_name)
    found = next((m for m in (module, importlib.import_module(root)) if hasattr(m, "paramstyle")), None)
    return DbApi(connection, found.paramstyle if found is not None else "format", server.dialect)


async def awaited(value: Any) -> Any:
    """Return a value, once it is there."""
    return await value if isinstance(value, Awaitable) else value
