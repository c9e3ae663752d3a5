"""Keys that each table of an experiment file may have."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from pgdyno.spec.experiment import Experiment

#: A table's path, with marks for a name that the user chooses and for an item of a list.
Table = tuple[str, ...]
_NAME, _ITEM = "NAME", "ITEM"


@functools.cache
def tables() -> dict[Table, list[str]]:
    """Return the keys of each table of an experiment file, sorted; of tables with free names, no keys."""
    schema = Experiment.model_json_schema()
    found: dict[Table, set[str]] = {}
    for table, key in _keys(schema, schema.get("$defs", {}), ()):
        found.setdefault(table, set()).add(key)
    return {table: sorted(keys) for table, keys in found.items()}


def keys_of(path: Sequence[str | int]) -> list[str]:
    """Return the keys of the table at a path; none if there is no such table."""
    return next((keys for table, keys in tables().items() if _is_at(table, path)), [])


def tables_with(key: str) -> list[str]:
    """Return the tables that have a key, as a file writes them: [run], [workloads.NAME]; without those of lists."""
    found = [table for table, keys in tables().items() if key in keys and _ITEM not in table]
    return [f"[{'.'.join(table)}]" if table else "" for table in found]


def _is_at(table: Table, path: Sequence[str | int]) -> bool:
    return len(table) == len(path) and all(
        isinstance(p, int) if t == _ITEM else t in (_NAME, p) for t, p in zip(table, path, strict=True)
    )


def _keys(part: Any, definitions: dict[str, Any], at: Table) -> Iterator[tuple[Table, str]]:
    """Yield each table and key below a part of the schema. No table of an experiment holds itself."""
    if "$ref" in part:
        part = definitions[part["$ref"].rpartition("/")[2]]
    for alternative in [*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())]:
        yield from _keys(alternative, definitions, at)
    for key, value in part.get("properties", {}).items():
        yield at, key
        yield from _keys(value, definitions, (*at, key))
    for below in (part.get("additionalProperties"), *part.get("patternProperties", {}).values()):
        if isinstance(below, dict):
            yield from _keys(below, definitions, (*at, _NAME))
    if isinstance(part.get("items"), dict):
        yield from _keys(part["items"], definitions, (*at, _ITEM))
