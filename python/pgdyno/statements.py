"""What can be said of a statement by its words alone."""

from __future__ import annotations

import re

#: What is no word of a statement: texts, comments, quoted names.
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_CHANGES = re.compile(
    r"\b(insert|update|delete|merge|truncate|nextval|setval|for\s+(no\s+key\s+)?update|for\s+(key\s+)?share|"
    r"copy\b[^;]*\bfrom|create|alter|drop|vacuum|refresh\s+materialized)\b",
    re.IGNORECASE,
)


def writes(text: str) -> bool:
    """Whether a statement changes something, so that a server that only reads refuses it. Functions that change
    something are not known.
    """
    return _CHANGES.search(_QUOTED.sub(" ", text)) is not None
