"""Assertions on messages by their ids and arguments, so that wording can change without the tests."""

from __future__ import annotations

import re

from pgdyno import i18n


def tells(output: str, id: str, /, **args: object) -> bool:
    """Return True if an output has a message in English; arguments that are not given may be anything.

    Lines that a terminal has wrapped count as one. Raise KeyError for an id or an argument that the catalogue lacks.
    """
    template = i18n.catalogue("en")[id]
    if unknown := set(args) - i18n.arguments_of(template):
        raise KeyError(f"{id} has no {', '.join(sorted(unknown))}")
    pattern = ""
    for part in re.split(r"(\{ \$\w+ \})", template):
        name = part[3:-2] if part.startswith("{ $") else None
        wanted = part if name is None else str(args[name]) if name in args else None
        pattern += ".*?" if wanted is None else r"\s+".join(map(re.escape, re.split(r"\s+", wanted)))
    return re.search(pattern, output, re.DOTALL) is not None
