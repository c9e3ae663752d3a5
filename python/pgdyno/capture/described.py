"""A statement whose parameters are to be drawn, as far as it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pgdyno.capture import sql
from pgdyno.capture.draws import Draw
from pgdyno.message import Message


class NotKnownError(Exception):
    """No value can stand for a parameter."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Statement:
    """A statement whose parameters are to be drawn."""

    #: What each parameter is of, where that is known, and its type.
    uses: Mapping[int, sql.Use]
    types: Sequence[str]
    #: Those that the statement's text has.
    known: Mapping[int, Draw] = field(default_factory=dict)
    #: Of lists that are arrays, how many values they have.
    lengths: Mapping[int, int] = field(default_factory=dict)
    #: In production, for one call; None: not counted.
    rows: float | None = None
    blocks: float | None = None
    #: Pages of all its tables.
    pages: float = 0.0
    #: As many rows come back, or change, as its conditions find: no aggregate, no LIMIT.
    returns_what_it_finds: bool = False
    #: Keys that are there, as a part of all that are asked for.
    hits: float = 1.0
    #: INSERT ... ON CONFLICT.
    may_conflict: bool = False
    #: It changes or deletes rows.
    changes: bool = False
    #: What variables' names begin with.
    prefix: str = "p"
    #: What names of lists of values begin with.
    place: str = ""

    def type(self, number: int) -> str:
        """Return the type of a parameter."""
        return self.types[number - 1]
