"""Types whose values are no secrets, and a value that nobody knows in place of one that may be."""

from __future__ import annotations

import re

#: Types that hold none.
_NO_SECRET = re.compile(
    r"(?:smallint|integer|bigint|numeric|real|double precision|boolean|date|time|timestamp|interval|money|oid|inet|"
    r"cidr|macaddr|point|box|circle|line|lseg|path|polygon|\w*range|bit)\b"
)
#: Types whose values tell an amount or a time, of which a histogram's bounds may be written.
_MEASURED = re.compile(
    r"(?:smallint|integer|bigint|numeric|real|double precision|boolean|date|time|timestamp|interval)\b"
)


def holds_none(type_: str) -> bool:
    """Return True if values of a type hold no secrets."""
    return _NO_SECRET.match(type_) is not None


def is_measured(type_: str) -> bool:
    """Return True if values of a type are amounts or times."""
    return _MEASURED.match(type_) is not None


def looks_random(type_: str) -> str:
    """Return an expression for a random value that is evaluated once per statement.

    It is a subquery of its own, so that an index can be used.
    """
    drawn = "md5(random()::text)"
    match type_:
        case "bytea":
            return f"(select decode({drawn}, 'hex'))"
        case "json" | "jsonb":
            return f"(select to_{type_}({drawn}))"
        case "character":
            return f"(select {drawn}::bpchar)"
        case _ if type_.endswith("[]"):
            return f"(select array[{drawn}]::{type_})"
        case _ if holds_none(type_):
            return f"null::{type_}"
    # Texts, uuid, and what reads text: citext, domains over them.
    return f"(select {drawn}::{type_})"
