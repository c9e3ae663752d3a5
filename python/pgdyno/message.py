"""Messages as data: an id and its arguments, written in a language by `pgdyno.i18n`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, Literal

from pgdyno.units import Quantity, Share


@dataclass(frozen=True, slots=True)
class Name:
    """Text that somebody else wrote: names, statements, settings. It is never translated."""

    text: str
    #: Chinese text, if its author gave one.
    zh: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence, or a part of one, by its id in the catalogues. An argument that is None is written as nothing."""

    id: str
    args: Mapping[str, Argument] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the message for the record of a run."""
        return {"id": self.id, "args": {name: _plain(value) for name, value in self.args.items()}}


Mark = Literal["comma", "list", "semicolon", "sentence", "none"]


@dataclass(frozen=True, slots=True)
class Listed:
    """Several texts in a row. `mark` is what stands between them; "sentence" joins whole sentences."""

    items: tuple[Argument, ...]
    mark: Mark = "comma"


Text = Message | Name | Listed
Argument = Quantity | Share | Text | int | None


def message(id: str, **args: Argument) -> Message:
    """Return a message with these arguments."""
    return Message(id, args)


def counted(id: str, n: int) -> Message:
    """Return a number of things: the message `id`, or `id-one` for a single one."""
    return Message(f"{id}-one" if n == 1 else id, {"n": n})


def listed(items: Iterable[Argument], mark: Mark = "comma") -> Listed:
    """Return texts in a row, without those that are None."""
    return Listed(tuple(x for x in items if x is not None), mark)


def _plain(value: Argument) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    if isinstance(value, Listed):
        return [_plain(x) for x in value.items]
    if isinstance(value, Name):
        return value.text
    return asdict(value) if is_dataclass(value) else value
