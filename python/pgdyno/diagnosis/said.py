"""Figures in the sentences of findings."""

from __future__ import annotations

import re

from pgdyno.diagnosis.finding import Part


def percent(value: float) -> str:
    """Format a share as a percentage: 34%, 3.4%."""
    return f"{value * 100:.0f}%" if value >= 0.0995 else f"{value * 100:.1f}%"


#: Of a statement so many characters are shown.
_STATEMENT = 80
_COLUMNS = re.compile(r"^select\b.*?\bfrom\b", re.IGNORECASE)


def shortened(statement: str) -> str:
    """Shorten a statement so that it fits into a sentence."""
    text = " ".join(statement.split()).rstrip("; ")
    if len(text) > _STATEMENT:
        # Which table it reads says more than which columns.
        text = _COLUMNS.sub("select … from", text, count=1)
    return text if len(text) <= _STATEMENT else f"{text[:_STATEMENT]}…"


def mostly(name: str, share: float) -> str:
    """Return the dominant owner and its share, as " (62% of them of stock)"; empty if unknown."""
    return f" ({percent(share)} of them of {name})" if name else ""


def part(p: Part) -> str:
    """Format a share with its interval: "34% (31 to 37%)"."""
    digits = 0 if p.high >= 0.0995 else 1
    low, high = (f"{x * 100:.{digits}f}" for x in (max(0.0, p.low), p.high))
    return f"{percent(p.mean)} ({low} to {high}%)" if low != high else percent(p.mean)
