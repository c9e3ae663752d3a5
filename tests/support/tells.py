"""Assertions on messages by their ids and arguments, so that wording can change without the tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pgdyno import i18n

#: Characters that an argument has at most.
_LONGEST = 1_000


def tells(output: str, id: str, /, **args: object) -> bool:
    """Return True if an output has a message in English; arguments that are not given may be anything.

    Lines that a terminal has wrapped count as one. Raise KeyError for an id or an argument that the catalogue lacks.
    """
    template = i18n.catalogue("en")[id]
    if unknown := set(args) - i18n.arguments_of(template):
        raise KeyError(f"{id} has no {', '.join(sorted(unknown))}")
    # Neighbours whose arguments are given are one piece; the pieces come in their order.
    pieces = [""]
    for part in re.split(r"(\{ \$\w+ \})", template):
        name = part[3:-2] if part.startswith("{ $") else None
        if name is None or name in args:
            pieces[-1] += part if name is None else str(args[name])
        else:
            pieces.append("")
    wanted = [" ".join(piece.split()) for piece in pieces if piece.strip()]
    text, at = " ".join(output.split()), 0
    while (at := text.find(wanted[0], at)) >= 0:
        end = at
        for piece in wanted:
            found = text.find(piece, end, end + _LONGEST + len(piece))
            end = found + len(piece) if found >= 0 else -1
            if end < 0:
                break
        if end >= 0:
            return True
        at += 1
    return False


@contextmanager
def telling(kind: type[Exception], id: str, /, **args: object) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expect an exception of a kind whose text has a message, as `tells` finds it."""
    with pytest.raises(kind) as raised:
        yield raised
    assert tells(str(raised.value), id, **args), str(raised.value)
