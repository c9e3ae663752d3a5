"""Texts of messages, for what a test expects to be said."""

from __future__ import annotations

from pgdyno import i18n
from pgdyno.errors import msg


def text(id: str, /, lang: str = "en", **args: object) -> str:
    """Write a message as pgdyno does."""
    return i18n.text(msg(id, **args), lang)
