"""Reports as tests look at them: ids of messages, and their texts."""

from __future__ import annotations

from collections.abc import Iterable

from pgdyno import i18n
from pgdyno.message import Listed, Message, Text


def ids(texts: Iterable[Text]) -> list[str]:
    """Return the ids of messages; of a name, its text."""
    return [x.id if isinstance(x, Message) else i18n.text(x) for x in texts]


def every_id(text: object) -> set[str]:
    """Return the ids of a message and of all messages within it."""
    match text:
        case Message(id=id, args=args):
            return {id, *(x for a in args.values() for x in every_id(a))}
        case Listed(items=items):
            return {x for item in items for x in every_id(item)}
    return set()


def words(texts: Iterable[Text], lang: str = "en") -> list[str]:
    """Return messages as text."""
    return [i18n.text(x, lang) for x in texts]
