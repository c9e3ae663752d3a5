"""Texts in a record: in English for readers of the file, and as data for other languages."""

from __future__ import annotations

from typing import Any

from pgdyno import i18n
from pgdyno.message import Name, Text, plain_data, text_from


def english(text: Text | None) -> str:
    """Write a text in English; None is empty."""
    return "" if text is None else i18n.text(text)


def data_of(text: Text | None) -> Any:
    """Return a text as plain data, or None if it is the same in every language."""
    return None if text is None or isinstance(text, Name) else plain_data(text)


def fields_of(name: str, text: Text | None, data_name: str = "") -> dict[str, Any]:
    """Return a text under two keys: `name` in English and, unless it is the same in every language, its data."""
    data = data_of(text)
    return {name: english(text)} | ({} if data is None else {data_name or f"{name}_message": data})


def restored(written: str, data: Any = None) -> Text | None:
    """Return the text of a record, or None if it is empty.

    The English text stands for data that are missing, damaged, or of another version.
    """
    if data is not None:
        try:
            text = text_from(data)
            i18n.text(text)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            # Whatever a file holds that was changed by hand.
            return Name(written)
        return text
    return Name(written) if written else None
