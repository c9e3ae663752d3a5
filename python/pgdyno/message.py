"""Messages as data: an id and its arguments, written in a language by `pgdyno.i18n`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
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


Mark = Literal["comma", "list", "semicolon", "sentence", "line", "none"]


@dataclass(frozen=True, slots=True)
class Listed:
    """Several texts in a row. `mark` is what stands between them.

    "sentence" joins whole sentences, "line" puts each on a line of its own.
    """

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


def sentences(texts: Iterable[Text]) -> Listed:
    """Return texts in a row without those that are empty."""
    return listed((x for x in texts if x not in (Name(""), Listed(()))), "sentence")


def single_line(text: Text) -> Text:
    """Return a text without line breaks."""
    if isinstance(text, Name):
        return Name(" ".join(text.text.split()), text.zh)
    return replace(text, mark="sentence") if isinstance(text, Listed) and text.mark == "line" else text


def plain_data(value: Argument) -> Any:
    """Return a text or an argument as plain data, of which `text_from` makes it again. Chinese names are left out."""
    if isinstance(value, Message):
        return {"id": value.id, "args": {name: plain_data(x) for name, x in value.args.items()}}
    if isinstance(value, Listed):
        return {"items": [plain_data(x) for x in value.items], "mark": value.mark}
    if isinstance(value, Name):
        return value.text
    return asdict(value) if is_dataclass(value) else value


def text_from(plain: Any) -> Text:
    """Return the text that `plain_data` has made plain. Raise ValueError, KeyError or TypeError if it is not one."""
    found = _argument(plain)
    if not isinstance(found, Message | Listed | Name):
        raise ValueError(f"not a text: {plain!r}")
    return found


def _argument(plain: Any) -> Argument:
    if plain is None or isinstance(plain, int):
        return plain
    if isinstance(plain, str):
        return Name(plain)
    if "id" in plain:
        name, args = plain["id"], plain["args"]
        return Message(name, {key: _argument(x) for key, x in args.items()})
    if "items" in plain:
        return Listed(tuple(_argument(x) for x in plain["items"]), plain["mark"])
    return Share(**plain) if "mean" in plain else Quantity(**plain)


def _plain(value: Argument) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    if isinstance(value, Listed):
        return [_plain(x) for x in value.items]
    if isinstance(value, Name):
        return value.text
    return asdict(value) if is_dataclass(value) else value
