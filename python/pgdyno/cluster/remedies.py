"""Remedies for errors of a server or of a connection.

The SQLSTATE selects the remedy, also in another language. If it says too little, the beginning of the message does. A
value inside a message never selects a remedy.
"""

from __future__ import annotations

import re

_CREATE = "Create it first: createdb NAME, or createuser NAME."
_READ_ONLY = "Is it a standby, or default_transaction_read_only on for this role or database?"
_CLIENTS = "Raise max_connections, or use fewer --clients."
_WAIT = "Wait until the server has finished its recovery, then try again."
_STATEMENT_TIMEOUT = "The role or the database has a statement_timeout: lift it, or use another role."
_PASSWORD = "Set PGPASSWORD, or check the entry in ~/.pgpass (or PGPASSFILE)."
#: By SQLSTATE (appendix A of PostgreSQL's manual).
_BY_STATE = {
    "28P01": _PASSWORD,
    "3D000": "Create it first: createdb NAME.",
    "53300": _CLIENTS,
    "53100": "The server's disk is full: free some space, or use a smaller --scale.",
    "53200": "The server is out of memory: use fewer --clients, or lower work_mem.",
    "55P03": "Another session holds the lock: pg_stat_activity and pg_locks name it. Wait for it, or end it.",
    "57P03": _WAIT,
    "57P05": "The role or the database has an idle_session_timeout: lift it, or use another role.",
    "57014": _STATEMENT_TIMEOUT,
    "25006": _READ_ONLY,
}
_FAILED = r"(?:connection to server .* failed: )?(?:FATAL|ERROR):\s+"
#: By libpq's own words, or those of a FATAL of a server that speaks English; names in quotes may hold anything.
_BY_WORDS = (
    (_FAILED + r'password authentication failed for user ".*"', _PASSWORD),
    (r".*fe_sendauth: no password supplied", "Set PGPASSWORD, or write the password to ~/.pgpass."),
    (_FAILED + r'(?:role|database) ".*" does not exist', _CREATE),
    (_FAILED + r'Peer authentication failed for user ".*"',
     "On its socket the server admits a role only to the operating system's user of that name: add user=NAME with the "
     "name of a role that you may be, run pgdyno as that user, or connect by host=localhost with a password."),
    (_FAILED + r'Ident authentication failed for user ".*"',
     "The server admits only the operating system's user of the role's name: add user=NAME, or change pg_hba.conf."),
    (r".*Connection refused", "Is the server running, and does it listen there (listen_addresses, port)?"),
    (r".*No such file or directory", "Is the server running? host=/path names the folder of its socket."),
    (r".*could not translate host name|.*name does not resolve", "Check the spelling of host, or give hostaddr."),
    (r".*timeout expired", "Is a firewall between? --connect-timeout sets how long to wait."),
    (_FAILED + r"no pg_hba\.conf entry", "Add a line for this user, database and address to pg_hba.conf and reload."),
    (_FAILED + r"(?:sorry, )?too many clients|" + _FAILED + r"remaining connection slots", _CLIENTS),
    (r".*server does not support SSL|.*does not offer TLS", "Set ssl=on in the server, or use sslmode=prefer."),
    (r".*certificate verify failed", "Give the right root certificate: sslrootcert=FILE."),
    (r".*root certificate file", "Give it as sslrootcert=FILE, or use sslmode=require to go without verification."),
    (r".*server certificate for", "Connect by a name that the certificate holds, or use sslmode=verify-ca."),
    (_FAILED + r"the database system is starting up", _WAIT),
    (_FAILED + r"too many connections for role",
     "Raise its limit (ALTER ROLE … CONNECTION LIMIT), or use fewer --clients."),
    (_FAILED + r"too many connections for database",
     "Raise its limit (ALTER DATABASE … CONNECTION LIMIT), or fewer --clients."),
    (_FAILED + r'role ".*" is not permitted to log in',
     "Let the role log in: ALTER ROLE … LOGIN, or use another role."),
    (_FAILED + r'database ".*" is not currently accepting connections',
     "ALTER DATABASE … ALLOW_CONNECTIONS true, or use another database."),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern, re.DOTALL), remedy) for pattern, remedy in _BY_WORDS)
#: Where the server speaks another language than English, and the SQLSTATE stands for several errors.
_BY_STATE_ALONE = {
    "28000": "The server does not admit this role: check that it exists and may log in, and the lines of pg_hba.conf.",
    "55000": "The database does not accept connections: ALTER DATABASE … ALLOW_CONNECTIONS true, or use another one.",
    "53300": _CLIENTS,
}
#: How the native module puts a server's error; of a failed session more stands before it.
_OURS = re.compile(r"cannot begin a session at \S+( port \d+)?: |cannot connect to [^:]*(:\d+)?: ")
_STATE = re.compile(r" \(SQLSTATE ([0-9A-Z]{5})\)")


def remedy_for(reason: str, sqlstate: str | None = None) -> str:
    """Return what to do about an error; empty if nothing is known.

    `reason` is the message. Its words count only if the error has no `sqlstate` that says enough.
    """
    if sqlstate and (found := _BY_STATE.get(sqlstate)):
        return found
    # FATAL of a session says more than its class: 28000 is of a role that does not exist, and of pg_hba.conf.
    if sqlstate and not sqlstate.startswith(("08", "28", "53", "55", "57")):
        return ""
    words = _OURS.sub("", reason, count=1)
    known = next((remedy for pattern, remedy in _COMPILED if pattern.match(words)), "")
    return known or _BY_STATE_ALONE.get(sqlstate or "", "")
