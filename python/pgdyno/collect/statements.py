"""pg_stat_statements beside a workload's scripts: which of the server's normalised statements is which of theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pgdyno.collect.plans import Sample

#: What is dropped (comments), and what pg_stat_statements replaces by a parameter, or a script by a variable: strings,
#: numbers, booleans and NULL, $1, :name. In one pass: a comment's sign within a string is none.
_TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/|--[^\n]*)"
    r"|(?:\b[EBXN]|\bU&)?'(?:[^']|'')*'|\$\d+|(?<![:\w]):\w+|\b(?:true|false|null)\b"
    r"|(?<![\w.$])(?:0x[0-9a-f_]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?)\b",
    re.IGNORECASE | re.DOTALL,
)
_SIGN = re.compile(
    r"(?<=[(,=<>+*/%|-])[-+]\?|\b(select|then|else|when|and|or|between|limit|offset)[-+]\?", re.IGNORECASE
)
#: Of what was prepared to be planned, by a run or a capture.
_PREPARED = re.compile(r"^prepare pgdyno_\w+ as ")
#: The server takes a field for the constant that it is.
_FIELD = re.compile(r"\bextract\(\w+ from ", re.IGNORECASE)
#: Of a statement's text so much is kept.
_KEPT = 1000


def shape(text: str) -> str:
    """Return a statement without comments, constants, parameters and superfluous blanks.

    The result is equal for a script's statement and for its entry in pg_stat_statements, whichever protocol sent it.
    All lists of constants are reduced to the same length.
    """
    bare = _TOKEN.sub(lambda m: " " if m["comment"] else "?", _PREPARED.sub("", text))
    bare = re.sub(r"\s*([()\[\],=<>+*/%|-])\s*", r"\1", " ".join(bare.split())).rstrip("; ")
    bare = _FIELD.sub("extract(? from ", bare)
    bare = _SIGN.sub(lambda m: f"{m[1]} ?" if m[1] else "?", bare)
    return re.sub(r"([(\[])\?(?:,\?)+([)\]])", r"\1?\2", bare)


def attributed(rows: Sequence[Mapping[str, float | str]], statements: Sequence[Sample]) -> list[dict[str, float | str]]:
    """Return the rows of pg_stat_statements, each with the `script` and `line` of its statement.

    A row without such a statement has "" and 0. Equal statements of several scripts are one statement for the server:
    they count for the first script.
    """
    by_shape: dict[str, Sample] = {}
    for s in statements:
        by_shape.setdefault(shape(s.prepared), s)
    found: list[dict[str, float | str]] = []
    for row in rows:
        text = _PREPARED.sub("", str(row["statement"]))
        own = by_shape.get(shape(text))
        place: dict[str, float | str] = {"script": own.script if own else "", "line": float(own.line if own else 0)}
        found.append({**row, "statement": text[:_KEPT], **place})
    return found
