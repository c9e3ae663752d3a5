"""State of each member of a cluster, as the member itself reports it over its socket."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import psycopg

from pgdyno.cluster import administration
from pgdyno.errors import PgdynoError
from pgdyno.replication.member import Member

Role = Literal["primary", "standby", "stopped", "not answering"]
#: How long a member may take to answer.
_PATIENCE_S = 2.0

#: Positions are bytes of WAL from 0/0 on. A standby's received position is what it has flushed, or replayed.
_STATE = """
select pg_is_in_recovery(),
  case when pg_is_in_recovery()
    then greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) else pg_current_wal_flush_lsn() end - '0/0',
  case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end - '0/0',
  case when pg_is_in_recovery()
    then greatest((select received_tli from pg_stat_wal_receiver), (select timeline_id from pg_control_checkpoint()),
      (select min_recovery_end_timeline from pg_control_recovery()))
    else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int end,
  extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8"""
_STANDBYS = "select application_name, state, sync_state from pg_stat_replication"


@dataclass
class State:
    """A member as it is now."""

    name: str
    role: Role
    address: str
    port: int
    process: int | None = None
    #: Of a standby whose WAL receiver is gone the one of its last restartpoint, which may be behind.
    timeline: int | None = None
    #: Bytes of WAL from 0/0: what it has flushed, and what it has replayed.
    received: int | None = None
    replayed: int | None = None
    #: Behind the primary: bytes that are not replayed, and seconds since the last replayed commit, if any are.
    lag_bytes: int | None = None
    lag_s: float | None = None
    #: As the primary has it: streaming, catchup; and async, potential, sync, quorum.
    streaming: str | None = None
    sync_state: str | None = None
    #: Why it does not answer.
    reason: str = ""

    @property
    def lsn(self) -> str:
        """WAL position that the member has received, in PostgreSQL's notation."""
        return "" if self.received is None else f"{self.received >> 32:X}/{self.received & 0xFFFFFFFF:X}"

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {**asdict(self), "lsn": self.lsn}


def member_state(member: Member) -> State:
    """One member, without what only the primary knows."""
    state = State(member.name, "stopped", member.address, member.port)
    try:
        state.process = member.process_id
        if state.process is None:
            return state
        with administration.connect(member.local, patience_s=_PATIENCE_S) as conn:
            row = conn.execute(_STATE).fetchone()
        assert row is not None
        standby, received, replayed, state.timeline, seconds = row
        state.role = "standby" if standby else "primary"
        state.received, state.replayed = int(received or 0), int(replayed or 0)
        state.lag_s = float(seconds) if standby and seconds is not None else None
    except (PgdynoError, psycopg.Error) as e:
        state.role, state.reason = "not answering", str(e).splitlines()[0]
    return state


def received_timeline(member: Member) -> int | None:
    """Return the timeline that a standby's WAL receiver streams now, or None if it does not stream."""
    try:
        with administration.connect(member.local, patience_s=_PATIENCE_S) as conn:
            row = conn.execute("select received_tli from pg_stat_wal_receiver where status = 'streaming'").fetchone()
    except (PgdynoError, psycopg.Error):
        return None
    return int(row[0]) if row and row[0] else None


def all_states(members: list[Member]) -> list[State]:
    """All of them, with their lags behind the primary. Of several primaries that of the latest timeline counts."""
    states = [member_state(m) for m in members]
    primary = primary_of(states)
    if primary is None:
        return states
    member = next(m for m in members if m.name == primary.name)
    try:
        with administration.connect(member.local, patience_s=_PATIENCE_S) as conn:
            known = {name: (state, sync) for name, state, sync in conn.execute(_STANDBYS).fetchall()}
    except (PgdynoError, psycopg.Error):
        known = {}
    for s in states:
        if s.role == "standby" and s.replayed is not None and primary.received is not None:
            s.lag_bytes = max(0, primary.received - s.replayed)
            s.lag_s = s.lag_s if s.lag_bytes else 0.0
            s.streaming, s.sync_state = known.get(s.name, (None, None))
    return states


def primary_of(states: list[State]) -> State | None:
    """Return the primary; of several primaries, the one on the latest timeline."""
    return max((s for s in states if s.role == "primary"), key=lambda s: s.timeline or 0, default=None)
