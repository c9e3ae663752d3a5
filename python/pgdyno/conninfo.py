"""Connection strings: parsed as libpq does, and shown without secrets."""

from __future__ import annotations

import re
from typing import Any

from pgdyno import libpq
from pgdyno.errors import UsageError, msg

#: Parameters that are a secret, or lead to one.
_SECRET = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
#: What a value looks like that holds a secret: a connection string or URI with a password in it, in any text.
_LOOKS_SECRET = re.compile(r"pass(word|phrase|wd)?\s*=|://[^/\s]*@", re.IGNORECASE)
#: A text that may hold a password somewhere, however it is misspelt.
_MAY_HOLD_SECRET = re.compile(r"pass|pwd|secret|key|token|@|://", re.IGNORECASE)
#: Names of options, for suggestions.
_OPTIONS = (
    "host", "hostaddr", "port", "dbname", "user", "password", "passfile", "connect_timeout", "options", "sslmode",
    "sslcert", "sslkey", "sslrootcert", "application_name", "target_session_attrs", "service", "gssencmode",
    "channel_binding", "load_balance_hosts", "keepalives", "tcp_user_timeout", "client_encoding",
)  # fmt: skip


def read(text: str, *, named: str) -> dict[str, Any]:
    """Return the parameters of a connection string.

    `named` is the place of the string, for the error message. Raise UsageError if the string is not valid.
    """
    scheme, is_url, _ = text.partition("://")
    if is_url and scheme.isalnum() and scheme.lower() not in ("postgres", "postgresql"):
        raise UsageError(msg("error-unknown-scheme", named=named, scheme=scheme), msg("remedy-known-schemes"))
    try:
        found = dict(libpq.parse(text))
    except libpq.LibpqError as e:
        raise UsageError(
            msg("error-not-connection-string", named=named, without_quoted=_reason(text, str(e))),
            msg("remedy-write-libpq-reads-host-db1"),
        ) from e
    for port in str(found.get("port") or "").split(","):
        # The password of a URL that is written without %-codes may stand in its place.
        if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            shown = "…" if is_url or _MAY_HOLD_SECRET.search(text) else port
            raise UsageError(msg("error-no-port", named=named, port=shown), msg("remedy-write-libpq-reads-host-db1"))
    return found


def _reason(text: str, message: str) -> str:
    """Return libpq's message about a connection string; without the words that it quotes if one may be of a password.

    Of an unknown option, name the known one that comes nearest.
    """
    # Only here: it would be a fiftieth of the start of pgbench.
    from difflib import get_close_matches

    quoted = re.findall(r'"([^"]*)"', message)
    near = get_close_matches(quoted[0], _OPTIONS, 1, 0.7) if len(quoted) == 1 else []

    def word(m: re.Match[str]) -> str:
        # A parameter's name, or nearly one: a password is seldom that.
        is_name = get_close_matches(m[1], _OPTIONS, 1, 0.7) and not _MAY_HOLD_SECRET.search(text)
        return m[0] if m[1] == "=" or is_name else '"…"'

    flat = " ".join(message.split())
    # A quote within a word is not escaped: the pairs cannot be told.
    shown = re.sub(r'".*"', '"…"', flat) if '"' in text else re.sub(r'"([^"]*)"', word, flat)
    return f'{shown} (did you mean "{near[0]}"?)' if near else shown


def holds_secret(text: str) -> bool:
    """Return True if a connection string contains a password, in any spelling.

    A string that cannot be parsed may contain one.
    """
    if text.partition("://")[0].lower() in ("mysql", "mariadb"):
        # A slash in a password should be written %2F, and may not be.
        return re.match(r"\w+://[^:@/]*:.*@", text) is not None
    try:
        given = libpq.parse(text)
    except libpq.LibpqError:
        return looks_secret(text)
    return any(given.get(name) for name in _SECRET)


def is_secret(name: str) -> bool:
    """Return True if the value of a parameter must never be shown."""
    return name in _SECRET


def looks_secret(value: str) -> bool:
    """Return True if a text of any kind may contain a password."""
    return _LOOKS_SECRET.search(value) is not None
