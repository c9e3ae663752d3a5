"""Tell what our sessions wait for, asked by another session while they stand still."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import psycopg

from pgdyno.cluster.target import Target, bounded, clean
from pgdyno.message import Name, Text, message
from pgdyno.search_path import SAFE_PATH

#: Seconds after which a session that waits is asked about.
PATIENCE_S = 3.0
#: Receives a sentence; None: nothing is reported.
report: Callable[[Text], object] | None = None

# Of what works, or reads and writes, nothing is said: that takes as long as it takes.
_ASK = """
select wait_event_type, wait_event, query, pg_catalog.pg_blocking_pids(pid),
       pg_catalog.current_setting('synchronous_standby_names')
from pg_catalog.pg_stat_activity
where state = 'active' and pg_catalog.clock_timestamp() - query_start >= %s * interval '1 s'
  and (wait_event_type = 'Lock' or wait_event in ('SyncRep', 'CheckpointStart', 'CheckpointDone'))
  and (pid = %s or (application_name = %s and backend_start >= pg_catalog.clock_timestamp() - %s * interval '1 s'))"""


def tell(target: Target, *, backend: int = 0, application: str = "", age_s: float = 0.0) -> bool:
    """Report what a backend waits for, or what sessions with an application name wait for.

    Only sessions of that name that began within `age_s` seconds count. Return True if there was something to report,
    or if nothing is to be reported.
    """
    if report is None:
        return True
    options = f"-c search_path={SAFE_PATH} -c statement_timeout=1000"
    asked = (PATIENCE_S / 2, backend, application, age_s)
    try:
        with bounded(target):
            conn = psycopg.connect(
                target.conninfo, autocommit=True, connect_timeout=2, application_name="pgdyno admin", options=options
            )
        with conn:
            rows = conn.execute(_ASK, asked).fetchall()
    except psycopg.Error:
        return False
    for kind, event, query, blocking, standbys in rows:
        statement = clean(" ".join(str(query).split()))[:60]
        why = _reason(kind, event, list(blocking or []), str(standbys))
        report(message("progress-waits", where=target.where, statement=Name(statement), reason=why))
    return bool(rows)


def _reason(kind: str, event: str, blocking: list[int], standbys: str) -> Text:
    if event == "SyncRep":
        return message("progress-waits-standby", standbys=Name(clean(standbys)))
    if kind == "Lock":
        processes = Name(", ".join(map(str, blocking)))
        held = message("progress-waits-holders", processes=processes) if blocking else None
        return message("progress-waits-lock", event=Name(event), holders=held)
    return message("progress-waits-checkpoint")


@contextlib.contextmanager
def watched(target: Target, application: str = "pgdyno") -> Iterator[None]:
    """Tell once what the sessions wait for that are made within, if they stand still."""
    if report is None:
        yield
        return
    over, began = threading.Event(), time.monotonic()

    def look_on() -> None:
        while not over.wait(PATIENCE_S):
            if tell(target, application=application, age_s=time.monotonic() - began + 1):
                return

    thread = threading.Thread(target=look_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
