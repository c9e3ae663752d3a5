"""Messages as data: an id and its arguments, written in a language by `pgdyno.i18n`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

from pgdyno.units import Quantity, Share


@dataclass(frozen=True, slots=True)
class Name:
    """Text that somebody else wrote: names, statements, settings. It is never translated."""

    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence, or a part of one, by its id in the catalogues. An argument that is None is written as nothing."""

    id: str
    args: Mapping[str, Argument] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the message for the record of a run."""
        return {"id": self.id, "args": {name: _plain(value) for name, value in self.args.items()}}


Argument = Quantity | Share | Name | Message | int | None


def message(id: str, **args: Argument) -> Message:
    """Return a message with these arguments."""
    return Message(id, args)


def _plain(value: Argument) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    return asdict(value) if is_dataclass(value) else value
