"""Other sessions that may disturb a run; standbys and replication slots.

The sessions are those that hold locks for which pgdyno's sessions wait, and those that hold an old snapshot.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, LiteralString

import psycopg

from pgdyno.collect.sources.base import Differences, Row
from pgdyno.search_path import relation_shown

Connection = psycopg.Connection[tuple[Any, ...]]
#: Of ours that wait, some: pg_blocking_pids looks at the whole lock table.
_BLOCKED: LiteralString = """
with waiting as materialized (
  select a.pid, left(a.query, 200) as query, a.wait_event, pg_blocking_pids(a.pid) as by
  from pg_stat_activity a
  where a.wait_event_type = 'Lock' and a.backend_type = 'client backend'
    and case when %(all)s then a.datname = current_database() else a.application_name = %(ours)s end limit 10),
locks as materialized (select * from pg_locks where pid in (select pid from waiting))
select w.query, coalesce(l.locktype, w.wait_event), coalesce(l.relation::regclass::text, ''),
       coalesce(b.application_name, ''),
       -- Of another role's session one without pg_monitor sees only that it is there.
       case when b.by = 0 then 'a prepared transaction' when b.pid is null then ''
         else coalesce(b.backend_type, 'a session of another role') end, coalesce(b.state, ''),
       coalesce(left(b.query, 200), ''), coalesce(extract(epoch from clock_timestamp() - b.xact_start), 0)::float8
from waiting w
left join lateral (select locktype, coalesce(relation, (select k.relation from locks k
                     where k.pid = w.pid and k.locktype = 'tuple' limit 1)) as relation
                   from locks where pid = w.pid and not granted limit 1) l on true
left join lateral (select u as by, x.* from unnest(w.by) u left join pg_stat_activity x on x.pid = u
                   order by coalesce(x.application_name = %(ours)s, false) limit 1) b on true
where w.by <> '{}'"""
_OLDEST: LiteralString = """
select coalesce(extract(epoch from clock_timestamp() - a.began), 0)::float8, coalesce(a.transactions, 0)::float8,
       coalesce((select max(age(xmin)) from pg_replication_slots where xmin is not null), 0)::float8
from (select 1) one
left join lateral (
  -- A transaction that has written, and waits, has a number and no snapshot: rows stay for it all the same.
  select xact_start as began, greatest(age(backend_xmin), age(backend_xid)) as transactions from pg_stat_activity
  where (backend_xmin is not null or backend_xid is not null) and pid <> pg_backend_pid()
    and backend_type = 'client backend' and datid = (select oid from pg_database where datname = current_database())
    and coalesce(application_name, '') not in (%s, 'pgdyno admin')
  union all
  select prepared, age(transaction) from pg_prepared_xacts where database = current_database()
  order by transactions desc limit 1) a on true"""
_OTHERS: LiteralString = """
select pid from pg_stat_get_activity(null)
where backend_type = 'client backend' and coalesce(application_name, '') not in (%s, 'pgdyno admin')"""
#: Sessions that were at work within this time: thousands of idle ones would cost more than they tell. An idle session
#: reports its last statistics after 10 s at the latest.
_ENDED_S = 12
_IO: LiteralString = """
select a.pid, extract(epoch from clock_timestamp() - a.backend_start)::float8,
       coalesce(a.application_name, ''), left(a.query, 200),
       a.state <> 'idle', a.query_start, io.read::float8, io.written::float8, w.wal_bytes::float8
from pg_stat_get_activity(null) a
cross join lateral (select coalesce(sum(read_bytes), 0) as read,
                           greatest(coalesce(sum(write_bytes), 0), coalesce(sum(extend_bytes), 0)) as written
                    from pg_stat_get_backend_io(a.pid) where object <> 'wal') io
cross join lateral pg_stat_get_backend_wal(a.pid) w
where a.backend_type = 'client backend' and coalesce(a.application_name, '') not in (%s, 'pgdyno admin')
  -- Null: the session has ended meanwhile.
  and w.wal_bytes is not null and (a.state <> 'idle' or a.state_change > clock_timestamp() - make_interval(secs => %s))
limit 50"""
#: A transaction that does nothing for longer is not at work.
_IDLE_S = 1.0
#: Statements of maintenance, which disturb the work of others.
MAINTENANCE = (
    r"^\s*(vacuum|analyze|reindex|cluster|create\s+(unique\s+)?index|alter\s+(table|index)|refresh|copy\s.*\sto\s|"
    r"lock\s|checkpoint|drop\s)"
)
#: Strings, with backslashes where E stands before them; between dollars; numbers with their sign, but not in names.
_LITERAL = re.compile(
    r"\b[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$"
    r"|(?:(?<=[\s(,=+*/<>])-)?(?<![\w$.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b",
    re.DOTALL,
)


def without_literals(text: str) -> str:
    """Return a statement in one line, without its constants.

    Constants may be secrets or private data. A statement that was cut off within quotes ends at the opening quote.
    """
    found = _LITERAL.sub("…", " ".join(text.split()))
    for opening in ("'", "$$"):
        before, cut, _ = found.partition(opening)
        found = f"{before}…" if cut else found
    return found


def other_sessions(conn: Connection, application: str) -> set[int]:
    """Return the process ids of client backends that are not pgdyno's; `application` is the name of its clients."""
    return {int(pid) for (pid,) in conn.execute(_OTHERS, [application], prepare=True)}


class CommandIo:
    """Bytes of commands of other sessions that ended, by the statistics of each backend (PostgreSQL 18)."""

    name = "command_io"
    period_s = 1.0
    #: Version of the server that counts them.
    SINCE = 180000

    def __init__(self, conn: Connection, application: str, has_others: Callable[[], bool]) -> None:
        """Set up the source. `has_others` returns True if another session was seen at work since its last call."""
        self._conn = conn
        self._application = application
        self._has_others = has_others
        self._grown = Differences()
        #: What a session ran at the last look, or had run last within an open transaction, and its begin.
        self._ran: dict[int, tuple[str, object] | None] = {}
        #: Seconds since the last look; before the first one, none that count.
        self._since_s = -math.inf

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        self._since_s += seconds
        if not self._has_others() and not self._ran:
            return []
        found: list[Row] = []
        rows = self._conn.execute(_IO, [self._application, _ENDED_S], prepare=True).fetchall()
        for pid, age_s, application, query, is_busy, start, *counted in rows:
            now = dict(zip(("read_bytes", "write_bytes", "wal_bytes"), counted, strict=True))
            if pid not in self._ran and age_s < self._since_s:
                # One that has begun since the last look: all that it counts is of this time.
                self._grown.of(pid, dict.fromkeys(now, 0.0))
            grown = self._grown.of(pid, now)
            # What a backend counts, it tells when a command has ended: the one that ran at the last look, or else the
            # last one. One that runs now has not ended: of others before it nothing is known.
            before, now_runs = self._ran.get(pid), (query, start) if is_busy else None
            self._ran[pid] = now_runs
            command = before[0] if before is not None and before != now_runs else "" if is_busy else query
            if grown is not None and any(grown.values()) and command:
                found.append({"application": application, "command": without_literals(command), **grown})
        self._since_s = 0.0
        self._ran = {row[0]: self._ran[row[0]] for row in rows}
        self._grown.only(set(self._ran))
        return found


class Blockers:
    """Lock waits of pgdyno's clients: one row per second for each of some waiting sessions.

    Rows exist only while any client waits for a lock. A row holds what the session waits for, and the lock holder.
    `by_ours` is 1 if the lock holder is one of pgdyno's clients.
    """

    name = "blockers"
    period_s = 1.0

    def __init__(
        self, conn: Connection, application: str, is_locked: Callable[[], bool], *, everybody: bool = False
    ) -> None:
        """Set up the source. With `everybody`, sessions at their usual work are ours: see `Waits`."""
        self._conn = conn
        self._application = application
        self._is_locked = is_locked
        self._everybody = everybody

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        if not self._is_locked():
            return []
        found: list[Row] = []
        rows = self._conn.execute(_BLOCKED, {"ours": self._application, "all": self._everybody}).fetchall()
        for statement, lock, relation, by, kind, state, holder, held_s in rows:
            found.append(
                {
                    "statement": without_literals(statement),
                    "lock": lock,
                    "relation": relation_shown(self._conn, relation),
                    "by": by or kind,
                    "by_ours": float(self._is_ours(by, kind, state, holder, held_s)),
                    "by_state": state,
                    "by_statement": without_literals(holder),
                    "by_seconds": held_s,
                }
            )
        return found

    def _is_ours(self, application: str, kind: str, state: str, statement: str, held_s: float) -> bool:
        if not self._everybody:
            return application == self._application
        is_idle = state.startswith("idle") and held_s > _IDLE_S
        return kind == "client backend" and not is_idle and re.match(MAINTENANCE, statement, re.IGNORECASE) is None


class Snapshots:
    """Oldest snapshots that keep dead rows, one row per second.

    The row describes the session (or prepared transaction) in this database for which dead rows are kept longest.
    Sessions of pgdyno are excluded. The row holds the age of its transaction in seconds, and the age of its snapshot
    in transactions. It also holds the age of the replication slots' oldest snapshot in transactions.
    """

    name = "snapshots"
    period_s = 1.0

    def __init__(self, conn: Connection, application: str) -> None:
        self._conn = conn
        self._application = application

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        row = self._conn.execute(_OLDEST, [self._application], prepare=True).fetchone()
        names = ("oldest_seconds", "oldest_transactions", "slot_transactions")
        return [dict(zip(names, row, strict=True))] if row is not None else []


class Standbys:
    """A row a standby and second: how far behind it is, in bytes and seconds."""

    name = "standbys"
    period_s = 1.0
    _QUERY: LiteralString = """
    select application_name, sync_state, state,
           coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::float8,
           coalesce(extract(epoch from write_lag), 0)::float8, coalesce(extract(epoch from flush_lag), 0)::float8,
           coalesce(extract(epoch from replay_lag), 0)::float8
    from pg_stat_replication"""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        names = ("standby", "sync_state", "state", "replay_bytes", "write_s", "flush_s", "replay_s")
        return [dict(zip(names, row, strict=True)) for row in self._conn.execute(self._QUERY, prepare=True).fetchall()]


class Slots:
    """A row a replication slot and second: the WAL that it keeps on the disk, in bytes."""

    name = "slots"
    period_s = 1.0
    _QUERY: LiteralString = """
    select slot_name, slot_type, active::int::float8, coalesce(wal_status, ''),
           coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
                                    else pg_current_wal_lsn() end, restart_lsn), 0)::float8
    from pg_replication_slots"""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        names = ("slot", "kind", "active", "wal_status", "kept_bytes")
        return [dict(zip(names, row, strict=True)) for row in self._conn.execute(self._QUERY, prepare=True).fetchall()]
