"""Properties of a statement that its text alone reveals."""

from __future__ import annotations

import re

#: What is no word of a statement: texts, comments, quoted names.
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
#: Verbs where a statement begins, and behind WITH ... AS (; the others are no names of columns.
_CHANGES = re.compile(
    r"(?:^|;)\s*(?:truncate|copy\b[^;]*\bfrom|create|alter|drop|vacuum|refresh)\b"
    r"|(?:^|[;()])\s*(?:insert\s+into|update\s+[\"\w]|delete\s+from|merge\s+into)"
    r"|\b(?:nextval|setval)\s*\(|\bfor\s+(?:no\s+key\s+)?update\b|\bfor\s+(?:key\s+)?share\b",
    re.IGNORECASE,
)
#: Of a script the lines that are pgbench's.
_META = re.compile(r"^\s*\\.*$", re.MULTILINE)
_COMMIT = re.compile(r"\s*(?:commit|end)\b", re.IGNORECASE)


def is_commit(text: str) -> bool:
    """Return True for COMMIT and END."""
    return _COMMIT.match(text) is not None


def writes(text: str) -> bool:
    """Return True if a statement changes something, so that a read-only server refuses it.

    Changes by functions are not recognized, except those by nextval and setval.
    """
    return _CHANGES.search(_QUOTED.sub(" ", _META.sub(" ", text)).strip()) is not None
