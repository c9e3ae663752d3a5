"""Columns as the user says them in an experiment."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from pgdyno.errors import SpecError, msg
from pgdyno.load.own.catalog import Column
from pgdyno.load.own.drawn import Drawn

#: What is drawn of instants where nothing is said: a year.
FROM, TO = dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1)
#: Characters of texts where nothing is said.
SHORT, LONG = 8, 24


def requested_draw(c: Column, requested: Mapping[str, Any], where: str) -> Drawn:
    """Return the drawing rule for a column that the user specifies and that is no reference.

    Raise SpecError if the bounds are invalid.
    """
    kind = requested["type"]
    low, high = _bounds(c, requested, where)
    longest = 1_000_000 if kind == "text" else 2**62
    if kind != "number" and max(abs(low), abs(high)) > longest:
        raise SpecError(msg("error-min-max-reach-beyond", where=where, longest=f"{longest:,}"))
    if low > high:
        raise SpecError(msg("error-min-above-max", where=where))
    return Drawn(
        c.name,
        kind,
        low,
        high,
        requested["distribution"],
        requested["skew"],
        tuple(requested["values"]),
        tuple(requested["weights"]),
        requested["nulls"],
        requested["like"],
        requested["correlation"],
        decimals(c),
    )


def _bounds(c: Column, requested: Mapping[str, Any], where: str) -> tuple[float, float]:
    kind, low, high = requested["type"], requested["min"], requested["max"]
    if kind in ("timestamp", "date"):
        return instant(low, FROM, kind, f"{where}.min"), instant(high, TO, kind, f"{where}.max")
    if isinstance(low, str) or isinstance(high, str):
        raise SpecError(msg("error-min-max-numbers", where=where, kind=kind))
    if kind == "text":
        long = min(LONG, length(c) or LONG)
        return (min(SHORT, long) if low is None else low), (long if high is None else high)
    if kind == "integer":
        return (1 if low is None else low), (1_000_000 if high is None else high)
    return (1 if low is None and kind == "serial" else low or 0), (10_000 if high is None else high)


def instant(value: Any, default: dt.datetime, kind: str, where: str) -> float:
    """Return a time as a number: days since 1970 for the `kind` date, else microseconds since 1970.

    Raise SpecError if `value` is no time.
    """
    try:
        at = default if value is None else dt.datetime.fromisoformat(str(value)).replace(tzinfo=None)
    except ValueError as e:
        raise SpecError(msg("error-no-time", where=where, value=repr(value)), msg("remedy-write-2024-01-31-or")) from e
    since = at - _EPOCH
    return float(since.days if kind == "date" else since // dt.timedelta(microseconds=1))


def length(c: Column) -> int | None:
    """Return the length of varchar(n) and char(n), or None for other columns."""
    return c.modifier - 4 if c.type in ("varchar", "bpchar") and c.modifier > 4 else None


def decimals(c: Column) -> int:
    """Return the scale of numeric(p, s), or 2 if none is declared."""
    return (c.modifier - 4) & 0x7FF if c.type == "numeric" and c.modifier >= 4 else 2
