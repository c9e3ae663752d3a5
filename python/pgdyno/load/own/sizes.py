"""Number of distinct values that a drawn column can have, without the libraries that draw."""

from __future__ import annotations

from pgdyno.load.own import spellings
from pgdyno.load.own.drawn import Drawn

#: Letters and digits of texts.
LETTERS = 36


def size_of(c: Drawn) -> int:
    """Return the number of distinct values of a column.

    The number is at most 2 to the power of 52 for columns of type "number".
    """
    if c.segments:
        return sum(int(b - a) + 1 for a, b in c.segments)
    match c.type:
        case "choice":
            return len(c.values)
        case "boolean":
            return 2
        case "uuid":
            return 2**40
        case "text":
            return int(min(2**40, LETTERS ** int(c.high)))
        case "spelled":
            return spellings.size_of(c.spelling)
        case "number":
            return int(min(2**52, (c.high - c.low) * 10**c.decimals + 1.5))
        case _:
            return int(c.high - c.low) + 1
