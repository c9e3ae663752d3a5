"""A MySQL or MariaDB database, given by a URL, by option files and by the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pgdyno import _core
from pgdyno.errors import UsageError, msg
from pgdyno.message import Message

SCHEMES = ("mysql", "mariadb")
_PORT = 3306
#: Option files, in the order in which the servers' clients read them; later ones count.
_FILES = ("/etc/my.cnf", "/etc/mysql/my.cnf", "~/.my.cnf")
#: Groups of them that all clients read.
_GROUPS = ("client", "client-server", "client-mariadb")
#: Modes of TLS, as MySQL's clients name them.
_SSL_MODES = {
    "DISABLED": "disable",
    "PREFERRED": "prefer",
    "REQUIRED": "require",
    "VERIFY_CA": "verify-ca",
    "VERIFY_IDENTITY": "verify-full",
}
#: Options of a URL, and the fields that they set.
_OPTIONS = (
    "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "get-server-public-key", "enable-cleartext-plugin", "socket",
)  # fmt: skip
_TRUE = ("1", "true", "on", "")


@dataclass(frozen=True)
class MySqlTarget:
    """Everything that is needed to connect; `password` is never shown. A `host` that begins with / is a socket."""

    host: str
    port: int
    user: str
    dbname: str
    password: str | None = field(default=None, repr=False)
    options: dict[str, str] = field(default_factory=dict, repr=False)
    #: System variables of the sessions of the load.
    settings: Mapping[str, str] = field(default_factory=dict)
    server_version: int = 0
    connect_timeout_s: float = 10.0

    dialect: Literal["mysql"] = "mysql"

    @property
    def where(self) -> Message:
        """Server and database."""
        id = "target-at-socket" if self.host.startswith("/") else "target-at-host"
        return msg(id, name=self.dbname, host=self.host, port=str(self.port), user=self.user)

    @property
    def is_local(self) -> bool:
        """Return True if the address belongs to this machine: a socket, or loopback."""
        return self.host.startswith("/") or self.host in ("localhost", "::1") or self.host.startswith("127.")

    def core_config(self, program: str = "pgdyno") -> _core.MySqlConfig:
        """Return the parameters for the native module. Raise _core.CoreError."""
        return _core.MySqlConfig(
            host=self.host,
            port=self.port,
            user=self.user,
            database=self.dbname,
            password=self.password,
            sslmode=_SSL_MODES[self.options.get("ssl-mode", "PREFERRED")],
            sslrootcert=self.options.get("ssl-ca"),
            sslcert=self.options.get("ssl-cert"),
            sslkey=self.options.get("ssl-key"),
            program=program,
            settings=dict(self.settings),
            ask_public_key=self.options.get("get-server-public-key", "0").lower() in _TRUE,
            clear_password=self.options.get("enable-cleartext-plugin", "0").lower() in _TRUE,
        )


def names_mysql(conninfo: str) -> bool:
    """Return True if a connection string is a URL of MySQL or MariaDB."""
    return conninfo.partition("://")[0].lower() in SCHEMES and "://" in conninfo


def read(url: str, *, named: str, connect_timeout_s: float = 10.0) -> MySqlTarget:
    """Return the target of a URL; what it leaves open comes from the environment and from option files.

    `named` is the place of the URL, for messages. Raise UsageError if the URL is not valid.
    """

    def wrong(id: str, **args: object) -> UsageError:
        return UsageError(msg(id, named=named, **args), msg("remedy-mysql-url"))

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # The words of the exception may hold a part of the password.
        raise wrong("error-not-mysql-url") from None
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in given:
        if name not in _OPTIONS:
            raise wrong("error-mysql-url-option", name=name, known=", ".join(_OPTIONS))
    files = _from_files()
    options = {k: v for k, v in {**files, **given}.items() if k in _OPTIONS and k != "socket"}
    options["ssl-mode"] = options.get("ssl-mode", _ssl_mode_of(files)).upper()
    if options["ssl-mode"] not in _SSL_MODES:
        raise wrong("error-mysql-url-ssl-mode", name=options["ssl-mode"], known=", ".join(_SSL_MODES))
    named_host = unquote(parts.hostname or "")
    if given.get("socket"):
        # What is named here is meant, whatever files and variables say.
        if named_host not in ("", "localhost") or port is not None:
            raise wrong("error-mysql-url-socket")
        host = given["socket"]
    else:
        host = named_host or os.environ.get("MYSQL_HOST", "") or files.get("host", "")
        # As MySQL's clients have it: "localhost" means the socket, if no port is given.
        socket = _socket(files) if host in ("", "localhost") and port is None else ""
        host = socket or host or "localhost"
    try:
        port = port or int(os.environ.get("MYSQL_TCP_PORT") or files.get("port") or _PORT)
    except ValueError:
        raise wrong("error-mysql-port") from None
    user = unquote(parts.username or "") or files.get("user") or os.environ.get("USER") or "root"
    password = parts.password and unquote(parts.password)
    password = password or os.environ.get("MYSQL_PWD") or files.get("password")
    dbname = unquote(parts.path.strip("/")) or files.get("database", "")
    if not dbname:
        raise wrong("error-mysql-url-database")
    return MySqlTarget(host, port, user, dbname, password, options, connect_timeout_s=connect_timeout_s)


def _socket(files: Mapping[str, str]) -> str:
    named = os.environ.get("MYSQL_UNIX_PORT") or files.get("socket", "")
    return named if named and Path(named).exists() else ""


def _from_files() -> dict[str, str]:
    """Return the options of the option files that all clients read."""
    found: dict[str, str] = {}
    for name in _FILES:
        path = Path(name).expanduser()
        for file in _with_included(path):
            try:
                found |= _options_of(file.read_text(encoding="utf-8", errors="replace"))
            except OSError:
                continue
    return found


def _with_included(path: Path) -> Iterator[Path]:
    yield path
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for what, name in re.findall(r"(?m)^\s*!(includedir|include)\s+(\S+)", text):
        yield from sorted(Path(name).glob("*.cnf")) if what == "includedir" else [Path(name)]


def _ssl_mode_of(files: Mapping[str, str]) -> str:
    """Return the mode of TLS that option files ask for by MariaDB's options."""
    if files.get("skip-ssl", "0").lower() in _TRUE or files.get("ssl", "1").lower() in ("0", "false", "off"):
        return "DISABLED"
    if files.get("ssl-verify-server-cert", "0").lower() in _TRUE:
        return "VERIFY_IDENTITY"
    return "REQUIRED" if "ssl" in files else "PREFERRED"


def _options_of(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    is_ours = False
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("["):
            is_ours = words.strip("[]").strip() in _GROUPS
        elif is_ours and words and words[0] not in "#;!":
            name, _, value = words.partition("=")
            found[name.strip().replace("_", "-").lower()] = value.strip().strip("\"'")
    return found


def facts_of(target: MySqlTarget) -> dict[str, Any]:
    """Return the address for a manifest, without secrets."""
    return {"host": target.host, "port": target.port, "dbname": target.dbname}
