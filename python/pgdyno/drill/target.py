"""Cluster as a drill needs it: one of pgdyno's own (`own`), or one that another tool manages (`foreign`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pgdyno.cluster.target import Target
from pgdyno.drill.ledger import Key
from pgdyno.drill.modes import Mode
from pgdyno.drill.records import Options, Round, Say
from pgdyno.message import Text
from pgdyno.stream.stream import RunStream


@dataclass(frozen=True)
class Endpoint:
    """Server that the drill's clients connect to."""

    first: Target
    #: Host and port of the members that clients try when the first is not a primary.
    others: list[tuple[str, int]]
    #: Clients look for a primary; through a pooler they take the server that it gives them.
    read_write: bool = True


class LiveRound(Protocol):
    """Round under way: the steps that depend on who manages the cluster, in their order."""

    #: Seconds that clients may take to be served again.
    served_s: float

    @property
    def endpoint(self) -> Endpoint:
        """Server that the clients of this round connect to."""

    @property
    def seen(self) -> set[Key]:
        """Rows of the ledger that were read before the failover."""

    def inject(self) -> None:
        """Break the cluster and return when a member may serve clients again.

        Times, events, and the members that were promoted are recorded in the round. Raise PgdynoError if the fault
        could not be injected.
        """

    def is_served(self) -> bool:
        """Return True if a member accepts writes. Clients are waited for until then."""

    def settle(self) -> None:
        """Record the roles after the load has gone on behind the fault."""

    def stop(self) -> None:
        """Stop observing. Called however the round ends, before its record is written."""

    def release(self) -> None:
        """Undo the injected fault as far as that needs no member. Called after the record has been written."""

    def abandon(self) -> None:
        """Repair what the fault broke. Called if the drill is interrupted within the round."""

    def recover(self) -> Target:
        """Return the primary after the fault, as an administrator reaches it. Copies have been compared before.

        Raise TrialError if there is no primary.
        """

    def make_whole(self) -> None:
        """Wait until every member follows the primary and has all of its WAL.

        Raise PgdynoError if the cluster does not become whole.
        """


class DrillTarget(Protocol):
    """Cluster that a drill breaks."""

    @property
    def name(self) -> str:
        """Name of the cluster."""

    @property
    def is_foreign(self) -> bool:
        """True if another tool manages the cluster: that tool promotes members, and pgdyno checks no files."""

    @property
    def remedy(self) -> Text | str:
        """Advice for a cluster that is not whole after a drill."""

    @property
    def members(self) -> list[str]:
        """Names of the members."""

    @property
    def mode(self) -> Mode:
        """Protection mode that the cluster is configured for; without a name."""

    def refuse_unfit(self, faults: Sequence[str]) -> None:
        """Raise RefusedError or UsageError if the cluster does not support one of the faults."""

    def prepare(self, options: Options, stream: RunStream) -> None:
        """Prepare the cluster for a drill's rounds, before the first one.

        Raise PgdynoError if the cluster is not whole.
        """

    def version(self) -> str:
        """Return the version of PostgreSQL."""

    def primary(self) -> Target:
        """Return the primary, as an administrator reaches it."""

    def client(self) -> Target:
        """Return the primary, as the role of the clients reaches it without a pooler."""

    def hold_mode(self, mode: Mode) -> AbstractContextManager[None]:
        """Return a context in which the cluster has a protection mode."""

    def start_round(self, fault: str, number: int, options: Options, mode: Mode, say: Say) -> tuple[Round, LiveRound]:
        """Return the record of a new round and its steps. Nothing is broken yet.

        Raise PgdynoError if the cluster is not whole.
        """

    def wait_caught_up(self) -> None:
        """Wait until the standbys have replayed the WAL that the primary has now.

        Raise PgdynoError if they do not.
        """

    def everybody(self) -> Mapping[str, Target]:
        """Return each member, as an administrator reaches it, by name."""

    def damaged(self) -> dict[str, Text]:
        """Return the damage that a check of the members' files finds, by member."""
