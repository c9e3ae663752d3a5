"""Drills of clusters that another tool manages (Patroni, repmgr, an operator).

The drill knows how to reach the members and which command breaks one. The tool decides which member is promoted, and
how the others rejoin.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import psycopg
from pydantic import Field, ValidationError, field_validator

from pgdyno import conninfo as conninfos
from pgdyno import files
from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.cluster.target import Target
from pgdyno.drill import ledger
from pgdyno.drill.load import INTERVAL_S, Load
from pgdyno.drill.rounds import KILLED, Options, Round, Say, begin, compare_copies, save, speeds, write_lost
from pgdyno.errors import PgdynoError, RefusedError, SpecError, TrialError, UsageError
from pgdyno.format import one_line
from pgdyno.spec.load import mistakes
from pgdyno.spec.values import Name, Strict

#: How often each member is looked at, and for how long a look counts.
_LOOK_S, _FRESH_S = 0.05, 1.0
#: How long a member may take to answer.
_ANSWER_S = 3.0
Role = Literal["primary", "standby", "not answering"]


class Description(Strict):
    """A cluster, and how it is broken: the drill's file."""

    name: Name
    #: How clients reach each member: libpq's connection strings, of one role and one database.
    members: Annotated[dict[Name, str], Field(min_length=2)]
    #: Shell commands that break it. PGDYNO_PRIMARY, PGDYNO_PRIMARY_HOST and PGDYNO_PRIMARY_PORT are of the primary,
    #: PGDYNO_STANDBYS the names of the others.
    faults: Annotated[dict[Name, str], Field(min_length=1)]
    #: A shell command that puts right what was broken, where the tool does not by itself.
    recover: str = ""
    #: How long the tool may take to promote another: where none is, the round ends when all are served after so long.
    failover_s: Annotated[float, Field(ge=0, le=86_400)] = 45.0
    #: How long a command may take, clients may wait until they are served again, and the others until they follow.
    command_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    served_s: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    whole_s: Annotated[float, Field(gt=0, le=86_400)] = 300.0

    @field_validator("members")
    @classmethod
    def _no_password(cls, members: dict[str, str]) -> dict[str, str]:
        for name, text in members.items():
            if conninfos.holds_secret(text):
                raise ValueError(f"{name}: a password does not belong into a file: use ~/.pgpass or PGPASSWORD")
        return members


def read(path: Path) -> Description:
    """Read the drill's file.

    Raise SpecError if it cannot be read or is not valid.
    """
    try:
        return Description.model_validate(tomllib.loads(files.read_text(path)))
    except ValidationError as e:
        lines = [
            f"{path}: {'.'.join(map(str, m['loc']))}: {m['msg'].removeprefix('Value error, ')}" for m in mistakes(e)
        ]
        raise SpecError("\n".join(lines), "docs/guide/replication.md shows such a file.") from e
    except (OSError, ValueError) as e:
        raise SpecError(
            f"{path}: {getattr(e, 'strerror', None) or e}",
            "Name the folder of a pgdyno cluster, or a TOML file that describes another one.",
        ) from e


@dataclass(frozen=True)
class Seen:
    """A member as it was when it last answered."""

    role: Role
    at: float
    #: Bytes of WAL from 0/0: written on a primary, replayed on a standby.
    position: int = 0
    #: Of a primary: how many standbys stream.
    streaming: int = 0


class _Member:
    """Looked at again and again in a thread of its own: one that is frozen holds up nobody else."""

    _ASK = """
    select pg_is_in_recovery(),
           pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
                           '0/0')::bigint,
           (select count(*) from pg_stat_get_wal_senders() where state = 'streaming'),
           pg_has_role(current_user, 'pg_read_all_stats', 'usage')"""

    def __init__(self, name: str, target: Target) -> None:
        self.name = name
        self.target = target
        #: Whom a primary streams to is shown to members of pg_monitor alone.
        self.may_see = True
        self._seen = Seen("not answering", 0.0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()

    @property
    def last(self) -> Seen:
        """Return its last answer, however old, or that it does not answer."""
        return self._seen

    @property
    def seen(self) -> Seen:
        fresh = time.monotonic() - self._seen.at < _FRESH_S
        return self._seen if fresh else Seen("not answering", self._seen.at)

    def _look_on(self) -> None:
        while not self._over.is_set():
            try:
                with administration.connect(self.target, patience_s=_ANSWER_S) as conn:
                    while not self._over.is_set():
                        row = conn.execute(self._ASK.encode()).fetchone()
                        assert row is not None
                        self.may_see = bool(row[3])
                        role: Role = "standby" if row[0] else "primary"
                        self._seen = Seen(role, time.monotonic(), int(row[1] or 0), int(row[2]))
                        self._over.wait(_LOOK_S)
            except (PgdynoError, psycopg.Error):
                self._seen = Seen("not answering", time.monotonic())
                self._over.wait(_LOOK_S)


class ForeignCluster:
    """Use as a context manager: members are looked at within it."""

    def __init__(self, description: Description) -> None:
        """Resolve the members of a description.

        Raise UsageError if a connection string is not valid, or if two members are the same server. Raise TargetError
        if a member cannot be connected to.
        """
        self.description = description
        self.members: list[_Member] = []
        for name, text in description.members.items():
            target = targets.resolve(text, _ANSWER_S, named=f"members.{name}")
            self.members.append(_Member(name, target))
        places = {(m.target.host, m.target.port) for m in self.members}
        if len(places) < len(self.members):
            raise UsageError("members: two of them are one server", "Give each its own host and port.")

    def __enter__(self) -> ForeignCluster:
        for m in self.members:
            m.start()
        return self

    def __exit__(self, *_: object) -> None:
        for m in self.members:
            m.stop()

    def primaries(self) -> list[_Member]:
        """Return the members that accept writes."""
        return [m for m in self.members if m.seen.role == "primary"]

    def is_whole(self) -> bool:
        """One primary, to which all others stream."""
        found = self.primaries()
        standbys = [m for m in self.members if m.seen.role == "standby"]
        # Others may stream as well: an archive, logical replication.
        return len(found) == 1 and len(standbys) == len(self.members) - 1 <= found[0].seen.streaming

    def wait_whole(self, patience_s: float) -> _Member:
        """Wait until the cluster is whole; return the primary.

        Raise TrialError if it is not whole within `patience_s` seconds. Raise RefusedError if the role may not see
        whether the standbys stream.
        """
        deadline = time.monotonic() + patience_s
        while not self.is_whole():
            if not all(m.may_see for m in self.members):
                role = self.members[0].target.user
                raise RefusedError(
                    f"the role {role} may not see whether the standbys stream", f'GRANT pg_monitor TO "{role}".'
                )
            if time.monotonic() > deadline:
                shown = ", ".join(f"{m.name}: {m.seen.role}" for m in self.members)
                raise TrialError(
                    f"the members are not one primary and its standbys within {patience_s:g} s ({shown})",
                    "Put the cluster right first; whole_s says how long it may take.",
                )
            time.sleep(_LOOK_S)
        return self.primaries()[0]

    def wait_caught_up(self, patience_s: float) -> None:
        """Wait until the standbys have replayed the primary's current WAL position.

        Raise TrialError if they have not done so within `patience_s` seconds.
        """
        deadline = time.monotonic() + patience_s
        wanted = self.wait_whole(patience_s).seen.position
        while any(m.seen.position < wanted for m in self.members):
            if time.monotonic() > deadline:
                raise TrialError(f"the standbys do not catch up within {patience_s:g} s", "Is one of them paused?")
            time.sleep(_LOOK_S)


def refuse_unknown(description: Description, names: list[str]) -> None:
    """Raise UsageError if the description does not define one of the named faults."""
    for name in names:
        if name not in description.faults:
            raise UsageError(f"--fault: the file has no {name!r}", f"It has {', '.join(description.faults)}.")


def play(cluster: ForeignCluster, fault: str, number: int, options: Options, folder: Path, say: Say) -> Round:
    """One round. Raises RefusedError, TrialError where the cluster is not whole before it."""
    about = cluster.description
    primary = cluster.wait_whole(about.whole_s)
    folder.mkdir(parents=True)
    run = time.time_ns() // 1_000_000
    try:
        with administration.connect(primary.target) as conn:
            ledger.create(conn)
            names, commit = (_setting(conn, n) for n in ("synchronous_standby_names", "synchronous_commit"))
    except psycopg.errors.InsufficientPrivilege as e:
        raise RefusedError(
            f"the role {primary.target.user} may not make the ledger's table: {one_line(e)}",
            "GRANT CREATE ON SCHEMA public, or drill in a database of its own.",
        ) from e
    cluster.wait_caught_up(about.whole_s)
    found = Round(number, fault, names, commit)
    found.old_primary = primary.name
    others = [(m.target.options.get("hostaddr") or m.target.host, m.target.port) for m in cluster.members]
    own = (primary.target.options.get("hostaddr") or primary.target.host, primary.target.port)
    load = Load(
        primary.target, [o for o in others if o != own], ledger.workload(run, folder / "ledger"), folder / "ledger",
        options.clients, options.answer_timeout_s, options.connect_timeout_s,
    )  # fmt: skip
    watcher = _Watcher(cluster, primary.name)
    found.run = run
    # Whoever kills pgdyno from here on leaves a record that says so, with what the rows can be found by.
    save(folder, replace(found, error=KILLED))
    try:
        _play(cluster, primary, fault, options, load, found, watcher, say)
    except (PgdynoError, psycopg.Error) as e:
        found.error = one_line(e)
    except BaseException:
        # What was broken is put right, whoever has had enough of it.
        if found.fault_ns and about.recover:
            with contextlib.suppress(PgdynoError):
                _carried_out(about.recover, _environment(cluster, primary), about.command_s, "recover")
        raise
    finally:
        watcher.stop()
        load.stop()
        begin_s = (load.started_ns - found.fault_ns) / 1e9
        found.series = [(round(begin_s + s.at_s, 3), s.committed / INTERVAL_S) for s in load.series]
        clients = [(load.started_ns + round(s * 1e9), text) for s, text in load.events]
        found.events = sorted([*found.events, *watcher.events, *clients])
        found.other_primaries, found.promoted_ns = watcher.other_primaries, watcher.promoted_ns
        speeds(found, load)
        save(folder, replace(found, error=found.error or KILLED))
    if load.error and not found.error:
        found.error = f"the load ended by itself: {load.error}"
    say("recover and audit")
    try:
        compare_copies(found, load, {m.name: m.target for m in cluster.members})
        if about.recover:
            _carried_out(about.recover, _environment(cluster, primary), about.command_s, "recover")
        _audit(cluster, run, found, load)
    except (PgdynoError, psycopg.Error) as e:
        found.error = found.error or one_line(e)
        found.broken = True
    save(folder, found)
    return found


def _play(
    cluster: ForeignCluster, primary: _Member, fault: str, options: Options, load: Load, found: Round,
    watcher: _Watcher, say: Say,
) -> None:  # fmt: skip
    begin(fault, options, load, found, say)
    watcher.start()
    command = cluster.description.faults[fault]
    _carried_out(command, _environment(cluster, primary), cluster.description.command_s, f"faults.{fault}")
    found.events.append((time.time_ns(), f"{fault}: its command has ended"))
    _wait_failed_over(watcher, load, cluster.description.failover_s)
    # From now on: the old primary may have served them until a moment ago.
    _wait_served(cluster, load, time.time_ns())
    found.served_ns = time.time_ns()
    found.new_primary = next((m.name for m in cluster.primaries()), "")
    time.sleep(options.after_s)


def _wait_failed_over(watcher: _Watcher, load: Load, patience_s: float) -> None:
    """Until another takes writes, or long enough to say that none does."""
    deadline = time.monotonic() + patience_s
    while watcher.promoted_ns is None and time.monotonic() < deadline and load.is_on():
        time.sleep(0.02)


def _wait_served(cluster: ForeignCluster, load: Load, since_ns: int) -> None:
    """Until each client has had a commit acknowledged since, or it takes too long."""
    deadline = time.monotonic() + cluster.description.served_s
    while time.monotonic() < deadline and load.is_on():
        if cluster.primaries() and ledger.are_served(load.records, load.clients, since_ns):
            return
        time.sleep(0.02)


def _audit(cluster: ForeignCluster, run: int, found: Round, load: Load) -> None:
    about = cluster.description
    primary = cluster.wait_whole(about.whole_s)
    found.new_primary = primary.name
    found.rejoined = {m.name: "follows" for m in cluster.members if m is not primary}
    entries = ledger.read(load.records)
    with administration.connect(primary.target) as conn:
        there = ledger.look(conn, run)
    found.audit = ledger.audit(entries, there.rows, fault_ns=found.fault_ns, changed=there.changed, states=there.states)
    lost = {e.key for e in found.audit.lost}
    found.outages = ledger.outages(entries, load.clients, found.fault_ns, load.ended_ns, lost)
    write_lost(load.records.parent / "lost.csv", found.audit.lost)
    cluster.wait_caught_up(about.whole_s)
    for m in cluster.members:
        if m is not primary:
            with administration.connect(m.target) as conn:
                if ledger.look(conn, run) != there:
                    found.differing.append(m.name)


class _Watcher:
    """Writes down who takes writes from the fault on."""

    def __init__(self, cluster: ForeignCluster, old: str) -> None:
        self._cluster = cluster
        self._roles: dict[str, Role] = {}
        self._old = old
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self.events: list[tuple[int, str]] = []
        self.promoted_ns: int | None = None
        self.other_primaries: list[str] = []
        #: Of members that answered as primaries: since when, by the monotonic clock.
        self._since: dict[str, float] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(_ANSWER_S)

    def _look_on(self) -> None:
        while not self._over.is_set():
            now = time.time_ns()
            for m in self._cluster.members:
                role = m.seen.role
                if self._roles.get(m.name) not in (None, role):
                    self.events.append((now, f"{m.name}: {role}"))
                    if role == "primary" and m.name != self._old and self.promoted_ns is None:
                        self.promoted_ns = now
                self._roles[m.name] = role
            self._look_for_two(now)
            self._over.wait(_LOOK_S)

    def _look_for_two(self, now: int) -> None:
        """Record members that are primaries at the same time.

        Two members are primaries at the same time if each was seen as a primary after the other had been. A single
        observation is not enough: a frozen member was a primary until a moment ago.
        """
        for m in self._cluster.members:
            last = m.last
            if last.role == "primary":
                self._since.setdefault(m.name, last.at)
            elif last.role == "standby":
                self._since.pop(m.name, None)
        primaries = [m for m in self._cluster.members if m.last.role == "primary"]
        for m in primaries:
            later = [o for o in primaries if self._since[o.name] > self._since[m.name]]
            if m.name not in self.other_primaries and any(m.last.at > self._since[o.name] for o in later):
                self.other_primaries.append(m.name)
                self.events.append((now, f"{m.name} is a primary as well"))


def _setting(conn: psycopg.Connection[tuple[Any, ...]], name: str) -> str:
    row = conn.execute("select current_setting(%s)", [name]).fetchone()
    return str(row[0]) if row else ""


def _environment(cluster: ForeignCluster, primary: _Member) -> dict[str, str]:
    return {
        "PGDYNO_PRIMARY": primary.name,
        "PGDYNO_PRIMARY_HOST": primary.target.options.get("hostaddr") or primary.target.host,
        "PGDYNO_PRIMARY_PORT": str(primary.target.port),
        "PGDYNO_STANDBYS": " ".join(m.name for m in cluster.members if m is not primary),
    }


def _carried_out(command: str, more: Mapping[str, str], patience_s: float, what: str) -> None:
    """Run a command of the user with the shell.

    Processes that it leaves in the background continue. A command that takes longer than `patience_s` seconds, or is
    interrupted, is killed with all processes that it started. Raise TrialError if the command fails or takes too long.
    """
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            ["sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, **more},
            start_new_session=True,
        )
        try:
            code = process.wait(patience_s)
        except BaseException as e:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(e, subprocess.TimeoutExpired):
                raise TrialError(
                    f"{what} did not end within {patience_s:g} s", "Let it go on in the background, or raise command_s."
                ) from None
            raise
        if code != 0:
            said.seek(0)
            words = " ".join(said.read(10_000).decode("utf-8", "replace").split())[:300]
            raise TrialError(f"{what} ended with exit code {code}: {words}")
