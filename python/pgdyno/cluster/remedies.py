"""Remedies for errors of a server or of a connection.

The SQLSTATE selects the remedy, also in another language. If it says too little, the beginning of the message does. A
value inside a message never selects a remedy. The tables have the ends of the ids `remedy-server-...`.
"""

from __future__ import annotations

import re
from functools import cache

from pgdyno.errors import msg
from pgdyno.message import Text, listed

_CREATE = "create"
_READ_ONLY = "read-only"
_CLIENTS = "clients"
_WAIT = "wait"
_STATEMENT_TIMEOUT = "statement-timeout"
_PASSWORD = "password"
#: By SQLSTATE (appendix A of PostgreSQL's manual).
_BY_STATE = {
    "28P01": _PASSWORD,
    "3D000": "createdb",
    "53100": "disk-full",
    "53200": "out-of-memory",
    "55P03": "lock",
    "57P03": _WAIT,
    "57P05": "idle-timeout",
    "57014": _STATEMENT_TIMEOUT,
    "25006": _READ_ONLY,
}
_FAILED = r"(?:connection to server .* failed: )?(?:FATAL|ERROR):\s+"
#: By libpq's own words, or those of a FATAL of a server that speaks English; names in quotes may hold anything.
_BY_WORDS = (
    (_FAILED + r'password authentication failed for user ".*"', _PASSWORD),
    (r".*fe_sendauth: no password supplied", "no-password"),
    (_FAILED + r'(?:role|database) ".*" does not exist', _CREATE),
    (_FAILED + r'Peer authentication failed for user ".*"',
     "peer"),
    (_FAILED + r'Ident authentication failed for user ".*"',
     "ident"),
    (r".*Connection refused", "refused"),
    (r".*No such file or directory", "no-socket"),
    (r".*could not translate host name|.*name does not resolve", "host"),
    (r".*timeout expired", "timeout"),
    (_FAILED + r"no pg_hba\.conf entry", "hba"),
    (_FAILED + r"(?:sorry, )?too many clients|" + _FAILED + r"remaining connection slots", _CLIENTS),
    (r".*server does not support SSL|.*does not offer TLS", "no-ssl"),
    (r".*certificate verify failed", "root-certificate"),
    (r".*root certificate file", "no-root-certificate"),
    (r".*server certificate for", "certificate-name"),
    (_FAILED + r"the database system is starting up", _WAIT),
    (_FAILED + r"too many connections for role",
     "role-limit"),
    (_FAILED + r"too many connections for database",
     "database-limit"),
    (_FAILED + r'role ".*" is not permitted to log in',
     "no-login"),
    (_FAILED + r'database ".*" is not currently accepting connections',
     "no-connections"),
)  # fmt: skip
#: Where the server speaks another language than English, and the SQLSTATE stands for several errors.
_BY_STATE_ALONE = {
    "28000": "not-admitted",
    "55000": "not-accepting",
    "53300": _CLIENTS,
}
#: How the native module puts a server's error; of a failed session more stands before it.
_OURS = r"cannot begin a session at \S+( port \d+)?: |cannot connect to [^:]*(:\d+)?: "


def remedy_for(reason: str, sqlstate: str | None = None) -> Text:
    """Return what to do about an error; the text is empty if nothing is known.

    `reason` is the message. Its words count only if the error has no `sqlstate` that says enough.
    """
    found = _found(reason, sqlstate)
    return msg(f"remedy-server-{found}") if found else listed([])


@cache
def _compiled() -> list[tuple[re.Pattern[str], str]]:
    # Only an error needs them: a start without one is 4 ms shorter.
    return [(re.compile(pattern, re.DOTALL), remedy) for pattern, remedy in _BY_WORDS]


def _found(reason: str, sqlstate: str | None) -> str | None:
    if sqlstate and (found := _BY_STATE.get(sqlstate)):
        return found
    # FATAL of a session says more than its class: 28000 is of a role that does not exist, and of pg_hba.conf.
    if sqlstate and not sqlstate.startswith(("08", "28", "53", "55", "57")):
        return None
    words = re.sub(_OURS, "", reason, count=1)
    known = next((remedy for pattern, remedy in _compiled() if pattern.match(words)), None)
    return known or _BY_STATE_ALONE.get(sqlstate or "")
