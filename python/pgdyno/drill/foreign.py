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
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.drill.description import Description
from pgdyno.drill.ledger import Key
from pgdyno.drill.members import Member, Members, Watcher
from pgdyno.drill.modes import Mode
from pgdyno.drill.records import Options, Round, Say
from pgdyno.drill.target import Endpoint
from pgdyno.errors import PgdynoError, RefusedError, TrialError, UsageError, msg
from pgdyno.message import Name, Text, message
from pgdyno.stream.stream import RunStream


class ForeignTarget:
    """Cluster that a file describes, as a drill breaks it. See `target.DrillTarget`."""

    is_foreign = True
    remedy = msg("remedy-repair-foreign")

    def __init__(self, observed: Members) -> None:
        self.observed = observed
        self.description = observed.description

    @property
    def name(self) -> str:
        """Name in the description."""
        return self.description.name

    @property
    def members(self) -> list[str]:
        """Names of the members."""
        return [m.name for m in self.observed.members]

    @property
    def mode(self) -> Mode:
        """Nothing: the tool may change the mode whenever it likes."""
        return Mode("", "", "")

    def refuse_unfit(self, faults: Sequence[str]) -> None:
        """Raise UsageError if the description does not define one of the faults."""
        refuse_unknown(self.description, faults)

    def prepare(self, options: Options, stream: RunStream) -> None:
        """Wait until the cluster is whole. Raise TrialError if it does not become whole."""
        self.observed.wait_whole(self.description.whole_s)

    def version(self) -> str:
        """Return the version of PostgreSQL."""
        with administration.connect(self.primary()) as conn:
            return _setting(conn, "server_version")

    def primary(self) -> Target:
        """Return the primary. Raise TrialError if there is none within `whole_s` seconds."""
        return self.observed.wait_whole(self.description.whole_s).target

    def client(self) -> Target:
        """Return the primary: the description has one role."""
        return self.primary()

    def hold_mode(self, mode: Mode) -> AbstractContextManager[None]:
        """Return a context that does nothing: the mode is the tool's. Raise RefusedError for a named mode."""
        if mode.name:
            raise RefusedError(msg("error-another-tool-sets-this-cluster"), msg("remedy-leave-out-modes"))
        return contextlib.nullcontext()

    def start_round(
        self, fault: str, number: int, options: Options, mode: Mode, say: Say
    ) -> tuple[Round, ForeignRound]:
        """Return the record of a new round and its steps."""
        primary = self.observed.wait_whole(self.description.whole_s)
        with administration.connect(primary.target) as conn:
            names, commit = (_setting(conn, n) for n in ("synchronous_standby_names", "synchronous_commit"))
        found = Round(number, fault, names, commit, old_primary=primary.name)
        return found, ForeignRound(self.observed, primary, found)

    def wait_caught_up(self) -> None:
        """Wait until the standbys have replayed the primary's WAL."""
        self.observed.wait_caught_up(self.description.whole_s)

    def everybody(self) -> Mapping[str, Target]:
        """Return each member."""
        return {m.name: m.target for m in self.observed.members}

    def damaged(self) -> dict[str, Text]:
        """Return nothing: the members' files are out of reach."""
        return {}


class ForeignRound:
    """Round on a cluster that another tool manages. See `target.LiveRound`."""

    def __init__(self, observed: Members, primary: Member, found: Round) -> None:
        self._observed = observed
        self._about = observed.description
        self._primary = primary
        self._found = found
        self._watcher = Watcher(observed, primary.name)
        self.seen: set[Key] = set()
        self.served_s = self._about.served_s

    @property
    def endpoint(self) -> Endpoint:
        """The members, the primary first."""
        first, *others = [self._primary, *(m for m in self._observed.members if m is not self._primary)]
        return Endpoint(first.target, [(_host(m), m.target.port) for m in others])

    def inject(self) -> None:
        """Run the fault's command, and wait until the tool has promoted another member, or has had time to."""
        fault, about = self._found.fault, self._about
        self._watcher.start()
        self._run(about.faults[fault], f"faults.{fault}")
        self._found.events.append((time.time_ns(), message("drill-event-command", fault=Name(fault))))
        deadline = time.monotonic() + about.failover_s
        while self._watcher.promoted_ns is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def is_served(self) -> bool:
        """Return True if a member accepts writes."""
        return bool(self._observed.primaries())

    def settle(self) -> None:
        """Record the primary."""
        self._found.new_primary = next((m.name for m in self._observed.primaries()), "")

    def stop(self) -> None:
        """Stop observing; record the roles that the members had."""
        watcher, found = self._watcher, self._found
        watcher.stop()
        found.events += watcher.events
        found.other_primaries, found.promoted_ns = watcher.other_primaries, watcher.promoted_ns

    def release(self) -> None:
        """Do nothing: copies are compared before the recovery command runs."""

    def abandon(self) -> None:
        """Run the recovery command."""
        with contextlib.suppress(PgdynoError):
            self._recover()

    def recover(self) -> Target:
        """Run the recovery command and wait until the cluster is whole; return the primary."""
        self._recover()
        primary = self._observed.wait_whole(self._about.whole_s)
        self._found.new_primary = primary.name
        self._found.rejoined = {
            m.name: message("drill-rejoined-follows") for m in self._observed.members if m is not primary
        }
        return primary.target

    def make_whole(self) -> None:
        """Wait until the standbys have the primary's WAL."""
        self._observed.wait_caught_up(self._about.whole_s)

    def _recover(self) -> None:
        if self._about.recover:
            self._run(self._about.recover, "recover")

    def _run(self, command: str, what: str) -> None:
        run_command(command, _environment(self._observed, self._primary), self._about.command_s, what)


def refuse_unknown(description: Description, names: Sequence[str]) -> None:
    """Raise UsageError if the description does not define one of the named faults."""
    for name in names:
        if name not in description.faults:
            raise UsageError(
                msg("error-fault-file-no", name=repr(name)),
                msg("remedy-it-has", names=", ".join(description.faults)),
            )


def _setting(conn: psycopg.Connection[tuple[Any, ...]], name: str) -> str:
    row = conn.execute("select current_setting(%s)", [name]).fetchone()
    return str(row[0]) if row else ""


def _host(member: Member) -> str:
    return member.target.options.get("hostaddr") or member.target.host


def _environment(cluster: Members, primary: Member) -> dict[str, str]:
    return {
        "PGDYNO_PRIMARY": primary.name,
        "PGDYNO_PRIMARY_HOST": _host(primary),
        "PGDYNO_PRIMARY_PORT": str(primary.target.port),
        "PGDYNO_STANDBYS": " ".join(m.name for m in cluster.members if m is not primary),
    }


def run_command(command: str, more: Mapping[str, str], patience_s: float, what: str) -> None:
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
                    msg("error-did-not-end-within-s", what=what, patience_s=f"{patience_s:g}"),
                    msg("remedy-let-go-on-background-or"),
                ) from None
            raise
        if code != 0:
            said.seek(0)
            words = " ".join(said.read(10_000).decode("utf-8", "replace").split())[:300]
            raise TrialError(msg("error-ended-exit-code", what=what, code=code, words=words))
