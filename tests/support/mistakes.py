"""Mistakes in an experiment file, as messages."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno import i18n
from pgdyno.errors import PgdynoError
from pgdyno.message import Listed, Message


def mistakes(error: PgdynoError) -> dict[str, str]:
    """Return the id of each mistake by its key."""
    return dict(_of(error.cause))


def _of(text: object) -> Iterator[tuple[str, str]]:
    if isinstance(text, Listed):
        for item in text.items:
            yield from _of(item)
    elif isinstance(text, Message) and isinstance(mistake := text.args.get("mistake"), Message):
        place = text.args.get("key", text.args.get("option"))
        assert place is not None
        yield i18n.written(place), mistake.id
